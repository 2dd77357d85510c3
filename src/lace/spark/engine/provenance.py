"""Why rows were derived: every derivation as a frame, or one fact's proof, from frames that were evaluated already.

Rule: nothing is derived again. A derivation is a rule whose body holds in the relations as they are; a proof asks them
for a few rows at a time and is searched as everywhere (`lace.datalog.explain`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.explain.absence import why_not
from lace.datalog.explain.explanation import Explanation
from lace.datalog.explain.known import Known, Pattern, RowIndex
from lace.datalog.explain.proof import why
from lace.datalog.goals import column_names, require_known
from lace.datalog.language.annotations import Sidecar
from lace.datalog.language.formatting import format_literal, format_rule
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Constant,
    Fact,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.terms import names_among
from lace.datalog.language.validate import CheckedProgram, rewritten
from lace.datalog.planning.names import PredicateNames, VariableNames
from lace.datalog.source import Row
from lace.errors import InvalidInput, LimitExceeded, NotFound
from lace.limits import EngineLimits, ExplainLimits
from lace.spark.engine.executor import SparkEvaluation, SparkSettings
from lace.spark.engine.executor import evaluate as run_checked
from lace.spark.engine.pivot import UNIT, relation_columns
from lace.spark.engine.plans import Sized
from lace.spark.engine.relations import collect_rows, union
from lace.spark.jobs.facts import narrow_facts
from lace.values import dataclass

_MADE_FOR = "derivations"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeEvaluation:
    """An evaluation, and what it was an evaluation of."""

    spark: SparkSession
    checked: CheckedProgram
    given: Mapping[Predicate, DataFrame]
    records: DataFrame | None
    found: SparkEvaluation
    limits: EngineLimits
    settings: SparkSettings
    annotations: Sidecar

    @property
    def relations(self) -> dict[Predicate, DataFrame | Sized]:
        """Everything that holds, facts of records left out."""
        return {**self.given, **self.found.relations}


def derivations(of: WholeEvaluation, predicate: Predicate) -> DataFrame:
    """Each way in which each row of a predicate is derived: the row, `rule`, and `premises` as an array of texts.

    A premise is a fact, or a negated atom that has none. Rows of recursive rules may stand on each other in circles
    here; a proof never does.
    """
    rules = [rule for rule in of.checked.program.rules if rule.head.predicate == predicate]
    names = column_names(rules[0].head)
    return union([_derivations_by(of, rule, names) for rule in rules])


def _derivations_by(of: WholeEvaluation, rule: Rule, names: tuple[str, ...]) -> DataFrame:
    full = _with_names(rule)
    held = list(dict.fromkeys(name for x in full.body if isinstance(x, Positive) for name in names_among(x.atom.terms)))
    made = PredicateNames(of.checked.program, of.given).made_for(rule.head.predicate, _MADE_FOR, len(held))
    asked = Program((Rule(Atom(made, tuple(map(Variable, held))), full.body),))
    checked = rewritten(asked, of.checked.profile.with_base(of.relations))
    found = run_checked(
        checked,
        of.relations,
        spark=of.spark,
        records=of.records,
        goals=[made],
        limits=replace(of.limits, max_derived_facts_per_predicate=of.limits.max_working_rows),
        settings=of.settings,
        written=of.checked.program,
    )
    columns = dict(zip(held, map(F.col, relation_columns(len(held))), strict=False))
    values = [_value(term, columns).alias(name) for term, name in zip(rule.head.terms, names, strict=True)]
    premises = [_said(literal, columns) for literal in full.body if isinstance(literal, Positive | Negated)]
    said = F.array(*premises) if premises else F.array().cast("array<string>")
    return found.frame(made).select(*values, F.lit(format_rule(rule)).alias("rule"), said.alias("premises"))


def _with_names(rule: Rule) -> Rule:
    """The rule with a variable for each `_` of a positive atom: a premise is a whole fact."""
    names = VariableNames.beside(rule)

    def named(literal: Literal) -> Literal:
        if not isinstance(literal, Positive):
            return literal
        terms = (names.fresh("_any") if isinstance(term, Anonymous) else term for term in literal.atom.terms)
        return Positive(Atom(literal.atom.predicate, tuple(terms)))

    return Rule(rule.head, tuple(map(named, rule.body)))


def _value(term: Term, columns: Mapping[str, Column]) -> Column:
    assert not isinstance(term, Anonymous)
    return F.lit(term.value) if isinstance(term, Constant) else columns[term.name]


def _said(literal: Positive | Negated, columns: Mapping[str, Column]) -> Column:
    """A literal as rules write it, with the values of a row."""
    parts: list[Column] = []
    for place, term in enumerate(literal.atom.terms):
        parts.append(F.lit("," if place else ""))
        parts.append(F.lit("_") if isinstance(term, Anonymous) else _quoted(_value(term, columns)))
    start = format_literal(type(literal)(Atom(Predicate(literal.atom.predicate.name, 0), ())))[:-1]
    return F.concat(F.lit(start), *parts, F.lit(")"))


def _quoted(value: Column) -> Column:
    """P1, as `lace.notation.text.quote`."""
    doubled = F.replace(value, F.lit("\\"), F.lit("\\\\"))
    return F.concat(F.lit("'"), F.replace(doubled, F.lit("'"), F.lit("\\'")), F.lit("'"))


def explained(of: WholeEvaluation, goal: str) -> Explanation:
    """The proof of the first fact that matches a goal, or why none does."""
    atom = parse_atom(goal, limits=of.limits)
    frames = _Frames(of)
    require_known(atom, of.checked, frozenset(frames.predicates()))
    known = Known(of.checked, frames, frames, index_after=of.settings.small_rows)
    row = known.first(atom)
    if row is None:
        return Explanation(why_not(known, atom, ExplainLimits()), of.annotations)
    return Explanation(why(known, Fact(atom.predicate, row), ExplainLimits()), of.annotations)


class _Frames:
    """The relations as an explanation reads them: short ones whole and once, of long ones the rows with some values."""

    def __init__(self, of: WholeEvaluation) -> None:
        self._of = of
        self._most = max(of.settings.small_rows, of.settings.lookup_rows)
        self._sizes: dict[Predicate, int] = {}
        self._whole: dict[Predicate, RowIndex] = {}
        self._asked: dict[tuple[Predicate, Pattern], list[Row]] = {}

    @cached_property
    def _frame(self) -> dict[Predicate, DataFrame]:
        frames = {} if self._of.records is None else _as_relations(narrow_facts(self._of.records))
        return {
            **frames,
            **_as_relations(self._of.given),
            **{predicate: sized.frame for predicate, sized in self._of.found.relations.items()},
        }

    def predicates(self) -> Iterable[Predicate]:
        return self._frame

    def count(self, predicate: Predicate) -> int:
        if predicate not in self._sizes:
            known = self._of.found.relations.get(predicate)
            rows = None if known is None else known.rows
            frame = self._frame.get(predicate)
            self._sizes[predicate] = rows if rows is not None else 0 if frame is None else frame.count()
        return self._sizes[predicate]

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return self.rows(predicate, (None,) * predicate.arity)

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        return self.rows(predicate, (*values, *(None for _ in range(predicate.arity - len(values)))))

    def first(self, goal: Atom) -> Row | None:
        """The fact that matches a goal and comes first in text order."""
        pattern = tuple(term.value if isinstance(term, Constant) else None for term in goal.terms)
        first: dict[str, int] = {}
        equal = [
            (first[term.name], place)
            for place, term in enumerate(goal.terms)
            if isinstance(term, Variable) and first.setdefault(term.name, place) != place
        ]
        names = relation_columns(goal.predicate.arity)
        frame = self._matching(goal.predicate, pattern)
        if frame is None:
            return None
        for one, other in equal:
            frame = frame.where(F.col(names[one]) == F.col(names[other]))
        return next(iter(collect_rows(frame.orderBy(*names).limit(1), goal.predicate.arity)), None)

    def rows(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """Every fact of a predicate that has the given values, in text order."""
        if self.count(predicate) <= self._of.settings.small_rows:
            if predicate not in self._whole:
                self._whole[predicate] = RowIndex(self._collected(predicate, (None,) * predicate.arity))
            return self._whole[predicate].find(pattern)
        key = predicate, pattern
        if key not in self._asked:
            self._asked[key] = sorted(self._collected(predicate, pattern))
        return iter(self._asked[key])

    def found(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """All that holds was derived."""
        return self.rows(predicate, pattern)

    def glance(self, predicate: Predicate, pattern: Pattern) -> Row | None:
        """The first of them."""
        return next(self.rows(predicate, pattern), None)

    def prepare(self, predicate: Predicate, patterns: Iterable[Pattern]) -> None:
        """Nothing: all of it is derived."""

    def _matching(self, predicate: Predicate, pattern: Pattern) -> DataFrame | None:
        frame = self._frame.get(predicate)
        if frame is None:
            return None
        for name, value in zip(relation_columns(predicate.arity), pattern, strict=False):
            if value is not None:
                frame = frame.where(F.col(name) == F.lit(value))
        return frame

    def _collected(self, predicate: Predicate, pattern: Pattern) -> list[Row]:
        frame = self._matching(predicate, pattern)
        rows = [] if frame is None else list(collect_rows(frame.limit(self._most + 1), predicate.arity))
        if len(rows) > self._most:
            what = f"rows of {predicate} brought to the driver for one step of an explanation"
            raise LimitExceeded("SparkSettings.lookup_rows", self._most, what)
        return rows


def _as_relations(frames: Mapping[Predicate, DataFrame]) -> dict[Predicate, DataFrame]:
    """Frames of facts with the columns of relations."""
    return {
        predicate: frame.toDF(*(relation_columns(predicate.arity)))
        .select(*(F.col(name).cast("string").alias(name) for name in relation_columns(predicate.arity)))
        .distinct()
        if predicate.arity
        else frame.select(F.lit(True).alias(UNIT)).limit(1)
        for predicate, frame in frames.items()
    }


def one_predicate(of: WholeEvaluation, name: str) -> Predicate:
    """The derived predicate of a name."""
    found = sorted(predicate for predicate in of.checked.derived if predicate.name == name)
    if not found:
        heads = ", ".join(sorted(predicate.name for predicate in of.checked.derived))
        raise NotFound(f"the rules derive no {name}: they derive {heads}")
    if len(found) > 1:
        raise InvalidInput(f"several predicates are called {name}: {', '.join(map(str, found))}", rule="derivations")
    return found[0]
