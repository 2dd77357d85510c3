"""Run one rule plan on DataFrames: scans, joins, anti-joins, counts, ranks and filters (030).

Rule: a plan becomes one lazy DataFrame of head rows; nothing here runs a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_
from typing import assert_never

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.language.syntax import Anonymous, Compare, Constant, Term, TextShape, Unequal, Variable
from lace.datalog.planning.plan import (
    CountTest,
    Filter,
    Join,
    Meet,
    Node,
    Project,
    Rank,
    RulePlan,
    Scan,
    Test,
    Unit,
    Without,
    chain,
)
from lace.datalog.planning.ranking import ID, KEY
from lace.datalog.source import Row
from lace.spark.engine.columns import compare_integers, compare_texts, count_holds, text_shape
from lace.spark.engine.joins import JoinChoice
from lace.spark.engine.pivot import UNIT, relation_columns
from lace.values import dataclass

_EMPTY = Constant("")


@dataclass(frozen=True, slots=True)
class Sized:
    """A frame with what is known of its length; checkpointed frames carry wrong estimates, so we count ourselves."""

    frame: DataFrame
    rows: int | None = None
    values: Sequence[Row] | None = None  # the rows themselves, if the driver has them
    repeating: DataFrame | None = None  # the frame before its repeats were taken out, where that costs a shuffle


def supported(rank: Rank) -> bool:
    """Whether a rank can be said by one window: text order, one group, no exceptions."""
    return rank.kind == "lex" and rank.tie_kind in ("", "lex") and not rank.groups and not rank.others_only


@dataclass(frozen=True, slots=True)
class PlanRunner:
    """Runs plans over relations; `read` gives the relation (and version) that a scan names."""

    read: Callable[[Scan], Sized]
    unit: Callable[[], DataFrame]  # one row, for bodies that bind nothing
    joins: JoinChoice

    def head_rows(self, plan: RulePlan) -> DataFrame:
        """The rows that a rule derives; repeats are left in."""
        first, *nodes, project = chain(plan.root)
        assert isinstance(project, Project)
        named = self._named(first, nodes[0]) if nodes else None
        if named is not None:
            frame, most, nodes = named, None, nodes[1:]
        elif isinstance(first, Scan):
            frame, most = self._scan(first).frame, self.read(first).rows
        else:
            assert isinstance(first, Unit)
            frame, most = self.unit(), None
        asking = most  # rows that choose among many: they are read a second time, so only while that costs nothing
        for node in nodes:
            if isinstance(node, Join) and node.binds:
                # A short relation that meets a long one is sent to every task; Spark does not know which is which.
                frame = self.joins.hinted(frame, most) if node.on else frame
                most = None
            frame = self._apply(node, frame, asking)
            asking = asking if isinstance(node, Filter) else None
        names = relation_columns(len(project.terms))
        values = [_value(term).alias(name) for term, name in zip(project.terms, names, strict=False)]
        return frame.select(*(values or [F.lit(True).alias(UNIT)]))

    def _apply(self, node: Node | Project, frame: DataFrame, asking: int | None) -> DataFrame:
        match node:
            case Join():
                return self._join(node, frame, asking)
            case Without(scan=scan, on=on):
                return self._without(scan, on, frame)
            case CountTest():
                return self._counted(node, frame)
            case Filter(test=test):
                return frame.where(_passes(test))
            case Unit() | Scan() | Meet() | Project():
                raise AssertionError("a plan begins with its first relation and ends with the head")
            case _:
                assert_never(node)

    def _scan(self, scan: Scan) -> Sized:
        """The facts that match a scan, one column for each variable it binds."""
        sized = self.read(scan)
        repeating = None if sized.repeating is None else _matching(scan, sized.repeating)
        return Sized(_matching(scan, sized.frame), sized.rows, repeating=repeating)

    def _join(self, join: Join, frame: DataFrame, asking: int | None) -> DataFrame:
        """The rows of a frame with those of a relation; `asking` is how many rows the frame has, if it may choose."""
        other = self._scan(join.scan)
        if not join.scan.variables:  # the atom only asks whether there is a fact
            return _when_any(frame, other.frame, "left_semi")
        on = [_column(name) for name in join.on]
        few = bool(on) and self.joins.is_short(asking)
        if not join.binds:
            return self._tested(frame, other, on, few=few)
        if few and other.repeating is not None:
            other = Sized(self.joins.met(other.repeating, frame, on).distinct())
        if not on:
            joined = frame.crossJoin(self._hinted(other)) if UNIT not in frame.columns else (
                _when_any(other.frame, frame, "left_semi"))  # fmt: skip
        else:
            joined = frame.join(self._hinted(other), on=on)
        return joined.select(*(_column(name) for name in join.keep)) if join.keep else joined

    def _named(self, first: Node | Project, join: Node | Project) -> DataFrame | None:
        """What few rows of the driver meet, asked for by their values (decision 270); None if the two are no such join.

        Nothing is sent around for it: one job that compares a column with some texts, and no second one before it.
        """
        if not (isinstance(first, Scan) and isinstance(join, Join) and join.on and join.binds):
            return None
        rows = _driver_rows(first, self.read(first).values or ())
        if not 0 < len(rows) <= self.joins.named_rows:
            return None
        names = [name for _, name in first.variables]
        other = self._scan(join.scan)
        asked = dict.fromkeys(row[names.index(join.on[0])] for row in rows)
        many = other.frame if other.repeating is None else other.repeating
        met = many.where(F.col(_column(join.on[0])).isin(list(asked)))
        met = met if other.repeating is None else met.distinct()
        if len(names) > 1:  # they bring more than what they ask with
            met = _beside(met, join, names, rows)
        return met.select(*(_column(name) for name in join.keep)) if join.keep else met

    def _tested(self, frame: DataFrame, other: Sized, on: list[str], *, few: bool) -> DataFrame:
        """The rows of a frame that meet a relation in all its variables."""
        if not few or self.joins.is_short(other.rows):
            return frame.join(self._hinted(other), on=on, how="left_semi")
        # As a test the long side would be sent around, or sorted, for the few rows that it decides.
        met = self.joins.met(other.frame if other.repeating is None else other.repeating, frame, on).distinct()
        return met if set(frame.columns) == set(on) else frame.join(F.broadcast(met), on=on, how="left_semi")

    def _without(self, scan: Scan, on: tuple[str, ...], frame: DataFrame) -> DataFrame:
        other = self._scan(scan)
        if not on:
            return _when_any(frame, other.frame, "left_anti")
        return frame.join(self._hinted(other), on=[_column(name) for name in on], how="left_anti")

    def _counted(self, test: CountTest, frame: DataFrame) -> DataFrame:
        """A row without any match counts 0 and is judged like every other."""
        counts = self._ranks(test.rank, test.identity) if test.rank is not None else self._counts(test)
        keys = [_column(name) for name in test.on]
        joined = frame.join(counts, on=keys, how="left") if keys else frame.crossJoin(F.broadcast(counts))
        holds = count_holds(F.coalesce(F.col("_count"), F.lit(0)), test.operator, _value(test.bound))
        return joined.where(holds).drop("_count")

    def _counts(self, test: CountTest) -> DataFrame:
        keys = [_column(name) for name in test.on]
        return self._scan(test.scan).frame.groupBy(*keys).agg(F.count(F.lit(1)).alias("_count"))

    def _ranks(self, rank: Rank, counted_for: str) -> DataFrame:
        """For each identity, how many others stand beyond it: a running sum instead of quadratically many facts."""
        rows = self._scan(rank.candidates).frame
        identity, key = F.col(_column(ID)), F.col(_column(KEY if _column(KEY) in rows.columns else ID))
        most, least = (F.max, F.min) if rank.operator in (">", ">=") else (F.min, F.max)
        extremes = rows.groupBy(identity).agg(most(key).alias("_best"), least(key).alias("_worst"))
        marks = extremes.select(identity, F.explode(F.array(
            F.struct(F.col("_best").alias("key"), F.lit(1).alias("weight")),
            F.struct(F.col("_worst").alias("key"), F.lit(0).alias("weight")),
        )).alias("mark"))  # fmt: skip
        beyond_first = [_ordered(F.col("mark.key"), rank.operator)]
        strict = rank.operator in ("<", ">")
        if rank.tie_kind:
            beyond_first.append(_ordered(identity, rank.tie_operator))
            strict = rank.tie_operator in ("<", ">")
        # One group, and said so: clients of Spark Connect warn of an order over everything.
        upto = (
            Window.partitionBy(F.lit(True))
            .orderBy(*beyond_first)
            .rangeBetween(Window.unboundedPreceding, Window.currentRow)
        )
        peers = Window.partitionBy("mark.key", *([identity] if rank.tie_kind else []))
        weight = F.col("mark.weight")
        beyond = F.sum(weight).over(upto) - (F.sum(weight).over(peers) if strict else F.lit(0))
        counted = marks.select(identity.alias(_column(counted_for)), weight.alias("weight"), beyond.alias("_count"))
        return counted.where("weight = 0").drop("weight")

    def _hinted(self, sized: Sized) -> DataFrame:
        return self.joins.hinted(sized.frame, sized.rows)


def _driver_rows(scan: Scan, values: Sequence[Row]) -> list[Row]:
    """The rows of the driver that match a scan, each once, as long as its variables."""
    matching = (
        row
        for row in values
        if all(row[place] == text for place, text in scan.constants)
        and all(row[first] == row[later] for first, later in scan.equal)
    )
    return list(dict.fromkeys(tuple(row[place] for place, _ in scan.variables) for row in matching))


def _beside(met: DataFrame, join: Join, names: list[str], rows: list[Row]) -> DataFrame:
    """What a join met, with each of the rows that it is met by; the rows stand in the plan."""
    given = F.array(*(
        F.struct(*(F.lit(text).alias(_column(name)) for name, text in zip(names, row, strict=True))) for row in rows
    ))  # fmt: skip

    def fits(row: Column) -> Column:
        return reduce(and_, (row[_column(name)] == F.col(_column(name)) for name in join.on))

    found = [_column(name) for _, name in join.scan.variables]
    added = [F.col("_row")[_column(name)].alias(_column(name)) for name in names if name not in join.on]
    return met.select(*found, F.explode(F.filter(given, fits)).alias("_row")).select(*found, *added)


def _matching(scan: Scan, frame: DataFrame) -> DataFrame:
    """The rows of a relation that match a scan, one column for each variable it binds."""
    names = relation_columns(scan.predicate.arity)
    for position, text in scan.constants:
        frame = frame.where(F.col(names[position]) == F.lit(text))
    for first, later in scan.equal:
        frame = frame.where(F.col(names[first]) == F.col(names[later]))
    columns = [F.col(names[position]).alias(_column(name)) for position, name in scan.variables]
    return frame.select(*(columns or [F.lit(True).alias(UNIT)]))


def _column(name: str) -> str:
    """A column for each variable. Spark takes names that differ in case only for one, so which letters are great is
    said once more, as a number."""
    return f"v_{name}_{sum(1 << place for place, letter in enumerate(name) if letter.isupper()):x}"


def _value(term: Term) -> Column:
    match term:
        case Constant(value):
            return F.lit(value)
        case Variable(name):
            return F.col(_column(name))
        case Anonymous():
            raise AssertionError("a safe rule has no _ here")


def _ordered(column: Column, operator: str) -> Column:
    return column.desc() if operator in (">", ">=") else column.asc()


def _when_any(rows: DataFrame, condition: DataFrame, how: str) -> DataFrame:
    """The rows if the condition has a row (`left_semi`) or has none (`left_anti`)."""
    any_row = F.broadcast(condition.limit(1).select(F.lit(True).alias("_any")))
    return rows.join(any_row, on=F.lit(True), how=how)


def _passes(test: Test) -> Column:
    match test:
        case Unequal(left=left, right=right):
            return _value(left) != _value(right)
        case Compare(kind="int", left=left, operator=operator, right=right):
            return compare_integers(_value(left), operator, _value(right))
        case Compare(left=left, operator=operator, right=right):
            return compare_texts(_value(left), operator, _value(right))
        case TextShape(text=text, start=start, delimiters=delimiters, end=end):
            return text_shape(_value(text), _value(start), delimiters, None if end == _EMPTY else _value(end))
        case _:
            assert_never(test)
