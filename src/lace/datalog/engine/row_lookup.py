"""One way into a table, row by row (030, incremental evaluation).

Rule: rows that match a selection, by key: those of the columns that are not hidden, those beside them, and those that
are going, if the caller looks for what depended on a row.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING

from lace.datalog.engine.runs import CodeRow, Run, Selection

if TYPE_CHECKING:
    from lace.datalog.engine.table import Table

Key = tuple[int, ...]


class Visibility(Enum):
    """Which rows a rule sees while a change is worked through."""

    NEW = "new"
    STOOD = "stood"  # the new rows but for those that came
    EITHER = "either"  # the new rows and those that are going


def _key_at(positions: tuple[int, ...]) -> Callable[[CodeRow], Key]:
    """How a row's values at some positions are read; asked for every row beside the columns."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda row: tuple([row[n] for n in positions])


class RowLookup:
    """Rows that match a selection, by key."""

    def __init__(self, table: Table, selection: Selection, positions: tuple[int, ...]) -> None:
        self._table = table
        self._selection = selection
        self._positions = positions
        self._key = _key_at(positions)
        self._width = table.width
        self._view: Run | None = None
        self.extra: dict[Key, dict[CodeRow, CodeRow]] = {}  # key → row → the same with its rank
        self._ghosts: dict[Key, list[CodeRow]] | None = None

    def reset(self) -> None:
        """The table was rebuilt."""
        self._view, self.extra, self._ghosts = None, {}, None

    def end(self) -> None:
        """The change is over."""
        self._ghosts = None

    def prepare(self) -> None:
        """Build what the first look would build."""
        view = self._main()
        if self._positions and view.rows:
            view.index(self._positions)
            view.cells(self._width)

    def _main(self) -> Run:
        if self._view is None:
            self._view = self._table.main.select(self._selection)
        return self._view

    def _matches(self, row: CodeRow) -> bool:
        constants, equal = self._selection
        for n, code in constants:
            if row[n] != code:
                return False
        for first, second in equal:  # noqa: SIM110  # asked of every row: `all` takes longer than both loops
            if row[first] != row[second]:
                return False
        return True

    def add(self, row: CodeRow, full: CodeRow) -> None:
        """A row came beside the columns."""
        if self._matches(row):
            self.extra.setdefault(self._key(row), {})[row] = full

    def drop(self, row: CodeRow) -> None:
        """A row beside the columns left."""
        if self._matches(row):
            key = self._key(row)
            del self.extra[key][row]
            if not self.extra[key]:
                del self.extra[key]

    def find(self, key: Key, visibility: Visibility) -> list[CodeRow]:
        """The rows of a key, with their ranks where the table has them."""
        table = self._table
        rows = self._main_rows(key)
        if table.hides_some:
            arity = table.predicate.arity
            rows = [row for row in rows if not table.hides(row[:arity], visibility)]
        extra = self.extra.get(key)
        if extra:
            rows = rows + [full for row, full in extra.items() if table.shows(row, visibility)]
        if visibility is Visibility.EITHER and table.has_ghosts:
            rows = rows + self._ghosts_of(key)
        return rows

    def _ghosts_of(self, key: Key) -> list[CodeRow]:
        if self._ghosts is None:
            self._ghosts = {}
            for row in self._table.ghosts():
                if self._matches(row):
                    self._ghosts.setdefault(self._key(row), []).append((*row, 0)[: self._width])
        return self._ghosts.get(key, [])

    def _main_rows(self, key: Key) -> list[CodeRow]:
        view = self._main()
        if not view.rows:
            return []
        if not self._positions:
            columns = [view.column(n).tolist() for n in range(self._width)]
            return list(zip(*columns, strict=True)) if columns else [()]
        places = view.index(self._positions).find(key)
        if not places:
            return []
        cells = view.cells(self._width)
        return [tuple([column[place] for column in cells]) for place in places]

    def size(self, key: Key) -> int:
        """How many rows a key has at most, without looking at each."""
        view = self._main()
        if not self._positions:
            return self._table.rows + len(self._table.gone)
        own = view.index(self._positions).size(key) if view.rows else 0
        return own + len(self.extra.get(key, ())) + (len(self._ghosts_of(key)) if self._table.has_ghosts else 0)

    def count(self, key: Key) -> int:
        """How many rows of the new state a key has."""
        if self._positions or self._table.hides_some or self.extra:
            return len(self.find(key, Visibility.NEW))
        return self._main().rows
