"""The tables of an archive: their columns, how they are written, and which of their files a question needs.

Rule: a writer makes new files under a name nobody else has and tells what is in them; nobody sees them before a commit
names them. A reader is given files, never folders.

    records       one row a record, with its bytes; by hash once compacted
    quarantine    what is no record, with its bytes, the rule it broke and where it stood
    coordinates   the narrow columns again, by month and coordinate: for lookups by coordinate and time
    selected      (rules, hash): what may go to the peers with these rules
    relations     (rules, predicate, terms): what rules that look at several records derive on the way there
    forgotten     the hashes of records that never come in again
    removed       the records that were taken away, without their bytes, for results that still count them
    advertisements, partitions   listings, counts and Merkle roots, by peer
    published     (peer, hash): what each peer was given
    facts/…       the facts of 020, one table for each predicate
    requestable   (peer, hash): what may be asked of a peer that gave a listing
    missing, missing_by_partition   what this archive and others lack of each other
"""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet_files
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from lace.datalog.language.syntax import Predicate
from lace.errors import InvalidInput
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.notation.tai import LEAP_SECONDS
from lace.spark.archive.filesystem import Files, ListedFile
from lace.spark.archive.moments import second, second_at
from lace.spark.archive.versions import DataFile
from lace.spark.source.schemas import COMMENTS, LINK, WIDE
from lace.thresholds import ArchiveThresholds

_DATA = "data"
_MONTH = "month"
FILE_ROWS = 1_000_000

TS: StructField = StructField("ts", TimestampType())
BATCH: StructField = StructField("batch", StringType())
_ARCHIVE_COMMENTS = COMMENTS | {
    "ts": "the record's time as a timestamp, UTC, to the microsecond",
    "headers": "the other headers: name to values, in their order",
    "batch": "the addition that brought the record",
    "content": "digest of the stored bytes",
    "bundle": "the file that it was read from",
    "offset": "where in that file",
    "removal": "the number of the removal that took it away",
    "rules": "a name for the rules and all else that decides",
    "terms": "the values of one derived fact",
    "rule": "the rule that it breaks",
    "reason": "how it breaks it",
}
_PLACE = [StructField("content", StringType()), StructField("bundle", StringType()), StructField("offset", LongType())]
_HEADERS: StructField = StructField("headers", MapType(StringType(), ArrayType(StringType(), False), False))
_LINKS: StructField = StructField("links", ArrayType(LINK, False))


def _commented(fields: Iterable[StructField]) -> StructType:
    notes = _ARCHIVE_COMMENTS
    return StructType(
        [StructField(f.name, f.dataType, f.nullable, {"comment": notes.get(f.name, f.name)}) for f in fields]
    )


_NARROW = [WIDE[name] for name in WIDE.names if name not in ("headers", "links")]
SCHEMAS: dict[str, StructType] = {
    "records": _commented(
        [*_NARROW, TS, _HEADERS, _LINKS, StructField("stored", BinaryType()), BATCH, *_PLACE]
    ),
    "removed": _commented([*_NARROW, _HEADERS, _LINKS, StructField("removal", StringType())]),
    "quarantine": _commented(
        [StructField("hash", StringType()), StructField("rule", StringType()), StructField("reason", StringType()),
         StructField("stored", BinaryType()), BATCH, *_PLACE]
    ),
    "coordinates": _commented(
        [*(WIDE[name] for name in ("group", "app", "name", "tai")), TS,
         *(WIDE[name] for name in ("hash", "type", "signed_by", "data_length")), BATCH]
    ),
    "selected": _commented([StructField("rules", StringType()), StructField("hash", StringType()), BATCH]),
    "relations": _commented(
        [StructField("rules", StringType()), StructField("predicate", StringType()),
         StructField("terms", ArrayType(StringType(), False))]
    ),
    "advertisements": _commented(
        [StructField("peer", StringType()), StructField("prefix", StringType()), StructField("hash", StringType()),
         StructField("digest", BinaryType()), StructField("text", StringType())]
    ),
    "partitions": _commented(
        [StructField("peer", StringType()), StructField("prefix", StringType()), StructField("records", LongType()),
         StructField("root", StringType())]
    ),
    "published": _commented(
        [StructField("peer", StringType()), StructField("prefix", StringType()), StructField("hash", StringType())]
    ),
    "forgotten": _commented([StructField("hash", StringType())]),
    "requestable": _commented([StructField("peer", StringType()), StructField("hash", StringType())]),
    "missing": _commented(
        [StructField("archive", StringType()), StructField("prefix", StringType()), StructField("hash", StringType()),
         StructField("held_by", ArrayType(StringType(), False))]
    ),
    "missing_by_partition": _commented(
        [StructField("archive", StringType()), StructField("prefix", StringType()), StructField("records", LongType())]
    ),
}  # fmt: skip
_FACTS = {
    HAVE: ("hash",),
    FIELD: ("hash", "name", "index", "value"),
    RECORD_LINK: ("hash", "name", "index", "data", "target"),
    BLOB_HASH: ("hash", "blob_hash"),
    PLEX_HASH: ("hash", "plex_hash"),
}


