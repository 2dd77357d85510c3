"""Python's cycle collector while very many small values live (exchanges, listings, jobs): the one place that sets it.

Rule: only how often it looks changes. It looks through young values every 700 allocations by default, which costs a
bulk exchange a sixth of its time and finds nothing: what is made has no cycles. In a program that uses Lace as a
library that is so only while it asks for it; a process of our own (a command, a worker) has it from its start.

Nothing else runs while it looks. A server has others who wait, so it looks more often and at less: at 300,000 values
it takes as many as 100 ms, at 10,000 one or two. Values that stayed are looked at with the next young ones, or five
times as many would wait for that and then be scanned in one long pause; the total scanned is the same.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 300_000
SERVING = (5_000, 1, 1_500)  # young values, those that stayed once, and all of them once in fifteen million

_lock = threading.Lock()
_asking = 0
_before: tuple[int, int, int] = (0, 0, 0)
_is_paced = False


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
            if 0 < _before[0] < ALLOCATIONS and not _is_paced:
                gc.set_threshold(ALLOCATIONS, *_before[1:])
        _asking += 1
    try:
        yield
    finally:
        with _lock:
            _asking -= 1
            if not _asking:
                gc.set_threshold(*_before)


@contextmanager
def collecting_briefly() -> Iterator[None]:
    """While a process serves: what was there before is never looked at again, the rest bit by bit."""
    global _is_paced
    with _lock:
        before = _is_paced, gc.get_threshold()
        _is_paced = True
        gc.freeze()
        gc.set_threshold(*SERVING)
    try:
        yield
    finally:
        with _lock:
            _is_paced = before[0]
            gc.set_threshold(*before[1])
