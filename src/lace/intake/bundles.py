"""Bundles into a store, with bounded memory.

Rule: one writer, and before it any number of workers that parse, hash and verify; what is refused is counted by its
rule and handed to a sink with its reason, and the good records go in.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import closing, contextmanager
from dataclasses import field
from pathlib import Path
from typing import Protocol, TextIO

from lace.errors import StoreError
from lace.intake.check import Checked, check, check_job
from lace.limits import IngestLimits, RecordLimits
from lace.notation.stopping import Interrupt, asking, go_on, never
from lace.records.model import DEFAULT_LIMITS
from lace.store.base import RecordStore
from lace.store.bundle import BundleReader, Frame, RejectedBytes
from lace.store.columns.segments.encode import EncodedBatch, without_records
from lace.store.forgotten import forgotten_among
from lace.values import dataclass
from lace.workers.collector import seldom_collecting
from lace.workers.pool import WorkerDied, WorkerPool

_LOOK_S = 0.01  # how often the caller is asked while workers check
_DOING = "bundles were imported; what was stored stays"

RejectedSink = Callable[[Path, RejectedBytes], None]


@dataclass(slots=True)
class ImportReport:
    """What became of the records of an import so far."""

    stored: int = 0
    present: int = 0  # stored before, or twice in the bundles
    forgotten: int = 0  # left out, because they were forgotten here
    rejected: Counter[str] = field(default_factory=Counter)  # by rule
    bytes: int = 0  # of the bundles, good and bad
    total_bytes: int = 0

    @property
    def rejected_total(self) -> int:
        return self.rejected.total()


Progress = Callable[[ImportReport], None]


class RejectedFile:
    """A sink: one JSON object a line with bundle, offset, rule, reason, and the refused bytes in base64 as `data`."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def __call__(self, bundle: Path, rejected: RejectedBytes) -> None:
        line = {
            "bundle": str(bundle), "offset": rejected.offset, "bytes": len(rejected.data),
            "rule": rejected.rule, "reason": rejected.reason, "data": b64encode(rejected.data).decode("ascii"),
        }  # fmt: skip
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")


@dataclass(frozen=True, slots=True)
class _Chunk:
    bundle: Path
    frames: list[Frame]
    size: int


def import_bundles(
    store: RecordStore,
    paths: Iterable[Path],
    *,
    workers: int | None = None,
    rejected_sink: RejectedSink | None = None,
    progress: Progress | None = None,
    record_limits: RecordLimits = DEFAULT_LIMITS,
    limits: IngestLimits | None = None,
    stop: Interrupt = never,
) -> ImportReport:
    """Store every good record of some bundles; each chunk is durable before `progress` hears of it.

    `stop` is asked between records that are read, and while workers check: CallStopped once it says yes.

    `workers` is the number of processes; 0 does all work here, None takes one for each core unless it is little work.
    """
    readers = [(path, BundleReader(path, limits=record_limits)) for path in paths]
    bounds = limits or IngestLimits()
    report = ImportReport(total_bytes=sum(reader.bytes for _, reader in readers))
    if workers is None:
        workers = os.cpu_count() or 1 if report.total_bytes > bounds.min_bytes_for_workers else 0
    keep = _Keeper(store, report, rejected_sink, progress, stop)
    waiting: deque[tuple[_Chunk, Future[Checked]]] = deque()
    with checkers(workers) as checked, seldom_collecting():
        for chunk in _chunks(readers, keep.reject, bounds, stop):
            waiting.append((chunk, checked([frame.data for frame in chunk.frames], record_limits)))
            del chunk  # it may be long: once stored, nothing holds it while the next is read
            while len(waiting) > workers + 1 or sum(one.size for one, _ in waiting) > bounds.max_waiting_bytes:
                keep.store(*waiting.popleft())
        while waiting:
            keep.store(*waiting.popleft())
    return report


def _chunks(
    readers: list[tuple[Path, BundleReader]], reject: RejectedSink, bounds: IngestLimits, stop: Interrupt
) -> Iterator[_Chunk]:
    for path, reader in readers:
        frames: list[Frame] = []
        size = 0
        for item in asking(reader.records(), stop, _DOING):
            if isinstance(item, RejectedBytes):
                reject(path, item)
                continue
            frames.append(item)
            size += len(item.data)
            del item
            if len(frames) >= bounds.max_chunk_records or size >= bounds.max_chunk_bytes:
                full, frames = _Chunk(path, frames, size), []
                size = 0
                yield full
                del full
        if frames:
            yield _Chunk(path, frames, size)


class _Keeper:
    """Takes verdicts in order: stores, counts, reports."""

    def __init__(
        self,
        store: RecordStore,
        report: ImportReport,
        sink: RejectedSink | None,
        progress: Progress | None,
        stop: Interrupt,
    ) -> None:
        self._store = store
        self._report = report
        self._sink = sink
        self._progress = progress
        self._stop = stop

    def reject(self, bundle: Path, rejected: RejectedBytes) -> None:
        self._report.rejected[rejected.rule] += 1
        self._report.bytes += len(rejected.data)
        if self._sink is not None:
            self._sink(bundle, rejected)

    def store(self, chunk: _Chunk, verdict: Future[Checked]) -> None:
        patience_s = None if self._stop is never else _LOOK_S
        while not wait([verdict], patience_s).done:
            go_on(self._stop, _DOING)
        try:
            checked = verdict.result()
        except WorkerDied as error:
            raise StoreError(f"{error}; what was reported as stored is safe") from None
        report = self._report
        report.bytes += chunk.size
        for ordinal, rule, reason in checked.refused:
            frame = chunk.frames[ordinal]
            report.bytes -= len(frame.data)
            self.reject(chunk.bundle, RejectedBytes(frame.offset, frame.data, rule, reason))
        new = gone = 0
        if checked.kept:
            new, gone = self._keep(checked.batch([frame.data for frame in chunk.frames]))
        report.stored += new
        report.forgotten += gone
        report.present += len(chunk.frames) - len(checked.refused) - new - gone
        if self._progress is not None:
            self._progress(report)

    def _keep(self, batch: EncodedBatch) -> tuple[int, int]:
        """Store a batch; how many of its records are new, and how many were forgotten here and stay out."""
        with self._store.together():  # so that nobody forgets a record of it meanwhile
            gone = forgotten_among(self._store, batch.hashes)
            return self._store.put_encoded(without_records(batch, gone) if gone else batch), len(gone)


class Checker(Protocol):
    """Has chunks of frames checked, somewhere."""

    def __call__(
        self, frames: Sequence[bytes], limits: RecordLimits, claimed: Sequence[str] | None = None, /
    ) -> Future[Checked]: ...


@contextmanager
def checkers(count: int) -> Iterator[Checker]:
    """A way to have chunks checked: by `count` processes or right here."""
    if count == 0:
        yield lambda frames, limits, claimed=None: _done(check(frames, limits, claimed=claimed))
        return
    with closing(WorkerPool(count)) as pool:
        yield lambda frames, limits, claimed=None: pool.ask(check_job(frames, limits, claimed), frames)


def _done(checked: Checked) -> Future[Checked]:
    future: Future[Checked] = Future()
    future.set_result(checked)
    return future
