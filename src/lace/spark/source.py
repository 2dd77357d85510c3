"""`spark.read.format("lace")`, `df.write.format("lace")`, `spark.readStream.format("lace")`.

Rule: what Spark users know of file sources holds here: modes, a corrupt-record column, pushed filters, exactly-once
streams. Record bytes are read from disk but enter a row only if the schema asks for them.

Options: `path` (file or directory; several separated by commas), `mode` PERMISSIVE | DROPMALFORMED | FAILFAST,
`validate` full | hash | none, `data` true for the Blob's bytes, `stored` true for the whole record, `splitBytes`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    EqualTo,
    Filter,
    In,
    InputPartition,
    IsNotNull,
    StringStartsWith,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from lace.errors import InvalidInput, InvalidRecord
from lace.records.model import ValidRecord
from lace.records.validate import validate
from lace.runtime.collector import seldom_collecting
from lace.spark.files import Piece, RawRecord, input_files, read_piece, shares
from lace.spark.judging import batches, judge
from lace.spark.rows import RECORD_COLUMNS, arrow_schema, record_arrays
from lace.spark.schemas import CONTENT, CORRUPT, DATA, ORIGIN, RAW, STORED, WIDE, WrongSchema
from lace.store.bundle import BundleWriter, index_path

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

FORMAT = "lace"
BUNDLE_SUFFIX = ".bundle"
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
CHECKS = ("full", "hash", "none")
_DEFAULT_SPLIT_BYTES = 64 << 20
_READ_COLUMNS = StructType([*WIDE.fields, DATA, STORED, CONTENT, *ORIGIN, CORRUPT])
_FRAME_FIELDS = [
    pa.field("stored", pa.binary()),
    pa.field("content", pa.string()),
    pa.field("bundle", pa.string()),
    pa.field("offset", pa.int64()),
    pa.field(CORRUPT.name, pa.string()),
]
_FRAME_TYPES = {field.name: field.type for field in _FRAME_FIELDS}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, checked."""

    paths: tuple[str, ...]
    mode: str
    check: str
    split_bytes: int
    columns: tuple[str, ...]

    @classmethod
    def parse(cls, options: Mapping[str, str], schema: StructType) -> ReadOptions:
        paths = tuple(path for path in options.get("path", options.get("paths", "")).split(",") if path)
        if not paths:
            raise InvalidInput("format lace needs a path: spark.read.format('lace').load(path)", rule="lace-path")
        columns = tuple(field.name for field in schema.fields)
        _check_schema(schema)
        return cls(
            paths,
            _choice(options, "mode", MODES, str.upper),
            _choice(options, "validate", CHECKS, str.lower),
            int(options.get("splitbytes", options.get("splitBytes", str(_DEFAULT_SPLIT_BYTES)))),
            columns,
        )


def _choice(options: Mapping[str, str], name: str, allowed: Sequence[str], fold: Any) -> str:
    chosen: str = fold(options.get(name, allowed[0]))
    if chosen not in allowed:
        raise InvalidInput(f"option {name} is one of {', '.join(allowed)}", rule=f"lace-{name}", found=chosen)
    return chosen


def _check_schema(schema: StructType) -> None:
    known = {field.name: field.dataType.simpleString() for field in _READ_COLUMNS.fields}
    for field in schema.fields:
        if known.get(field.name) != field.dataType.simpleString():
            wanted = known.get(field.name, "no column of this format")
            raise WrongSchema(f"column {field.name} is {wanted}", rule="schema", found=field.dataType.simpleString())


