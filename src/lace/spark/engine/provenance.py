"""What an evaluation over frames came to: its frames, how they were worked out, and why each row is there.

Rule: a reason is an instance of a rule over what is derived in the end, so it can be checked by reading it. Every
reason of every row is there, each once; a row of a recursive rule may have reasons that rest on itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.datalog.goals import column_names
from lace.datalog.language.formatting import format_rule
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Constant,
    Literal,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.validate import CheckedProgram, check_program
from lace.errors import InvalidInput
from lace.limits import EngineLimits
from lace.spark.engine.executor import SparkEvaluation, SparkSettings
from lace.spark.engine.executor import evaluate as run_checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PREMISES = "array<struct<relation:string,terms:array<string>>>"


class EvaluatedFrames(dict[str, DataFrame]):
    """A frame for each predicate that was asked for, by its name."""

    def __init__(
        self,
        frames: Mapping[str, DataFrame],
        checked: CheckedProgram,
        given: Mapping[Predicate, DataFrame],
        found: SparkEvaluation,
        records: DataFrame | None,
        limits: EngineLimits,
        settings: SparkSettings | None,
        spark: SparkSession,
    ) -> None:
        super().__init__(frames)
        self._checked = checked
        self._given = given
        self._found = found
        self._records = records
        self._limits = limits
        self._settings = settings
        self._spark = spark

    def explain(self) -> str:
        """How it was worked out, stratum by stratum: where, in how many rounds, and the plan of what is left lazy."""
        lines = [f"{number}. {step}" for number, step in enumerate(self._found.steps, 1)]
        return "\n".join(lines) if lines else "nothing was derived"

    def why(self, name: str) -> DataFrame:
        """The reasons for the rows of a predicate: its columns, then `rule` and `premises`.

        A premise is a relation and its terms; what a rule denies, counts or compares is no premise, it is in the rule.
        """
        rules = [rule for rule in self._checked.program.rules if rule.head.predicate.name == name]
        if name not in self or not rules:
            known = ", ".join(sorted(self)) or "none"
            what = f"{name}; there is {known}"
            raise InvalidInput("nothing of that name was derived", rule="why-relation", found=what)
        derived = {predicate: self._found.relations[predicate].frame for predicate in self._found.relations}
        base = {**self._given, **derived}
        parts = [self._reasons(rule, number, base) for number, rule in enumerate(rules)]
        return reduce(DataFrame.unionByName, parts)

    def _reasons(self, rule: Rule, number: int, base: Mapping[Predicate, DataFrame]) -> DataFrame:
        body, premises = _named(rule)
        variables = list(dict.fromkeys(_variables([rule.head, *premises])))
        instance = Predicate(f"Reason{number}", len(variables))
        while instance in base:
            instance = Predicate(f"{instance.name}x", instance.arity)
        program = Program((replace(rule, head=Atom(instance, tuple(variables)), body=body),))
        limits = replace(self._limits, max_tuple_arity=max(self._limits.max_tuple_arity, len(variables)))
        checked = check_program(program, self._checked.profile.with_base(base), limits)
        found = run_checked(
            checked, base, spark=self._spark, records=self._records, limits=limits, settings=self._settings
        ).frame(instance)
        places = {variable: F.col(f"c{place}") for place, variable in enumerate(variables)}
        head = [
            _value(term, places).alias(column)
            for term, column in zip(rule.head.terms, column_names(self._head(rule)), strict=False)
        ]
        told = [
            F.struct(
                F.lit(atom.predicate.name).alias("relation"),
                F.array(*(_value(term, places) for term in atom.terms)).cast("array<string>").alias("terms"),
            )
            for atom in premises
        ]
        return found.select(
            *head, F.lit(format_rule(rule)).alias("rule"), F.array(*told).cast(_PREMISES).alias("premises")
        )

    def _head(self, rule: Rule) -> Atom:
        """The head by which the frame's columns are named: that of the first rule."""
        return next(one.head for one in self._checked.program.rules if one.head.predicate == rule.head.predicate)


def _named(rule: Rule) -> tuple[tuple[Literal, ...], list[Atom]]:
    """A body whose premises have names in the place of `_`, and the premises."""
    taken = {variable.name for variable in _variables([rule.head, *(_atoms(rule))])}
    fresh = (Variable(name) for number in range(1 << 16) if (name := f"Any{number}") not in taken)
    body: list[Literal] = []
    premises: list[Atom] = []
    for literal in rule.body:
        if isinstance(literal, Positive):
            terms = tuple(next(fresh) if isinstance(term, Anonymous) else term for term in literal.atom.terms)
            premises.append(replace(literal.atom, terms=terms))
            body.append(Positive(premises[-1]))
        else:
            body.append(literal)
    return tuple(body), premises


def _atoms(rule: Rule) -> Iterable[Atom]:
    return (atom for literal in rule.body if isinstance(atom := getattr(literal, "atom", None), Atom))


def _variables(atoms: Sequence[Atom]) -> Iterable[Variable]:
    return (term for atom in atoms for term in atom.terms if isinstance(term, Variable))


def _value(term: Term, places: Mapping[Variable, Column]) -> Column:
    if isinstance(term, Constant):
        return F.lit(term.value)
    assert isinstance(term, Variable)  # a head has no `_`, and premises were given names
    return places[term]
