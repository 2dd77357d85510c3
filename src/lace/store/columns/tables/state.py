"""The counters of a store: one row that every write transaction moves.

Rule: read only through `read`, which compares the row with its checksum.
"""

from __future__ import annotations

import sqlite3
from typing import Any, NamedTuple

from lace.errors import StoreDamaged
from lace.store.base import StoreCursor, StoreRecordId
from lace.store.columns.tables.checksum import checksum, require_sum


class StoreState(NamedTuple):
    """Where a store has come to."""

    last_record: int = 0
    next_code: int = 1
    last_removal: int = 0
    records: int = 0
    stored_bytes: int = 0
    segments: int = 0  # how many there are, and the sum of their checksums: none can be missing
    segment_sums: int = 0
    tombstones: int = 0
    tombstone_sums: int = 0
    generation: int = 1  # of the codes: rebuilding a store gives them new meanings

    @property
    def cursor(self) -> StoreCursor:
        return StoreCursor(StoreRecordId(self.last_record), self.last_removal)


_COLUMNS = ", ".join(StoreState._fields)
_UPDATE = f"UPDATE state SET {' = ?, '.join(StoreState._fields)} = ?, sum = ?"


def read(connection: sqlite3.Connection) -> StoreState:
    """The counters; StoreDamaged if they are not as they were written."""
    *values, said, key = _row(connection, f"{_COLUMNS}, sum, index_key")
    require_sum("the row of counters", said, key, *values)
    return StoreState(*values)


def read_unchecked(connection: sqlite3.Connection) -> StoreState:
    """The counters as they stand."""
    return StoreState(*_row(connection, _COLUMNS))


def secret(connection: sqlite3.Connection) -> bytes:
    """What keys the index of symbols and the checksums."""
    found: bytes = _row(connection, "index_key")[0]
    return found


def _row(connection: sqlite3.Connection, columns: str) -> tuple[Any, ...]:
    rows = connection.execute(f"SELECT {columns} FROM state LIMIT 2").fetchall()
    if len(rows) != 1:
        raise StoreDamaged(
            f"a lace has one row of counters, and this file has {'more' if rows else 'none'};"
            " `lace repair` makes a lace of the records in it"
        )
    found: tuple[Any, ...] = rows[0]
    return found


def save(connection: sqlite3.Connection, state: StoreState) -> None:
    """Write the counters."""
    connection.execute(_UPDATE, (*state, checksum(secret(connection), *state)))
