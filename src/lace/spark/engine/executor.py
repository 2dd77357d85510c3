"""The Spark executor: any checked program over DataFrames, with the results of the embedded engine (030).

Rule: bottom-up, stratum by stratum. What one record decides is one pass over the wide table; what joins across
records is a loop on the driver with cut lineage; what is small is handed to the embedded engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import field, replace
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from lace.datalog.engine import RowSource
from lace.datalog.language.syntax import Atom, Constant, Fact, Positive, Predicate, Program, Rule, Term, Variable
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, rewritten
from lace.datalog.meter import Meter
from lace.datalog.planning.plan import Join, RulePlan, Scan, Version, chain
from lace.datalog.planning.planner import plan_rounds, plan_start
from lace.datalog.planning.ranking import ranked_predicates
from lace.datalog.planning.stratify import Stratum, read_atom, strata
from lace.datalog.planning.unfold import unfold
from lace.datalog.source import Row
from lace.errors import LimitExceeded
from lace.facts.predicates import RECORD_PREDICATES
from lace.limits import EngineLimits
from lace.runtime.rules.guestprograms import OwnEngine, ProgramEngine, ProgramQuestion
from lace.spark.engine.guest import ClusterGuest
from lace.spark.engine.joins import JoinChoice
from lace.spark.engine.pivot import UNIT, star_relation, stars_together
from lace.spark.engine.plans import PlanRunner, Sized, supported
from lace.spark.engine.relations import (
    Growing,
    collect_rows,
    held_apart,
    local_columns,
    local_relation,
    relation_schema,
    union,
)
from lace.spark.engine.stars import Constellation, Star, split
from lace.spark.session.tags import add_tag, tags
from lace.spark.source.schemas import WIDE, require_columns
from lace.values import dataclass

MAX_UNFOLDED_BODY = 64
_LOOKUPS_AT_ONCE = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where the executor changes its way of working; 0 for `small_rows` keeps everything on the cluster."""

    small_rows: int = 100_000
    lookup_rows: int = 10_000  # sets of values up to this length are brought to the driver to be sent to every task
    driver_rows: int = 1 << 22  # of one predicate that the driver derives from few; more are left to the cluster
    joins: JoinChoice = field(default_factory=JoinChoice)
    guest: ClusterGuest | None = None  # whose rules they are, if they are not ours

    @property
    def engine(self) -> ProgramEngine:
        """What evaluates what is small."""
        return OWN if self.guest is None else self.guest.engine


OWN = OwnEngine()
_ROWS_A_CORE = 1 << 24  # that a relation may have for each core: some 2 GB of text


def limits_on(spark: SparkSession) -> EngineLimits:
    """The limits of rules that state none: facts of one predicate are bounded by the cores that hold them.

    Where a session does not say how many there are (Spark Connect), those of one machine hold.
    """
    context = getattr(spark, "sparkContext", None)
    cores = 0 if context is None else int(context.defaultParallelism)
    one = EngineLimits()
    most = max(one.max_derived_facts_per_predicate, _ROWS_A_CORE * cores)
    return replace(one, max_derived_facts_per_predicate=most)


@dataclass(frozen=True, slots=True)
class StratumStep:
    """How a stratum was worked out."""

    predicates: tuple[Predicate, ...]
    how: str
    seconds: float
    rounds: int = 0

    def __str__(self) -> str:
        names = ", ".join(str(predicate) for predicate in self.predicates)
        rounds = f", {self.rounds} round{'' if self.rounds == 1 else 's'}" if self.rounds else ""
        return f"{names}: {self.how}{rounds}, {self.seconds:.2f} s"


@dataclass(frozen=True, slots=True)
class SparkEvaluation:
    """The derived relations: `frame` gives columns c0, c1, …; nothing is computed twice."""

    relations: Mapping[Predicate, Sized]
    round_seconds: tuple[float, ...] = ()  # of recursive strata on the cluster, in order
    held: tuple[DataFrame, ...] = ()  # what was kept on the cluster on the way
    steps: tuple[StratumStep, ...] = ()

    def frame(self, predicate: Predicate) -> DataFrame:
        return self.relations[predicate].frame

    def count(self, predicate: Predicate) -> int:
        return self.relations[predicate].rows or 0

    def rows(self, predicate: Predicate) -> set[Row]:
        """A relation on the driver: for small results."""
        return set(collect_rows(self.frame(predicate), predicate.arity))

    def release(self) -> None:
        """Give back what is held on the cluster; the frames can be read no cheaper than by computing them again."""
        for frame in self.held:
            frame.unpersist()


