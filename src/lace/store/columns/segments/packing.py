"""Segments as bytes: a directory, then the columns, little-endian, each where its type is aligned.

Rule: unpacking copies no column; the codes are read where SQLite put them.

    magic "LSEG", version u16, groups u16, records u32, zero u32
    groups × (kind u8, has-subjects u8, zero u16, name u32, rows u32)
    padding to 8 · ids u64 × records · subjects u32 × records · for each group [subjects] and its columns, u32 × rows
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterator

from lace.errors import StoreError
from lace.store.columns.segments.segment import WIDTH, FactGroup, Form, Kind, Segment

MAGIC = b"LSEG"
VERSION = 1
_HEAD = struct.Struct("<4sHHII")
_GROUP = struct.Struct("<BBHII")
_KINDS = tuple(Kind)


def pack(segment: Segment) -> bytes:
    """A segment as bytes."""
    directory = [_HEAD.pack(MAGIC, VERSION, len(segment.groups), len(segment), 0)]
    directory += [
        _GROUP.pack(group.kind, group.subjects is not None, 0, group.name, group.rows) for group in segment.groups
    ]
    head = b"".join(directory)
    return b"".join([head, bytes(-len(head) % 8), *(_little(column) for column in _columns(segment))])


def _columns(segment: Segment) -> Iterator[memoryview]:
    yield segment.ids
    yield segment.subjects
    for group in segment.groups:
        if group.subjects is not None:
            yield group.subjects
        yield from group.columns


def unpack(data: bytes) -> Segment:
    """The segment in bytes that `pack` made."""
    magic, version, group_count, records, _ = _HEAD.unpack_from(data)
    if magic != MAGIC or version != VERSION:
        raise StoreError(f"a column segment of an unknown form: {magic!r} version {version}")
    directory = [_GROUP.unpack_from(data, _HEAD.size + _GROUP.size * i) for i in range(group_count)]
    take = _Taker(data, _HEAD.size + _GROUP.size * group_count)
    ids, subjects = take.column("Q", records), take.column("I", records)
    groups = []
    for kind_number, has_subjects, _, name, rows in directory:
        kind = _KINDS[kind_number]
        own_subjects = take.column("I", rows) if has_subjects else None
        columns = tuple(take.column("I", rows) for _ in range(WIDTH[kind]))
        groups.append(FactGroup(kind, name, own_subjects, columns))
    take.require_end()
    return Segment(ids, subjects, tuple(groups))


class _Taker:
    """Hands out columns from the front of the bytes."""

    def __init__(self, data: bytes, start: int) -> None:
        self._data = memoryview(data)
        self._at = start + (-start % 8)

    def column(self, form: Form, rows: int) -> memoryview:
        end = self._at + rows * (8 if form == "Q" else 4)
        part = self._data[self._at : end]
        if len(part) != end - self._at:
            raise StoreError("a column segment is cut short")
        self._at = end
        return native(part, form)

    def require_end(self) -> None:
        if self._at != len(self._data):
            raise StoreError("a column segment has bytes after its end")


def _little(column: memoryview) -> bytes | memoryview:
    return column if sys.byteorder == "little" else _swapped(column).tobytes()


def native(part: memoryview, form: Form) -> memoryview:
    """Little-endian numbers where they stand."""
    return part.cast(form) if sys.byteorder == "little" else _swapped(part.cast(form))


def _swapped(column: memoryview) -> memoryview:
    swapped = array(column.format, column)
    swapped.byteswap()
    return memoryview(swapped)
