"""Two cores for one command.

Rule: only for a command that evaluates once and ends: a node has other links for its second core, and charges them for
the time of their own threads.
"""

from __future__ import annotations

import os
from collections.abc import Callable


def use_two_cores() -> None:
    """Let large sorts and searches of this process run in two halves, if the machine has a core for each."""
    from lace.datalog.engine.sorting import use_both

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    use_both(run_both if usable > 1 else None)


def run_both(one: Callable[[], object], other: Callable[[], object]) -> None:
    """Do two things at once; an error of either is raised when both have ended."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as helper:
        aside = helper.submit(other)
        one()
    aside.result()
