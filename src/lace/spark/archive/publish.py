"""Publish: bundles with exactly the records that a peer may have and was not given before.

Rule: what was given is a table of the archive, written in the same commit that says the step is done. A crash before it
leaves bundles that nobody counts: they are written again, and a record that comes twice is one record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lace.errors import InvalidInput
from lace.spark.archive.archive import Archive
from lace.spark.archive.executors import Need, Steps, Unseen, files_bytes, files_rows
from lace.spark.archive.run import rules_mark
from lace.spark.archive.versions import BatchRange, Commit, DataFile, State, StepResult
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.source.places import Place, TargetFolder, folder_at

FOLDER = "published"
BUNDLES = "bundles"


def is_published(state: State, peers: Sequence[PeerPolicy]) -> bool:
    """Whether every peer was given all that it may have; asked without Spark."""
    return all(_is_done(state, peer) for peer in peers)


def _is_done(state: State, peer: PeerPolicy) -> bool:
    done, selected = state.results.get(_key(peer.name)), state.results.get(f"selected:{rules_mark(peer)}")
    return (
        done is not None
        and selected is not None
        and done.mark == selected.mark
        and (done.seen, done.removals) == (selected.seen, selected.removals)
    )


def require_names(peers: Sequence[PeerPolicy]) -> None:
    """Raise InvalidInput for a peer whose name is no name of a folder."""
    for peer in peers:
        if peer.name != Path(peer.name).name or peer.name.startswith("."):
            raise InvalidInput("a peer's name is the name of its folder", rule="publish-peer", found=peer.name)


def _key(peer: str) -> str:
    return f"publish:{peer}"


def publish(
    archive: Archive,
    peers: Sequence[PeerPolicy],
    target: Place | None = None,
    *,
    whole: Callable[[Path, Path], None] | None = None,
) -> State:
    """Write what is new for each peer under TARGET/PEER/VERSION; what each may have is that of the last run.

    `target` is a folder, here or at an address that pyarrow knows. With `whole` one of this machine is written from
    nothing instead, all that a peer may have under TARGET/PEER/bundles, and `whole` is called with the two folders
    before the commit that says so.
    """
    chosen = target if target is not None else archive.files.folder and archive.files.folder / FOLDER
    if chosen is None:
        raise InvalidInput("say where to write bundles: --to FOLDER", rule="publish-folder", place=archive.files.uri)
    folder = folder_at(chosen)
    require_names(peers)
    written: list[TargetFolder] = []

    def work(state: State) -> Commit | None:
        for left in written:  # another writer was first: what was written for its version counts for nothing
            left.clear()
        written.clear()
        if is_published(state, peers):
            archive.progress("publish", "nothing new")
            return None
        results: dict[str, StepResult] = {}
        added: list[DataFile] = []
        dropped: list[str] = []
        for peer in peers:
            if _is_done(state, peer):
                continue
            if whole is not None:
                folder.inside(peer.name).clear()
                dropped += [file.path for file in held_by(state, peer.name)]
            place = folder.inside(peer.name, BUNDLES if whole is not None else f"{state.version + 1:08d}")
            written.append(place)
            new, results[_key(peer.name)] = _publish_one(archive, state, peer, place, whole is not None)
            added += new
            if whole is not None:
                bundles = Path(place.address)
                bundles.mkdir(parents=True, exist_ok=True)
                whole(bundles.parent, bundles)
        counts = {name: count for result in results.values() for name, count in result.counts.items()}
        return Commit(operation="publish", counts=counts, added=tuple(added), dropped=tuple(dropped), results=results)

    return archive.commit(work)


def _publish_one(
    archive: Archive, state: State, peer: PeerPolicy, place: TargetFolder, is_whole: bool
) -> tuple[list[DataFile], StepResult]:
    began = time.monotonic()
    mark = rules_mark(peer)
    selected = state.results.get(f"selected:{mark}")
    if selected is None:
        raise InvalidInput(
            "what this peer may have has not been worked out: run `lace archive run` first",
            rule="publish-order",
            found=peer.name,
        )
    unseen = _unseen(state, None if is_whole else state.results.get(_key(peer.name)), selected)
    given = [] if is_whole else held_by(state, peer.name)
    records = [file for file in state.table("records") if unseen.batches.meets(file)]
    need = Need(bytes=max(files_bytes(unseen.files), files_bytes(records)), scanned_rows=files_rows(given))
    step = Steps(archive, state).step(f"publish for {peer.name}")
    rows, made = step.do(need, lambda executor: executor.publish(peer, unseen, given, place.address))
    step.tell(f"{rows:,} new records")
    done = StepResult(
        mark=mark,
        seen=selected.seen,
        removals=selected.removals,
        counts={f"published {peer.name}": rows},
        seconds=round(time.monotonic() - began, 3),
        way=step.way,
    )
    return made, done


def _unseen(state: State, before: StepResult | None, selected: StepResult) -> Unseen:
    """Of the batches that the selection has seen: the archive may have newer ones."""
    files = [file for file in state.table("selected") if file.low.get("rules") == selected.mark]
    # Removed records may make others selected, and other rules any: then every selected row is looked at.
    if before is None or (before.mark, before.removals) != (selected.mark, state.removals):
        return Unseen(files, BatchRange("", selected.seen), True)
    unseen = BatchRange(before.seen, selected.seen)
    return Unseen([file for file in files if unseen.meets(file)], unseen, False)


def held_by(state: State, peer: str) -> list[DataFile]:
    """The files with what a peer was given."""
    return [file for file in state.table("published") if file.low.get("peer") == peer]
