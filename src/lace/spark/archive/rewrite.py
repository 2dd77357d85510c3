"""Files written anew: without removed records, or small ones together.

Rule: rows move, and none changes. Tables stay plain Parquet: whoever reads them needs no list of deleted rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.archive import tables
from lace.spark.archive.log import DataFile, State

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive

# The order of each table that has one: what its lookups prune by.
ORDERS: dict[str, Sequence[str]] = {
    "records": ("hash",),
    "coordinates": ("month", "group", "app", "name"),
    "selected": ("rules", "hash"),
    "advertisements": ("peer", "hash"),
}
_WITH_RECORDS = ("records", "coordinates", "selected")


def without(archive: Archive, state: State, hashes: DataFrame | Sequence[str]) -> tuple[list[DataFile], list[str], int]:
    """New files, the paths of those that they stand for, and how many records went."""
    spark, files = archive.spark, archive.files
    gone = hashes if isinstance(hashes, DataFrame) else spark.createDataFrame([(h,) for h in hashes], "hash string")
    gone = gone.select("hash").distinct().persist()
    added: list[DataFile] = []
    dropped: list[str] = []
    removed = 0
    for table in _WITH_RECORDS:
        held = list(state.table(table))
        if not held:
            continue
        frame = tables.read(spark, files, table, held)
        name = F.element_at(F.split("_metadata.file_path", "/"), -1).alias("file")
        hit = frame.select("hash", name).join(F.broadcast(gone), on="hash", how="left_semi")
        found = {row["file"]: row["count"] for row in hit.groupBy("file").count().collect()}
        touched = [file for file in held if file.path.rpartition("/")[2] in found]
        if not touched:
            continue
        removed = sum(found.values()) if table == "records" else removed
        kept = tables.read(spark, files, table, touched).join(F.broadcast(gone), on="hash", how="left_anti")
        added += tables.write(spark, files, table, kept, by=ORDERS[table])
        dropped += [file.path for file in touched]
    gone.unpersist()
    return added, dropped, removed


def compacted(archive: Archive, state: State, small_bytes: int, file_rows: int) -> tuple[list[DataFile], list[str]]:
    """Small files of each table as few large ones, and the paths of those that they stand for."""
    added: list[DataFile] = []
    dropped: list[str] = []
    for table, order in ORDERS.items():
        small = [file for file in state.table(table) if file.bytes < small_bytes]
        if len(small) < 2:
            continue
        frame = tables.read(archive.spark, archive.files, table, small)
        added += tables.write(archive.spark, archive.files, table, frame, by=order, file_rows=file_rows)
        dropped += [file.path for file in small]
    return added, dropped
