"""Python's cycle collector while very many small values live (exchanges, listings, jobs): the one place that sets it.

Rule: only how often it looks changes. It looks through young values every 700 allocations by default, which costs a
bulk exchange a sixth of its time and finds nothing: what is made has no cycles. In a program of somebody else that is
so only while somebody asks for it; a process of our own (a command, a worker) has it from its start.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 300_000

_lock = threading.Lock()
_asking = 0
_before: tuple[int, int, int] = (0, 0, 0)


def own_process() -> None:
    """A process of ours begins: what is loaded stays to its end, and cycles are looked for seldom."""
    gc.freeze()
    gc.set_threshold(ALLOCATIONS)


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the collector look at young values less often; a program that set a higher number, or 0, keeps it."""
    global _asking, _before  # the threshold is the process's: the last to leave sets it back
    with _lock:
        if not _asking:
            _before = gc.get_threshold()
            if 0 < _before[0] < ALLOCATIONS:
                gc.set_threshold(ALLOCATIONS, *_before[1:])
        _asking += 1
    try:
        yield
    finally:
        with _lock:
            _asking -= 1
            if not _asking:
                gc.set_threshold(*_before)
