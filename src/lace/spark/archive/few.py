"""Additions that are few, by this process alone: no session, no JVM.

Rule: the tables say what a job would have said. Records are judged, listed and summed by the very functions that tasks
run; what differs is who calls them. It is for archives on this machine, and for what is read sooner than a JVM starts.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as parquet_files

from lace.limits import JudgingLimits
from lace.notation.tai import TAI
from lace.spark.archive import tables
from lace.spark.archive.filesystem import Files
from lace.spark.archive.log import DataFile, Input, State
from lace.spark.jobs.validate import judge_batch
from lace.spark.source.files import RawRecord, pieces, read_piece
from lace.spark.source.judging import batches
from lace.spark.source.rows import raw_batch
from lace.spark.source.schemas import JUDGED, RAW, arrow_schema
from lace.workers.collector import seldom_collecting

if TYPE_CHECKING:
    from lace.spark.archive.archive import FewLimits

_ROWS_AT_ONCE = 1 << 14  # what a group of rows is worth an evaluation for
_SPLIT_BYTES = 1 << 40  # one piece a file
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# Which way


def can_add(limits: FewLimits, files: Files, state: State, inputs: Iterable[Input]) -> bool:
    """Whether an addition is small enough to be made here."""
    known = state.rows("records") + state.rows("quarantine")
    size = sum(given.size for given in inputs)
    return files.folder is not None and size <= limits.bytes and known <= limits.looked_through


# Adding


def read_inputs(inputs: Iterable[Input]) -> Iterator[RawRecord]:
    """Every record of some files as it stands there, in the order of places that jobs know."""
    paths = map(Path, sorted(given.address for given in inputs))
    return (raw for path in paths for piece in pieces(path, _SPLIT_BYTES) for raw in read_piece(piece))


class Addition(NamedTuple):
    """What was read, and the files that it became."""

    read: int
    files: list[DataFile]


def added(files: Files, state: State, found: Iterable[RawRecord], batch: str, limits: JudgingLimits) -> Addition:
    """Write the records that are not here yet, what is none, and where they stand; `found` is in the order of places.

    Between reading and writing they are columns: as values of Python they would take ten times the room, so these
    exist for one group at a time.
    """
    raw = deque(raw_batch(group, _RAW) for group in batches(found, limits))
    read = sum(len(rows) for rows in raw)
    first = deque(_are_first(raw, _known(files, state, raw)))
    kept: dict[str, list[pa.RecordBatch]] = {"records": [], "quarantine": []}
    for judged in _judged(raw, first, batch, limits):
        is_good = pc.is_null(judged["rule"])
        for table, chosen in (("records", is_good), ("quarantine", pc.invert(is_good))):
            kept[table].append(judged.filter(chosen).select(tables.SCHEMAS[table].names))
    made = write(files, "quarantine", _whole("quarantine", kept.pop("quarantine")))
    good = _whole("records", kept.pop("records"))
    made += write(files, "records", good)
    narrow = good.select(tables.SCHEMAS["coordinates"].names)
    del good  # the bytes are written
    return Addition(read, made + write(files, "coordinates", _in_coordinate_order(narrow)))


def _whole(table: str, parts: Sequence[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(parts) if parts else arrow_schema(tables.SCHEMAS[table]).empty_table()


def _judged(
    raw: deque[pa.RecordBatch], wanted: deque[pa.BooleanArray], batch: str, limits: JudgingLimits
) -> Iterator[pa.RecordBatch]:
    """The wanted rows with their verdicts and all else that tables say of them; what was judged is let go of."""
    while raw:
        rows = raw.popleft().filter(wanted.popleft())
        if len(rows):
            with seldom_collecting():
                judged = judge_batch(rows, _JUDGED, limits, keep_bytes=True)
                headers = _header_maps(judged["headers"].to_pylist())
                ts = pa.array(map(_timestamp, judged["tai"].to_pylist()), _TIMESTAMP)
            judged = judged.set_column(judged.schema.get_field_index("headers"), "headers", headers)
            judged = judged.append_column("ts", ts)
            yield judged.append_column("batch", pa.repeat(pa.scalar(batch), len(judged)))


def _are_first(raw: Iterable[pa.RecordBatch], known: set[str]) -> Iterator[pa.BooleanArray]:
    """Of each row whether its content is neither known nor in a row before it."""
    seen = set(known)
    for rows in raw:
        fresh = []
        for content in rows["content"].to_pylist():
            fresh.append(content not in seen)
            seen.add(content)
        yield pa.array(fresh, pa.bool_())


def _known(files: Files, state: State, raw: Sequence[pa.RecordBatch]) -> set[str]:
    """The contents among those found that are here: a copy of them claims the same hash, so files are passed over."""
    if not raw or not (state.table("records") or state.table("quarantine")):
        return set()
    claimed = sorted({text for rows in raw for text in rows["hash"].to_pylist() if text is not None})
    contents = pa.concat_arrays([rows["content"] for rows in raw])
    held = [*tables.holding(state.table("records"), "hash", claimed), *state.table("quarantine")]
    return set(select(files, held, ["content"], pc.field("content").isin(contents))["content"].to_pylist())


_RAW, _JUDGED = arrow_schema(RAW), arrow_schema(JUDGED)
_TIMESTAMP = arrow_schema(tables.SCHEMAS["records"]).field("ts").type
_HEADERS = arrow_schema(tables.SCHEMAS["records"]).field("headers").type


def _timestamp(tai: str | None) -> datetime | None:
    return None if tai is None else _EPOCH + timedelta(microseconds=TAI(tai).to_unix_ns() // 1000)


def _header_maps(headers: Iterable[list[dict[str, Any]] | None]) -> pa.Array:
    """What `tables.header_map` makes: name to values, both in the order in which they stand."""
    return pa.array([None if found is None else list(_by_name(found).items()) for found in headers], _HEADERS)


def _by_name(headers: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for header in headers:
        found.setdefault(header["name"], []).append(header["value"])
    return found


def _in_coordinate_order(records: pa.Table) -> pa.Table:
    months = records.append_column("month", pc.floor_temporal(records["ts"], unit="month"))
    keys = [(name, "ascending", "at_start") for name in tables.ORDERS["coordinates"]]
    return months.take(pc.sort_indices(months, sort_keys=keys))


# Files


def write(files: Files, table: str, rows: pa.Table) -> list[DataFile]:
    """Rows as one new file of a table; none for no rows."""
    if not len(rows) or files.folder is None:
        return []
    schema = arrow_schema(tables.SCHEMAS[table])
    sink = pa.BufferOutputStream()
    parquet_files.write_table(rows.select(schema.names).cast(schema), sink)
    name = f"data/{table}/{uuid.uuid4().hex}/part-00000.parquet"
    files.publish(name, memoryview(sink.getvalue()))
    return tables.by_footers(files.folder, table, files.listing(name.rpartition("/")[0]))


def select(
    files: Files, held: Iterable[DataFile], columns: Sequence[str], where: pc.Expression | None = None
) -> pa.Table:
    """Some columns of the rows of some files of one table for which something holds."""
    paths = [f"{files.folder}/{file.path}" for file in held]
    if not paths:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return ds.dataset(paths, format="parquet").to_table(columns=list(columns), filter=where)


def scan(files: Files, held: DataFile, columns: Sequence[str], limits: JudgingLimits) -> Iterator[pa.RecordBatch]:
    """Some columns of a file, so many rows at a time that they can be held, though records may be large."""
    source = parquet_files.ParquetFile(f"{files.folder}/{held.path}")
    for at in range(source.num_row_groups):
        group = source.metadata.row_group(at)
        rows = limits.bytes_at_once * group.num_rows // max(1, group.total_byte_size)
        yield from source.iter_batches(max(1, min(_ROWS_AT_ONCE, rows)), [at], list(columns))


def schema_of(table: str, columns: Sequence[str]) -> pa.Schema:
    """Some columns of a table."""
    whole = arrow_schema(tables.SCHEMAS[table])
    return pa.schema([whole.field(name) for name in columns])
