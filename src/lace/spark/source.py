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
from lace.spark.files import Piece, RawRecord, input_files, pieces, read_piece
from lace.spark.rows import arrow_schema, chunks, column_values
from lace.spark.schemas import CONTENT, CORRUPT, DATA, ORIGIN, RAW, STORED, WIDE, WrongSchema
from lace.store.bundle import BundleWriter, index_path

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

FORMAT = "lace"
BUNDLE_SUFFIX = ".bundle"
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
CHECKS = ("full", "hash", "none")
_DEFAULT_SPLIT_BYTES = 64 << 20
_ROWS_PER_BATCH = 2048
_READ_COLUMNS = StructType([*WIDE.fields, DATA, STORED, CONTENT, *ORIGIN, CORRUPT])
_FRAME_FIELDS = [
    pa.field("stored", pa.binary()),
    pa.field("content", pa.string()),
    pa.field("bundle", pa.string()),
    pa.field("offset", pa.int64()),
    pa.field(CORRUPT.name, pa.string()),
]


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

    piece: Piece


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
        return [_PiecePartition(piece) for file in files for piece in pieces(file, self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _PiecePartition)
        return read_batches([partition.piece], self.options, self.wanted)


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


def _passes(valid: ValidRecord | None, wanted: list[tuple[str, str, Any]]) -> bool:
    for column, test, value in wanted:
        found = column_values([valid], column)[0]
        if found is None or (test == "in" and found not in value) or (test == "starts" and not found.startswith(value)):
            return False
    return True


def read_batches(
    parts: Iterable[Piece], options: ReadOptions, wanted: list[tuple[str, str, Any]]
) -> Iterator[pa.RecordBatch]:
    """Rows of pieces, in Arrow batches of the asked columns."""
    schema = arrow_schema(options.columns, _FRAME_FIELDS)
    for batch in chunks((raw for piece in parts for raw in read_piece(piece)), _ROWS_PER_BATCH):
        rows = [(raw, *_judged(raw, options.check)) for raw in batch]
        if options.mode == "FAILFAST":
            _fail_on_bad(rows)
        kept = [row for row in rows if (row[2] is None or options.mode == MODES[0]) and _passes(row[1], wanted)]
        if kept:
            yield pa.record_batch([pa.array(_column(kept, f.name), f.type) for f in schema], schema=schema)


_Judged = tuple[RawRecord, ValidRecord | None, str | None]


def _judged(raw: RawRecord, check: str) -> tuple[ValidRecord | None, str | None]:
    """The record and why it is none; with `none` nothing is judged, and only what the frame claims is known."""
    if raw.rule is not None:
        return None, f"{raw.rule}: {raw.reason}"
    if check == "none":
        return None, None
    try:
        return validate(raw.stored, verify_signature=check == "full"), None
    except InvalidInput as error:
        return None, f"{error.rule}: {error}"


def _fail_on_bad(rows: list[_Judged]) -> None:
    for raw, _, reason in rows:
        if reason is not None:
            raise InvalidRecord(reason, rule="failfast", place=f"{raw.bundle} byte {raw.offset}")


def _column(rows: list[_Judged], name: str) -> list[Any]:
    match name:
        case "hash":
            return [raw.hash if valid is None else str(valid.hash) for raw, valid, _ in rows]
        case "type":
            return [valid.type if valid is not None else (raw.hash or " ")[0].strip() or None for raw, valid, _ in rows]
        case "stored" | "content" | "bundle" | "offset":
            return [getattr(raw, name) for raw, _, _ in rows]
        case CORRUPT.name:
            return [reason for _, _, reason in rows]
        case _:
            return column_values([valid for _, valid, _ in rows], name)


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
        new = sorted(path for path in end if path not in start)
        return [_PiecePartition(piece) for path in new for piece in pieces(Path(path), self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _PiecePartition)
        return read_batches([partition.piece], self.options, [])


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
        self.directory = path
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
    """Make the format `lace` known to a session."""
    spark.dataSource.register(LaceDataSource)
    return spark


def raw_records(spark: SparkSession, paths: Sequence[Path], split_bytes: int = _DEFAULT_SPLIT_BYTES) -> DataFrame:
    """Every stored record of some files with its bytes, not yet judged; damage keeps its reason."""
    parts = [piece for path in input_files(paths) for piece in pieces(path, split_bytes)]
    slices = spark.createDataFrame([(p.path, p.start, p.end) for p in parts], "path string, start long, end long")
    return slices.repartition(max(1, len(parts))).mapInArrow(_read_raw, RAW)


def _read_raw(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(RAW.names, [*_FRAME_FIELDS, pa.field("rule", pa.string()), pa.field("reason", pa.string())])
    for batch in batches:
        for row in batch.to_pylist():
            raws = read_piece(Piece(row["path"], row["start"], row["end"]))
            for group in chunks(raws, _ROWS_PER_BATCH):
                columns = [pa.array([getattr(raw, f.name) for raw in group], f.type) for f in schema]
                yield pa.record_batch(columns, schema=schema)
