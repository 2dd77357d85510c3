"""Relations that change a little at a time (030, incremental evaluation).

Rule: the large part stays as it is, in columns; what came and went since stands beside it in small dicts and sets.

While a change is worked through, a removed row is only marked as gone: rules that look for what depended on it still
see it (`Sight.EITHER`), rules that derive the new state do not (`Sight.NEW`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np

from lace.datalog.engine.relation import empty_run
from lace.datalog.engine.runs import ColumnRun, Run, Selection
from lace.datalog.syntax import Predicate

CodeRow = tuple[int, ...]
Key = tuple[int, ...]
_COMPARE_ROWS = 64  # from here on rows are compared as columns
_FLUSH_FROM = 16_384  # rows beside the columns that are always cheap enough


class Sight(Enum):
    """Which rows a rule sees while a change is worked through."""

    NEW = "new"
    EITHER = "either"  # the new rows and those that are going


class Table:
    """The facts of one predicate: a run of columns, rows added since, rows removed since."""

    def __init__(self, predicate: Predicate, main: Run) -> None:
        self.predicate = predicate
        self.main = main
        self._added: dict[CodeRow, None] = {}
        self._removed: set[CodeRow] = set()
        self.fresh: dict[CodeRow, None] = {}  # added by the change that is worked through
        self.gone: dict[CodeRow, None] = {}  # removed by it
        self._paths: dict[tuple[Selection, tuple[int, ...]], Path] = {}
        self._narrowest: dict[Run, int] = {}  # run → the place to look rows up by

    @property
    def rows(self) -> int:
        """How many facts in the new state."""
        return self.main.rows - len(self._removed) + len(self._added) - len(self.gone)

    def path(self, selection: Selection, positions: tuple[int, ...]) -> Path:
        """Rows that match a selection, by the codes at some positions."""
        found = self._paths.get((selection, positions))
        if found is None:
            found = self._paths[selection, positions] = Path(self, selection, positions)
            for row in self._added:
                found.add(row)
        return found

    def has(self, row: CodeRow) -> bool:
        """Whether a row is in the new state."""
        return row not in self.gone and self.holds(row)

    def holds(self, row: CodeRow) -> bool:
        """Whether a row is there, gone or not."""
        return row in self._added or (row not in self._removed and self._in_main(row))

    def _in_main(self, row: CodeRow) -> bool:
        if not self.predicate.arity or not self.main.rows:
            return self.main.rows > 0
        return len(self._places(self.main.part_for(row), row)) > 0

    def _places(self, run: Run, row: CodeRow) -> Sequence[int]:
        """Where a row stands in a run, by way of the place that has the fewest rows to compare."""
        arity = self.predicate.arity
        by = self._narrowest.get(run)
        if by is None:
            by = self._narrowest[run] = min(range(arity), key=run.most)
        places = run.index((by,)).find((row[by],)) if run.rows else ()
        if len(places) > _COMPARE_ROWS:
            found = np.array(places)
            for n in range(arity):
                found = found[run.column(n)[found] == row[n]]
            return [int(place) for place in found]
        cells = run.cells(arity)
        return [place for place in places if all(cells[n][place] == row[n] for n in range(arity))]

    def add(self, row: CodeRow) -> bool:
        """Put a row into the new state; whether it was not there."""
        if row in self.gone:
            del self.gone[row]
            return True
        if self.holds(row):
            return False
        self.fresh[row] = None
        if row in self._removed:
            self._removed.discard(row)
        else:
            self._added[row] = None
            for path in self._paths.values():
                path.add(row)
        return True

    def remove(self, row: CodeRow) -> bool:
        """Take a row out of the new state; whether it was there."""
        if row in self.gone or not self.holds(row):
            return False
        self.gone[row] = None
        return True

    def changes(self) -> tuple[list[CodeRow], list[CodeRow]]:
        """What the change adds and removes, all in all."""
        added = [row for row in self.fresh if row not in self.gone]
        return added, [row for row in self.gone if row not in self.fresh]

    def commit(self) -> None:
        """End the change: what is gone leaves."""
        for row in self.gone:
            self._drop(row)
        self.fresh, self.gone = {}, {}
        if len(self._added) + len(self._removed) > max(_FLUSH_FROM, self.main.rows // 4):
            self.flush()

    def roll_back(self) -> None:
        """End the change as if it had never begun."""
        for row in self.fresh:
            self._drop(row)
        self.fresh, self.gone = {}, {}

    def _drop(self, row: CodeRow) -> None:
        if row in self._added:
            del self._added[row]
            for path in self._paths.values():
                path.drop(row)
        else:
            self._removed.add(row)

    def scan(self) -> Iterator[CodeRow]:
        """Every row of the new state."""
        run = self.current()
        columns = [run.column(position).tolist() for position in range(self.predicate.arity)]
        return iter(zip(*columns, strict=True)) if columns else iter([()] * run.rows)

    def current(self) -> Run:
        """The new state as one run."""
        out = {*self._removed, *(row for row in self.gone if row not in self._added)}
        extra = [row for row in self._added if row not in self.gone]
        if not out and not extra:
            return self.main
        arity = self.predicate.arity
        if not arity:
            return ColumnRun([], self.rows, 0)
        keep = np.ones(self.main.rows, np.bool_)
        for row in out:
            keep[list(self._places(self.main, row))] = False
        new = np.array(extra, np.uint32).reshape(len(extra), arity)
        columns = [np.concatenate([self.main.column(n)[keep], new[:, n]]) for n in range(arity)]
        domain = max(self.main.domain, int(new.max(initial=0)) + 1)
        return ColumnRun(columns, len(columns[0]), domain)

    def flush(self) -> None:
        """Fold everything into columns."""
        self.replace(self.current())

    def replace(self, run: Run) -> None:
        """Become the rows of a run."""
        self.main = run if run.rows else empty_run(self.predicate.arity, run.domain)
        self._added, self._removed, self.fresh, self.gone, self._narrowest = {}, set(), {}, {}, {}
        for path in self._paths.values():
            path.reset()

    def is_removed(self, row: CodeRow, sight: Sight) -> bool:
        """Whether a row of the columns is not to be seen."""
        return row in self._removed or (sight is Sight.NEW and row in self.gone)

    @property
    def is_touched(self) -> bool:
        """Whether some row of the columns may not be seen."""
        return bool(self._removed or self.gone)


class Path:
    """One way into a table: rows that match a selection, by key."""

    def __init__(self, table: Table, selection: Selection, positions: tuple[int, ...]) -> None:
        self._table = table
        self._selection = selection
        self._positions = positions
        self._arity = table.predicate.arity
        self._view: Run | None = None
        self._extra: dict[Key, dict[CodeRow, None]] = {}

    def reset(self) -> None:
        """The table was rebuilt."""
        self._view = None
        self._extra = {}

    def prepare(self) -> None:
        """Build what the first look would build."""
        view = self._main()
        if self._positions and view.rows:
            view.index(self._positions)
            view.cells(self._arity)

    def _main(self) -> Run:
        if self._view is None:
            self._view = self._table.main.select(self._selection)
        return self._view

    def _matches(self, row: CodeRow) -> bool:
        constants, equal = self._selection
        for n, code in constants:
            if row[n] != code:
                return False
        return not equal or all(row[first] == row[second] for first, second in equal)

    def add(self, row: CodeRow) -> None:
        """A row came beside the columns."""
        if self._matches(row):
            self._extra.setdefault(tuple([row[n] for n in self._positions]), {})[row] = None

    def drop(self, row: CodeRow) -> None:
        """A row beside the columns left."""
        if self._matches(row):
            key = tuple([row[n] for n in self._positions])
            del self._extra[key][row]
            if not self._extra[key]:
                del self._extra[key]

    def find(self, key: Key, sight: Sight) -> list[CodeRow]:
        """The rows of a key."""
        rows = self._main_rows(key)
        if rows and self._table.is_touched:
            rows = [row for row in rows if not self._table.is_removed(row, sight)]
        extra = self._extra.get(key)
        if extra:
            gone = self._table.gone if sight is Sight.NEW else ()
            rows = rows + [row for row in extra if row not in gone]
        return rows

    def _main_rows(self, key: Key) -> list[CodeRow]:
        view = self._main()
        if not view.rows:
            return []
        if not self._positions:
            columns = [view.column(n).tolist() for n in range(self._arity)]
            return list(zip(*columns, strict=True)) if columns else [()]
        places = view.index(self._positions).find(key)
        if not places:
            return []
        cells = view.cells(self._arity)
        return [tuple([column[place] for column in cells]) for place in places]

    def count(self, key: Key, sight: Sight) -> int:
        """How many rows a key has."""
        if self._positions or self._table.is_touched:
            return len(self.find(key, sight))
        return self._main().rows + len(self._extra.get(key, ()))
