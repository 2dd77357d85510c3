"""Keyed ids (070): what two sides call a record while they compare their sets.

Rule: a keyed id is SipHash-1-3 with 128 bits of output over the 32 digest bytes and the letter, under a key that both
hellos make. It only nominates: what is transferred and stored is decided by record hashes. Its first half is the short
id that a sketch carries, the second goes into sums only, so the two are checked independently.

Why this is enough: nobody who writes records knows the key before the exchange begins, so nobody can prepare records
whose keyed ids collide or whose sums cancel; by chance two of a million short ids collide once in 37 million exchanges,
and then the sums at the end say so. A peer knows the key; what it can do with it is to spoil its own exchange.
"""

from __future__ import annotations

import struct

import numpy as np
import numpy.typing as npt

from lace.differences.ids import ID_BYTES, Ids
from lace.notation.digest import key_deriver
from lace.values import dataclass

_CONTEXT = "lace-differences/v1 key"
_CHUNK = 8192  # ids hashed at once: all columns of a chunk stay in the cache
START = (0x736F6D6570736575, 0x646F72616E646F6D ^ 0xEE, 0x6C7967656E657261, 0x7465646279746573)

U64 = npt.NDArray[np.uint64]
_derive = key_deriver(_CONTEXT)


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceKey:
    """The keys of one epoch of one link, the same on both sides."""

    ids: tuple[int, int]  # of SipHash
    check: int  # of the check in a symbol
    walk: int  # of the places an id takes in a sketch

    def to_bytes(self) -> bytes:
        """All four words as they were derived."""
        return struct.pack("<4Q", *self.ids, self.check, self.walk)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedIds:
    """Keyed ids in the order of the ids they belong to."""

    short: U64
    tail: U64

    def __len__(self) -> int:
        return len(self.short)


def derive_key(first_hello: bytes, second_hello: bytes) -> DifferenceKey:
    """The keys of two hello blocks, that of operand 0 first (070-KEY-01)."""
    low, high, check, walk = struct.unpack("<4Q", _derive(first_hello + b"\n" + second_hello, 32))
    return DifferenceKey(ids=(low, high), check=check, walk=walk)


def keyed_ids(ids: Ids, key: DifferenceKey) -> KeyedIds:
    """The keyed ids of some ids (070-KEY-02)."""
    short, tail = np.empty(len(ids), np.uint64), np.empty(len(ids), np.uint64)
    for start in range(0, len(ids), _CHUNK):
        part = slice(start, start + _CHUNK)
        # The digest is a byte string, and SipHash reads words the little end first.
        words = ids.words[:, part].byteswap()
        last = ids.letters[part].astype(np.uint64) | np.uint64(ID_BYTES << 56)
        short[part], tail[part] = _siphash(words, last, key.ids)
    return KeyedIds(short, tail)


def mix(values: U64, key: int) -> U64:
    """A keyed permutation of 64-bit words: the finaliser of MurmurHash3 around a key (070-KEY-03)."""
    mixed = values ^ np.uint64(key)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xC4CEB9FE1A85EC53)
    mixed ^= mixed >> np.uint64(33)
    return mixed


def _siphash(words: U64, last: U64, key: tuple[int, int]) -> tuple[U64, U64]:
    """SipHash-1-3-128 of messages of five words each."""
    size = len(last)
    state = [np.full(size, start ^ key[n % 2], np.uint64) for n, start in enumerate(START)]
    spare = np.empty(size, np.uint64)
    for word in (*words, last):
        state[3] ^= word
        _round(state, spare)
        state[0] ^= word
    state[2] ^= np.uint64(0xEE)
    halves = []
    for _ in range(2):
        for _ in range(3):
            _round(state, spare)
        halves.append(state[0] ^ state[1] ^ state[2] ^ state[3])
        state[1] ^= np.uint64(0xDD)
    return halves[0], halves[1]


def _round(state: list[U64], spare: U64) -> None:
    v0, v1, v2, v3 = state
    v0 += v1
    _rotate(v1, 13, spare)
    v1 ^= v0
    _rotate(v0, 32, spare)
    v2 += v3
    _rotate(v3, 16, spare)
    v3 ^= v2
    v0 += v3
    _rotate(v3, 21, spare)
    v3 ^= v0
    v2 += v1
    _rotate(v1, 17, spare)
    v1 ^= v2
    _rotate(v2, 32, spare)


def _rotate(values: U64, left: int, spare: U64) -> None:
    np.left_shift(values, np.uint64(left), out=spare)
    np.right_shift(values, np.uint64(64 - left), out=values)
    np.bitwise_or(values, spare, out=values)
