"""The measure of a few ids (070), one by one: what an open link works out again and again.

Rule: the same answer as `sums.measure` over `keyed.keyed_ids`. For a single id this takes a seventeenth of what columns
take, and a server with a hundred links measures one record under a hundred keys; from a dozen ids on columns are faster
(`DifferenceThresholds.scalar_sums`, docs/ways.md).
"""

from __future__ import annotations

import numpy as np

from lace.differences.ids import ID_BYTES, Ids
from lace.differences.keyed import START, U64, DifferenceKey
from lace.differences.sums import COUNTERS

_MASK = (1 << 64) - 1


def measure_few(ids: Ids, key: DifferenceKey) -> U64:
    """Count, both sums and the counters of a few ids (070-SUM-01, 070-EST-01)."""
    short = tail = 0
    counters = [0] * COUNTERS
    for words, letter in zip(ids.words.byteswap().T.tolist(), ids.letters.tolist(), strict=True):
        first, second = _siphash_one((*words, letter | ID_BYTES << 56), key.ids)
        short, tail = short + first, tail + second
        for bit in range(COUNTERS):
            counters[bit] += second >> bit & 1
    return np.array([len(ids), short & _MASK, tail & _MASK, *counters], np.uint64)


def _siphash_one(words: tuple[int, ...], key: tuple[int, int]) -> tuple[int, int]:
    """SipHash-1-3-128 of one message of five words (070-KEY-02)."""
    low, high = key
    state = (START[0] ^ low, START[1] ^ high, START[2] ^ low, START[3] ^ high)
    for word in words:
        v0, v1, v2, v3 = _round_one(state[0], state[1], state[2], state[3] ^ word)
        state = v0 ^ word, v1, v2, v3
    v0, v1, v2, v3 = state
    state = v0, v1, v2 ^ 0xEE, v3
    halves = []
    for _ in range(2):
        for _ in range(3):
            state = _round_one(*state)
        v0, v1, v2, v3 = state
        halves.append(v0 ^ v1 ^ v2 ^ v3)
        state = v0, v1 ^ 0xDD, v2, v3
    return halves[0], halves[1]


def _round_one(v0: int, v1: int, v2: int, v3: int) -> tuple[int, int, int, int]:
    v0 = v0 + v1 & _MASK
    v1 = (v1 << 13 & _MASK | v1 >> 51) ^ v0
    v0 = v0 << 32 & _MASK | v0 >> 32
    v2 = v2 + v3 & _MASK
    v3 = (v3 << 16 & _MASK | v3 >> 48) ^ v2
    v0 = v0 + v3 & _MASK
    v3 = (v3 << 21 & _MASK | v3 >> 43) ^ v0
    v2 = v2 + v1 & _MASK
    v1 = (v1 << 17 & _MASK | v1 >> 47) ^ v2
    v2 = v2 << 32 & _MASK | v2 >> 32
    return v0, v1, v2, v3
