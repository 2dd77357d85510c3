"""Column segments: the facts of a run of records as arrays of value codes.

Rule: a segment never changes. Rows are in record order, and a group without subjects has exactly one row for each
record of its segment, so that a field every record has costs one code a record.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Literal

from lace.facts.predicates import BLOB_HASH, PLEX_HASH, RECORD_LINK
from lace.values import dataclass

if TYPE_CHECKING:
    from lace.datalog.source import Codes

Form = Literal["I", "Q"]
ZERO = 0
"""The code of the text '0', the Index of every singleton field, in every dictionary."""

SEPARATOR = "\n"  # between texts where they are kept; 010 forbids it in header lines, so no value holds it
NO_TEXT = 0xFFFF_FFFF  # where the code of a text would stand, such as a signer's
MAX_FIELD_GROUPS = 64  # a name beyond these shares one group with the other rare ones


class Kind(IntEnum):
    """What the rows of a group are; the number is stored."""

    SINGLE = 0  # Field with one Name, every Index '0': columns (Value)
    REPEATED = 1  # Field with one Name: (Index, Value)
    RARE = 2  # Field of any Name: (Name, Index, Value)
    LINK = 3  # RecordLink: (Name, Index, Data, Target)
    BLOB_HASH = 4  # (H)
    PLEX_HASH = 5  # (H)


WIDTH = {Kind.SINGLE: 1, Kind.REPEATED: 2, Kind.RARE: 3, Kind.LINK: 4, Kind.BLOB_HASH: 1, Kind.PLEX_HASH: 1}
FIELD_KINDS = (Kind.SINGLE, Kind.REPEATED, Kind.RARE)
KIND_OF = {RECORD_LINK: Kind.LINK, BLOB_HASH: Kind.BLOB_HASH, PLEX_HASH: Kind.PLEX_HASH}


@dataclass(frozen=True, slots=True)
class FactGroup:
    """Rows of one kind; `name` is the code of the field Name, 0 where the kind has none."""

    kind: Kind
    name: int
    subjects: Codes | None  # None: one row for each record of the segment
    columns: tuple[Codes, ...]

    @property
    def rows(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True, slots=True)
class Segment:
    """Record ids and the codes of their hashes, in insertion order, and the groups of their facts."""

    ids: memoryview  # format "Q"
    subjects: Codes
    groups: tuple[FactGroup, ...]

    def __len__(self) -> int:
        return len(self.subjects)


def as_codes(values: Iterable[int]) -> Codes:
    """Codes from integers."""
    return memoryview(array("I", values))


def as_ids(values: Iterable[int]) -> memoryview:
    """Record ids from integers."""
    return memoryview(array("Q", values))


def constant(code: int, rows: int) -> Codes:
    """A column with one code in every row."""
    return memoryview(array("I", (code,)) * rows)


def join(parts: Sequence[memoryview], form: Form = "I") -> memoryview:
    """Columns one after the other."""
    if len(parts) == 1:
        return parts[0]
    return memoryview(b"".join(parts)).cast(form) if parts else memoryview(array(form))


EMPTY = Segment(as_ids(()), as_codes(()), ())


def translate(segment: Segment, table: Sequence[int], ids: memoryview) -> Segment:
    """The same facts under other codes: code c becomes table[c]."""

    def recode(column: Codes) -> Codes:
        return as_codes(map(table.__getitem__, column))

    def regroup(group: FactGroup) -> FactGroup:
        subjects = None if group.subjects is None else recode(group.subjects)
        name = table[group.name] if group.kind in (Kind.SINGLE, Kind.REPEATED) else 0
        return FactGroup(group.kind, name, subjects, tuple(map(recode, group.columns)))

    return Segment(ids, recode(segment.subjects), tuple(map(regroup, segment.groups)))


def positions(column: Codes, wanted: Collection[int]) -> list[int]:
    """The rows of a column that hold one of the wanted codes, ascending."""
    if len(wanted) > 4:
        return [row for row, code in enumerate(column) if code in wanted]
    return sorted(row for code in wanted for row in rows_holding(column, code))


def rows_holding(column: Codes, code: int) -> Iterator[int]:
    """The rows of a column that hold a code, ascending, found as they are asked for."""
    data = column.tobytes()
    needle = array("I", (code,)).tobytes()
    at = data.find(needle)
    while at >= 0:
        if at % 4 == 0:
            yield at // 4
        at = data.find(needle, at + 1)


def _picked(column: memoryview, rows: Sequence[int]) -> memoryview:
    return memoryview(array(column.format, [column[row] for row in rows]))


def _dropped(column: memoryview, rows: Sequence[int]) -> memoryview:
    edges = zip([-1, *rows], [*rows, len(column)], strict=True)
    return join([column[start + 1 : end] for start, end in edges], "Q" if column.format == "Q" else "I")


def picked(segment: Segment, wanted: Collection[int]) -> Segment:
    """Only the records whose hash codes are wanted."""
    return _filtered(segment, wanted, _picked)


def without(segment: Segment, dead: Collection[int]) -> Segment:
    """The segment without the records whose hash codes are `dead`."""
    return _filtered(segment, dead, _dropped) if dead else segment


def _filtered(
    segment: Segment, codes: Collection[int], apply: Callable[[memoryview, Sequence[int]], memoryview]
) -> Segment:
    record_rows = positions(segment.subjects, codes)
    groups = []
    for group in segment.groups:
        rows = record_rows if group.subjects is None else positions(group.subjects, codes)
        columns = tuple(apply(column, rows) for column in group.columns)
        if len(columns[0]):
            subjects = None if group.subjects is None else apply(group.subjects, rows)
            groups.append(FactGroup(group.kind, group.name, subjects, columns))
    return Segment(apply(segment.ids, record_rows), apply(segment.subjects, record_rows), tuple(groups))


def merge(segments: Sequence[Segment]) -> Segment:
    """Segments one after the other as one."""
    if len(segments) == 1:
        return segments[0]
    parts: dict[tuple[Kind, int], list[tuple[Segment, FactGroup]]] = {}
    for segment in segments:
        for group in segment.groups:
            # SINGLE and REPEATED are one relation; the wider form wins below.
            kind = Kind.REPEATED if group.kind is Kind.SINGLE else group.kind
            parts.setdefault((kind, group.name), []).append((segment, group))
    groups = [_merge_groups(kind, name, found, len(segments)) for (kind, name), found in parts.items()]
    ids = join([segment.ids for segment in segments], "Q")
    subjects = join([segment.subjects for segment in segments])
    return Segment(ids, subjects, _with_few_names(subjects, groups))


def _merge_groups(kind: Kind, name: int, found: list[tuple[Segment, FactGroup]], segment_count: int) -> FactGroup:
    groups = [group for _, group in found]
    if kind is Kind.REPEATED and all(group.kind is Kind.SINGLE for group in groups):
        kind = Kind.SINGLE
    columns = [
        group.columns if group.kind is kind else (constant(ZERO, group.rows), *group.columns) for group in groups
    ]
    shared = len(found) == segment_count and all(group.subjects is None for group in groups)
    subjects = None if shared else join([subjects_of(segment, group) for segment, group in found])
    return FactGroup(kind, name, subjects, tuple(join(parts) for parts in zip(*columns, strict=True)))


def subjects_of(segment: Segment, group: FactGroup) -> Codes:
    """The subject of each row of a group."""
    return segment.subjects if group.subjects is None else group.subjects


def field_columns(segment: Segment, group: FactGroup) -> tuple[Codes, Codes, Codes, Codes]:
    """Subject, Name, Index and Value of a group of Field facts."""
    subjects = subjects_of(segment, group)
    match group.kind:
        case Kind.SINGLE:
            return subjects, constant(group.name, group.rows), constant(ZERO, group.rows), group.columns[0]
        case Kind.REPEATED:
            return subjects, constant(group.name, group.rows), group.columns[0], group.columns[1]
        case Kind.RARE:
            return subjects, group.columns[0], group.columns[1], group.columns[2]
        case _:
            raise ValueError(f"{group.kind.name} holds no fields")


def _with_few_names(subjects: Codes, groups: list[FactGroup]) -> tuple[FactGroup, ...]:
    """Groups with at most MAX_FIELD_GROUPS field names of their own; a record may bring 512 new names."""
    named = sorted((group for group in groups if group.kind in FIELD_KINDS), key=lambda group: -group.rows)
    candidates = [group for group in named if group.kind is not Kind.RARE]
    own = candidates[:MAX_FIELD_GROUPS]
    rare = [group for group in named if group.kind is Kind.RARE] + candidates[MAX_FIELD_GROUPS:]
    others = [group for group in groups if group.kind not in FIELD_KINDS]
    if not rare or (len(rare) == 1 and rare[0].kind is Kind.RARE):
        return (*own, *rare, *others)
    whole = Segment(as_ids(()), subjects, ())
    parts = zip(*(field_columns(whole, group) for group in rare), strict=True)
    rare_subjects, *columns = (join(part) for part in parts)
    return (*own, FactGroup(Kind.RARE, 0, rare_subjects, tuple(columns)), *others)


def few_names(segment: Segment) -> Segment:
    """A freshly built segment under the limit of field names."""
    return Segment(segment.ids, segment.subjects, _with_few_names(segment.subjects, list(segment.groups)))


def numbered(first: int, count: int) -> memoryview:
    """Consecutive record ids."""
    return as_ids(range(first, first + count))
