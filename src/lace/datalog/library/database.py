"""Facts in memory, encoded once and asked many times: `lace.datalog.Database`.

Rule: a database never changes; evaluations of any program read the same columns and keep the same indexes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import itemgetter
from typing import Any

from lace.datalog.engine.base import Base
from lace.datalog.engine.encoded import EncodedFacts
from lace.datalog.language.lineparser import PREDICATE_NAME
from lace.datalog.language.syntax import Predicate
from lace.datalog.library.facttexts import fact_text
from lace.datalog.source import Row
from lace.errors import EvaluationStopped, InvalidInput, naming_extras
from lace.limits import EngineLimits
from lace.notation.stopping import Interrupt

_DEFAULT_LIMITS = EngineLimits()
Relation = Iterable[Sequence[object]] | Any  # rows, or a table of Arrow, polars or pandas
_LOOKED_UP_S = 0.02  # how often a caller that waits for a database checks whether to stop
_ROW_ADVICE = "give rows as tuples, such as {'Edge': [('a', 'b')]}, or a table of Arrow, polars or pandas"


class Database:
    """Relations by name, encoded when it is made.

    A relation is rows (any iterable of tuples), or a table: whatever has `__arrow_c_stream__`, as tables of pyarrow and
    frames of polars and pandas have. Values that are not text become text as `lace.datalog.fact_text` says.

    >>> db = Database({"Edge": [("a", "b"), ("b", "c")], "Weight": [("a", 7)]})
    >>> db
    <Database Edge/2: 2, Weight/2: 1>
    >>> db.rows("Weight")
    [('a', '7')]
    """

    def __init__(
        self, relations: Mapping[str, Relation] | None = None, *, limits: EngineLimits = _DEFAULT_LIMITS
    ) -> None:
        self.limits = limits
        given = {name: _columns_of(name, relation) for name, relation in (relations or {}).items()}
        columns = {Predicate(name, len(found)): found for name, found in given.items() if found is not None}
        for predicate in columns:
            if predicate.arity > limits.max_tuple_arity:
                raise InvalidInput(
                    f"{predicate} has {predicate.arity} columns; facts have up to {limits.max_tuple_arity}",
                    rule="arity",
                )
        self._facts = EncodedFacts({p: found for p, found in columns.items() if p.arity}, limits)
        for predicate in columns:
            if not predicate.arity:
                self._facts.hold(predicate)
        self._base = Base(self._facts, limits)
        self._lock = threading.Lock()  # evaluations add codes of their own constants, one after the other
        self.empty = tuple(name for name, found in given.items() if found is None)  # relations without a row

    @property
    def relations(self) -> tuple[Predicate, ...]:
        """What it holds, sorted."""
        return tuple(sorted(self._facts.predicates()))

    def count(self, name: str) -> int:
        """How many facts a relation has."""
        return sum(self._facts.count(predicate) for predicate in self.relations if predicate.name == name)

    def rows(self, name: str) -> list[Row]:
        """The facts of a relation, sorted."""
        return sorted(row for p in self.relations if p.name == name for row in self._facts.iterate(p))

    def __repr__(self) -> str:
        return f"<Database {', '.join(f'{p}: {self._facts.count(p):,}' for p in self.relations) or 'without facts'}>"

    @contextmanager
    def entered(self, interrupt: Interrupt) -> Iterator[Base]:
        """The encoded facts, for one evaluation; another one waits until it is over, or is told to stop."""
        while not self._lock.acquire(timeout=_LOOKED_UP_S):
            if interrupt():
                raise EvaluationStopped("stopped while another evaluation read this database")
        try:
            yield self._base
        finally:
            self._lock.release()


def _columns_of(name: str, relation: Relation) -> list[list[str]] | None:
    """The columns of a relation as texts; None where it has no row that would tell how many columns there are."""
    if not PREDICATE_NAME.fullmatch(name):
        raise InvalidInput(f"{name!r} is not a predicate name: it starts with a capital letter", rule="predicate")
    if hasattr(relation, "__arrow_c_stream__") or hasattr(relation, "to_arrow") or hasattr(relation, "column_names"):
        return _columns_of_table(name, relation)
    if isinstance(relation, str | bytes | Mapping) or not isinstance(relation, Iterable):
        raise InvalidInput(f"{name} is given a {type(relation).__name__}: {_ROW_ADVICE}", rule="relation")
    rows = list(relation)
    if not rows:
        return None
    arity = len(rows[0]) if isinstance(rows[0], Sequence) else 0
    if not all(type(row) is tuple and len(row) == arity for row in rows):
        _require_rows(name, rows)
    return [
        [value if type(value) is str else fact_text(value) for value in map(itemgetter(n), rows)] for n in range(arity)
    ]


def _require_rows(name: str, rows: Sequence[Any]) -> None:
    """Refuse what is not a row, and rows of another length than the first."""
    for number, row in enumerate(rows):
        if isinstance(row, str | bytes) or not isinstance(row, Sequence):
            raise InvalidInput(f"row {number} of {name} is {row!r}: {_ROW_ADVICE}", rule="relation")
        if len(row) != len(rows[0]):
            raise InvalidInput(f"row {number} of {name} has {len(row)} values, the first {len(rows[0])}", rule="arity")


def _columns_of_table(name: str, table: Any) -> list[list[str]]:
    with naming_extras():
        import pyarrow

    found = pyarrow.table(table)
    columns: list[list[str]] = []
    for label, column in zip(found.column_names, found.columns, strict=True):
        if column.null_count:
            raise InvalidInput(
                f"column {label!r} of {name} has {column.null_count} nulls: a fact has a value in each place",
                rule="fact-value",
            )
        values = column.to_pylist()
        is_text = pyarrow.types.is_string(column.type) or pyarrow.types.is_large_string(column.type)
        columns.append(values if is_text else list(map(fact_text, values)))
    return columns