def facts_table(predicate: Predicate) -> str:
    """The table that holds the facts of a predicate."""
    return f"facts/{predicate.name}"


SCHEMAS |= {
    facts_table(predicate): StructType([StructField(name, StringType()) for name in names])
    for predicate, names in _FACTS.items()
}
FACTS_TABLES = tuple(map(facts_table, _FACTS))
COUNTED = ("records", "quarantine", "advertisements", "published")  # what a report looks at
# The order of each table that has one: what its lookups prune by.
ORDERS: dict[str, Sequence[str]] = {
    "records": ("hash",),
    "coordinates": (_MONTH, "group", "app", "name"),
    "selected": ("rules", "hash"),
    "advertisements": ("peer", "hash"),
    "relations": ("rules", "predicate"),
    "published": ("peer", "hash"),
    "quarantine": ("bundle", "offset"),
    **{facts_table(predicate): ("hash",) for predicate in _FACTS},
}
# What files are pruned by.
STATISTICS = ("hash", "group", "app", "name", "ts", "prefix", "peer", "rules", "predicate", "removal")


def columns_of(table: str) -> StructType:
    """The columns of a table, InvalidInput for a name that is none's."""
    if table not in SCHEMAS:
        raise InvalidInput(f"tables of an archive are {', '.join(SCHEMAS)}", rule="lace-table", found=table)
    return SCHEMAS[table]


def timestamp(tai: Column) -> Column:
    """A TAI text as a timestamp, leap seconds taken out."""
    seconds = F.substring(tai, 1, 10).cast("long")  # 010-TAI-02: ten digits, a colon, nine digits
    leap = F.lit(10)
    for unix, offset in LEAP_SECONDS:
        leap = F.when(seconds >= unix + offset, F.lit(offset)).otherwise(leap)
    return F.timestamp_micros((seconds - leap) * 1_000_000 + F.substring(tai, 12, 6).cast("long"))


def header_map(headers: Column) -> Column:
    """Headers with their places as a map from name to values; a place is the position among the values of its name."""
    names = F.array_distinct(F.transform(headers, lambda header: header["name"]))
    values = F.transform(
        names,
        lambda name: F.transform(F.filter(headers, lambda header: header["name"] == name), lambda h: h["value"]),
    )
    return F.map_from_arrays(names, values)


def header_list(headers: Column) -> Column:
    """The way back: what rules read."""

    def occurrences(entry: Column) -> Column:
        return F.transform(
            entry["value"],
            lambda value, place: F.struct(entry["key"].alias("name"), place.alias("index"), value.alias("value")),
        )

    return F.flatten(F.transform(F.map_entries(headers), occurrences))


def readable(records: DataFrame) -> DataFrame:
    """Records of an archive with all their columns, and headers as rules read them."""
    return records.withColumn("headers", header_list(F.col("headers")))


def as_wide(records: DataFrame) -> DataFrame:
    """Records of an archive as the wide table that rules are evaluated over."""
    return readable(records).select(*WIDE.names)


# Writing


