"""Relations while a program is evaluated: what stood before, what the last round added, what this round finds.

Rule: a row is in a relation once. Rows found in a round are not seen by its rules before the round is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lace.datalog.engine.index import Codes
from lace.datalog.engine.runs import ColumnRun, Run, Selection, merge_runs
from lace.datalog.engine.sorting import order_of, search, sorted_unique
from lace.datalog.language.syntax import Predicate
from lace.datalog.planning.plan import Version

_BITMAP_BITS = 27  # at most 128 MiB, and only the pages that are touched
Columns = Sequence[Codes]
PackedKeys = npt.NDArray[Any]  # of 32 or of 64 bits


class Seen(Protocol):
    """The rows that a relation has."""

    @property
    def nbytes(self) -> int:
        """What it holds."""

    def fresh(self, columns: Columns) -> Columns:
        """The distinct rows that were never given before; they count as given now."""


class Packing:
    """A row as one key of `bits` per column."""

    def __init__(self, arity: int, domain: int) -> None:
        self.arity = arity
        self.bits: int = (max(domain, 2) - 1).bit_length()
        self.total: int = self.bits * arity
        self._word = np.uint32 if self.total <= 32 else np.uint64  # keys of half the size are sorted in half the time
        self._shift = self._word(self.bits)
        self._mask = self._word((1 << self.bits) - 1)

    def pack(self, columns: Columns) -> PackedKeys:
        key: PackedKeys = columns[0].astype(self._word)
        for column in columns[1:]:
            key <<= self._shift
            key |= column
        return key

    def unpack(self, keys: PackedKeys) -> Columns:
        columns: list[Codes] = []
        for _ in range(self.arity - 1):
            columns.append((keys & self._mask).astype(np.uint32))
            keys = keys >> self._shift
        columns.append(keys.astype(np.uint32))
        return columns[::-1]


class BitmapSeen:
    """One byte per possible row."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self._space = 1 << packing.total
        self._given = np.zeros(self._space, np.bool_)

    @property
    def nbytes(self) -> int:
        return self._space

    def fresh(self, columns: Columns) -> Columns:
        keys = self._packing.pack(columns)
        keys = keys[~self._given[keys]]
        if len(keys) * 32 > self._space:  # marking and reading all places takes less time than sorting so many keys
            mark = np.zeros(self._space, np.bool_)
            mark[keys] = True
            keys = np.flatnonzero(mark).astype(keys.dtype)
        else:
            keys = sorted_unique(keys)
        self._given[keys] = True
        return self._packing.unpack(keys)


class SortedSeen:
    """Sorted keys in a few arrays of geometrically growing size."""

    def __init__(self, packing: Packing) -> None:
        self._packing = packing
        self.levels: list[PackedKeys] = []

    @property
    def nbytes(self) -> int:
        return sum(level.nbytes for level in self.levels)

    def fresh(self, columns: Columns) -> Columns:
        keys = sorted_unique(self._packing.pack(columns))
        for level in self.levels:
            if not len(keys):
                break
            keys = keys[~in_sorted(level, keys)]
        if len(keys):
            self.levels.append(keys)
            self._merge()
        return self._packing.unpack(keys)

    def _merge(self) -> None:
        levels = self.levels
        # Each level at least twice the next: few levels to search, and each key is moved few times.
        while len(levels) > 1 and len(levels[-2]) < 2 * len(levels[-1]):
            joined = np.concatenate([levels[-2], levels[-1]])
            joined.sort(kind="stable")  # finds the two ascending runs and merges them
            levels[-2:] = [joined]


