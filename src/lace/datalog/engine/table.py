"""Relations that change a little at a time (030, incremental evaluation).

Rule: the large part stays as it is, in columns; what came and went since stands beside it in small dicts.

While a change is worked through, `gone` and `fresh` say what it took out and put in. Rules that look for what depended
on a row still see what is gone (`Visibility.EITHER`); rules that derive the new state do not (`Visibility.NEW`).

The table of a predicate that is derived by recursion has one more column, the rank of each fact: some derivation of it
rests, within its own stratum, on facts of lower rank only. A fact keeps its rank as long as it stands; one that is
taken out and found again gets a new one, so it may be in `gone` and in `fresh`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice

import numpy as np

from lace.datalog.engine.changes import CodedRows, as_rows, count_rows
from lace.datalog.engine.index import Codes
from lace.datalog.engine.overlap import difference
from lace.datalog.engine.relation import empty_run
from lace.datalog.engine.row_lookup import RowLookup, Visibility
from lace.datalog.engine.runs import NO_SELECTION, CodeRow, ColumnRun, Run, Selection
from lace.datalog.engine.tombstones import LiveRows, WithRanks, place_of, places_of, rows_at, run_of
from lace.datalog.language.syntax import Predicate
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds
from lace.values import dataclass


class AddedRows:
    """Rows added since the columns were made, read as a run: a change costs what it adds and drops."""

    def __init__(self, width: int, arity: int, thresholds: EngineThresholds = ENGINE_THRESHOLDS) -> None:
        self._thresholds = thresholds
        self._width = width
        self._arity = arity  # rows are dropped by so many of their values
        self._run: Run = run_of((), width, 0)
        self._came: dict[CodeRow, CodeRow] = {}  # row → all of its values; not yet in the run
        self._went: list[CodeRow] = []  # still in it

    def add(self, row: CodeRow, full: CodeRow) -> None:
        """A row that is not there comes."""
        self._came[row] = full

    def drop(self, row: CodeRow) -> None:
        """A row that is there goes."""
        if self._came.pop(row, None) is None:
            self._went.append(row)

    def run(self) -> Run:
        """The rows as they are now: the same run as long as none came or went."""
        if self._came or self._went:
            left = LiveRows(self._run, self._arity, thresholds=self._thresholds)
            left.kill(self._went)
            new = run_of(self._came.values(), self._width, 0)
            columns = [np.concatenate([left.column(n), new.column(n)]) for n in range(self._width)]
            domain = max((int(column.max(initial=0)) + 1 for column in columns[: self._arity]), default=0)
            self._run = ColumnRun(columns, left.rows + new.rows, domain)
            self._came, self._went = {}, []
        return self._run


class Table:
    """The facts of one predicate: a run of columns, rows added since, rows removed since."""

    def __init__(
        self,
        predicate: Predicate,
        main: Run,
        *,
        ranked: bool = False,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        self.predicate = predicate
        self.main: Run = main
        self.ranked = ranked
        self._thresholds = thresholds
        self.width: int = predicate.arity + ranked
        self._added: dict[CodeRow, int] = {}  # row → rank
        self._dead: dict[CodeRow, None] = {}  # rows of the columns that are no longer facts
        self.fresh: dict[CodeRow, int] = {}  # put in by the change that is worked through, with ranks
        self.gone: dict[CodeRow, None] = {}  # taken out by it
        self._lookups: dict[tuple[Selection, tuple[int, ...]], RowLookup] = {}
        self._parts: dict[Selection, _Part] = {}
        self._kept = AddedRows(self.width, predicate.arity, thresholds)  # what was added, as columns
        self._kept_part: _Part | None = None
        self._fresh_part: Run | None = None  # what is fresh, as columns
        self._replaced: _Replaced | None = None

    @property
    def rows(self) -> int:
        """How many facts in the new state."""
        standing = self.main.rows - len(self._dead) + len(self._added)
        if self._replaced is not None:
            return standing
        return standing - len(self.gone) + len(self.fresh)

    @property
    def is_changed(self) -> bool:
        """Whether the change that is worked through touched it."""
        return bool(self.fresh or self.gone or self._replaced)

    def lookup(self, selection: Selection, positions: tuple[int, ...]) -> RowLookup:
        """Rows that match a selection, by the codes at some positions."""
        found = self._lookups.get((selection, positions))
        if found is None:
            found = self._lookups[selection, positions] = RowLookup(self, selection, positions)
            for row, rank in (self._added | self.fresh).items():
                found.add(row, self._full(row, rank))
        return found

    def _full(self, row: CodeRow, rank: int) -> CodeRow:
        return (*row, rank) if self.ranked else row

    def has(self, row: CodeRow) -> bool:
        """Whether a row is in the new state."""
        if self._replaced is not None:
            return self._stood(row)
        return row in self.fresh or (row not in self.gone and self._stood(row))

    def _stood(self, row: CodeRow) -> bool:
        """Whether a row was there when the change began."""
        return row in self._added or (row not in self._dead and self._in_main(row))

    def _in_main(self, row: CodeRow) -> bool:
        if not self.predicate.arity:
            return self.main.rows > 0
        return len(place_of(self.main.part_for(row), row, self.predicate.arity, self._thresholds)) > 0

    def add(self, row: CodeRow, rank: int = 0) -> bool:
        """Put a row into the new state; whether it was not there."""
        if self.has(row):
            return False
        self.fresh[row] = rank
        self._enter(row, rank)
        return True

    def _enter(self, row: CodeRow, rank: int) -> CodeRow:
        """Let a row be found that stands beside the columns; all of its values."""
        full = self._full(row, rank)
        for lookup in self._lookups.values():
            lookup.add(row, full)
        return full

    def _leave(self, row: CodeRow) -> None:
        for lookup in self._lookups.values():
            lookup.drop(row)

    def put(self, facts: dict[CodeRow, int]) -> list[CodeRow]:
        """Put rows with their ranks into the new state; those that were not there, with ranks if these are kept."""
        open_ones = [row for row in facts if row not in self.fresh and row not in self.gone]
        standing = self._standing(open_ones)
        new: list[CodeRow] = []
        for row, rank in facts.items():
            if row in self.fresh or row in standing:
                continue
            self.fresh[row] = rank
            new.append(self._enter(row, rank))
        return new

    def _standing(self, rows: list[CodeRow]) -> set[CodeRow]:
        """Those of some rows that were there when the change began."""
        beside = {row for row in rows if row in self._added}
        unknown = [row for row in rows if row not in beside and row not in self._dead]
        arity = self.predicate.arity
        if len(unknown) < self._thresholds.bulk_rows:
            return beside.union(row for row in unknown if self._in_main(row))
        places = places_of(self.main, unknown, arity, self._thresholds)
        return beside.union(rows_at(self.main, places, arity))

    def remove(self, row: CodeRow) -> bool:
        """Take a row out of the new state; whether it was there."""
        if row in self.gone or not self._stood(row):
            return False
        self.gone[row] = None
        return True

    def take(self, rows: Collection[CodeRow]) -> None:
        """Take out rows that are known to be there."""
        self.gone.update(dict.fromkeys(rows))

    def changes(self) -> tuple[CodedRows, CodedRows]:
        """What the change adds and removes, all in all."""
        if self._replaced is not None:
            return self._replaced.came, self._replaced.went
        added = [row for row in self.fresh if row not in self.gone]
        return added, [row for row in self.gone if row not in self.fresh]

    def become(self, run: Run) -> None:
        """The new state was recomputed as a run, which is what is kept from now on."""
        assert not self.fresh
        assert not self.gone
        before = self.main, self._added, self._dead, self._kept
        self._replaced = _Replaced(*before, *difference(self.current(), run, self.predicate.arity))
        self._settle_on(run)

    def _settle_on(self, run: Run) -> None:
        self.main = run if run.rows else empty_run(self.width, run.domain)
        self._added, self._dead, self._parts, self._kept_part = {}, {}, {}, None
        self._kept = AddedRows(self.width, self.predicate.arity, self._thresholds)
        for lookup in self._lookups.values():
            lookup.reset()

    def commit(self) -> None:
        """End the change: what is gone leaves, what is fresh stays."""
        if self._replaced is None:
            for row in self.gone:
                if row in self.fresh and not self.ranked:
                    self._put_back(row)
                else:
                    self._drop(row)
            for row, rank in self.fresh.items():
                if row not in self._added:
                    self._kept.add(row, self._full(row, rank))
            self._added.update(self.fresh)
        self._end()
        if len(self._added) + len(self._dead) > max(
            self._thresholds.flush_rows, self.main.rows // self._thresholds.flush_part
        ):
            self._settle_on(self.current())

    def _put_back(self, row: CodeRow) -> None:
        """A row that went and came again stands where it stood."""
        if row not in self._added:
            del self.fresh[row]
            self._leave(row)

    def _drop(self, row: CodeRow) -> None:
        if row not in self._added:
            self._dead[row] = None
        else:
            del self._added[row]
            self._kept.drop(row)
            if row not in self.fresh:
                self._leave(row)

    def roll_back(self) -> None:
        """End the change as if it had never begun."""
        if self._replaced is not None:
            before = self._replaced
            self._settle_on(before.main)
            self._added, self._dead, self._kept = before.added, before.dead, before.kept
            for row, rank in before.added.items():
                self._enter(row, rank)
        else:
            for row in self.fresh:
                self._leave(row)
            for row in self.fresh.keys() & self._added.keys():
                self._enter(row, self._added[row])
        self._end()

    def _end(self) -> None:
        self.fresh, self.gone, self._replaced = {}, {}, None
        self._fresh_part = None
        for part in (*self._parts.values(), *filter(None, [self._kept_part])):
            part.end()
        for lookup in self._lookups.values():
            lookup.end()

    def close(self) -> None:
        """Let go of the lookups, which know this table."""
        self._lookups = {}

    # the new state as runs

    def scan(self) -> Iterator[CodeRow]:
        """Every row of the new state."""
        return iter(as_rows(self.current(), self.predicate.arity))

    def current(self) -> Run:
        """The new state as one run."""
        runs = [run for run in self.views(NO_SELECTION, Visibility.NEW) if run.rows]
        if len(runs) == 1:
            return runs[0].compact()
        if not self.width:
            return ColumnRun([], self.rows, 0)
        columns = [_joined([run.column(n) for run in runs]) for n in range(self.width)]
        domain = max([self.main.domain, *(int(column.max(initial=0)) + 1 for column in columns)])
        return ColumnRun(columns, len(columns[0]), domain)

    def views(self, selection: Selection, visibility: Visibility) -> list[Run]:
        """The rows that match a selection, under a visibility."""
        part = self._parts.get(selection)
        if part is None:
            part = self._parts[selection] = _Part(self.main.select(selection), self.predicate.arity, self._thresholds)
        taken = self.gone if visibility is not Visibility.EITHER and self._replaced is None else {}
        found = [part.run(self._dead, taken)]
        if self._added:
            found.append(self._added_run().run({}, taken).select(selection))
        if self.fresh and (visibility is not Visibility.STOOD or not self.gone.keys().isdisjoint(self.fresh)):
            found.append(self._fresh_run().select(selection))
        if self.has_ghosts and visibility is Visibility.EITHER:
            # No rule reads the ranks of what was recomputed and is going.
            found.append(self._ghost_run().select(selection))
        return found

    def _ghost_run(self) -> Run:
        assert self._replaced is not None
        went = self._replaced.went
        if not isinstance(went, Run):
            went = run_of(went, self.predicate.arity, self._domain_of(went))
        return WithRanks(went, self.predicate.arity, np.zeros(went.rows, np.uint32)) if self.ranked else went

    def _added_run(self) -> _Part:
        run = self._kept.run()
        if self._kept_part is None or self._kept_part.view is not run:
            self._kept_part = _Part(run, self.predicate.arity, self._thresholds)
        return self._kept_part

    def _fresh_run(self) -> Run:
        if self._fresh_part is None or self._fresh_part.rows != len(self.fresh):
            full = [self._full(row, rank) for row, rank in self.fresh.items()]
            self._fresh_part = run_of(full, self.width, self._domain_of(self.fresh))
        return self._fresh_part

    def _domain_of(self, rows: Collection[CodeRow]) -> int:
        """No code of these rows is beyond it."""
        return max(self.main.domain, max(map(max, rows)) + 1) if self.predicate.arity else 0

    def hides(self, row: CodeRow, visibility: Visibility) -> bool:
        """Whether a row of the columns is not to be seen."""
        return row in self._dead or (
            visibility is not Visibility.EITHER and self._replaced is None and row in self.gone
        )

    def shows(self, row: CodeRow, visibility: Visibility) -> bool:
        """Whether a row beside the columns is visible; one that went and came again stood all the time."""
        if visibility is Visibility.EITHER:
            return True
        came = row in self.fresh
        return (row in self.gone) == came if visibility is Visibility.STOOD else came or row not in self.gone

    @property
    def hides_some(self) -> bool:
        """Whether some row of the columns may not be seen."""
        return bool(self._dead or self.gone)

    def ghosts(self) -> list[CodeRow]:
        """What is going and stands neither in the columns nor beside them any more."""
        return as_rows(self._replaced.went, self.predicate.arity) if self._replaced is not None else []

    @property
    def has_ghosts(self) -> bool:
        """Whether there is any."""
        return self._replaced is not None and count_rows(self._replaced.went) > 0


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What stood before the facts were recomputed, and the difference."""

    main: Run
    added: dict[CodeRow, int]
    dead: dict[CodeRow, None]
    kept: AddedRows
    came: CodedRows
    went: CodedRows