# Both executors write zstd, row groups of so many bytes, and a Bloom filter on hashes where records are looked up by
# them: with it a lookup skips a file before files are in order.
_LOOKED_UP = ("records", "removed", "quarantine", "coordinates", "selected", "advertisements", "published")
_ROW_GROUP_BYTES = 128 << 20
_ROW_GROUP_ROWS = 1 << 20
_BLOOM_FPP = 0.01


def spark_form(table: str) -> dict[str, str]:
    """How Spark writes the files of a table."""
    form = {"compression": "zstd", "parquet.block.size": str(_ROW_GROUP_BYTES)}
    if table in _LOOKED_UP:  # as large as the file needs
        form |= {
            "parquet.bloom.filter.enabled#hash": "true",
            "parquet.bloom.filter.fpp#hash": str(_BLOOM_FPP),
            "parquet.bloom.filter.adaptive.enabled": "true",
        }
    return form


def pyarrow_form(table: str, rows: int) -> dict[str, Any]:
    """The same for pyarrow."""
    form: dict[str, Any] = {"compression": "zstd", "row_group_size": _ROW_GROUP_ROWS}
    if table in _LOOKED_UP:
        form["bloom_filter_options"] = {"hash": {"ndv": max(1, min(rows, _ROW_GROUP_ROWS)), "fpp": _BLOOM_FPP}}
    return form


def write(
    spark: SparkSession,
    files: Files,
    table: str,
    frame: DataFrame,
    *,
    by: Sequence[str] = (),
    rows: int = 0,
    file_rows: int = FILE_ROWS,
    move: bool = True,
    task_rows: int = ArchiveThresholds().task_rows,
) -> list[DataFile]:
    """Rows as new files of a table; `by` are columns that the files shall be apart in, `rows` how many there may be.

    Rows that are dear to `move` stay with the task that made them: each file is in order by itself, and a compaction
    puts them apart.
    """
    folder = f"{_DATA}/{table}/{uuid.uuid4().hex}"
    chosen = frame.select(*SCHEMAS[table].names)
    if by:
        chosen = _in_order(chosen, by, rows, file_rows if move else None, task_rows)
    chosen.write.options(**spark_form(table)).mode("error").parquet(f"{files.uri}/{folder}")
    listed = files.listing(folder)
    made = described(spark, files, table, listed)
    named = {file.path for file in made}
    for item in listed:  # a task without rows writes a file too
        if item.name not in named:
            files.remove(item.name)
    return made


