"""What an evaluation gives back: derived facts as rows, columns, Arrow or pandas.

Rule: reading a result changes nothing; texts are looked up only for what is read.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lace.datalog.demand import Demanded
from lace.datalog.engine.base import Base
from lace.datalog.engine.index import Codes
from lace.datalog.engine.relation import Relation
from lace.datalog.engine.runs import Run
from lace.datalog.engine.stats import Stats
from lace.datalog.engine.verdicts import distinct_codes
from lace.datalog.source import Row
from lace.datalog.syntax import Fact, Predicate
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
        self._kept: dict[Predicate, list[list[str]]] = {}
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
        """The same as texts; kept, so that they can be read after the source was closed."""
        found = self._kept.get(predicate)
        if found is None:
            found = self._kept[predicate] = [self._texts(column) for column in self.columns(predicate)]
        return found

    def _texts(self, column: Codes) -> list[str]:
        dictionary = self._base.dictionary
        codes = distinct_codes(column, dictionary.size)
        if len(codes) * 2 > len(column):
            return dictionary.texts(column)
        texts = np.array(dictionary.texts(codes), object)
        found: list[str] = texts[np.searchsorted(codes, column)].tolist()
        return found

    def rows(self, predicate: Predicate, *, ordered: bool = True) -> list[Row]:
        """The facts of a predicate, in text order unless that does not matter."""
        if not predicate.arity:
            return [()] * self.count(predicate)
        rows = list(zip(*self.text_columns(predicate), strict=True))
        return sorted(rows) if ordered else rows

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
        """The facts of a predicate as an Arrow table with dictionary columns."""
        with naming_extras():
            import pyarrow

        return pyarrow.table(self._named(predicate, names, pyarrow.array))

    def to_pandas(self, predicate: Predicate, names: Sequence[str] = ()) -> pd.DataFrame:
        """The facts of a predicate as a pandas frame."""
        with naming_extras():
            import pandas

        return pandas.DataFrame(self._named(predicate, names, list))

    def _named(self, predicate: Predicate, names: Sequence[str], make: Any) -> dict[str, Any]:
        labels = list(names) or [f"c{position}" for position in range(predicate.arity)]
        return {label: make(column) for label, column in zip(labels, self.text_columns(predicate), strict=True)}
