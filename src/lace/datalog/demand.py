"""Evaluate only what a goal asks for (030-EVAL-04): magic sets.

Rule: for the facts that match a goal, the rewritten program derives exactly what the whole program derives.

A goal with bound places becomes a demand; each rule gets a copy that runs only where its head is demanded, and each
derived atom of its body is demanded for the values that reach it. What is negated or counted is demanded too, as long
as the result can still be stratified; otherwise, and where a count is a rank, it is evaluated in full.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from lace.datalog.formatting import format_literal
from lace.datalog.ranking import ranked_predicates
from lace.datalog.stratify import derived_graph, forbidden_cycles, read_atom, strata
from lace.datalog.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.datalog.terms import names_among, variable_names
from lace.datalog.validate import CheckedProgram

Places = tuple[int, ...]  # the bound places of a predicate


@dataclass(frozen=True, slots=True)
class Demanded:
    """A program that answers goals, and where the answers for each asked predicate stand."""

    checked: CheckedProgram
    answers: Mapping[Predicate, Predicate]


def demand(checked: CheckedProgram, goals: Iterable[Atom]) -> Demanded:
    """Rewrite a program for goals."""
    asked = list(dict.fromkeys(goals))
    for in_full in (_ranked(checked.program), _negated_or_counted(checked.program)):
        rewriting = _Rewriting(checked, _with_all_they_read(checked.program, in_full))
        answers = rewriting.ask(asked)
        program = Program(tuple(dict.fromkeys(rewriting.rules)))
        if not any(forbidden_cycles(program)):
            break
    derived = frozenset(rule.head.predicate for rule in program.rules)
    read = {found[0].predicate for rule in program.rules for found in map(read_atom, rule.body) if found}
    # Safe because each copy binds its head and tests by the same atoms as its original.
    done = CheckedProgram(program, checked.profile, strata(program), derived, frozenset(read - derived))
    return Demanded(done, answers)


def _ranked(program: Program) -> set[Predicate]:
    return {predicate for predicate, _ in ranked_predicates(program)}


def _negated_or_counted(program: Program) -> set[Predicate]:
    literals = [literal for rule in program.rules for literal in rule.body]
    return {literal.atom.predicate for literal in literals if isinstance(literal, Negated | Cardinality)}


def _with_all_they_read(program: Program, predicates: set[Predicate]) -> frozenset[Predicate]:
    """A part that is evaluated in full is the original program, so it can neither lose its strata nor its ranks."""
    graph = derived_graph(program)
    found, queue = set(predicates), list(predicates)
    while queue:
        new = graph.get(queue.pop(), set()) - found
        found |= new
        queue += new
    return frozenset(found)


@dataclass(slots=True)
class _Rewriting:
    """Rules collected on demand."""

    checked: CheckedProgram
    in_full: frozenset[Predicate]
    rules: list[Rule] = field(default_factory=list)
    _done: set[tuple[Predicate, Places]] = field(default_factory=set)
    _waiting: list[tuple[Predicate, Places]] = field(default_factory=list)

    def ask(self, goals: list[Atom]) -> dict[Predicate, Predicate]:
        """Rules for every goal; each predicate's answers are collected under one name."""
        answers: dict[Predicate, Predicate] = {}
        for goal in goals:
            answer = answers[goal.predicate] = Predicate(f"{goal.predicate.name}?", goal.predicate.arity)
            shown = Atom(goal.predicate, tuple(_named(goal.terms)))
            bound = tuple(n for n, term in enumerate(goal.terms) if isinstance(term, Constant))
            read = self._demanded(shown, bound)
            self.rules.append(Rule(Atom(answer, shown.terms), (Positive(read),)))
            if read.predicate != goal.predicate:
                self.rules.append(Rule(_magic(goal, bound), (TrueLiteral(),)))
        while self._waiting:
            self._rewrite(*self._waiting.pop())
        return answers

    def _demanded(self, atom: Atom, bound: Places) -> Atom:
        """The atom to read instead of a derived one."""
        predicate = atom.predicate
        if predicate not in self.checked.derived:
            return atom
        if predicate in self.in_full:
            bound = ()
        if (predicate, bound) not in self._done:
            self._done.add((predicate, bound))
            self._waiting.append((predicate, bound))
        return Atom(_adorned(predicate, bound), atom.terms)

    def _rewrite(self, predicate: Predicate, bound: Places) -> None:
        for rule in self.checked.program.rules:
            if rule.head.predicate == predicate:
                self._rewrite_rule(rule, bound)

    def _rewrite_rule(self, rule: Rule, bound: Places) -> None:
        head = Atom(_adorned(rule.head.predicate, bound), rule.head.terms)
        body: list[Literal] = [Positive(_magic(rule.head, bound))] if bound else []
        known = set(names_among(rule.head.terms[n] for n in bound))
        tests: list[Literal] = [lit for lit in rule.body if isinstance(lit, Unequal | Compare | TextShape)]
        for positive in _passing_order(rule, known, self.checked.derived):
            body += _ready(tests, known, body)
            read = self._pass(positive.atom, _bound_places(positive.atom, known), body)
            body.append(Positive(read))
            known.update(variable_names(positive))
        body += _ready(tests, known, body)
        closing: list[Literal] = []
        for literal in rule.body:
            if isinstance(literal, Negated):
                closing.append(Negated(self._pass(literal.atom, _bound_places(literal.atom, known), body)))
            elif isinstance(literal, Cardinality):
                read = self._pass(literal.atom, _bound_places(literal.atom, known), body)
                closing.append(Cardinality(read, literal.operator, literal.bound))
        self.rules.append(Rule(head, tuple(body + closing) or (TrueLiteral(),)))

    def _pass(self, atom: Atom, bound: Places, body: list[Literal]) -> Atom:
        """Demand a body atom for the values that reach it."""
        read = self._demanded(atom, bound)
        if read.predicate not in (atom.predicate, _adorned(atom.predicate, ())):
            magic = _magic(atom, bound)
            if Positive(magic) not in body:
                self.rules.append(Rule(magic, tuple(body) or (TrueLiteral(),)))
        return read


