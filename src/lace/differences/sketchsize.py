"""How two sets are best compared, by what their summaries say (070).

Rule: a choice changes what an exchange costs, never what it comes to; so a side may choose as it likes, and this is
how we do.
"""

from __future__ import annotations

from enum import Enum, auto

from lace.differences.keyed import U64
from lace.differences.sums import estimate
from lace.values import dataclass

_SYMBOLS_EACH = 1.75  # for each record that differs: 1.35 suffice, and the estimate is only within 30 percent
_SYMBOLS_MORE = 1.5  # of what was sent, when that did not suffice
_FEWEST = 24
_MOST_DIFFERENT = 0.6  # of both sets together, above which listing both costs less


class Way(Enum):
    """How to go on after two summaries."""

    EQUAL = auto()  # nothing differs
    SKETCH = auto()
    STANDARD = auto()  # P14 or P16


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareLimits:
    """What comparing may cost, on either side."""

    max_symbols: int = 1 << 18  # 3.4 MB; about 190,000 differences
    max_listed: int = 100_000  # advertisements in one block (050)


@dataclass(frozen=True, slots=True)
class Choice:
    """The way, and how many symbols a sketch should begin with."""

    way: Way
    symbols: int = 0


def may_pay(mine: int, other: int) -> bool:
    """Whether a sketch may cost less than listings, by how many records the sides have."""
    return abs(mine - other) <= _MOST_DIFFERENT * (mine + other)


def choose(ours: U64, theirs: U64, limits: CompareLimits) -> Choice:
    """The way for two measured sets."""
    if bool((ours[:3] == theirs[:3]).all()):
        return Choice(Way.EQUAL)
    mine, other = int(ours[0]), int(theirs[0])
    about = max(estimate(ours, theirs), abs(mine - other), 1)
    symbols = _FEWEST + int(about * _SYMBOLS_EACH)
    if symbols > limits.max_symbols or about > _MOST_DIFFERENT * (mine + other) or about > 2 * limits.max_listed:
        return Choice(Way.STANDARD)
    return Choice(Way.SKETCH, symbols)


def more_symbols(given: int, limits: CompareLimits) -> int:
    """Up to where to ask for symbols when those given did not suffice; `given` itself if that is not worth it."""
    return min(max(given + _FEWEST, int(given * _SYMBOLS_MORE)), max(given, limits.max_symbols))
