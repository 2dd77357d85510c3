"""The steps of a run over what is few, by this process alone: rules by the embedded engine, listings and roots here.

Rule: only where new batches are all that a step has to look at. Whatever else is needed of the archive is narrow: the
digests of the partitions that new records fall into.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from lace.datalog.source import Row
from lace.limits import EngineLimits
from lace.records.manifest import CHUNK_LINK
from lace.runtime.rules.guestprograms import ProgramEngine, ProgramQuestion
from lace.spark.archive import few, tables
from lace.spark.archive.archive import Archive
from lace.spark.archive.log import DataFile, State
from lace.spark.archive.rowfacts import FACT_COLUMNS, facts_of_rows
from lace.spark.jobs.advertise import listed, listed_columns, summaries
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.jobs.reconcile import PARTITIONS, PREFIX_LENGTH
from lace.spark.source.schemas import STORED, WIDE, arrow_schema
from lace.spark.source.writer import LaceWriter


def are_about_parts(archive: Archive, files: Sequence[DataFile]) -> bool | None:
    """Whether one of the records in some files is a Blob or names parts of content; None if they are not few."""
    if archive.files.folder is None or sum(file.bytes for file in files) > archive.few.bytes:
        return None
    for file in files:
        for rows in few.scan(archive.files, file, ["type", "links"], archive.judging):
            if pc.any(pc.equal(rows["type"], "B")).as_py():
                return True
            names = pc.struct_field(pc.list_flatten(rows["links"]), "name")
            if pc.any(pc.equal(names, CHUNK_LINK)).as_py():
                return True
    return False


class FewRecords:
    """The records of some batches, gone through a group at a time: none is held longer than that."""

    def __init__(self, archive: Archive, held: Sequence[DataFile], batches: Sequence[str]) -> None:
        self._archive = archive
        self._held = held
        self._batches = frozenset(batches)

    @classmethod
    def of(cls, archive: Archive, state: State, batches: Sequence[str], most: int) -> FewRecords | None:
        """None where they take more than so many bytes, or are not on this machine."""
        wanted = set(batches)
        held = [file for file in state.table("records") if wanted & set(file.batches)]
        if archive.files.folder is None or sum(file.bytes for file in held) > min(most, archive.few.bytes):
            return None
        return cls(archive, held, batches)

    def rows(self, columns: Sequence[str], among: Collection[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Some columns, `hash` first; of some of the records if these are named."""
        wanted = pa.array(sorted(self._batches), pa.string())
        for file in self._held:
            is_all = self._batches.issuperset(file.batches)
            for found in few.scan(self._archive.files, file, ["hash", *columns, "batch"], self._archive.judging):
                rows = found if is_all else found.filter(pc.is_in(found["batch"], wanted))
                if among is not None:
                    rows = rows.filter(pa.array([text in among for text in rows["hash"].to_pylist()], pa.bool_()))
                if len(rows):
                    yield rows.select(["hash", *columns])

    def hold(self, hashes: Iterable[str]) -> bool:
        """Whether all of some records are among these."""
        missing = set(hashes)
        for rows in self.rows([]):
            missing.difference_update(rows["hash"].to_pylist())
        return not missing

    def select(self, peer: PeerPolicy, limits: EngineLimits, engine: ProgramEngine, *, apart: bool) -> list[str]:
        """What the rules of a peer let it have of these, sorted; `apart` says that any part of them may come alone."""
        parts = self.rows(FACT_COLUMNS[1:])
        goal = peer.policy.sendable
        chosen: set[str] = set()
        for rows in ([part] for part in parts) if apart else [parts]:
            question = ProgramQuestion(
                peer.policy.program, facts_of_rows(rows), (goal,), extra=peer.runtime, is_goal=True
            )
            chosen.update(engine.ask(question, limits).columns[goal][0])
        return sorted(chosen)

    def listing(self, peer: PeerPolicy, hashes: Collection[str]) -> pa.Table:
        """The advertisements of some of them, sorted by hash."""
        plan = peer.policy.plan
        fields = None if plan.requirements.all_fields else frozenset(plan.requirements.names)
        source = plan.operands[peer.policy.local_index].origin
        found = self.rows(listed_columns(fields), set(hashes))
        return pa.Table.from_batches([listed(_wide(rows), source, fields) for rows in found]).sort_by("hash")


