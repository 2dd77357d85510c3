"""Names and orders for programs that are rewritten for goals (030-EVAL-04).

Rule: one `CopyNames` names everything that such a program adds to the one it was made from.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from lace.datalog.language.formatting import format_literal
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Constant,
    Literal,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.terms import names_among, variable_names
from lace.datalog.planning.names import ASKED, MARK, PredicateNames, VariableNames

Places = tuple[int, ...]  # the bound places of a predicate


def is_free(goal: Atom) -> bool:
    """Whether a goal asks for every fact of its predicate."""
    names = names_among(goal.terms)
    return len(names) == len(set(names)) and not constants(goal)


class CopyNames:
    """What a program that is rewritten for goals calls the copies of its predicates, and what they are asked for."""

    def __init__(self, program: Program, goals: Iterable[Atom], also: Iterable[Predicate]) -> None:
        asked = list(goals)
        self._names = PredicateNames(program, (*also, *(goal.predicate for goal in asked)))
        arity = max((goal.predicate.arity for goal in asked), default=0)
        variables = VariableNames(name for goal in asked for name in names_among(goal.terms))
        self._any = [variables.fresh(f"Any{MARK}{n}") for n in range(arity)]
        self._given = [variables.fresh(f"Given{MARK}{n}") for n in range(arity)]

    def copy(self, predicate: Predicate, bound: Places) -> Predicate:
        """The facts of a predicate that have asked values at some places."""
        if not bound:
            return predicate
        return self._names.made_for(predicate, "_".join(map(str, bound)), predicate.arity)

    def asked(self, predicate: Predicate, bound: Places) -> Predicate:
        """The values that are asked for at some places."""
        return self._names.made_for(self.copy(predicate, bound), ASKED, len(bound))

    def asked_atom(self, atom: Atom, bound: Places) -> Atom:
        return Atom(self.asked(atom.predicate, bound), tuple(atom.terms[n] for n in bound))

    def given(self, predicate: Predicate, bound: Places) -> Predicate:
        """Those of the asked values that the goals themselves say; base facts."""
        return self._names.made_for(self.asked(predicate, bound), "given", len(bound))

    def answers(self, predicate: Predicate) -> Predicate:
        """The facts that match goals."""
        return self._names.made_for(predicate, "", predicate.arity)

    def ends(self, predicate: Predicate, bound: Places) -> Predicate:
        """The values at the other places, for each value that a walk reaches."""
        return self._names.made_for(predicate, "ends", predicate.arity - len(bound))

    def named(self, terms: tuple[Term, ...]) -> Iterator[Term]:
        """A goal's terms with `_` made a variable of its own, so that a head can show it."""
        return (self._any[n] if isinstance(term, Anonymous) else term for n, term in enumerate(terms))

    def free_terms(self, terms: tuple[Term, ...]) -> Iterator[Term]:
        """The same with every constant made a variable too."""
        return (self._given[n] if isinstance(term, Constant) else term for n, term in enumerate(self.named(terms)))


def bound_places(atom: Atom, known: Collection[str]) -> Places:
    return tuple(
        n
        for n, term in enumerate(atom.terms)
        if isinstance(term, Constant) or (isinstance(term, Variable) and term.name in known)
    )


def constants(atom: Atom) -> tuple[str, ...]:
    return tuple(term.value for term in atom.terms if isinstance(term, Constant))


def ready(tests: list[Literal], known: set[str], body: list[Literal]) -> list[Literal]:
    return [test for test in tests if test not in body and known.issuperset(variable_names(test))]


def passing_order(rule: Rule, known: set[str], derived: frozenset[Predicate]) -> Iterator[Positive]:
    """Positive atoms in the order in which values are passed on: bound ones first, base facts before derived ones."""
    left = [literal for literal in rule.body if isinstance(literal, Positive)]
    reached = set(known)

    def order(literal: Positive) -> tuple[bool, bool, int, str]:
        bound = len(bound_places(literal.atom, reached))
        return not bound, literal.atom.predicate in derived, -bound, format_literal(literal)

    while left:
        best = min(left, key=order)
        left.remove(best)
        reached.update(variable_names(best))
        yield best
