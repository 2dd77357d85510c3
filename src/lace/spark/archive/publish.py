"""Publish: bundles with exactly the records that a peer may have and was not given before.

Rule: what was given is a table of the archive, written in the same commit that says the step is done. A crash before it
leaves bundles that nobody counts: they are written again, and a record that comes twice is one record.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.errors import InvalidInput
from lace.spark.archive import fewrun, tables
from lace.spark.archive.archive import Archive
from lace.spark.archive.choosing import Ends, WantedRecords, ends_of, records_for
from lace.spark.archive.log import Commit, DataFile, State, StepResult
from lace.spark.archive.run import rules_mark
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.jobs.reconcile import partition_prefix
from lace.spark.source.source import FORMAT

FOLDER = "published"


def is_published(state: State, peers: Sequence[PeerPolicy]) -> bool:
    """Whether every peer was given all that it may have; asked without Spark."""
    return all(_is_done(state, peer) for peer in peers)


def _is_done(state: State, peer: PeerPolicy) -> bool:
    done, selected = state.results.get(_key(peer.name)), state.results.get(f"selected:{rules_mark(peer)}")
    return (
        done is not None
        and selected is not None
        and done.mark == selected.mark
        and (done.batches, done.removals) == (selected.batches, selected.removals)
    )


def require_names(peers: Sequence[PeerPolicy]) -> None:
    """Raise InvalidInput for a peer whose name is no name of a folder."""
    for peer in peers:
        if peer.name != Path(peer.name).name or peer.name.startswith("."):
            raise InvalidInput("a peer's name is the name of its folder", rule="publish-peer", found=peer.name)


def _key(peer: str) -> str:
    return f"publish:{peer}"


def publish(archive: Archive, peers: Sequence[PeerPolicy], target: Path | None = None) -> State:
    """Write what is new for each peer under TARGET/PEER/VERSION; what each may have is that of the last run."""
    # Absolute: whoever writes the bundles runs in another folder.
    folder = target.absolute() if target is not None else archive.files.folder and archive.files.folder / FOLDER
    if folder is None:
        raise InvalidInput(
            "bundles are written to a folder of this machine: say which", rule="publish-folder", place=archive.files.uri
        )
    require_names(peers)
    written: list[Path] = []

    def work(state: State) -> Commit | None:
        for left in written:  # another writer was first: what was written for its version counts for nothing
            shutil.rmtree(left, ignore_errors=True)
        written.clear()
        if is_published(state, peers):
            archive.progress("publish", "nothing new")
            return None
        results: dict[str, StepResult] = {}
        added: list[DataFile] = []
        for peer in peers:
            if _is_done(state, peer):
                continue
            place = folder / peer.name / f"{state.version + 1:08d}"
            written.append(place)
            new, results[_key(peer.name)] = _publish_one(archive, state, peer, place)
            added += new
        counts = {name: count for result in results.values() for name, count in result.counts.items()}
        return Commit(operation="publish", counts=counts, added=tuple(added), results=results)

    return archive.commit(work)


def _publish_one(archive: Archive, state: State, peer: PeerPolicy, place: Path) -> tuple[list[DataFile], StepResult]:
    began = time.monotonic()
    mark = rules_mark(peer)
    selected = state.results.get(f"selected:{mark}")
    if selected is None:
        raise InvalidInput(
            "what this peer may have has not been worked out: run `lace archive run` first",
            rule="publish-order",
            found=peer.name,
        )
    unseen = _unseen(state, peer, selected)
    few = fewrun.unpublished(archive, state, unseen.files, unseen.batches, held_by(state, peer.name))
    if few is not None:
        rows, made = len(few.hashes), fewrun.write_published(archive, peer.name, few, place)
    else:
        rows, made = _publish_by_jobs(archive, state, peer, unseen, place)
    counts = {f"published {peer.name}": rows}
    archive.progress(f"publish for {peer.name}", f"{rows:,} new records")
    seconds = round(time.monotonic() - began, 3)
    done = StepResult(mark=mark, batches=selected.batches, removals=selected.removals, counts=counts, seconds=seconds)
    return made, done


def _publish_by_jobs(
    archive: Archive, state: State, peer: PeerPolicy, unseen: _Unseen, place: Path
) -> tuple[int, list[DataFile]]:
    selected = _selected(archive, unseen)
    given = held_by(state, peer.name)
    if unseen.is_all and not given:
        fresh, ends, is_all = selected, ends_of(unseen.files), True  # whole files: their commit knows
    else:
        fresh = _not_given(archive, selected, unseen, given).persist()
        ends = Ends(*fresh.agg(F.min("hash"), F.max("hash"), F.count(F.lit(1))).collect()[0])
        is_all = not given or ends.rows == selected.count()
    made: list[DataFile] = []
    if ends.rows:
        wanted = WantedRecords(fresh, ends, unseen.batches, is_all)
        records = records_for(archive, state, peer, wanted)
        records.select("stored").write.format(FORMAT).mode("overwrite").save(str(place))
        named = fresh.select(F.lit(peer.name).alias("peer"), partition_prefix(), "hash")
        made = tables.write(archive.spark, archive.files, "published", named, by=("hash",), rows=ends.rows, move=False)
    fresh.unpersist()
    return ends.rows, made


class _Unseen(NamedTuple):
    """What was selected since a peer was last given something: the files that say so, and the batches."""

    files: list[DataFile]
    batches: list[str]
    is_all: bool  # every row of the files counts, whatever its batch


def _unseen(state: State, peer: PeerPolicy, selected: StepResult) -> _Unseen:
    """Of the batches that the selection has seen: the archive may have newer ones."""
    files = [file for file in state.table("selected") if file.low.get("rules") == selected.mark]
    before = state.results.get(_key(peer.name))
    # Removed records may make others selected, and other rules any: then every selected row is looked at.
    if before is None or (before.mark, before.removals) != (selected.mark, state.removals):
        return _Unseen(files, list(selected.batches), True)
    seen = set(before.batches)
    files = [file for file in files if not seen.issuperset(file.batches)]
    return _Unseen(files, [batch for batch in selected.batches if batch not in seen], False)


def _selected(archive: Archive, unseen: _Unseen) -> DataFrame:
    """The hashes that a peer may have, of what it was not told of."""
    rows = tables.read(archive.spark, archive.files, "selected", unseen.files)
    return (rows if unseen.is_all else rows.where(F.col("batch").isin(*unseen.batches))).select("hash")


def _not_given(archive: Archive, hashes: DataFrame, unseen: _Unseen, held: Sequence[DataFile]) -> DataFrame:
    """Those of some hashes that are not among what a peer was given."""
    if not held:
        return hashes
    given = tables.read(archive.spark, archive.files, "published", held).select("hash")
    if sum(file.rows for file in unseen.files) <= archive.few.sent_to_tasks:  # what was given stays where it is
        given = given.join(F.broadcast(hashes), on="hash", how="left_semi")
    return hashes.join(given, on="hash", how="left_anti")


def held_by(state: State, peer: str) -> list[DataFile]:
    """The files with what a peer was given."""
    return [file for file in state.table("published") if file.low.get("peer") == peer]


def lacking(archive: Archive, state: State) -> DataFrame:
    """(archive, prefix, records): how many records each peer may have and was not given, by partition.

    A peer counts here once it was listed for (`run`); what it has from elsewhere is not known.
    """
    spark, files = archive.spark, archive.files
    listed = tables.read(spark, files, "advertisements", list(state.table("advertisements"))).select("peer", "hash")
    given = tables.read(spark, files, "published", list(state.table("published"))).select("peer", "hash")
    missing = listed.join(given, on=["peer", "hash"], how="left_anti")
    counted = missing.groupBy("peer", partition_prefix()).agg(F.count(F.lit(1)).alias("records"))
    return counted.select(F.col("peer").alias("archive"), "prefix", "records")
