"""The table of record bodies.

Rule: a body is handed out only under the hash that its own first line says; whether it is that record its reader finds
out by hashing it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from lace.notation.identifiers import RecordHash
from lace.store.base import StoreRecordId
from lace.store.columns.tables.checksum import damaged

PAGE_RECORDS = 256
PAGE_BYTES = 8 << 20  # bodies in memory at once while they are read in order

Bodies = list[tuple[StoreRecordId, bytes]]


class BodyTable:
    """Reads and writes bodies; its caller holds the connection's lock and transaction."""

    def __init__(self, connection: sqlite3.Connection, long_body_bytes: int) -> None:
        self._connection = connection
        self._long_body_bytes = long_body_bytes

    def insert(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        """Add bodies under their ids and the codes of their hashes."""
        short = list(rows)
        long = [row for row in short if len(row[2]) > self._long_body_bytes]
        if long:
            short = [row for row in short if len(row[2]) <= self._long_body_bytes]
        self._connection.executemany("INSERT INTO records VALUES (?, ?, ?)", short)
        for record, code, body in long:  # written in place: as a parameter SQLite would copy it twice
            self._connection.execute("INSERT INTO records VALUES (?, ?, zeroblob(?))", (record, code, len(body)))
            with self._connection.blobopen("records", "body", record) as blob:
                blob.write(body)

    def remove(self, record: int) -> bytes:
        """Take a body out."""
        query = "DELETE FROM records WHERE id = ? RETURNING body"
        return bytes(self._connection.execute(query, (record,)).fetchone()[0])

    def present(self, codes: Sequence[int]) -> dict[int, int]:
        """The ids of the stored records among some hash codes."""
        found: dict[int, int] = {}
        for start in range(0, len(codes), PAGE_RECORDS):
            part = ",".join(map(str, codes[start : start + PAGE_RECORDS]))
            found.update(self._connection.execute(f"SELECT code, id FROM records WHERE code IN ({part})"))
        return found

    def first(self, hashes: Sequence[RecordHash], codes: Sequence[int], max_bytes: int) -> list[bytes | None]:
        """The bodies of the first few: at least one, then until they are `max_bytes` or more."""
        found: list[bytes | None] = []
        size = 0
        for start in range(0, len(codes), PAGE_RECORDS):
            page = codes[start : start + PAGE_RECORDS]
            part = ",".join(map(str, page))
            sizes = dict(self._connection.execute(f"SELECT code, length(body) FROM records WHERE code IN ({part})"))
            fitting = 0  # records of this page up to the one that reaches the limit
            while fitting < len(page) and size < max_bytes:
                size += sizes.get(page[fitting], 0)
                fitting += 1
            part = ",".join(map(str, page[:fitting]))
            bodies = dict(self._connection.execute(f"SELECT code, body FROM records WHERE code IN ({part})"))
            wanted = hashes[start : start + fitting]
            found += [self._own(name, bodies.get(code)) for name, code in zip(wanted, page, strict=False)]
            if size >= max_bytes:
                break
        return found

    def one(self, record_hash: RecordHash, code: int) -> bytes | None:
        """The body of one record."""
        row = self._connection.execute("SELECT body FROM records WHERE code = ?", (code,)).fetchone()
        return None if row is None else self._own(record_hash, row[0])

    def head(self, record_hash: RecordHash, code: int, max_bytes: int) -> bytes | None:
        """The beginning of one record's body; the rest is not read."""
        row = self._connection.execute("SELECT id FROM records WHERE code = ?", (code,)).fetchone()
        if row is None:
            return None
        with self._connection.blobopen("records", "body", row[0], readonly=True) as blob:
            return self._own(record_hash, blob.read(max_bytes))

    @staticmethod
    def _own(record_hash: RecordHash, body: bytes | None) -> bytes | None:
        from lace.records.frame import claimed_hash

        if body is not None and (not isinstance(body, bytes) or claimed_hash(body) != record_hash):
            raise damaged(f"the index of records, or the record {record_hash},")
        return body

    def page(self, after: int) -> Bodies:
        """The next bodies in the order of their ids."""
        page: Bodies = []
        size = 0
        query = "SELECT id, body FROM records WHERE id > ? ORDER BY id LIMIT ?"
        for row in self._connection.execute(query, (after, PAGE_RECORDS)):
            body = row[1]
            if not isinstance(body, bytes):
                raise damaged(f"record {row[0]}")
            page.append(row)
            size += len(body)
            if size >= PAGE_BYTES:
                break
        return page
