"""One rule body over relations: joins, anti-joins, counts and filters on DataFrames.

Rule: a body is turned into one lazy DataFrame of head rows; nothing here runs a job.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Literal,
    Negated,
    Positive,
    Rule,
    Term,
    TextShape,
    Unequal,
    Variable,
)
from lace.spark.columns import compare_integers, compare_texts, count_holds, text_shape
from lace.spark.pivot import UNIT, relation_columns
from lace.spark.stars import variables


@dataclass(frozen=True, slots=True)
class Sized:
    """A frame with what is known of its length; checkpointed frames carry wrong estimates, so we count ourselves."""

    frame: DataFrame
    rows: int | None = None


@dataclass(frozen=True, slots=True)
class JoinSettings:
    """When a side of a join is small enough to be sent to every task."""

    broadcast_rows: int = 200_000


Reader = Callable[[int, Atom], Sized]


def head_rows(
    rule: Rule, read: Reader, settings: JoinSettings, *, unit: DataFrame, first: int | None = None
) -> DataFrame:
    """The rows that a rule derives; `read(position, atom)` gives the relation of the body literal at a position.

    `first` is the position to start from (the delta of a semi-naive round), `unit` a frame of one row for bodies that
    bind nothing; repeats are left in.
    """
    positives = [(i, x.atom) for i, x in enumerate(rule.body) if isinstance(x, Positive)]
    body = _Body(settings, None if positives else unit)
    pending: list[Literal] = [x for x in rule.body if isinstance(x, Unequal | Compare | TextShape)]
    for position, atom in _ordered(positives, read, first):
        body.join(atom, read(position, atom))
        pending = body.filter(pending)
    body.filter(pending)  # tests between constants, in a body without positive atoms
    for position, literal in enumerate(rule.body):
        match literal:
            case Negated(atom):
                body.exclude(atom, read(position, atom))
            case Cardinality(atom=atom, operator=operator, bound=bound):
                body.count(atom, read(position, atom), lambda n, o=operator, b=bound: count_holds(n, o, body.value(b)))
            case _:
                pass
    return body.project(rule.head.terms)


def _ordered(positives: list[tuple[int, Atom]], read: Reader, first: int | None) -> list[tuple[int, Atom]]:
    """Begin with the delta or the smallest relation, then always take an atom that shares a variable, smaller first."""
    left = list(positives)
    order: list[tuple[int, Atom]] = []
    bound: set[Variable] = set()

    def cost(entry: tuple[int, Atom]) -> tuple[bool, bool, int, int]:
        position, atom = entry
        rows = read(position, atom).rows
        apart = bool(order) and not bound.intersection(variables(Positive(atom)))
        return (position != first and not order, apart, 1 << 60 if rows is None else rows, position)

    while left:
        best = min(left, key=cost)
        left.remove(best)
        order.append(best)
        bound.update(variables(Positive(best[1])))
    return order


def atom_frame(atom: Atom, frame: DataFrame, keep: Sequence[Variable] | None = None) -> DataFrame:
    """The facts that match an atom, one column for each of its variables (or of `keep`)."""
    names = relation_columns(len(atom.terms))
    columns: dict[Variable, Column] = {}
    for term, name in zip(atom.terms, names, strict=False):
        match term:
            case Constant(value):
                frame = frame.where(F.col(name) == F.lit(value))
            case Variable() if term in columns:
                frame = frame.where(F.col(name) == columns[term])
            case Variable():
                columns[term] = F.col(name)
            case Anonymous():
                pass
    wanted = columns if keep is None else {variable: columns[variable] for variable in keep}
    return frame.select(*(column.alias(_column(v)) for v, column in wanted.items()), F.lit(True).alias(UNIT))


def _column(variable: Variable) -> str:
    return f"v_{variable.name}"


class _Body:
    """The bindings so far, one column for each bound variable."""

    def __init__(self, settings: JoinSettings, start: DataFrame | None) -> None:
        self.settings = settings
        self.frame = start
        self.bound: list[Variable] = []

    def value(self, term: Term) -> Column:
        match term:
            case Constant(value):
                return F.lit(value)
            case Variable():
                return F.col(_column(term))
            case Anonymous():
                raise AssertionError("a safe rule has no _ here")

    def join(self, atom: Atom, sized: Sized) -> None:
        matching = atom_frame(atom, sized.frame)
        new = list(dict.fromkeys(variables(Positive(atom))))
        if not new:  # the atom only asks whether there is a fact
            self.frame = matching.limit(1) if self.frame is None else self._when(self.frame, matching)
        elif not self.bound:
            rows = matching.drop(UNIT)
            self.frame = rows if self.frame is None else self._when(rows, self.frame)
        else:
            shared = [_column(v) for v in new if v in self.bound]
            other = self._hinted(matching.drop(UNIT), sized)
            self.frame = self._rows().join(other, on=shared) if shared else self._rows().crossJoin(other)
        self.bound.extend(v for v in new if v not in self.bound)

    @staticmethod
    def _when(rows: DataFrame, condition: DataFrame) -> DataFrame:
        """The rows if the condition has any row."""
        return rows.join(F.broadcast(condition.limit(1).withColumnRenamed(UNIT, "_any")), on=F.lit(True), how="left_semi")

    def exclude(self, atom: Atom, sized: Sized) -> None:
        """Without: drop the bindings for which the negated atom has a fact."""
        keys = [_column(v) for v in dict.fromkeys(variables(Negated(atom)))]
        matching = atom_frame(atom, sized.frame)
        if keys:
            self.frame = self._rows().join(self._hinted(matching.drop(UNIT), sized), on=keys, how="left_anti")
        else:
            any_fact = F.broadcast(matching.limit(1).withColumnRenamed(UNIT, "_any"))
            self.frame = self._rows().join(any_fact, on=F.lit(True), how="left_anti")

    def count(self, atom: Atom, sized: Sized, holds: Callable[[Column], Column]) -> None:
        """CountTest: a binding without any match counts 0 and is judged like every other."""
        shared = [v for v in dict.fromkeys(variables(Positive(atom))) if v in self.bound]
        matching = atom_frame(atom, sized.frame, keep=shared)
        keys = [_column(v) for v in shared]
        counts = matching.groupBy(*keys).agg(F.count(F.lit(1)).alias("_count"))
        if keys:
            counted = self._rows().join(counts, on=keys, how="left")
        else:
            counted = self._rows().crossJoin(F.broadcast(counts))
        self.frame = counted.where(holds(F.coalesce(F.col("_count"), F.lit(0)))).drop("_count")

    def filter(self, pending: list[Literal]) -> list[Literal]:
        """Apply every test whose variables are bound by now; give back the others."""
        left: list[Literal] = []
        for literal in pending:
            condition = self._condition(literal)
            if condition is None:
                left.append(literal)
            else:
                self.frame = self._rows().where(condition)
        return left

    def _condition(self, literal: Literal) -> Column | None:
        if not set(variables(literal)) <= set(self.bound):
            return None
        match literal:
            case Unequal(left=left, right=right):
                return self.value(left) != self.value(right)
            case Compare(kind="int", left=left, operator=operator, right=right):
                return compare_integers(self.value(left), operator, self.value(right))
            case Compare(left=left, operator=operator, right=right):
                return compare_texts(self.value(left), operator, self.value(right))
            case TextShape(text=text, start=start, delimiters=delimiters, end=end):
                return text_shape(self.value(text), self.value(start), delimiters, self.value(end))
            case _:
                return None

    def project(self, head: Sequence[Term]) -> DataFrame:
        names = relation_columns(len(head))
        values = [self.value(term).alias(name) for term, name in zip(head, names, strict=False)]
        return self._rows().select(*(values or [F.lit(True).alias(UNIT)]))

    def _rows(self) -> DataFrame:
        assert self.frame is not None, "a rule without positive atoms is seeded by the caller"
        return self.frame

    def _hinted(self, frame: DataFrame, sized: Sized) -> DataFrame:
        small = sized.rows is not None and sized.rows <= self.settings.broadcast_rows
        return F.broadcast(frame) if small else frame
