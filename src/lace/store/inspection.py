"""The integrity check of a store file.

Rule: it looks at structures, not at signatures: records, segments, dictionary and coordinates must tell one story.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from lace.store.history import SegmentLog
from lace.store.packing import unpack
from lace.store.segments import Segment, subjects_of
from lace.store.symbols import BLOCK, SymbolTable

MARK_BYTES = 6  # of the mark before the hash text in a stored record
HASH_CHARACTERS = 48


def problems(connection: sqlite3.Connection, symbols: SymbolTable, log: SegmentLog) -> list[str]:
    """What is wrong, one sentence each."""
    found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
    if found:  # the rest would read damaged pages
        return found
    return [
        *_counters(connection),
        *_dictionary(connection),
        *_segments(connection, symbols, log),
        *_removals(connection),
    ]


def _counters(connection: sqlite3.Connection) -> Iterator[str]:
    said = connection.execute("SELECT records, stored_bytes, last_record FROM state").fetchone()
    query = "SELECT count(*), coalesce(sum(length(body)), 0), coalesce(max(id), 0) FROM records"
    is_so = connection.execute(query).fetchone()
    if said[:2] != is_so[:2]:
        yield f"the counters say {said[0]} records of {said[1]} bytes, the file holds {is_so[0]} of {is_so[1]}"
    if is_so[2] > said[2]:
        yield f"record {is_so[2]} is above the high-water mark {said[2]}"
    orphans = connection.execute(
        "SELECT count(*) FROM coordinates c LEFT JOIN records r ON r.id = c.record WHERE r.code IS NOT c.code"
    ).fetchone()[0]
    if orphans:
        yield f"{orphans} coordinate entries name no stored record"


def _dictionary(connection: sqlite3.Connection) -> Iterator[str]:
    next_code = connection.execute("SELECT next_code FROM state").fetchone()[0]
    indexed, lowest, highest, distinct = connection.execute(
        "SELECT count(*), min(code), max(code), count(DISTINCT code) FROM symbol_index"
    ).fetchone()
    if (indexed, lowest, highest, distinct) != (next_code, 0, next_code - 1, next_code):
        yield f"the symbol index has {indexed} entries for {next_code} values"
    kept = 0
    for number, texts in connection.execute("SELECT block, texts FROM symbol_blocks ORDER BY block"):
        if number * BLOCK != kept:
            yield f"symbol block {number} does not follow on {kept} values"
            return
        kept += texts.count(b"\n") + 1
    if kept != next_code:
        yield f"the symbol blocks hold {kept} values, not {next_code}"


def _segments(connection: sqlite3.Connection, symbols: SymbolTable, log: SegmentLog) -> Iterator[str]:
    next_code = connection.execute("SELECT next_code FROM state").fetchone()[0]
    reached = 0
    for row in log.rows():
        if row.first <= reached:
            yield f"segment {row.id} overlaps the one before it"
        gap = connection.execute(
            "SELECT count(*) FROM records WHERE id > ? AND id < ?", (reached, row.first)
        ).fetchone()
        reached = row.last
        segment = log.live(row)
        query = "SELECT id, code, CAST(substr(body, ?, ?) AS BLOB) FROM records WHERE id BETWEEN ? AND ? ORDER BY id"
        records = connection.execute(query, (MARK_BYTES + 1, HASH_CHARACTERS, row.first, row.last)).fetchall()
        if gap[0] or [entry[:2] for entry in records] != list(zip(segment.ids, segment.subjects, strict=True)):
            yield f"segment {row.id} and the records {row.first} to {row.last} differ"
        elif _highest(segment) >= next_code:
            yield f"segment {row.id} uses values that the dictionary does not have"
        elif [entry[2].decode(errors="replace") for entry in records] != symbols.texts(segment.subjects):
            yield f"segment {row.id} knows records by other hashes than their bytes say"
    if connection.execute("SELECT count(*) FROM records WHERE id > ?", (reached,)).fetchone()[0]:
        yield f"records after {reached} are in no segment"


def _highest(segment: Segment) -> int:
    columns = [segment.subjects]
    for group in segment.groups:
        columns += [subjects_of(segment, group), *group.columns]
    return max((max(column) for column in columns if len(column)), default=0)


def _removals(connection: sqlite3.Connection) -> Iterator[str]:
    last = connection.execute("SELECT last_removal FROM state").fetchone()[0]
    for number, columns in connection.execute("SELECT seq, columns FROM removals"):
        if number > last or not len(unpack(columns)):
            yield f"removal {number} is out of order or empty"
