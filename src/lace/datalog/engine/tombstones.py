"""Runs that lost rows (030, incremental evaluation).

Rule: a run and its indexes stay as they are; which of its rows are dead is kept beside it, and a lookup leaves those
out. So a change costs what it touches, not what stands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np

from lace.datalog.engine.index import Codes, Index, Mask, Rows
from lace.datalog.engine.meeting import AnyLevel
from lace.datalog.engine.relation import in_sorted
from lace.datalog.engine.runs import CodeRow, ColumnRun, Run, RunView, Selection
from lace.datalog.engine.sorting import sorted_unique
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds


class Tombstones:
    """Numbers of rows that left: a sorted list while they are few, marks once they are many."""

    def __init__(self, rows: int, marks_part: int = ENGINE_THRESHOLDS.marks_part) -> None:
        self._rows = rows
        self._marks_part = marks_part
        self._places: Rows = np.empty(0, np.int64)
        self._marks: Mask | None = None

    def copy(self) -> Tombstones:
        made = Tombstones(self._rows, self._marks_part)
        made._places, made._marks = self._places, None if self._marks is None else self._marks.copy()
        return made

    @property
    def is_marked(self) -> bool:
        """Whether there are marks, not a list."""
        return self._marks is not None

    def add(self, places: Rows) -> None:
        if self._marks is None:
            self._places = sorted_unique(np.concatenate([self._places, places]))
            if len(self._places) * self._marks_part > self._rows:
                self._marks = np.zeros(self._rows, np.bool_)
                self._marks[self._places] = True
        else:
            self._marks[places] = True

    def numbers(self) -> Rows:
        """All of them, ascending."""
        return self._places if self._marks is None else np.flatnonzero(self._marks)

    def among(self, rows: Rows) -> Mask:
        """Which of some rows left."""
        if self._marks is not None:
            return self._marks[rows]
        return in_sorted(self._places, rows) if len(self._places) else np.zeros(len(rows), np.bool_)

    @property
    def count(self) -> int:
        """How many."""
        return len(self._places) if self._marks is None else int(np.count_nonzero(self._marks))


class LiveRows(Run):
    """The rows of a run that are not dead. Row numbers of its indexes are those of the run: read them with `at`."""

    def __init__(
        self,
        inner: Run,
        arity: int,
        dead: Tombstones | None = None,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        super().__init__(inner.rows, inner.domain)
        self._inner = inner
        self._thresholds = thresholds
        self._arity = arity  # of the rows that are handed in; a run may have columns beyond it
        self.dead: Tombstones = Tombstones(inner.rows, thresholds.marks_part) if dead is None else dead.copy()
        self._compact: RunView | None = None
        self._dead_run: RunView | None = None
        self.rows: int = inner.rows
        self._recount()

    def _recount(self) -> None:
        self.rows = self._inner.rows - self.dead.count
        self._compact = self._dead_run = None

    def kill(self, rows: Collection[CodeRow]) -> None:
        """Rows leave, those that stand here at all."""
        if not rows or not self._inner.rows:
            return
        self.dead.add(places_of(self._inner, rows, self._arity, self._thresholds))
        self._recount()

    def column(self, position: int) -> Codes:
        return self.compact().column(position)

    def index(self, positions: tuple[int, ...]) -> Index:
        inner = self._inner.index(positions)
        return LiveIndex(inner, self, positions) if self.rows < self._inner.rows else inner

    @property
    def has_dead_rows(self) -> bool:  # type: ignore[override]  # of most runs it is known beforehand
        return self.rows < self._inner.rows

    def level(self, positions: tuple[int, ...]) -> AnyLevel:
        return self._inner.level(positions)

    def sought(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Index:
        return self.index(positions)  # a view that follows changes asks again and again

    def contains(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Mask:
        if self.rows == self._inner.rows:
            return self._inner.contains(positions, keys)
        index = self.index(positions)
        if index.most > 1:
            return index.counts(keys) > 0
        found = np.zeros(len(keys[0]), np.bool_)  # counting would order the dead rows too
        found[index.expand(keys)[0]] = True
        return found

    def at(self, position: int, rows: Rows) -> Codes:
        return self._inner.at(position, rows)

    def compact(self) -> Run:
        if self.rows == self._inner.rows:
            return self._inner
        if self._compact is None:
            alive = np.ones(self._inner.rows, np.bool_)
            alive[self.dead.numbers()] = False
            self._compact = RunView(self._inner, np.flatnonzero(alive))
        return self._compact

    def dead_rows(self) -> RunView:
        """Those that left."""
        if self._dead_run is None:
            self._dead_run = RunView(self._inner, self.dead.numbers())
        return self._dead_run

    def distinct(self, position: int) -> int:
        return self._inner.distinct(position)  # an estimate is enough for choosing an order

    def evenness(self, position: int) -> float:
        return self._inner.evenness(position)

    def select(self, selection: Selection) -> Run:
        return self.compact().select(selection)


class LiveIndex:
    """An index that leaves out dead rows."""

    def __init__(self, inner: Index, living: LiveRows, positions: tuple[int, ...]) -> None:
        self._inner = inner
        self._living = living
        self._positions = positions
        self.nbytes = 0
        self.most: int = inner.most

    def counts(self, keys: Sequence[Codes]) -> Rows:
        # Dead rows are few: counting them apart leaves the long index as it is.
        return self._inner.counts(keys) - self._living.dead_rows().index(self._positions).counts(keys)

    def expand(self, keys: Sequence[Codes]) -> tuple[Rows, Rows]:
        places, rows = self._inner.expand(keys)
        alive = ~self._living.dead.among(rows)
        return places[alive], rows[alive]

    def find(self, key: Sequence[int]) -> Sequence[int]:
        rows = np.array(self._inner.find(key), np.int64)
        found: list[int] = rows[~self._living.dead.among(rows)].tolist()
        return found

    def size(self, key: Sequence[int]) -> int:
        return self._inner.size(key)


def places_of(
    run: Run, rows: Collection[CodeRow], arity: int, thresholds: EngineThresholds = ENGINE_THRESHOLDS
) -> Rows:
    """Where rows stand in a run."""
    if not arity:
        return np.arange(run.rows)
    is_indexed = run.is_indexed(tuple(range(arity)))
    compared_from = thresholds.compared_rows_indexed if is_indexed else thresholds.compared_rows
    if len(rows) < compared_from:
        return np.array([place for row in rows for place in place_of(run, row, arity, thresholds)], np.int64)
    columns = list(as_table(rows, arity).T)
    return run.index(tuple(range(arity))).expand(columns)[1]


def place_of(run: Run, row: CodeRow, arity: int, thresholds: EngineThresholds = ENGINE_THRESHOLDS) -> Sequence[int]:
    """Where a row stands in a run, by way of the place that has the fewest rows to compare."""
    if not run.rows:
        return ()
    if run.is_indexed(tuple(range(arity))):
        return run.index(tuple(range(arity))).find(row)
    by = run.narrowest(arity)
    places = run.index((by,)).find((row[by],))
    if len(places) > thresholds.compared_rows:
        found = np.array(places)
        for n in range(arity):
            found = found[run.column(n)[found] == row[n]]
        return [int(place) for place in found]
    cells = run.cells(arity)
    return [place for place in places if all(cells[n][place] == row[n] for n in range(arity))]


def rows_at(run: Run, places: Rows, arity: int) -> list[CodeRow]:
    """The rows at some places of a run, by so many of their values."""
    columns = [run.at(n, places).tolist() for n in range(arity)]
    return list(zip(*columns, strict=True)) if columns else [()] * len(places)


def run_of(rows: Collection[CodeRow], width: int, domain: int) -> Run:
    """Rows as a run."""
    if not width:
        return ColumnRun([], len(rows), 0)
    table = as_table(rows, width)
    return ColumnRun([np.ascontiguousarray(column) for column in table.T], len(rows), domain)


def as_table(rows: Collection[CodeRow], width: int) -> Codes:
    """Rows as an array of so many columns; numpy would look at each row by itself."""
    return np.fromiter(chain.from_iterable(rows), np.uint32, len(rows) * width).reshape(len(rows), width)


class WithRanks(Run):
    """A run with one more column: the round in which each row was found. Indexes are those of the run."""

    def __init__(self, inner: Run, arity: int, ranks: Codes) -> None:
        super().__init__(inner.rows, inner.domain)
        self._inner = inner
        self._arity = arity
        self._ranks = ranks

    def column(self, position: int) -> Codes:
        return self._ranks if position == self._arity else self._inner.column(position)

    def index(self, positions: tuple[int, ...]) -> Index:
        return self._inner.index(positions)

    def level(self, positions: tuple[int, ...]) -> AnyLevel:
        return self._inner.level(positions)

    def sought(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Index:
        return self._inner.sought(positions, keys)

    def contains(self, positions: tuple[int, ...], keys: Sequence[Codes]) -> Mask:
        return self._inner.contains(positions, keys)

    def is_indexed(self, positions: tuple[int, ...]) -> bool:
        return self._inner.is_indexed(positions)

    def distinct(self, position: int) -> int:
        return self._inner.distinct(position)

    def evenness(self, position: int) -> float:
        return self._inner.evenness(position)

    def narrowest(self, arity: int) -> int:
        return self._inner.narrowest(arity)

    def own_bytes(self) -> int:
        return self._inner.nbytes() + self._ranks.nbytes
