"""What changes in a stratum when its inputs change, said as rules (030).

Rule: pure syntax. A program made here reads the inputs as they are now and what came and went in them, and derives what
came and what went in the stratum's own relations: exactly the difference to an evaluation from scratch.

Three ways, the first that fits. *Growth*: inputs only grew and are read positively, so new facts rest on a new row
(semi-naive). *Doubt*: without recursion, every fact that a changed row can touch is looked at again, under negation and
counting too, and when rows went. *Anew*: the stratum is derived whole and compared with what was stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Literal as Choice

from lace.datalog.language.syntax import (
    Atom,
    Cardinality,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    TrueLiteral,
    Variable,
)
from lace.datalog.planning.names import MARK
from lace.datalog.planning.stratify import Stratum, read_atom
from lace.values import dataclass

How = Choice["growth", "doubt", "anew"]
_MOST_RECURSIVE_ATOMS = 3  # of one rule; each may read old or new facts, so rules double with every one


def came(predicate: Predicate) -> Predicate:
    """The rows that a relation has now and did not have."""
    return _named("came", predicate)


def went(predicate: Predicate) -> Predicate:
    """The rows that a relation had and has no more."""
    return _named("went", predicate)


def was(predicate: Predicate) -> Predicate:
    """The rows that a relation had, as they were stored."""
    return _named("was", predicate)


def ever(predicate: Predicate) -> Predicate:
    """The rows that a relation has now or had."""
    return _named("ever", predicate)


def doubted(predicate: Predicate) -> Predicate:
    """The rows that must be looked at again whatever the inputs say."""
    return _named("doubted", predicate)


def _named(what: str, predicate: Predicate) -> Predicate:
    """No relation that is kept holds the mark in its name, so none is called like this."""
    return Predicate(f"{predicate.name}{MARK}{what}", predicate.arity)


@dataclass(frozen=True, slots=True)
class Changed:
    """Which inputs may have gained and lost rows, and whose own rows are in doubt."""

    grown: frozenset[Predicate] = frozenset()
    shrunk: frozenset[Predicate] = frozenset()
    in_doubt: frozenset[Predicate] = frozenset()

    def touches(self, stratum: Stratum) -> bool:
        """Whether anything that a stratum reads has changed."""
        read = {atom.predicate for rule in stratum.rules for atom in _read(rule.body)}
        return bool(read & (self.grown | self.shrunk)) or bool(self.in_doubt & set(stratum.predicates))


@dataclass(frozen=True, slots=True)
class Maintenance:
    """Rules that derive `came(p)` and `went(p)` of a stratum's predicates, and which way they go."""

    how: How
    program: Program


def maintenance(stratum: Stratum, changed: Changed) -> Maintenance:
    """The rules by which a stratum follows its inputs."""
    grows = not changed.in_doubt & set(stratum.predicates) and all(
        sign == "positive" and atom.predicate not in changed.shrunk
        for rule in stratum.rules
        for literal in rule.body
        if (found := read_atom(literal)) is not None
        for atom, sign in [found]
        if atom.predicate in changed.grown | changed.shrunk
    )
    if not stratum.recursive:
        rules = _growth(stratum, changed) if grows else _doubt(stratum, changed)
        return Maintenance("growth" if grows else "doubt", Program(tuple(rules)))
    if grows and all(len(_own(rule, stratum.predicates)) <= _MOST_RECURSIVE_ATOMS for rule in stratum.rules):
        return Maintenance("growth", Program(tuple(_recursive_growth(stratum, changed))))
    return Maintenance("anew", Program((*stratum.rules, *_differences(stratum.predicates))))


def _read(body: Iterable[Literal]) -> Iterator[Atom]:
    return (found[0] for literal in body if (found := read_atom(literal)) is not None)


def _own(rule: Rule, members: Collection[Predicate]) -> list[int]:
    """Where a rule reads predicates of its own stratum; recursion is positive (030-STRAT)."""
    return [at for at, literal in enumerate(rule.body) if isinstance(literal, Positive) and _of(literal) in members]


def _of(literal: Positive) -> Predicate:
    return literal.atom.predicate


def _renamed(atom: Atom, predicate: Predicate) -> Atom:
    return replace(atom, predicate=predicate)


def _whole(predicate: Predicate) -> Atom:
    """An atom that matches every row of a relation."""
    return Atom(predicate, tuple(Variable(f"H{place}") for place in range(predicate.arity)))


def _every(head: Predicate, *body: Literal) -> Rule:
    return Rule(_whole(head), body)


def _candidate(predicate: Predicate) -> Predicate:
    return _named("maybe", predicate)


