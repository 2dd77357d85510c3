"""Rules turned around (030, incremental evaluation): run from given rows instead of from whole relations.

Rule: a move gives the same rows whether it is run row by row or over columns, and counts nothing that depends on the
order of rows. A few rows are followed one by one; many, or few that lead to many, are taken as columns.

What a move gives ends with ranks where its stratum is recursive: those of the facts of the stratum that it read, and
the rank of the fact it asks about, if it asks about one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.engine.index import Codes
from lace.datalog.engine.living import run_of
from lace.datalog.engine.path import Sight
from lace.datalog.engine.relation import distinct_rows
from lace.datalog.engine.runs import CodeRow, Run, Selection
from lace.datalog.engine.scalar import ScalarCompiler, ScalarRule, TooManyRows
from lace.datalog.engine.sights import TableSight
from lace.datalog.engine.stats import Stats
from lace.datalog.engine.table import Table
from lace.datalog.engine.vector import Readable, VectorExecutor
from lace.datalog.engine.verdicts import Verdicts
from lace.datalog.meter import STEP_ROWS, Meter
from lace.datalog.plan import RulePlan, Version
from lace.datalog.syntax import Atom, Predicate, Rule, Term, Variable

_FEW = 12  # rows that are followed one by one
_FOLLOWED = 96  # rows that these may lead to, before columns are the better way
CARRIED_ROWS = 32  # what a row costs on its way into columns and out of them
Ranked = dict[CodeRow, int]  # facts of one predicate and their ranks
START = "?start"
_RANKED = "?ranked"


def ranked_atom(atom: Atom, rank: Variable) -> Atom:
    """An atom of a recursive predicate, read with its rank."""
    predicate = Predicate(f"{atom.predicate.name}{_RANKED}", atom.predicate.arity + 1)
    return Atom(predicate, (*atom.terms, rank))


def start_atom(terms: Sequence[Term]) -> Atom:
    """What a turned rule starts from."""
    return Atom(Predicate(START, len(terms)), tuple(terms))


@dataclass(frozen=True, slots=True)
class TurnedRule:
    """A turned rule: the terms of its head, then ranks read, then the rank asked about."""

    origin: Rule
    plan: RulePlan
    sight: Sight
    read_ranks: int
    asks_rank: bool
    scalar: ScalarRule

    @property
    def head(self) -> Predicate:
        """What it finds facts of."""
        return self.origin.head.predicate

    def rank_of(self, row: CodeRow, *, below: bool) -> int | None:
        """The rank that a derivation gives its fact; `below` that of the fact as it stands, or None if that is not
        higher than what the derivation read."""
        arity = self.head.arity
        reached = max(row[arity : arity + self.read_ranks], default=-1) + 1
        if not below or not self.asks_rank:
            return reached
        return row[-1] if reached <= row[-1] else None

    def settle(self, columns: Sequence[Codes], count: int, *, below: bool) -> tuple[Sequence[Codes], Codes]:
        """The same over columns: each fact and its rank once, those that cannot matter left out."""
        arity = self.head.arity
        terms, read = columns[:arity], columns[arity : arity + self.read_ranks]
        ranks = np.maximum.reduce([column + np.uint32(1) for column in read]) if read else np.zeros(count, np.uint32)
        if below and self.asks_rank:
            low = ranks <= columns[-1]
            terms, ranks = [column[low] for column in terms], columns[-1][low]
        if not terms:
            return terms, ranks[:1]
        *terms, ranks = distinct_rows([*terms, ranks])
        first = np.ones(len(ranks), np.bool_)  # of each fact; in ascending order of ranks
        if len(ranks):
            first[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in terms])
        return [column[first] for column in terms], ranks[first]


class _Start:
    """The rows that a move starts from."""

    def __init__(self) -> None:
        self.run: Run | None = None

    def views(self, version: Version, selection: Selection) -> list[Run]:
        assert self.run is not None
        return [self.run.select(selection)]


class Mover:
    """Runs moves over tables."""

    def __init__(
        self,
        table: Callable[[Predicate], Table],
        evaluation: Evaluation,
        verdicts: Verdicts,
        compiler: ScalarCompiler,
        meter: Meter,
    ) -> None:
        self._table = table
        self._dictionary: Dictionary = evaluation.dictionary
        self._meter = meter
        self._compiler = compiler
        self._start = _Start()
        self.executors = {
            sight: VectorExecutor(self._reader(sight), evaluation.dictionary, verdicts, meter, Stats())
            for sight in Sight
        }
        if evaluation.ranks:
            self.executors[Sight.NEW].count_ranks_by(compiler.count_of)

    def _reader(self, sight: Sight) -> Callable[[Predicate], Readable]:
        def relation(predicate: Predicate) -> Readable:
            return self._start if predicate.name == START else TableSight(self.table(predicate), sight)

        return relation

    def table(self, predicate: Predicate) -> Table:
        """The table of a predicate, read with ranks or without."""
        name, mark, _ = predicate.name.partition(_RANKED)
        return self._table(Predicate(name, predicate.arity - 1) if mark else predicate)

    def below(self, move: TurnedRule, rows: Sequence[CodeRow]) -> Ranked:
        """The facts that rows lead to by way of facts of lower rank than they stand at, with that rank."""
        return self._run(move, rows, below=True)

    def found(self, move: TurnedRule, rows: Sequence[CodeRow]) -> Ranked:
        """The facts that rows lead to, with the lowest rank that a derivation gives them."""
        return self._run(move, rows, below=False)

    def _run(self, move: TurnedRule, rows: Sequence[CodeRow], *, below: bool) -> Ranked:
        if not rows:
            return {}
        self._meter.enter(move.origin)
        if len(rows) <= _FEW:
            try:
                return self._one_by_one(move, rows, below)
            except TooManyRows:
                pass
        return self._as_columns(move, rows, below)

    def _one_by_one(self, move: TurnedRule, rows: Sequence[CodeRow], below: bool) -> Ranked:
        found: dict[CodeRow, None] = {}
        self._compiler.left = _FOLLOWED
        self._meter.follow(len(rows))
        for row in rows:
            move.scalar.run(row, found)
        facts: Ranked = {}
        for row in found:
            rank = move.rank_of(row, below=below)
            fact = row[: move.head.arity]
            if rank is not None and rank <= facts.get(fact, rank):
                facts[fact] = rank
        return facts

    def _as_columns(self, move: TurnedRule, rows: Sequence[CodeRow], below: bool) -> Ranked:
        self._meter.touch(2 * STEP_ROWS + CARRIED_ROWS * len(rows))
        self._start.run = run_of(rows, len(rows[0]), self._dictionary.size)
        facts: Ranked = {}
        for columns, count in self.executors[move.sight].head_rows(move.plan.root):
            terms, ranks = move.settle(columns, count, below=below)
            self._meter.touch(CARRIED_ROWS * len(ranks))
            listed = [column.tolist() for column in terms]
            fresh = zip(*listed, strict=True) if listed else [()] * len(ranks)
            found = dict(zip(fresh, ranks.tolist(), strict=True))
            facts = lowest(facts, found) if facts else found
        return facts


def lowest(facts: Ranked, more: Ranked) -> Ranked:
    """Facts of both, each with the lower of its ranks; the first is changed."""
    for fact, rank in more.items():
        if rank <= facts.get(fact, rank):
            facts[fact] = rank
    return facts
