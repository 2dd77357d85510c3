"""Keyed sums of sets (070).

Rule: everything here is linear. Sums are plain arrays of 64-bit words that wrap; the sums of two parts of a set that
share no record add up to the sums of both, wherever the parts were summed.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lace.differences.keyed import U64, KeyedIds

COUNTERS = 24  # of an estimate
_COUNTER_BYTES = COUNTERS // 8


def measure(keyed: KeyedIds) -> U64:
    """Count, both sums and the estimate's counters of a set, as one linear array of words (070-SUM-01, 070-EST-01)."""
    measured = np.empty(3 + COUNTERS, np.uint64)
    measured[0] = len(keyed)
    measured[1] = np.add.reduce(keyed.short)
    measured[2] = np.add.reduce(keyed.tail)
    tails = np.ascontiguousarray(keyed.tail.astype("<u8")).view(np.uint8).reshape(-1, 8)
    for byte in range(_COUNTER_BYTES):
        column = np.ascontiguousarray(tails[:, byte])
        for bit in range(8):
            measured[3 + 8 * byte + bit] = np.count_nonzero(column & np.uint8(1 << bit))
    return measured


def nothing() -> U64:
    """The measure of the empty set."""
    return np.zeros(3 + COUNTERS, np.uint64)


def agrees(expected: U64, told: U64) -> bool:
    """Whether count and both sums are the ones that were told (070-END-01)."""
    return bool((expected[:3] == told[:3]).all())


def estimate(ours: U64, theirs: U64) -> float:
    """About how many records two sets differ by (070-EST-02), from their measures.

    A counter is a sum of independent ±1 over the records, so the square of the difference of two of them is on average
    the size of the difference; 24 of them give it within some 30 percent.
    """
    counts = (ours[:1] - theirs[:1]).view(np.int64)
    ones = _signed_16(ours[3:] - theirs[3:])
    balance = 2 * ones - counts
    return float(np.square(balance.astype(np.float64)).mean())


def _signed_16(words: U64) -> npt.NDArray[np.int64]:
    """On the wire counters are cut to 16 bits: a difference of them is read as the nearest number to nothing."""
    return ((words + np.uint64(1 << 15)) & np.uint64(0xFFFF)).astype(np.int64) - (1 << 15)
