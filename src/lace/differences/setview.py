"""One side's set while it is compared with a peer's (070): what a host is asked for, and nothing of the wire.

Rule: a view belongs to one comparison and is dropped with it; it holds eight bytes for each id, and between comparisons
a link keeps the measure of its set only.
"""

from __future__ import annotations

import numpy as np

from lace.differences.ids import EMPTY, Ids
from lace.differences.idset import IdSet
from lace.differences.keyed import U64, DifferenceKey, keyed_ids
from lace.differences.scalarsums import measure_few
from lace.differences.sketch import Symbols, sketch
from lace.differences.sums import measure, nothing
from lace.thresholds import DifferenceThresholds

_DEFAULT = DifferenceThresholds()


def measured(ids: Ids, key: DifferenceKey, thresholds: DifferenceThresholds = _DEFAULT) -> U64:
    """The measure of some ids."""
    if len(ids) > thresholds.scalar_sums:
        return measure(keyed_ids(ids, key))
    return measure_few(ids, key) if len(ids) else nothing()


def measured_set(held: IdSet, key: DifferenceKey) -> U64:
    """The measure of a set, from its parts."""
    return held.linear(lambda ids: measured(ids, key))


class SetView:
    """A set under a key."""

    def __init__(self, held: IdSet, key: DifferenceKey, *, sums: bool = False) -> None:
        self._ids = held.ids()
        self._key = key
        keyed = keyed_ids(self._ids, key)
        self._short = keyed.short
        self.measured: U64 = measure(keyed) if sums else nothing()  # the set's measure, if it is wanted too

    def symbols(self, start: int, end: int) -> Symbols:
        """Symbols of the set's sketch."""
        return sketch(self._short, self._key, start, end)

    def named(self, short: U64) -> Ids | None:
        """The ids that some distinct short ids name; None unless each names exactly one."""
        if not len(short):
            return EMPTY
        at = np.searchsorted(short, self._short)
        at[at == len(short)] = 0
        hits = np.flatnonzero(short[at] == self._short)
        if len(hits) != len(short):
            return None
        return self._ids.take(hits)
