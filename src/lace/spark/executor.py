"""The Spark executor: any checked program over DataFrames, with the results of the embedded engine (030).

Rule: bottom-up, stratum by stratum. What one record decides is one pass over the wide table; what joins across
records is a loop on the driver with cut lineage; what is small is handed to the embedded engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from lace.datalog import engine
from lace.datalog.source import MemorySource, Row
from lace.datalog.stratify import Stratum, read_atom, strata
from lace.datalog.syntax import Atom, Fact, Positive, Predicate, Program, Rule
from lace.datalog.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.spark.bodies import JoinSettings, Sized, head_rows
from lace.spark.pivot import UNIT, star_relation
from lace.spark.relations import Growing, collect_rows, local_relation, relation_schema, union
from lace.spark.schemas import WIDE, require_columns
from lace.spark.stars import Constellation, Star, split

_ANY_ARITY = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where the executor changes its way of working; 0 for `small_rows` keeps everything on the cluster."""

    small_rows: int = 100_000
    joins: JoinSettings = JoinSettings()


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The derived relations: `frame` gives columns c0, c1, …; nothing is computed twice."""

    relations: Mapping[Predicate, Sized]

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
    run = _Run(checked, relations, spark, records, limits or EngineLimits(), settings or SparkSettings())
    wanted = set(goals) if goals is not None else {rule.head.predicate for rule in checked.program.rules}
    return run.evaluate(wanted)


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
    ) -> None:
        self.spark = spark
        self.limits = limits
        self.settings = settings
        self.records = None if records is None else require_columns(records, WIDE, "evaluate")
        sky = split(checked.program) if records is not None else Constellation(checked.program, ())
        self.program = sky.program
        self.stars: dict[Predicate, Star] = {star.predicate: star for star in sky.stars}
        self.known: dict[Predicate, Sized] = {p: Sized(_renamed(f, p)) for p, f in relations.items()}
        self.unit = spark.range(1).selectExpr(f"true as {UNIT}")

    def evaluate(self, wanted: set[Predicate]) -> Evaluation:
        needed = _reachable(self.program, wanted)
        for stratum in strata(self.program):
            if needed.isdisjoint(stratum.predicates):
                continue
            if self._is_small(stratum):
                self._finish_on_driver(stratum)
            elif stratum.recursive:
                self._iterate(stratum)
            else:
                self._apply_once(stratum)
        return Evaluation({predicate: self._read(predicate) for predicate in wanted})

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
        rows = [self._head(rule) for rule in stratum.rules]
        distinct = len(rows) == 1 and self._keeps_rows_apart(stratum.rules[0])
        self.known[predicate] = Sized(rows[0] if distinct else union(rows).distinct())
        self._check_size(predicate, self._materialise(predicate).rows or 0)

    def _keeps_rows_apart(self, rule: Rule) -> bool:
        """Whether a rule derives each row once: one positive atom, and every variable of it in the head."""
        positives = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
        return len(positives) == 1 and set(positives[0].terms) <= set(rule.head.terms)

    def _head(self, rule: Rule) -> DataFrame:
        return head_rows(rule, lambda _, atom: self._read(atom.predicate), self.settings.joins, unit=self.unit)

    def _iterate(self, stratum: Stratum) -> None:
        """Semi-naive: each round joins the last round's new rows with everything known."""
        inside = set(stratum.predicates)
        total = {p: Growing(p.arity, local_relation(self.spark, p.arity, [])) for p in stratum.predicates}
        delta = self._start(stratum, inside, total)
        rounds = 0
        while delta:
            rounds += 1
            if rounds > self.limits.max_stratum_iterations:
                raise LimitExceeded("max_stratum_iterations", self.limits.max_stratum_iterations, str(min(inside)))
            for predicate, sized in delta.items():
                total[predicate].add(sized)
                self._check_size(predicate, total[predicate].rows)
            delta = self._next(stratum, total, delta)
        self.known.update({predicate: grown.sized() for predicate, grown in total.items()})

    def _start(
        self, stratum: Stratum, inside: set[Predicate], total: Mapping[Predicate, Growing]
    ) -> dict[Predicate, Sized]:
        base = [rule for rule in stratum.rules if not _positions(rule, inside)]
        return self._advance(total, [(rule.head.predicate, self._head(rule)) for rule in base])

    def _next(
        self, stratum: Stratum, total: Mapping[Predicate, Growing], delta: Mapping[Predicate, Sized]
    ) -> dict[Predicate, Sized]:
        derived: list[tuple[Predicate, DataFrame]] = []
        for rule in stratum.rules:
            for position in _positions(rule, set(delta)):

                def read(at: int, atom: Atom, changed: int = position) -> Sized:
                    if at == changed:
                        return delta[atom.predicate]
                    grown = total.get(atom.predicate)
                    return self._read(atom.predicate) if grown is None else grown.sized()

                rows = head_rows(rule, read, self.settings.joins, unit=self.unit, first=position)
                derived.append((rule.head.predicate, rows))
        return self._advance(total, derived)

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
            fresh = total[predicate].without_known(union(parts)).localCheckpoint(eager=False)
            rows = fresh.count()
            if rows:
                delta[predicate] = Sized(fresh, rows)
        return delta

    def _check_size(self, predicate: Predicate, rows: int) -> None:
        if rows > self.limits.max_derived_facts_per_predicate:
            limit = self.limits.max_derived_facts_per_predicate
            raise LimitExceeded("max_derived_facts_per_predicate", limit, str(predicate))


def _positions(rule: Rule, inside: set[Predicate]) -> list[int]:
    """Where a body reads one of these predicates positively."""
    return [i for i, x in enumerate(rule.body) if isinstance(x, Positive) and x.atom.predicate in inside]


def _reachable(program: Program, wanted: set[Predicate]) -> set[Predicate]:
    """The predicates that the wanted ones depend on, themselves included."""
    reads: dict[Predicate, set[Predicate]] = {}
    for rule in program.rules:
        found = {atom[0].predicate for x in rule.body if (atom := read_atom(x)) is not None}
        reads.setdefault(rule.head.predicate, set()).update(found)
    reached: set[Predicate] = set()
    frontier = set(wanted)
    while frontier:
        reached |= frontier
        frontier = {p for q in frontier for p in reads.get(q, ())} - reached
    return reached


def _renamed(frame: DataFrame, predicate: Predicate) -> DataFrame:
    """A user's frame as a relation: columns by position, text values, each row once."""
    if predicate.arity == 0:
        return frame.selectExpr(f"true as {UNIT}").limit(1)
    names = relation_schema(predicate.arity).names
    return frame.toDF(*names).selectExpr(*(f"cast({name} as string) as {name}" for name in names)).distinct()


