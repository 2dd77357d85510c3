"""Names that rewritings of rules make.

Rule: a pass makes names by one maker, which was told every name of the program that the pass was given and of the facts
that go with it. So a made name is the name of nothing else: not of what a person wrote, not of what another pass made,
and not of anything else that the same pass made.

A made predicate says what it was made for after a mark that no lacegram can hold, and the predicate of the author that
it stands for before the first of these, which is what errors show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lace.datalog.language.syntax import Predicate, Program, Rule, Variable
from lace.datalog.language.terms import literal_terms, names_among
from lace.datalog.planning.stratify import read_atom

MARK = "?"
_NUMBER = "~"  # before the number of a predicate whose first choice of a name was taken
ASKED = "asked"  # made for the values that are asked for


class PredicateNames:
    """Makes predicates whose names nothing else has, whatever its arity."""

    def __init__(self, program: Program, also: Iterable[Predicate] = ()) -> None:
        self._taken = {predicate.name for predicate in (*predicates_of(program.rules), *also)}
        self._made: dict[tuple[Predicate, str], Predicate] = {}

    def fresh(self, wanted: str, arity: int) -> Predicate:
        """Another predicate at each call, named as wanted if that is free."""
        return Predicate(_free(wanted, _NUMBER, self._taken), arity)

    def made_for(self, predicate: Predicate, purpose: str, arity: int) -> Predicate:
        """The predicate that serves one purpose of another: the same at each call."""
        key = predicate, purpose
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self.fresh(f"{predicate.name}{MARK}{purpose}", arity)
        assert found.arity == arity
        return found


class VariableNames:
    """Makes variables that stand nowhere else in some rules."""

    def __init__(self, taken: Iterable[str]) -> None:
        self._taken = set(taken)

    @classmethod
    def beside(cls, *rules: Rule) -> VariableNames:
        """For use in these rules."""
        return cls(name for rule in rules for name in rule_variables(rule))

    def fresh(self, wanted: str) -> Variable:
        """Another variable at each call, named as wanted if that is free."""
        return Variable(_free(wanted, "_", self._taken))


def _free(wanted: str, number: str, taken: set[str]) -> str:
    name, tried = wanted, 1
    while name in taken:
        tried += 1
        name = f"{wanted}{number}{tried}"
    taken.add(name)
    return name


def predicates_of(rules: Iterable[Rule]) -> Iterator[Predicate]:
    """Every predicate that stands in rules, repeats kept."""
    for rule in rules:
        yield rule.head.predicate
        for literal in rule.body:
            read = read_atom(literal)
            if read is not None:
                yield read[0].predicate


def rule_variables(rule: Rule) -> Iterator[str]:
    """The name of every variable that stands in a rule, repeats kept."""
    yield from names_among(rule.head.terms)
    for literal in rule.body:
        yield from names_among(literal_terms(literal))


def authored_name(name: str) -> str:
    """The name that an author gave to what a predicate stands for."""
    return name.partition(MARK)[0]


def is_authored(rule: Rule) -> bool:
    """Whether a rule has no name that a rewriting marked as its own."""
    return not any(MARK in predicate.name for predicate in predicates_of([rule]))


def is_for_asked(predicate: Predicate) -> bool:
    """Whether a predicate was made for the values that are asked for."""
    return predicate.name.rpartition(MARK)[2].partition(_NUMBER)[0] == ASKED and MARK in predicate.name
