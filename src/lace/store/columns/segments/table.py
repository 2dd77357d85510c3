"""The table of segments: adding, folding, deleting, and reading what changed.

Rule: a segment row is never updated, only replaced; folding keeps their number small, so that a store of any history
opens by reading a few long blobs.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable
from itertools import takewhile
from typing import NamedTuple

from lace.store.columns.segments.packing import pack, unpack
from lace.store.columns.segments.segment import Segment, merge, picked, without
from lace.store.columns.tables.checksum import checksum, damaged, require_sum
from lace.store.columns.tables.smallcache import small_cache

FANOUT = 8
FOLDED_RECORDS = 1 << 16  # a segment of so many records is not folded further
FRESH_RECORDS = 64
MAX_FRESH = 64


class SegmentRow(NamedTuple):
    """Where a segment stands, and its checksum; its columns stay in the file."""

    id: int
    first: int
    last: int
    records: int
    sum: int

    @property
    def level(self) -> int:
        return (max(self.records, 1).bit_length() - 1) // 3


class Totals(NamedTuple):
    """What `state` keeps about the segments and tombstones, so that none of them can go missing."""

    segments: int
    segment_sums: int
    tombstones: int
    tombstone_sums: int


class SegmentTable:
    """Reads and writes segments; its caller holds the connection's lock and transaction, and begins with `expect`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.forget()

    def forget(self) -> None:
        """Drop what is cached: a transaction was rolled back, and its segments' ids are given out again."""
        self._loaded: dict[int, Segment] = {}
        self._fresh: dict[int, Segment] = {}  # small ones that were just written and will soon be folded
        self._rows: list[SegmentRow] = []  # in order
        self._dead: list[tuple[int, int]] = []  # the tombstones: record and code, in order
        self._totals = Totals(0, 0, 0, 0)  # of these two

    def expect(self, totals: Totals) -> None:
        """Bring the list of segments and the tombstones up to date; they must come to what the state says."""
        if totals[:2] != self._totals[:2]:
            query = "SELECT id, first_record, last_record, records, sum FROM segments ORDER BY first_record"
            self._rows = [SegmentRow(*row) for row in self._connection.execute(query)]
            if not all(isinstance(value, int) for row in self._rows for value in row):
                raise damaged("the list of segments")
        if totals[2:] != self._totals[2:]:
            self._dead = self._connection.execute("SELECT record, code FROM tombstones ORDER BY record").fetchall()
            if totals[2:] != (len(self._dead), _sum_of_dead(self._dead)):
                raise damaged("the list of deleted records")
        if totals[:2] != (len(self._rows), sum([row.sum for row in self._rows])):
            raise damaged("the list of segments")
        self._totals = totals

    @property
    def totals(self) -> Totals:
        """What the state has to keep."""
        return self._totals

    def rows(self, after: int = 0) -> list[SegmentRow]:
        """The segments that reach beyond a record id, in order."""
        return self._rows[bisect_right(self._rows, after, key=lambda row: row.last) :]

    def append(self, segment: Segment) -> None:
        """Add the facts of new records."""
        self._insert(segment.ids[0], segment.ids[-1], segment)
        self._fold()

    def live(self, row: SegmentRow, *, keep: bool = False) -> Segment:
        """A segment without its deleted records; `keep` holds its columns in memory for the next time."""
        segment = self._loaded.get(row.id) or self._fresh.get(row.id)
        if segment is None:
            segment = self._read(row)
            if keep:
                self._loaded[row.id] = segment
        return without(segment, {code for _, code in self._dead_in(row)})

    def all_live(self) -> list[Segment]:
        """Every segment, held in memory from here on as long as the file has it."""
        self._loaded = {row.id: self._loaded[row.id] for row in self._rows if row.id in self._loaded}
        with small_cache(self._connection):
            return [self.live(row, keep=True) for row in self._rows]

    def added_after(self, record: int) -> list[Segment]:
        """The live records with higher ids."""
        return [_behind(self.live(row), record) for row in self.rows(record)]

    def next_after(self, record: int) -> tuple[SegmentRow, Segment] | None:
        """The first segment that reaches beyond a record id, with only the records there."""
        rows = self.rows(record)
        return (rows[0], _behind(self.live(rows[0]), record)) if rows else None

    def bury(self, records: dict[int, int]) -> Segment:
        """Delete records (id → hash code); returns their facts."""
        self._connection.executemany("INSERT INTO tombstones VALUES (?, ?)", sorted(records.items()))
        self._dead = sorted([*self._dead, *records.items()])
        self._count(tombstones=len(records), tombstone_sums=_sum_of_dead(records.items()))
        buried = []
        for row in self.rows(min(records) - 1):
            codes = {code for record, code in records.items() if row.first <= record <= row.last}
            if codes:
                buried.append(picked(self._read(row), codes))
                if 4 * len(self._dead_in(row)) >= row.records:  # so dead rows never cost a reader more than a third
                    self._replace([row])
        return merge(buried)

    def _read(self, row: SegmentRow) -> Segment:
        try:  # half the time of a query: the bytes are copied once
            with self._connection.blobopen("segments", "columns", row.id, readonly=True) as blob:
                columns = blob.read()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname != "SQLITE_ERROR":
                raise
            raise damaged(f"segment {row.id}") from error  # there is no such row, or no bytes in it
        require_sum(f"segment {row.id}", row.sum, row.first, row.last, row.records, columns)
        return unpack(columns)

    def _dead_in(self, row: SegmentRow) -> list[tuple[int, int]]:
        return self._dead[bisect_left(self._dead, (row.first, 0)) : bisect_left(self._dead, (row.last + 1, 0))]

    def _count(self, **by: int) -> None:
        self._totals = self._totals._replace(**{name: getattr(self._totals, name) + more for name, more in by.items()})

    def _insert(self, first: int, last: int, segment: Segment) -> None:
        insert = "INSERT INTO segments(first_record, last_record, records, columns, sum) VALUES (?, ?, ?, ?, ?)"
        columns = pack(segment)
        said = checksum(first, last, len(segment), columns)
        row = self._connection.execute(insert, (first, last, len(segment), columns, said)).lastrowid
        assert row is not None
        insort(self._rows, SegmentRow(row, first, last, len(segment), said), key=lambda row: row.first)
        self._count(segments=1, segment_sums=said)
        if len(self._fresh) >= MAX_FRESH:
            self._fresh.clear()
        if len(segment) <= FRESH_RECORDS:
            self._fresh[row] = segment

    def _fold(self) -> None:
        """Join the newest segments wherever FANOUT of one level or smaller stand together."""
        while run := self._foldable():
            self._replace(run)

    def _foldable(self) -> list[SegmentRow]:
        small = list(takewhile(lambda row: row.records < FOLDED_RECORDS, self._rows[: -8 * FANOUT - 1 : -1]))
        for level in sorted({row.level for row in small}, reverse=True):
            run = _leading(small, level)
            if len(run) >= FANOUT:
                return run[::-1]
        return []

    def _replace(self, rows: list[SegmentRow]) -> None:
        """One segment for several, without what was deleted from them."""
        segment = merge([self.live(row) for row in rows])
        first, last = rows[0].first, rows[-1].last
        dead = [one for row in rows for one in self._dead_in(row)]
        for row in rows:
            self._connection.execute("DELETE FROM segments WHERE id = ?", (row.id,))
            self._fresh.pop(row.id, None)
            self._rows.remove(row)
        self._connection.execute("DELETE FROM tombstones WHERE record BETWEEN ? AND ?", (first, last))
        self._dead = [one for one in self._dead if not first <= one[0] <= last]
        self._count(
            segments=-len(rows), segment_sums=-sum(row.sum for row in rows),
            tombstones=-len(dead), tombstone_sums=-_sum_of_dead(dead),
        )  # fmt: skip
        if len(segment):
            self._insert(first, last, segment)


def _sum_of_dead(dead: Iterable[tuple[int, int]]) -> int:
    return sum(checksum(record, code) for record, code in dead)


def _leading(rows: list[SegmentRow], level: int) -> list[SegmentRow]:
    return list(takewhile(lambda row: row.level <= level, rows))


def _behind(segment: Segment, record: int) -> Segment:
    """The records of a segment with higher ids."""
    start = bisect_right(segment.ids, record)
    if start == 0:
        return segment
    return picked(segment, set(segment.subjects[start:]))