def evaluate(
    checked: CheckedProgram,
    relations: Mapping[Predicate, DataFrame | Sized],
    *,
    spark: SparkSession,
    records: DataFrame | None = None,
    goals: Iterable[Predicate] | None = None,
    limits: EngineLimits | None = None,
    settings: SparkSettings | None = None,
    written: Program | None = None,
) -> SparkEvaluation:
    """Evaluate a program over base relations, and over a wide table of records if one is given.

    A frame becomes a relation by position and loses its repeats; one that comes with its size is a relation already.
    Errors show rules as they are `written`, if that is not the program itself.
    """
    wanted = set(goals) if goals is not None else {rule.head.predicate for rule in checked.program.rules}
    run = _ProgramRun(checked, relations, spark, records, limits or EngineLimits(), settings or SparkSettings(), wanted)
    run.written = written or checked.program
    with nullcontext() if run.guest is None else run.guest.on_cluster():
        return run.evaluate()


class _ProgramRun:
    """One evaluation."""

    def __init__(
        self,
        checked: CheckedProgram,
        relations: Mapping[Predicate, DataFrame | Sized],
        spark: SparkSession,
        records: DataFrame | None,
        limits: EngineLimits,
        settings: SparkSettings,
        wanted: set[Predicate],
    ) -> None:
        self.spark = spark
        self.written = checked.program
        self.wanted = wanted
        self.limits = limits
        self.settings = settings
        self.guest = settings.guest
        self.records = None if records is None else require_columns(records, WIDE, "evaluate")
        flat = unfold(checked.program, wanted, is_star, MAX_UNFOLDED_BODY)
        parted = split(flat, {*wanted, *relations}) if records is not None else Constellation(flat, ())
        self.program = parted.program
        self.stars: dict[Predicate, Star] = {star.predicate: star for star in parted.stars}
        self.known: dict[Predicate, Sized] = {
            p: given if isinstance(given, Sized) else Sized(_renamed(given, p)) for p, given in relations.items()
        }
        self.held: list[DataFrame] = []
        self.ranks = {place: rank for place, rank in ranked_predicates(self.program, wanted).items() if supported(rank)}
        self.keyed: dict[Predicate, int] = {}  # relations with one row a record, and where the record stands in it
        self.round_seconds: list[float] = []

    def evaluate(self) -> SparkEvaluation:
        ranked = {predicate for predicate, _ in self.ranks}
        # P31: what is ranked is counted without being materialised.
        ordered = [stratum for stratum in strata(self.program) if not ranked.issuperset(stratum.predicates)]
        self._learn_lookups(ordered)
        steps: list[StratumStep] = []
        for stratum in ordered:
            if self.guest is not None:
                self.guest.step(self._shown_rule(stratum.predicates[0]))
            began, rounds = time.monotonic(), len(self.round_seconds)
            if self._is_small(stratum) and self._finish_on_driver(stratum):
                how = "on the driver, by the embedded engine"
            elif stratum.recursive:
                how = "on the cluster, a loop of joins with what is new"
                self._iterate(stratum)
            else:
                how = "on the cluster, one plan, when it is read"
                self._apply_once(stratum)
            rounds = len(self.round_seconds) - rounds
            steps.append(StratumStep(tuple(stratum.predicates), how, time.monotonic() - began, rounds))
        found = {predicate: self._read(predicate) for predicate in self.wanted}
        return SparkEvaluation(found, tuple(self.round_seconds), tuple(self.held), tuple(steps))

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
                rows = star_relation(self.records, star)
                self.known[predicate] = Sized(rows.frame, repeating=rows.repeating)
                if rows.one_a_record:
                    self.keyed[predicate] = star.outputs.index(star.record)
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
        """Compute a relation once and learn its length."""
        sized = self._read(predicate)
        if sized.rows is None:
            frame = held_apart(sized.frame)
            self.held.append(frame)
            sized = self.known[predicate] = Sized(frame, frame.count())
        return sized

    # Computing

    def _rows(self, predicate: Predicate) -> Iterable[Row]:
        sized = self._read(predicate)
        return collect_rows(sized.frame, predicate.arity) if sized.values is None else sized.values

    def _finish_on_driver(self, stratum: Stratum) -> bool:
        """Derive a stratum here from inputs that are few; False, and nothing done, if it comes to too much."""
        own = self.limits.max_derived_facts_per_predicate
        most = own if self.guest is not None else min(own, self.settings.driver_rows)
        facts = [Fact(predicate, row) for predicate in self._inputs(stratum) for row in self._rows(predicate)]
        checked = rewritten(Program(stratum.rules), RAW_PROFILE)
        question = ProgramQuestion(checked, RowSource(facts), tuple(stratum.predicates), written=self.written)
        try:
            result = self.settings.engine.ask(question, replace(self.limits, max_derived_facts_per_predicate=most))
        except LimitExceeded as error:
            if most == own or error.limit != "max_derived_facts_per_predicate":
                raise
            return False
        for predicate in stratum.predicates:
            columns, rows = result.columns[predicate], result.counts[predicate]
            self.known[predicate] = local_columns(self.spark, columns, rows, self.settings.small_rows)
            self._count(predicate, rows)
        return True

    def _apply_once(self, stratum: Stratum) -> None:
        (predicate,) = stratum.predicates
        plans = [plan for plan in plan_start(stratum, self, self.ranks) if not self._is_barren(plan)]
        if not plans:
            self.known[predicate] = local_relation(self.spark, predicate.arity, [])
            return
        rows = [self._runner(self._whole).head_rows(plan) for plan in plans]
        apart = len(plans) == 1 and _keeps_rows_apart(plans[0].rule, self.keyed)
        self.known[predicate] = Sized(rows[0] if apart else union(rows).distinct())
        short = all(map(self._looks_short, plans))
        if short and apart:  # nothing to tell apart: held and counted once, rows that are many after all cost no more
            self._bring_if_short(predicate)
        elif not (short and self._settle(predicate, union(rows))):
            self._materialise(predicate)
        self._check_size(predicate, self.known[predicate].rows or 0)
        self._count(predicate, self.known[predicate].rows or 0)

    def _settle(self, predicate: Predicate, found: DataFrame) -> bool:
        """Bring rows that are probably few to the driver, which takes their repeats out; whether they were few.

        They need not be told apart for it, nor held. Where they are many every task ends as soon as it has met enough
        of them, so that little was done in vain.
        """
        most = self._few
        rows = list(collect_rows(found.limit(most + 1), predicate.arity))
        if len(rows) <= most:
            self.known[predicate] = local_relation(self.spark, predicate.arity, list(dict.fromkeys(rows)))
        return len(rows) <= most

    def _bring_if_short(self, predicate: Predicate) -> None:
        """Compute a relation on the cluster and learn its length; a short one moves to the driver."""
        sized = self._materialise(predicate)
        if self._few and (sized.rows or 0) <= self._few and self._settle(predicate, sized.frame):
            sized.frame.unpersist()

    @property
    def _few(self) -> int:
        """How many rows the driver takes; 0 keeps everything on the cluster."""
        return min(self.settings.lookup_rows, self.settings.small_rows)

    def _joined(self, plan: RulePlan) -> list[Sized]:
        """The relations whose rows a plan puts together."""
        nodes = [
            node if isinstance(node, Scan) else node.scan for node in chain(plan.root) if isinstance(node, Scan | Join)
        ]
        return [self._read(scan.predicate) for scan in nodes]

    def _is_barren(self, plan: RulePlan) -> bool:
        """Whether a plan joins with a relation that is known to be empty; no job is needed to learn that."""
        return any(sized.rows == 0 for sized in self._joined(plan))

    def _looks_short(self, plan: RulePlan) -> bool:
        """Whether a plan begins with few rows that the driver has: what they join with is probably little."""
        few = self._few
        return any(sized.values is not None and 0 < len(sized.values) <= few for sized in self._joined(plan))

    def _learn_lookups(self, read: Iterable[Stratum]) -> None:
        """Compute the stars that rules look values up in, to learn their lengths; short ones move to the driver.

        A star without its record among its columns is a set of values, mostly few. Without its length a join would
        shuffle the long side for it; with few values it is sent to every task, and needs no job of its own again.
        Stars hang on records alone, so one pass over them answers several; where that finds too much each is computed
        for itself, side by side, and is not thought to be short any more (decision 271).
        """
        inputs = {predicate for stratum in read for predicate in self._inputs(stratum)}
        stars = [self.stars[predicate] for predicate in sorted(inputs) if predicate in self.stars]
        lookups = [star for star in stars if star.record not in star.outputs]
        long = self._learn_together(lookups) if self._few else lookups
        left = [star.predicate for star in lookups if star.predicate not in self.known]
        for predicate in left:
            self._read(predicate)
        # Jobs are interrupted, and counted, by the tags of their thread.
        start = partial(_with_tags, self.spark, tags(self.spark))
        with ThreadPoolExecutor(_LOOKUPS_AT_ONCE, initializer=start) as pool:
            list(pool.map(partial(self._learn, expected_long={star.predicate for star in long}), left))

    def _learn_together(self, lookups: list[Star]) -> list[Star]:
        """Bring stars that are short to the driver by one pass over the records; those of them that are not."""
        together = None if self.records is None else stars_together(self.records, lookups)
        if together is None:
            return []
        rows = list(collect_rows(together.frame.limit(self._few + 1), together.width))
        if len(rows) > self._few:
            return together.stars
        for star, said in together.apart(rows):
            self.known[star.predicate] = local_relation(self.spark, star.predicate.arity, said)
        return []

    def _learn(self, predicate: Predicate, expected_long: Collection[Predicate]) -> None:
        if self.guest is not None:
            self.guest.step("")
        if self._few and predicate not in expected_long and self._settle(predicate, self._read(predicate).frame):
            return
        self._bring_if_short(predicate)  # many together, but perhaps not this one

    def _runner(self, read: Callable[[Scan], Sized]) -> PlanRunner:
        return PlanRunner(read, self._unit, self.settings.joins)

    def _unit(self) -> DataFrame:
        return self.spark.range(1).selectExpr(f"true as {UNIT}")

    def _whole(self, scan: Scan) -> Sized:
        return self._read(scan.predicate)

    def _iterate(self, stratum: Stratum) -> None:
        """Semi-naive: each round joins the last round's new rows with everything known."""
        total = {p: Growing(self.spark, p.arity, self._few) for p in stratum.predicates}
        start = plan_start(stratum, self, self.ranks)
        delta = self._advance(total, [(p.rule.head.predicate, self._runner(self._whole).head_rows(p)) for p in start])
        rounds = 0
        while delta:
            rounds += 1
            if rounds > self.limits.max_stratum_iterations:
                limit = self.limits.max_stratum_iterations
                raise self._exceeded("max_stratum_iterations", limit, stratum.predicates[0])
            if self.guest is not None and not self.guest.goes_round():
                raise self._exceeded("max_guest_rounds", self.guest.max_rounds, stratum.predicates[0])
            for predicate, sized in delta.items():
                total[predicate].add(sized)
                self._check_size(predicate, total[predicate].rows)
                self._count(predicate, sized.rows or 0)
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
            fresh = total[predicate].fresh(union(parts))
            if fresh.rows:
                delta[predicate] = fresh
        return delta

    def _check_size(self, predicate: Predicate, rows: int) -> None:
        if rows > self.limits.max_derived_facts_per_predicate:
            limit = self.limits.max_derived_facts_per_predicate
            raise self._exceeded("max_derived_facts_per_predicate", limit, predicate)

    def _count(self, predicate: Predicate, rows: int) -> None:
        """Rows that were derived: those of a peer's rules are bounded all together."""
        if self.guest is not None and not self.guest.derives(rows):
            raise self._exceeded("max_guest_rows", self.guest.max_rows, predicate)

    def _shown_rule(self, predicate: Predicate) -> str:
        """The first rule of a predicate, as it was written."""
        return self._exceeded("", 0, predicate).rule

    def _exceeded(self, limit: str, allowed: int, predicate: Predicate) -> LimitExceeded:
        """The error of a limit that a predicate has met, as the embedded engine has it."""
        meter = self._meter()
        meter.rule = next(rule for rule in self.program.rules if rule.head.predicate == predicate)
        return meter.exceeded(limit, allowed, meter.shown(predicate))

    def _meter(self) -> Meter:
        meter = Meter(self.limits)
        meter.tell_as_in(self.written)
        return meter


