"""Forgetting: records leave an archive for good, and never come in again (decision 550).

Rule: of what was forgotten the hash stays, in the table `forgotten`, and nothing else that a version, the log of Delta
or a report holds. No addition takes what is on the list, whoever brings it, and no peer is asked for it. Forgetting is
local, as it is in a lace (decision 441): bundles, copies and other archives keep what they hold.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as parquet_files

from lace.errors import InvalidInput, NotFound
from lace.notation.identifiers import RecordHash
from lace.porcelain.content import CHUNK_FOLDER
from lace.porcelain.forgetting import EMPTY_BLOB
from lace.records.coordinate import HASH_ADDRESS, is_place, parse_coordinate
from lace.records.manifest import CHUNK_LINK
from lace.spark.archive import delta, find, rewrite
from lace.spark.archive.archive import ArchiveLookup
from lace.spark.archive.executors import Executor, Need, Step, Steps
from lace.spark.archive.filesystem import Files
from lace.spark.archive.versions import Commit, DataFile, State

if TYPE_CHECKING:
    from lace.spark.archive.archive import Archive

TABLE = "forgotten"
MOST_NAMED = 100_000  # records that one call forgets: their hashes pass through this process
_REPORTS = ("report.html", "report.json")  # they show the beginnings of what was refused


class ForgottenHere(NamedTuple):
    """What was forgotten: the records that were named, how many of them were here, parts that only they needed, and
    how many files of older versions went."""

    records: Sequence[str]
    removed: int
    parts: int
    files: int


# The list


def read_list(files: Files, state: State) -> frozenset[str]:
    """Every hash that is kept out."""
    held: set[str] = set()
    for file in state.table(TABLE):
        rows = parquet_files.read_table(pa.BufferReader(files.read(file.path)), columns=["hash"])
        held.update(rows["hash"].to_pylist())
    return frozenset(held)


def _list_changed(
    archive: Archive, state: State, more: Iterable[str], fewer: Collection[str] = ()
) -> tuple[list[DataFile], list[str]]:
    """The list as one new file, and the paths of those before."""
    held = sorted((archive.forgotten(state) | set(more)) - set(fewer))
    if len(held) > archive.thresholds.held_rows:
        raise InvalidInput(
            f"an archive keeps {archive.thresholds.held_rows:,} hashes out at most; "
            "remove records by rules that no selector asks for again (`lace archive gc`)",
            rule="forgotten-most",
            found=f"{len(held):,}",
        )
    return _written(archive.files, held), [file.path for file in state.table(TABLE)]


def _written(files: Files, held: Sequence[str]) -> list[DataFile]:
    if not held:
        return []
    sink = pa.BufferOutputStream()
    parquet_files.write_table(pa.table({"hash": pa.array(held, pa.string())}), sink, compression="zstd")
    data, name = sink.getvalue(), f"data/{TABLE}/{uuid.uuid4().hex}/part-00000.parquet"
    files.publish(name, memoryview(data))
    low, high = {"hash": held[0]}, {"hash": held[-1]}
    return [DataFile(table=TABLE, path=name, rows=len(held), bytes=data.size, low=low, high=high)]


# Forgetting


def forget(archive: Archive, targets: Sequence[str]) -> ForgottenHere:
    """Take records out of an archive for good: all versions of coordinates, or single hashes, stored or not."""
    found = ForgottenHere((), 0, 0, 0)

    def work(state: State) -> Commit | None:
        nonlocal found
        step = Steps(archive, state).step("forget")
        named = _named(archive, state, targets, step)
        going = step.do(Need(), lambda by: _going(by, named))
        gone = [*going.present, *going.parts]
        added, dropped, removed = step.do(Need(), lambda by: by.without([*gone, *named, *going.inner], for_good=True))
        new, old = _list_changed(archive, state, [*named, *gone, *going.inner])
        found = ForgottenHere(named, len(going.present), len(going.parts), 0)
        counts = {"forgotten": len(named), "removed": removed, "parts": len(going.parts)}
        step.tell(", ".join(f"{key} {value:,}" for key, value in counts.items()))
        return Commit(
            operation="forget",
            counts=counts,
            added=(*added, *new),
            dropped=(*dropped, *old),
            removal=bool(dropped),
            oldest=state.version + 1,
        )

    state = archive.commit(work)
    return found._replace(files=_erase(archive, state))


def take_again(archive: Archive, hashes: Collection[str]) -> int:
    """Take records off the list; how many were on it."""
    on_it = 0

    def work(state: State) -> Commit | None:
        nonlocal on_it
        on_it = len(archive.forgotten(state).intersection(hashes))
        if not on_it:
            return None
        added, dropped = _list_changed(archive, state, (), hashes)
        return Commit(operation="allow", counts={"allowed": on_it}, added=tuple(added), dropped=tuple(dropped))

    archive.commit(work)
    return on_it


def _erase(archive: Archive, state: State) -> int:
    """Delete every file that only older versions need, and what says again what stood in them."""
    gone, _ = rewrite.unreferenced(archive, state, state.version - state.oldest + 1)
    for name in (*gone, *_REPORTS):
        archive.files.remove(name)
    archive.log.forget(state.oldest, rewrite.WRITING_SECONDS)
    delta.begin_again(archive.files, archive.log, state)
    return len(gone)


def _named(archive: Archive, state: State, targets: Sequence[str], step: Step) -> list[str]:
    found: dict[str, None] = {}
    for target in targets:
        if not is_place(target):
            found[RecordHash.parse(target.removeprefix(HASH_ADDRESS))] = None
            continue
        where = parse_coordinate(target)
        if where.version is not None:
            raise InvalidInput("a coordinate means all its versions: name one by its hash", rule="forget", found=target)
        question = ArchiveLookup(group=where.group, app=where.app, name=where.name)
        rows = find.rows(archive, state, question, MOST_NAMED + 1, step)
        if not rows:
            raise NotFound(f"there is no record at {where}", place=str(where))
        found |= dict.fromkeys(row["hash"] for row in rows)
    if len(found) > MOST_NAMED:
        raise InvalidInput(
            f"at most {MOST_NAMED:,} records are forgotten at a time", rule="forget-most", found=f"{len(found):,}"
        )
    return list(found)


class _Going(NamedTuple):
    """What of the named records is here, the parts that only these need, and what lies inside all of them."""

    present: list[str]
    parts: list[str]
    inner: list[str]


def _going(executor: Executor, named: Sequence[str]) -> _Going:
    rows = {row.hash: row for row in executor.described(named)}
    present = list(rows)
    gone = set(rows)
    waiting = {part for row in rows.values() for part in row.parts} - gone
    freed: list[str] = []
    while waiting:
        about = {row.hash: row for row in executor.described(sorted(waiting)) if row.is_only_a_part}
        linked: dict[str, set[str]] = {part: set() for part in about}
        for record, target in executor.links_to(sorted(about)):
            linked[target].add(record)
        waiting = set()
        for part, row in about.items():
            if linked[part] <= gone:
                gone.add(part)
                freed.append(part)
                rows[part] = row
                waiting |= set(row.parts) - gone
    inner = {name for row in rows.values() for name in row.inside if name != EMPTY_BLOB} - gone
    inner -= {row.hash for row in executor.described(sorted(inner))}  # what is stored by itself stays
    return _Going(present, freed, sorted(inner))


class DescribedRecord(NamedTuple):
    """What forgetting has to know of a record."""

    hash: str
    parts: tuple[str, ...]  # of content
    inside: tuple[str, ...]  # the Plex in a Seal, the Blob in either
    is_only_a_part: bool


DESCRIBED = ("hash", "type", "name", "data_length", "links", "plex_hash", "blob_hash")


def described_record(row: dict[str, object]) -> DescribedRecord:
    """A row of `records`, as both executors read it."""
    raw_links = row["links"] or ()
    assert isinstance(raw_links, Iterable)
    parts = tuple(link["target"] for link in raw_links if link["name"] == CHUNK_LINK)
    *_, folder, stretch = ("", "", *str(row["name"] or "").split("/"))
    is_part = row["type"] == "B" or (
        row["type"] == "P" and bool(parts) and folder == CHUNK_FOLDER and ".." in stretch and not row["data_length"]
    )
    inside = tuple(str(row[name]) for name in ("plex_hash", "blob_hash") if row[name])
    return DescribedRecord(str(row["hash"]), parts, inside, is_part)
