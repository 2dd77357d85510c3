"""What a record store promises, whatever it is made of (020, 110).

Rule: `put` returns after its whole batch is durable, and only validated records have facts (020-FACT-01). A record
inside another record is not stored by storing the outer one (P10).

Codes of values never change their meaning while a store lives, so columns taken from two snapshots of one store
can be compared code by code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, NewType, Protocol, Self

from lace.datalog.source import ColumnSource
from lace.notation.identifiers import RecordHash
from lace.notation.stopping import Interrupt, never
from lace.records.retraction import Withdraws
from lace.store.news import StoreNews
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.records.model import ValidRecord
    from lace.store.columns.segments.encode import EncodedBatch

StoreRecordId = NewType("StoreRecordId", int)
"""Insertion order: a later put has a higher id, and no id is ever used twice."""

BEFORE_ALL = StoreRecordId(0)


class PutResult(NamedTuple):
    """What became of one record of a put."""

    hash: RecordHash
    id: StoreRecordId
    new: bool  # False: it was stored before


@dataclass(frozen=True, slots=True)
class StoreCursor:
    """A moment in the life of a store: every record up to `record` was seen, every removal up to `removal`."""

    record: StoreRecordId = BEFORE_ALL
    removal: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored Plex or Seal as a coordinate lists it; bodies stay where they are."""

    group: str
    app: str
    name: str
    tai: str
    hash: RecordHash
    id: StoreRecordId
    signer: str | None  # the verifier of a Seal
    data_length: int
    withdraws: Withdraws = ()  # what it withdraws, if it is a retraction (081)


@dataclass(frozen=True, slots=True)
class StoreStat:
    """Sizes of a store."""

    records: int
    stored_bytes: int  # of the records alone
    file_bytes: int
    values: int  # distinct fact values ever seen
    high_water: StoreRecordId


class Snapshot(ColumnSource, Protocol):
    """The record facts of one store at one moment; later writes never show (020-VIEW-04)."""

    @property
    def cursor(self) -> StoreCursor:
        """The moment this snapshot shows."""

    @property
    def record_count(self) -> int:
        """How many records it shows."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The facts that came and went between two moments, net: no fact is in both."""

    added: ColumnSource
    removed: ColumnSource
    added_records: tuple[RecordHash, ...]
    removed_records: tuple[RecordHash, ...]
    cursor: StoreCursor


class RecordStore(Protocol):
    """A durable set of valid records with their facts."""

    @property
    def news(self) -> StoreNews:
        """Tells listeners in this process when something was stored or removed through this object."""

    def together(self) -> AbstractContextManager[None]:
        """Everything that is stored and kept inside is one transaction, durable at its end; all or nothing."""

    def put(self, records: Iterable[ValidRecord]) -> list[PutResult]:
        """Store a batch in one transaction, durable on return; a record that is there already stays as it is."""

    def put_encoded(self, batch: EncodedBatch) -> int:
        """Store a batch that was judged and encoded before, durable on return; how many of its records are new."""

    def get(self, record_hash: RecordHash) -> bytes | None:
        """The stored bytes of a record."""

    def get_first(self, record_hashes: Sequence[RecordHash], max_bytes: int) -> list[bytes | None]:
        """The stored bytes of the first few, in one read: at least one, then until they are `max_bytes` or more."""

    def get_head(self, record_hash: RecordHash, max_bytes: int) -> bytes | None:
        """The first stored bytes of a record, however long it is."""

    def have(self, record_hash: RecordHash) -> bool:
        """Whether a record is stored in its own right (020-EMBED-03)."""

    def room(self) -> int | None:
        """How many bytes of records there is room for now; None if no bound is known."""

    def present(self, record_hashes: Sequence[RecordHash]) -> set[RecordHash]:
        """Those that are stored in their own right."""

    def beginning_with(self, text: str) -> list[RecordHash]:
        """The stored records whose hashes begin with a text, in no order."""

    def delete(self, *record_hashes: RecordHash) -> int:
        """Remove records and their facts in one transaction; how many were there."""

    def records_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, RecordHash]]:
        """Records in insertion order, bodies not loaded."""

    def bodies_since(self, after: StoreRecordId = BEFORE_ALL) -> Iterator[tuple[StoreRecordId, bytes]]:
        """Stored bytes in insertion order, a bounded number of them in memory."""

    def entries(self, group: str | None = None, app: str | None = None, name_prefix: str = "") -> Iterator[Entry]:
        """Plexes and Seals in the order group, app, name, TAI, hash (all by their UTF-8 bytes)."""

    def versions(self, group: str, app: str, name: str) -> list[Entry]:
        """Everything stored under one coordinate by TAI, then by hash: the newest is the last."""

    def newest_first(self, group: str, app: str, name: str, *, until: str | None = None) -> Iterator[Entry]:
        """The versions of one coordinate from an instant back, newest first; read as far as the caller iterates."""

    def high_water(self) -> StoreRecordId:
        """The id of the newest record ever stored."""

    def cursor(self) -> StoreCursor:
        """This moment."""

    def snapshot(self) -> Snapshot:
        """The facts of this moment."""

    def changes(self, since: StoreCursor) -> Changes | None:
        """What changed since a moment; None if the store no longer knows, then take a snapshot instead."""

    def get_setting(self, namespace: str, key: str) -> bytes | None:
        """A value that another part keeps here."""

    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None:
        """Keep a value, durable on return; None removes it."""

    def settings(self, namespace: str) -> dict[str, bytes]:
        """Everything kept in one namespace."""

    def last_setting(self, namespace: str, up_to: str) -> tuple[str, bytes] | None:
        """The highest key of a namespace up to this one, and its value."""

    def check_integrity(self, stop: Interrupt = never) -> list[str]:
        """What is wrong with the store's own structures; empty when all is well."""

    def stat(self) -> StoreStat:
        """Sizes."""

    def close(self) -> None:
        """Release the store; what was put stays."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
