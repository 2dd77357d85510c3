"""Several selectors into the one operand that a lace presents (040-TERM-05), and several exposures into a wider one.

Rule: each part keeps its meaning: its predicates, exported ones included, get names of their own before the parts are
joined, and the result passes the same door as any authored module.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    rules: list[Rule] = []
    for prefix, part in _parts([module.rules for module in modules]):
        read_back = not {atom.predicate for atom in body_atoms(part)}.isdisjoint(_TERMS)
        scoped = scope(prefix, shared=(*BASE_PREDICATES, *(() if read_back else _TERMS)))
        rules += [rename(rule, scoped) for rule in part]
        # A part that reads its own selection keeps it apart, or it would read the others' too.
        rules += [_rule(exported, [scoped(exported)]) for exported in _TERMS if read_back]
    return Module.of_rules(rules, limits=limits)


def intersection(modules: Sequence[Module], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """The operand that selects what every one of the modules selects."""
    if len(modules) == 1:
        return modules[0]
    rules: list[Rule] = []
    selections: dict[Predicate, list[Predicate]] = {exported: [] for exported in _TERMS}
    for prefix, part in _parts([module.rules for module in modules]):
        scoped = scope(prefix, shared=BASE_PREDICATES)
        rules += [rename(rule, scoped) for rule in part]
        for exported, selected in selections.items():
            selected.append(scoped(exported))
    rules += [_rule(exported, selected) for exported, selected in selections.items()]
    return Module.of_rules(rules, limits=limits)


def wider_exposure(exposures: Sequence[Exposure], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Exposure:
    """One exposure that allows what any of these allows; the only way to widen a view (040-COMP-07, 040-COMP-08).

    The viewer of a rule is found by its head (P9), so AllowQueryRecord keeps its name, and a part that reads it back
    would see the others' grants: such a part is refused.
    """
    if len(exposures) == 1:
        return exposures[0]
    rules: list[Rule] = []
    for prefix, part in _parts([exposure.program.rules for exposure in exposures]):
        if any(atom.predicate == ALLOW_QUERY_RECORD for atom in body_atoms(part)):
            message = f"an exposure that reads {ALLOW_QUERY_RECORD} cannot be joined with another"
            raise InvalidExchangePlan(message, rule="compose-recursive-exposure")
        rules += [rename(rule, scope(prefix, shared=(*BASE_PREDICATES, ALLOW_QUERY_RECORD))) for rule in part]
    return Exposure.of_rules(rules, limits=limits)


def _parts(parts: Sequence[tuple[Rule, ...]]) -> Iterator[tuple[str, tuple[Rule, ...]]]:
    """Each part with the prefix of its scope: `s1_`, `s2_`, …"""
    if not parts:
        raise InvalidExchangePlan("there is nothing to compose", rule="compose-empty")
    for number, part in enumerate(parts, start=1):
        yield f"s{number}_", part


def _rule(exported: Predicate, parts: Iterable[Predicate]) -> Rule:
    terms = _TERMS[exported]
    return Rule(Atom(exported, terms), tuple(Positive(Atom(part, terms)) for part in parts))
