"""Names and orders for programs that are rewritten for goals (030-EVAL-04).

Rule: the copy of a predicate for some bound places has a name that no lacegram can hold, and that shows what it is a
copy of before the first mark.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lace.datalog.formatting import format_literal
from lace.datalog.syntax import Anonymous, Atom, Constant, Literal, Positive, Predicate, Rule, Term, Variable
from lace.datalog.terms import names_among, variable_names

Places = tuple[int, ...]  # the bound places of a predicate
MARK = "?"  # no name of a lacegram holds it


def is_free(goal: Atom) -> bool:
    """Whether a goal asks for every fact of its predicate."""
    names = names_among(goal.terms)
    return len(names) == len(set(names)) and not constants(goal)


def adorned(predicate: Predicate, bound: Places) -> Predicate:
    """The copy for some bound places."""
    if not bound:
        return predicate
    return Predicate(f"{predicate.name}{MARK}{'_'.join(map(str, bound))}", predicate.arity)


def asked_predicate(predicate: Predicate, bound: Places) -> Predicate:
    return Predicate(f"{adorned(predicate, bound).name}{MARK}asked", len(bound))


def asked_atom(atom: Atom, bound: Places) -> Atom:
    return Atom(asked_predicate(atom.predicate, bound), tuple(atom.terms[n] for n in bound))


def bound_places(atom: Atom, known: Collection[str]) -> Places:
    return tuple(
        n
        for n, term in enumerate(atom.terms)
        if isinstance(term, Constant) or (isinstance(term, Variable) and term.name in known)
    )


def named(terms: tuple[Term, ...]) -> Iterator[Term]:
    """A goal's terms with `_` made a variable of its own, so that a head can show it."""
    for n, term in enumerate(terms):
        yield Variable(f"Any{MARK}{n}") if isinstance(term, Anonymous) else term


def free_terms(terms: tuple[Term, ...]) -> Iterator[Term]:
    """The same with every constant made a variable too."""
    for n, term in enumerate(named(terms)):
        yield Variable(f"Given{MARK}{n}") if isinstance(term, Constant) else term


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