def in_sorted(level: npt.NDArray[Any], keys: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which keys stand in a sorted array."""
    places = search(level, keys)
    places[places == len(level)] = 0  # a key above all of them is compared with the first, which it does not equal
    return np.asarray(level[places] == keys)


class HashedSeen:
    """Rows too wide for 64 bits: looked up by hash, decided by comparing the columns."""

    def __init__(self, arity: int, domain: int) -> None:
        self._positions = tuple(range(arity))
        self._domain = domain
        self.runs: list[Run] = []

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes() for run in self.runs)

    def fresh(self, columns: Columns) -> Columns:
        columns = distinct_rows(columns)
        for run in self.runs:
            new = run.index(self._positions).counts(columns) == 0
            columns = [column[new] for column in columns]
        if len(columns[0]):
            self.runs.append(ColumnRun(columns, len(columns[0]), self._domain))
            while len(self.runs) > 1 and self.runs[-2].rows < 2 * self.runs[-1].rows:
                self.runs[-2:] = [merge_runs(self.runs[-2:], len(self._positions), self._domain)]
        return columns


def distinct_rows(columns: Columns) -> Columns:
    """Rows of any width, each once."""
    order = order_of(columns)
    ordered = [column[order] for column in columns]
    keep = np.ones(len(order), np.bool_)
    if len(order):
        keep[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in ordered])
    return [column[keep] for column in ordered]


def make_seen(arity: int, domain: int) -> Seen:
    """The cheapest set of rows for an arity and a number of codes."""
    packing = Packing(arity, domain)
    if packing.total <= _BITMAP_BITS:
        return BitmapSeen(packing)
    return SortedSeen(packing) if packing.total <= 64 else HashedSeen(arity, domain)


class Relation:
    """The facts of one predicate as runs of rows."""

    def __init__(self, predicate: Predicate, domain: int, runs: Sequence[Run] = ()) -> None:
        self.predicate = predicate
        self.domain = domain
        self._old: list[Run] = [run for run in runs if run.rows]
        self._rows = sum(run.rows for run in self._old)
        self._delta: list[Run] = []
        self._pending: list[Columns] = []
        self._pending_rows = 0
        self._seen: Seen | None = None
        self._rounds: list[int] = []  # rows that each round added

    def ranks(self) -> Codes:
        """The round in which each row of `whole` was found; rows stand in the order of their rounds."""
        return np.repeat(np.arange(len(self._rounds), dtype=np.uint32), self._rounds)

    @property
    def rows(self) -> int:
        """How many facts, those found in the current round left out."""
        return self._rows

    @property
    def found(self) -> int:
        """How many facts, those found in the current round too."""
        return self.rows + self._pending_rows

    def offer(self, columns: Columns, rows: int) -> None:
        """Rows that a rule derived; repeats are dropped."""
        if not self.predicate.arity:
            if rows and not self.found:
                self._pending.append(())
                self._pending_rows = 1
            return
        if self._seen is None:  # made here: most relations of a store never get a row that a rule derived
            self._seen = make_seen(self.predicate.arity, self.domain)
            for run in self._old + self._delta:
                self._seen.fresh([run.column(position) for position in range(self.predicate.arity)])
        fresh = self._seen.fresh(columns)
        if len(fresh[0]):
            self._pending.append(fresh)
            self._pending_rows += len(fresh[0])

    def advance(self) -> int:
        """End a round: what it found becomes the delta. How many rows that is."""
        self._old += self._delta
        self._rounds.append(self._pending_rows)
        found, self._pending = self._pending, []
        rows, self._pending_rows = self._pending_rows, 0
        self._rows += rows
        arity = self.predicate.arity
        parts: list[Run] = [ColumnRun(columns, len(columns[0]) if arity else 1, self.domain) for columns in found]
        self._delta = [merge_runs(parts, arity, self.domain)] if parts else []
        return rows

    def finish(self) -> None:
        """End the stratum: no delta any more, one run, and no memory for what is complete."""
        self._old += self._delta
        self._delta = []
        self._seen = None

    def views(self, version: Version, selection: Selection) -> list[Run]:
        """The runs of a version, without the rows that do not match a selection."""
        return [run.select(selection) for run in self.runs(version)]

    def runs(self, version: Version) -> list[Run]:
        """The runs of a version, few enough to look into each."""
        if version is Version.DELTA:
            return self._delta
        self._compact()
        return self._old if version is Version.OLD else self._old + self._delta

    def _compact(self) -> None:
        """Merge neighbours of like size, so that n runs stay about log n, each row moved log n times."""
        old = self._old
        while len(old) > 1 and old[-2].rows < 2 * old[-1].rows:
            # All that will have to be merged is merged at once: step by step, the last rows would be moved each time.
            start = len(old) - 2
            rows = old[-2].rows + old[-1].rows
            while start and old[start - 1].rows < 2 * rows:
                start -= 1
                rows += old[start].rows
            old[start:] = [merge_runs(old[start:], self.predicate.arity, self.domain)]

    def whole(self) -> Run:
        """All rows as one run."""
        arity = self.predicate.arity
        runs = self._old + self._delta
        if len(runs) != 1:
            runs = [merge_runs(runs, arity, self.domain) if runs else empty_run(arity, self.domain)]
        self._old, self._delta = runs, []
        return runs[0]

    def nbytes(self) -> int:
        """Bytes held."""
        return sum(run.nbytes() for run in self._old + self._delta) + (self._seen.nbytes if self._seen else 0)


def empty_run(arity: int, domain: int) -> Run:
    """No rows."""
    return ColumnRun([np.empty(0, np.uint32) for _ in range(arity)], 0, domain)
