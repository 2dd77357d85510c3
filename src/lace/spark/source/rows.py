"""Valid records as rows of the wide table, in Arrow columns.

Rule: only the columns that were asked for are built; a record's data is never copied for a reader who does not want it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import StructType

from lace.facts.derive import FieldOccurrence, LinkOccurrence, extra_occurrences, link_occurrences
from lace.records.model import Parts, ValidRecord
from lace.spark.source.schemas import DATA, STORED, WIDE, arrow_schema

if TYPE_CHECKING:
    from lace.spark.source.files import RawRecord

_TEXT = pa.string()
# What a reader of a bundle may ask for: the columns of records and their Arrow types.
_TYPES: dict[str, pa.DataType] = {field.name: field.type for field in arrow_schema(StructType([*WIDE, DATA, STORED]))}
RECORD_COLUMNS = tuple(_TYPES)
_NO_PARTS = Parts("", "", "", "", "", (), "", "", b"", "", "", 0)
_Records = Sequence[ValidRecord | None]


def raw_batch(found: Sequence[RawRecord], schema: pa.Schema) -> pa.RecordBatch:
    """Records as they were found, before anybody judged them."""
    arrays = [pa.array([getattr(raw, field.name) for raw in found], field.type) for field in schema]
    return pa.record_batch(arrays, schema=schema)


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
    return _list_array([extra_occurrences(found) for found in _all_headers(texts)], _TYPES["headers"], records)


def _links(records: _Records, texts: _Columns) -> pa.Array:
    links = [link_occurrences(extra_occurrences(found)) if found else [] for found in _all_headers(texts)]
    return _list_array(links, _TYPES["links"], records)


def _all_headers(texts: _Columns) -> Iterator[tuple[tuple[str, str], ...]]:
    for found in texts["headers"]:
        assert isinstance(found, tuple)
        yield found


def _list_array(
    items: Sequence[list[FieldOccurrence]] | Sequence[list[LinkOccurrence]], kind: pa.ListType, records: _Records
) -> pa.Array:
    """One list of structs for each record, put together from flat columns."""
    fields = list(kind.value_type)
    flat = list(chain.from_iterable(items))
    columns = zip(*flat, strict=True) if flat else ((),) * len(fields)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    ends = accumulate(map(len, items), initial=0)
    if None in records:  # a null offset makes a null list; what follows begins where the one before ended
        absent = [*(valid is None for valid in records), False]
        offsets = pa.array([None if gone else end for end, gone in zip(ends, absent, strict=True)], pa.int32())
    else:
        offsets = pa.array(ends, pa.int32())
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(arrays, fields=fields), type=kind)


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
