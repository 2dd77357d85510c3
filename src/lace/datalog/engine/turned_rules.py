"""Rules turned around (030, incremental evaluation): run from given rows instead of from whole relations.

Rule: a move gives the same rows whether it is run row by row or over columns, and counts nothing that depends on the
order of rows. A few rows are followed one by one; many, or few that lead to many, are taken as columns.

What a move gives ends with ranks where its stratum is recursive: those of the facts of the stratum that it read, and
the rank of the fact it asks about, if it asks about one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.engine.grids import Grid, SomeRows, grid_of, merged, tuples
from lace.datalog.engine.index import Codes
from lace.datalog.engine.relation import distinct_rows
from lace.datalog.engine.row_lookup import Visibility
from lace.datalog.engine.runs import CodeRow, ColumnRun, Run, Selection
from lace.datalog.engine.scalar import ScalarCompiler, ScalarRule, TooManyRows
from lace.datalog.engine.stats import Stats
from lace.datalog.engine.table import Table
from lace.datalog.engine.table_views import TableView
from lace.datalog.engine.tombstones import run_of
from lace.datalog.engine.vector import Readable, VectorExecutor
from lace.datalog.engine.verdicts import Verdicts
from lace.datalog.language.syntax import Atom, Predicate, Rule, Term, Variable
from lace.datalog.meter import STEP_ROWS, Meter
from lace.datalog.planning.names import MARK, PredicateNames
from lace.datalog.planning.plan import RulePlan, Version
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds
from lace.values import dataclass

CARRIED_ROWS = 32  # what a row costs on its way into columns, and out of them
_MOVE_ROWS = 8 * STEP_ROWS  # what it costs to run a rule over tables that change, whatever the rows
_HANDED_ROWS = 4  # what it costs where it comes as columns, and where it is left in them
Ranked = dict[CodeRow, int]  # facts of one predicate and their ranks


@dataclass(frozen=True, slots=True)
class TurnedRule:
    """A turned rule: the terms of its head, then ranks read, then the rank asked about."""

    origin: Rule
    plan: RulePlan
    visibility: Visibility
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
        # One above the highest that was read: along ranks no fact can support itself, not even through others.
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


class RuleRunner:
    """Runs moves over tables."""

    def __init__(
        self,
        table: Callable[[Predicate], Table],
        evaluation: Evaluation,
        verdicts: Verdicts,
        compiler: ScalarCompiler,
        meter: Meter,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        self._table = table
        self._dictionary: Dictionary = evaluation.dictionary
        self._meter = meter
        self._thresholds = thresholds
        self._compiler = compiler
        self._start = _Start()
        self._names = PredicateNames(evaluation.checked.program)
        self._starts: dict[int, Predicate] = {}  # by arity
        self._unranked: dict[Predicate, Predicate] = {}
        self.executors: dict[Visibility, VectorExecutor] = {
            visibility: VectorExecutor(
                self._reader(visibility), evaluation.dictionary, verdicts, meter, Stats(), thresholds.batch_rows
            )
            for visibility in Visibility
        }
        if evaluation.ranks:
            self.executors[Visibility.NEW].count_ranks_by(compiler.count_of)

    def _reader(self, visibility: Visibility) -> Callable[[Predicate], Readable]:
        def relation(predicate: Predicate) -> Readable:
            is_start = self._starts.get(predicate.arity) == predicate
            return self._start if is_start else TableView(self.table(predicate), visibility)

        return relation

    def close(self) -> None:
        """Let go of the executors, which read tables through this runner."""
        self.executors = {}

    def ranked_atom(self, atom: Atom, rank: Variable) -> Atom:
        """An atom of a recursive predicate, read with its rank."""
        predicate = self._names.made_for(atom.predicate, "ranked", atom.predicate.arity + 1)
        self._unranked[predicate] = atom.predicate
        return Atom(predicate, (*atom.terms, rank))

    def start_atom(self, terms: Sequence[Term]) -> Atom:
        """What a turned rule starts from."""
        predicate = self._starts.get(len(terms))
        if predicate is None:
            predicate = self._starts[len(terms)] = self._names.fresh(f"{MARK}start", len(terms))
        return Atom(predicate, tuple(terms))

    def table(self, predicate: Predicate) -> Table:
        """The table of a predicate, read with ranks or without."""
        return self._table(self._unranked.get(predicate, predicate))

    def carried(self, rows: list[CodeRow]) -> SomeRows:
        """Rows for several moves: as columns, if they are many."""
        if len(rows) <= self._thresholds.single_rows:
            return rows
        self._meter.touch(CARRIED_ROWS * len(rows))
        return grid_of(rows, len(rows[0])) if rows[0] else rows

    def below(self, move: TurnedRule, rows: SomeRows) -> SomeRows:
        """The facts that rows lead to through facts of lower rank, each with its rank."""
        few = self._one_by_one(move, rows, below=True)
        if few is not None:
            return [(*fact, rank) for fact, rank in few.items()]
        parts = list(self._as_columns(move, rows, below=True))
        if not parts:
            return []
        return parts[0] if len(parts) == 1 else merged(parts)

    def found(self, move: TurnedRule, rows: SomeRows) -> Ranked:
        """The facts that rows lead to, with the lowest rank that a derivation gives them."""
        facts = self._one_by_one(move, rows, below=False)
        if facts is not None:
            return facts
        facts = {}
        for part in self._as_columns(move, rows, below=False):
            self._meter.touch(CARRIED_ROWS * len(part))
            facts = lowest(facts, {row[:-1]: row[-1] for row in part.rows()})
        return facts

    def _one_by_one(self, move: TurnedRule, rows: SomeRows, *, below: bool) -> Ranked | None:
        """The same row by row; None where rows are many, or lead to many."""
        if not rows:
            return {}
        self._meter.enter(move.origin)
        if len(rows) > self._thresholds.single_rows:
            return None
        try:
            return self._followed(move, tuples(rows), below)
        except TooManyRows:
            return None

    def _followed(self, move: TurnedRule, rows: Sequence[CodeRow], below: bool) -> Ranked:
        found: dict[CodeRow, None] = {}
        self._compiler.left = self._thresholds.single_rows_reached
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

    def _as_columns(self, move: TurnedRule, rows: SomeRows, *, below: bool) -> Iterator[Grid]:
        each = _HANDED_ROWS if isinstance(rows, Grid) else CARRIED_ROWS
        self._meter.touch(_MOVE_ROWS + each * len(rows))
        domain = self._dictionary.size
        if isinstance(rows, Grid):
            self._start.run = ColumnRun(rows.columns, len(rows), domain)
        else:
            self._start.run = run_of(rows, len(rows[0]), domain)
        for columns, count in self.executors[move.visibility].head_rows(move.plan.root):
            terms, ranks = move.settle(columns, count, below=below)
            self._meter.touch(_HANDED_ROWS * len(ranks))
            yield Grid([*terms, ranks])


def lowest(facts: Ranked, more: Ranked) -> Ranked:
    """Facts of both, each with the lower of its ranks; the first is changed."""
    for fact, rank in more.items():
        if rank <= facts.get(fact, rank):
            facts[fact] = rank
    return facts
