"""The steps of a run over what is few, by this process alone: rules by the embedded engine, listings and roots here.

Rule: only where new batches are all that a step has to look at. Whatever else is needed of the archive is narrow: the
digests of the partitions that new records fall into.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lace.datalog import engine
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
from lace.spark.schemas import WIDE


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


def write_listing(archive: Archive, peer: str, listing: pa.Table) -> list[DataFile]:
    """Advertisements for a peer, as a file."""
    return few.write(archive.files, "advertisements", _named(listing, peer))


def write_partitions(
    archive: Archive, peer: str, old: Sequence[DataFile], held: Sequence[DataFile], touched: Sequence[str]
) -> list[DataFile] | None:
    """Counts and roots of a peer's partitions, those that were touched anew; None if that takes looking at too much."""
    near = tables.holding(held, "prefix", touched)
    if sum(file.rows for file in near) > archive.few.looked_through:
        return None
    among = pc.field("prefix").isin(list(touched))
    anew = summaries(few.select(archive.files, near, ["prefix", "digest"], among))
    kept = few.select(archive.files, old, anew.schema.names, ~among) if old else anew.slice(0, 0)
    return few.write(archive.files, "partitions", _named(pa.concat_tables([anew, kept.cast(anew.schema)]), peer))


def _named(rows: pa.Table, peer: str) -> pa.Table:
    return rows.append_column("peer", pa.array([peer] * len(rows), pa.string()))
