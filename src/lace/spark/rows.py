"""Valid records as rows of the wide table, in Arrow columns.

Rule: only the columns that were asked for are built; a record's data is never copied for a reader who does not want it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain

import pyarrow as pa

from lace.facts.derive import FieldOccurrence, LinkOccurrence, extra_occurrences, link_occurrences
from lace.records.model import Parts, ValidRecord

_TEXT, _INDEX = pa.string(), pa.int32()
_HEADER_FIELDS = [pa.field("name", _TEXT, False), pa.field("index", _INDEX, False), pa.field("value", _TEXT, False)]
_LINK_FIELDS = [*_HEADER_FIELDS[:2], pa.field("data", _TEXT, False), pa.field("target", _TEXT, False)]


def _items(fields: list[pa.Field]) -> pa.DataType:
    return pa.list_(pa.field("element", pa.struct(fields), False))


# What a reader of a bundle may ask for: the columns of records and their Arrow types.
_TYPES: dict[str, pa.DataType] = {
    "hash": _TEXT, "type": _TEXT, "group": _TEXT, "app": _TEXT, "name": _TEXT, "tai": _TEXT,
    "signed_by": _TEXT, "signature": _TEXT, "blob_hash": _TEXT, "plex_hash": _TEXT, "data_length": pa.int64(),
    "headers": _items(_HEADER_FIELDS), "links": _items(_LINK_FIELDS), "data": pa.binary(), "stored": pa.binary(),
}  # fmt: skip
RECORD_COLUMNS = tuple(_TYPES)
_NO_PARTS = Parts("", "", "", "", "", (), "", "", b"", "", "", 0)
_Records = Sequence[ValidRecord | None]


def arrow_schema(columns: Iterable[str], extra: Iterable[pa.Field] = ()) -> pa.Schema:
    """The Arrow schema of some record columns and others that the caller fills."""
    others = {field.name: field for field in extra}
    return pa.schema([others.get(name) or pa.field(name, _TYPES[name]) for name in columns])


def record_arrays(records: _Records, columns: Iterable[str]) -> dict[str, pa.Array]:
    """Some columns of the wide table; a record that is none gives nulls.

    Records are turned into columns by one `zip`, which costs a fraction of asking each record for each field.
    """
    if not records:
        return {name: pa.array([], _TYPES[name]) for name in columns}
    parts = [_NO_PARTS if valid is None else valid.parts for valid in records]
    texts = dict(zip(Parts._fields, zip(*parts, strict=True), strict=True))
    return {name: _READERS[name](records, texts) if name in _READERS else _texts(texts[name]) for name in columns}


def _texts(values: Iterable[str]) -> pa.Array:
    """Texts; a record has no empty one, so an empty text stands for a field that this type of record lacks."""
    column = tuple(values)
    return pa.array([text or None for text in column] if "" in column else column, _TEXT)


_Columns = dict[str, tuple[object, ...]]


def _types(records: _Records, texts: _Columns) -> pa.Array:
    return _texts("" if valid is None else valid.type for valid in records)


def _blob_hashes(records: _Records, texts: _Columns) -> pa.Array:
    named = zip(records, texts["blob_hash"], strict=True)
    return pa.array([text if valid is not None and valid.type != "B" else None for valid, text in named], _TEXT)


def _plex_hashes(records: _Records, texts: _Columns) -> pa.Array:
    signed = zip(texts["plex_hash"], texts["signature"], strict=True)
    return pa.array([text if signature else None for text, signature in signed], _TEXT)


def _data_lengths(records: _Records, texts: _Columns) -> pa.Array:
    return pa.array([None if valid is None else valid.data_length for valid in records], pa.int64())


def _headers(records: _Records, texts: _Columns) -> pa.Array:
    return _list_array([extra_occurrences(found) for found in _all_headers(texts)], _HEADER_FIELDS, records)


def _links(records: _Records, texts: _Columns) -> pa.Array:
    links = [link_occurrences(extra_occurrences(found)) if found else [] for found in _all_headers(texts)]
    return _list_array(links, _LINK_FIELDS, records)


def _all_headers(texts: _Columns) -> Iterator[tuple[tuple[str, str], ...]]:
    for found in texts["headers"]:
        assert isinstance(found, tuple)
        yield found


def _list_array(
    items: Sequence[list[FieldOccurrence]] | Sequence[list[LinkOccurrence]], fields: list[pa.Field], records: _Records
) -> pa.Array:
    """One list of structs for each record, put together from flat columns."""
    flat = list(chain.from_iterable(items))
    columns = zip(*flat, strict=True) if flat else ((),) * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    ends = accumulate(map(len, items), initial=0)
    if None in records:  # a null offset makes a null list; what follows begins where the one before ended
        absent = [*(valid is None for valid in records), False]
        offsets = pa.array([None if gone else end for end, gone in zip(ends, absent, strict=True)], pa.int32())
    else:
        offsets = pa.array(ends, pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(arrays, fields=fields), type=_items(fields))


def _data(records: _Records, texts: _Columns) -> pa.Array:
    return pa.array([None if valid is None else bytes(valid.data) for valid in records], pa.binary())


def _stored(records: _Records, texts: _Columns) -> pa.Array:
    return pa.array([None if valid is None else valid.stored for valid in records], pa.binary())


_READERS: dict[str, Callable[[_Records, _Columns], pa.Array]] = {
    "type": _types,
    "blob_hash": _blob_hashes,
    "plex_hash": _plex_hashes,
    "data_length": _data_lengths,
    "headers": _headers,
    "links": _links,
    "data": _data,
    "stored": _stored,
}
