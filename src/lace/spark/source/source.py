"""`spark.read.format("lace")`, `df.write.format("lace")`, `spark.readStream.format("lace")`.

Rule: what Spark users know of file sources holds here: modes, a corrupt-record column, exactly-once streams. Record
bytes are read from disk but enter a row only if the schema asks for them.

No filter is taken from Spark: Spark 4.3 keeps a pushed filter with the frame's relation, so a second query over the
same frame would lose rows that only the first one did not want. Spark filters what we hand it.

Options: `path` (file or directory; several separated by commas), `mode` PERMISSIVE | DROPMALFORMED | FAILFAST,
`validate` full | hash | none, `data` true for the Blob's bytes, `stored` true for the whole record, `splitBytes`;
for streams `rows` records | files (a row for each new file, which is not opened), `maxFilesPerTrigger`,
`maxBytesPerTrigger`, and as with Spark's own files `cleanSource` off | archive | delete with `sourceArchiveDir`: what
becomes of a file whose records were taken.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    CaseInsensitiveDict,
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.types import StructField, StructType
from pyspark.sql.utils import is_remote

from lace.errors import InvalidInput, InvalidRecord
from lace.limits import JudgingLimits
from lace.records.model import ValidRecord
from lace.spark.archive.reading import ArchiveReader, table_schema
from lace.spark.source.files import FileRange, RawRecord, input_files, read_piece, shares
from lace.spark.source.judging import batches, judge
from lace.spark.source.places import Place, local_path
from lace.spark.source.rows import RECORD_COLUMNS, raw_batch, record_arrays
from lace.spark.source.schemas import (
    COMMENTS,
    CONTENT,
    CORRUPT,
    DATA,
    ORIGIN,
    RAW,
    STORED,
    WIDE,
    WrongSchema,
    arrow_schema,
)
from lace.spark.source.writer import LaceWriter
from lace.values import dataclass
from lace.workers.collector import seldom_collecting

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

FORMAT = "lace"
MODES = ("PERMISSIVE", "DROPMALFORMED", "FAILFAST")
CHECKS = ("full", "hash", "none")
ROWS = ("records", "files")
CLEANING = ("off", "archive", "delete")
_DEFAULT_SPLIT_BYTES = 64 << 20
_READ_COLUMNS = StructType([*WIDE.fields, DATA, STORED, CONTENT, *ORIGIN, CORRUPT])
_TABLE_OPTIONS = "lace.options"
_FRAME_TYPES = {field.name: field.type for field in arrow_schema(StructType([STORED, CONTENT, *ORIGIN]))}


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a read, checked."""

    paths: tuple[str, ...]
    mode: str
    check: str
    split_bytes: int
    columns: tuple[str, ...]
    max_files: int | None = None  # a micro-batch
    max_bytes: int | None = None
    cleaning: str = CLEANING[0]
    done_folder: str = ""
    by_files: bool = False
    limits: JudgingLimits = field(default_factory=JudgingLimits)

    @classmethod
    def parse(cls, options: Mapping[str, str], schema: StructType) -> ReadOptions:
        paths = tuple(path for path in options.get("path", options.get("paths", "")).split(",") if path)
        if not paths:
            raise InvalidInput("format lace needs a path: spark.read.format('lace').load(path)", rule="lace-path")
        columns = tuple(field.name for field in schema.fields)
        _check_schema(schema)
        cleaning, done_folder = (
            _choice(options, "cleanSource", CLEANING, str.lower),
            options.get("sourceArchiveDir", ""),
        )
        if cleaning == "archive" and not done_folder:
            raise InvalidInput("cleanSource archive needs a sourceArchiveDir", rule="lace-cleansource")
        return cls(
            paths,
            _choice(options, "mode", MODES, str.upper),
            _choice(options, "validate", CHECKS, str.lower),
            _number(options, "splitBytes") or _DEFAULT_SPLIT_BYTES,
            columns,
            _number(options, "maxFilesPerTrigger"),
            _number(options, "maxBytesPerTrigger"),
            cleaning,
            str(local_path(done_folder).absolute()) if done_folder else "",
            _by_files(options, columns),
        )


