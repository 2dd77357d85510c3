"""Segments and a dictionary as the fact source of an evaluation (020, 030).

Rule: a view holds its segments, so it shows the same facts for as long as it lives; codes above its own count do not
exist for it. Each column is joined when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol, overload

from lace.datalog.language.syntax import Predicate
from lace.datalog.source import Codes, Row, require_places
from lace.facts.predicates import FIELD, HAVE, RECORD_PREDICATES
from lace.notation.identifiers import RecordHash
from lace.store.base import Changes, StoreCursor
from lace.store.columns.segments.segment import (
    FIELD_KINDS,
    KIND_OF,
    FactGroup,
    Kind,
    Segment,
    as_codes,
    constant,
    field_columns,
    join,
    positions,
    rows_holding,
    subjects_of,
    without,
)
from lace.store.columns.tables.state import StoreState

ROWS_PER_READ = 1 << 14  # rows whose texts an iteration holds at once


class TextCodes(Protocol):
    """Texts and codes."""

    def codes(self, texts: Sequence[str]) -> list[int]: ...
    def texts(self, codes: Codes) -> list[str]: ...
    def lines(self, codes: Codes) -> bytes: ...


class LateColumns(Sequence[Codes]):
    """Columns that are made when they are first read."""

    def __init__(self, makers: Sequence[Callable[[], Codes]]) -> None:
        self._makers = makers
        self._made: dict[int, Codes] = {}

    @overload
    def __getitem__(self, position: int) -> Codes: ...
    @overload
    def __getitem__(self, position: slice) -> Sequence[Codes]: ...
    def __getitem__(self, position: int | slice) -> Codes | Sequence[Codes]:
        if isinstance(position, slice):
            return [self[n] for n in range(*position.indices(len(self)))]
        if position not in self._made:
            self._made[position] = self._makers[position]()
        return self._made[position]

    def __len__(self) -> int:
        return len(self._makers)


def _join_parts(parts: Sequence[Sequence[Codes]], position: int) -> Codes:
    return join([part[position] for part in parts])


class SegmentView:
    """The facts of some segments, as texts and as columns."""

    def __init__(
        self, dictionary: TextCodes, code_count: int, segments: Sequence[Segment], cursor: StoreCursor
    ) -> None:
        self._dictionary = dictionary
        self._code_count = code_count
        self._segments = [segment for segment in segments if len(segment)]
        self._cursor = cursor
        self._columns: dict[Predicate, Sequence[Codes]] = {}
        self._fields: FieldSlices | None = None
        self._all_subjects: Codes | None = None

    @property
    def cursor(self) -> StoreCursor:
        return self._cursor

    @property
    def record_count(self) -> int:
        return sum(map(len, self._segments))

    @property
    def code_count(self) -> int:
        return self._code_count

    def codes(self, texts: Sequence[str]) -> list[int]:
        return [code if code < self._code_count else -1 for code in self._dictionary.codes(texts)]

    def texts(self, codes: Codes) -> list[str]:
        return self._dictionary.texts(codes)

    def lines(self, codes: Codes) -> bytes:
        return self._dictionary.lines(codes)

    def predicates(self) -> Iterable[Predicate]:
        return RECORD_PREDICATES

    def count(self, predicate: Predicate) -> int:
        if predicate == HAVE:
            return self.record_count
        kinds = FIELD_KINDS if predicate == FIELD else (KIND_OF.get(predicate),)
        return sum(group.rows for segment in self._segments for group in segment.groups if group.kind in kinds)

    def columns(self, predicate: Predicate) -> Sequence[Codes]:
        if predicate not in self._columns:
            self._columns[predicate] = self._join_columns(predicate)
        return self._columns[predicate]

    def slices(self, predicate: Predicate, position: int) -> Mapping[int, Sequence[Codes]] | None:
        return self._by_name() if (predicate, position) == (FIELD, 1) else None

    def _by_name(self) -> FieldSlices:
        if self._fields is None:
            self._fields = self._group_fields()
        return self._fields

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        yield from self._rows(self.columns(predicate) if predicate in RECORD_PREDICATES else ())

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        require_places(predicate, values)
        return self._found(predicate, values)

    def _found(self, predicate: Predicate, values: Sequence[str | None]) -> Iterator[Row]:
        bound = {position: value for position, value in enumerate(values) if value is not None}
        codes = dict(zip(bound, self.codes(list(bound.values())), strict=True))
        if predicate not in RECORD_PREDICATES or -1 in codes.values():
            return
        yield from self._rows(_matching(self._narrowest(predicate, codes), codes))

    def _narrowest(self, predicate: Predicate, codes: dict[int, int]) -> Sequence[Codes]:
        if predicate == FIELD and 1 in codes:
            return self._by_name().get(codes[1], ())
        return self.columns(predicate)

    def _rows(self, columns: Sequence[Codes]) -> Iterator[Row]:
        for start in range(0, len(columns[0]) if columns else 0, ROWS_PER_READ):
            parts = [self.texts(column[start : start + ROWS_PER_READ]) for column in columns]
            yield from zip(*parts, strict=True)

    def _subjects(self) -> Codes:
        if self._all_subjects is None:
            self._all_subjects = join([segment.subjects for segment in self._segments])
        return self._all_subjects

    def _join_columns(self, predicate: Predicate) -> Sequence[Codes]:
        if predicate == HAVE:
            return (self._subjects(),)
        if predicate == FIELD:
            slices = list(self._by_name().parts())
            return LateColumns([partial(_join_parts, slices, position) for position in range(FIELD.arity)])
        found = [
            (segment, group)
            for segment in self._segments
            for group in segment.groups
            if group.kind is KIND_OF.get(predicate)
        ]
        groups = [group.columns for _, group in found]
        others = [partial(_join_parts, groups, at) for at in range(predicate.arity - 1)]
        return LateColumns([partial(self._joined_subjects, found), *others])

    def _group_fields(self) -> FieldSlices:
        own: dict[int, list[tuple[Segment, FactGroup]]] = {}
        rare = []
        for segment in self._segments:
            for group in segment.groups:
                if group.kind in (Kind.SINGLE, Kind.REPEATED):
                    own.setdefault(group.name, []).append((segment, group))
                elif group.kind is Kind.RARE:
                    rare.append((segment, group))
        longest = max((sum(group.rows for _, group in found) for found in own.values()), default=0)
        zeros = LateColumns([partial(constant, 0, longest)])
        return FieldSlices(own, rare, lambda name, found: self._field(name, found, zeros))

    def _field(self, name: int, found: list[tuple[Segment, FactGroup]], zeros: LateColumns) -> LateColumns:
        rows = sum(group.rows for _, group in found)
        subjects, names = partial(self._joined_subjects, found), partial(constant, name, rows)
        if all(group.kind is Kind.SINGLE for _, group in found):
            values = partial(_join_parts, [group.columns for _, group in found], 0)
            return LateColumns([subjects, names, lambda: zeros[0][:rows], values])
        parts = [field_columns(segment, group) for segment, group in found]
        return LateColumns([subjects, names, partial(_join_parts, parts, 2), partial(_join_parts, parts, 3)])

    def _joined_subjects(self, found: list[tuple[Segment, FactGroup]]) -> Codes:
        """Fields that every record has share one column of subjects."""
        if len(found) == len(self._segments) and all(group.subjects is None for _, group in found):
            return self._subjects()
        return join([subjects_of(segment, group) for segment, group in found])


class FieldSlices(Mapping[int, Sequence[Codes]]):
    """The fields by name; a rare name, of which a record may bring hundreds, is looked for when it is asked for."""

    def __init__(
        self,
        own: Mapping[int, list[tuple[Segment, FactGroup]]],
        rare: Sequence[tuple[Segment, FactGroup]],
        columns_of: Callable[[int, list[tuple[Segment, FactGroup]]], Sequence[Codes]],
    ) -> None:
        self._own = own
        self._rare = rare
        self._columns_of = columns_of
        self._made: dict[int, Sequence[Codes]] = {}  # of names that have groups of their own: few

    def __getitem__(self, name: int) -> Sequence[Codes]:
        if name not in self._made:
            own = self._own.get(name, [])
            found = own + [(segment, part) for segment, group in self._rare if (part := _named(segment, group, name))]
            if not found:
                raise KeyError(name)
            columns = self._columns_of(name, found)
            if not own:
                return columns
            self._made[name] = columns
        return self._made[name]

    def __iter__(self) -> Iterator[int]:
        return iter({*self._own, *(name for _, group in self._rare for name in group.columns[0])})

    def __len__(self) -> int:
        return len(set(self))

    def parts(self) -> Iterator[Sequence[Codes]]:
        """All rows, in as many parts as there are groups."""
        for name, found in self._own.items():
            yield self._columns_of(name, found)
        for segment, group in self._rare:
            yield field_columns(segment, group)


def _named(segment: Segment, group: FactGroup, name: int) -> FactGroup | None:
    """The rows of one name in a group of rare fields."""
    names, indexes, values = group.columns
    rows = list(rows_holding(names, name))
    if not rows:
        return None
    subjects = subjects_of(segment, group)
    columns = tuple(as_codes([column[row] for row in rows]) for column in (indexes, values))
    return FactGroup(Kind.REPEATED, name, as_codes([subjects[row] for row in rows]), columns)


def _matching(columns: Sequence[Codes], wanted: Mapping[int, int]) -> Sequence[Codes]:
    """The rows whose columns hold the wanted codes."""
    if not columns or not wanted:
        return columns
    first, *others = wanted.items()
    rows = positions(columns[first[0]], (first[1],))
    rows = [row for row in rows if all(columns[position][row] == code for position, code in others)]
    return [as_codes(column[row] for row in rows) for column in columns]


def net_changes(
    dictionary: TextCodes, state: StoreState, since: StoreCursor, added: Sequence[Segment], removed: Sequence[Segment]
) -> Changes:
    """A record that came and went in between never was; one that went and came again never left."""
    came = {code for segment in added for code in segment.subjects}
    went: set[int] = set()
    for segment in removed:
        pairs = zip(segment.ids, segment.subjects, strict=True)
        went.update(code for record, code in pairs if record <= since.record)
    both = came & went
    kept_added = [without(segment, both) for segment in added]
    kept_removed = _first_removals(removed, went - both, since)
    views = [SegmentView(dictionary, state.next_code, part, state.cursor) for part in (kept_added, kept_removed)]
    hashes = [tuple(map(RecordHash, view.texts(view.columns(HAVE)[0]))) for view in views]
    return Changes(views[0], views[1], hashes[0], hashes[1], state.cursor)


def _first_removals(removed: Sequence[Segment], wanted: set[int], since: StoreCursor) -> list[Segment]:
    """The removed records that the cursor had seen, each once."""
    kept = []
    for segment in removed:
        pairs = zip(segment.ids, segment.subjects, strict=True)
        unseen = {code for record, code in pairs if record > since.record or code not in wanted}
        kept.append(without(segment, unseen))
    return kept
