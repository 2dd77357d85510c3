"""Valid records as rows of the wide table, in Arrow batches.

Rule: only the columns that were asked for are built; a record's data is never copied for a reader who does not want it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from lace.facts.derive import field_occurrences, link_occurrences
from lace.records.model import ValidRecord

# What a reader of a bundle may ask for, by column: its Arrow type and how a record gives it.
_HEADERS = pa.list_(pa.field("element", pa.struct([
    pa.field("name", pa.string(), False), pa.field("index", pa.int32(), False), pa.field("value", pa.string(), False),
]), False))  # fmt: skip
_LINKS = pa.list_(pa.field("element", pa.struct([
    pa.field("name", pa.string(), False), pa.field("index", pa.int32(), False),
    pa.field("data", pa.string(), False), pa.field("target", pa.string(), False),
]), False))  # fmt: skip
_SINGLETON_FIELDS = {"B": 2, "P": 6, "S": 8}  # how many of a record's fields are no extra headers


def _headers(valid: ValidRecord) -> list[dict[str, object]]:
    extra = field_occurrences(valid)[_SINGLETON_FIELDS[valid.type] :]
    return [{"name": name, "index": index, "value": value} for name, index, value in extra]


def _links(valid: ValidRecord) -> list[dict[str, object]]:
    if not valid.parts.headers:
        return []
    links = link_occurrences(field_occurrences(valid))
    return [{"name": n, "index": i, "data": d, "target": t} for n, i, d, t in links]


_COLUMNS: dict[str, tuple[pa.DataType, Callable[[ValidRecord], Any]]] = {
    "hash": (pa.string(), lambda valid: str(valid.hash)),
    "type": (pa.string(), lambda valid: valid.type),
    "group": (pa.string(), lambda valid: valid.parts.group or None),
    "app": (pa.string(), lambda valid: valid.parts.app or None),
    "name": (pa.string(), lambda valid: valid.parts.name or None),
    "tai": (pa.string(), lambda valid: valid.parts.tai or None),
    "signed_by": (pa.string(), lambda valid: valid.parts.signed_by or None),
    "signature": (pa.string(), lambda valid: valid.parts.signature or None),
    "blob_hash": (pa.string(), lambda valid: valid.parts.blob_hash if valid.type != "B" else None),
    "plex_hash": (pa.string(), lambda valid: valid.parts.plex_hash if valid.type == "S" else None),
    "data_length": (pa.int64(), lambda valid: valid.data_length),
    "headers": (_HEADERS, _headers),
    "links": (_LINKS, _links),
    "data": (pa.binary(), lambda valid: bytes(valid.data)),
    "stored": (pa.binary(), lambda valid: valid.stored),
}
RECORD_COLUMNS = tuple(_COLUMNS)


def arrow_schema(columns: Iterable[str], extra: Iterable[pa.Field] = ()) -> pa.Schema:
    """The Arrow schema of some record columns and others that the caller fills."""
    others = {field.name: field for field in extra}
    return pa.schema([others.get(name) or pa.field(name, _COLUMNS[name][0]) for name in columns])


def column_values(records: Sequence[ValidRecord | None], column: str) -> list[Any]:
    """One column of the wide table; a record that is none gives nulls."""
    read = _COLUMNS[column][1]
    return [None if valid is None else read(valid) for valid in records]


def chunks(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of at most `size` items."""
    batch: list[Any] = []
    for item in items:
        batch.append(item)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch
