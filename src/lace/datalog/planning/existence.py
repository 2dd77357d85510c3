"""Rules that only ask whether something stands beyond: "not the newest" without pairing every row with every other.

Rule: the program means the same for every predicate that it had; a rule is rewritten only where the count that it then
tests is a rank (see `lace.datalog.planning.ranking`).

    Older(P) :- Candidate(P,T), Candidate(Q,U), LexCompare(U,'>',T).

asks of each P whether some row of the same predicate has a greater key. Which one it is nobody reads, so it is

    Older(P) :- Candidate(P,T), Cardinality(Older?beyond(T,U),'>=','1').
    Older?beyond(T,U) :- Candidate(_,T), Candidate(_,U), LexCompare(U,'>',T).

and the second rule is never derived: its count is a position in a sorted list. What both rows share and the rest of
the rule reads too, such as a group, is a place of the helper as well. Likewise `not Before(P,_)`, where nobody
reads who comes before, is `Cardinality(Before(P,_),'<','1')`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import TypeGuard

from lace.datalog.language.syntax import (
    ANONYMOUS,
    Atom,
    Cardinality,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.terms import literal_variables, names_among
from lace.datalog.language.validate import CheckedProgram, rewritten
from lace.datalog.planning.names import MARK, PredicateNames, VariableNames
from lace.datalog.planning.ranking import rank_of, ranked_predicates
from lace.datalog.planning.sameobject import SameObject

Pair = tuple[Literal, ...]  # the tests that stand between two atoms
_UNNAMED = Predicate("", 0)  # of an ordering that is only looked at


def existence_counted(checked: CheckedProgram, given: Iterable[Predicate] = ()) -> CheckedProgram:
    """The program with every such rule rewritten; the same object where there is none.

    It will be evaluated over facts of the predicates `given`: it gives none of their names to anything else.
    """
    return _counted(SameObject(checked), frozenset(given))


@lru_cache(maxsize=16)
def _counted(same: SameObject[CheckedProgram], given: frozenset[Predicate]) -> CheckedProgram:
    """As `existence_counted`, once for a program that is evaluated many times."""
    checked = same.value
    rules: list[Rule] = []
    names = PredicateNames(checked.program, given)
    for rule in _absence_counted(checked.program).rules:
        rules += _rewritten(rule, names) or (rule,)
    if tuple(rules) == checked.program.rules:
        return checked
    return rewritten(Program(tuple(rules), checked.program.source), checked.profile)


def _absence_counted(program: Program) -> Program:
    """`not B(x,_)` as a count below one, where B is only ever counted so and every count of it is a rank."""
    read = {lit.atom.predicate for rule in program.rules for lit in rule.body if _leaves_open(lit)}
    if not read:
        return program
    ranked = {predicate for predicate, _ in ranked_predicates(_with_counts(program, read))}
    return _with_counts(program, ranked & read)


def _leaves_open(literal: Literal) -> TypeGuard[Negated]:
    return isinstance(literal, Negated) and ANONYMOUS in literal.atom.terms


def _with_counts(program: Program, predicates: Collection[Predicate]) -> Program:
    def counted(literal: Literal) -> Literal:
        if _leaves_open(literal) and literal.atom.predicate in predicates:
            return Cardinality(literal.atom, "<", Constant("1"))
        return literal

    return replace(program, rules=tuple(replace(r, body=tuple(map(counted, r.body))) for r in program.rules))


def _rewritten(rule: Rule, names: PredicateNames) -> tuple[Rule, Rule] | None:
    atoms = [literal for literal in rule.body if isinstance(literal, Positive)]
    for of_y in atoms:
        for of_x in atoms:
            if of_x is not of_y and of_x.atom.predicate == of_y.atom.predicate:
                found = _apart(rule, names, of_x, of_y)
                if found is not None:
                    return found
    return None


def _apart(rule: Rule, names: PredicateNames, of_x: Positive, of_y: Positive) -> tuple[Rule, Rule] | None:
    """The rule without its second row, and the ordering that stands for it."""
    if not (_all_once(of_x.atom) and _all_once(of_y.atom)):
        return None  # the ordering leaves out what nobody compares, and with it that two places are equal
    own = set(literal_variables(of_y)) - set(literal_variables(of_x))
    tests = tuple(lit for lit in rule.body if lit is not of_y and own.intersection(literal_variables(lit)))
    if own.intersection(literal_variables(Positive(rule.head))):
        return None
    rest = tuple(lit for lit in rule.body if lit is not of_y and lit not in tests)
    read = {variable for lit in (*rest, Positive(rule.head)) if lit is not of_x for variable in literal_variables(lit)}
    groups = tuple(x for x, y in zip(of_x.atom.terms, of_y.atom.terms, strict=True) if x == y and x in read)
    other = VariableNames.beside(rule).fresh("Other?")
    for place in _identities(of_x.atom, of_y.atom, read, tests):
        x, y = of_x.atom.terms[place], of_y.atom.terms[place]
        y = y if isinstance(y, Variable) else other
        assert isinstance(x, Variable)
        terms = (x, y, *groups)
        if rank_of([_ordering(Atom(_UNNAMED, terms), (of_x.atom, of_y.atom), place, tests)], 0, 1) is not None:
            counted = Atom(names.fresh(f"{rule.head.predicate.name}{MARK}beyond", len(terms)), terms)
            ordering = replace(_ordering(counted, (of_x.atom, of_y.atom), place, tests), place=rule.place)
            return replace(rule, body=(*rest, Cardinality(counted, ">=", Constant("1")))), ordering
    return None


def _all_once(atom: Atom) -> bool:
    names = names_among(atom.terms)
    return len(names) == len(set(names))


def _identities(of_x: Atom, of_y: Atom, read: set[Variable], tests: Pair) -> Iterator[int]:
    """Places whose value decides, together with what both rows share, whether something stands beyond.

    The compared place does, unless the rows have to differ elsewhere; another one does if nobody reads the compared
    value of its row.
    """
    compared = {term for test in tests for term in literal_variables(test)}
    shared = set(of_x.terms).intersection(of_y.terms)
    pairs = enumerate(zip(of_x.terms, of_y.terms, strict=True))
    # A constant of the other row is a test of its own, which an ordering by this place would not make.
    places = [n for n, (x, y) in pairs if isinstance(x, Variable) and x not in shared and not isinstance(y, Constant)]
    by_key = [n for n in places if of_x.terms[n] in compared]
    if len(tests) == 1 and not any(isinstance(term, Variable) for term in shared):
        yield from by_key
    alone = [
        n for n, term in enumerate(of_x.terms) if isinstance(term, Variable) and term not in shared and term in read
    ]
    if len(alone) == 1:
        yield from (n for n in alone if n in places)
    yield from (n for n in by_key if not alone)


def _ordering(head: Atom, atoms: tuple[Atom, Atom], place: int, tests: Pair) -> Rule:
    """Both atoms with nothing in them but what orders them; the head begins with what each has at the place."""
    x, y, *_ = head.terms
    tested = {variable for test in tests for variable in literal_variables(test)}
    shared = {term for term in atoms[0].terms if isinstance(term, Variable)}.intersection(atoms[1].terms)

    def bare(atom: Atom, own: Term) -> Positive:
        def kept(n: int, term: Term) -> Term:
            if n == place:
                return own
            return term if isinstance(term, Constant) or term in tested or term in shared else ANONYMOUS

        return Positive(Atom(atom.predicate, tuple(kept(n, term) for n, term in enumerate(atom.terms))))

    return Rule(head, (bare(atoms[0], x), bare(atoms[1], y), *tests))