def _adorned(predicate: Predicate, bound: Places) -> Predicate:
    """The copy for some bound places; no name of a lacegram holds `?`."""
    if not bound:
        return predicate
    return Predicate(f"{predicate.name}?{'_'.join(map(str, bound))}", predicate.arity)


def _magic(atom: Atom, bound: Places) -> Atom:
    name = f"{_adorned(atom.predicate, bound).name}?asked"
    return Atom(Predicate(name, len(bound)), tuple(atom.terms[n] for n in bound))


def _bound_places(atom: Atom, known: set[str]) -> Places:
    return tuple(
        n
        for n, term in enumerate(atom.terms)
        if isinstance(term, Constant) or (isinstance(term, Variable) and term.name in known)
    )


def _named(terms: tuple[Term, ...]) -> Iterator[Term]:
    """A goal's terms with `_` made a variable of its own, so that a head can show it."""
    for n, term in enumerate(terms):
        yield Variable(f"Any?{n}") if isinstance(term, Anonymous) else term


def _ready(tests: list[Literal], known: set[str], body: list[Literal]) -> list[Literal]:
    return [test for test in tests if test not in body and known.issuperset(variable_names(test))]


def _passing_order(rule: Rule, known: set[str], derived: frozenset[Predicate]) -> Iterator[Positive]:
    """Positive atoms in the order in which values are passed on: bound ones first, base facts before derived ones."""
    left = [literal for literal in rule.body if isinstance(literal, Positive)]
    reached = set(known)

    def order(literal: Positive) -> tuple[bool, bool, int, str]:
        bound = len(_bound_places(literal.atom, reached))
        return not bound, literal.atom.predicate in derived, -bound, format_literal(literal)

    while left:
        best = min(left, key=order)
        left.remove(best)
        reached.update(variable_names(best))
        yield best
