"""Records as a table (110): a row per hash, chosen fields as columns.

Rule: a row shows fields, never bodies; what a column names is a field of 020, spelled as its header is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from itertools import groupby
from typing import TypeVar, overload

from lace.facts import predicates as names
from lace.facts.derive import field_occurrences
from lace.notation.identifiers import RecordHash
from lace.porcelain.tips import TipPolicy
from lace.records.coordinate import Prefix
from lace.records.model import ValidRecord
from lace.store.base import Entry, RecordStore
from lace.values import dataclass

T = TypeVar("T")
COLUMNS = (names.GROUP, names.APP, names.NAME, names.TAI, names.SIGNED_BY, names.DATA_LENGTH)


@dataclass(frozen=True, slots=True)
class Row(Mapping[str, str]):
    """One record of a listing: its hash, and a mapping from the fields it has to the first value of each.

    `fields` has all values of a field. As with `collections.Counter`, a field that the record does not have reads as an
    empty text, and is not `in` the row.
    """

    hash: RecordHash
    fields: Mapping[str, tuple[str, ...]] = field(hash=False)  # a dict has no hash; the record's own is enough

    def __getitem__(self, column: str) -> str:
        values = self.fields.get(column, ())
        return values[0] if values else ""

    def __iter__(self) -> Iterator[str]:
        return (name for name, values in self.fields.items() if values)

    def __len__(self) -> int:
        return sum(map(bool, self.fields.values()))

    def __contains__(self, column: object) -> bool:
        return bool(self.fields.get(column))  # type: ignore[call-overload]  # anything may be asked about

    @overload
    def get(self, column: str, /) -> str | None: ...

    @overload
    def get(self, column: str, /, default: str | T) -> str | T: ...

    def get(self, column: str, /, default: str | T | None = None) -> str | T | None:
        """The first value of a field; the default if the record does not have it."""
        if column not in self:
            return default
        return self[column]

    @property
    def coordinate(self) -> str:
        """`//group//app//name`; empty for a Blob."""
        group, app, name = self[names.GROUP], self[names.APP], self[names.NAME]
        return f"//{group}//{app}//{name}" if group else ""


def entry_rows(
    store: RecordStore,
    prefix: Prefix,
    columns: Sequence[str],
    load: Callable[[RecordHash], ValidRecord],
    tips: TipPolicy | None = None,
) -> Iterator[Row]:
    """What a prefix covers by coordinate, TAI and hash; bodies are read for extra headers only."""
    stored_elsewhere = [column for column in columns if column not in COLUMNS and column != names.TYPE]
    for entry in covered_entries(store, prefix, tips):
        fields = _entry_fields(entry)
        if stored_elsewhere:
            fields |= record_fields(load(entry.hash), stored_elsewhere)
        yield Row(entry.hash, fields)


def covered_entries(store: RecordStore, prefix: Prefix, tips: TipPolicy | None = None) -> Iterator[Entry]:
    """The stored Plexes and Seals that a prefix covers; with a policy the tip of each coordinate alone."""
    found: Iterable[Entry] = (
        entry
        for entry in store.entries(*prefix.space, prefix.name or "")
        if prefix.covers(entry.group, entry.app, entry.name)
        and (prefix.version is None or prefix.version.admits(entry.hash, entry.tai, entry.signer))
    )
    if tips is None:
        yield from found
        return
    for _, versions in groupby(found, lambda e: (e.group, e.app, e.name)):  # one coordinate together, oldest first
        tip = tips.choose(list(versions))
        if tip is not None:
            yield tip.entry


def _entry_fields(entry: Entry) -> dict[str, tuple[str, ...]]:
    fields: dict[str, tuple[str, ...]] = {
        names.TYPE: (entry.hash.type,),
        names.GROUP: (entry.group,),
        names.APP: (entry.app,),
        names.NAME: (entry.name,),
        names.TAI: (entry.tai,),
        names.DATA_LENGTH: (str(entry.data_length),),
    }
    if entry.signer:
        fields[names.SIGNED_BY] = (entry.signer,)
    return fields


def record_fields(record: ValidRecord, wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values of some fields of a record, in the order of their index."""
    found: dict[str, tuple[str, ...]] = {}
    for name, _, value in field_occurrences(record):
        if name in wanted:
            found[name] = (*found.get(name, ()), value)
    return found


def blob_rows(store: RecordStore, load: Callable[[RecordHash], ValidRecord]) -> Iterator[Row]:
    """The Blobs that are stored in their own right, in the order in which they came."""
    for _, record_hash in store.records_since():
        if record_hash.type == "B":
            yield Row(record_hash, record_fields(load(record_hash), (names.TYPE, names.DATA_LENGTH)))
