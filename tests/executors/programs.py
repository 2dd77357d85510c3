"""Hypothesis strategies: random stratified programs and facts for them.

Every program is valid by construction: levels of derived predicates, positive atoms from the same level or below,
negated and counted ones only from below, and heads and tests over variables that positive atoms bind.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

from hypothesis import strategies as st

from lace.datalog.language.formatting import format_program
from lace.datalog.language.syntax import (
    ANONYMOUS,
    OPERATORS,
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
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

VALUES = ("a", "1", "b", "2", "02", "-1", "10", "", "é", "a/b", "a/", "c")
BASE = (Predicate("U", 1), Predicate("E", 2), Predicate("F", 2), Predicate("T", 3), Predicate("On", 0))
LEVELS = (
    (Predicate("P", 1), Predicate("Q", 2)),
    (Predicate("R", 2), Predicate("S", 1)),
    (Predicate("V", 2), Predicate("W", 0)),
)
NAMES = ("X", "Y", "Z")
operators = st.sampled_from(OPERATORS)


@dataclass(frozen=True)
class Scenario:
    """A program and facts for it."""

    program: Program
    facts: tuple[Fact, ...]

    def __repr__(self) -> str:
        return f"\n{format_program(self.program)}\n{[(f.predicate.name, *f.values) for f in self.facts]}\n"


COMMON = VALUES[:4]  # most facts and constants use these, so that joins meet
CONSTANTS: tuple[Term, ...] = tuple(map(Constant, VALUES))
NAMED: tuple[Term, ...] = tuple(map(Variable, NAMES))
# One draw a term and one a row: drawing is what takes the time.
positive_terms = st.sampled_from(NAMED * 4 + (ANONYMOUS,) * 3 + tuple(map(Constant, COMMON)))
ROWS = {
    predicate: st.sampled_from(
        [*product(COMMON, repeat=predicate.arity)] * 2 + [*product(VALUES, repeat=predicate.arity)]
    )
    for predicate in BASE
}


@st.composite
def atoms(draw: st.DrawFn, predicates: tuple[Predicate, ...]) -> Atom:
    """A positive atom: mostly variables."""
    predicate = draw(st.sampled_from(predicates))
    return Atom(predicate, tuple(draw(positive_terms) for _ in range(predicate.arity)))


@cache
def _terms(bound: tuple[str, ...], *more: Term) -> st.SearchStrategy[Term]:
    named: tuple[Term, ...] = tuple(map(Variable, bound))
    return st.sampled_from(named * 4 + more * 4 + CONSTANTS)


@st.composite
def read_atoms(draw: st.DrawFn, below: tuple[Predicate, ...], bound: tuple[str, ...], *more: Term) -> Atom:
    """An atom for a negation or, with a local variable, for a count."""
    predicate = draw(st.sampled_from(below))
    return Atom(predicate, tuple(draw(_terms(bound, ANONYMOUS, *more)) for _ in range(predicate.arity)))


@st.composite
def tests(draw: st.DrawFn, below: tuple[Predicate, ...], bound: tuple[str, ...], number: int) -> Literal:
    """A negation, a builtin or a count."""
    term = _terms(bound)
    match draw(st.sampled_from(["not", "not", "unequal", "int", "lex", "shape", "count", "count", "true"])):
        case "not":
            return Negated(draw(read_atoms(below, bound)))
        case "unequal":
            return Unequal(draw(term), draw(term))
        case "int":
            return Compare("int", draw(term), draw(operators), draw(term))
        case "lex":
            return Compare("lex", draw(term), draw(operators), draw(term))
        case "shape":
            parts = st.sampled_from(["", "a", "b"]).map(Constant) | term
            return TextShape(draw(term), draw(parts), draw(st.sampled_from(["", "/", "/é"])), draw(parts))
        case "count":
            bounds = st.sampled_from(["0", "1", "2", "3"]).map(Constant) | term
            return Cardinality(draw(read_atoms(below, bound, Variable(f"L{number}"))), draw(operators), draw(bounds))
        case _:
            return TrueLiteral()


@st.composite
def rules(draw: st.DrawFn, head: Predicate, upto: tuple[Predicate, ...], below: tuple[Predicate, ...]) -> Rule:
    """A safe rule."""
    positive = draw(
        st.lists(atoms(upto), min_size=0 if head.arity == 0 else 1, max_size=draw(st.sampled_from([1, 2, 2, 3])))
    )
    bound = tuple(sorted({term.name for atom in positive for term in atom.terms if isinstance(term, Variable)}))
    terms = tuple(draw(_terms(bound)) for _ in range(head.arity))
    extra = [draw(tests(below, bound, number)) for number in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    body = draw(st.permutations([*map(Positive, positive), *extra])) or [TrueLiteral()]
    return Rule(Atom(head, terms), tuple(body))


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Up to three levels of two predicates, one to three rules each."""
    found: list[Rule] = []
    below: tuple[Predicate, ...] = BASE
    for level in LEVELS[: draw(st.integers(1, len(LEVELS)))]:
        upto = (*below, *level, *level)
        for head in level:
            found.append(draw(rules(head, below, below)))
            found += [draw(rules(head, upto, below)) for _ in range(draw(st.integers(0, 2)))]
        below = (*below, *level)
    return Program(tuple(found))


@st.composite
def facts(draw: st.DrawFn, most: int = 9) -> tuple[Fact, ...]:
    """Base facts over few values, so that joins meet."""
    found: dict[Fact, None] = {}
    for predicate in BASE:
        row = ROWS[predicate]
        rows = st.lists(row, min_size=3, max_size=most) if predicate.arity else st.lists(row, max_size=1)
        found.update(dict.fromkeys(Fact(predicate, row) for row in draw(rows)))
    return tuple(found)


scenarios = st.builds(Scenario, programs(), facts())
