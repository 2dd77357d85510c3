"""Valid records → one batch of columns under codes of its own, ready for a store to take over.

Rule: pure and free of any store, so that worker processes can do it; a batch's codes mean something only with its
`texts`. Values of one field get neighbouring codes, so that a column's texts can be read in long runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import eq

from lace.datalog.source import Codes
from lace.facts import predicates as names
from lace.facts.derive import LinkOccurrence, field_occurrences, link_occurrences
from lace.records.validate import ValidRecord
from lace.store.segments import FactGroup, Kind, Segment, as_codes, few_names, numbered

SEPARATOR = "\n"  # between texts where they are kept; 010 forbids it in header lines, so no value holds it


@dataclass(frozen=True, slots=True)
class Coordinates:
    """What the coordinate index keeps of the Plexes and Seals of a batch, as columns; codes are the batch's."""

    ordinals: Codes
    groups: Codes
    apps: Codes
    names: Codes
    tais: Codes
    signers: Codes  # NO_SIGNER for a Plex
    data_lengths: Codes


NO_SIGNER = 0xFFFF_FFFF


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """Distinct records, their bytes, their facts under the batch's codes, and the texts of these codes."""

    bodies: tuple[bytes, ...]
    texts: Sequence[str]
    segment: Segment
    coordinates: Coordinates

    @property
    def hashes(self) -> list[str]:
        return [self.texts[code] for code in self.segment.subjects]


@dataclass(slots=True)
class _Fields:
    """The occurrences of one field name: the record's ordinal, Index, Value."""

    ordinals: list[int] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    values: list[str] = field(default_factory=list)


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
    """A batch of records, each once, in their order; its facts are those of `derive_facts`, field by field."""
    valids = list({record.hash: record for record in records}.values())
    interner = _Interner()
    subjects = interner.column([str(valid.hash) for valid in valids])
    groups = tuple(_groups(valids, subjects, interner))
    coordinates = _coordinates(valids, interner)
    return EncodedBatch(
        bodies=tuple(valid.stored for valid in valids),
        texts=list(interner.codes),
        segment=few_names(Segment(numbered(0, len(valids)), subjects, groups)),
        coordinates=coordinates,
    )


def _groups(valids: list[ValidRecord], subjects: Codes, interner: _Interner) -> Iterator[FactGroup]:
    """Facts field by field instead of record by record: the same facts, a third of the time."""
    plexes = [ordinal for ordinal, valid in enumerate(valids) if valid.type != "B"]
    seals = [ordinal for ordinal, valid in enumerate(valids) if valid.type == "S"]
    plex_parts = [valids[ordinal].parts for ordinal in plexes]
    seal_parts = [valids[ordinal].parts for ordinal in seals]
    everything = range(len(valids))
    singles: list[tuple[str, Sequence[int], list[str]]] = [
        (names.TYPE, everything, [valid.type for valid in valids]),
        (names.DATA_LENGTH, everything, [str(valid.data_length) for valid in valids]),
        (names.GROUP, plexes, [parts.group for parts in plex_parts]),
        (names.APP, plexes, [parts.app for parts in plex_parts]),
        (names.NAME, plexes, [parts.name for parts in plex_parts]),
        (names.TAI, plexes, [parts.tai for parts in plex_parts]),
        (names.SIGNED_BY, seals, [parts.signed_by for parts in seal_parts]),
        (names.SIGNATURE, seals, [parts.signature for parts in seal_parts]),
    ]
    for name, ordinals, values in singles:
        if values:
            code = interner.code(name)
            yield FactGroup(Kind.SINGLE, code, _row_subjects(ordinals, subjects), (interner.column(values),))
    hashes = (
        (Kind.BLOB_HASH, plexes, [parts.blob_hash for parts in plex_parts]),
        (Kind.PLEX_HASH, seals, [parts.plex_hash for parts in seal_parts]),
    )
    for kind, ordinals, values in hashes:
        if values:
            yield FactGroup(kind, 0, _row_subjects(ordinals, subjects), (interner.column(values),))
    yield from _extra_groups(
        [ordinal for ordinal in plexes if valids[ordinal].parts.headers], valids, subjects, interner
    )


def _extra_groups(
    ordinals: list[int], valids: list[ValidRecord], subjects: Codes, interner: _Interner
) -> Iterator[FactGroup]:
    """Extra headers and the links among them, by `derive_facts`' own rules for indexes and links."""
    fields: defaultdict[str, _Fields] = defaultdict(_Fields)
    links: list[tuple[int, LinkOccurrence]] = []
    for ordinal in ordinals:
        occurrences = field_occurrences(valids[ordinal])
        for name, index, value in occurrences[-len(valids[ordinal].parts.headers) :]:
            rows = fields[name]
            rows.ordinals.append(ordinal)
            rows.indexes.append(index)
            rows.values.append(value)
        links += [(ordinal, link) for link in link_occurrences(occurrences)]
    for name, rows in fields.items():
        yield _field_group(name, rows, subjects, interner)
    if links:
        columns = zip(*((name, str(index), data, target) for _, (name, index, data, target) in links), strict=True)
        link_subjects = _row_subjects([ordinal for ordinal, _ in links], subjects)
        yield FactGroup(Kind.LINK, 0, link_subjects, tuple(map(interner.column, columns)))


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


def _coordinates(valids: list[ValidRecord], interner: _Interner) -> Coordinates:
    """All of these texts are values of fields, so they have codes by now."""
    ordinals = [ordinal for ordinal, valid in enumerate(valids) if valid.type != "B"]
    parts = [valids[ordinal].parts for ordinal in ordinals]
    codes = interner.codes
    return Coordinates(
        ordinals=as_codes(ordinals),
        groups=interner.column([part.group for part in parts]),
        apps=interner.column([part.app for part in parts]),
        names=interner.column([part.name for part in parts]),
        tais=interner.column([part.tai for part in parts]),
        signers=as_codes([codes[part.signed_by] if part.signed_by else NO_SIGNER for part in parts]),
        data_lengths=as_codes([valids[ordinal].data_length for ordinal in ordinals]),
    )
