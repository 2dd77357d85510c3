"""Rows on their way from rule to rule while a change is followed (030, incremental evaluation).

Rule: a few rows are tuples, many are a grid, and what became a grid stays one: making a tuple of every row on every
way between rules would take longer than the rules do. Both are ordered alike, the rank of a fact last.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

import numpy as np

from lace.datalog.engine.index import Codes, Mask
from lace.datalog.engine.overlap import among
from lace.datalog.engine.relation import distinct_rows
from lace.datalog.engine.runs import CodeRow
from lace.datalog.engine.tombstones import as_table
from lace.datalog.language.syntax import Predicate
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows as columns, at least one."""

    columns: Sequence[Codes]

    def __len__(self) -> int:
        return len(self.columns[0])

    def where(self, mask: Mask) -> Grid:
        """The rows that a mask keeps."""
        return Grid([column[mask] for column in self.columns])

    def rows(self) -> list[CodeRow]:
        """The rows one by one."""
        return list(zip(*(column.tolist() for column in self.columns), strict=True))


SomeRows = list[CodeRow] | Grid


def grid_of(rows: Collection[CodeRow], width: int) -> Grid:
    """Rows as a grid."""
    return Grid([np.ascontiguousarray(column) for column in as_table(rows, width).T])


def tuples(rows: SomeRows) -> list[CodeRow]:
    """Rows one by one, whatever they are kept as."""
    return rows.rows() if isinstance(rows, Grid) else rows


def rank_of(rows: SomeRows) -> int:
    """The rank of the first row."""
    return int(rows.columns[-1][0]) if isinstance(rows, Grid) else rows[0][-1]


def unranked(rows: SomeRows) -> SomeRows:
    """Rows without their last value."""
    if not isinstance(rows, Grid):
        return [row[:-1] for row in rows]
    return Grid(rows.columns[:-1]) if len(rows.columns) > 1 else [()] * len(rows)


def without(rows: SomeRows, found: SomeRows, arity: int, domain: int) -> SomeRows:
    """The rows whose facts, their first so many values, are not among those that were found."""
    if isinstance(rows, Grid) and isinstance(found, Grid) and arity:
        return rows.where(~among(rows.columns[:arity], found.columns[:arity], domain))
    known = {row[:arity] for row in tuples(found)}
    left = [row for row in tuples(rows) if row[:arity] not in known]
    return left if not left or not isinstance(rows, Grid) else grid_of(left, len(left[0]))


class Doubtful:
    """Facts that may have lost a derivation, by rank."""

    def __init__(self) -> None:
        self._ranks: dict[int, defaultdict[Predicate, list[SomeRows]]] = {}
        self.waiting: int = 0  # those that may stand here twice counted twice

    def __bool__(self) -> bool:
        return bool(self._ranks)

    def add(self, predicate: Predicate, facts: SomeRows) -> None:
        """More of them, each with its rank."""
        self.waiting += len(facts)
        for rank, part in _by_rank(facts):
            self._ranks.setdefault(rank, defaultdict(list))[predicate].append(part)

    def lowest(self) -> Iterator[tuple[Predicate, SomeRows]]:
        """Let go of those that have the lowest rank: each of them once."""
        decided = self._ranks.pop(min(self._ranks))
        for predicate, parts in decided.items():
            self.waiting -= sum(map(len, parts))
            yield predicate, _joined(parts, predicate.arity + 1)


def _by_rank(facts: SomeRows) -> Iterator[tuple[int, SomeRows]]:
    if not isinstance(facts, Grid):
        found: defaultdict[int, list[CodeRow]] = defaultdict(list)
        for row in facts:
            found[row[-1]].append(row)
        yield from found.items()
    elif len(facts):
        order = np.argsort(facts.columns[-1], kind="stable")
        columns = [column[order] for column in facts.columns]
        starts = np.flatnonzero(columns[-1][1:] != columns[-1][:-1]) + 1
        bounds = [0, *starts.tolist(), len(facts)]
        for low, high in pairwise(bounds):
            yield int(columns[-1][low]), Grid([column[low:high] for column in columns])


def _joined(parts: list[SomeRows], width: int) -> SomeRows:
    if len(parts) == 1:
        return parts[0]  # a rule gives each fact once
    if not any(isinstance(part, Grid) for part in parts):
        return list(dict.fromkeys(row for part in parts for row in tuples(part)))
    return merged([part if isinstance(part, Grid) else grid_of(part, width) for part in parts])


def merged(grids: list[Grid]) -> Grid:
    """The rows of several grids, each once."""
    columns = zip(*(grid.columns for grid in grids), strict=True)
    return Grid(distinct_rows([np.concatenate(parts) for parts in columns]))
