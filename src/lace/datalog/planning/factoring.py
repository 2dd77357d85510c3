"""Goals over right-linear recursions (030-EVAL-04): walk from the asked values, and collect what is found at the ends.

Rule: the rewritten program derives exactly the facts that match the goal; where that is not plain from the form of the
rules, they are left as they are.

`Needs(A,C) :- Depends(A,B), Needs(B,C)` with A asked for hands C on untouched. So every value of C found for a value
that the walk reaches is an answer for the value it started from, and the pairs between them need not be derived: a
walk takes as long as what it reaches, the pairs as long as the square of that.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lace.datalog.language.syntax import (
    Atom,
    Constant,
    Fact,
    Literal,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.terms import names_among, variable_names
from lace.datalog.language.validate import CheckedProgram, rewritten
from lace.datalog.planning.adornment import CopyNames, Places, constants
from lace.datalog.planning.stratify import read_atom
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class WalkProgram:
    """A program that answers one goal by walking."""

    checked: CheckedProgram
    answer: Predicate  # its facts are those that match the goal
    reached: Predicate  # the values that the walk comes to
    start: Fact  # to be given as a base fact


def as_walk(checked: CheckedProgram, goal: Atom, facts: Iterable[Predicate]) -> WalkProgram | None:
    """The program for a goal with constants over some facts, if every recursive rule hands the free places on."""
    bound = tuple(n for n, term in enumerate(goal.terms) if isinstance(term, Constant))
    if not bound or not _recurs_alone(checked, goal.predicate):
        return None
    own = [rule for rule in checked.program.rules if rule.head.predicate == goal.predicate]
    steps = {rule: _recursive_literal(rule, bound) for rule in own if _reads_itself(rule)}
    if None in steps.values():
        return None
    made = CopyNames(checked.program, [goal], facts)
    reached, given = made.asked(goal.predicate, bound), made.given(goal.predicate, bound)
    ends = made.ends(goal.predicate, bound)
    names: tuple[Term, ...] = tuple(Variable(f"V{n}") for n in bound)
    rules = [Rule(Atom(reached, names), (Positive(Atom(given, names)),))]
    for rule in own:
        asked = Positive(_part(rule.head, reached, bound))
        literal = steps.get(rule)
        if literal is None:
            rules.append(replace(rule, head=_part(rule.head, ends, _free(rule.head, bound)), body=(asked, *rule.body)))
        else:
            rest = tuple(other for other in rule.body if other is not literal)
            rules.append(replace(rule, head=_part(literal.atom, reached, bound), body=(asked, *rest)))
    answer = made.answers(goal.predicate)
    shown = Atom(answer, tuple(made.named(goal.terms)))
    rules.append(Rule(shown, (Positive(_part(shown, ends, _free(shown, bound))),)))
    others = [rule for rule in checked.program.rules if rule.head.predicate != goal.predicate]
    program = Program((*rules, *others), checked.program.source)
    return WalkProgram(rewritten(program, checked.profile), answer, reached, Fact(given, constants(goal)))


def _recurs_alone(checked: CheckedProgram, predicate: Predicate) -> bool:
    return any(stratum.recursive and stratum.predicates == (predicate,) for stratum in checked.strata)


def _reads_itself(rule: Rule) -> bool:
    return any(found is not None and found[0].predicate == rule.head.predicate for found in map(read_atom, rule.body))


def _free(atom: Atom, bound: Places) -> Places:
    return tuple(n for n in range(len(atom.terms)) if n not in bound)


def _part(atom: Atom, predicate: Predicate, places: Places) -> Atom:
    return Atom(predicate, tuple(atom.terms[n] for n in places))


def _recursive_literal(rule: Rule, bound: Places) -> Positive | None:
    """The one literal to which a rule hands its free places on, if it does nothing else with them."""
    recursive = [lit for lit in rule.body if isinstance(lit, Positive) and lit.atom.predicate == rule.head.predicate]
    if len(recursive) != 1:
        return None
    (literal,) = recursive
    rest = [other for other in rule.body if other is not literal]
    free = _free(rule.head, bound)
    handed = [rule.head.terms[n] for n in free]
    elsewhere = {name for other in rest for name in variable_names(other)}
    elsewhere.update(names_among(rule.head.terms[n] for n in bound))
    known = elsewhere.intersection(_bound_names(rest)).union(names_among(rule.head.terms[n] for n in bound))
    asked = [literal.atom.terms[n] for n in bound]
    same = handed == [literal.atom.terms[n] for n in free]
    apart = len(set(names_among(handed))) == len(handed) and elsewhere.isdisjoint(names_among(handed))
    safe = all(isinstance(t, Constant) or (isinstance(t, Variable) and t.name in known) for t in asked)
    return literal if same and apart and safe else None


def _bound_names(literals: list[Literal]) -> set[str]:
    return {name for literal in literals if isinstance(literal, Positive) for name in variable_names(literal)}
