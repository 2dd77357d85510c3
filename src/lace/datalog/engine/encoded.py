"""Facts that were encoded once, as a column source that any number of evaluations read (030, fact sources).

Rule: a relation is given whole, once; afterwards neither codes nor columns change.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

import numpy as np

from lace.datalog.engine.base import all_distinct
from lace.datalog.engine.dictionary import as_objects, check_texts
from lace.datalog.engine.index import Codes
from lace.datalog.engine.relation import distinct_rows
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import Row, require_places
from lace.limits import EngineLimits


class EncodedFacts:
    """Relations as columns of codes."""

    def __init__(self, relations: Mapping[Predicate, Sequence[Sequence[str]]], limits: EngineLimits) -> None:
        """Relations by columns of texts."""
        numbers: defaultdict[str, int] = defaultdict(count().__next__)  # it numbers its own misses
        self._columns: dict[Predicate, list[Codes]] = {}
        self._rows: dict[Predicate, int] = {}
        for predicate, given in relations.items():
            columns = [_encoded(column, numbers) for column in given]
            if columns and len(columns[0]) and not all_distinct(columns):
                columns = [np.ascontiguousarray(column) for column in distinct_rows(columns)]
            self._columns[predicate] = columns
            self._rows[predicate] = len(columns[0]) if columns else 0
        numbers.default_factory = None
        self._numbers = numbers
        texts = list(numbers)
        check_texts(texts, limits)
        self._texts = as_objects(texts)

    def hold(self, predicate: Predicate) -> None:
        """A predicate without places holds."""
        self._columns[predicate], self._rows[predicate] = [], 1

    @property
    def code_count(self) -> int:
        """All codes are below this."""
        return len(self._texts)

    def predicates(self) -> Iterable[Predicate]:
        return self._columns.keys()

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return self.query(predicate)

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        require_places(predicate, values)
        if not predicate.arity:
            return iter([()] * self.count(predicate))
        columns = self._columns.get(predicate)
        if columns is None:
            return iter(())
        wanted = [(place, self._numbers.get(value, -1)) for place, value in enumerate(values) if value is not None]
        if any(code < 0 for _, code in wanted):
            return iter(())
        kept = np.ones(self._rows[predicate], np.bool_)
        for place, code in wanted:
            kept &= columns[place] == code
        return iter(list(zip(*(self._texts[column[kept]].tolist() for column in columns), strict=True)))

    def count(self, predicate: Predicate) -> int:
        return self._rows.get(predicate, 0)

    def codes(self, texts: Sequence[str]) -> list[int]:
        """The code of each text, -1 where there is none."""
        return [self._numbers.get(text, -1) for text in texts]

    def texts(self, codes: memoryview) -> list[str]:
        """The text of each code."""
        found: list[str] = self._texts[np.frombuffer(codes, np.uint32)].tolist()
        return found

    def columns(self, predicate: Predicate) -> Sequence[memoryview]:
        """One column per position, rows aligned."""
        return [column.data for column in self._columns.get(predicate, ())]

    def slices(self, predicate: Predicate, position: int) -> None:
        """Nothing is kept apart."""
        return


def _encoded(column: Sequence[str], numbers: defaultdict[str, int]) -> Codes:
    """The codes of a column, new ones where needed."""
    return np.fromiter(map(numbers.__getitem__, column), np.uint32, len(column))
