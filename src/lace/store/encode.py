"""Valid records → one batch of columns under codes of its own, ready for a store to take over.

Rule: pure and free of any store, so that worker processes can do it; a batch's codes mean something only with its
`texts`. Values of one field get neighbouring codes, so that a column's texts can be read in long runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import eq
from typing import NamedTuple

from lace.datalog.source import Codes
from lace.facts.derive import LinkOccurrence, field_occurrences, link_occurrences
from lace.records.validate import ValidRecord
from lace.store.segments import FactGroup, Kind, Segment, as_codes, few_names, numbered

SEPARATOR = "\n"  # between texts where they are kept; 010 forbids it in header lines, so no value holds it


class CoordinateRow(NamedTuple):
    """What the coordinate index keeps of one record; codes of the batch, except the texts it is ordered by."""

    ordinal: int
    group: int
    app: int
    name: str
    tai: str
    signer: int | None
    data_length: int


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Distinct records, their bytes, their facts under the batch's codes, and the texts of these codes."""

    hashes: tuple[str, ...]
    bodies: tuple[bytes, ...]
    texts: tuple[str, ...]
    segment: Segment
    coordinates: tuple[CoordinateRow, ...]


@dataclass(slots=True)
class _Fields:
    """The occurrences of one field name: the record's ordinal, Index, Value."""

    ordinals: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


class _Collector:
    """The facts of records by group, still as texts; these are the facts that `derive_facts` yields."""

    def __init__(self) -> None:
        self.fields: defaultdict[str, _Fields] = defaultdict(_Fields)
        self.links: list[tuple[int, LinkOccurrence]] = []
        self.blob_hashes: list[tuple[int, str]] = []
        self.plex_hashes: list[tuple[int, str]] = []

    def add(self, ordinal: int, valid: ValidRecord) -> None:
        occurrences = field_occurrences(valid)
        for name, index, value in occurrences:
            rows = self.fields[name]
            rows.ordinals.append(ordinal)
            rows.indexes.append(index)
            rows.values.append(value)
        self.links += [(ordinal, link) for link in link_occurrences(occurrences)]
        if valid.type != "B":
            self.blob_hashes.append((ordinal, valid.parts.blob_hash))
        if valid.type == "S":
            self.plex_hashes.append((ordinal, valid.parts.plex_hash))


class _Interner:
    """Texts to codes in the order of their first use; '0' is always code 0."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {"0": 0}

    def column(self, texts: Iterable[str]) -> Codes:
        codes = self.codes
        return as_codes([codes.setdefault(text, len(codes)) for text in texts])

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))


def encode_batch(records: Iterable[ValidRecord]) -> EncodedBatch:
    """A batch of records, each once, in their order."""
    distinct = {record.hash: record for record in records}
    collector = _Collector()
    for ordinal, record in enumerate(distinct.values()):
        collector.add(ordinal, record)
    hashes = tuple(str(record_hash) for record_hash in distinct)
    interner = _Interner()
    subjects = interner.column(hashes)
    groups = tuple(_groups(collector, subjects, interner))
    return EncodedBatch(
        hashes=hashes,
        bodies=tuple(record.stored for record in distinct.values()),
        segment=few_names(Segment(numbered(0, len(distinct)), subjects, groups)),
        coordinates=tuple(_coordinate_rows(distinct.values(), interner)),
        texts=tuple(interner.codes),
    )


def _groups(collector: _Collector, subjects: Codes, interner: _Interner) -> Iterator[FactGroup]:
    for name, rows in collector.fields.items():
        yield _field_group(name, rows, subjects, interner)
    if collector.links:
        names, indexes, data, targets = zip(*(link for _, link in collector.links), strict=True)
        columns = (names, map(str, indexes), data, targets)
        link_subjects = _row_subjects([ordinal for ordinal, _ in collector.links], subjects)
        yield FactGroup(Kind.LINK, 0, link_subjects, tuple(map(interner.column, columns)))
    for kind, pairs in ((Kind.BLOB_HASH, collector.blob_hashes), (Kind.PLEX_HASH, collector.plex_hashes)):
        if pairs:
            ordinals, hashes = zip(*pairs, strict=True)
            yield FactGroup(kind, 0, _row_subjects(ordinals, subjects), (interner.column(hashes),))


def _field_group(name: str, rows: _Fields, subjects: Codes, interner: _Interner) -> FactGroup:
    row_subjects = _row_subjects(rows.ordinals, subjects)
    name_code = interner.code(name)
    value_codes = interner.column(rows.values)
    if not any(rows.indexes):
        return FactGroup(Kind.SINGLE, name_code, row_subjects, (value_codes,))
    return FactGroup(Kind.REPEATED, name_code, row_subjects, (interner.column(map(str, rows.indexes)), value_codes))


def _row_subjects(ordinals: Sequence[int], subjects: Codes) -> Codes | None:
    """None where every record has exactly one row."""
    if len(ordinals) == len(subjects) and all(map(eq, ordinals, range(len(subjects)))):
        return None
    return as_codes([subjects[ordinal] for ordinal in ordinals])


def _coordinate_rows(records: Iterable[ValidRecord], interner: _Interner) -> Iterator[CoordinateRow]:
    code = interner.code
    for ordinal, valid in enumerate(records):
        parts = valid.parts
        if valid.type != "B":
            signer = code(parts.signed_by) if parts.signed_by else None
            yield CoordinateRow(
                ordinal, code(parts.group), code(parts.app), parts.name, parts.tai, signer, valid.data_length
            )