def _by_files(options: Mapping[str, str], columns: Sequence[str]) -> bool:
    """Whether a row is wanted for each file instead of for each record; of a file only its name is known then."""
    chosen = _choice(options, "rows", ROWS, str.lower) == ROWS[1]
    if chosen and tuple(columns) != ("bundle",):
        raise InvalidInput("with rows=files the schema is `bundle string`", rule="lace-rows", found=", ".join(columns))
    return chosen


def _choice(options: Mapping[str, str], name: str, allowed: Sequence[str], fold: Any) -> str:
    chosen: str = fold(options.get(name, allowed[0]))
    if chosen not in allowed:
        raise InvalidInput(f"option {name} is one of {', '.join(allowed)}", rule=f"lace-{name.lower()}", found=chosen)
    return chosen


def _number(options: Mapping[str, str], name: str) -> int | None:
    text = options.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) == 0:
        raise InvalidInput(f"option {name} is a whole number above 0", rule=f"lace-{name.lower()}", found=text)
    return int(text)


def _remembered(schema: StructType) -> dict[str, str]:
    """The options of `CREATE TABLE … USING lace`, which Spark 4.3 shows to `schema()` and never again."""
    found = schema.fields[0].metadata.get(_TABLE_OPTIONS, {}) if schema.fields else {}
    return dict(found)


def _check_schema(schema: StructType) -> None:
    known = {field.name: field.dataType.simpleString() for field in _READ_COLUMNS.fields}
    for asked in schema.fields:
        if known.get(asked.name) != asked.dataType.simpleString():
            wanted = known.get(asked.name, "no column of this format")
            raise WrongSchema(f"column {asked.name} is {wanted}", rule="schema", found=asked.dataType.simpleString())


