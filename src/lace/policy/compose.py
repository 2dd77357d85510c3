"""Several selectors into the one operand that a lace presents (040-TERM-05).

Rule: each part keeps its meaning: its predicates, exported ones included, get names of their own before the parts are
joined, and the result passes the same door as any authored module.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.datalog.language.syntax import Atom, Positive, Rule, Variable
from lace.errors import InvalidExchangePlan
from lace.facts.predicates import SELECT_ADVERTISED, SELECT_HAVE
from lace.limits import EngineLimits
from lace.policy.operand import BASE_PREDICATES, Module
from lace.policy.rewrite import body_atoms, rename, scope

_TERMS = {SELECT_HAVE: (Variable("P"),), SELECT_ADVERTISED: (Variable("P"), Variable("S"))}
_DEFAULT_LIMITS = EngineLimits()


def union(modules: Sequence[Module], *, limits: EngineLimits = _DEFAULT_LIMITS) -> Module:
    """The operand that selects what any of the modules selects."""
    if not modules:
        raise InvalidExchangePlan("there is nothing to compose", rule="compose-empty")
    if len(modules) == 1:
        return modules[0]
    rules: list[Rule] = []
    for number, module in enumerate(modules, start=1):
        read_back = not {atom.predicate for atom in body_atoms(module.rules)}.isdisjoint(_TERMS)
        scoped = scope(f"s{number}_", shared=(*BASE_PREDICATES, *(() if read_back else _TERMS)))
        rules += [rename(rule, scoped) for rule in module.rules]
        if read_back:  # a part that reads its own selection keeps it apart, or it would read the others' too
            rules += [
                Rule(Atom(exported, terms), (Positive(Atom(scoped(exported), terms)),))
                for exported, terms in _TERMS.items()
            ]
    return Module.of_rules(rules, limits=limits)
