"""Random stratified programs, facts and edits for comparing evaluators."""

from __future__ import annotations

from random import Random

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

VALUES = ("a", "ab", "b/c", "", "1", "2", "10", "-3", "007", "é", "\U0001f5a7", "�", "x.y")
BASE = (Predicate("Edge", 2), Predicate("Node", 1), Predicate("Triple", 3), Predicate("On", 0), Predicate("Wide", 5))
LEVELS = (
    (Predicate("P0", 1), Predicate("Q0", 2)),
    (Predicate("P1", 2), Predicate("R1", 0), Predicate("S1", 4)),
    (Predicate("P2", 1), Predicate("Q2", 3)),
)
NAMES = ("X", "Y", "Z", "W")


def random_program(random: Random) -> Program:
    """Rules of up to three levels; recursion within a level, negation and counting only of lower ones."""
    rules: list[Rule] = []
    lower: list[Predicate] = list(BASE)
    for level in LEVELS[: random.randint(1, len(LEVELS))]:
        rules += [_rule(random, head, lower, level) for head in level for _ in range(random.randint(1, 2))]
        lower += level
    random.shuffle(rules)
    return Program(tuple(rules))


def _rule(random: Random, head: Predicate, lower: list[Predicate], level: tuple[Predicate, ...]) -> Rule:
    body: list[Literal] = [
        Positive(_atom(random, random.choice(lower * 2 + list(level)), NAMES))
        for _ in range(random.choice((0, 1, 1, 2, 2, 3)))
    ]
    bound = sorted({t.name for lit in body for t in lit.atom.terms if isinstance(t, Variable)})  # type: ignore[union-attr]
    body += [_test(random, bound, lower) for _ in range(random.choice((0, 0, 1, 1, 2)))]
    if not body:
        body = [TrueLiteral()]
    random.shuffle(body)
    terms = tuple(_bound_term(random, bound) for _ in range(head.arity))
    return Rule(Atom(head, terms), tuple(body))


def _atom(random: Random, predicate: Predicate, names: tuple[str, ...]) -> Atom:
    def term() -> Term:
        kind = random.random()
        if kind < 0.15:
            return ANONYMOUS
        return Constant(random.choice(VALUES[:5])) if kind < 0.22 or not names else Variable(random.choice(names))

    return Atom(predicate, tuple(term() for _ in range(predicate.arity)))


def _bound_term(random: Random, bound: list[str]) -> Term:
    return Variable(random.choice(bound)) if bound and random.random() < 0.85 else Constant(random.choice(VALUES))


def _test(random: Random, bound: list[str], lower: list[Predicate]) -> Literal:
    def term() -> Term:
        return _bound_term(random, bound)

    match random.randint(0, 4):
        case 0:
            return Unequal(term(), term())
        case 1:
            return Compare(random.choice(("int", "lex")), term(), random.choice(OPERATORS), term())
        case 2:
            return TextShape(term(), term(), random.choice(("", "/.", "b")), term())
        case 3:
            return Negated(_atom(random, random.choice(lower), tuple(bound)))
        case _:
            local = f"L{random.randint(0, 10**9)}"  # local to this test
            atom = _atom(random, random.choice(lower), (*bound, local))
            limit = random.choice(("0", "1", "2", "4", "-1", "x", "99999999999999999999999"))
            return Cardinality(atom, random.choice(OPERATORS), Constant(limit) if random.random() < 0.8 else term())


def random_fact(random: Random) -> Fact:
    """A base fact over few values, so that joins meet."""
    predicate = random.choice(BASE)
    values = VALUES[: random.choice((3, 5, len(VALUES)))]
    return Fact(predicate, tuple(random.choice(values) for _ in range(predicate.arity)))


def random_facts(random: Random, most: int = 40) -> list[Fact]:
    """Some base facts, repeats possible."""
    return [random_fact(random) for _ in range(random.randint(0, most))]
