"""Distinct values by sorting, and the order of rows.

Rule: like `numpy.unique` and `numpy.lexsort`, only sooner. The first imports numpy's masked arrays on its first call,
which alone costs more than most evaluations; the second compares, where codes can be dealt into 65,536 heaps (numpy
sorts 16-bit numbers so): a half to a tenth of the time from some ten thousand rows on.

Large arrays are sorted and searched in two halves at once where somebody gave a way to do two things at once
(`use_both`): in evaluations of a second and more most of the time is spent here, and numpy works without the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lace.thresholds import ENGINE_THRESHOLDS

Scalar = TypeVar("Scalar", bound="np.generic[Any]")


Work = Callable[[], object]
Both = Callable[[Work, Work], None]  # returns when both are done

_both: Both | None = None


def use_both(both: Both | None) -> None:
    """How to do two things at once in this process, if there is a core for it; None for one after the other.

    Not for a process that evaluates for several peers or charges them for the time of a thread: the other half is not
    counted there.
    """
    global _both
    _both = both


def sort(values: npt.NDArray[Any], halved_rows: int = ENGINE_THRESHOLDS.halved_rows) -> None:
    """Sort in place."""
    if _both is None or len(values) < halved_rows:
        values.sort()
        return
    middle = len(values) // 2
    _both(values[:middle].sort, values[middle:].sort)
    values.sort(kind="stable")  # finds the two ascending runs and merges them


def search(
    ordered: npt.NDArray[Any], keys: npt.NDArray[Any], halved_rows: int = ENGINE_THRESHOLDS.halved_rows
) -> npt.NDArray[np.int64]:
    """Where keys stand in an ascending array, or would stand: the first such place."""
    if _both is None or len(keys) < halved_rows:
        return np.searchsorted(ordered, keys)
    places = np.empty(len(keys), np.int64)

    def part(of: slice) -> None:
        places[of] = np.searchsorted(ordered, keys[of])

    middle = len(keys) // 2
    _both(lambda: part(slice(None, middle)), lambda: part(slice(middle, None)))
    return places


def sorted_unique(values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
    """Distinct values in ascending order."""
    if len(values) < 2:
        return values
    ordered = values.copy()
    sort(ordered)
    keep = np.empty(len(ordered), np.bool_)
    keep[0] = True
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def numbered(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
    """Distinct values in ascending order, and for each value its place among them."""
    distinct = sorted_unique(values)
    return distinct, search(distinct, values)


def order_of(columns: Sequence[npt.NDArray[np.uint32]]) -> npt.NDArray[np.int64]:
    """The stable order of rows by their columns, the first one first."""
    order: npt.NDArray[np.int64] | None = None
    for column in reversed(columns):
        order = _dealt(column, order, 0)
        if len(column) and int(column.max()) >= 1 << 16:
            order = _dealt(column, order, 16)
    return np.arange(len(columns[0])) if order is None else order


def _dealt(column: npt.NDArray[np.uint32], order: npt.NDArray[np.int64] | None, shift: int) -> npt.NDArray[np.int64]:
    """An order refined by one half of a column's codes."""
    half = (column >> np.uint32(shift)).astype(np.uint16)
    if order is None:
        return np.argsort(half, kind="stable")
    return order[np.argsort(half[order], kind="stable")]