class LaceDataSource(DataSource):
    """Records in bundles, directories of bundles and stores."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Every field of a record; its bytes only if asked for, the reason for a bad one where rows may be bad."""
        asked = [field for field in (DATA, STORED) if self.options.get(field.name, "false").lower() == "true"]
        permissive = self.options.get("mode", MODES[0]).upper() == MODES[0]
        return StructType([*WIDE.fields, *asked, *([CORRUPT] if permissive else [])])

    def reader(self, schema: StructType) -> DataSourceReader:
        return LaceReader(ReadOptions.parse(self.options, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return LaceStreamReader(ReadOptions.parse(self.options, schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        return LaceWriter(self.options.get("path", ""), schema, overwrite)


@dataclass
class _PiecePartition(InputPartition):
    """One task's share."""

    share: list[Piece]


class LaceReader(DataSourceReader):
    """Reads pieces; filters on plain fields are answered before a row is built."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.wanted: list[tuple[str, str, Any]] = []  # column, test, value

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take equality, membership and prefix tests on text fields; Spark keeps the others."""
        bad_rows_matter = self.options.mode == MODES[0]
        for item in filters:
            test = _pushed(item)
            if test is None or (bad_rows_matter and test[1] == "is"):
                yield item
            else:
                self.wanted.append(test)

    def partitions(self) -> Sequence[InputPartition]:
        files = input_files(Path(path) for path in self.options.paths)
        return [_PiecePartition(share) for share in shares(files, self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _PiecePartition)
        return read_batches(partition.share, self.options, self.wanted)


_PUSHED_COLUMNS = frozenset(("hash", "type", "group", "app", "name", "tai", "signed_by", "blob_hash", "plex_hash"))


def _pushed(item: Filter) -> tuple[str, str, Any] | None:
    match item:
        case EqualTo(attribute=(column,), value=value) if column in _PUSHED_COLUMNS:
            return column, "in", frozenset([value])
        case In(attribute=(column,), value=values) if column in _PUSHED_COLUMNS:
            return column, "in", frozenset(values)
        case StringStartsWith(attribute=(column,), value=value) if column in _PUSHED_COLUMNS:
            return column, "starts", value
        case IsNotNull(attribute=(column,)) if column in _PUSHED_COLUMNS:
            return column, "is", None
        case _:
            return None


_Judged = tuple[RawRecord, ValidRecord | None, str | None]  # as found, the record, why it is none


def read_batches(
    parts: Iterable[Piece], options: ReadOptions, wanted: list[tuple[str, str, Any]]
) -> Iterator[pa.RecordBatch]:
    """Rows of pieces, in Arrow batches of the asked columns."""
    schema = arrow_schema(options.columns, _FRAME_FIELDS)
    for batch in batches(raw for piece in parts for raw in read_piece(piece)):
        with seldom_collecting():
            found = _read_batch(batch, options, wanted, schema)
        if found.num_rows:
            yield found


def _read_batch(
    batch: list[RawRecord], options: ReadOptions, wanted: list[tuple[str, str, Any]], schema: pa.Schema
) -> pa.RecordBatch:
    rows = _judged(batch, options.check)
    if options.mode == "FAILFAST":
        _fail_on_bad(rows)
    kept = _passing([row for row in rows if row[2] is None or options.mode == MODES[0]], wanted)
    columns = _columns(kept, schema.names)
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _judged(batch: list[RawRecord], check: str) -> list[_Judged]:
    """The records and why some are none; with `none` nothing is judged, and only what the frames claim is known."""
    if check == "none":
        return [(raw, None, None if raw.rule is None else f"{raw.rule}: {raw.reason}") for raw in batch]
    verdicts = judge(((raw.stored, raw.rule, raw.reason) for raw in batch), verify_signatures=check == "full")
    return [
        (raw, valid, None if rule is None else f"{rule}: {reason}")
        for raw, (valid, rule, reason) in zip(batch, verdicts, strict=True)
    ]


def _fail_on_bad(rows: list[_Judged]) -> None:
    for raw, _, reason in rows:
        if reason is not None:
            raise InvalidRecord(reason, rule="failfast", place=f"{raw.bundle} byte {raw.offset}")


def _passing(rows: list[_Judged], wanted: list[tuple[str, str, Any]]) -> list[_Judged]:
    """The rows that the pushed filters let through, before any other column is built."""
    for column, test, value in wanted:
        values = _columns(rows, [column])[column].to_pylist()
        rows = [row for row, found in zip(rows, values, strict=True) if _lets_through(test, value, found)]
    return rows


def _lets_through(test: str, value: Any, found: str | None) -> bool:
    if found is None:
        return False
    return test == "is" or (found in value if test == "in" else found.startswith(value))


def _columns(rows: list[_Judged], names: Sequence[str]) -> dict[str, pa.Array]:
    records = [valid for _, valid, _ in rows]
    found = record_arrays(records, [name for name in names if name in RECORD_COLUMNS and name != "stored"])
    for name in names:
        match name:
            case "hash":  # a record that is none keeps what it claimed
                hashes = [raw.hash if valid is None else valid.hash for raw, valid, _ in rows]
                found[name] = pa.array(hashes, pa.string())
            case "type":
                types = [
                    (raw.hash or " ")[0].strip() or None if valid is None else valid.type for raw, valid, _ in rows
                ]
                found[name] = pa.array(types, pa.string())
            case CORRUPT.name:
                found[name] = pa.array([reason for _, _, reason in rows], pa.string())
            case "stored" | "content" | "bundle" | "offset":
                found[name] = pa.array([getattr(raw, name) for raw, _, _ in rows], _FRAME_TYPES[name])
    return found


class LaceStreamReader(DataSourceStreamReader):
    """Picks up new files; an offset names every file read so far, so that a restart reads none twice.

    Move finished bundles into the directory: a file is read once, as it is when it is first seen.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        files = input_files(Path(path) for path in self.options.paths)
        seen = {str(file): file.stat().st_size for file in files if str(file) not in start}
        return {**start, **seen}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        new = [Path(path) for path in sorted(path for path in end if path not in start)]
        return [_PiecePartition(share) for share in shares(new, self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _PiecePartition)
        return read_batches(partition.share, self.options, [])


@dataclass
class _Written(WriterCommitMessage):
    """A finished bundle under its temporary name; None for a task without rows."""

    temporary: str | None
    records: int


class LaceWriter(DataSourceArrowWriter):
    """Writes one bundle a task, under a hidden name until the whole job has succeeded."""

    def __init__(self, path: str, schema: StructType, overwrite: bool) -> None:
        if not path:
            raise InvalidInput("format lace needs a path: df.write.format('lace').save(path)", rule="lace-path")
        if "stored" not in schema.names:
            raise WrongSchema("a frame written as lace has a column stored", rule="schema", found=str(schema.names))
        self.directory = str(Path(path).absolute())  # tasks run in other folders
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        target = directory / f".part-{uuid.uuid4().hex}{BUNDLE_SUFFIX}"
        records = 0
        with BundleWriter(target) as bundle:
            for batch in iterator:
                for stored in batch["stored"].to_pylist():
                    bundle.write(validate(stored, verify_signature=False).stored)  # what is no record is not written
                    records += 1
        if not records:
            _remove(target)
        return _Written(str(target) if records else None, records)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        if self.overwrite:
            for old in directory.glob(f"part-*{BUNDLE_SUFFIX}"):
                _remove(old)
        for message in messages:
            if isinstance(message, _Written) and message.temporary is not None:
                _publish(Path(message.temporary))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, _Written) and message.temporary is not None:
                _remove(Path(message.temporary))


def _publish(hidden: Path) -> None:
    """Give a bundle and its index their names; the index first, so that no reader sees a bundle without one."""
    shown = hidden.with_name(hidden.name[1:])
    index_path(hidden).rename(index_path(shown))
    hidden.rename(shown)


def _remove(bundle: Path) -> None:
    bundle.unlink(missing_ok=True)
    index_path(bundle).unlink(missing_ok=True)


def register(spark: SparkSession) -> SparkSession:
    """Make the format `lace` known to a session, whoever made it."""
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")  # else Spark refuses a reader that takes filters
    spark.dataSource.register(LaceDataSource)
    return spark


def raw_records(
    spark: SparkSession,
    paths: Sequence[Path],
    split_bytes: int = _DEFAULT_SPLIT_BYTES,
    columns: Sequence[str] = tuple(RAW.names),
) -> DataFrame:
    """Every stored record of some files with its bytes, not yet judged; damage keeps its reason."""
    parts = shares(input_files(paths), split_bytes)
    one_row_a_task = spark.range(0, len(parts), 1, max(1, len(parts)))
    schema = StructType([RAW[name] for name in columns])
    return one_row_a_task.mapInArrow(partial(_read_raw, parts, tuple(columns)), schema)


def _read_raw(
    parts: list[list[Piece]], columns: tuple[str, ...], tasks: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(columns, [*_FRAME_FIELDS, pa.field("rule", pa.string()), pa.field("reason", pa.string())])
    chosen = (piece for batch in tasks for task in batch["id"].to_pylist() for piece in parts[task])
    for group in batches(raw for piece in chosen for raw in read_piece(piece)):
        arrays = [pa.array([getattr(raw, f.name) for raw in group], f.type) for f in schema]
        yield pa.record_batch(arrays, schema=schema)
