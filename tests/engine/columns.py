"""A column source in memory, coded the way a store codes: values numbered as they were first stored."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.source import MemorySource


class ArraySource(MemorySource):
    """Facts with their columns; relations of three and more places are also split by their second one."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        super().__init__(facts)
        self._texts: list[str] = []
        self._codes: dict[str, int] = {}
        self.read: list[str] = []  # what was asked for, in order
        for predicate in self.predicates():
            for row in self.iterate(predicate):
                for value in row:
                    if value not in self._codes:
                        self._codes[value] = len(self._texts)
                        self._texts.append(value)

    @property
    def code_count(self) -> int:
        return len(self._texts)

    def codes(self, texts: Sequence[str]) -> list[int]:
        return [self._codes.get(text, -1) for text in texts]

    def texts(self, codes: memoryview) -> list[str]:
        return [self._texts[code] for code in codes]

    def columns(self, predicate: Predicate) -> Sequence[memoryview]:
        self.read.append(f"columns {predicate}")
        return _buffers([[self._codes[value] for value in row] for row in self.iterate(predicate)], predicate.arity)

    def slices(self, predicate: Predicate, position: int) -> Mapping[int, Sequence[memoryview]] | None:
        if predicate.arity < 3 or position != 1:
            return None
        parts: dict[int, list[list[int]]] = {}
        for row in self.iterate(predicate):
            coded = [self._codes[value] for value in row]
            parts.setdefault(coded[1], []).append(coded)
        return {code: _buffers(rows, predicate.arity) for code, rows in parts.items()}


def _buffers(rows: list[list[int]], arity: int) -> list[memoryview]:
    return [memoryview(array("I", [row[n] for row in rows])) for n in range(arity)]
