"""Received records into a store in bulk: judged by worker processes, committed in order (050, validation).

Rule: nothing is stored before it was judged, and nothing is acknowledged before it is durable. A record whose bytes
are not what was asked for is a reason, never an exception.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager

from lace.interlace import inputs as given
from lace.limits import IngestLimits, RecordLimits
from lace.records.keys import verify_batch
from lace.runtime.ingest import Claimed
from lace.runtime.judging import judge_here, verdict_of
from lace.store.base import RecordStore
from lace.store.checking import Checked
from lace.store.ingest import checkers

Submit = Callable[[Sequence[bytes]], "Future[Checked]"]


class Intake:
    """The receiving end of a transfer into one store."""

    def __init__(
        self, store: RecordStore, submit: Submit | None, committer: Executor, *, max_waiting: int, limits: IngestLimits
    ) -> None:
        self._store = store
        self._submit = submit
        self._committer = committer  # one thread: the order stays, and while it waits for a disk the sender reads on
        self._max_waiting = max_waiting
        self._limits = limits
        self._batch: list[Claimed] = []
        self._batch_bytes = 0
        self._waiting: deque[Future[list[given.LocalInput]]] = deque()

    def add(self, records: Sequence[Claimed]) -> Iterator[given.LocalInput]:
        """Take records in; answers come as batches are done."""
        self._batch += records
        self._batch_bytes += sum([len(data) for _, data in records])
        limits = self._limits
        if len(self._batch) >= limits.max_chunk_records or self._batch_bytes >= limits.max_chunk_bytes:
            yield from self._pass_on()

    def flush(self) -> Iterator[given.LocalInput]:
        """Judge and store everything that waits."""
        yield from self._pass_on()
        while self._waiting:
            yield from self._waiting.popleft().result()

    def _pass_on(self) -> Iterator[given.LocalInput]:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        if self._submit is None:
            yield from judge_here(batch, verify_batch).commit(self._store)
            return
        checked = self._submit([data for _, data in batch])
        self._waiting.append(self._committer.submit(self._commit, batch, checked))
        while len(self._waiting) > self._max_waiting:
            yield from self._waiting.popleft().result()

    def _commit(self, batch: list[Claimed], checked: Future[Checked]) -> list[given.LocalInput]:
        return verdict_of(batch, checked.result(), verify_batch).commit(self._store)


@contextmanager
def workers_for(record_count: int, limits: IngestLimits | None = None) -> Iterator[tuple[Submit | None, int]]:
    """Worker processes if there is enough to do, and how many; None for doing it here."""
    bounds = limits or IngestLimits()
    count = os.cpu_count() or 1
    if record_count < bounds.max_chunk_records:
        yield None, 0
        return
    with checkers(count, RecordLimits()) as submit:
        yield submit, count
