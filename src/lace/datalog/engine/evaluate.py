"""The embedded engine (030, evaluation): strata from the lowest to the highest, semi-naive, over columns.

Rule: the result is the set of facts that naive evaluation gives, and a limit is hit in the same place whatever the
order of rules, atoms or facts: rules run in canonical order and see what stood when their round began.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple
from weakref import ref

from lace.datalog.engine.base import Base, RowSource
from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.relation import Relation
from lace.datalog.engine.runs import Run
from lace.datalog.engine.stats import Stats
from lace.datalog.engine.vector import Readable, VectorExecutor
from lace.datalog.language.syntax import Constant, Predicate
from lace.datalog.language.terms import literal_terms
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.meter import Meter
from lace.datalog.planning.circles import MeetingCosts
from lace.datalog.planning.plan import RulePlan, Scan, Version
from lace.datalog.planning.planner import plan_rounds, plan_start
from lace.datalog.planning.ranking import Ranks, ranked_predicates
from lace.datalog.planning.stratify import Stratum
from lace.limits import EngineLimits
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

_REPLAN_GROWTH = 16  # a stratum that grew this much is planned again


class Cost(NamedTuple):
    """What computing a stratum took."""

    work: int  # rows touched
    facts: int  # that it came to


class LiveSizes:
    """Sizes as they are when a stratum is planned."""

    def __init__(self, executor: VectorExecutor, growing: frozenset[Predicate]) -> None:
        self._executor = executor
        self._growing = growing

    def rows(self, scan: Scan) -> float:
        rows = sum(view.rows for view in self._executor.views(scan))
        if scan.predicate in self._growing and scan.version is not Version.DELTA:
            return float(_REPLAN_GROWTH * (rows + 1))  # it will not stay as small as it is
        return float(rows)

    def distinct(self, scan: Scan, position: int) -> float:
        return float(sum(view.distinct(position) for view in self._executor.views(scan)))

    def crowd(self, scan: Scan, position: int) -> float:
        """How many rows have the code of a row picked at random."""
        return crowd_of(self._executor.views(scan), position)


def crowd_of(views: Sequence[Run], position: int) -> float:
    """How many rows of some runs have the code of a row picked at random."""
    return sum((view.rows / max(view.evenness(position), 1.0) for view in views), 0.0)


def _readable_of(evaluation: Evaluation) -> Callable[[Predicate], Readable]:
    """How an executor reads relations, without holding them: the two would hold each other in a circle."""
    held = ref(evaluation)

    def readable(predicate: Predicate) -> Readable:
        alive = held()
        assert alive is not None, "an executor is used by its own evaluation only"
        return alive._readable(predicate)

    return readable


class Evaluation:
    """One program over one snapshot."""

    def __init__(
        self,
        checked: CheckedProgram,
        base: Base,
        own: RowSource,
        meter: Meter,
        ready: Mapping[Predicate, Relation] | None = None,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        self.checked = checked
        self.limits: EngineLimits = meter.limits
        self.meter = meter
        self.stats: Stats = Stats()
        self._base = base
        self.dictionary: Dictionary = base.dictionary
        self._thresholds = thresholds
        started = perf_counter()
        self._relations = self._load(own)
        # derived relations that are whole; some may come from another evaluation
        self.completed: dict[Predicate, Relation] = dict(ready or {})
        self._relations.update(self.completed)
        self.domain: int = self.dictionary.size
        self.ranks: Ranks = ranked_predicates(checked.program)
        self._deferred = {predicate for predicate, _ in self.ranks}
        self._below: Mapping[Predicate, Readable] = {}
        self.costs: dict[tuple[Predicate, ...], Cost] = {}
        self.executor: VectorExecutor = VectorExecutor(
            _readable_of(self), self.dictionary, base.verdicts, meter, self.stats, thresholds.batch_rows
        )
        self.stats.load_seconds = perf_counter() - started

    def _load(self, own: RowSource) -> dict[Predicate, Relation]:
        """Base relations, with every value of facts and rules encoded, so that no code is new afterwards."""
        runs = {predicate: list(self._base.runs(predicate)) for predicate in sorted(self.checked.base)}
        for predicate in sorted(self.checked.base):
            rows = own.rows(predicate)
            if rows:
                runs[predicate].append(self._base.encode(predicate, rows, runs[predicate]))
        for rule in self.checked.program.rules:
            for term in (*rule.head.terms, *(term for literal in rule.body for term in literal_terms(literal))):
                if isinstance(term, Constant):
                    self.dictionary.code(term.value)
        self.dictionary.settle()
        size = self.dictionary.size
        return {predicate: Relation(predicate, size, found) for predicate, found in runs.items()}

    def relation(self, predicate: Predicate) -> Relation:
        """The facts of a predicate; a ranked one is worked out only if somebody asks for its facts."""
        if predicate in self._deferred:
            self._deferred.discard(predicate)
            self._complete(next(s for s in self.checked.strata if predicate in s.predicates))
        found = self._relations.get(predicate)
        if found is None:
            found = self._relations[predicate] = Relation(predicate, self.domain)
        return found

    def _readable(self, predicate: Predicate) -> Readable:
        return self._below.get(predicate) or self.relation(predicate)

    def run(self) -> None:
        """Complete every stratum (030-EVAL-02)."""
        self.meter.begin()
        for _ in self.steps():
            pass

    def steps(self) -> Iterator[None]:
        """Complete every stratum, one step at each `next`, so that two evaluations can take turns."""
        for stratum in self.checked.strata:
            if self._deferred.issuperset(stratum.predicates) or self.completed.keys() >= set(stratum.predicates):
                continue
            rounds, under_way = self._rounds(stratum), True
            while under_way:
                started = perf_counter()
                under_way = next(rounds, False)
                self.stats.seconds += perf_counter() - started
                yield
            self.completed.update({predicate: self.relation(predicate) for predicate in stratum.predicates})
        self.stats.memory_bytes = self.memory_bytes()
        self.stats.rows_touched = self.meter.rows

    def memory_bytes(self) -> int:
        """Bytes held by base facts, derived facts and their indexes."""
        derived = [self._relations[p] for p in self.checked.derived if p in self._relations]
        return self._base.nbytes() + sum(relation.nbytes() for relation in derived)

    def refresh(self, below: Mapping[Predicate, Readable], stratum: Stratum) -> None:
        """Recompute a stratum over what is given for the predicates below it."""
        ranked = {predicate for predicate, _ in self.ranks}
        self._below = below
        for predicate in ranked.union(stratum.predicates):
            dropped = self._relations.pop(predicate, None)
            if dropped is not None:
                self.meter.hold(-dropped.rows * row_bytes(predicate))
        self._deferred = ranked.difference(stratum.predicates)
        self.executor.forget_ranks()
        self._complete(stratum)

    def _complete(self, stratum: Stratum) -> None:
        for _ in self._rounds(stratum):
            pass

    def _rounds(self, stratum: Stratum) -> Iterator[bool]:
        """Complete a stratum; true after each round and each batch of rows that is not the last."""
        began = self.meter.rows
        own = [self.relation(predicate) for predicate in stratum.predicates]
        sizes = LiveSizes(self.executor, frozenset(stratum.predicates))
        meeting = MeetingCosts(self._thresholds.meeting_growth, sizes.crowd)
        start = plan_start(stratum, sizes, self.ranks, meeting)
        self.stats.plans += start
        rounds = yield from self._round(start, own, 0)
        plans: tuple[RulePlan, ...] = ()
        planned_at = 0
        while stratum.recursive and any(relation.runs(Version.DELTA) for relation in own):
            rows = sum(relation.rows for relation in own)
            if not plans or rows > planned_at * _REPLAN_GROWTH:
                plans, planned_at = plan_rounds(stratum, sizes, self.ranks, meeting), rows
                self.stats.plans += plans
            rounds = yield from self._round(plans, own, rounds)
        for relation in own:
            relation.finish()
        self.stats.rounds[", ".join(map(str, stratum.predicates))] = rounds
        self.costs[stratum.predicates] = Cost(self.meter.rows - began, sum(relation.rows for relation in own))

    def _round(self, plans: tuple[RulePlan, ...], own: list[Relation], rounds: int) -> Generator[bool, None, int]:
        """Apply plans to what stands now; what they find counts from the next round on."""
        for plan in plans:
            relation = self.relation(plan.root.predicate)
            started, before = perf_counter(), relation.found
            self.meter.enter(plan.rule)
            for columns, rows in self.executor.head_rows(plan.root):
                known = relation.found
                relation.offer(columns, rows)
                self._require_room(relation)
                self.meter.hold((relation.found - known) * row_bytes(relation.predicate))
                yield True
                self.meter.enter(plan.rule)  # another evaluation may have had its turn
            self.stats.add(plan.root, relation.found - before, perf_counter() - started)
        if not sum(relation.advance() for relation in own):
            return rounds  # 030-LIM-06: a round that adds nothing is not counted
        if rounds >= self.limits.max_stratum_iterations:
            name = self.meter.shown(min(relation.predicate for relation in own))
            raise self.meter.exceeded("max_stratum_iterations", self.limits.max_stratum_iterations, name)
        return rounds + 1

    def _require_room(self, relation: Relation) -> None:
        allowed = self.limits.max_derived_facts_per_predicate
        if relation.found > allowed:
            name = self.meter.shown(relation.predicate)
            raise self.meter.exceeded("max_derived_facts_per_predicate", allowed, name)


def row_bytes(predicate: Predicate) -> int:
    """What one derived fact holds: its columns, and its key among the facts seen."""
    return 4 * predicate.arity + 8
