"""The segments of a store file: adding, folding, deleting, and reading what changed.

Rule: a segment row is never updated, only replaced; folding keeps their number small, so that a store of any history
opens by reading a few long blobs.
"""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from itertools import takewhile
from typing import NamedTuple

from lace.store.packing import pack, unpack
from lace.store.segments import Segment, merge, picked, without

FANOUT = 8
FOLDED_RECORDS = 1 << 16  # a segment of so many records is not folded further
FRESH_RECORDS = 64
MAX_FRESH = 64


class SegmentRow(NamedTuple):
    """Where a segment stands; its columns stay in the file."""

    id: int
    first: int
    last: int
    records: int

    @property
    def level(self) -> int:
        return (max(self.records, 1).bit_length() - 1) // 3


class SegmentLog:
    """Reads and writes segments; its caller holds the connection's lock and transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._loaded: dict[int, Segment] = {}
        self._fresh: dict[int, Segment] = {}  # small ones that were just written and will soon be folded

    def forget(self) -> None:
        """Drop what is cached: a transaction was rolled back, and its segments' ids are given out again."""
        self._loaded.clear()
        self._fresh.clear()

    def rows(self, after: int = 0) -> list[SegmentRow]:
        """The segments that reach beyond a record id, in order."""
        query = (
            "SELECT id, first_record, last_record, records FROM segments WHERE last_record > ? ORDER BY first_record"
        )
        return [SegmentRow(*row) for row in self._connection.execute(query, (after,))]

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
        return without(segment, self._dead(row))

    def all_live(self) -> list[Segment]:
        """Every segment, held in memory from here on as long as the file has it."""
        rows = self.rows()
        self._loaded = {row.id: self._loaded[row.id] for row in rows if row.id in self._loaded}
        return [self.live(row, keep=True) for row in rows]

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
        buried = []
        for row in self.rows(min(records) - 1):
            codes = {code for record, code in records.items() if row.first <= record <= row.last}
            if codes:
                buried.append(picked(self._read(row), codes))
                if 4 * len(self._dead(row)) >= row.records:
                    self._replace([row])
        return merge(buried)

    def _read(self, row: SegmentRow) -> Segment:
        query = "SELECT columns FROM segments WHERE id = ?"
        return unpack(self._connection.execute(query, (row.id,)).fetchone()[0])

    def _dead(self, row: SegmentRow) -> set[int]:
        query = "SELECT code FROM tombstones WHERE record BETWEEN ? AND ?"
        return {code for (code,) in self._connection.execute(query, (row.first, row.last))}

    def _insert(self, first: int, last: int, segment: Segment) -> None:
        insert = "INSERT INTO segments(first_record, last_record, records, columns) VALUES (?, ?, ?, ?)"
        row = self._connection.execute(insert, (first, last, len(segment), pack(segment))).lastrowid
        if len(self._fresh) >= MAX_FRESH:
            self._fresh.clear()
        if row is not None and len(segment) <= FRESH_RECORDS:
            self._fresh[row] = segment

    def _fold(self) -> None:
        """Join the newest segments wherever FANOUT of one level or smaller stand together."""
        while run := self._foldable():
            self._replace(run)

    def _foldable(self) -> list[SegmentRow]:
        query = "SELECT id, first_record, last_record, records FROM segments ORDER BY first_record DESC LIMIT ?"
        newest = [SegmentRow(*row) for row in self._connection.execute(query, (8 * FANOUT,))]
        small = list(takewhile(lambda row: row.records < FOLDED_RECORDS, newest))
        for level in sorted({row.level for row in small}, reverse=True):
            run = _leading(small, level)
            if len(run) >= FANOUT:
                return run[::-1]
        return []

    def _replace(self, rows: list[SegmentRow]) -> None:
        """One segment for several, without what was deleted from them."""
        segment = merge([self.live(row) for row in rows])
        first, last = rows[0].first, rows[-1].last
        for row in rows:
            self._connection.execute("DELETE FROM segments WHERE id = ?", (row.id,))
            self._fresh.pop(row.id, None)
        self._connection.execute("DELETE FROM tombstones WHERE record BETWEEN ? AND ?", (first, last))
        if len(segment):
            self._insert(first, last, segment)


def _leading(rows: list[SegmentRow], level: int) -> list[SegmentRow]:
    return list(takewhile(lambda row: row.level <= level, rows))


def _behind(segment: Segment, record: int) -> Segment:
    """The records of a segment with higher ids."""
    start = bisect_right(segment.ids, record)
    if start == 0:
        return segment
    return picked(segment, set(segment.subjects[start:]))
