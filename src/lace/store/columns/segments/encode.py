"""Valid records → one batch of columns under codes of its own, ready for a store to take over.

Rule: pure and free of any store, so that worker processes can do it; a batch's codes mean something only with its
`texts`. Values of one field get neighbouring codes, so that a column's texts can be read in long runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import field, fields
from operator import eq, sub
from typing import TYPE_CHECKING

from lace.facts import predicates as names
from lace.facts.derive import (
    INNER_HASHES,
    SINGLE_FIELDS,
    FieldOccurrence,
    LinkOccurrence,
    extra_occurrences,
    link_occurrences,
)
from lace.records.model import Header, ValidRecord
from lace.records.partcolumns import PartColumns, columns_of
from lace.records.retraction import as_text, withdrawn_by
from lace.records.validate import reread
from lace.store.columns.segments.packing import pack, unpack
from lace.store.columns.segments.segment import (
    KIND_OF,
    MAX_FIELD_GROUPS,
    NO_TEXT,
    SEPARATOR,
    FactGroup,
    Kind,
    Segment,
    as_codes,
    constant,
    few_names,
    numbered,
)
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.datalog.source import Codes

MAX_OPEN_NAMES = 4 * MAX_FIELD_GROUPS  # of a batch with a list of rows each; the longest of them become groups


@dataclass(frozen=True, slots=True)
class Coordinates:
    """What the coordinate index keeps of the Plexes and Seals of a batch, as columns; codes are the batch's."""

    ordinals: Codes
    groups: Codes
    apps: Codes
    names: Codes
    tais: Codes
    signers: Codes  # NO_TEXT for a Plex
    data_lengths: Codes
    withdraws: Codes  # the text of what a retraction withdraws; NO_TEXT for all others


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

    def pack(self) -> PackedColumns:
        """Everything but the bodies as plain bytes, for a process border."""
        columns = tuple(getattr(self.coordinates, one.name).tobytes() for one in fields(Coordinates))
        return PackedColumns(SEPARATOR.join(self.texts), pack(self.segment), columns)


@dataclass(frozen=True, slots=True)
class PackedColumns:
    """An EncodedBatch without its bodies, as values that can be pickled."""

    texts: str
    segment: bytes
    coordinates: tuple[bytes, ...]

    def batch(self, bodies: Iterable[bytes]) -> EncodedBatch:
        """The batch, with the bodies it was made of."""
        columns = (memoryview(column).cast("I") for column in self.coordinates)
        return EncodedBatch(tuple(bodies), self.texts.split(SEPARATOR), unpack(self.segment), Coordinates(*columns))


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

    def column(self, texts: Sequence[str]) -> Codes:
        if texts and texts.count(texts[0]) == len(texts):  # a type, a group, a signer: mostly the same in a batch
            return constant(self.code(texts[0]), len(texts))
        codes = self.codes
        return as_codes([codes.setdefault(text, len(codes)) for text in texts])

    def code(self, text: str) -> int:
        return self.codes.setdefault(text, len(self.codes))


class _Table:
    """The parts of some records as columns, by the ordinals of the records that have them."""

    def __init__(self, parts: PartColumns, bodies: Sequence[bytes]) -> None:
        self.parts = parts
        self.types = [text[0] for text in parts.hash]
        self.data_lengths = list(map(sub, map(len, bodies), parts.data_start))
        self._ordinals = {types: self._of(types) for types in ("BPS", "PS", "S")}

    def _of(self, types: str) -> Sequence[int]:
        if sum(map(self.types.count, types)) == len(self.types):
            return range(len(self.types))
        return [ordinal for ordinal, kind in enumerate(self.types) if kind in types]

    def ordinals(self, types: str) -> Sequence[int]:
        """The records of some types."""
        return self._ordinals[types]

    def values(self, part: str, types: str) -> Sequence[str]:
        """What the records of some types say."""
        return _at(getattr(self.parts, part), self.ordinals(types))


def encode_batch(records: Iterable[ValidRecord]) -> EncodedBatch:
    """A batch of records, each once, in their order; its facts are those of `derive_facts`, field by field."""
    distinct = {record.parts.hash: record for record in records}.values()
    return encode_columns(columns_of(distinct), [record.stored for record in distinct])


def encode_columns(parts: PartColumns, bodies: Sequence[bytes]) -> EncodedBatch:
    """A batch of distinct records that were read into columns."""
    table = _Table(parts, bodies)
    interner = _Interner()
    subjects = interner.column(parts.hash)
    groups = tuple(_groups(table, subjects, interner))
    coordinates = _coordinates(table, groups, interner)
    return EncodedBatch(
        bodies=tuple(bodies),
        texts=list(interner.codes),
        segment=few_names(Segment(numbered(0, len(subjects)), subjects, groups)),
        coordinates=coordinates,
    )


def without_records(batch: EncodedBatch, gone: Collection[str]) -> EncodedBatch:
    """A batch without some of its records."""
    kept = [body for body, name in zip(batch.bodies, batch.hashes, strict=True) if name not in gone]
    return encode_batch(map(reread, kept))


def _groups(table: _Table, subjects: Codes, interner: _Interner) -> Iterator[FactGroup]:
    """The facts of `derive_facts`, field by field instead of record by record: a third of the time."""
    singles = [
        (names.TYPE, "BPS", table.types),
        (names.DATA_LENGTH, "BPS", list(map(str, table.data_lengths))),
        *((name, types, table.values(part, types)) for name, types, part in SINGLE_FIELDS),
    ]
    for name, types, values in singles:
        if values:
            code = interner.code(name)
            row_subjects = _row_subjects(table.ordinals(types), subjects)
            yield FactGroup(Kind.SINGLE, code, row_subjects, (interner.column(values),))
    for predicate, types, part in INNER_HASHES:
        if values := table.values(part, types):
            row_subjects = _row_subjects(table.ordinals(types), subjects)
            yield FactGroup(KIND_OF[predicate], 0, row_subjects, (interner.column(values),))
    yield from _extra_groups(table.parts.headers, subjects, interner)


