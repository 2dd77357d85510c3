"""Random programs with existence tests, and goals that bind their heads at every subset of places.

An existence test is a second row of a predicate that the body reads already, of which nothing but a comparison is
read: `D(X,X) :- F(X), F(W), LexCompare(W,'<=',X).` The engine rewrites such rules, and it rewrites rules for goals, so
these programs are what both do together. Predicates share names and differ in their arity.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from random import Random

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
    Unequal,
    Variable,
)
from lace.datalog.source import Row

VALUES = ("a", "b", "c", "1", "2", "10")
BASE = (Predicate("F", 1), Predicate("E", 2), Predicate("T", 3))
LEVELS = (  # names repeat on purpose: a predicate is its name and its arity
    (Predicate("D", 1), Predicate("D", 2), Predicate("D", 3), Predicate("D", 4)),
    (Predicate("R", 2), Predicate("D", 5), Predicate("R", 1), Predicate("R", 3)),
    (Predicate("S", 1), Predicate("S", 2), Predicate("S", 3), Predicate("S", 4)),
)
NAMES = ("X", "Y", "Z", "Other", "Any")


@dataclass(frozen=True)
class World:
    """A program and facts for it."""

    program: Program
    facts: tuple[Fact, ...]

    def __repr__(self) -> str:
        facts = [f"{fact.predicate.name}{fact.values}" for fact in self.facts]
        return f"\n{format_program(self.program)}\n{' '.join(facts)}\n"


def random_world(random: Random) -> World:
    """Some rules over facts of few values, so that joins meet."""
    rules = _few_rules(random) if random.random() < 0.7 else _levels(random)
    random.shuffle(rules)
    facts = {
        Fact(predicate, tuple(random.choice(VALUES[:4]) for _ in range(predicate.arity)))
        for predicate in BASE
        for _ in range(random.randint(1, 5))
    }
    return World(Program(tuple(dict.fromkeys(rules))), tuple(sorted(facts)))


def _levels(random: Random) -> list[Rule]:
    """One to three levels of one or two predicates each; negation and counting read lower levels only."""
    rules: list[Rule] = []
    lower: list[Predicate] = list(BASE)
    for level in LEVELS[: random.choice((1, 1, 2, 3))]:
        heads = random.sample(level, random.choice((1, 1, 2)))
        for head in heads:
            rules += [_rule(random, head, lower, heads) for _ in range(random.choice((1, 1, 2)))]
            if random.random() < 0.25:
                rules += _closure(random, head)
        lower += heads
    return rules


def _few_rules(random: Random) -> list[Rule]:
    """One to three rules that say little beside their existence test."""
    rules: list[Rule] = []
    likely = LEVELS[0][1]  # of two places, as the helper of an existence test is
    for head in dict.fromkeys(random.choice((likely, likely, *LEVELS[0])) for _ in range(random.choice((1, 1, 2)))):
        for _ in range(random.choice((1, 1, 2))):
            read = random.choice(BASE)
            atom = Atom(read, tuple(map(Variable, random.sample(NAMES, read.arity))))
            body: list[Literal] = [Positive(atom), *_existence(random, atom, 0)]
            bound = [term.name for term in atom.terms if isinstance(term, Variable)]
            if random.random() < 0.2:
                body.append(_test(random, bound, list(BASE), 0))
            if random.random() < 0.2:
                body.append(Positive(Atom(random.choice(BASE[:1]), (Variable(random.choice(bound)),))))
            rules.append(Rule(Atom(head, _head_terms(random, bound, head.arity)), tuple(body)))
    return rules


def _head_terms(random: Random, bound: list[str], arity: int) -> tuple[Term, ...]:
    """Variables of the body, some of them repeated, and now and then a constant."""
    return tuple(
        Variable(random.choice(bound)) if bound and random.random() < 0.88 else Constant(random.choice(VALUES[:4]))
        for _ in range(arity)
    )


def _closure(random: Random, head: Predicate) -> Iterator[Rule]:
    """A recursion that hands on all places but one, to the right, to the left or both."""
    rest = tuple(Variable(f"H{n}") for n in range(1, head.arity))
    first, second = Variable("X"), Variable("Y")
    step = Positive(Atom(BASE[1], (first, second)))
    onward = Positive(Atom(head, (second, *rest)))
    if random.random() < 0.3 and head.arity == 2:
        onward, step = Positive(Atom(head, (second, rest[0]))), Positive(Atom(head, (first, second)))
    body: list[Literal] = [step, onward]
    if random.random() < 0.4:
        body += [Positive(Atom(BASE[1], (ANONYMOUS, Variable("W")))), _compared(random, Variable("W"), second)]
    yield Rule(Atom(head, (first, *rest)), tuple(body))


def _rule(random: Random, head: Predicate, lower: list[Predicate], level: list[Predicate]) -> Rule:
    reads = lower * 3 + level
    atoms = [_atom(random, random.choice(reads)) for _ in range(random.choice((1, 1, 2, 2, 3)))]
    body: list[Literal] = [Positive(atom) for atom in atoms]
    for number in range(random.choice((0, 1, 1, 1, 2))):
        body += _existence(random, random.choice(atoms), number)
    bound = sorted({term.name for atom in atoms for term in atom.terms if isinstance(term, Variable)})
    for number in range(random.choice((0, 0, 1, 2))):
        body.append(_test(random, bound, lower, number))
    random.shuffle(body)
    return Rule(Atom(head, _head_terms(random, bound, head.arity)), tuple(body))


def _atom(random: Random, predicate: Predicate) -> Atom:
    def term() -> Term:
        kind = random.random()
        if kind < 0.1:
            return ANONYMOUS
        return Constant(random.choice(VALUES[:4])) if kind < 0.2 else Variable(random.choice(NAMES))

    return Atom(predicate, tuple(term() for _ in range(predicate.arity)))


def _existence(random: Random, atom: Atom, number: int) -> Iterator[Literal]:
    """Another row like that of an atom, and a comparison of the two that nobody reads further."""
    places = [n for n, term in enumerate(atom.terms) if isinstance(term, Variable)]
    if not places:
        return
    compared = random.choice(places)
    own = Variable(f"W{number}")

    def term(place: int, given: Term) -> Term:
        if place == compared:
            return own
        if isinstance(given, Constant):
            return given if random.random() < 0.9 else ANONYMOUS
        own_too = Variable(f"W{number}_{random.choice((place, 0))}")
        return random.choice((ANONYMOUS, ANONYMOUS, own_too, given, given, Constant(random.choice(VALUES[:4]))))

    yield Positive(Atom(atom.predicate, tuple(term(n, given) for n, given in enumerate(atom.terms))))
    yield _compared(random, own, atom.terms[compared])


def _compared(random: Random, left: Term, right: Term) -> Compare:
    if random.random() < 0.5:
        left, right = right, left
    return Compare(random.choice(("lex", "lex", "int")), left, random.choice(OPERATORS), right)


def _test(random: Random, bound: list[str], lower: list[Predicate], number: int) -> Literal:
    def term() -> Term:
        return (
            Variable(random.choice(bound)) if bound and random.random() < 0.8 else Constant(random.choice(VALUES[:4]))
        )

    def read(*more: Term) -> Atom:
        predicate = random.choice(lower)
        return Atom(predicate, tuple(random.choice((term(), ANONYMOUS, *more)) for _ in range(predicate.arity)))

    match random.choice(("not", "not", "count", "count", "unequal", "compare", "shape")):
        case "not":
            return Negated(read())
        case "count":
            local = Variable(random.choice((f"L{number}", "Given", "Start")) if number == 0 else f"L{number}")
            return Cardinality(read(local), random.choice(OPERATORS), Constant(random.choice(("0", "1", "2", "3"))))
        case "unequal":
            return Unequal(term(), term())
        case "compare":
            return _compared(random, term(), term())
        case _:
            return TextShape(term(), Constant(random.choice(("", "a", "1"))), "", Constant(""))


def goals_at_every_place(random: Random, predicate: Predicate, rows: set[Row]) -> Iterator[Atom]:
    """A goal for every subset of bound places, the empty one included: values of a fact, or any."""
    known = sorted(rows)
    for size in range(predicate.arity + 1):
        for bound in combinations(range(predicate.arity), size):
            row = random.choice(known) if known and random.random() < 0.7 else None
            yield Atom(predicate, tuple(_goal_term(random, n, bound, row) for n in range(predicate.arity)))


def _goal_term(random: Random, place: int, bound: tuple[int, ...], row: Row | None) -> Term:
    if place in bound:
        return Constant(row[place] if row is not None else random.choice(VALUES))
    kind = random.random()
    return ANONYMOUS if kind < 0.3 else Variable("V") if kind < 0.5 else Variable(f"V{place}")