def _in_order(frame: DataFrame, by: Sequence[str], rows: int, file_rows: int | None, task_rows: int) -> DataFrame:
    """Rows by some columns: in files of so many, or where they are if that is None."""
    keys = [F.date_trunc("month", "ts") if key == _MONTH else F.col(key) for key in by]
    if file_rows is None:
        apart = frame.coalesce(1 + rows // task_rows)
    elif rows < file_rows:  # ranges cost a job of their own, which one file does not need
        apart = frame.coalesce(1)
    else:
        apart = frame.repartitionByRange(1 + rows // file_rows, *keys)
    return apart.sortWithinPartitions(*keys)


def described(spark: SparkSession, files: Files, table: str, listed: Sequence[ListedFile]) -> list[DataFile]:
    """Files with their rows and the ends of what they hold; empty ones are left out."""
    parquet = [item for item in listed if item.name.endswith(".parquet")]
    if files.folder is not None:
        return by_footers(files.folder, table, parquet)
    return _by_reading(spark, files, table, parquet) if parquet else []


def by_footers(folder: Path, table: str, parquet: Sequence[ListedFile]) -> list[DataFile]:
    """The same for files of this machine, without a job."""
    return [found for item in parquet if (found := _by_footer(folder, table, item)) is not None]


def _statistics(table: str) -> list[str]:
    return [name for name in STATISTICS if name in SCHEMAS[table].names]


def _by_footer(folder: Path, table: str, item: ListedFile) -> DataFile | None:
    """What the end of a file says."""
    file = parquet_files.ParquetFile(folder / item.name)
    footer = file.metadata
    if footer.num_rows == 0:
        return None
    low: dict[str, str] = {}
    high: dict[str, str] = {}
    places = {footer.schema.column(at).path: at for at in range(footer.num_columns)}
    for name in [*_statistics(table), *_batch_column(table)]:
        found = [footer.row_group(at).column(places[name]).statistics for at in range(footer.num_row_groups)]
        ends = [(_plain(one.min), _plain(one.max)) for one in found if one is not None and one.has_min_max]
        if ends:
            low[name], high[name] = min(end[0] for end in ends), max(end[1] for end in ends)
    first, last = low.pop("batch", ""), high.pop("batch", "")
    return DataFile(
        table=table, path=item.name, rows=footer.num_rows, bytes=item.size, first=first, last=last, low=low, high=high
    )


def _plain(value: object) -> str:
    """A least or greatest value as Spark prints it, so that both ways of describing a file agree."""
    if isinstance(value, datetime):
        return second(value)
    return value.decode() if isinstance(value, bytes) else str(value)


def _batch_column(table: str) -> list[str]:
    return ["batch"] if "batch" in SCHEMAS[table].names else []


def _by_reading(spark: SparkSession, files: Files, table: str, parquet: Sequence[ListedFile]) -> list[DataFile]:
    """The same by a job, wherever the files are."""
    columns = _statistics(table)
    frame = spark.read.schema(SCHEMAS[table]).parquet(*(f"{files.uri}/{item.name}" for item in parquet))
    # A timestamp as a number: as a text it would be in the zone of the session.
    ends = {name: F.unix_seconds(name) if name == "ts" else F.col(name).cast("string") for name in columns}
    batch = F.col("batch") if _batch_column(table) else F.lit("")
    found = frame.groupBy(file_of_row().alias("file")).agg(
        F.count(F.lit(1)).alias("rows"),
        F.min(batch).alias("first"),
        F.max(batch).alias("last"),
        *(F.min(ends[name]).alias(f"low_{name}") for name in columns),
        *(F.max(ends[name]).alias(f"high_{name}") for name in columns),
    )
    rows = {row["file"]: row for row in found.collect()}
    made = []
    for item in parquet:
        row = rows.get(short_name(item.name))
        if row is not None:
            made.append(
                DataFile(
                    table=table,
                    path=item.name,
                    rows=row["rows"],
                    bytes=item.size,
                    first=row["first"] or "",
                    last=row["last"] or "",
                    low=_ends(row, "low", columns),
                    high=_ends(row, "high", columns),
                )
            )
    return made


def _ends(row: Row, end: str, columns: Iterable[str]) -> dict[str, str]:
    found = {name: row[f"{end}_{name}"] for name in columns}
    return {name: second_at(value) if name == "ts" else value for name, value in found.items() if value is not None}


# Reading


def read(spark: SparkSession, files: Files, table: str, chosen: Sequence[DataFile]) -> DataFrame:
    """Some files of a table."""
    schema = columns_of(table)
    if not chosen:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*(f"{files.uri}/{file.path}" for file in chosen))


def file_of_row() -> Column:
    """The short name of the file that a row of some files stands in."""
    return F.substring_index("_metadata.file_path", "/", -2)


def short_name(path: str) -> str:
    """A file's name with that of its folder: every addition that needs no Spark calls its one file the same."""
    return "/".join(path.rsplit("/", 2)[-2:])


def between(chosen: Iterable[DataFile], column: str, low: str | None, high: str | None) -> list[DataFile]:
    """The files that may hold a value from `low` to `high`."""
    return [
        file
        for file in chosen
        if column in file.low
        and (high is None or file.low[column] <= high)
        and (low is None or file.high[column] >= low)
    ]


def holding(chosen: Iterable[DataFile], column: str, values: Sequence[str]) -> list[DataFile]:
    """The files that may hold one of some values."""
    ordered = sorted(values)
    found = []
    for file in chosen:
        first = bisect_left(ordered, file.low[column]) if column in file.low else len(ordered)
        if first < len(ordered) and ordered[first] <= file.high[column]:
            found.append(file)
    return found
