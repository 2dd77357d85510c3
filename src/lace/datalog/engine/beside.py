"""Rows that stand beside columns (030, incremental evaluation).

Rule: what was added since the columns were made is kept as columns too, and a change costs what it adds and drops, not
what stands beside them by now.
"""

from __future__ import annotations

import numpy as np

from lace.datalog.engine.living import Living, run_of
from lace.datalog.engine.runs import CodeRow, ColumnRun, Run


class KeptRows:
    """Rows that come and go by themselves and are read as a run."""

    def __init__(self, width: int, arity: int) -> None:
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
            left = Living(self._run, self._arity)
            left.kill(self._went)
            new = run_of(self._came.values(), self._width, 0)
            columns = [np.concatenate([left.column(n), new.column(n)]) for n in range(self._width)]
            domain = max((int(column.max(initial=0)) + 1 for column in columns[: self._arity]), default=0)
            self._run = ColumnRun(columns, left.rows + new.rows, domain)
            self._came, self._went = {}, []
        return self._run