def _wide(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with their prefix, and with headers as rules and listings know them."""
    columns = {name: rows[name] for name in rows.schema.names}
    if "headers" in columns:
        lists = [_with_places(found) for found in columns["headers"].to_pylist()]
        columns["headers"] = pa.array(lists, arrow_schema(WIDE).field("headers").type)
    prefixes = pc.utf8_slice_codeunits(columns["hash"], 2, 2 + PREFIX_LENGTH)  # 050-PART-01
    return pa.record_batch({"prefix": prefixes, **columns})


def _with_places(headers: Sequence[tuple[str, list[str]]] | None) -> list[dict[str, object]] | None:
    if headers is None:
        return None
    return [{"name": name, "index": n, "value": value} for name, values in headers for n, value in enumerate(values)]


def prefix_of(record: str) -> str:
    """The partition of a record (050-PART-01)."""
    return record[2 : 2 + PREFIX_LENGTH]


def write_selected(archive: Archive, mark: str, hashes: Sequence[str], batch: str) -> list[DataFile]:
    """What some rules select, as a file."""
    rules, named = (pa.repeat(pa.scalar(text), len(hashes)) for text in (mark, batch))
    columns = {"rules": rules, "hash": pa.array(hashes, pa.string()), "batch": named}
    return few.write(archive.files, "selected", pa.table(columns))


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
    # Digests fall into all partitions alike: of so many partitions at a time they can be held.
    each = max(1, archive.few.sent_to_tasks * PARTITIONS // max(1, rows_of(near)))
    parts = [list(touched[at : at + each]) for at in range(0, len(touched), each)]
    anew = pa.concat_tables(_summed(archive, near, part) for part in parts)
    among = pc.field("prefix").isin(list(touched))
    kept = few.select(archive.files, old, anew.schema.names, ~among) if old else anew.slice(0, 0)
    return few.write(archive.files, "partitions", _named(pa.concat_tables([anew, kept.cast(anew.schema)]), peer))


def _summed(archive: Archive, held: Sequence[DataFile], prefixes: Sequence[str]) -> pa.Table:
    """Counts and roots of some partitions."""
    near = tables.holding(held, "prefix", prefixes)
    among = pc.field("prefix").isin(list(prefixes))
    return summaries(few.select(archive.files, near, ["prefix", "digest"], among))


class Unpublished(NamedTuple):
    """Records that a peer may have and was not given yet."""

    hashes: list[str]  # sorted
    among: FewRecords


def unpublished(
    archive: Archive, state: State, selected: Sequence[DataFile], batches: Sequence[str], given: Sequence[DataFile]
) -> Unpublished | None:
    """What some files select of some batches and others do not name yet; None where that is not few."""
    most = archive.few
    if sum(file.bytes for file in selected) > most.bytes or rows_of(given) > most.looked_through:
        return None
    records = FewRecords.of(archive, state, batches, most.bytes)
    if records is None:
        return None
    chosen = few.select(archive.files, selected, ["hash"], pc.field("batch").isin(list(batches)))["hash"]
    there = few.select(archive.files, given, ["hash"], pc.field("hash").isin(chosen.combine_chunks()))
    fresh = sorted(set(chosen.to_pylist()) - set(there["hash"].to_pylist()))
    # A new record may let an older one go to a peer: its bytes are not among these.
    return Unpublished(fresh, records) if records.hold(fresh) else None


def rows_of(files: Sequence[DataFile]) -> int:
    """How many rows stand in some files."""
    return sum(file.rows for file in files)


def write_published(archive: Archive, peer: str, chosen: Unpublished, place: Path) -> list[DataFile]:
    """Records as a bundle for a peer, and that it was given them."""
    if not chosen.hashes:
        return []
    writer = LaceWriter(str(place), StructType([STORED]), overwrite=True)
    writer.commit([writer.write(chosen.among.rows([STORED.name], set(chosen.hashes)))])
    hashes = pa.array(chosen.hashes, pa.string())
    columns = {"prefix": pc.utf8_slice_codeunits(hashes, 2, 2 + PREFIX_LENGTH), "hash": hashes}
    return few.write(archive.files, "published", _named(pa.table(columns), peer))


def _named(rows: pa.Table, peer: str) -> pa.Table:
    return rows.append_column("peer", pa.repeat(pa.scalar(peer), len(rows)))
