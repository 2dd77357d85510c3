"""The report of an archive that is small enough to be counted by this process: no session, no JVM.

Rule: every number is the one that the jobs of `lace.spark.jobs.report` come to. Only narrow columns are held, and only
as columns; of refused records the bytes are gone through.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import nsmallest
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from lace.spark.archive import few
from lace.spark.archive.archive import Archive
from lace.spark.archive.log import FOLDER, Input, State
from lace.spark.jobs.reconcile import PREFIX_LENGTH
from lace.spark.jobs.report import (
    LARGEST_GROUPS,
    QUARANTINE_ROWS,
    SHOWN_BYTES,
    TAI_OF_UNIX,
    Counts,
    QuarantineRow,
    ReportCounts,
    Tally,
    quarantine_row,
)
from lace.spark.source.files import input_files

_READ = ("records", "quarantine", "advertisements", "published")


def can_count(archive: Archive, state: State, others: int) -> bool:
    """Whether the rows that a report looks at, here and elsewhere, can all be held here."""
    rows = sum(state.rows(name) for name in _READ) + others
    return archive.files.folder is not None and archive.few.bytes > 0 and rows <= archive.few.sent_to_tasks


def hashes_elsewhere(archive: Archive, path: Path) -> pa.Table | None:
    """(hash): the records at a place, another archive or bundles and stores; None where they are not few."""
    if (path / FOLDER).is_dir():
        other = Archive(str(path), few=archive.few)
        state = other.log.state()
        return _read(other, state, "records", ["hash"]) if can_count(archive, state, 0) else None
    files = [(file, file.stat()) for file in input_files([path])]
    if sum(stat.st_size for _, stat in files) > archive.few.bytes:
        return None
    inputs = [Input(address=str(file), size=stat.st_size, modified_ns=stat.st_mtime_ns) for file, stat in files]
    found = [raw.hash for raw in few.read_inputs(inputs) if raw.rule is None and raw.hash is not None]
    return pa.table({"hash": pa.array(found, pa.string())})


def _read(archive: Archive, state: State, table: str, columns: Sequence[str]) -> pa.Table:
    held = state.table(table)
    return few.select(archive.files, held, columns) if held else few.schema_of(table, columns).empty_table()


# Counting


def count(archive: Archive, state: State) -> ReportCounts:
    """What a report counts."""
    columns = ["hash", "type", "group", "app", "tai", "signed_by", "data_length"]
    records = _read(archive, state, "records", columns)
    coordinates = _coordinates(records)
    chosen = _read(archive, state, "advertisements", ["peer", "hash"])
    where = pc.index_in(chosen["hash"], records["hash"].combine_chunks())
    refused = _read(archive, state, "quarantine", ["rule"])
    keys = {"type": records["type"], "partition": _prefixes(records["hash"]), "month": _months(records["tai"])}
    return ReportCounts(
        every={kind: sorted(_tallies(key, records["data_length"])) for kind, key in keys.items()},
        largest={"coordinate": _largest(coordinates), "signer": _largest(records["signed_by"])},
        chosen={"peer": _largest(chosen["peer"]), "coordinate": _largest(coordinates.take(where))},
        refused={"rule": _largest(refused["rule"])},
        quarantined=len(refused),
        quarantine_rows=_quarantine_rows(archive, state),
    )


def _prefixes(hashes: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_slice_codeunits(hashes, 2, 2 + PREFIX_LENGTH)  # 050-PART-01


def _coordinates(records: pa.Table) -> pa.ChunkedArray:
    """`//group//app//`, null for a record that has none."""
    nothing, between = pa.scalar(""), pa.scalar("//")
    found: pa.ChunkedArray = pc.binary_join_element_wise(nothing, records["group"], records["app"], nothing, between)
    return found


def _months(tai: pa.ChunkedArray) -> pa.ChunkedArray:
    seconds = pc.subtract(pc.cast(pc.utf8_slice_codeunits(tai, 0, 10), pa.int64()), TAI_OF_UNIX)
    return pc.strftime(pc.cast(seconds, pa.timestamp("s")), format="%Y-%m")


def _tallies(keys: pa.ChunkedArray, sizes: pa.ChunkedArray | None = None) -> list[Tally]:
    """Every key that is there, with its rows and their bytes."""
    bytes_of = pa.repeat(pa.scalar(0, pa.int64()), len(keys)) if sizes is None else sizes
    counted = pa.table({"key": keys, "size": bytes_of}).group_by("key").aggregate([([], "count_all"), ("size", "sum")])
    columns = (counted[name].to_pylist() for name in ("key", "count_all", "size_sum"))
    return [Tally(key, rows, size or 0) for key, rows, size in zip(*columns, strict=True) if key is not None]


def _largest(keys: pa.ChunkedArray) -> list[Tally]:
    return sorted(_tallies(keys), key=lambda tally: (-tally.rows, tally.key))[:LARGEST_GROUPS]


def _quarantine_rows(archive: Archive, state: State) -> list[QuarantineRow]:
    """The first refused records of each file, in their order."""
    first: list[dict[str, object]] = []
    columns = ["rule", "reason", "bundle", "offset", "hash", "stored"]
    for file in state.table("quarantine"):
        for rows in few.scan(archive.files, file, columns, archive.judging):
            cut = rows.append_column("length", pc.binary_length(rows["stored"]))
            cut = cut.append_column("begins", pc.binary_slice(rows["stored"], 0, SHOWN_BYTES)).drop_columns(["stored"])
            first = nsmallest(
                QUARANTINE_ROWS, [*first, *cut.to_pylist()], key=lambda row: (row["bundle"], row["offset"])
            )
    return [quarantine_row(row) for row in first]


# Comparing


def missing(archive: Archive, state: State, others: Mapping[str, pa.Table]) -> dict[str, Counts]:
    """What each peer was not given of what it may have, and what stands here or elsewhere only, by partition."""
    listed = _read(archive, state, "advertisements", ["peer", "hash"])
    given = _read(archive, state, "published", ["peer", "hash"])
    found: dict[str, Counts] = {}
    for peer in sorted(set(listed["peer"].unique().to_pylist())):
        may, has = (rows.filter(pc.equal(rows["peer"], peer))["hash"] for rows in (listed, given))
        found |= _lacks(peer, may, has)
    if others:
        hashes = {"here": _read(archive, state, "records", ["hash"])["hash"]}
        hashes |= {name: table["hash"] for name, table in others.items()}
        everywhere = pa.chunked_array([chunk for each in hashes.values() for chunk in each.chunks], pa.string())
        for name in sorted(hashes):
            found |= _lacks(name, everywhere.unique(), hashes[name])
    return found


def _lacks(name: str, wanted: pa.ChunkedArray | pa.Array, held: pa.ChunkedArray) -> dict[str, Counts]:
    """How much of what is wanted is not held, by partition; nothing if that is nothing."""
    apart = wanted.filter(pc.invert(pc.is_in(wanted, held.combine_chunks())))
    tallies = sorted(_tallies(_prefixes(apart)))
    return {name: [(tally.key, tally.rows) for tally in tallies]} if tallies else {}
