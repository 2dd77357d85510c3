"""Additions that are few, by this process alone: no session, no JVM.

Rule: the tables say what a job would have said. Records are judged, listed and summed by the very functions that tasks
run; what differs is who calls them. It is for archives on this machine, and for what is read sooner than a JVM starts.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as parquet_files

from lace.limits import JudgingLimits
from lace.notation.tai import TAI
from lace.spark.archive import tables
from lace.spark.archive.filesystem import Files
from lace.spark.archive.log import DataFile, Input, State
from lace.spark.files import RawRecord, pieces, read_piece
from lace.spark.jobs.validate import judge_batch
from lace.spark.judging import batches
from lace.spark.rows import raw_batch
from lace.spark.schemas import JUDGED, RAW, arrow_schema

if TYPE_CHECKING:
    from lace.spark.archive.archive import FewLimits

_SPLIT_BYTES = 1 << 40  # one piece a file
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# Which way


def can_add(limits: FewLimits, files: Files, state: State, inputs: Iterable[Input]) -> bool:
    """Whether an addition is small enough to be made here."""
    known = state.rows("records") + state.rows("quarantine")
    size = sum(given.size for given in inputs)
    return files.folder is not None and size <= limits.bytes and known <= limits.looked_through


# Adding


def read_inputs(inputs: Iterable[Input]) -> list[RawRecord]:
    """Every record of some files as it stands there."""
    paths = sorted(Path(given.address) for given in inputs)
    return [raw for path in paths for piece in pieces(path, _SPLIT_BYTES) for raw in read_piece(piece)]


def added(files: Files, state: State, found: Sequence[RawRecord], batch: str, limits: JudgingLimits) -> list[DataFile]:
    """Write the records that are not here yet, what is none, and where they stand; the files."""
    fresh = _first_copies(found, _known(files, state, found))
    if not fresh:
        return []
    raw, verdicts = arrow_schema(RAW), arrow_schema(JUDGED)
    judged = pa.Table.from_batches(
        [judge_batch(raw_batch(group, raw), verdicts, limits, keep_bytes=True) for group in batches(fresh, limits)]
    )
    judged = judged.append_column("batch", pa.array([batch] * len(judged), pa.string()))
    judged = judged.append_column("ts", pa.array(map(_timestamp, judged["tai"].to_pylist()), _TIMESTAMP))
    judged = judged.set_column(
        judged.schema.get_field_index("headers"), "headers", _header_maps(judged["headers"].to_pylist())
    )
    bad = judged.filter(pc.is_valid(judged["rule"]))
    good = judged.filter(pc.is_null(judged["rule"]))
    return [
        *write(files, "records", good),
        *write(files, "quarantine", bad),
        *write(files, "coordinates", _in_coordinate_order(good)),
    ]


def _first_copies(found: Sequence[RawRecord], known: set[str]) -> list[RawRecord]:
    """Each content once, the first place of it, unless it is known."""
    first: dict[str, RawRecord] = {}
    for raw in sorted(found, key=lambda raw: (raw.bundle, raw.offset)):
        first.setdefault(raw.content, raw)
    return [raw for content, raw in first.items() if content not in known]


def _known(files: Files, state: State, found: Sequence[RawRecord]) -> set[str]:
    """The contents among those found that are here: a copy of them claims the same hash, so files are passed over."""
    if not found:
        return set()
    claimed = sorted({raw.hash for raw in found if raw.hash is not None})
    held = [*tables.holding(state.table("records"), "hash", claimed), *state.table("quarantine")]
    rows = select(files, held, ["content"], pc.field("content").isin(sorted({raw.content for raw in found})))
    return set(rows["content"].to_pylist())


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
    files.publish(name, sink.getvalue().to_pybytes())
    return tables.by_footers(files.folder, table, files.listing(name.rpartition("/")[0]))


def select(files: Files, held: Iterable[DataFile], columns: Sequence[str], where: pc.Expression) -> pa.Table:
    """Some columns of the rows of some files for which something holds."""
    paths = [f"{files.folder}/{file.path}" for file in held]
    if not paths:
        return pa.table({name: pa.array([], pa.string()) for name in columns})
    return ds.dataset(paths, format="parquet").to_table(columns=list(columns), filter=where)