def _with_tags(spark: SparkSession, given: Collection[str]) -> None:
    for tag in given:
        add_tag(spark, tag)


def _keeps_rows_apart(rule: Rule, keyed: Mapping[Predicate, int]) -> bool:
    """Whether a rule derives each row once: one atom's rows show in the head, and the other atoms only test them."""
    positives = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    head = set(rule.head.terms)
    return any(
        _shows(atom, head, keyed) and all(_only_tests(other, atom) for other in positives if other is not atom)
        for atom in positives
    )


def _shows(atom: Atom, head: set[Term], keyed: Mapping[Predicate, int]) -> bool:
    """Whether two rows of an atom never give one head: all its terms are there, or the record that tells them apart."""
    key = keyed.get(atom.predicate)
    return set(atom.terms) <= head if key is None else atom.terms[key] in head


def _only_tests(other: Atom, atom: Atom) -> bool:
    """Whether an atom adds no rows: every variable of it is bound, and `_` multiplies nothing."""
    return all(
        isinstance(term, Constant) or (isinstance(term, Variable) and term in atom.terms) for term in other.terms
    )


def _delta_of(plan: RulePlan) -> Predicate:
    """The predicate whose last round a plan of a recursive round starts from."""
    first = chain(plan.root)[0]
    assert isinstance(first, Scan)
    assert first.version is Version.DELTA
    return first.predicate


def is_star(rule: Rule) -> bool:
    """Whether a rule reads record facts of one record only: worth repeating wherever it is used."""
    positives = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    return all(atom.predicate in RECORD_PREDICATES for atom in positives) and len({a.terms[0] for a in positives}) == 1


def _renamed(frame: DataFrame, predicate: Predicate) -> DataFrame:
    """A user's frame as a relation: columns by position, text values, each row once."""
    if predicate.arity == 0:
        return frame.selectExpr(f"true as {UNIT}").limit(1)
    names = relation_schema(predicate.arity).names
    return frame.toDF(*names).selectExpr(*(f"cast({name} as string) as {name}" for name in names)).distinct()
