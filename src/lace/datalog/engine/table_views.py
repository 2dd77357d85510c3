"""Tables as executors read them (030, incremental evaluation).

Rule: a sight says which rows of a table are seen; it holds none of its own.
"""

from __future__ import annotations

from lace.datalog.engine.row_lookup import Visibility
from lace.datalog.engine.runs import Run, Selection, merge_runs
from lace.datalog.engine.table import Table
from lace.datalog.planning.plan import Version

_JOINED_ROWS = 1 << 16  # of several runs: making them one takes less than asking each of them in every round


class TableView:
    """A table as a relation that an executor reads, under one visibility."""

    def __init__(self, table: Table, visibility: Visibility) -> None:
        self._table = table
        self._visibility = visibility

    def views(self, version: Version, selection: Selection) -> list[Run]:
        """The runs that match a selection."""
        return self._table.views(selection, Visibility.STOOD if version is Version.OLD else self._visibility)


class FixedTableView:
    """The new state of a table that does not change while it is read: whole columns, found once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._views: dict[Selection, list[Run]] = {}

    def views(self, version: Version, selection: Selection) -> list[Run]:
        """The runs that match a selection."""
        assert version is Version.ALL
        found = self._views.get(selection)
        if found is None:
            standing = self._table.views(selection, Visibility.NEW)
            found = [run.compact() for run in standing if run.rows]
            if len(found) > 1 and sum(run.rows for run in found) <= _JOINED_ROWS:
                found = [merge_runs(found, self._table.width, max(run.domain for run in found))]
            self._views[selection] = found
        return found
