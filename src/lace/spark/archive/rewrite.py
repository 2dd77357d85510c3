"""Files written again: without removed records, or small ones together.

Rule: rows move, and none changes. Tables stay plain Parquet: readers need no list of deleted rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.spark.archive import contents, tables
from lace.spark.archive.versions import DataFile, State, StepResult
from lace.spark.engine.relations import union

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive

WRITING_SECONDS = 24 * 3600  # no writer takes longer from its first file to its commit
_WITH_CONTENTS = ("records", "quarantine")
_WITH_RECORDS = ("records", "coordinates", "selected", *tables.FACTS_TABLES)


def without(archive: Archive, state: State, hashes: DataFrame | Sequence[str]) -> tuple[list[DataFile], list[str], int]:
    """New files, the paths of those that they stand for, and how many records went; what went is kept as `removed`."""
    spark, files = archive.spark, archive.files
    gone = hashes if isinstance(hashes, DataFrame) else spark.createDataFrame([(h,) for h in hashes], "hash string")
    gone = gone.select("hash").distinct().persist()
    went = len(set(hashes)) if not isinstance(hashes, DataFrame) else gone.count()
    held = list(state.table("records"))
    touched = _touched_files(archive, "records", held, gone, "hash", went) if held else []
    added: list[DataFile] = []
    dropped: list[str] = []
    if touched:
        records = tables.read(spark, files, "records", [file for file, _ in touched])
        number = F.lit(removal_name(state.removals + 1)).alias("removal")
        taken = archive.joins.chosen(records, gone, went).select("*", number)
        added += tables.write(spark, files, "removed", taken)
        new, old = _forgotten_contents(archive, state, taken, sum(rows for _, rows in touched))
        added += new
        dropped += old
    for table in _WITH_RECORDS if touched else ():
        new, old = cut(archive, table, list(state.table(table)), gone, "hash", went)
        added += new
        dropped += old
    gone.unpersist()
    return added, dropped, sum(rows for _, rows in touched)


def _forgotten_contents(
    archive: Archive, state: State, taken: DataFrame, rows: int
) -> tuple[list[DataFile], list[str]]:
    """That removed records may be added again, and the paths of files that no longer say what is here."""
    ranges = contents.covered(state)
    if not ranges:
        return [], []
    if archive.files.folder is None:
        return [], [file.path for table in (contents.CONTENTS, contents.GONE) for file in state.table(table)]
    batch = F.col("batch")
    is_covered = reduce(or_, ((batch > each.after) & (batch <= each.last) for each in ranges))
    return contents.write_by_job(archive.files, contents.GONE, taken.where(is_covered), rows), []


def removal_name(number: int) -> str:
    """A removal's number as a text that orders like the number."""
    return f"{number:08d}"


def removed_since(state: State, removals: int) -> list[DataFile] | None:
    """The files with the records that went after so many removals; None if not all of them are kept."""
    if removals == state.removals:
        return []
    kept = sorted(state.table("removed"), key=lambda file: file.low["removal"])
    if not kept or kept[0].low["removal"] > removal_name(removals + 1):
        return None
    return [file for file in kept if file.high["removal"] > removal_name(removals)]


def seen_removals(state: State, results: Mapping[str, StepResult]) -> list[str]:
    """The files of removed records that no step needs any more, given the results that there will be."""
    after = {**state.results, **results}
    seen = removal_name(min((result.removals for result in after.values()), default=0))
    return [file.path for file in state.table("removed") if file.high["removal"] <= seen]


def cut(
    archive: Archive, table: str, held: Sequence[DataFile], gone: DataFrame, key: str, rows: int
) -> tuple[list[DataFile], list[str]]:
    """Some files of a table without the rows whose key is in `gone`, which has so many rows.

    New files, and the paths of those that they replace.
    """
    spark, files = archive.spark, archive.files
    if not held:
        return [], []
    touched = [file for file, _ in _touched_files(archive, table, held, gone, key, rows)]
    if not touched:
        return [], []
    added: list[DataFile] = []
    for own in _by_owner(touched).values():
        kept = tables.read(spark, files, table, own).join(archive.joins.hinted(gone, rows), on=key, how="left_anti")
        added += tables.write(spark, files, table, kept, by=tables.ORDERS[table], rows=sum(file.rows for file in own))
    return added, [file.path for file in touched]


def _touched_files(
    archive: Archive, table: str, held: Sequence[DataFile], gone: DataFrame, key: str, rows: int
) -> list[tuple[DataFile, int]]:
    """The files with rows whose key is in `gone`, and how many."""
    frame = tables.read(archive.spark, archive.files, table, held).select(key, tables.file_of_row().alias("file"))
    hit = frame.join(archive.joins.hinted(gone, rows), on=key, how="left_semi")
    found = {row["file"]: row["count"] for row in hit.groupBy("file").count().collect()}
    return [(file, found[name]) for file in held if (name := tables.short_name(file.path)) in found]


def unreferenced(archive: Archive, state: State, versions: int) -> tuple[list[str], int]:
    """Data files that none of the newest versions names, and the oldest version that stays readable.

    A file that no commit ever named may belong to a writer at work: it counts once it is too old for that.
    """
    oldest = max(state.oldest, state.version - versions + 1)
    commits = archive.log.commits()
    kept = {file.path for file in archive.log.state(oldest).files}
    kept |= {file.path for commit in commits if commit.version > oldest for file in commit.added}
    named = {file.path for commit in commits for file in commit.added}
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
    for (table, *_), small in _small_files(state, small_bytes).items():
        order = tables.ORDERS[table]
        if len(small) < 2:
            continue
        frame = tables.read(archive.spark, archive.files, table, small)
        rows = sum(file.rows for file in small)
        added += tables.write(archive.spark, archive.files, table, frame, by=order, rows=rows, file_rows=file_rows)
        dropped += [file.path for file in small]
    if archive.files.folder is not None and contents.is_worth_rebuilding(state):
        every = [tables.read(archive.spark, archive.files, name, state.table(name)) for name in _WITH_CONTENTS]
        new, old = contents.rebuilt(archive.files, state, union(frame.select("content") for frame in every))
        added += new
        dropped += old
    return added, dropped


def is_worth_compacting(state: State, small_bytes: int, *, is_here: bool) -> bool:
    """Whether there are small files that can be written together, or digests of an archive that `is_here`."""
    return any(len(small) > 1 for small in _small_files(state, small_bytes).values()) or (
        is_here and contents.is_worth_rebuilding(state)
    )


def compactable(state: State, small_bytes: int) -> Counter[str]:
    """How many small files of each table would be written together."""
    found: Counter[str] = Counter()
    for (table, *_), small in _small_files(state, small_bytes).items():
        found[table] += len(small) if len(small) > 1 else 0
    return found


def _small_files(state: State, small_bytes: int) -> dict[tuple[str, ...], list[DataFile]]:
    return _by_owner(file for file in state.files if file.table in tables.ORDERS and file.bytes < small_bytes)


def _by_owner(files: Iterable[DataFile]) -> dict[tuple[str, ...], list[DataFile]]:
    """By table, and by whose rows they hold: a file belongs to one peer, one set of rules and one predicate."""
    found: dict[tuple[str, ...], list[DataFile]] = {}
    for file in files:
        owner = (file.table, *(file.low.get(name, "") for name in ("rules", "predicate", "peer")))
        found.setdefault(owner, []).append(file)
    return found
