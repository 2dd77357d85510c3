"""What an explanation reads of derived facts, where all of them were derived beforehand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lace.datalog.binding import match
from lace.datalog.explain.known import Pattern, RowIndex, pattern_of
from lace.datalog.language.syntax import Atom, Predicate
from lace.datalog.source import Row


class AllDerived:
    """Derived facts of an executor that derived all of them."""

    def __init__(self, rows_of: Callable[[Predicate], Iterable[Row]]) -> None:
        self._rows_of = rows_of
        self._indexes: dict[Predicate, RowIndex] = {}

    def first(self, goal: Atom) -> Row | None:
        rows = self.rows(goal.predicate, pattern_of(goal.terms, {}))
        return next((row for row in rows if match(goal, row, {}) is not None), None)

    def rows(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        if predicate not in self._indexes:
            self._indexes[predicate] = RowIndex(self._rows_of(predicate))
        return self._indexes[predicate].find(pattern)

    def found(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        return self.rows(predicate, pattern)

    def glance(self, predicate: Predicate, pattern: Pattern) -> Row | None:
        return next(self.rows(predicate, pattern), None)

    def prepare(self, predicate: Predicate, patterns: Iterable[Pattern]) -> None:
        pass
