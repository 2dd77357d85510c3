"""What an evaluation gives back: derived facts as rows, columns, Arrow or pandas.

Rule: reading a result changes nothing; texts are looked up only for what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from lace.datalog.engine.base import Base
from lace.datalog.engine.index import Codes
from lace.datalog.engine.relation import Relation
from lace.datalog.engine.runs import Run
from lace.datalog.engine.stats import Stats
from lace.datalog.engine.texts import TextColumn, arrow_table, in_text_order, json_lines, text_column
from lace.datalog.engine.verdicts import distinct_codes
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.planning.demand import Demanded
from lace.datalog.source import Row
from lace.errors import LaceError, naming_extras

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lace.datalog.engine.evaluate import Evaluation


class Result:
    """The facts of every predicate of the program, base and derived."""

    def __init__(
        self, evaluation: Evaluation, base: Base, demanded: Demanded | None = None, derived: Collection[Predicate] = ()
    ) -> None:
        self._evaluation = evaluation
        self._derived = derived  # without goals: the predicates of the program as it was written
        self.demanded = demanded  # with goals: the program that was run for them
        self._base = base
        self._kept: dict[Predicate, list[TextColumn]] = {}
        self._answers: Mapping[Predicate, Predicate] = (
            demanded.answers if demanded else {}
        )  # with goals: the predicates that hold what was asked for

    @property
    def stats(self) -> Stats:
        """Rows and times per plan node, rounds, memory."""
        return self._evaluation.stats

    @property
    def derived(self) -> tuple[Predicate, ...]:
        """The predicates that rules derive, or those that goals asked for, sorted."""
        return tuple(sorted(self._answers or self._derived))

    def _relation(self, predicate: Predicate) -> Relation:
        if self._answers and predicate not in self._answers:
            raise LaceError(f"{predicate} was not asked for by a goal")
        return self._evaluation.relation(self._answers.get(predicate, predicate))

    @property
    def ranked(self) -> frozenset[Predicate]:
        """Predicates that were counted by rank, and so have no facts here unless somebody reads them."""
        return frozenset(predicate for predicate, _ in self._evaluation.ranks)

    def run_of(self, predicate: Predicate) -> Run:
        """The facts of a predicate of the program that was run, which need not be the one that was written."""
        return self._evaluation.relation(predicate).whole()

    def count(self, predicate: Predicate) -> int:
        """How many facts a predicate has."""
        return self._relation(predicate).rows

    def columns(self, predicate: Predicate) -> list[Codes]:
        """The facts of a predicate as columns of codes, rows aligned."""
        run = self._relation(predicate).whole()
        return [run.column(position) for position in range(predicate.arity)]

    def text_columns(self, predicate: Predicate) -> list[list[str]]:
        """The same as texts."""
        kept = self._kept.get(predicate)
        if kept is not None:
            return [column.whole() for column in kept]
        return [self._texts(column) for column in self.columns(predicate)]

    def _texts(self, column: Codes) -> list[str]:
        dictionary = self._base.dictionary
        codes = distinct_codes(column, dictionary.size)
        if len(codes) * 2 > len(column):
            return dictionary.texts(column)
        texts = np.array(dictionary.texts(codes), object)
        found: list[str] = texts[np.searchsorted(codes, column)].tolist()
        return found

    def keep(self, predicate: Predicate) -> list[TextColumn]:
        """The same, sorted, with each distinct text once; they can be read after the source was closed."""
        found = self._kept.get(predicate)
        if found is None:
            columns = [text_column(column, self._base.dictionary) for column in self.columns(predicate)]
            found = self._kept[predicate] = in_text_order(columns) if columns else []
        return found

    def forget_texts(self) -> None:
        """Drop what `keep` made."""
        self._kept.clear()

    def rows(self, predicate: Predicate, *, ordered: bool = True) -> list[Row]:
        """The facts of a predicate, in text order unless that does not matter."""
        if not predicate.arity:
            return [()] * self.count(predicate)
        if ordered:
            self.keep(predicate)
        return list(zip(*self.text_columns(predicate), strict=True))

    def rows_between(self, predicate: Predicate, start: int, end: int) -> list[Row]:
        """Some facts of a predicate, counted in text order."""
        if not predicate.arity:
            return self.rows(predicate)[start:end]
        return list(zip(*(column.part(start, end) for column in self.keep(predicate)), strict=True))

    def json_lines(
        self, predicate: Predicate, names: Sequence[str] = (), shown: Callable[[str], str] = str
    ) -> Iterator[str]:
        """The facts of a predicate in text order as JSON objects, one a line, in pages of some thousand lines."""
        if not predicate.arity:
            return iter(["{}\n"] * self.count(predicate))
        return json_lines(self._labels(predicate, names), self.keep(predicate), shown)

    def contains(self, fact: Fact) -> bool:
        """Whether a fact holds."""
        predicate, values = fact
        relation = self._relation(predicate)
        if not predicate.arity:
            return relation.rows > 0
        codes = [self._base.dictionary.find(value) for value in values]
        if min(codes) < 0 or not relation.rows:
            return False
        return len(relation.whole().index(tuple(range(predicate.arity))).find(codes)) > 0

    def to_arrow(self, predicate: Predicate, names: Sequence[str] = ()) -> pa.Table:
        """The facts of a predicate in text order as an Arrow table of strings."""
        return arrow_table(self._labels(predicate, names), self.keep(predicate))

    def to_pandas(self, predicate: Predicate, names: Sequence[str] = ()) -> pd.DataFrame:
        """The facts of a predicate in text order as a pandas frame."""
        with naming_extras():
            import pandas

        columns = [column.whole() for column in self.keep(predicate)]
        return pandas.DataFrame(dict(zip(self._labels(predicate, names), columns, strict=True)))

    def _labels(self, predicate: Predicate, names: Sequence[str]) -> list[str]:
        return list(names) or [f"c{position}" for position in range(predicate.arity)]
