"""Predicates and ground facts: the values every layer passes around.

Rule: plain tuples of texts; a value is UTF-8 NFC and no longer than the profile allows (020), which `check_fact` holds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import repeat
from typing import NamedTuple, cast

from lace.errors import LimitExceeded
from lace.notation.text import require_nfc


class Predicate(NamedTuple):
    """A predicate is its name and its arity."""

    name: str
    arity: int

    def __str__(self) -> str:
        return f"{self.name}/{self.arity}"


class Fact(NamedTuple):
    """One ground fact."""

    predicate: Predicate
    values: tuple[str, ...]


# What `Fact._make` does, without a Python frame for each of very many.
_make = cast("Callable[[tuple[Predicate, tuple[str, ...]]], Fact]", partial(tuple.__new__, Fact))


def facts_of(predicate: Predicate, rows: Iterable[tuple[str, ...]]) -> list[Fact]:
    """Facts of one predicate; the rows have its arity."""
    return list(map(_make, zip(repeat(predicate), rows)))


def check_fact(fact: Fact, max_value_bytes: int) -> None:
    """Raise unless every value is encodable NFC text (020-FACT-11, 020-FACT-12) within the limit (020-FACT-13)."""
    for position, value in enumerate(fact.values):
        require_nfc(value, f"{fact.predicate} argument {position + 1}")
        if len(value) > max_value_bytes or (not value.isascii() and len(value.encode()) > max_value_bytes):
            raise LimitExceeded("max_value_bytes", max_value_bytes, f"a value of {fact.predicate}")
