"""The counters of a store: one row that every write transaction moves.

Rule: read only through `read`, which compares the row with its checksum.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

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
    *values, said, key = connection.execute(f"SELECT {_COLUMNS}, sum, index_key FROM state").fetchone()
    require_sum("the row of counters", said, key, *values)
    return StoreState(*values)


def read_unchecked(connection: sqlite3.Connection) -> StoreState:
    """The counters as they stand."""
    return StoreState(*connection.execute(f"SELECT {_COLUMNS} FROM state").fetchone())


def save(connection: sqlite3.Connection, state: StoreState) -> None:
    """Write the counters."""
    key = connection.execute("SELECT index_key FROM state").fetchone()[0]
    connection.execute(_UPDATE, (*state, checksum(key, *state)))
