"""Rules that say of a claim what they say of a record (040, selectors).

Rule: this is read off the rules' texts, and when in doubt the answer is no. Where it is yes for both operands of a
plan, and neither side hides anything, a record that one side lists and the other does not is one that the other lacks
and would request; so both know what will be asked for as soon as they have seen both listings (070, taking).
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from lace.datalog.language.syntax import Atom, Literal, Positive, Predicate, Rule, Term, Variable
from lace.datalog.language.terms import literal_terms, map_terms
from lace.datalog.planning.stratify import reachable
from lace.facts.predicates import (
    ADVERTISED,
    ADVERTISED_FIELD,
    ADVERTISEMENT_PREDICATES,
    FIELD,
    HAVE,
    RECORD_PREDICATES,
    RUNTIME_PREDICATES,
    SELECT_ADVERTISED,
    SELECT_HAVE,
)
from lace.limits import KIB
from lace.policy.compile import ExchangePlan
from lace.policy.operand import Module
from lace.policy.parts import without_parts
from lace.policy.rewrite import atom_of, body_atoms, heads, map_atom
from lace.policy.transcript import Lowering

# What two sides may see differently at the same moment, and what is read of one record only where it is written out.
_GIVEN = frozenset((*RECORD_PREDICATES, *ADVERTISEMENT_PREDICATES, *RUNTIME_PREDICATES))
_SELECTED = frozenset((SELECT_HAVE, SELECT_ADVERTISED))
_MOST_CHARACTERS = 4 * KIB


def selects_alike(plan: ExchangePlan) -> bool:
    """Whether under a plan each record that a side may send is claimed so that a side that lacks it may request it."""
    is_standard = plan.lowering is Lowering.STANDARD  # another one reads who the peer is
    return is_standard and all(is_mirrored(operand.module) for operand in plan.operands)


def names_parts(plan: ExchangePlan) -> bool:
    """Whether an operand goes from manifests to their parts, and so asks for a part when its manifest is here."""
    return any(without_parts(operand.module.rules) != [*operand.module.rules] for operand in plan.operands)


def is_mirrored(module: Module) -> bool:
    """Whether SelectAdvertised is SelectHave, word for word, with claims in the place of a record's own facts, rules
    for the parts of manifests aside.

    Long texts are not looked at: a peer may have written them, and others wait meanwhile.
    """
    return len(module.text) <= _MOST_CHARACTERS and _is_mirrored(module)


@lru_cache(maxsize=128)  # the same few modules meet again and again
def _is_mirrored(module: Module) -> bool:
    rules = without_parts(module.rules)
    selecting = [rule for rule in rules if rule.head.predicate in _SELECTED]
    helpers = heads(rules).difference(_SELECTED).intersection(atom.predicate for atom in body_atoms(selecting))
    if not _GIVEN.isdisjoint(reachable(rules, helpers)):
        return False
    stored = [_of_record(rule, helpers) for rule in selecting if rule.head.predicate == SELECT_HAVE]
    claimed = [_of_claim(rule, helpers) for rule in selecting if rule.head.predicate == SELECT_ADVERTISED]
    return None not in stored and set(stored) == set(claimed)


def _of_record(rule: Rule, helpers: frozenset[Predicate]) -> Rule | None:
    """A rule of SelectHave as it reads with variables by number; None if it reads more than one record."""
    plain = _plain(rule, HAVE, FIELD, helpers)
    return None if plain is None else _numbered(plain)


def _of_claim(rule: Rule, helpers: frozenset[Predicate]) -> Rule | None:
    """A rule of SelectAdvertised likewise, with the claims of its source read as fields of the record."""
    record, source = rule.head.terms
    plain = _plain(rule, ADVERTISED, ADVERTISED_FIELD, helpers)
    if plain is None or not isinstance(source, Variable) or source == record:
        return None
    is_read = any(source in literal_terms(literal) for literal in plain.body)  # for more than whose claims they are
    return None if is_read else _numbered(plain)


def _plain(rule: Rule, whole: Predicate, field: Predicate, helpers: frozenset[Predicate]) -> Rule | None:
    """What a rule asks of the record that its head names, as fields of it; None if it reads anything else."""
    about = rule.head.terms  # the record, and the source of a claim
    body: list[Literal] = []
    for literal in rule.body:
        atom = atom_of(literal)
        if atom is None or atom.predicate in helpers:
            body.append(literal)
        elif atom.terms[: len(about)] != about:
            return None
        elif atom.predicate == field:
            body.append(map_atom(literal, lambda read: Atom(FIELD, (about[0], *read.terms[len(about) :]))))
        elif literal != Positive(Atom(whole, about)):  # that it is there follows from its being sent, or claimed
            return None
    return Rule(Atom(SELECT_HAVE, about[:1]), tuple(body))


def _numbered(rule: Rule) -> Rule:
    """The rule with its variables by the order in which they first stand."""
    names: dict[Variable, Variable] = {}

    def number(term: Term) -> Term:
        return names.setdefault(term, Variable(f"V{len(names)}")) if isinstance(term, Variable) else term

    head = replace(rule.head, terms=tuple(map(number, rule.head.terms)))
    return Rule(head, tuple(map_terms(literal, number) for literal in rule.body))