class LaceDataSource(DataSource):
    """Records in bundles, directories of bundles and stores."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Every field of a record; its bytes only if asked for, the reason for a bad one where rows may be bad."""
        if "table" in self.options:
            return _remembering(table_schema(self.options), self.options)
        asked = [field for field in (DATA, STORED) if self.options.get(field.name, "false").lower() == "true"]
        permissive = self.options.get("mode", MODES[0]).upper() == MODES[0]
        fields = [*WIDE.fields, *asked, *([CORRUPT] if permissive else [])]
        noted = [StructField(f.name, f.dataType, f.nullable, {"comment": COMMENTS[f.name]}) for f in fields]
        return _remembering(StructType(noted), self.options)

    def reader(self, schema: StructType) -> DataSourceReader:
        given = CaseInsensitiveDict(_remembered(schema) | dict(self.options))
        if "table" in given:
            return ArchiveReader(given, schema)
        return LaceReader(ReadOptions.parse(given, schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        from lace.spark.source.stream import LaceStreamReader  # needs a newer PySpark than a worker of Sail has

        return LaceStreamReader(ReadOptions.parse(CaseInsensitiveDict(self.options), schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802 - Spark's name
        from lace.spark.source.stream import LaceStreamWriter

        if overwrite:
            raise InvalidInput("a stream of bundles is written in mode append", rule="lace-output-mode")
        return LaceStreamWriter(self.options.get("path", ""), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return LaceWriter(self.options.get("path", ""), schema, overwrite)


def _remembering(schema: StructType, options: Mapping[str, str]) -> StructType:
    """A schema whose first column remembers the options of a catalog table (see `_remembered`)."""
    if "provider" not in options:
        return schema
    first = schema.fields[0]
    noted = StructField(first.name, first.dataType, first.nullable, {**first.metadata, _TABLE_OPTIONS: dict(options)})
    return StructType([noted, *schema.fields[1:]])


@dataclass
class PiecePartition(InputPartition):
    """One task's share."""

    share: list[FileRange]


class LaceReader(DataSourceReader):
    """Reads pieces. It holds options only: whatever else it held would show in every query over the same frame."""

    def __init__(self, options: ReadOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        files = input_files(self.options.paths)
        return [PiecePartition(share) for share in shares(files, self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PiecePartition)
        return read_batches(partition.share, self.options)


_Judged = tuple[RawRecord, ValidRecord | None, str | None]  # as found, the record, why it is none


def read_batches(parts: Iterable[FileRange], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    """Rows of pieces, in Arrow batches of the asked columns."""
    schema = arrow_schema(StructType([_READ_COLUMNS[name] for name in options.columns]))
    for batch in batches((raw for piece in parts for raw in read_piece(piece)), options.limits):
        with seldom_collecting():
            found = _read_batch(batch, options, schema)
        if found.num_rows:
            yield found


def _read_batch(batch: list[RawRecord], options: ReadOptions, schema: pa.Schema) -> pa.RecordBatch:
    rows = _judged(batch, options.check, options.limits)
    if options.mode == "FAILFAST":
        _fail_on_bad(rows)
    columns = _columns([row for row in rows if row[2] is None or options.mode == MODES[0]], schema.names)
    return pa.record_batch([columns[name] for name in schema.names], schema=schema)


def _judged(batch: list[RawRecord], check: str, limits: JudgingLimits) -> list[_Judged]:
    """The records and why some are none; with `none` nothing is judged, and only what the frames claim is known."""
    if check == "none":
        return [(raw, None, None if raw.rule is None else f"{raw.rule}: {raw.reason}") for raw in batch]
    found = ((raw.stored, raw.rule, raw.reason) for raw in batch)
    verdicts = judge(found, limits, verify_signatures=check == "full")
    return [
        (raw, valid, None if rule is None else f"{rule}: {reason}")
        for raw, (valid, rule, reason) in zip(batch, verdicts, strict=True)
    ]


def _fail_on_bad(rows: list[_Judged]) -> None:
    for raw, _, reason in rows:
        if reason is not None:
            raise InvalidRecord(reason, rule="failfast", place=f"{raw.bundle} byte {raw.offset}")


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


def register(spark: SparkSession) -> SparkSession:
    """Make the format `lace` known to a session, ours or another.

    Spark finds it without this where the Python of its workers has lace installed. A local session whose maker named no
    Python for the workers would take any `python3` on the PATH: it gets the one that runs us.
    """
    context = None if is_remote() else spark.sparkContext
    if context is not None and "PYSPARK_PYTHON" not in os.environ and str(context.master).startswith("local"):
        context.pythonExec = sys.executable
    spark.dataSource.register(LaceDataSource)
    return spark


def raw_records(
    spark: SparkSession,
    paths: Sequence[Place | str],
    split_bytes: int = _DEFAULT_SPLIT_BYTES,
    columns: Sequence[str] = tuple(RAW.names),
    limits: JudgingLimits | None = None,
) -> DataFrame:
    """Every stored record of some files with its bytes, not yet judged; damage keeps its reason."""
    parts = shares(input_files(paths), split_bytes)
    one_row_a_task = spark.range(0, len(parts), 1, max(1, len(parts)))
    schema = StructType([RAW[name] for name in columns])
    return one_row_a_task.mapInArrow(partial(_read_raw, parts, tuple(columns), limits or JudgingLimits()), schema)


def _read_raw(
    parts: list[list[FileRange]], columns: tuple[str, ...], limits: JudgingLimits, tasks: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(StructType([RAW[name] for name in columns]))
    chosen = (piece for batch in tasks for task in batch["id"].to_pylist() for piece in parts[task])
    for group in batches((raw for piece in chosen for raw in read_piece(piece)), limits):
        yield raw_batch(group, schema)
