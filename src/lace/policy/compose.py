"""Several selectors into the one operand that a lace presents (040-TERM-05), and several exposures into a wider one.

Rule: each part keeps its meaning: its predicates, exported ones included, get names of their own before the parts are
joined, and the result passes the same door as any authored module.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lace.datalog.syntax import Atom, Positive, Predicate, Rule, Variable
from lace.errors import InvalidExchangePlan
from lace.facts.predicates import ALLOW_QUERY_RECORD, SELECT_ADVERTISED, SELECT_HAVE
from lace.limits import EngineLimits
from lace.policy.exposure import Exposure
from lace.policy.operand import BASE_PREDICATES, Module
from lace.policy.rewrite import body_atoms, rename, scope

_TERMS = {SELECT_HAVE: (Variable("P"),), SELECT_ADVERTISED: (Variable("P"), Variable("S"))}
_DEFAULT_LIMITS = EngineLimits()


def union(modules: Sequence[Module], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """The operand that selects what any of the modules selects."""
    if len(modules) == 1:
        return modules[0]
    rules, scoped = _scoped_parts([module.rules for module in modules])
    for exported in _TERMS:
        rules += [_rule(exported, [renamed[exported]]) for renamed in scoped]
    return Module.of_rules(rules, limits=limits)


def intersection(modules: Sequence[Module], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """The operand that selects what every one of the modules selects."""
    if len(modules) == 1:
        return modules[0]
    rules, scoped = _scoped_parts([module.rules for module in modules])
    for exported in _TERMS:
        rules.append(_rule(exported, [renamed[exported] for renamed in scoped]))
    return Module.of_rules(rules, limits=limits)


def wider_exposure(exposures: Sequence[Exposure], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Exposure:
    """One exposure that allows what any of these allows; the only way to widen a view (040-COMP-07, 040-COMP-08).

    The viewer of a rule is found by its head (P9), so AllowQueryRecord keeps its name, and a part that reads it back
    would see the others' grants: such a part is refused.
    """
    if len(exposures) == 1:
        return exposures[0]
    for exposure in exposures:
        if any(atom.predicate == ALLOW_QUERY_RECORD for atom in body_atoms(exposure.program.rules)):
            message = f"an exposure that reads {ALLOW_QUERY_RECORD} cannot be joined with another"
            raise InvalidExchangePlan(message, rule="compose-recursive-exposure", place=exposure.id)
    rules, _ = _scoped_parts([exposure.program.rules for exposure in exposures], kept=(ALLOW_QUERY_RECORD,))
    return Exposure.of_rules(rules, limits=limits)


_Exports = dict[Predicate, Predicate]


def _scoped_parts(
    parts: Sequence[Iterable[Rule]], *, kept: Iterable[Predicate] = ()
) -> tuple[list[Rule], list[_Exports]]:
    """The rules of every part under `s1_`, `s2_`, …, and what each part's exports are called there."""
    if not parts:
        raise InvalidExchangePlan("there is nothing to compose", rule="compose-empty")
    rules: list[Rule] = []
    exports: list[_Exports] = []
    for number, part in enumerate(parts, start=1):
        scoped = scope(f"s{number}_", shared=(*BASE_PREDICATES, *kept))
        rules += [rename(rule, scoped) for rule in part]
        exports.append({exported: scoped(exported) for exported in _TERMS})
    return rules, exports


def _rule(exported: Predicate, parts: Iterable[Predicate]) -> Rule:
    terms = _TERMS[exported]
    return Rule(Atom(exported, terms), tuple(Positive(Atom(part, terms)) for part in parts))
