"""Relations that change a little at a time (030, incremental evaluation).

Rule: the large part stays as it is, in columns; what came and went since stands beside it in small dicts.

While a change is worked through, `gone` and `fresh` say what it took out and put in. Rules that look for what depended
on a row still see what is gone (`Sight.EITHER`); rules that derive the new state do not (`Sight.NEW`).

The table of a predicate that is derived by recursion has one more column, the rank of each fact: some derivation of it
rests, within its own stratum, on facts of lower rank only. A fact keeps its rank as long as it stands; one that is
taken out and found again gets a new one, so it may be in `gone` and in `fresh`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lace.datalog.engine.changes import CodedRows, as_rows
from lace.datalog.engine.index import Codes
from lace.datalog.engine.living import Living, WithRanks, place_of, places_of, run_of
from lace.datalog.engine.path import Path, Sight
from lace.datalog.engine.relation import empty_run
from lace.datalog.engine.runs import NO_SELECTION, CodeRow, ColumnRun, Run, Selection
from lace.datalog.plan import Version
from lace.datalog.syntax import Predicate

_BULK_ROWS = 64  # from here on rows are looked up as columns
_FLUSH_FROM = 16_384  # rows beside the columns that are always cheap enough
_FLUSH_PART = 16  # of the rows of the columns: what stands beside them is made a column for every larger change


class Table:
    """The facts of one predicate: a run of columns, rows added since, rows removed since."""

    def __init__(self, predicate: Predicate, main: Run, *, ranked: bool = False) -> None:
        self.predicate = predicate
        self.main = main
        self.ranked = ranked
        self.width = predicate.arity + ranked
        self._added: dict[CodeRow, int] = {}  # row → rank
        self._dead: dict[CodeRow, None] = {}  # rows of the columns that are no longer facts
        self.fresh: dict[CodeRow, int] = {}  # put in by the change that is worked through, with ranks
        self.gone: dict[CodeRow, None] = {}  # taken out by it
        self._paths: dict[tuple[Selection, tuple[int, ...]], Path] = {}
        self._parts: dict[Selection, _Part] = {}
        self._beside: dict[str, tuple[int, _Part]] = {}  # rows beside the columns, as columns
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

    def path(self, selection: Selection, positions: tuple[int, ...]) -> Path:
        """Rows that match a selection, by the codes at some positions."""
        found = self._paths.get((selection, positions))
        if found is None:
            found = self._paths[selection, positions] = Path(self, selection, positions)
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
        if not self.predicate.arity or not self.main.rows:
            return self.main.rows > 0
        return len(place_of(self.main.part_for(row), row, self.predicate.arity)) > 0

    def add(self, row: CodeRow, rank: int = 0) -> bool:
        """Put a row into the new state; whether it was not there."""
        if self.has(row):
            return False
        self.fresh[row] = rank
        full = self._full(row, rank)
        for path in self._paths.values():
            path.add(row, full)
        return True

    def put(self, facts: dict[CodeRow, int]) -> list[CodeRow]:
        """Put rows with their ranks into the new state; those that were not there, with ranks if these are kept."""
        open_ones = [row for row in facts if row not in self.fresh and row not in self.gone]
        standing = self._standing(open_ones)
        new: list[CodeRow] = []
        for row, rank in facts.items():
            if row in self.fresh or row in standing:
                continue
            self.fresh[row] = rank
            full = self._full(row, rank)
            new.append(full)
            for path in self._paths.values():
                path.add(row, full)
        return new

    def _standing(self, rows: list[CodeRow]) -> set[CodeRow]:
        """Those of some rows that were there when the change began."""
        beside = {row for row in rows if row in self._added}
        unknown = [row for row in rows if row not in beside and row not in self._dead]
        arity = self.predicate.arity
        if len(unknown) < _BULK_ROWS or not self.main.rows or not arity:
            return beside.union(row for row in unknown if self._in_main(row))
        places = places_of(self.main, unknown, arity)
        columns = [self.main.at(n, places).tolist() for n in range(arity)]
        return beside.union(zip(*columns, strict=True))

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

    def become(self, run: Run, came: Run, went: Run) -> None:
        """The new state was computed anew as a run; what that adds and removes is told by the caller."""
        assert not self.fresh
        assert not self.gone
        self._replaced = _Replaced(self.main, self._added, self._dead, came, went)
        self._settle_on(run)

    def _settle_on(self, run: Run) -> None:
        self.main = run if run.rows else empty_run(self.width, run.domain)
        self._added, self._dead, self._parts, self._beside = {}, {}, {}, {}
        for path in self._paths.values():
            path.reset()

    def commit(self) -> None:
        """End the change: what is gone leaves, what is fresh stays."""
        if self._replaced is None:
            for row in self.gone:
                if row in self.fresh and not self.ranked:
                    self._put_back(row)
                else:
                    self._drop(row)
            self._added.update(self.fresh)
        self._end()
        if len(self._added) + len(self._dead) > max(_FLUSH_FROM, self.main.rows // _FLUSH_PART):
            self._settle_on(self.current())

    def _put_back(self, row: CodeRow) -> None:
        """A row that went and came again stands where it stood."""
        if row not in self._added:
            del self.fresh[row]
            for path in self._paths.values():
                path.drop(row)

    def _drop(self, row: CodeRow) -> None:
        if row not in self._added:
            self._dead[row] = None
        else:
            del self._added[row]
            if row not in self.fresh:
                for path in self._paths.values():
                    path.drop(row)

    def roll_back(self) -> None:
        """End the change as if it had never begun."""
        if self._replaced is not None:
            before = self._replaced
            self._settle_on(before.main)
            self.main, self._added, self._dead = before.main, before.added, before.dead
            rows = self._added
        else:
            for row in self.fresh:
                for path in self._paths.values():
                    path.drop(row)
            rows = {row: rank for row, rank in self._added.items() if row in self.fresh}
        for row, rank in rows.items():
            for path in self._paths.values():
                path.add(row, self._full(row, rank))
        self._end()

    def _end(self) -> None:
        self.fresh, self.gone, self._replaced = {}, {}, None
        self._beside = {}
        for part in self._parts.values():
            part.end()
        for path in self._paths.values():
            path.end()

    # the new state as runs

    def scan(self) -> Iterator[CodeRow]:
        """Every row of the new state."""
        run = self.current()
        columns = [run.column(position).tolist() for position in range(self.predicate.arity)]
        return iter(zip(*columns, strict=True)) if columns else iter([()] * run.rows)

    def current(self) -> Run:
        """The new state as one run."""
        runs = [run for run in self.views(NO_SELECTION, Sight.NEW) if run.rows]
        if len(runs) == 1:
            return runs[0].compact()
        if not self.width:
            return ColumnRun([], self.rows, 0)
        columns = [_joined([run.column(n) for run in runs]) for n in range(self.width)]
        domain = max([self.main.domain, *(int(column.max(initial=0)) + 1 for column in columns)])
        return ColumnRun(columns, len(columns[0]), domain)

    def views(self, selection: Selection, sight: Sight) -> list[Run]:
        """The rows that match a selection, under a sight."""
        part = self._parts.get(selection)
        if part is None:
            part = self._parts[selection] = _Part(self.main.select(selection), self.predicate.arity)
        taken = self.gone if sight is Sight.NEW and self._replaced is None else {}
        found = [part.run(self._dead, taken)]
        if self._replaced is None:
            found.append(self._beside_run("added", self._added).run({}, taken).select(selection))
            found.append(self._beside_run("fresh", self.fresh).run({}, {}).select(selection))
        elif sight is Sight.EITHER:
            # No rule reads the ranks of what was computed anew and is going.
            found.append(self._ghost_run().select(selection))
        return found

    def _ghost_run(self) -> Run:
        assert self._replaced is not None
        went = self._replaced.went
        return WithRanks(went, self.predicate.arity, np.zeros(went.rows, np.uint32)) if self.ranked else went

    def _beside_run(self, name: str, rows: dict[CodeRow, int]) -> _Part:
        """Rows that do not stand in the columns."""
        known = self._beside.get(name)
        if known is None or known[0] != len(rows):
            full = [self._full(row, rank) for row, rank in rows.items()]
            domain = max(self.main.domain, max(map(max, rows), default=0) + 1) if self.predicate.arity else 0
            part = _Part(run_of(full, self.width, domain), self.predicate.arity)
            known = self._beside[name] = (len(rows), part)
        return known[1]

    def hides(self, row: CodeRow, sight: Sight) -> bool:
        """Whether a row of the columns is not to be seen."""
        return row in self._dead or (sight is Sight.NEW and self._replaced is None and row in self.gone)

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
        return self._replaced is not None and self._replaced.went.rows > 0


@dataclass(frozen=True, slots=True)
class _Replaced:
    """What stood before the facts were computed anew, and the difference."""

    main: Run
    added: dict[CodeRow, int]
    dead: dict[CodeRow, None]
    came: Run
    went: Run


def _joined(columns: list[Codes]) -> Codes:
    return np.concatenate([np.empty(0, np.uint32), *columns])


class _Part:
    """A view of the columns, and which of its rows are dead."""

    def __init__(self, view: Run, arity: int) -> None:
        self._view = view
        self._arity = arity
        self._dead_known = 0
        self._standing: Living | None = None
        self._gone_known = 0
        self._new: Living | None = None

    def run(self, dead: dict[CodeRow, None], gone: dict[CodeRow, None]) -> Run:
        """The rows that are neither dead nor gone; both only grow until the change ends."""
        if len(dead) > self._dead_known:
            self._standing = self._standing or Living(self._view, self._arity)
            self._standing.kill(list(islice(dead, self._dead_known, None)))
            self._dead_known = len(dead)
        if not gone:
            return self._standing or self._view
        if self._new is None:
            self._new = Living(self._view, self._arity, self._standing.dead if self._standing else None)
        self._new.kill(list(islice(gone, self._gone_known, None)))
        self._gone_known = len(gone)
        return self._new

    def end(self) -> None:
        """The change is over."""
        self._new, self._gone_known = None, 0


class TableSight:
    """A table as a relation that an executor reads, under one sight."""

    def __init__(self, table: Table, sight: Sight) -> None:
        self._table = table
        self._sight = sight

    def views(self, version: Version, selection: Selection) -> list[Run]:
        """The runs that match a selection."""
        assert version is Version.ALL
        return self._table.views(selection, self._sight)


class FixedSight:
    """The new state of a table that does not change while it is read: whole columns, found once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._views: dict[Selection, list[Run]] = {}

    def views(self, version: Version, selection: Selection) -> list[Run]:
        """The runs that match a selection."""
        assert version is Version.ALL
        found = self._views.get(selection)
        if found is None:
            standing = self._table.views(selection, Sight.NEW)
            found = self._views[selection] = [run.compact() for run in standing if run.rows]
        return found
