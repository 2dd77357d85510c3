"""How many symbols of a sketch to send, if any (070): by what two summaries say.

Rule: a choice changes what an exchange costs, never what it comes to; so a side may choose as it likes, and this is
how we do.
"""

from __future__ import annotations

from lace.differences.keyed import U64
from lace.differences.sums import agrees, estimate
from lace.values import dataclass

_SYMBOLS_MORE = 1.5  # of what was sent, when that did not suffice
_MOST_DIFFERENT = 0.6  # of both sets together, above which listing both costs less


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareLimits:
    """What comparing may cost, on either side, and how a sketch begins."""

    max_symbols: int = 1 << 18  # 3.4 MB; about 190,000 differences
    max_listed: int = 100_000  # advertisements in one block (050)
    min_symbols: int = 24  # of a sketch, and of each continuation
    symbols_each: float = 1.75  # for each record that differs: 1.35 suffice, and the estimate is only within 30 percent


def may_pay(mine: int, other: int) -> bool:
    """Whether a sketch may cost less than listings, by how many records the sides have."""
    return abs(mine - other) <= _MOST_DIFFERENT * (mine + other)


def first_symbols(ours: U64, theirs: U64, limits: CompareLimits) -> int:
    """How many symbols a sketch begins with; 0 if nothing differs, or if listing both sets costs less."""
    if agrees(ours, theirs):
        return 0
    mine, other = int(ours[0]), int(theirs[0])
    about = max(estimate(ours, theirs), abs(mine - other), 1)
    symbols = limits.min_symbols + int(about * limits.symbols_each)
    if symbols > limits.max_symbols or about > _MOST_DIFFERENT * (mine + other) or about > 2 * limits.max_listed:
        return 0
    return symbols


def more_symbols(given: int, limits: CompareLimits) -> int:
    """Up to where to ask for symbols when those given did not suffice; `given` itself if that is not worth it."""
    return min(max(given + limits.min_symbols, int(given * _SYMBOLS_MORE)), max(given, limits.max_symbols))
