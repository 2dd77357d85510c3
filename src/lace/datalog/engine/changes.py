"""What a change did to derived facts.

Rule: texts are made for what is read. Recomputing may have moved half of all facts, and a caller that only asks how
many does not wait for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

import numpy as np

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.runs import CodeRow, Run
from lace.datalog.language.syntax import Predicate
from lace.datalog.source import Row
from lace.values import dataclass

_FEW_ROWS = 16  # more rows than this are turned into texts as columns
CodedRows = list[CodeRow] | Run


class LateRows(Mapping[Predicate, tuple[Row, ...]]):
    """Facts by predicate, sorted; each predicate's texts are made when they are first asked for."""

    def __init__(self, found: Mapping[Predicate, CodedRows], dictionary: Dictionary) -> None:
        self._found = {predicate: rows for predicate, rows in sorted(found.items()) if count_rows(rows)}
        self._dictionary = dictionary
        self._made: dict[Predicate, tuple[Row, ...]] = {}

    def __getitem__(self, predicate: Predicate) -> tuple[Row, ...]:
        if predicate not in self._made:
            self._made[predicate] = _texts(self._found[predicate], predicate.arity, self._dictionary)
        return self._made[predicate]

    def __iter__(self) -> Iterator[Predicate]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def count(self, predicate: Predicate) -> int:
        """How many facts of a predicate, without making them."""
        return count_rows(self._found.get(predicate, []))

    def __repr__(self) -> str:
        return repr(dict(self))


Rows = Mapping[Predicate, tuple[Row, ...]]


@dataclass(frozen=True, slots=True)
class RelationChanges:
    """What came and what went, by predicate."""

    added: Rows = field(default_factory=dict)
    removed: Rows = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def count_rows(rows: CodedRows) -> int:
    """How many rows."""
    return rows.rows if isinstance(rows, Run) else len(rows)


def as_rows(rows: CodedRows, arity: int) -> list[CodeRow]:
    """Rows as rows, whatever they are kept as."""
    if not isinstance(rows, Run):
        return rows
    columns = [rows.column(n).tolist() for n in range(arity)]
    return list(zip(*columns, strict=True)) if columns else [()] * rows.rows


def _texts(rows: CodedRows, arity: int, dictionary: Dictionary) -> tuple[Row, ...]:
    if not arity:
        return ((),) * count_rows(rows)
    if isinstance(rows, Run):
        columns = [dictionary.texts(rows.column(n)) for n in range(arity)]
    elif len(rows) < _FEW_ROWS:
        return tuple(sorted(tuple(map(dictionary.text, row)) for row in rows))
    else:
        columns = [dictionary.texts(np.array(column, np.uint32)) for column in zip(*rows, strict=True)]
    return tuple(sorted(zip(*columns, strict=True)))
