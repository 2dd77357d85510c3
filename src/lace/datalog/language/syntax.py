"""The tree of a lacegram (030): predicates, terms, literals, rules.

Rule: plain values, compared by what they say; where they stood in the text never counts.
"""

from __future__ import annotations

from dataclasses import field
from typing import Literal as Choice

from lace.notation.fact import Fact as Fact
from lace.notation.fact import Predicate as Predicate
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands in a source text; line and column count from 1, columns in characters."""

    line: int
    column: int


NOWHERE = Place(0, 0)


@dataclass(frozen=True, slots=True)
class Variable:
    """A named variable."""

    name: str


@dataclass(frozen=True, slots=True)
class Constant:
    """A text value."""

    value: str


@dataclass(frozen=True, slots=True)
class Anonymous:
    """`_`: matches any value, never binds; each one is independent."""


ANONYMOUS = Anonymous()
Term = Variable | Constant | Anonymous
Operator = Choice["<", "<=", ">", ">="]
OPERATORS: tuple[Operator, ...] = ("<", "<=", ">", ">=")


@dataclass(frozen=True, slots=True)
class Atom:
    """A predicate applied to terms."""

    predicate: Predicate
    terms: tuple[Term, ...]
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Positive:
    """A positive body atom."""

    atom: Atom


@dataclass(frozen=True, slots=True)
class Negated:
    """`not Atom`."""

    atom: Atom


@dataclass(frozen=True, slots=True)
class Unequal:
    """`X != Y`."""

    left: Term
    right: Term
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """`IntCompare(A,Op,B)` (kind "int") or `LexCompare(A,Op,B)` (kind "lex"); the operator is a constant (P4)."""

    kind: Choice["int", "lex"]
    left: Term
    operator: Operator
    right: Term
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TextShape:
    """`TextShape(Text,Start,Delims,End)`; the delimiters are a constant."""

    text: Term
    start: Term
    delimiters: str
    end: Term
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Cardinality:
    """`Cardinality(Atom,Op,N)`: how many distinct facts match; N a constant or a bound variable (P4)."""

    atom: Atom
    operator: Operator
    bound: Term
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class TrueLiteral:
    """`true`."""

    place: Place = field(default=NOWHERE, compare=False)


Literal = Positive | Negated | Unequal | Compare | TextShape | Cardinality | TrueLiteral


@dataclass(frozen=True, slots=True)
class Rule:
    """`Head :- Body.`"""

    head: Atom
    body: tuple[Literal, ...]
    place: Place = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class SourceText:
    """The text that a program was parsed from, so that a later error can show the place."""

    name: str
    text: str


NO_SOURCE = SourceText("", "")


@dataclass(frozen=True, slots=True)
class Program:
    """Rules in the order of their text."""

    rules: tuple[Rule, ...]
    source: SourceText = field(default=NO_SOURCE, compare=False, repr=False)
