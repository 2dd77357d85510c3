"""The durable store: one SQLite file in WAL mode.

Rule: commit, then acknowledge. Every write is one IMMEDIATE transaction that moves `state`; every read of more than
one row is one transaction or is paged by id. Any number of processes read while one writes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import NamedTuple, Self

from lace.datalog.source import Codes
from lace.errors import StoreError
from lace.facts.predicates import HAVE
from lace.limits import StoreLimits
from lace.notation.identifiers import RecordHash
from lace.records.validate import ValidRecord, reread
from lace.store.base import BEFORE_ALL, Changes, Entry, PutResult, StoreCursor, StoreRecordId, StoreStat
from lace.store.connect import connect, store_errors
from lace.store.coordinates import CoordinateIndex, Space, in_tip_order
from lace.store.encode import EncodedBatch, encode_batch
from lace.store.history import SegmentLog
from lace.store.inspection import problems
from lace.store.packing import pack, unpack
from lace.store.search import SearchIndex
from lace.store.segments import Segment, as_codes, as_ids, translate, without
from lace.store.symbols import SymbolTable, keyed_hash
from lace.store.view import SegmentView

PAGE_RECORDS = 256
PAGE_BYTES = 8 << 20  # bodies in memory at once while they are read in order
HASHES_PER_READ = 4096
LONG_BODY_BYTES = 1 << 20


class State(NamedTuple):
    """The counters of a store."""

    last_record: int
    next_code: int
    last_removal: int
    records: int
    stored_bytes: int

    @property
    def cursor(self) -> StoreCursor:
        return StoreCursor(StoreRecordId(self.last_record), self.last_removal)


class _Written(NamedTuple):
    """The id of each distinct record of a batch, and whether it is new."""

    ids: list[int]
    new: list[bool]


class SQLiteStore:
    """A RecordStore in one file; safe to share between threads, which then take turns."""

    def __init__(self, path: str | Path, *, create: bool, read_only: bool, limits: StoreLimits | None = None) -> None:
        self.path = path = Path(path)
        self._limits = limits = limits or StoreLimits()
        self._lock = RLock()
        self._closed = False
        self._connection = connect(path, create=create, read_only=read_only, limits=limits)
        with self._errors():
            secret = self._connection.execute("SELECT index_key FROM state").fetchone()[0]
        self._symbols = SymbolTable(self._connection, keyed_hash(secret))
        self._coordinates = CoordinateIndex(self._connection, self._symbols)
        self._log = SegmentLog(self._connection)
        self._search = SearchIndex(self._connection)

    # --- transactions

    @contextmanager
    def _errors(self) -> Iterator[None]:
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")
        with store_errors(str(self.path)):
            yield

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self._errors():
            if self._connection.in_transaction:  # a read inside our own transaction
                yield self._connection
                return
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                self._symbols.forget()
                self._coordinates.forget()
                self._log.forget()
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def _state(self) -> State:
        query = "SELECT last_record, next_code, last_removal, records, stored_bytes FROM state"
        return State(*self._connection.execute(query).fetchone())

    def _save(self, state: State) -> None:
        update = "UPDATE state SET last_record=?, next_code=?, last_removal=?, records=?, stored_bytes=?"
        self._connection.execute(update, state)

    # --- writing

    def put(self, records: Iterable[ValidRecord]) -> list[PutResult]:
        given = list(records)
        batch = encode_batch(given)
        written = self._write(batch)
        ids = dict(zip(batch.hashes, written.ids, strict=True))
        unseen = {text for text, new in zip(ids, written.new, strict=True) if new}
        results = []
        for record in given:
            new = record.hash in unseen
            unseen.discard(record.hash)  # a record given twice in one batch is new once
            results.append(PutResult(record.hash, StoreRecordId(ids[record.hash]), new=new))
        return results

    def put_encoded(self, batch: EncodedBatch) -> int:
        return sum(self._write(batch).new)

    def _write(self, batch: EncodedBatch) -> _Written:
        if not batch.bodies:
            return _Written([], [])
        with self._transaction("IMMEDIATE"):
            state = self._state()
            table = self._symbols.assign(batch.texts, state.next_code)
            subjects = [table[code] for code in batch.segment.subjects]
            present = self._present([code for code in subjects if code < state.next_code])
            absent = [ordinal for ordinal, code in enumerate(subjects) if code not in present]
            ids = dict(zip(absent, range(state.last_record + 1, state.last_record + 1 + len(absent)), strict=True))
            if absent:
                self._insert(batch, table, subjects, ids)
                codes = max(state.next_code, max(table) + 1)
                stored_bytes = state.stored_bytes + sum([len(batch.bodies[ordinal]) for ordinal in absent])
                count = state.records + len(absent)
                self._save(State(ids[absent[-1]], codes, state.last_removal, count, stored_bytes))
        if not present:
            return _Written(list(ids.values()), [True] * len(ids))
        return _Written([present.get(code) or ids[ordinal] for ordinal, code in enumerate(subjects)],
                        [code not in present for code in subjects])  # fmt: skip

    def _insert(self, batch: EncodedBatch, table: list[int], subjects: list[int], ids: dict[int, int]) -> None:
        segment = batch.segment
        rows: Iterable[tuple[int, int, bytes]]
        if len(ids) == len(subjects):
            rows = zip(ids.values(), subjects, batch.bodies, strict=True)
        else:
            segment = without(segment, {code for at, code in enumerate(segment.subjects) if at not in ids})
            rows = ((record, subjects[ordinal], batch.bodies[ordinal]) for ordinal, record in ids.items())
        self._insert_bodies(rows)
        self._coordinates.add(batch, table, ids)
        self._search.add((record, batch.bodies[ordinal]) for ordinal, record in ids.items())
        self._log.append(translate(segment, table, as_ids(ids.values())))

    def _insert_bodies(self, rows: Iterable[tuple[int, int, bytes]]) -> None:
        by_length: tuple[list[tuple[int, int, bytes]], list[tuple[int, int, bytes]]] = ([], [])
        for row in rows:
            by_length[len(row[2]) > LONG_BODY_BYTES].append(row)
        self._connection.executemany("INSERT INTO records VALUES (?, ?, ?)", by_length[False])
        for record, code, body in by_length[True]:  # written in place: as a parameter SQLite would copy it twice
            self._connection.execute("INSERT INTO records VALUES (?, ?, zeroblob(?))", (record, code, len(body)))
            with self._connection.blobopen("records", "body", record) as blob:
                blob.write(body)

    def _present(self, codes: Sequence[int]) -> dict[int, int]:
        """The ids of the stored records among some hash codes."""
        found: dict[int, int] = {}
        for start in range(0, len(codes), PAGE_RECORDS):
            part = ",".join(map(str, codes[start : start + PAGE_RECORDS]))
            found.update(self._connection.execute(f"SELECT code, id FROM records WHERE code IN ({part})"))
        return found

    def delete(self, *record_hashes: RecordHash) -> int:
        with self._transaction("IMMEDIATE") as connection:
            codes = self._symbols.codes([str(record_hash) for record_hash in dict.fromkeys(record_hashes)])
            present = self._present([code for code in codes if code >= 0])
            if not present:
                return 0
            freed = sum(self._remove(record) for record in present.values())
            buried = self._log.bury({record: code for code, record in present.items()})
            state = self._state()
            removal = state.last_removal + 1
            connection.execute("INSERT INTO removals VALUES (?, ?)", (removal, pack(buried)))
            connection.execute("DELETE FROM removals WHERE seq <= ?", (removal - self._limits.max_kept_removals,))
            count = state.records - len(present)
            self._save(state._replace(last_removal=removal, records=count, stored_bytes=state.stored_bytes - freed))
        return len(present)

    def _remove(self, record: int) -> int:
        """Take a record's body and coordinate out; how many bytes it had."""
        body: bytes = self._connection.execute("DELETE FROM records WHERE id = ? RETURNING body", (record,)).fetchone()[
            0
        ]
        valid = reread(body)
        if valid.type != "B":
            parts = valid.parts
            self._coordinates.remove(record, parts.group, parts.app, parts.name, parts.tai)
        self._search.remove(record, body)
        return len(body)

    # --- reading records

    def get(self, record_hash: RecordHash) -> bytes | None:
        with self._transaction("DEFERRED") as connection:
            code = self._symbols.codes([str(record_hash)])[0]
            row = connection.execute("SELECT body FROM records WHERE code = ?", (code,)).fetchone()
        return None if row is None else bytes(row[0])

    def get_first(self, record_hashes: Sequence[RecordHash], max_bytes: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        size = 0
        with self._transaction("DEFERRED") as connection:
            codes = self._symbols.codes([str(record_hash) for record_hash in record_hashes])
            for start in range(0, len(codes), PAGE_RECORDS):
                page = codes[start : start + PAGE_RECORDS]
                part = ",".join(map(str, page))
                sizes = dict(connection.execute(f"SELECT code, length(body) FROM records WHERE code IN ({part})"))
                fitting = 0  # records of this page up to the one that reaches the limit
                while fitting < len(page) and size < max_bytes:
                    size += sizes.get(page[fitting], 0)
                    fitting += 1
                part = ",".join(map(str, page[:fitting]))
                bodies = dict(connection.execute(f"SELECT code, body FROM records WHERE code IN ({part})"))
                found += [bodies.get(code) for code in page[:fitting]]
                if size >= max_bytes:
                    break
        return found

    def have(self, record_hash: RecordHash) -> bool:
        with self._transaction("DEFERRED"):
            return bool(self._present(self._symbols.codes([str(record_hash)])))

    def records_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, RecordHash]]:
        reached: int = after
        while True:
            with self._transaction("DEFERRED"):
                found = self._log.next_after(reached)
            if found is None:
                return
            row, segment = found
            yield from self._hashes(segment)
            reached = row.last

    def _hashes(self, segment: Segment) -> Iterator[tuple[StoreRecordId, RecordHash]]:
        for start in range(0, len(segment), HASHES_PER_READ):
            part = slice(start, start + HASHES_PER_READ)
            for record, text in zip(segment.ids[part], self.texts(segment.subjects[part]), strict=True):
                yield StoreRecordId(record), RecordHash(text)

    def bodies_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, bytes]]:
        reached: int = after
        while page := self._body_page(reached):
            yield from page
            reached = page[-1][0]

    def _body_page(self, after: int) -> list[tuple[StoreRecordId, bytes]]:
        page: list[tuple[StoreRecordId, bytes]] = []
        size = 0
        with self._transaction("DEFERRED") as connection:
            query = "SELECT id, body FROM records WHERE id > ? ORDER BY id LIMIT ?"
            for record, body in connection.execute(query, (after, PAGE_RECORDS)):
                page.append((StoreRecordId(record), body))
                size += len(body)
                if size >= PAGE_BYTES:
                    break
        return page

    def entries(self, group: str | None = None, app: str | None = None, name_prefix: str = "") -> Iterator[Entry]:
        with self._transaction("DEFERRED"):
            spaces = self._coordinates.spaces(group, app)
        for space in spaces:
            yield from in_tip_order(self._named(space, name_prefix))

    def _named(self, space: Space, prefix: str) -> Iterator[Entry]:
        """The entries of one space from a name prefix on, page by page, while the prefix lasts."""
        after = (prefix, "", 0)
        while True:
            with self._transaction("DEFERRED"):
                page = self._coordinates.page(space, after)
            for entry in page:
                if not entry.name.startswith(prefix):
                    return
                yield entry
            if not page:
                return
            after = (page[-1].name, page[-1].tai, page[-1].id)

    def versions(self, group: str, app: str, name: str) -> list[Entry]:
        with self._transaction("DEFERRED"):
            found = self._coordinates.named(group, app, name)
        return list(in_tip_order(found))

    # --- facts

    def high_water(self) -> StoreRecordId:
        return self.cursor().record

    def cursor(self) -> StoreCursor:
        with self._transaction("DEFERRED"):
            return self._state().cursor

    def snapshot(self) -> SegmentView:
        with self._transaction("DEFERRED"):
            state = self._state()
            return SegmentView(self, state.next_code, self._log.all_live(), state.cursor)

    def changes(self, since: StoreCursor) -> Changes | None:
        with self._transaction("DEFERRED") as connection:
            state = self._state()
            oldest = connection.execute("SELECT min(seq) FROM removals").fetchone()[0]
            forgotten = oldest is not None and since.removal < oldest - 1
            if forgotten or since.record > state.last_record or since.removal > state.last_removal:
                return None
            added = self._log.added_after(since.record)
            query = "SELECT columns FROM removals WHERE seq > ? ORDER BY seq"
            removed = [unpack(columns) for (columns,) in connection.execute(query, (since.removal,))]
            return self._net(state, since, added, removed)

    def _net(self, state: State, since: StoreCursor, added: list[Segment], removed: list[Segment]) -> Changes:
        """A record that came and went in between never was; one that went and came again never left."""
        came = {code for segment in added for code in segment.subjects}
        went: set[int] = set()
        for segment in removed:
            pairs = zip(segment.ids, segment.subjects, strict=True)
            went.update(code for record, code in pairs if record <= since.record)
        both = came & went
        kept_added = [without(segment, both) for segment in added]
        kept_removed = self._first_removals(removed, went - both, since)
        views = [SegmentView(self, state.next_code, part, state.cursor) for part in (kept_added, kept_removed)]
        hashes = [tuple(map(RecordHash, view.texts(view.columns(HAVE)[0]))) for view in views]
        return Changes(views[0], views[1], hashes[0], hashes[1], state.cursor)

    def _first_removals(self, removed: list[Segment], wanted: set[int], since: StoreCursor) -> list[Segment]:
        """The removed records that the cursor had seen, each once."""
        kept = []
        for segment in removed:
            pairs = zip(segment.ids, segment.subjects, strict=True)
            unseen = {code for record, code in pairs if record > since.record or code not in wanted}
            kept.append(without(segment, unseen))
        return kept

    # --- the dictionary, for views

    def codes(self, texts: Sequence[str]) -> list[int]:
        with self._transaction("DEFERRED"):
            return self._symbols.codes(texts)

    def texts(self, codes: Codes) -> list[str]:
        with self._transaction("DEFERRED"):
            return self._symbols.texts(codes)

    # --- words

    @property
    def is_searched(self) -> bool:
        with self._transaction("DEFERRED"):
            return self._search.is_on

    def index_words(self, told: Callable[[int], None]) -> int:
        with self._transaction("IMMEDIATE"):
            return self._search.create(told)

    def forget_words(self) -> bool:
        with self._transaction("IMMEDIATE"):
            return self._search.drop()

    def find_words(
        self, question: str, *, before: int | None = None, limit: int
    ) -> list[tuple[StoreRecordId, RecordHash]]:
        with self._transaction("DEFERRED") as connection:
            ids = self._search.find(question, before=before, limit=limit)
            codes = dict(connection.execute(f"SELECT id, code FROM records WHERE id IN ({','.join(map(str, ids))})"))
            texts = self._symbols.texts(as_codes(codes[record] for record in ids))
        return [(StoreRecordId(record), RecordHash(text)) for record, text in zip(ids, texts, strict=True)]

    # --- the rest

    def get_setting(self, namespace: str, key: str) -> bytes | None:
        with self._transaction("DEFERRED") as connection:
            query = "SELECT value FROM settings WHERE namespace = ? AND key = ?"
            row = connection.execute(query, (namespace, key)).fetchone()
        return None if row is None else bytes(row[0])

    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None:
        with self._transaction("IMMEDIATE") as connection:
            if value is None:
                connection.execute("DELETE FROM settings WHERE namespace = ? AND key = ?", (namespace, key))
            else:
                connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?)", (namespace, key, value))

    def settings(self, namespace: str) -> dict[str, bytes]:
        with self._transaction("DEFERRED") as connection:
            query = "SELECT key, value FROM settings WHERE namespace = ? ORDER BY key"
            return dict(connection.execute(query, (namespace,)).fetchall())

    def check_integrity(self) -> list[str]:
        with self._transaction("DEFERRED") as connection:
            return [*problems(connection, self._symbols, self._log), *self._search.problems()]

    def stat(self) -> StoreStat:
        with self._transaction("DEFERRED"):
            state = self._state()
        files = (Path(f"{self.path}{suffix}") for suffix in ("", "-wal"))
        file_bytes = sum(os.stat(file).st_size for file in files if file.exists())
        return StoreStat(
            records=state.records,
            stored_bytes=state.stored_bytes,
            file_bytes=file_bytes,
            values=state.next_code,
            high_water=StoreRecordId(state.last_record),
        )

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
