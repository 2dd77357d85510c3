"""A keyed rateless sketch of a set (070): as many symbols as are needed to tell how two sets differ.

After Yang, Gilad and Alizadeh, "Practical Rateless Set Reconciliation" (SIGCOMM 2024), with sums instead of exclusive
ors, so that sketches of parts add up. About 1.35 symbols are needed for each record that differs, more for very few.

Rule: a symbol is a function of the set, the key and its number. The sketch of a difference is the difference of
sketches.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lace.differences.keyed import U64, DifferenceKey, mix

SYMBOL_BYTES = 13
MAX_SYMBOLS = 1 << 22  # places beyond this are not computed by anybody
_CHUNK = 1 << 15
_STEP = np.uint64(0xDA942042E4DD58B5)  # of a multiplicative generator modulo 2^64 (070-SKETCH-04)
_CHECK_BITS = np.uint64(32)


class Symbols(NamedTuple):
    """Consecutive symbols of a sketch: counts modulo 2^8, sums of short ids modulo 2^64, of checks modulo 2^32."""

    counts: npt.NDArray[np.uint8]
    sums: U64
    checks: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        return len(self.sums)

    def plus(self, other: Symbols) -> Symbols:
        """The symbols of two sets that share nothing."""
        return Symbols(self.counts + other.counts, self.sums + other.sums, self.checks + other.checks)

    def minus(self, other: Symbols) -> Symbols:
        """The symbols of the difference: what is in both sets is gone."""
        return Symbols(self.counts - other.counts, self.sums - other.sums, self.checks - other.checks)

    def then(self, later: Symbols) -> Symbols:
        """These symbols and those that follow them."""
        return Symbols(
            np.concatenate((self.counts, later.counts)),
            np.concatenate((self.sums, later.sums)),
            np.concatenate((self.checks, later.checks)),
        )


def no_symbols(count: int = 0) -> Symbols:
    """The symbols of the empty set."""
    return Symbols(np.zeros(count, np.uint8), np.zeros(count, np.uint64), np.zeros(count, np.uint32))


def checks_of(short: U64, key: DifferenceKey) -> npt.NDArray[np.uint32]:
    """What a symbol adds up beside the short ids, to tell one id from a sum of several (070-SKETCH-03)."""
    return (mix(short, key.check) >> _CHECK_BITS).astype(np.uint32)


def places_of(
    short: U64, key: DifferenceKey, end: int
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """The places below `end` that ids take after place 0, as (which id, place) pairs, step by step (070-SKETCH-04).

    Only correctly rounded operations of binary64 are used, so that every implementation finds the same places.
    """
    which = np.arange(len(short))
    state = mix(short, key.walk) | np.uint64(1)  # odd: products of odd numbers never become 0
    place = np.zeros(len(short))
    while len(which):
        # An id takes place i with probability 1 / (1 + i/2). This is the distance to its next place, drawn by
        # inverting that distribution: ceil((i + 1.5) * (1 / sqrt(r) - 1)) for r of 32 random bits over 2^32.
        jump = (state >> np.uint64(32)).astype(np.float64)
        jump += 1.0
        np.sqrt(jump, out=jump)
        np.divide(65536.0, jump, out=jump)
        jump -= 1.0
        jump *= place + 1.5
        place = place + np.ceil(jump)
        inside = np.flatnonzero(place < end)
        place, which, state = place[inside], which[inside], state[inside] * _STEP
        if len(which):
            yield which, place.astype(np.int64)


def sketch(short: U64, key: DifferenceKey, start: int, end: int) -> Symbols:
    """The symbols `start` to `end` of a set of short ids."""
    symbols = no_symbols(max(0, end - start))
    for first in range(0, len(short), _CHUNK) if len(symbols) else ():
        _add(symbols, short[first : first + _CHUNK], key, start)
    return symbols


def _add(symbols: Symbols, short: U64, key: DifferenceKey, start: int) -> None:
    """Add ids to symbols in place."""
    checks = checks_of(short, key)
    if start == 0:
        symbols.counts[:1] += np.uint8(len(short) & 0xFF)
        symbols.sums[:1] += np.add.reduce(short, keepdims=True)
        symbols.checks[:1] += np.add.reduce(checks, keepdims=True, dtype=np.uint32)
    found = list(places_of(short, key, start + len(symbols)))
    if not found:
        return
    which, place = (np.concatenate(side) for side in zip(*found, strict=True))
    if start:
        which, place = which[place >= start], place[place >= start] - start
    symbols.counts[:] += np.bincount(place, minlength=len(symbols)).astype(np.uint8)
    np.add.at(symbols.sums, place, short[which])
    np.add.at(symbols.checks, place, checks[which])
