"""Hypothesis strategies: random stratified programs and facts for them.

Every program is valid by construction: levels of derived predicates, positive atoms from the same level or below,
negated and counted ones only from below, and heads and tests over variables that positive atoms bind.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from lace.datalog.formatting import format_program
from lace.datalog.syntax import (
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

VALUES = ("a", "b", "c", "1", "2", "02", "-1", "10", "", "é", "a/b", "a/")
BASE = (Predicate("U", 1), Predicate("E", 2), Predicate("F", 2), Predicate("T", 3), Predicate("On", 0))
LEVELS = (
    (Predicate("P", 1), Predicate("Q", 2)),
    (Predicate("R", 2), Predicate("S", 1)),
    (Predicate("V", 2), Predicate("W", 0)),
)
NAMES = ("X", "Y", "Z")
values = st.sampled_from(VALUES)
operators = st.sampled_from(OPERATORS)


@dataclass(frozen=True)
class Scenario:
    """A program and facts for it."""

    program: Program
    facts: tuple[Fact, ...]

    def __repr__(self) -> str:
        return f"\n{format_program(self.program)}\n{[(f.predicate.name, *f.values) for f in self.facts]}\n"


@st.composite
def atoms(draw: st.DrawFn, predicates: tuple[Predicate, ...]) -> Atom:
    """A positive atom: mostly variables."""
    predicate = draw(st.sampled_from(predicates))
    term = st.sampled_from(NAMES).map(Variable) | st.sampled_from(NAMES).map(Variable) | st.just(ANONYMOUS)
    terms = draw(st.tuples(*[term | values.map(Constant) if n else term for n in range(predicate.arity)]))
    return Atom(predicate, tuple(terms))


def _terms(bound: list[str]) -> st.SearchStrategy[Term]:
    constants: st.SearchStrategy[Term] = values.map(Constant)
    return st.sampled_from(bound).map(Variable) | constants if bound else constants


@st.composite
def read_atoms(draw: st.DrawFn, below: tuple[Predicate, ...], bound: list[str], local: str = "") -> Atom:
    """An atom for a negation or, with a local variable, for a count."""
    predicate = draw(st.sampled_from(below))
    free: st.SearchStrategy[Term] = st.just(ANONYMOUS)
    term = _terms(bound) | free | (st.just(Variable(local)) if local else free)
    return Atom(predicate, tuple(draw(term) for _ in range(predicate.arity)))


@st.composite
def tests(draw: st.DrawFn, below: tuple[Predicate, ...], bound: list[str], number: int) -> Literal:
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
            return Cardinality(draw(read_atoms(below, bound, f"L{number}")), draw(operators), draw(bounds))
        case _:
            return TrueLiteral()


@st.composite
def rules(draw: st.DrawFn, head: Predicate, upto: tuple[Predicate, ...], below: tuple[Predicate, ...]) -> Rule:
    """A safe rule."""
    positive = draw(st.lists(atoms(upto), min_size=0 if head.arity == 0 else 1, max_size=3))
    bound = sorted({term.name for atom in positive for term in atom.terms if isinstance(term, Variable)})
    terms = tuple(draw(_terms(bound)) for _ in range(head.arity))
    extra = [draw(tests(below, bound, number)) for number in range(draw(st.integers(0, 2)))]
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
            found += [draw(rules(head, upto, below)) for _ in range(draw(st.integers(0, 3)))]
        below = (*below, *level)
    return Program(tuple(found))


@st.composite
def facts(draw: st.DrawFn, most: int = 14) -> tuple[Fact, ...]:
    """Base facts over few values, so that joins meet."""
    pool = st.sampled_from(VALUES[:8]) | values
    fact = st.one_of(*(st.tuples(st.just(p), st.tuples(*[pool] * p.arity)).map(lambda pair: Fact(*pair)) for p in BASE))
    return tuple(dict.fromkeys(draw(st.lists(fact, max_size=most))))


scenarios = st.builds(Scenario, programs(), facts())
