"""The durable store: one SQLite file in WAL mode.

Rule: commit, then acknowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import ref

from lace.datalog.source import Codes
from lace.errors import StoreDamaged
from lace.limits import StoreLimits
from lace.notation.closing import Closing
from lace.notation.identifiers import RecordHash
from lace.notation.stopping import Interrupt, never
from lace.store import ledger
from lace.store.base import BEFORE_ALL, Changes, Entry, PutResult, StoreCursor, StoreRecordId, StoreStat
from lace.store.columns.dictionary.symbols import SymbolTable, keyed_hash
from lace.store.columns.file.storefile import StoreFile
from lace.store.columns.segments.packing import pack, unpack
from lace.store.columns.segments.segment import Segment, as_codes, as_ids, translate, without
from lace.store.columns.segments.table import SegmentTable, Totals
from lace.store.columns.segments.view import SegmentView, net_changes
from lace.store.columns.tables.bodies import BodyTable
from lace.store.columns.tables.checksum import checksum, require_sum
from lace.store.columns.tables.coordinates import CoordinateIndex, Space, in_tip_order, paged
from lace.store.columns.tables.settings import SettingTable
from lace.store.columns.tables.state import StoreState
from lace.store.news import StoreNews
from lace.store.search import SearchIndex
from lace.thresholds import StoreThresholds

if TYPE_CHECKING:
    from lace.records.model import ValidRecord
    from lace.store.columns.segments.encode import EncodedBatch

HASHES_PER_READ = 4096


class WrittenRows(NamedTuple):
    """The id of each distinct record of a batch, and whether it is new."""

    ids: list[int]
    new: list[bool]


class SQLiteStore(Closing):
    """A RecordStore in one file; safe to share between threads, which then take turns."""

    def __init__(
        self,
        path: str | Path,
        *,
        create: bool,
        read_only: bool,
        limits: StoreLimits | None = None,
        thresholds: StoreThresholds | None = None,
        is_scratch: bool = False,
    ) -> None:
        self.path: Path = Path(path)
        self._limits = limits or StoreLimits()
        self._thresholds = thresholds = thresholds or StoreThresholds()
        self.file: StoreFile = StoreFile(  # the connection and its transactions; upkeep of the file works on them too
            self.path, create=create, read_only=read_only, limits=self._limits, is_scratch=is_scratch
        )
        connection = self.file.connection
        self._symbols = SymbolTable(connection, keyed_hash(self.file.secret, thresholds), thresholds)
        self._coordinates = CoordinateIndex(connection, self._symbols)
        self._segments = SegmentTable(connection)
        self._bodies = BodyTable(connection, thresholds.long_body_bytes)
        self._search = SearchIndex(connection)
        self._settings = SettingTable(connection)
        self._has_untold = False
        self._shown: ref[SegmentView] | None = None  # the newest snapshot, while somebody holds it
        self.file.forget = self._forget
        self.news: StoreNews = StoreNews()

    def _forget(self) -> None:
        self._shown = None
        for part in (self._symbols, self._coordinates, self._segments):
            part.forget()

    def _state(self) -> StoreState:
        state = self.file.state()
        self._segments.expect(Totals(state.segments, state.segment_sums, state.tombstones, state.tombstone_sums))
        return state

    def _save(self, state: StoreState) -> None:
        self.file.save(state._replace(**self._segments.totals._asdict()))

    # --- writing

    @contextmanager
    def together(self) -> Iterator[None]:
        with self.file.writing():
            yield
        if self._has_untold:
            self._tell()

    def _tell(self) -> None:
        """Tell listeners, once it is committed."""
        self._has_untold = self.file.connection.in_transaction
        if not self._has_untold:
            self.news.tell(self.cursor())

    def put(self, records: Iterable[ValidRecord]) -> list[PutResult]:
        from lace.store.columns.segments.encode import encode_batch  # reading needs nothing of what makes records

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

    def adopt(self, batch: EncodedBatch, ids: Sequence[int]) -> WrittenRows:
        """Store a batch under ids that its records had in another file, higher than any here."""
        return self._write(batch, ids)

    def _write(self, batch: EncodedBatch, given_ids: Sequence[int] = ()) -> WrittenRows:
        if not batch.bodies:
            return WrittenRows([], [])
        size = sum(map(len, batch.bodies))
        self.file.reserve.require_room(size)
        with self.file.writing():
            state = self._state()
            table = self._symbols.assign(batch.texts, state.next_code)
            subjects = [table[code] for code in batch.segment.subjects]
            present = self._bodies.present([code for code in subjects if code < state.next_code])
            absent = [ordinal for ordinal, code in enumerate(subjects) if code not in present]
            numbers = range(state.last_record + 1, state.last_record + 1 + len(absent))
            ids = dict(zip(absent, [given_ids[at] for at in absent] if given_ids else numbers, strict=True))
            if absent:
                self._insert(batch, table, subjects, ids)
                codes = max(state.next_code, max(table) + 1)
                stored_bytes = state.stored_bytes + sum([len(batch.bodies[ordinal]) for ordinal in absent])
                count = state.records + len(absent)
                last = ids[absent[-1]]
                self._save(state._replace(last_record=last, next_code=codes, records=count, stored_bytes=stored_bytes))
        if size < self._thresholds.small_write_bytes:
            self.file.keep_log_short()
        self._tell()
        if not present:
            return WrittenRows(list(ids.values()), [True] * len(ids))
        return WrittenRows([present.get(code) or ids[ordinal] for ordinal, code in enumerate(subjects)],
                        [code not in present for code in subjects])  # fmt: skip

    def _insert(self, batch: EncodedBatch, table: list[int], subjects: list[int], ids: dict[int, int]) -> None:
        segment = batch.segment
        rows: Iterable[tuple[int, int, bytes]]
        if len(ids) == len(subjects):
            rows = zip(ids.values(), subjects, batch.bodies, strict=True)
        else:
            segment = without(segment, {code for at, code in enumerate(segment.subjects) if at not in ids})
            rows = ((record, subjects[ordinal], batch.bodies[ordinal]) for ordinal, record in ids.items())
        self._bodies.insert(rows)
        self._coordinates.add(batch, table, ids)
        self._search.add((record, batch.bodies[ordinal]) for ordinal, record in ids.items())
        self._segments.append(translate(segment, table, as_ids(ids.values())))

    def delete(self, *record_hashes: RecordHash) -> int:
        return self.file.with_reserve(lambda: self._delete(record_hashes))

    def _delete(self, record_hashes: Sequence[RecordHash]) -> int:
        with self.file.writing() as connection:
            codes = self._symbols.codes([str(record_hash) for record_hash in dict.fromkeys(record_hashes)])
            present = self._bodies.present([code for code in codes if code >= 0])
            if not present:
                return 0
            state = self._state()
            removed = {record: self._remove(record) for record in present.values()}
            freed = sum(record.size for record in removed.values())
            ledger.give_back(self, removed)
            buried = self._segments.bury({record: code for code, record in present.items()})
            removal = state.last_removal + 1
            columns = pack(buried)
            insert = "INSERT INTO removals VALUES (?, ?, ?)"
            connection.execute(insert, (removal, columns, checksum(removal, columns)))
            connection.execute("DELETE FROM removals WHERE seq <= ?", (removal - self._limits.max_kept_removals,))
            count = state.records - len(present)
            self._save(state._replace(last_removal=removal, records=count, stored_bytes=state.stored_bytes - freed))
        self._tell()
        return len(present)

    def _remove(self, record: int) -> ledger.Brought:
        """Take a record's body and coordinate out; returns what the ledger has to know about it."""
        from lace.records.validate import reread

        body = self._bodies.remove(record)
        parts = reread(body).parts
        if parts.hash[0] != "B":
            self._coordinates.remove(record, parts.group, parts.app, parts.name, parts.tai)
        self._search.remove(record, body)
        return ledger.Brought(len(body), parts.group, parts.signed_by)

    # --- reading records

    def get(self, record_hash: RecordHash) -> bytes | None:
        with self.file.reading():
            return self._bodies.one(record_hash, self._symbols.codes([str(record_hash)])[0])

    def get_first(self, record_hashes: Sequence[RecordHash], max_bytes: int) -> list[bytes | None]:
        with self.file.reading():
            codes = self._symbols.codes([str(record_hash) for record_hash in record_hashes])
            return self._bodies.first(record_hashes, codes, max_bytes)

    def get_head(self, record_hash: RecordHash, max_bytes: int) -> bytes | None:
        with self.file.reading():
            return self._bodies.head(record_hash, self._symbols.codes([str(record_hash)])[0], max_bytes)

    def have(self, record_hash: RecordHash) -> bool:
        with self.file.reading():
            return bool(self._bodies.present(self._symbols.codes([str(record_hash)])))

    def room(self) -> int | None:
        """How many bytes of records the disk has room for, beside what has to stay free."""
        return self.file.reserve.room()

    def present(self, record_hashes: Sequence[RecordHash]) -> set[RecordHash]:
        with self.file.reading():
            codes = self._symbols.codes(list(map(str, record_hashes)))
            stored = self._bodies.present([code for code in codes if code >= 0])
        return {record for record, code in zip(record_hashes, codes, strict=True) if code in stored}

    def beginning_with(self, text: str) -> list[RecordHash]:
        with self.file.reading():
            found = self._symbols.beginning_with(text)
            stored = self._bodies.present(list(found))
        return [RecordHash(known) for code, known in found.items() if code in stored]

    def records_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, RecordHash]]:
        reached: int = after
        while True:
            with self.file.reading():
                self._state()
                found = self._segments.next_after(reached)
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
        while True:
            with self.file.reading():
                page = self._bodies.page(reached)
            if not page:
                return
            yield from page
            reached = page[-1][0]

    def entries(self, group: str | None = None, app: str | None = None, name_prefix: str = "") -> Iterator[Entry]:
        with self.file.reading():
            spaces = self._coordinates.spaces(group, app)
        for space in spaces:
            yield from in_tip_order(self._named(space, name_prefix))

    def _named(self, space: Space, prefix: str) -> Iterator[Entry]:
        """The entries of one space from a name prefix on, page by page, while the prefix lasts."""
        after = (prefix, "", 0)
        while True:
            with self.file.reading():
                page = self._coordinates.page(space, after)
            for entry in page:
                if not entry.name.startswith(prefix):
                    return
                yield entry
            if not page:
                return
            after = (page[-1].name, page[-1].tai, page[-1].id)

    def versions(self, group: str, app: str, name: str) -> list[Entry]:
        with self.file.reading():
            found = self._coordinates.named(group, app, name)
        return list(in_tip_order(found))

    def newest_first(self, group: str, app: str, name: str, *, until: str | None = None) -> Iterator[Entry]:
        def page(before: Entry | None, limit: int) -> list[Entry]:
            with self.file.reading():
                space = self._coordinates.space(group, app)
                return self._coordinates.newest(space, name, until=until, before=before, limit=limit) if space else []

        return paged(page)

    # --- facts

    def high_water(self) -> StoreRecordId:
        return self.cursor().record

    def cursor(self) -> StoreCursor:
        with self.file.reading():
            return self._state().cursor

    def snapshot(self) -> SegmentView:
        with self.file.reading():
            state = self._state()
            held = self._shown() if self._shown is not None else None
            if held is not None and (held.cursor, held.code_count) == (state.cursor, state.next_code):
                return held  # readers of the same moment share the columns, which are long
            view = SegmentView(self, state.next_code, self._segments.all_live(), state.cursor)
            self._shown = ref(view)
            return view

    def changes(self, since: StoreCursor) -> Changes | None:
        with self.file.reading() as connection:
            state = self._state()
            oldest = connection.execute("SELECT min(seq) FROM removals").fetchone()[0]
            forgotten = oldest is not None and since.removal < oldest - 1
            if forgotten or since.record > state.last_record or since.removal > state.last_removal:
                return None
            added = self._segments.added_after(since.record)
            query = "SELECT seq, columns, sum FROM removals WHERE seq > ? ORDER BY seq"
            removed = []
            for number, columns, said in connection.execute(query, (since.removal,)):
                require_sum(f"removal {number}", said, number, columns)
                removed.append(unpack(columns))
            return net_changes(self, state, since, added, removed)

    # --- the dictionary, for views

    def codes(self, texts: Sequence[str]) -> list[int]:
        with self.file.reading():
            return self._symbols.codes(texts)

    def texts(self, codes: Codes) -> list[str]:
        with self.file.reading():
            return self._symbols.texts(codes)

    def lines(self, codes: Codes) -> bytes:
        with self.file.reading():
            return self._symbols.lines(codes)

    # --- words

    @property
    def is_searched(self) -> bool:
        with self.file.reading():
            return self._search.is_on

    def index_words(self, told: Callable[[int], None]) -> int:
        with self.file.writing():
            return self._search.create(told)

    def forget_words(self) -> bool:
        with self.file.writing():
            return self._search.drop()

    def find_words(
        self, question: str, *, before: int | None = None, limit: int
    ) -> list[tuple[StoreRecordId, RecordHash]]:
        with self.file.reading() as connection:
            ids = self._search.find(question, before=before, limit=limit)
            codes = dict(connection.execute(f"SELECT id, code FROM records WHERE id IN ({','.join(map(str, ids))})"))
            texts = self._symbols.texts(as_codes(codes[record] for record in ids))
        return [(StoreRecordId(record), RecordHash(text)) for record, text in zip(ids, texts, strict=True)]

    # --- the rest

    def get_setting(self, namespace: str, key: str) -> bytes | None:
        with self.file.reading():
            return self._settings.get(namespace, key)

    def settings(self, namespace: str) -> dict[str, bytes]:
        with self.file.reading():
            return self._settings.all(namespace)

    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None:
        with self.file.reading():
            return self._settings.last(namespace, up_to)

    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None:
        with self.file.writing():
            self._settings.put(namespace, key, value)
        self.file.keep_log_short()

    def check_integrity(self, stop: Interrupt = never) -> list[str]:
        from lace.store.columns.repair.inspection import Inspection

        with self.file.reading() as connection:
            try:
                found = Inspection(connection, self._symbols, self._segments, self._state(), stop).problems()
                return [*found, *self._search.problems()]
            except StoreDamaged as error:
                return [str(error)]

    def stat(self) -> StoreStat:
        with self.file.reading():
            state = self.file.state()
        return StoreStat(
            records=state.records,
            stored_bytes=state.stored_bytes,
            file_bytes=self.file.file_bytes(),
            values=state.next_code,
            high_water=StoreRecordId(state.last_record),
        )

    def close(self) -> None:
        self.file.close()
