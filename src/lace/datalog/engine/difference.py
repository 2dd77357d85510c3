"""What two runs of rows do not share.

Rule: rows are compared as packed keys where they fit into one; nothing is made for rows that both have.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lace.datalog.engine.index import Codes, Mask
from lace.datalog.engine.relation import Packing, in_sorted
from lace.datalog.engine.runs import ColumnRun, Run

_BITMAP_BITS = 27


def difference(before: Run, after: Run, arity: int) -> tuple[Run, Run]:
    """The rows that came and the rows that went."""
    if not arity:
        more = after.rows - before.rows
        return ColumnRun([], max(0, more), 0), ColumnRun([], max(0, -more), 0)
    old, new = ([run.column(n) for n in range(arity)] for run in (before, after))
    domain = max(before.domain, after.domain)
    return _part(new, ~_among(new, old, domain), domain), _part(old, ~_among(old, new, domain), domain)


def _part(columns: Sequence[Codes], wanted: Mask, domain: int) -> Run:
    places = np.flatnonzero(wanted)
    return ColumnRun([column[places] for column in columns], len(places), domain)


def _among(columns: Sequence[Codes], others: Sequence[Codes], domain: int) -> Mask:
    """Which rows are among others."""
    packing = Packing(len(columns), domain)
    if not len(others[0]):
        return np.zeros(len(columns[0]), np.bool_)
    if packing.total <= _BITMAP_BITS:
        marks = np.zeros(1 << packing.total, np.bool_)
        marks[packing.pack(others)] = True
        return marks[packing.pack(columns)]
    if packing.total <= 64:
        return in_sorted(np.sort(packing.pack(others)), packing.pack(columns))
    run = ColumnRun(others, len(others[0]), domain)
    return run.index(tuple(range(len(columns)))).counts(columns) > 0
