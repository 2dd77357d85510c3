"""Follow an inbox: every bundle that is moved into a folder is added, one commit a micro-batch.

Rule: Structured Streaming decides which files come when, and remembers it in a checkpoint; the archive decides what is
new in them. A micro-batch that a crash makes run twice finds all its records there and commits nothing. So little as
needs no Spark needs no stream either: what is there now is taken in the same order, and the archive remembers it alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from lace.spark.archive.archive import Archive, addition_need
from lace.spark.archive.executors import is_for_process
from lace.spark.archive.versions import Input, LostRace, State
from lace.spark.session.failure import JobFailed, plainly, reason_of
from lace.spark.source.files import fingerprint, input_stats
from lace.spark.source.places import Place, placed
from lace.spark.source.source import FORMAT
from lace.spark.source.stream import move_apart
from lace.values import dataclass

Take = Callable[[Sequence[Place], int], None]
"""Add the files of a micro-batch, which has a number."""
_PASSING = (PySparkException, JobFailed, LostRace, OSError)  # what may go well the next time


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """What one micro-batch did."""

    number: int
    files: int
    records: int
    quarantined: int
    version: int
    lag_seconds: float  # how long its oldest file had waited when the commit was there
    seconds: float


@dataclass(frozen=True, slots=True)
class FollowPatience:
    """How often in a row a stream may fail, and how long it rests after that: doubled each time, up to a most."""

    restarts: int = 5
    first_seconds: float = 1.0
    most_seconds: float = 60.0


def checkpoint_uri(archive: Archive, inbox: Place) -> str:
    """Where a stream from an inbox into an archive remembers what it has read."""
    return f"{archive.files.uri}/streams/{fingerprint({'inbox': _absolute(inbox)})}"


def _absolute(inbox: Place) -> str:
    return str(inbox.absolute() if isinstance(inbox, Path) else inbox)


def follow(
    archive: Archive,
    inbox: Place,
    *,
    after: Callable[[State], object] = lambda _: None,
    told: Callable[[MicroBatch], None] = lambda _: None,
    every_seconds: float | None = 1.0,
    max_files: int = 1000,
    done: Path | None = None,
    patience: FollowPatience | None = None,
) -> None:
    """Add what comes into `inbox` until the process ends; with `every_seconds` None what is there now, and then stop.

    `after` is called with each version that was committed: the steps to run, for one. Files whose records were
    committed are moved to `done`, if that is given.
    """
    take = _taker(archive, after, told)
    waiting = _waiting_for_process(archive, inbox, all_of_them=done is not None) if every_seconds is None else None
    if waiting is not None:
        _take_waiting(waiting, take, max_files, done)
    else:
        _stream_on(archive, inbox, take, every_seconds, max_files, done, patience or FollowPatience())


def _taker(archive: Archive, after: Callable[[State], object], told: Callable[[MicroBatch], None]) -> Take:
    """What adds some files, has the steps run and reports it."""

    def take(paths: Sequence[Place], number: int) -> None:
        began = time.monotonic()
        before = archive.log.state()
        state = archive.add(paths)
        after(state)
        counts = state.batches[-1].counts if state.version > before.version else {}
        oldest = min((path.stat().st_mtime_ns for path in paths if path.exists()), default=time.time_ns()) / 1e9
        told(
            MicroBatch(
                number,
                len(paths),
                counts.get("valid", 0),
                counts.get("quarantined", 0),
                state.version,
                max(0.0, time.time() - oldest),
                time.monotonic() - began,
            )
        )

    return take


def _take_waiting(waiting: Sequence[Place], take: Take, max_files: int, done: Path | None) -> None:
    for number, at in enumerate(range(0, len(waiting), max_files)):
        taken = waiting[at : at + max_files]
        take(taken, number)
        if done is not None:
            for path in taken:
                if isinstance(path, Path):
                    move_apart(path, done.absolute())


def _stream_on(
    archive: Archive,
    inbox: Place,
    take: Take,
    every_seconds: float | None,
    max_files: int,
    done: Path | None,
    patience: FollowPatience,
) -> None:
    """A stream, and after a failure of Spark's another one from the same checkpoint, unless it keeps failing."""
    failures, taken = 0, 0
    ours: Exception | None = None

    def counted(paths: Sequence[Place], number: int) -> None:
        nonlocal taken, ours
        try:
            take(paths, number)
        except Exception as error:
            ours = None if isinstance(error, _PASSING) else error
            raise
        taken += 1

    while True:
        before = taken
        try:
            _stream(archive, inbox, counted, every_seconds, max_files, done)
            return
        except PySparkException as error:
            if ours is not None:  # it would be the same again
                raise ours from error
            failures = 1 if taken > before else failures + 1
            if failures > patience.restarts:
                raise _told(error) from error
            pause = min(patience.most_seconds, patience.first_seconds * 2 ** (failures - 1))
            reason = reason_of(str(error))
            archive.progress("follow", f"{reason}: again in {pause:g} s ({failures} of {patience.restarts})")
            time.sleep(pause)


def _told(error: PySparkException) -> Exception:
    return plainly("follow", error) or error


def _stream(
    archive: Archive, inbox: Place, take: Take, every_seconds: float | None, max_files: int, done: Path | None
) -> None:
    def take_batch(frame: DataFrame, number: int) -> None:
        paths = [placed(row["bundle"]) for row in frame.collect()]  # at most `max_files`
        if paths:
            take(paths, number)

    # Names alone: what is in the files the addition reads.
    reader = archive.spark.readStream.format(FORMAT).schema("bundle string")
    if done is not None:
        reader = reader.option("cleanSource", "archive").option("sourceArchiveDir", str(done.absolute()))
    stream = reader.option("rows", "files").option("maxFilesPerTrigger", str(max_files)).load(_absolute(inbox))
    writer = stream.writeStream.foreachBatch(take_batch).option("checkpointLocation", checkpoint_uri(archive, inbox))
    trigger = (
        writer.trigger(availableNow=True)
        if every_seconds is None
        else writer.trigger(processingTime=f"{round(every_seconds * 1000)} milliseconds")
    )
    query = trigger.start()
    try:
        query.awaitTermination()
    finally:
        query.stop()


def _waiting_for_process(archive: Archive, inbox: Place, *, all_of_them: bool) -> list[Place] | None:
    """The files of an inbox that were not read, or all of them, oldest first; None if they are too much for this way.

    A file that was read and not moved away, since a crash came between, is found there by the archive.
    """
    state = archive.log.state()
    there = {
        path: Input(address=str(path), size=stat.st_size, modified_ns=stat.st_mtime_ns)
        for path, stat in input_stats([inbox])
    }
    read = {item for batch in state.batches for item in batch.inputs.values()}
    new = {path: item for path, item in there.items() if item.size and item not in read}
    if not is_for_process(archive, addition_need(state, new.values())):
        return None
    wanted = there if all_of_them else new
    return sorted(wanted, key=lambda path: (wanted[path].modified_ns, str(path)))
