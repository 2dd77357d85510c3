"""Two cores for one command.

Rule: only for a command that evaluates once and ends: a node has other links for its second core, and charges them for
the time of their own threads.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread

_TURN_SECONDS = 0.0005  # what a reader waits for the interpreter after each segment; ten times as long otherwise


def _has_two() -> bool:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return usable > 1


def use_two_cores() -> None:
    """Let large sorts and searches of this process run in two halves, if the machine has a core for each."""
    from lace.datalog.engine.sorting import use_both

    use_both(run_both if _has_two() else None)


@contextmanager
def read_ahead(read: Callable[[], object]) -> Iterator[None]:
    """Read on a second core what the body is going to read, while it loads what it needs for that (decision 240).

    What was read is held as long as the body runs. An error is left to the body, which meets it when it reads itself.
    """
    if not _has_two():
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
    """Do two things at once; an error of either is raised when both have ended."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as helper:
        aside = helper.submit(other)
        one()
    aside.result()
