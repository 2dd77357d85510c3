"""Ranks that follow their candidates (030-CARD-12, 030-INCR-05): one more or one less is a step in a sorted list.

Rule: a candidate's count is looked up by bisection, and only those are looked at again whose count can have crossed
the bound. Where that cannot be done, the ranks say so and the stratum is recomputed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any

import numpy as np

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.row_lookup import RowLookup, Visibility
from lace.datalog.engine.runs import CodeRow
from lace.datalog.engine.table import Table
from lace.datalog.language.comparisons import integer_key
from lace.datalog.language.syntax import Predicate
from lace.datalog.planning.plan import Rank
from lace.datalog.planning.ranking import ID, KEY
from lace.values import dataclass

Place = tuple[Any, str, int]  # key in its own order, identity text where ties count, identity
_LAST = 1 << 62


@dataclass(slots=True)
class _Group:
    """The candidates that are compared with each other."""

    entries: list[Place] = field(default_factory=list)  # by most extreme key, ascending
    probes: list[Place] = field(default_factory=list)  # by least extreme key, ascending


@dataclass(frozen=True, slots=True)
class _Standing:
    """Where a candidate stands."""

    group: CodeRow
    entry: Place
    probe: Place


class RankState:
    """The order of the candidates of one rank."""

    def __init__(self, rank: Rank, table: Table, dictionary: Dictionary) -> None:
        self._rank = rank
        self._dictionary = dictionary
        self._table = table
        place_of = {name: place for place, name in rank.candidates.variables}
        self._id = place_of[ID]
        self._key = place_of.get(KEY, self._id)
        self._groups_at = [place_of[name] for name in rank.groups]
        constants = tuple((n, dictionary.code(text)) for n, text in rank.candidates.constants)
        self._lookup: RowLookup = table.lookup((constants, rank.candidates.equal), (self._id,))
        self._up = rank.operator in (">", ">=")  # beyond is the greater side
        same_side = not rank.tie_kind or (rank.tie_operator in (">", ">=")) == self._up
        self.usable: bool = same_side  # else keys and ties run in opposite directions, and no one order has them both
        self._strict = (rank.tie_operator if rank.tie_kind else rank.operator) in ("<", ">")
        self._groups: dict[CodeRow, _Group] = {}
        self._standings: dict[int, _Standing] = {}
        self._moved: list[int] = []
        self._reach: dict[CodeRow, int] = {}
        if self.usable:
            self._build()

    def _build(self) -> None:
        rows = list(self._table.scan())
        codes = np.array(sorted({row[n] for row in rows for n in (self._id, self._key)}), np.uint32)
        text_of = dict(zip(codes.tolist(), self._dictionary.texts(codes), strict=True)).__getitem__
        for identity in dict.fromkeys(row[self._id] for row in rows):
            standing = self._stand(identity, text_of)
            if standing is not None:
                self._standings[identity] = standing
                group = self._groups.setdefault(standing.group, _Group())
                group.entries.append(standing.entry)
                group.probes.append(standing.probe)
        for group in self._groups.values():
            group.entries.sort()
            group.probes.sort()

    def _stand(self, identity: int, text_of: Callable[[int], str]) -> _Standing | None:
        """Where a candidate stands in the new state; None if nowhere."""
        rows = self._lookup.find((identity,), Visibility.NEW)
        keys = [key for key in (self._order_key(text_of(row[self._key])) for row in rows) if key is not None]
        groups = {tuple([row[n] for n in self._groups_at]) for row in rows}
        if len(groups) > 1:
            self.usable = False  # counted in several groups at once: not a rank
        if not keys:
            return None
        tie = text_of(identity) if self._rank.tie_kind else ""
        # Of several keys one is enough on either side: others meet our most extreme one, and what is beyond our least
        # extreme one counts for us.
        most, least = (max(keys), min(keys)) if self._up else (min(keys), max(keys))
        return _Standing(groups.pop(), (most, tie, identity), (least, tie, identity))

    def _order_key(self, text: str) -> Any:
        return integer_key(text) if self._rank.kind == "int" else text

    def count(self, identity: int) -> int:
        """How many facts are counted for a candidate."""
        standing = self._standings.get(identity)
        if standing is None:
            return 0
        entries = self._groups[standing.group].entries
        key, tie, _ = standing.probe
        after = self._strict if self._up else not self._strict
        edge = bisect_right(entries, (key, tie, _LAST)) if after else bisect_left(entries, (key, tie, -1))
        beyond = len(entries) - edge if self._up else edge
        counts_itself = self._rank.others_only and (not self._strict or standing.entry[0] != standing.probe[0])
        return beyond - counts_itself

    def move(self, rows: Iterable[CodeRow]) -> None:
        """Put the candidates of changed rows where they stand now."""
        changed: dict[CodeRow, set[int]] = {}
        for row in rows:
            changed.setdefault(tuple([row[n] for n in self._groups_at]), set()).add(row[self._id])
        self._moved = list(dict.fromkeys(identity for group in changed.values() for identity in group))
        # Each candidate that moved shifts the counts of the others by one at most: only those within this reach of a
        # bound can have crossed it.
        self._reach = {group: len(identities) + 1 + self._rank.others_only for group, identities in changed.items()}
        for identity in self._moved:
            self._move(identity)

    def doubtful(self, bound: int) -> Iterator[int]:
        """Candidates whose count may stand otherwise to a bound than before the last move."""
        yield from self._moved
        for key, reach in self._reach.items():
            if key in self._groups:
                yield from self._near(self._groups[key], bound, reach)

    def _move(self, identity: int) -> None:
        old, new = self._standings.pop(identity, None), self._stand(identity, self._dictionary.text)
        if old is not None:
            group = self._groups[old.group]
            del group.entries[bisect_left(group.entries, old.entry)]
            del group.probes[bisect_left(group.probes, old.probe)]
        if new is not None:
            group = self._groups.setdefault(new.group, _Group())
            insort(group.entries, new.entry)
            insort(group.probes, new.probe)
            self._standings[identity] = new

    def _near(self, group: _Group, bound: int, reach: int) -> Iterator[int]:
        """Candidates whose count is within reach of the bound."""
        size = len(group.entries)
        low, high = bound - reach, bound + reach
        first, last = (size - high - 1, size - low) if self._up else (low - 1, high)
        if last < 0 or first >= size:
            return
        # Rows with the same key have the same count, whatever numbers their identities happen to have.
        start = bisect_left(group.probes, (*group.entries[first][:2], -1)) if first >= 0 else 0
        stop = bisect_right(group.probes, (*group.entries[last][:2], _LAST)) if last < size else len(group.probes)
        yield from (identity for _, _, identity in group.probes[start:stop])


Delta = Callable[[Predicate], tuple[list[CodeRow], list[CodeRow]]]


class RankStates:
    """The ranks of a program, each ordered when it is first needed and moved once per change."""

    def __init__(self, table: Callable[[Predicate], Table], dictionary: Dictionary) -> None:
        self._table = table
        self._dictionary = dictionary
        self._states: dict[Rank, RankState] = {}
        self._moved: set[Rank] = set()

    def follow(self, rank: Rank, delta: Delta) -> RankState:
        """The order of a rank's candidates in the new state."""
        if rank not in self._moved:
            came, went = delta(rank.candidates.predicate)
            self.state(rank).move(came + went)
            self._moved.add(rank)
        return self.state(rank)

    def state(self, rank: Rank) -> RankState:
        """The order of a rank's candidates, as it was last moved."""
        found = self._states.get(rank)
        if found is None:
            found = self._states[rank] = RankState(rank, self._table(rank.candidates.predicate), self._dictionary)
        return found

    def count(self, rank: Rank, identity: int) -> int:
        """How many facts are counted for a candidate."""
        return self.state(rank).count(identity)

    def settle(self, delta: Delta) -> None:
        """End a change: an order that should have moved and was not asked to is forgotten."""
        for rank in list(self._states):
            came, went = delta(rank.candidates.predicate)
            if (came or went) and rank not in self._moved:
                del self._states[rank]
        self._moved = set()

    def forget(self) -> None:
        """Sort again when next needed."""
        self._states, self._moved = {}, set()
