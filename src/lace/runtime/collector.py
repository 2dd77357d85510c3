"""Python's cycle collector while millions of small values live (exchanges, listings).

Rule: only how often it looks changes, and only for a while. It looks through all young values every 700 allocations by
default, which costs a bulk exchange a sixth of its time and finds nothing: what an exchange makes has no cycles.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

ALLOCATIONS = 100_000


@contextmanager
def seldom_collecting() -> Iterator[None]:
    """Let the collector look at young values less often; a program that set a higher number, or 0, keeps it."""
    before = gc.get_threshold()
    if 0 < before[0] < ALLOCATIONS:
        gc.set_threshold(ALLOCATIONS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