def _at(column: Sequence[str], ordinals: Sequence[int]) -> Sequence[str]:
    return column if len(ordinals) == len(column) else [column[ordinal] for ordinal in ordinals]


def _extra_groups(headers: Sequence[tuple[Header, ...]], subjects: Codes, interner: _Interner) -> Iterator[FactGroup]:
    """Extra headers and the links among them, by `derive_facts`' own rules for indexes and links."""
    extras = _Extras()
    if not extras.take(headers):  # so many names that a group for each would cost far more than what arrived
        counts = Counter(name for own in headers for name, _ in own)
        extras = _Extras({name for name, _ in counts.most_common(MAX_FIELD_GROUPS)})
        extras.take(headers)
    for name, rows in extras.fields.items():
        yield _field_group(name, rows, subjects, interner)
    if extras.rare.ordinals:
        yield _rare_group(extras.rare_names, extras.rare, subjects, interner)
    if links := extras.links:
        columns = zip(*((name, str(index), data, target) for _, (name, index, data, target) in links), strict=True)
        link_subjects = _row_subjects([ordinal for ordinal, _ in links], subjects)
        yield FactGroup(Kind.LINK, 0, link_subjects, tuple(map(interner.column, columns)))


class _Extras:
    """The extra headers of some records: by name for names that are common or few, all others in one list."""

    def __init__(self, common: Collection[str] | None = None) -> None:
        self.fields: defaultdict[str, _Fields] = defaultdict(_Fields)
        self.rare = _Fields()
        self.rare_names: list[str] = []  # of each of its rows
        self.links: list[tuple[int, LinkOccurrence]] = []
        self._common = common

    def take(self, headers: Iterable[tuple[Header, ...]]) -> bool:
        """Sort all of them in; False, and unfinished, if there are too many names and nobody said which are common."""
        common, fields = self._common, self.fields
        known: dict[tuple[Header, ...], tuple[list[FieldOccurrence], list[LinkOccurrence]]] = {}  # many say the same
        for ordinal, own in enumerate(headers):
            if not own:
                continue
            if (found := known.get(own)) is None:
                occurrences = extra_occurrences(own)
                found = occurrences, link_occurrences(occurrences)
                if common is None:
                    known[own] = found
            for name, index, value in found[0]:
                if common is None or name in common:
                    rows = fields[name]
                else:
                    rows = self.rare
                    self.rare_names.append(name)
                rows.ordinals.append(ordinal)
                rows.indexes.append(index)
                rows.values.append(value)
            self.links += [(ordinal, link) for link in found[1]]
            if common is None and len(fields) > MAX_OPEN_NAMES:
                return False
        return True


def _rare_group(row_names: Sequence[str], rows: _Fields, subjects: Codes, interner: _Interner) -> FactGroup:
    row_subjects = as_codes([subjects[ordinal] for ordinal in rows.ordinals])
    columns = (row_names, list(map(str, rows.indexes)), rows.values)
    return FactGroup(Kind.RARE, 0, row_subjects, tuple(map(interner.column, columns)))


def _field_group(name: str, rows: _Fields, subjects: Codes, interner: _Interner) -> FactGroup:
    row_subjects = _row_subjects(rows.ordinals, subjects)
    name_code = interner.code(name)
    value_codes = interner.column(rows.values)
    if not any(rows.indexes):
        return FactGroup(Kind.SINGLE, name_code, row_subjects, (value_codes,))
    indexes = interner.column(list(map(str, rows.indexes)))
    return FactGroup(Kind.REPEATED, name_code, row_subjects, (indexes, value_codes))


def _row_subjects(ordinals: Sequence[int], subjects: Codes) -> Codes | None:
    """None where every record has exactly one row."""
    if len(ordinals) == len(subjects) and all(map(eq, ordinals, range(len(subjects)))):
        return None
    return as_codes([subjects[ordinal] for ordinal in ordinals])


def _coordinates(table: _Table, groups: Iterable[FactGroup], interner: _Interner) -> Coordinates:
    """Nearly all of these texts are values of fields, so they have codes and columns by now."""
    codes = interner.codes
    singles = {group.name: group.columns[0] for group in groups if group.kind is Kind.SINGLE}
    group, app, name, tai = (
        singles.get(codes.get(field_name, -1), as_codes(()))
        for field_name in (names.GROUP, names.APP, names.NAME, names.TAI)
    )
    plexes = table.ordinals("PS")
    return Coordinates(
        ordinals=as_codes(plexes),
        groups=group,
        apps=app,
        names=name,
        tais=tai,
        signers=as_codes([codes[signer] if signer else NO_TEXT for signer in table.values("signed_by", "PS")]),
        data_lengths=as_codes([table.data_lengths[ordinal] for ordinal in plexes]),
        withdraws=_withdraws(table, plexes, interner),
    )


def _withdraws(table: _Table, plexes: Sequence[int], interner: _Interner) -> Codes:
    headers = table.parts.headers
    said = {
        at: withdrawn_by(headers[ordinal], 0)
        for at, ordinal in enumerate(plexes)
        if headers[ordinal] and not table.data_lengths[ordinal]
    }
    if not any(said.values()):
        return constant(NO_TEXT, len(plexes))
    texts = {at: as_text(withdraws) for at, withdraws in said.items() if withdraws}
    return as_codes([interner.code(texts[at]) if at in texts else NO_TEXT for at in range(len(plexes))])
