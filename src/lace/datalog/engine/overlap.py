"""What two runs of rows do not share.

Rule: rows are compared as packed keys where they fit into one; nothing is made for rows that both have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lace.datalog.engine.index import Codes, Mask
from lace.datalog.engine.relation import PackedKeys, Packing, in_sorted
from lace.datalog.engine.runs import ColumnRun, Run

_BITMAP_BITS = 27


def difference(before: Run, after: Run, arity: int) -> tuple[Run, Run]:
    """The rows that came and the rows that went."""
    if not arity:
        more = after.rows - before.rows
        return ColumnRun([], max(0, more), 0), ColumnRun([], max(0, -more), 0)
    old, new = ([run.column(n) for n in range(arity)] for run in (before, after))
    domain = max(before.domain, after.domain)
    in_old, in_new = _shared(new, old, domain)
    return _part(new, ~in_old, domain), _part(old, ~in_new, domain)


def _part(columns: Sequence[Codes], wanted: Mask, domain: int) -> Run:
    places = np.flatnonzero(wanted)
    return ColumnRun([column[places] for column in columns], len(places), domain)


def _shared(left: Sequence[Codes], right: Sequence[Codes], domain: int) -> tuple[Mask, Mask]:
    """Which rows of each side the other side has."""
    packing = Packing(len(left), domain)
    if packing.total > 64:
        return among(left, right, domain), among(right, left, domain)
    ours, theirs = packing.pack(left), packing.pack(right)
    if packing.total <= _BITMAP_BITS:
        marks = np.zeros(1 << packing.total, np.uint8)
        marks[ours] = 1
        marks[theirs] |= 2  # no row stands twice on one side
        return marks[ours] == 3, marks[theirs] == 3
    return _in_sorted(ours, theirs), _in_sorted(theirs, ours)


def _in_sorted(keys: PackedKeys, others: PackedKeys) -> Mask:
    return in_sorted(np.sort(others), keys) if len(others) else np.zeros(len(keys), np.bool_)


def among(columns: Sequence[Codes], others: Sequence[Codes], domain: int) -> Mask:
    """Which rows stand among others."""
    packing = Packing(len(columns), domain)
    if packing.total <= 64:
        return _in_sorted(packing.pack(columns), packing.pack(others))
    run = ColumnRun(others, len(others[0]), domain)
    return run.index(tuple(range(len(columns)))).counts(columns) > 0
