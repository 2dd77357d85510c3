"""Reading and replacing the terms of a body literal, whatever its kind (030 trees).

Rule: the one place that knows where terms stand in a literal; passes over rules go through it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from lace.datalog.language.syntax import (
    Cardinality,
    Compare,
    Constant,
    Literal,
    Negated,
    Positive,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)


def literal_terms(literal: Literal) -> tuple[Term, ...]:
    """Every term of a literal, the bound of a cardinality test included."""
    match literal:
        case Positive(atom) | Negated(atom):
            return atom.terms
        case Unequal(left, right) | Compare(_, left, _, right):
            return left, right
        case TextShape(text, start, delimiters, end):
            return text, start, Constant(delimiters), end
        case Cardinality(atom, _, bound):
            return (*atom.terms, bound)
        case TrueLiteral():
            return ()
        case _:
            assert_never(literal)


def names_among(terms: Iterable[Term]) -> list[str]:
    """The names of the variables among terms, repeats kept."""
    return [term.name for term in terms if isinstance(term, Variable)]


def variable_names(literal: Literal) -> list[str]:
    """The names of a literal's variables, repeats kept; those local to a counted atom too."""
    return names_among(literal_terms(literal))


def literal_variables(literal: Literal) -> list[Variable]:
    """The variables of a literal, repeats kept."""
    return [term for term in literal_terms(literal) if isinstance(term, Variable)]


def map_terms(literal: Literal, change: Callable[[Term], Term]) -> Literal:
    """The literal with every term changed; delimiters and operators are not terms."""
    match literal:
        case Positive(atom):
            return Positive(replace(atom, terms=tuple(map(change, atom.terms))))
        case Negated(atom):
            return Negated(replace(atom, terms=tuple(map(change, atom.terms))))
        case Cardinality(atom=atom, bound=bound):
            return replace(literal, atom=replace(atom, terms=tuple(map(change, atom.terms))), bound=change(bound))
        case Unequal(left=left, right=right) | Compare(left=left, right=right):
            return replace(literal, left=change(left), right=change(right))
        case TextShape(text=text, start=start, end=end):
            return replace(literal, text=change(text), start=change(start), end=change(end))
        case TrueLiteral():
            return literal
        case _:
            assert_never(literal)
