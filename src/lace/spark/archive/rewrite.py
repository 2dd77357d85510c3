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
WRITING_SECONDS = 24 * 3600  # no writer takes longer from its first file to its commit
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
        rows = sum(file.rows for file in touched)
        added += tables.write(spark, files, table, kept, by=ORDERS[table], rows=rows)
        dropped += [file.path for file in touched]
    gone.unpersist()
    return added, dropped, removed


def unreferenced(archive: Archive, state: State, versions: int) -> tuple[list[str], int]:
    """Data files that none of the newest versions names, and the oldest version that stays readable.

    A file that no commit ever named may belong to a writer at work: it counts once it is too old for that.
    """
    oldest = max(state.oldest, state.version - versions + 1)
    kept: set[str] = set()
    for version in range(oldest, state.version + 1):
        kept |= {file.path for file in archive.log.state(version).files}
    named = {file.path for commit in archive.log.commits() for file in commit.added}
    listed = archive.files.listing("data")
    newest = max((item.modified_s for item in listed), default=0.0)
    gone = [
        item.name
        for item in listed
        if item.name not in kept and (item.name in named or item.modified_s < newest - WRITING_SECONDS)
    ]
    return gone, oldest


def compacted(archive: Archive, state: State, small_bytes: int, file_rows: int) -> tuple[list[DataFile], list[str]]:
    """Small files of each table as few large ones, and the paths of those that they stand for."""
    added: list[DataFile] = []
    dropped: list[str] = []
    for (table, _), small in _small_files(state, small_bytes).items():
        order = ORDERS[table]
        if len(small) < 2:
            continue
        frame = tables.read(archive.spark, archive.files, table, small)
        rows = sum(file.rows for file in small)
        added += tables.write(archive.spark, archive.files, table, frame, by=order, rows=rows, file_rows=file_rows)
        dropped += [file.path for file in small]
    return added, dropped


def _small_files(state: State, small_bytes: int) -> dict[tuple[str, str], list[DataFile]]:
    """By table, and by whose rows they hold: files of two peers are never written together."""
    found: dict[tuple[str, str], list[DataFile]] = {}
    for file in state.files:
        if file.table in ORDERS and file.bytes < small_bytes:
            owner = file.low.get("rules") or file.low.get("peer") or ""
            found.setdefault((file.table, owner), []).append(file)
    return found
