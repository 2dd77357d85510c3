"""Base facts as columns (030, fact sources): loaded once, shared by every evaluation over one snapshot.

Rule: a snapshot stays as it was; an evaluation adds its own facts beside it, never into it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np

from lace.datalog.admission import admit_source
from lace.datalog.engine.dictionary import Dictionary, as_objects
from lace.datalog.engine.index import Codes, hashed
from lace.datalog.engine.relation import distinct_rows
from lace.datalog.engine.runs import ColumnRun, Run, SourceRun
from lace.datalog.engine.verdicts import Verdicts
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.source import ColumnSource, FactSource, Row
from lace.errors import InvalidLacegram, LimitExceeded
from lace.limits import EngineLimits

_DEFAULT_LIMITS = EngineLimits()


class CombinedSource:
    """Several sources read as one: a store snapshot, runtime facts, advertisement facts."""

    def __init__(self, parts: Sequence[FactSource]) -> None:
        self.parts = parts

    def predicates(self) -> Iterable[Predicate]:
        return dict.fromkeys(predicate for part in self.parts for predicate in part.predicates())

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return self.query(predicate)

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        holding = [part for part in self.parts if part.count(predicate)]
        if len(holding) == 1:
            return holding[0].query(predicate, *values)
        return iter(dict.fromkeys(row for part in holding for row in part.query(predicate, *values)))

    def count(self, predicate: Predicate) -> int:
        holding = [part for part in self.parts if part.count(predicate)]
        return holding[0].count(predicate) if len(holding) == 1 else sum(1 for _ in self.iterate(predicate))


class RowSource:
    """Facts as they were handed over. Repeats are found when rows are encoded, which is cheaper than hashing them.

    They are kept in arrays, which Python's cycle collector does not look through; in lists, every look at them would
    cost more than most programs do.
    """

    def __init__(self, facts: Iterable[Fact] = ()) -> None:
        given: defaultdict[Predicate, list[Row]] = defaultdict(list)
        last: Predicate | None = None
        rows: list[Row] = []
        for predicate, values in facts:
            if predicate is not last:  # facts of one predicate mostly come together, and share its object
                last, rows = predicate, given[predicate]
            rows.append(values)
        self._rows = {predicate: as_objects(rows) for predicate, rows in given.items()}

    def add(self, predicate: Predicate, rows: Iterable[Row]) -> None:
        """More facts of one predicate."""
        all_rows = [*self.rows(predicate), *rows]
        if all_rows:
            self._rows[predicate] = as_objects(all_rows)

    def predicates(self) -> Iterable[Predicate]:
        return self._rows.keys()

    def rows(self, predicate: Predicate) -> list[Row]:
        """What was given, repeats kept."""
        return self._rows[predicate].tolist() if predicate in self._rows else []

    def at_most(self, predicate: Predicate) -> int:
        """How many facts a predicate has if no two are equal."""
        return len(self._rows.get(predicate, ()))

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return iter(dict.fromkeys(self.rows(predicate)))

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        wanted = [(position, value) for position, value in enumerate(values) if value is not None]
        return (row for row in self.iterate(predicate) if all(row[n] == value for n, value in wanted))

    def count(self, predicate: Predicate) -> int:
        return len(set(self.rows(predicate)))


class _AtMost(CombinedSource):
    """Several sources whose counts are too high where facts repeat; enough to see that a limit is far."""

    def count(self, predicate: Predicate) -> int:
        return sum(p.at_most(predicate) if isinstance(p, RowSource) else p.count(predicate) for p in self.parts)


def admit(checked: CheckedProgram, parts: Sequence[FactSource], limits: EngineLimits) -> None:
    """Refuse sources that `admit_source` refuses; repeats are counted out only where they could matter."""
    try:
        admit_source(checked, _AtMost(parts), limits)
    except LimitExceeded:
        admit_source(checked, CombinedSource(parts), limits)


def predicates_given(parts: Iterable[FactSource]) -> frozenset[Predicate]:
    """The predicates that may have facts: a rewriting may give none of their names to anything else."""
    return frozenset(predicate for part in parts for predicate in part.predicates())


Facts = FactSource | Iterable[Fact]


class Base:
    """The base facts of a snapshot, encoded. Keep one to evaluate many programs over the same facts."""

    def __init__(self, source: Facts | Sequence[FactSource], limits: EngineLimits = _DEFAULT_LIMITS) -> None:
        parts = as_sources(source)
        self.parts = parts
        self.columns: ColumnSource | None = next((part for part in parts if isinstance(part, ColumnSource)), None)
        self._texts = [part for part in parts if part is not self.columns]
        self.dictionary: Dictionary = Dictionary(limits, self.columns)
        self.verdicts: Verdicts = Verdicts(self.dictionary)
        self._runs: dict[Predicate, list[Run]] = {}

    def runs(self, predicate: Predicate) -> list[Run]:
        """The facts of a predicate, as runs that share no row."""
        found = self._runs.get(predicate)
        if found is None:
            found = self._runs[predicate] = self._load(predicate)
        return found

    def _load(self, predicate: Predicate) -> list[Run]:
        runs: list[Run] = []
        if self.columns is not None and self.columns.count(predicate):
            runs.append(SourceRun(self.columns, predicate, self.dictionary.size))
        for part in self._texts:
            rows = part.rows(predicate) if isinstance(part, RowSource) else list(part.iterate(predicate))
            if rows:
                runs.append(self.encode(predicate, rows, runs))
        return runs

    def encode(self, predicate: Predicate, rows: Collection[Row], others: Sequence[Run] = ()) -> Run:
        """Rows of texts as a run, each once; rows that other runs have are left out."""
        arity = predicate.arity
        if set(map(len, rows)) - {arity}:
            raise InvalidLacegram(f"{predicate} is given another number of values", rule="arity")
        if not arity:
            return ColumnRun([], 1 if rows and not others else 0, 0)
        columns: Sequence[Codes] = [self.dictionary.intern(rows, position) for position in range(arity)]
        self.dictionary.settle()
        if not all_distinct(columns):
            columns = distinct_rows(columns)
        for run in others:
            new = run.index(tuple(range(arity))).counts(columns) == 0
            columns = [column[new] for column in columns]
        return ColumnRun(columns, len(columns[0]), self.dictionary.size)

    def nbytes(self) -> int:
        """Bytes held by everything loaded so far."""
        held = sum(run.nbytes() for runs in self._runs.values() for run in runs)
        return held + self.dictionary.memory_bytes + self.verdicts.nbytes


def all_distinct(columns: Sequence[Codes]) -> bool:
    """Whether rows are surely distinct; different hashes prove it."""
    keys = np.sort(hashed(columns))
    return not bool((keys[1:] == keys[:-1]).any())


def as_sources(source: Facts | Sequence[FactSource]) -> list[FactSource]:
    """Whatever a caller hands over as facts, as sources."""
    if not isinstance(source, Iterable):
        return [source]
    items = iter(source)
    first = next(items, None)
    if first is None or isinstance(first, Fact):
        given = () if first is None else (first,)
        return [RowSource(chain(given, items))]  # type: ignore[arg-type]  # one kind, by the type of `source`
    return [first, *items]  # type: ignore[list-item]
