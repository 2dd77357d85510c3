"""What a sketch of a difference says (070): the short ids that only one of two sets has.

Rule: symbols come from a peer and may be anything. Work and memory are bounded by how many symbols there are, not by
what they hold, and a result that does not come out exactly is not an answer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lace.differences.ids import distinct
from lace.differences.keyed import U64, DifferenceKey
from lace.differences.sketch import Symbols, checks_of, no_symbols, places_of
from lace.values import dataclass

_ONE, _MINUS_ONE = np.uint8(1), np.uint8(255)  # counts are modulo 2^8
MAX_ROUNDS = 2_000  # an honest sketch of any size takes some dozens; each has a price that few ids do not pay


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """Short ids, sorted: `mine` that the set has which was subtracted from, `theirs` the other one."""

    mine: U64
    theirs: U64

    def __len__(self) -> int:
        return len(self.mine) + len(self.theirs)


class Peeler:
    """Takes the symbols of a difference as they come, and names its ids as soon as the symbols suffice."""

    def __init__(self, key: DifferenceKey, max_rounds: int = MAX_ROUNDS) -> None:
        self._key = key
        self._max_rounds = max_rounds
        self._left = no_symbols()  # what the ids found so far do not explain
        self._found: list[tuple[U64, bool]] = []  # with whether they are ours
        self._known: set[int] = set()
        self.is_hopeless: bool = False  # more ids than symbols, or one id twice: no difference of sets has this sketch

    @property
    def symbols(self) -> int:
        """How many symbols were given."""
        return len(self._left)

    @property
    def found(self) -> int:
        """How many ids are known by now."""
        return len(self._known)

    def give(self, more: Symbols) -> Difference | None:
        """Further symbols of (ours minus theirs); the difference, if they suffice."""
        start = len(self._left)
        self._left = self._left.then(more)  # a copy, to be changed here
        for ids, ours in self._found:
            self._subtract(ids, ours=ours, start=start)
        self._peel(np.arange(start, len(self._left)))
        return self._difference()

    def _peel(self, touched: npt.NDArray[np.int64]) -> None:
        """Take out every id that stands alone in a symbol, until none does. Only symbols that changed are looked at."""
        for _ in range(self._max_rounds):
            if not len(touched):
                return
            fresh = [self._alone(touched, ours=ours) for ours in (True, False)]
            known = len(self._known) + len(fresh[0]) + len(fresh[1])
            self._known.update(*(ids.tolist() for ids in fresh))
            if len(self._known) < known or known > len(self._left):
                self.is_hopeless = True
                return
            changed = [self._subtract(ids, ours=ours) for ids, ours in zip(fresh, (True, False), strict=True)]
            self._found += [(ids, ours) for ids, ours in zip(fresh, (True, False), strict=True) if len(ids)]
            touched = distinct(np.concatenate(changed))
        self.is_hopeless = True

    def _alone(self, touched: npt.NDArray[np.int64], *, ours: bool) -> U64:
        """The distinct ids that some symbols consist of."""
        counts, sums, checks = (column[touched] for column in self._left)
        # A count of one may also be 257 ids, or five of ours and four of theirs: the check decides.
        likely = counts == (_ONE if ours else _MINUS_ONE)
        sums, checks = sums[likely], checks[likely]
        if not ours:
            sums, checks = np.uint64(0) - sums, np.uint32(0) - checks
        return distinct(sums[checks_of(sums, self._key) == checks])

    def _subtract(self, ids: U64, *, ours: bool, start: int = 0) -> npt.NDArray[np.int64]:
        """Take ids out of every symbol from `start` on that they are in; the symbols that this changed."""
        if not len(ids):
            return np.zeros(0, np.int64)
        pairs = [(np.arange(len(ids)), np.zeros(len(ids), np.int64)), *places_of(ids, self._key, len(self._left))]
        which, place = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
        if start:
            which, place = which[place >= start], place[place >= start]
        counts, sums, checks = self._left
        what, check = ids[which], checks_of(ids, self._key)[which]
        if ours:
            what, check = np.uint64(0) - what, np.uint32(0) - check
        # Not `counts[place] += …`: where a place comes twice, that would add once.
        np.add.at(counts, place, _MINUS_ONE if ours else _ONE)
        np.add.at(sums, place, what)
        np.add.at(checks, place, check)
        return place

    def _difference(self) -> Difference | None:
        # What is left is not explained by what was found.
        if self.is_hopeless or any(column.any() for column in self._left):
            return None
        sides = ([ids for ids, whose in self._found if whose is ours] for ours in (True, False))
        mine, theirs = (np.sort(np.concatenate([*side, np.zeros(0, np.uint64)])) for side in sides)
        return Difference(mine, theirs)
