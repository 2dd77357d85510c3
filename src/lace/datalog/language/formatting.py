"""A rule tree as text, spelled in the one canonical way (P1).

Rule: ` :- ` and `, ` between atoms, bare `,` between terms, minimal escapes; nothing is reordered or renamed here.
"""

from __future__ import annotations

from typing import assert_never

from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
    Literal,
    Negated,
    Positive,
    Program,
    Rule,
    Term,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.notation.text import quote


def format_term(term: Term) -> str:
    """A variable, a quoted constant, or `_`."""
    match term:
        case Variable(name):
            return name
        case Constant(value):
            return quote(value)
        case Anonymous():
            return "_"
        case _:
            assert_never(term)


def format_atom(atom: Atom) -> str:
    """`Name(Term,Term)`."""
    return f"{atom.predicate.name}({','.join(map(format_term, atom.terms))})"


def format_fact(fact: Fact) -> str:
    """`Name('value','value')`."""
    return f"{fact.predicate.name}({','.join(map(quote, fact.values))})"


def format_literal(literal: Literal) -> str:
    """One body atom."""
    match literal:
        case Positive(atom):
            return format_atom(atom)
        case Negated(atom):
            return f"not {format_atom(atom)}"
        case Unequal(left, right):
            return f"{format_term(left)} != {format_term(right)}"
        case Compare(kind, left, operator, right):
            name = "IntCompare" if kind == "int" else "LexCompare"
            return f"{name}({format_term(left)},'{operator}',{format_term(right)})"
        case TextShape(text, start, delimiters, end):
            return f"TextShape({format_term(text)},{format_term(start)},{quote(delimiters)},{format_term(end)})"
        case Cardinality(atom, operator, bound):
            return f"Cardinality({format_atom(atom)},'{operator}',{format_term(bound)})"
        case TrueLiteral():
            return "true"
        case _:
            assert_never(literal)


def format_rule(rule: Rule) -> str:
    """The canonical line of a rule, without LF (030-CANON-06..10)."""
    return f"{format_atom(rule.head)} :- {', '.join(map(format_literal, rule.body))}."


def format_program(program: Program) -> str:
    """The rule lines in their order, joined by LF, no final LF (030-CANON-03)."""
    return "\n".join(map(format_rule, program.rules))