def _joined(columns: list[Codes]) -> Codes:
    return np.concatenate([np.empty(0, np.uint32), *columns])


class _Part:
    """A view of the columns, and which of its rows are dead."""

    def __init__(self, view: Run, arity: int, thresholds: EngineThresholds) -> None:
        self.view = view
        self._thresholds = thresholds
        self._arity = arity
        self._dead_known = 0
        self._standing: LiveRows | None = None
        self._gone_known = 0
        self._new: LiveRows | None = None

    def run(self, dead: dict[CodeRow, None], gone: dict[CodeRow, None]) -> Run:
        """The rows that are neither dead nor gone; both only grow until the change ends."""
        if len(dead) > self._dead_known:
            self._standing = self._standing or LiveRows(self.view, self._arity, thresholds=self._thresholds)
            self._standing.kill(list(islice(dead, self._dead_known, None)))
            self._dead_known = len(dead)
        if not gone:
            return self._standing or self.view
        if self._new is None:
            standing = self._standing.dead if self._standing else None
            self._new = LiveRows(self.view, self._arity, standing, self._thresholds)
        self._new.kill(list(islice(gone, self._gone_known, None)))
        self._gone_known = len(gone)
        return self._new

    def end(self) -> None:
        """The change is over."""
        self._new, self._gone_known = None, 0
