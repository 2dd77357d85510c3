"""Fact views: what one module may see of the records stored here (020, origin-aware resolution).

Rule: a peer's module never reads a record predicate itself; each of its record atoms, under `not` and inside
`Cardinality` too, is resolved by the view it was given.

Two strategies with the same result (020-RES-09): a view that rewrites rules (`FullView`, `EmptyView`, `GatedView`)
and a fact source that filters (`ViewSource`). The rewriting one is what executors get, so they need to know no views.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import field, replace
from typing import Protocol

from lace.datalog.language.syntax import (
    ANONYMOUS,
    Anonymous,
    Atom,
    Cardinality,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Rule,
    Term,
    TrueLiteral,
    Variable,
)
from lace.datalog.source import FactSource, Row
from lace.facts.predicates import RECORD_PREDICATES
from lace.values import dataclass

SUBJECT = 0  # the position of P in every record predicate; only the subject is gated (020-RES-08)
_RECORD = frozenset(RECORD_PREDICATES)


class View(Protocol):
    """How the record atoms of one module are resolved."""

    def resolve(self, rule: Rule) -> Rule | None:
        """The rule as it reads in this view, or None when it can derive nothing."""

    def definitions(self) -> Iterable[tuple[Predicate, Rule]]:
        """The rules of the view predicates used so far, each with the record predicate that it shows."""


@dataclass(frozen=True, slots=True)
class FullView:
    """Every local record fact: the owner's own rules (020-RES-01)."""

    def resolve(self, rule: Rule) -> Rule | None:
        return rule

    def definitions(self) -> Iterable[tuple[Predicate, Rule]]:
        return ()


@dataclass(frozen=True, slots=True)
class EmptyView:
    """No record fact at all: nothing exposed, or no identity yet (020-VIEW-06, 020-GATE-09).

    A positive record atom makes its rule underivable, a negated one is true, a counted one counts 0.
    """

    prefix: str

    def resolve(self, rule: Rule) -> Rule | None:
        body: list[Literal] = []
        for literal in rule.body:
            match literal:
                case Positive(atom) if atom.predicate in _RECORD:
                    return None
                case Negated(atom) if atom.predicate in _RECORD:
                    continue
                case Cardinality(atom) if atom.predicate in _RECORD:
                    body.append(replace(literal, atom=replace(atom, predicate=self._nothing(atom.predicate))))
                case _:
                    body.append(literal)
        return replace(rule, body=tuple(body) or (TrueLiteral(),))

    def definitions(self) -> Iterable[tuple[Predicate, Rule]]:
        return ()

    def _nothing(self, predicate: Predicate) -> Predicate:
        return Predicate(f"{self.prefix}none_{predicate.name}", predicate.arity)  # no rule defines it


_Shape = tuple[Predicate, tuple[Term | None, ...]]  # per position: a constant, `_` when dropped, None when kept


@dataclass(slots=True)
class GatedView:
    """The records that a gate admits (020-RES-03 to 020-RES-14).

    Each shape of record atom gets one view predicate: constants and unneeded positions stay inside its rule, so a
    view holds only what the module can ask for. Because the gate stands in that rule alone, no join of the module's
    own can meet a hidden fact: not its result, and not the limit that it runs into.
    """

    prefix: str
    gate: Callable[[Term], Atom]
    _views: dict[_Shape, Predicate] = field(default_factory=dict)

    def resolve(self, rule: Rule) -> Rule | None:
        return replace(rule, body=tuple(map(self._resolve_literal, rule.body)))

    def definitions(self) -> Iterable[tuple[Predicate, Rule]]:
        return [(shape[0], self._definition(shape, view)) for shape, view in self._views.items()]

    def _resolve_literal(self, literal: Literal) -> Literal:
        match literal:
            case Positive(atom) if atom.predicate in _RECORD:
                return Positive(self._view_atom(atom, counted=False))
            case Negated(atom) if atom.predicate in _RECORD:  # 020-RES-12
                return Negated(self._view_atom(atom, counted=False))
            case Cardinality(atom) if atom.predicate in _RECORD:  # 020-RES-13
                return replace(literal, atom=self._view_atom(atom, counted=True))
            case _:
                return literal

    def _view_atom(self, atom: Atom, *, counted: bool) -> Atom:
        # A count is over distinct facts, so a counted `_` must stay a position of its own.
        kept = [isinstance(term, Variable) or (counted and isinstance(term, Anonymous)) for term in atom.terms]
        shape = (atom.predicate, tuple(None if keep else term for keep, term in zip(kept, atom.terms, strict=True)))
        view = self._views.get(shape)
        if view is None:
            name = f"{self.prefix}{atom.predicate.name}_{len(self._views)}"
            view = self._views[shape] = Predicate(name, sum(kept))
        return replace(atom, predicate=view, terms=tuple(t for keep, t in zip(kept, atom.terms, strict=True) if keep))

    def _definition(self, shape: _Shape, view: Predicate) -> Rule:
        predicate, pattern = shape
        terms = [Variable(f"A{position}") if term is None else term for position, term in enumerate(pattern)]
        if terms[SUBJECT] == ANONYMOUS:
            terms[SUBJECT] = Variable(f"A{SUBJECT}")  # even a subject nobody names must be admitted
        head = tuple(term for term, slot in zip(terms, pattern, strict=True) if slot is None)
        fact, admitted = Positive(Atom(predicate, tuple(terms))), Positive(self.gate(terms[SUBJECT]))
        return Rule(Atom(view, head), (fact, admitted))


@dataclass(frozen=True, slots=True)
class ViewSource:
    """A fact source that shows the record facts of admitted subjects and all other facts unchanged."""

    source: FactSource
    admitted: Collection[str]

    def predicates(self) -> Iterable[Predicate]:
        return self.source.predicates()

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return self._visible(predicate, self.source.iterate(predicate))

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        return self._visible(predicate, self.source.query(predicate, *values))

    def count(self, predicate: Predicate) -> int:
        if predicate not in _RECORD:
            return self.source.count(predicate)
        return sum(1 for _ in self.iterate(predicate))

    def _visible(self, predicate: Predicate, rows: Iterator[Row]) -> Iterator[Row]:
        if predicate not in _RECORD:
            return rows
        return (row for row in rows if row[SUBJECT] in self.admitted)


def record_atoms(rules: Iterable[Rule]) -> Iterator[Atom]:
    """The record atoms that rules read, positive, negated or counted."""
    for rule in rules:
        for literal in rule.body:
            if isinstance(literal, Positive | Negated | Cardinality) and literal.atom.predicate in _RECORD:
                yield literal.atom


def constant_gate(predicate: Predicate, viewer: str) -> Callable[[Term], Atom]:
    """The gate atom `predicate(viewer, subject)` for any subject."""
    return lambda subject: Atom(predicate, (Constant(viewer), subject))
