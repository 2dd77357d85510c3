"""The naive evaluator (030): the oracle that every other executor is measured against.

Rule: small enough to be seen to be right. Each round applies every rule of a stratum to all facts known before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from lace.datalog.admission import admit_source, check_fact
from lace.datalog.binding import Binding, match, value_of
from lace.datalog.language.comparisons import cardinality_holds, compare, text_shape
from lace.datalog.language.syntax import (
    Atom,
    Cardinality,
    Compare,
    Fact,
    Literal,
    Negated,
    Positive,
    Predicate,
    Rule,
    TextShape,
    TrueLiteral,
    Unequal,
)
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.planning.stratify import Stratum, read_atom
from lace.datalog.source import FactSource, MemorySource, Row
from lace.errors import LimitExceeded
from lace.limits import EngineLimits

Relations = dict[Predicate, set[Row]]
_DEFAULT_LIMITS = EngineLimits()


def evaluate(
    checked: CheckedProgram,
    facts: FactSource | Iterable[Fact],
    limits: EngineLimits = _DEFAULT_LIMITS,
    goals: Iterable[Atom] | None = None,
) -> Relations:
    """Every derived predicate with its facts; with goals, only the facts that match one of them."""
    source: FactSource = MemorySource(facts) if isinstance(facts, Iterable) else facts
    admit_source(checked, source, limits)
    known: Relations = {}
    for predicate in sorted(checked.base):
        known[predicate] = set(source.iterate(predicate))
        for row in sorted(known[predicate]):
            check_fact(Fact(predicate, row), limits)
    for stratum in checked.strata:
        _complete(stratum, known, limits)
    derived = {predicate: known[predicate] for predicate in sorted(checked.derived)}
    return derived if goals is None else _matching(derived, goals)


def _matching(derived: Relations, goals: Iterable[Atom]) -> Relations:
    found: Relations = {}
    for goal in goals:
        rows = {row for row in derived.get(goal.predicate, ()) if match(goal, row, {}) is not None}
        found[goal.predicate] = found.get(goal.predicate, set()) | rows
    return found


def _complete(stratum: Stratum, known: Relations, limits: EngineLimits) -> None:
    """Apply the rules of a stratum round by round until a round adds nothing (030-EVAL-03)."""
    for predicate in stratum.predicates:
        known[predicate] = set()
    rounds = 0
    while True:
        added = {predicate: _derive(predicate, stratum, known, limits) for predicate in stratum.predicates}
        if all(rows <= known[predicate] for predicate, rows in added.items()):
            return  # 030-LIM-06: the round that adds nothing is not counted
        rounds += 1
        if rounds > limits.max_stratum_iterations:
            raise LimitExceeded("max_stratum_iterations", limits.max_stratum_iterations, str(stratum.predicates[0]))
        for predicate, rows in added.items():
            known[predicate] |= rows
        if not _reads_itself(stratum):
            return  # another round would see nothing new


def _reads_itself(stratum: Stratum) -> bool:
    """Whether what a round adds can make the next one add more; read off the rules, whatever the stratum says."""
    read = (read_atom(literal) for rule in stratum.rules for literal in rule.body)
    return any(found[0].predicate in stratum.predicates for found in read if found is not None)


def _derive(predicate: Predicate, stratum: Stratum, known: Relations, limits: EngineLimits) -> set[Row]:
    rows: set[Row] = set()
    for rule in stratum.rules:
        if rule.head.predicate == predicate:
            for binding in bindings(rule, known):
                rows.add(tuple(value_of(term, binding) for term in rule.head.terms))
                if len(rows) > limits.max_derived_facts_per_predicate:  # 030-LIM-04
                    limit = "max_derived_facts_per_predicate"
                    raise LimitExceeded(limit, limits.max_derived_facts_per_predicate, str(predicate))
    return rows


def bindings(rule: Rule, known: Mapping[Predicate, set[Row]]) -> Iterator[Binding]:
    """Every assignment of the rule's variables under which its whole body holds."""
    positive = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    tests = [literal for literal in rule.body if not isinstance(literal, Positive)]  # the join made the others true
    for binding in _joined(positive, known):
        if all(holds(literal, binding, known) for literal in tests):
            yield binding


def _joined(atoms: list[Atom], known: Mapping[Predicate, set[Row]]) -> Iterator[Binding]:
    """Every union of one binding per atom in which no two disagree."""
    if not atoms:
        yield {}
        return
    *first, last = atoms
    found = [alone for row in known.get(last.predicate, ()) if (alone := match(last, row, {})) is not None]
    for binding in _joined(first, known) if found else ():
        for alone in found:
            for name, value in alone.items():
                if binding.get(name, value) != value:
                    break
            else:
                yield binding | alone


def holds(literal: Literal, binding: Binding, known: Mapping[Predicate, set[Row]]) -> bool:
    """Whether a body atom is true under a binding of all the rule's safe variables."""
    match literal:
        case Positive(atom):
            return _count(atom, binding, known) > 0
        case Negated(atom):
            return _count(atom, binding, known) == 0
        case Cardinality(atom, operator, bound):
            return cardinality_holds(_count(atom, binding, known), operator, value_of(bound, binding))
        case Unequal(left, right):
            return value_of(left, binding) != value_of(right, binding)
        case Compare(kind, left, operator, right):
            return compare(kind, value_of(left, binding), operator, value_of(right, binding))
        case TextShape(text, start, delimiters, end):
            shape = (value_of(text, binding), value_of(start, binding), delimiters, value_of(end, binding))
            return text_shape(*shape)
        case TrueLiteral():
            return True
        case _:
            assert_never(literal)


def _count(atom: Atom, binding: Binding, known: Mapping[Predicate, set[Row]]) -> int:
    return sum(match(atom, row, binding) is not None for row in known.get(atom.predicate, ()))
