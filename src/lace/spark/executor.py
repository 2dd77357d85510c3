"""The Spark executor: any checked program over DataFrames, with the results of the embedded engine (030).

Rule: bottom-up, stratum by stratum. What one record decides is one pass over the wide table; what joins across
records is a loop on the driver with cut lineage; what is small is handed to the embedded engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lace.datalog import engine
from lace.datalog.plan import RulePlan, Scan, Version, chain
from lace.datalog.planner import plan_rounds, plan_start
from lace.datalog.ranking import ranked_predicates
from lace.datalog.source import MemorySource, Row
from lace.datalog.stratify import Stratum, read_atom, strata
from lace.datalog.syntax import Fact, Positive, Predicate, Program, Rule
from lace.datalog.unfold import unfold
from lace.datalog.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.errors import LimitExceeded
from lace.facts.predicates import RECORD_PREDICATES
from lace.limits import EngineLimits
from lace.spark.pivot import UNIT, star_relation
from lace.spark.plans import JoinSettings, PlanRunner, Sized, supported
from lace.spark.relations import Growing, collect_rows, cut_lineage, local_relation, relation_schema, union
from lace.spark.schemas import WIDE, require_columns
from lace.spark.stars import Constellation, Star, split

_ANY_ARITY = 1 << 16
_MAX_UNFOLDED_BODY = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where the executor changes its way of working; 0 for `small_rows` keeps everything on the cluster."""

    small_rows: int = 100_000
    joins: JoinSettings = field(default_factory=JoinSettings)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The derived relations: `frame` gives columns c0, c1, …; nothing is computed twice."""

    relations: Mapping[Predicate, Sized]
    round_seconds: tuple[float, ...] = ()  # of recursive strata on the cluster, in order

    def frame(self, predicate: Predicate) -> DataFrame:
        return self.relations[predicate].frame

    def count(self, predicate: Predicate) -> int:
        return self.relations[predicate].rows or 0

    def rows(self, predicate: Predicate) -> set[Row]:
        """A relation on the driver: for small results."""
        return set(collect_rows(self.frame(predicate), predicate.arity))


def evaluate(
    checked: CheckedProgram,
    relations: Mapping[Predicate, DataFrame],
    *,
    spark: SparkSession,
    records: DataFrame | None = None,
    goals: Iterable[Predicate] | None = None,
    limits: EngineLimits | None = None,
    settings: SparkSettings | None = None,
) -> Evaluation:
    """Evaluate a program over base relations, and over a wide table of records if one is given."""
    wanted = set(goals) if goals is not None else {rule.head.predicate for rule in checked.program.rules}
    run = _Run(checked, relations, spark, records, limits or EngineLimits(), settings or SparkSettings(), wanted)
    return run.evaluate()


class _Run:
    """One evaluation."""

    def __init__(
        self,
        checked: CheckedProgram,
        relations: Mapping[Predicate, DataFrame],
        spark: SparkSession,
        records: DataFrame | None,
        limits: EngineLimits,
        settings: SparkSettings,
        wanted: set[Predicate],
    ) -> None:
        self.spark = spark
        self.wanted = wanted
        self.limits = limits
        self.settings = settings
        self.records = None if records is None else require_columns(records, WIDE, "evaluate")
        flat = unfold(checked.program, wanted, _is_star, _MAX_UNFOLDED_BODY)
        sky = split(flat) if records is not None else Constellation(flat, ())
        self.program = sky.program
        self.stars: dict[Predicate, Star] = {star.predicate: star for star in sky.stars}
        self.known: dict[Predicate, Sized] = {p: Sized(_renamed(f, p)) for p, f in relations.items()}
        self.ranks = {place: rank for place, rank in ranked_predicates(self.program, wanted).items() if supported(rank)}
        self.round_seconds: list[float] = []
        self.unit = spark.range(1).selectExpr(f"true as {UNIT}")

    def evaluate(self) -> Evaluation:
        ranked = {predicate for predicate, _ in self.ranks}
        for stratum in strata(self.program):
            if ranked.issuperset(stratum.predicates):  # P31: counted without being materialised
                continue
            if self._is_small(stratum):
                self._finish_on_driver(stratum)
            elif stratum.recursive:
                self._iterate(stratum)
            else:
                self._apply_once(stratum)
        return Evaluation({predicate: self._read(predicate) for predicate in self.wanted}, tuple(self.round_seconds))

    # What the planner asks: lengths as far as they are known

    def rows(self, scan: Scan) -> float:
        known = self._read(scan.predicate).rows
        return float(1e6 if known is None else known) / 10.0 ** len(scan.constants)

    def distinct(self, scan: Scan, position: int) -> float:
        return self.rows(scan)

    # Reading

    def _read(self, predicate: Predicate) -> Sized:
        if predicate not in self.known:
            star = self.stars.get(predicate)
            if star is None or self.records is None:
                self.known[predicate] = local_relation(self.spark, predicate.arity, [])
            else:
                self.known[predicate] = Sized(star_relation(self.records, star))
        return self.known[predicate]

    def _inputs(self, stratum: Stratum) -> list[Predicate]:
        read = {found[0].predicate for rule in stratum.rules for x in rule.body if (found := read_atom(x)) is not None}
        return sorted(read - set(stratum.predicates))

    def _is_small(self, stratum: Stratum) -> bool:
        """Whether all that a stratum reads fits on the driver. Only recursion is worth a count of its inputs."""
        if self.settings.small_rows == 0:
            return False
        inputs = self._inputs(stratum)
        if stratum.recursive:
            for predicate in inputs:
                self._materialise(predicate)
        sizes = [self._read(predicate).rows for predicate in inputs]
        return None not in sizes and sum(size or 0 for size in sizes) <= self.settings.small_rows

    def _materialise(self, predicate: Predicate) -> Sized:
        """Compute a relation once and learn its length; a short one moves to the driver."""
        sized = self._read(predicate)
        if sized.rows is None:
            frame = sized.frame.persist(StorageLevel.MEMORY_AND_DISK)
            sized = self.known[predicate] = Sized(frame, frame.count())
        return sized

    # Computing

    def _finish_on_driver(self, stratum: Stratum) -> None:
        facts = [
            Fact(predicate, row)
            for predicate in self._inputs(stratum)
            for row in collect_rows(self._read(predicate).frame, predicate.arity)
        ]
        # A star may hand out more variables than any predicate of the user's own may have.
        checked = check_program(Program(stratum.rules), RAW_PROFILE, replace(self.limits, max_tuple_arity=_ANY_ARITY))
        result = engine.evaluate(checked, MemorySource(facts), limits=self.limits)
        for predicate in stratum.predicates:
            self.known[predicate] = local_relation(self.spark, predicate.arity, list(result.rows(predicate)))

    def _apply_once(self, stratum: Stratum) -> None:
        (predicate,) = stratum.predicates
        plans = plan_start(stratum, self, self.ranks)
        rows = [self._runner(self._whole).head_rows(plan) for plan in plans]
        apart = len(plans) == 1 and _keeps_rows_apart(plans[0].rule)
        self.known[predicate] = Sized(rows[0] if apart else union(rows).distinct())
        self._check_size(predicate, self._materialise(predicate).rows or 0)

    def _runner(self, read: Callable[[Scan], Sized]) -> PlanRunner:
        return PlanRunner(read, self.unit, self.settings.joins)

    def _whole(self, scan: Scan) -> Sized:
        return self._read(scan.predicate)

    def _iterate(self, stratum: Stratum) -> None:
        """Semi-naive: each round joins the last round's new rows with everything known."""
        total = {p: Growing(p.arity, local_relation(self.spark, p.arity, [])) for p in stratum.predicates}
        start = plan_start(stratum, self, self.ranks)
        delta = self._advance(total, [(p.rule.head.predicate, self._runner(self._whole).head_rows(p)) for p in start])
        rounds = 0
        while delta:
            rounds += 1
            if rounds > self.limits.max_stratum_iterations:
                limit = self.limits.max_stratum_iterations
                raise LimitExceeded("max_stratum_iterations", limit, str(stratum.predicates[0]))
            for predicate, sized in delta.items():
                total[predicate].add(sized)
                self._check_size(predicate, total[predicate].rows)
            began = time.monotonic()
            delta = self._next(stratum, total, delta)
            self.round_seconds.append(time.monotonic() - began)
        self.known.update({predicate: grown.sized() for predicate, grown in total.items()})

    def _next(
        self, stratum: Stratum, total: Mapping[Predicate, Growing], delta: Mapping[Predicate, Sized]
    ) -> dict[Predicate, Sized]:
        """One round. OLD is read as ALL: repeats are taken out at the end, and a difference would cost a join."""

        def read(scan: Scan) -> Sized:
            if scan.version is Version.DELTA:
                return delta[scan.predicate]
            grown = total.get(scan.predicate)
            return self._read(scan.predicate) if grown is None else grown.sized()

        runner = self._runner(read)
        plans = [plan for plan in plan_rounds(stratum, self, self.ranks) if _delta_of(plan) in delta]
        return self._advance(total, [(plan.rule.head.predicate, runner.head_rows(plan)) for plan in plans])

    @staticmethod
    def _advance(
        total: Mapping[Predicate, Growing], derived: list[tuple[Predicate, DataFrame]]
    ) -> dict[Predicate, Sized]:
        """The new rows of a round, lineage cut, empty relations left out."""
        frames: dict[Predicate, list[DataFrame]] = {}
        for predicate, frame in derived:
            frames.setdefault(predicate, []).append(frame)
        delta: dict[Predicate, Sized] = {}
        for predicate, parts in frames.items():
            fresh = cut_lineage(total[predicate].without_known(union(parts)), eager=False)
            rows = fresh.count()
            if rows:
                delta[predicate] = Sized(fresh, rows)
        return delta

    def _check_size(self, predicate: Predicate, rows: int) -> None:
        if rows > self.limits.max_derived_facts_per_predicate:
            limit = self.limits.max_derived_facts_per_predicate
            raise LimitExceeded("max_derived_facts_per_predicate", limit, str(predicate))


def _keeps_rows_apart(rule: Rule) -> bool:
    """Whether a rule derives each row once: one positive atom, and every term of it in the head."""
    positives = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    return len(positives) == 1 and set(positives[0].terms) <= set(rule.head.terms)


def _delta_of(plan: RulePlan) -> Predicate:
    """The predicate whose last round a plan of a recursive round starts from."""
    first = chain(plan.root)[0]
    assert isinstance(first, Scan)
    assert first.version is Version.DELTA
    return first.predicate


def _is_star(rule: Rule) -> bool:
    """Whether a rule reads record facts of one record only: worth repeating wherever it is used."""
    positives = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    return all(atom.predicate in RECORD_PREDICATES for atom in positives) and len({a.terms[0] for a in positives}) == 1


def _renamed(frame: DataFrame, predicate: Predicate) -> DataFrame:
    """A user's frame as a relation: columns by position, text values, each row once."""
    if predicate.arity == 0:
        return frame.selectExpr(f"true as {UNIT}").limit(1)
    names = relation_schema(predicate.arity).names
    return frame.toDF(*names).selectExpr(*(f"cast({name} as string) as {name}" for name in names)).distinct()
