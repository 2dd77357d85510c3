"""Small passes over rule trees that policy needs: read off atoms, rename predicates, substitute a variable (030 trees).

Rule: syntax in, syntax out; nothing here knows what a predicate means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from lace.datalog.language.syntax import Atom, Cardinality, Literal, Negated, Positive, Predicate, Rule, Term, Variable
from lace.datalog.language.terms import map_terms

Renaming = Callable[[Predicate], Predicate]


def atom_of(literal: Literal) -> Atom | None:
    """The predicate atom inside a body literal: positive, negated or counted."""
    return literal.atom if isinstance(literal, Positive | Negated | Cardinality) else None


def body_atoms(rules: Iterable[Rule]) -> Iterator[Atom]:
    """Every predicate atom in the bodies of rules."""
    for rule in rules:
        for literal in rule.body:
            atom = atom_of(literal)
            if atom is not None:
                yield atom


def heads(rules: Iterable[Rule]) -> frozenset[Predicate]:
    """The predicates that rules define."""
    return frozenset(rule.head.predicate for rule in rules)


def rename(rule: Rule, renaming: Renaming) -> Rule:
    """A rule with every predicate renamed, in the head and in all kinds of body atoms."""

    def renamed(atom: Atom) -> Atom:
        return replace(atom, predicate=renaming(atom.predicate))

    return replace(rule, head=renamed(rule.head), body=tuple(map_atom(literal, renamed) for literal in rule.body))


def scope(prefix: str, *, shared: Iterable[Predicate]) -> Renaming:
    """The renaming that makes every predicate private under a prefix, except the shared ones (040-SCOPE-01)."""
    kept = frozenset(shared)

    def renaming(predicate: Predicate) -> Predicate:
        return predicate if predicate in kept else Predicate(prefix + predicate.name, predicate.arity)

    return renaming


def substitute(rule: Rule, variable: Variable, value: Term) -> Rule:
    """A rule with a variable replaced throughout, head and body."""

    def put(term: Term) -> Term:
        return value if term == variable else term

    head = replace(rule.head, terms=tuple(map(put, rule.head.terms)))
    return replace(rule, head=head, body=tuple(map_terms(literal, put) for literal in rule.body))


def map_atom(literal: Literal, change: Callable[[Atom], Atom]) -> Literal:
    """A literal with its predicate atom changed, if it has one."""
    match literal:
        case Positive(atom):
            return Positive(change(atom))
        case Negated(atom):
            return Negated(change(atom))
        case Cardinality():
            return replace(literal, atom=change(literal.atom))
        case _:
            return literal
