"""Records as a table (110): a row per hash, chosen fields as columns.

Rule: a row shows fields, never bodies; a column is a field of 020, spelled like its header. An empty listing suggests
prefixes by looking at groups and apps only, so it costs no more than a full one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import chain, groupby, islice
from typing import TypeVar, overload

from lace.facts import predicates as names
from lace.facts.derive import field_occurrences
from lace.notation.identifiers import RecordHash
from lace.porcelain.tips import Tip, Versions, describe_tip
from lace.records.coordinate import Prefix
from lace.records.model import ValidRecord
from lace.records.tip import LOOKED_AT, JudgedVersion, TipPolicy, VersionState, Withdrawals, newest_first
from lace.store.base import Entry, RecordStore
from lace.values import dataclass

T = TypeVar("T")
COLUMNS = (names.GROUP, names.APP, names.NAME, names.TAI, names.SIGNED_BY, names.DATA_LENGTH)


@dataclass(frozen=True, slots=True)
class Row(Mapping[str, str]):
    """One record of a listing: its hash, and a mapping from its fields to the first value of each.

    `fields` has all values of a field. As with `collections.Counter`, a field that the record lacks reads as an empty
    text, and is not `in` the row.
    """

    hash: RecordHash
    fields: Mapping[str, tuple[str, ...]] = field(hash=False)  # a dict has no hash; the record's own is enough
    is_tip: bool | None = field(
        default=None, compare=False
    )  # whether it is the tip of its coordinate; None if nobody looked
    concurrent: tuple[Entry, ...] = field(default=(), compare=False)  # of a tip: the newest of each other writer
    state: VersionState | None = field(default=None, compare=False)  # what it counts for; None if nobody looked
    withdrawn_by: Entry | None = field(default=None, compare=False)  # the version that withdraws it

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
        """The first value of a field; the default if the record lacks it."""
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
    policy: TipPolicy,
    *,
    tips: bool = False,
    withdrawn: bool = False,
) -> Iterator[Row]:
    """The records under a prefix by coordinate, TAI and hash; bodies are read only for extra headers."""
    stored_elsewhere = [column for column in columns if column not in COLUMNS and column != names.TYPE]
    for found, tip in _judged_with_tips(store, prefix, policy):
        entry = found.version
        is_tip = tip is not None and tip.entry.hash == entry.hash
        if (tips and not is_tip) or not (
            withdrawn or is_tip or found.state in (VersionState.STANDS, VersionState.AHEAD, VersionState.BARRED)
        ):
            continue
        fields = _entry_fields(entry)
        if stored_elsewhere:
            fields |= record_fields(load(entry.hash), stored_elsewhere)
        concurrent = tip.concurrent if tip is not None and is_tip else ()
        yield Row(entry.hash, fields, is_tip, concurrent, found.state, found.by)


def covered_entries(store: RecordStore, prefix: Prefix) -> Iterator[Entry]:
    """The stored Plexes and Seals under a prefix, in all versions."""
    return (
        entry
        for entry in store.entries(*prefix.space, prefix.name or "")
        if prefix.covers(entry.group, entry.app, entry.name)
    )


def chosen_entries(store: RecordStore, prefix: Prefix) -> Iterator[Entry]:
    """The stored Plexes and Seals under a prefix, in the versions that it chooses."""
    choice = prefix.version
    entries = covered_entries(store, prefix)
    return entries if choice is None else (e for e in entries if choice.admits(e.hash, e.tai, e.signer))


def _judged_with_tips(
    store: RecordStore, prefix: Prefix, policy: TipPolicy, held: int = LOOKED_AT
) -> Iterator[tuple[JudgedVersion[Entry], Tip | None]]:
    """Each version that a prefix chooses, judged, with the tip of its coordinate.

    At most `held` versions of a coordinate, and its retractions, are in memory at once.
    """
    choice = prefix.version
    for place, together in groupby(covered_entries(store, prefix), lambda e: (e.group, e.app, e.name)):
        first = list(islice(together, held))
        if len(first) < held:
            versions: Versions = partial(_until, newest_first(first))
        else:
            versions = partial(_newest_at, store, place)
        tip = describe_tip(versions, policy, choice)
        withdrawals = Withdrawals.of(versions(policy.until), policy)
        for entry in chain(first, together):
            if choice is None or choice.admits(entry.hash, entry.tai, entry.signer):
                yield withdrawals.judge(entry), tip


def _until(versions: Sequence[Entry], until: str | None) -> Iterator[Entry]:
    return (entry for entry in versions if until is None or entry.tai <= until)


def _newest_at(store: RecordStore, place: tuple[str, str, str], until: str | None) -> Iterator[Entry]:
    return store.newest_first(*place, until=until)


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
    """The values of the wanted fields of a record, in the order of their index."""
    found: dict[str, tuple[str, ...]] = {}
    for name, _, value in field_occurrences(record):
        if name in wanted:
            found[name] = (*found.get(name, ()), value)
    return found


def blob_rows(store: RecordStore, load: Callable[[RecordHash], ValidRecord]) -> Iterator[Row]:
    """The Blobs stored as records of their own, in the order of storing."""
    for _, record_hash in store.records_since():
        if record_hash.type == "B":
            yield Row(record_hash, record_fields(load(record_hash), (names.TYPE, names.DATA_LENGTH)))
