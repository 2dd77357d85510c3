"""Several atoms that share a variable, joined value by value (030, evaluation): a join that cannot explode.

Rule: given a row, a variable takes the values that every atom has for it, found by way of the atom that has the fewest;
no more values are looked at than those.

A faster way beside the join of two relations at a time: triangles over 42,855 edges, 20,000 of them at one node, take
35 ms instead of ending at a limit after 4·10⁸ rows (`bench/joins.py`, section triangle; DuckDB takes some hundred times
as long). The planner chooses it for bodies that go round in a circle (`lace.datalog.planning.circles`), from
`EngineThresholds.meeting_growth` on; tests/engine/test_meeting.py compares the two.

With one variable after the other this is generic join, whose work is bounded by the largest answer that relations of
such sizes can have (Ngo, Porat, Ré, Rudra): no two atoms make rows that a third one only throws away. Columns are
searched as a trie: a `Level` is one more value below each beginning of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.index import Codes, Keys, Mask, Rows, is_dense, spread
from lace.datalog.engine.sorting import sorted_unique
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.datalog.engine.runs import Run

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)
Nodes = npt.NDArray[np.int64]  # beginnings of rows, numbered; -1 where there is none


class FirstLevel:
    """The distinct codes of one column; the number of a beginning is its code."""

    def __init__(self, column: Codes, domain: int) -> None:
        self._flags: Mask | None = None
        if is_dense(domain, len(column)):
            self._flags = np.zeros(domain + 1, np.bool_)  # one place more: for every later code
            self._flags[column] = True
            self._values: Codes = np.flatnonzero(self._flags).astype(np.uint32)
        else:
            self._values = sorted_unique(column)
        self._domain = domain
        self.nbytes: int = self._values.nbytes + (0 if self._flags is None else self._flags.nbytes)

    def ranges(self, nodes: Nodes) -> tuple[Rows, Rows]:
        """Where the values below each beginning start, and how many there are."""
        return np.zeros(len(nodes), np.int64), np.full(len(nodes), len(self._values), np.int64)

    def values(self, numbers: Rows) -> Codes:
        """The values at some places."""
        return self._values[numbers]

    def below(self, nodes: Nodes, values: Codes) -> Nodes:
        """The beginnings one value longer."""
        if self._flags is not None:
            known = self._flags[np.minimum(values, np.uint32(self._domain))]
        elif len(self._values):
            places = np.minimum(np.searchsorted(self._values, values), len(self._values) - 1)
            known = self._values[places] == values
        else:
            known = np.zeros(len(values), np.bool_)
        return np.where(known, values.astype(np.int64), -1)


class Level:
    """The distinct codes of a column below each beginning: sorted pairs of a beginning's number and a code."""

    def __init__(self, parents: Nodes, column: Codes, parent_domain: int) -> None:
        keys = parents.astype(np.uint64)
        keys <<= _HALF
        keys |= column
        self._keys: Keys = sorted_unique(keys)
        self._starts: npt.NDArray[np.int32] | None = None
        if is_dense(parent_domain, len(self._keys)):
            found = (self._keys >> _HALF).astype(np.int64)
            self._starts = np.zeros(parent_domain + 2, np.int32)  # one place more than ends, for every later code
            np.cumsum(np.bincount(found, minlength=parent_domain), out=self._starts[1:-1])
            self._starts[-1] = self._starts[-2]
        self._parents = parent_domain
        self.nbytes: int = self._keys.nbytes + (0 if self._starts is None else self._starts.nbytes)

    @property
    def size(self) -> int:
        """How many beginnings there are, this value among them."""
        return len(self._keys)

    def ranges(self, nodes: Nodes) -> tuple[Rows, Rows]:
        """Where the values below each beginning start, and how many there are."""
        if self._starts is not None:
            known = np.where((nodes < 0) | (nodes >= self._parents), self._parents, nodes)
            starts = self._starts[known].astype(np.int64)
            return starts, self._starts[known + 1] - starts
        lowest = np.maximum(nodes, 0).astype(np.uint64) << _HALF
        starts = np.searchsorted(self._keys, lowest)
        counts = np.searchsorted(self._keys, lowest | _LOW, "right") - starts
        return starts, np.where(nodes < 0, 0, counts)

    def values(self, numbers: Rows) -> Codes:
        """The values at some places."""
        return (self._keys[numbers] & _LOW).astype(np.uint32)

    def below(self, nodes: Nodes, values: Codes) -> Nodes:
        """The beginnings one value longer."""
        if not len(self._keys):
            return np.full(len(nodes), -1, np.int64)
        keys = np.maximum(nodes, 0).astype(np.uint64)
        keys <<= _HALF
        keys |= values
        places = np.searchsorted(self._keys, keys)
        places[places == len(self._keys)] = 0  # a key above all of them does not equal the first
        return np.where((self._keys[places] == keys) & (nodes >= 0), places, -1)


