"""The in-memory twin of the durable store: the same promises except durability.

Rule: plain dicts and lists, so that it can serve as the other side of every contract test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import takewhile
from threading import RLock

from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.source import Codes, MemorySource
from lace.facts.derive import derive_facts
from lace.facts.predicates import FIELD, RECORD_PREDICATES
from lace.notation.closing import Closing
from lace.notation.identifiers import RecordHash
from lace.notation.stopping import Interrupt, never
from lace.records.retraction import withdraws
from lace.records.tip import newest_first
from lace.records.validate import ValidRecord, reread
from lace.store import ledger
from lace.store.base import BEFORE_ALL, Changes, Entry, PutResult, StoreCursor, StoreRecordId, StoreStat
from lace.store.columns.segments.encode import EncodedBatch
from lace.store.columns.segments.segment import as_codes
from lace.store.news import StoreNews
from lace.values import dataclass


@dataclass(slots=True)
class MemoryDictionary:
    """Texts and codes; '0' is code 0 as in every store."""

    _codes: dict[str, int] = field(default_factory=lambda: {"0": 0})
    _texts: list[str] = field(default_factory=lambda: ["0"])

    def __len__(self) -> int:
        return len(self._texts)

    def code(self, text: str) -> int:
        code = self._codes.setdefault(text, len(self._texts))
        if code == len(self._texts):
            self._texts.append(text)
        return code

    def codes(self, texts: Sequence[str]) -> list[int]:
        return [self._codes.get(text, -1) for text in texts]

    def texts(self, codes: Codes) -> list[str]:
        return [self._texts[code] for code in codes]


class MemorySnapshot(MemorySource):
    """Facts in memory that can also show themselves as columns."""

    def __init__(
        self, facts: Iterable[Fact], dictionary: MemoryDictionary, cursor: StoreCursor, record_count: int
    ) -> None:
        super().__init__(facts)
        self._dictionary = dictionary
        self._cursor = cursor
        self._record_count = record_count
        for rows in self._rows.values():
            for row in rows:
                for value in row:
                    dictionary.code(value)
        self._code_count = len(dictionary)

    @property
    def cursor(self) -> StoreCursor:
        return self._cursor

    @property
    def record_count(self) -> int:
        return self._record_count

    @property
    def code_count(self) -> int:
        return self._code_count

    def predicates(self) -> Iterable[Predicate]:
        return RECORD_PREDICATES

    def codes(self, texts: Sequence[str]) -> list[int]:
        return [code if code < self._code_count else -1 for code in self._dictionary.codes(texts)]

    def texts(self, codes: Codes) -> list[str]:
        return self._dictionary.texts(codes)

    def columns(self, predicate: Predicate) -> Sequence[Codes]:
        return self._encode(self._rows.get(predicate, {}), predicate.arity)

    def slices(self, predicate: Predicate, position: int) -> Mapping[int, Sequence[Codes]] | None:
        if predicate != FIELD or position != 1:
            return None
        split: dict[str, list[tuple[str, ...]]] = {}
        for row in self._rows.get(FIELD, {}):
            split.setdefault(row[1], []).append(row)
        return {self._dictionary.code(name): self._encode(rows, FIELD.arity) for name, rows in split.items()}

    def _encode(self, rows: Iterable[tuple[str, ...]], arity: int) -> Sequence[Codes]:
        listed = list(rows)
        return [as_codes(self._dictionary.code(row[position]) for row in listed) for position in range(arity)]


@dataclass(frozen=True, slots=True)
class _Kept:
    id: StoreRecordId
    record: ValidRecord

    @property
    def facts(self) -> list[Fact]:
        return list(derive_facts(self.record))


class MemoryStore(Closing):
    """A RecordStore that ends with its process."""

    def __init__(self, *, max_kept_removals: int = 4096) -> None:
        self._kept: dict[RecordHash, _Kept] = {}  # in insertion order
        self._removals: list[tuple[int, list[_Kept]]] = []
        self._max_kept_removals = max_kept_removals
        self._last_record = 0
        self._last_removal = 0
        self._settings: dict[str, dict[str, bytes]] = {}
        self._dictionary = MemoryDictionary()
        self._shown: MemorySnapshot | None = None  # deriving facts again for each question would cost most
        self._lock = RLock()
        self.news: StoreNews = StoreNews()

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._lock:
            kept, last = dict(self._kept), self._last_record
            settings = {namespace: dict(values) for namespace, values in self._settings.items()}
            try:
                yield
            except BaseException:
                self._kept, self._last_record, self._settings = kept, last, settings
                raise

    def put(self, records: Iterable[ValidRecord]) -> list[PutResult]:
        with self._lock:
            results = [self._put(record) for record in list(records)]
        self.news.tell(self.cursor())
        return results

    def put_encoded(self, batch: EncodedBatch) -> int:
        return sum([result.new for result in self.put(map(reread, batch.bodies))])

    def _put(self, record: ValidRecord) -> PutResult:
        if record.hash in self._kept:
            return PutResult(record.hash, self._kept[record.hash].id, new=False)
        self._last_record += 1
        kept = self._kept[record.hash] = _Kept(StoreRecordId(self._last_record), record)
        return PutResult(record.hash, kept.id, new=True)

    def get(self, record_hash: RecordHash) -> bytes | None:
        kept = self._kept.get(record_hash)
        return None if kept is None else kept.record.stored

    def get_first(self, record_hashes: Sequence[RecordHash], max_bytes: int) -> list[bytes | None]:
        found: list[bytes | None] = []
        size = 0
        for record_hash in record_hashes:
            stored = self.get(record_hash)
            found.append(stored)
            size += len(stored or b"")
            if size >= max_bytes:
                break
        return found

    def get_head(self, record_hash: RecordHash, max_bytes: int) -> bytes | None:
        kept = self._kept.get(record_hash)
        return None if kept is None else bytes(kept.record.stored[:max_bytes])

    def have(self, record_hash: RecordHash) -> bool:
        return record_hash in self._kept

    def room(self) -> int | None:
        """Nobody knows."""
        return None

    def present(self, record_hashes: Sequence[RecordHash]) -> set[RecordHash]:
        return {record for record in record_hashes if record in self._kept}

    def beginning_with(self, text: str) -> list[RecordHash]:
        return [record for record in self._kept if record.startswith(text)]

    def delete(self, *record_hashes: RecordHash) -> int:
        with self._lock:
            found = [self._kept.pop(record_hash) for record_hash in set(record_hashes) if record_hash in self._kept]
            if found:
                self._last_removal += 1
                self._removals.append((self._last_removal, found))
                del self._removals[: -self._max_kept_removals]
                ledger.give_back(self, {kept.id: _brought(kept) for kept in found})
        self.news.tell(self.cursor())
        return len(found)

    def records_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, RecordHash]]:
        return iter([(kept.id, record_hash) for record_hash, kept in self._listed(after)])

    def bodies_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, bytes]]:
        return iter([(kept.id, kept.record.stored) for _, kept in self._listed(after)])

    def _listed(self, after: int = BEFORE_ALL) -> list[tuple[RecordHash, _Kept]]:
        """From the newest back, so the cost follows what was stored recently, not the size of the store."""
        with self._lock:
            found = list(takewhile(lambda item: item[1].id > after, reversed(self._kept.items())))
        return found[::-1]

    def entries(self, group: str | None = None, app: str | None = None, name_prefix: str = "") -> Iterator[Entry]:
        entries = (_entry(kept) for record_hash, kept in self._listed() if record_hash.type != "B")
        found = (
            entry
            for entry in entries
            if group in (None, entry.group) and app in (None, entry.app) and entry.name.startswith(name_prefix)
        )
        return iter(sorted(found, key=lambda e: (e.group, e.app, e.name, e.tai, e.hash)))

    def versions(self, group: str, app: str, name: str) -> list[Entry]:
        return [entry for entry in self.entries(group, app, name) if entry.name == name]

    def newest_first(self, group: str, app: str, name: str, *, until: str | None = None) -> Iterator[Entry]:
        return (entry for entry in newest_first(self.versions(group, app, name)) if until is None or entry.tai <= until)

    def high_water(self) -> StoreRecordId:
        return StoreRecordId(self._last_record)

    def cursor(self) -> StoreCursor:
        with self._lock:
            return StoreCursor(StoreRecordId(self._last_record), self._last_removal)

    def snapshot(self) -> MemorySnapshot:
        with self._lock:
            if self._shown is None or self._shown.cursor != self.cursor():
                self._shown = self._source([kept for _, kept in self._listed()])
            return self._shown

    def _source(self, kept: list[_Kept]) -> MemorySnapshot:
        facts = (fact for one in kept for fact in one.facts)
        return MemorySnapshot(facts, self._dictionary, self.cursor(), len(kept))

    def changes(self, since: StoreCursor) -> Changes | None:
        with self._lock:
            oldest = self._removals[0][0] if self._removals else None
            forgotten = oldest is not None and since.removal < oldest - 1
            if forgotten or since.record > self._last_record or since.removal > self._last_removal:
                return None
            came = dict(self._listed(since.record))
            gone = [kept for number, found in self._removals if number > since.removal for kept in found]
            went = {kept.record.hash: kept for kept in gone if kept.id <= since.record}
            added = [kept for record_hash, kept in came.items() if record_hash not in went]
            removed = [kept for record_hash, kept in went.items() if record_hash not in came]
            return Changes(
                self._source(added),
                self._source(removed),
                tuple(kept.record.hash for kept in added),
                tuple(kept.record.hash for kept in removed),
                self.cursor(),
            )

    def get_setting(self, namespace: str, key: str) -> bytes | None:
        return self._settings.get(namespace, {}).get(key)

    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None:
        space = self._settings.setdefault(namespace, {})
        if value is None:
            space.pop(key, None)
        else:
            space[key] = value

    def settings(self, namespace: str) -> dict[str, bytes]:
        return dict(sorted(self._settings.get(namespace, {}).items()))

    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None:
        found = [(key, value) for key, value in self._settings.get(namespace, {}).items() if key <= up_to]
        return max(found, default=None)

    def check_integrity(self, stop: Interrupt = never) -> list[str]:
        return []

    def stat(self) -> StoreStat:
        stored_bytes = sum(len(kept.record.stored) for _, kept in self._listed())
        values = len(self._dictionary)
        return StoreStat(len(self._kept), stored_bytes, 0, values, StoreRecordId(self._last_record))

    def close(self) -> None:
        """Nothing to release."""


def _brought(kept: _Kept) -> ledger.Brought:
    parts = kept.record.parts
    return ledger.Brought(len(kept.record.stored), parts.group, parts.signed_by)


def _entry(kept: _Kept) -> Entry:
    record = kept.record
    parts = record.parts
    return Entry(
        group=parts.group,
        app=parts.app,
        name=parts.name,
        tai=parts.tai,
        hash=record.hash,
        id=kept.id,
        signer=parts.signed_by or None,
        data_length=record.data_length,
        withdraws=withdraws(record),
    )
