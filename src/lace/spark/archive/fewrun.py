"""The steps of a run over what is few, by this process alone: rules by the embedded engine, listings and roots here.

Rule: only where new batches are all that a step has to look at. Whatever else is needed of the archive is narrow: the
digests of the partitions that new records fall into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from lace.datalog import engine
from lace.datalog.source import Row
from lace.facts.derive import derive_facts
from lace.limits import EngineLimits
from lace.records.model import ValidRecord
from lace.records.validate import reread
from lace.spark.archive import few, tables
from lace.spark.archive.archive import Archive
from lace.spark.archive.log import DataFile, State
from lace.spark.jobs.advertise import listed, summaries
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.jobs.reconcile import PREFIX_LENGTH
from lace.spark.rows import record_arrays
from lace.spark.schemas import STORED, WIDE
from lace.spark.writer import LaceWriter


@dataclass(frozen=True, slots=True)
class FewRecords:
    """The records of some batches."""

    by_hash: dict[str, ValidRecord]

    @classmethod
    def of(cls, archive: Archive, state: State, batches: Sequence[str]) -> FewRecords | None:
        """None where there are too many, or where they are not on this machine."""
        wanted = set(batches)
        held = [file for file in state.table("records") if wanted & set(file.batches)]
        if archive.files.folder is None or sum(file.bytes for file in held) > archive.few.bytes:
            return None
        rows = few.select(archive.files, held, ["stored"], pc.field("batch").isin(sorted(wanted)))
        return cls({str(found.hash): found for found in map(reread, rows["stored"].to_pylist())})

    def select(self, peer: PeerPolicy, limits: EngineLimits) -> list[str]:
        """What the rules of a peer let it have of these, sorted."""
        facts = {*peer.runtime, *(fact for valid in self.by_hash.values() for fact in derive_facts(valid))}
        found = engine.evaluate(peer.policy.program, facts, limits=limits)
        return sorted(row[0] for row in found.rows(peer.policy.sendable))

    def listing(self, peer: PeerPolicy, hashes: Sequence[str]) -> pa.Table:
        """The advertisements of some of them, sorted by hash."""
        plan = peer.policy.plan
        fields = None if plan.requirements.all_fields else frozenset(plan.requirements.names)
        source = plan.operands[peer.policy.local_index].origin
        rows = record_arrays([self.by_hash[text] for text in sorted(hashes)], WIDE.names)
        prefixes = pa.array([prefix_of(text) for text in rows["hash"].to_pylist()], pa.string())
        return pa.Table.from_batches([listed(pa.record_batch({"prefix": prefixes, **rows}), source, fields)])


def prefix_of(record: str) -> str:
    """The partition of a record (050-PART-01)."""
    return record[2 : 2 + PREFIX_LENGTH]


def write_selected(archive: Archive, mark: str, hashes: Sequence[str], batch: str) -> list[DataFile]:
    """What some rules select, as a file."""
    columns = {"rules": [mark] * len(hashes), "hash": list(hashes), "batch": [batch] * len(hashes)}
    return few.write(archive.files, "selected", pa.table({k: pa.array(v, pa.string()) for k, v in columns.items()}))


def write_relation(archive: Archive, mark: str, predicate: str, rows: Sequence[Row]) -> list[DataFile]:
    """What some rules derive on the way, as a file."""
    columns = {
        "rules": pa.array([mark] * len(rows), pa.string()),
        "predicate": pa.array([predicate] * len(rows), pa.string()),
        "terms": pa.array([list(row) for row in rows], pa.list_(pa.string())),
    }
    return few.write(archive.files, "relations", pa.table(columns))


def read_selected(archive: Archive, mark: str, files: Sequence[DataFile]) -> list[str] | None:
    """What some files say that some rules select; None where that is not few."""
    if sum(file.bytes for file in files) > archive.few.bytes:
        return None
    found: list[str] = few.select(archive.files, files, ["hash"], pc.field("rules") == mark)["hash"].to_pylist()
    return found


def write_listing(archive: Archive, peer: str, listing: pa.Table) -> list[DataFile]:
    """Advertisements for a peer, as a file."""
    return few.write(archive.files, "advertisements", _named(listing, peer))


def write_partitions(
    archive: Archive, peer: str, old: Sequence[DataFile], held: Sequence[DataFile], touched: Sequence[str]
) -> list[DataFile] | None:
    """Counts and roots of a peer's partitions, those that were touched anew; None if that takes looking at too much."""
    near = tables.holding(held, "prefix", touched)
    if rows_of(near) > archive.few.looked_through:
        return None
    among = pc.field("prefix").isin(list(touched))
    anew = summaries(few.select(archive.files, near, ["prefix", "digest"], among))
    kept = few.select(archive.files, old, anew.schema.names, ~among) if old else anew.slice(0, 0)
    return few.write(archive.files, "partitions", _named(pa.concat_tables([anew, kept.cast(anew.schema)]), peer))


def unpublished(
    archive: Archive, state: State, selected: Sequence[DataFile], batches: Sequence[str], given: Sequence[DataFile]
) -> list[ValidRecord] | None:
    """What some files select of some batches and others do not name yet, by hash; None where that is not few."""
    most = archive.few
    if sum(file.bytes for file in selected) > most.bytes or rows_of(given) > most.looked_through:
        return None
    records = FewRecords.of(archive, state, batches)
    if records is None:
        return None
    chosen = few.select(archive.files, selected, ["hash"], pc.field("batch").isin(list(batches)))["hash"].to_pylist()
    there = few.select(archive.files, given, ["hash"], pc.field("hash").isin(chosen)) if chosen else None
    fresh = sorted(set(chosen) - set([] if there is None else there["hash"].to_pylist()))
    # A new record may let an older one go to a peer: its bytes are not among these.
    return None if not records.by_hash.keys() >= set(fresh) else [records.by_hash[text] for text in fresh]


def rows_of(files: Sequence[DataFile]) -> int:
    """How many rows stand in some files."""
    return sum(file.rows for file in files)


def write_published(archive: Archive, peer: str, records: Sequence[ValidRecord], place: Path) -> list[DataFile]:
    """Records as a bundle for a peer, and that it was given them."""
    if not records:
        return []
    writer = LaceWriter(str(place), StructType([STORED]), overwrite=True)
    stored = pa.record_batch({STORED.name: pa.array([valid.stored for valid in records], pa.binary())})
    writer.commit([writer.write(iter([stored]))])
    hashes = [str(valid.hash) for valid in records]
    columns = {"prefix": [prefix_of(text) for text in hashes], "hash": hashes}
    return few.write(archive.files, "published", _named(pa.table(columns), peer))


def _named(rows: pa.Table, peer: str) -> pa.Table:
    return rows.append_column("peer", pa.array([peer] * len(rows), pa.string()))
