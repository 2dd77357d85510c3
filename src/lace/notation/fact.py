"""Predicates and ground facts: the values every layer passes around.

Rule: plain tuples of texts. That a value is UTF-8 NFC and no longer than the profile allows (020) is held where facts
are admitted, in `datalog.admission`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import eq
from typing import NamedTuple, cast, overload

from lace.notation.decimal import natural


class Predicate(NamedTuple):
    """A predicate is its name and its arity."""

    name: str
    arity: int

    def __str__(self) -> str:
        return f"{self.name}/{self.arity}"

    @classmethod
    def parse(cls, text: str) -> Predicate | None:
        """The predicate that `Name/2` spells; None for a text of another form."""
        name, _, arity = text.partition("/")
        count = natural(arity)
        return cls(name, count) if name and count is not None else None


class Fact(NamedTuple):
    """One ground fact."""

    predicate: Predicate
    values: tuple[str, ...]


# What `Fact._make` does, without a Python frame for each of very many.
_make = cast("Callable[[tuple[Predicate, tuple[str, ...]]], Fact]", partial(tuple.__new__, Fact))


def facts_of(predicate: Predicate, rows: Iterable[tuple[str, ...]]) -> list[Fact]:
    """Facts of one predicate; the rows have its arity."""
    return list(map(_make, zip(repeat(predicate), rows)))


class FactColumn(Sequence[Fact]):
    """Facts of one predicate that differ in their first value only, as the lines of a long list do: no value is made
    for any of them before it is asked for."""

    __slots__ = ("firsts", "predicate", "rest")

    def __init__(self, predicate: Predicate, firsts: Sequence[str], rest: tuple[str, ...] = ()) -> None:
        self.predicate: Predicate = predicate
        self.firsts: Sequence[str] = firsts
        self.rest: tuple[str, ...] = rest

    def __len__(self) -> int:
        return len(self.firsts)

    @overload
    def __getitem__(self, place: int) -> Fact: ...
    @overload
    def __getitem__(self, place: slice) -> FactColumn: ...
    def __getitem__(self, place: int | slice) -> Fact | FactColumn:
        if isinstance(place, slice):
            return FactColumn(self.predicate, self.firsts[place], self.rest)
        return Fact(self.predicate, (self.firsts[place], *self.rest))

    def __iter__(self) -> Iterator[Fact]:
        rest = self.rest
        return iter(facts_of(self.predicate, [(first, *rest) for first in self.firsts]))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(eq, self, other))

    def __repr__(self) -> str:
        return f"FactColumn({self.predicate}, {len(self)} facts)"