def _growth(stratum: Stratum, changed: Changed) -> Iterator[Rule]:
    """One rule for each place where a new row may stand; what was known already is taken out at the end."""
    for rule in stratum.rules:
        for at, literal in enumerate(rule.body):
            if isinstance(literal, Positive) and _of(literal) in changed.grown:
                new = Positive(_renamed(literal.atom, came(_of(literal))))
                head = _renamed(rule.head, _candidate(rule.head.predicate))
                yield Rule(head, (new, *rule.body[:at], *rule.body[at + 1 :]))
    for predicate in stratum.predicates:
        known = _named("known", predicate)
        maybe = Positive(_whole(_candidate(predicate)))
        # The few candidates choose among the many stored rows, and not the other way round.
        yield _every(known, maybe, Positive(_whole(was(predicate))))
        yield _every(came(predicate), maybe, Negated(_whole(known)))


def _doubt(stratum: Stratum, changed: Changed) -> Iterator[Rule]:
    """Candidates are what a changed row can touch; each is derived again from what there is now."""
    for rule in stratum.rules:
        yield from _touched(rule, changed)
    for predicate in stratum.predicates:
        if predicate in changed.in_doubt:
            yield _every(_candidate(predicate), Positive(_whole(doubted(predicate))))
        holds, known = _named("holds", predicate), _named("known", predicate)
        maybe = Positive(_whole(_candidate(predicate)))
        for rule in stratum.rules:
            if rule.head.predicate == predicate:
                again = Positive(_renamed(rule.head, _candidate(predicate)))
                yield Rule(_renamed(rule.head, holds), (again, *rule.body))
        yield _every(known, maybe, Positive(_whole(was(predicate))))
        yield _every(came(predicate), Positive(_whole(holds)), Negated(_whole(known)))
        yield _every(went(predicate), Positive(_whole(known)), Negated(_whole(holds)))


def _touched(rule: Rule, changed: Changed) -> Iterator[Rule]:
    """Heads that a changed row may make or break: tests that only narrow are kept, negation and counting are not."""
    head = _renamed(rule.head, _candidate(rule.head.predicate))
    for at, literal in enumerate(rule.body):
        found = read_atom(literal)
        if found is None:
            continue
        atom = found[0]
        others = tuple(_loosely(other, changed) for place, other in enumerate(rule.body) if place != at)
        rest = tuple(other for other in others if not isinstance(other, Negated | Cardinality | TrueLiteral))
        if atom.predicate in changed.grown:
            yield Rule(head, (Positive(_renamed(atom, came(atom.predicate))), *rest))
        if atom.predicate in changed.shrunk:
            yield Rule(head, (Positive(_renamed(atom, went(atom.predicate))), *rest))


def _loosely(literal: Literal, changed: Changed) -> Literal:
    """A positive atom over what there is or was."""
    if isinstance(literal, Positive) and _of(literal) in changed.shrunk:
        return Positive(_renamed(literal.atom, ever(_of(literal))))
    return literal


def _recursive_growth(stratum: Stratum, changed: Changed) -> Iterator[Rule]:
    """A new fact rests on a new row of an input, or on a new fact; what was known is cut off in every round."""
    members = stratum.predicates
    for rule in stratum.rules:
        head = _renamed(rule.head, came(rule.head.predicate))
        unknown = Negated(_renamed(rule.head, was(rule.head.predicate)))
        own = _own(rule, members)
        old = tuple(_renamed_literal(x, was) if at in own else x for at, x in enumerate(rule.body))
        for at, literal in enumerate(rule.body):
            if at not in own and isinstance(literal, Positive) and _of(literal) in changed.grown:
                new = _renamed_literal(literal, came)
                yield Rule(head, (new, *old[:at], *old[at + 1 :], unknown))
        for picks in product((was, came), repeat=len(own)):
            if came in picks:
                pick = dict(zip(own, picks, strict=True))
                body = (_renamed_literal(x, pick[at]) if at in pick else x for at, x in enumerate(rule.body))
                yield Rule(head, (*body, unknown))


def _renamed_literal(literal: Literal, rename: object) -> Literal:
    assert isinstance(literal, Positive)
    assert callable(rename)
    return Positive(_renamed(literal.atom, rename(_of(literal))))


def _differences(predicates: Iterable[Predicate]) -> Iterator[Rule]:
    for predicate in predicates:
        now, before = _whole(predicate), _whole(was(predicate))
        yield _every(came(predicate), Positive(now), Negated(before))
        yield _every(went(predicate), Positive(before), Negated(now))