AnyLevel = FirstLevel | Level


def build_level(columns: Sequence[Codes], domain: int, before: Sequence[AnyLevel]) -> AnyLevel:
    """The level of the last of some columns, below those of the others."""
    if not before:
        return FirstLevel(columns[0], domain)
    nodes = descend(before, columns[:-1], len(columns[0]))
    above = before[-1]
    return Level(nodes, columns[-1], domain if isinstance(above, FirstLevel) else above.size)


def descend(levels: Sequence[AnyLevel], keys: Sequence[Codes], rows: int) -> Nodes:
    """The beginnings that some values name; the empty one is number 0."""
    nodes: Nodes = np.zeros(rows, np.int64)
    for level, key in zip(levels, keys, strict=True):
        nodes = level.below(nodes, key)
    return nodes


@dataclass(frozen=True, slots=True)
class Partner:
    """One run of an atom: its rows by the places of known variables, and the place of the unknown one."""

    view: Run
    places: tuple[int, ...]  # the sought one last
    keys: tuple[Codes, ...]  # the known values of each input row

    @property
    def _levels(self) -> list[AnyLevel]:
        return [self.view.level(self.places[: depth + 1]) for depth in range(len(self.places))]

    def opened(self, rows: int) -> _Opened:
        """Where the sought values of each input row stand."""
        *above, level = self._levels
        nodes = descend(above, self.keys, rows)
        return _Opened(self, level, nodes, *level.ranges(nodes))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A partner and, for each input row, the values that it offers."""

    partner: Partner
    level: AnyLevel
    nodes: Nodes
    starts: Rows
    counts: Rows

    def has(self, rows: Rows, values: Codes) -> Mask:
        """Which values an input row has here."""
        found: Mask = self.level.below(self.nodes[rows], values) >= 0
        view = self.partner.view
        if view.has_dead_rows:  # levels know nothing of rows that left
            kept = np.flatnonzero(found)
            keys = [key[rows[kept]] for key in self.partner.keys]
            found[kept] = view.contains(self.partner.places, [*keys, values[kept]])
        return found


Parts = Callable[[Rows, int], Iterator[tuple[int, int]]]  # ranges of rows whose counts add up to a bounded number


class Meeting:
    """The values of one variable that all atoms have, for some input rows."""

    def __init__(self, atoms: Sequence[Sequence[Partner]], rows: int, distinct: Sequence[bool]) -> None:
        """`distinct` says of each atom whether no two of its runs can have one value for one row."""
        self._opened = [[partner.opened(rows) for partner in runs] for runs in atoms]
        self._distinct = distinct
        offered = np.stack([_sum(runs, rows) for runs in self._opened])
        self._chosen = np.argmin(offered, axis=0)
        self.fewest: Rows = offered[self._chosen, np.arange(rows)]  # how many values are looked at for each row

    def found(self, mine: Rows, batch_rows: int, parts: Parts) -> Iterator[tuple[Rows, Codes]]:
        """(input row, value) for some of the input rows, in parts of bounded size."""
        mine = mine[self.fewest[mine] > 0]
        for low, high in parts(self.fewest[mine], batch_rows):
            part = mine[low:high]
            for number, runs in enumerate(self._opened):
                own = part[self._chosen[part] == number]
                if not len(own):
                    continue
                found, values = _offers(runs, own, distinct=self._distinct[number])
                for other, asked in enumerate(self._opened):
                    if other != number:
                        kept = np.flatnonzero(_any(asked, found, values))
                        if len(kept) < len(found):
                            found, values = found[kept], values[kept]
                if len(found):
                    yield found, values


def _sum(runs: Sequence[_Opened], rows: int) -> Rows:
    total: Rows = np.zeros(rows, np.int64)
    for run in runs:
        total += run.counts
    return total


def _any(runs: Sequence[_Opened], rows: Rows, values: Codes) -> Mask:
    if len(runs) == 1:
        return runs[0].has(rows, values)
    found: Mask = np.zeros(len(rows), np.bool_)
    for run in runs:
        left = np.flatnonzero(~found)
        found[left] = run.has(rows[left], values[left])
    return found


def _offers(runs: Sequence[_Opened], mine: Rows, *, distinct: bool) -> tuple[Rows, Codes]:
    """The values that an atom has for some input rows, each once for a row."""
    parts: list[tuple[Rows, Codes]] = []
    for run in runs:
        places, numbers = spread(run.starts[mine], run.counts[mine])
        found, values = mine[places], run.level.values(numbers)
        if run.partner.view.has_dead_rows:
            living = run.has(found, values)
            found, values = found[living], values[living]
        parts.append((found, values))
    if len(parts) == 1:
        return parts[0]
    found, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    if distinct:
        return found, values
    keys = sorted_unique((found.astype(np.uint64) << _HALF) | values)
    return (keys >> _HALF).astype(np.int64), (keys & _LOW).astype(np.uint32)
