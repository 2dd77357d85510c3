"""Two cores for one command: sorting in two halves (decision 130), and reading while loading (decision 240).

Rule: only for a command that evaluates once and ends. A node has other links for its second core, and charges them for
the time of their own threads. Reading ahead took the main thread of `lace query` with one bound goal over 1,000,000
records from 0.32 to 0.25 s (1.26 times); `tests/cli/test_cores.py` compares both ways.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

_TURN_SECONDS = 0.0005  # how long the reader waits for the interpreter after each segment; by default ten times as long


def has_two_cores() -> bool:
    """Whether this process may use more than one core."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable > 1


def use_two_cores() -> None:
    """Let large sorts and searches of this process run in two halves, if the machine has a core for each."""
    from lace.datalog.engine.sorting import use_both

    use_both(run_both if has_two_cores() else None)


@contextmanager
def read_ahead(read: Callable[[], object], *, has_two: bool | None = None) -> Iterator[None]:
    """Read on a second core what the body is going to read, while the body loads the modules that it needs for that.

    What was read is held while the body runs. An error is left to the body, which meets it when it reads itself.
    """
    if not (has_two_cores() if has_two is None else has_two):
        yield
        return
    held: list[object] = []
    usual = sys.getswitchinterval()

    def hold() -> None:
        with suppress(Exception):
            held.append(read())
        sys.setswitchinterval(usual)

    reader = Thread(target=hold, name="read ahead")
    sys.setswitchinterval(_TURN_SECONDS)
    reader.start()
    try:
        yield
    finally:
        reader.join()


def run_both(one: Callable[[], object], other: Callable[[], object]) -> None:
    """Run two functions at the same time; an error of either is raised when both have ended."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as helper:
        aside = helper.submit(other)
        one()
    aside.result()
