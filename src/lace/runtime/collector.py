"""Python's cycle collector while very many small values live (exchanges, listings).

Rule: only how often it looks changes, and only while somebody asks for it. It looks through young values every 700
allocations by default, which costs a bulk exchange a sixth of its time and finds nothing: what is made has no cycles.
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
