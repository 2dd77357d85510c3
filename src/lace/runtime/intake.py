"""Received records into a store in bulk: judged by worker processes, committed in order (050, validation).

Rule: nothing is stored before it was judged, and nothing is acknowledged before it is durable. A record whose bytes
are not what was asked for is a reason, never an exception.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import cast

from lace.interlace import inputs as given
from lace.limits import IngestLimits, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.runtime.ingest import Claimed, commit, judge
from lace.store.base import RecordStore
from lace.store.checking import Checked
from lace.store.ingest import EncodedStore, checkers

Submit = Callable[[Sequence[bytes]], "Future[Checked]"]


class Intake:
    """The receiving end of a transfer into one store."""

    def __init__(self, store: RecordStore, submit: Submit | None, *, max_waiting: int, max_batch: int) -> None:
        self._store = store
        self._submit = submit
        self._max_waiting = max_waiting
        self._max_batch = max_batch
        self._batch: list[Claimed] = []
        self._waiting: deque[tuple[list[Claimed], Future[Checked]]] = deque()

    def add(self, records: Sequence[Claimed]) -> Iterator[given.LocalInput]:
        """Take records in; answers come as batches are done."""
        self._batch += records
        if len(self._batch) >= self._max_batch:
            yield from self._pass_on()

    def flush(self) -> Iterator[given.LocalInput]:
        """Judge and store everything that waits."""
        yield from self._pass_on()
        while self._waiting:
            yield from self._commit(*self._waiting.popleft())

    def _pass_on(self) -> Iterator[given.LocalInput]:
        batch, self._batch = self._batch, []
        if not batch:
            return
        if self._submit is None:
            judged = judge(batch)
            stored = commit(self._store, judged)
            yield from _answers(stored, judged.reasons)
            return
        self._waiting.append((batch, self._submit([data for _, data in batch])))
        while len(self._waiting) > self._max_waiting:
            yield from self._commit(*self._waiting.popleft())

    def _commit(self, batch: list[Claimed], verdict: Future[Checked]) -> Iterator[given.LocalInput]:
        checked = verdict.result()
        reasons = {batch[ordinal][0]: reason for ordinal, _, reason in checked.refused}
        # The bytes decide their own hash; under another name than that they were not asked for.
        claimed = [batch[ordinal][0] for ordinal in checked.kept]
        encoded = checked.batch([data for _, data in batch])
        if list(encoded.hashes) != claimed or len(checked.kept) + len(reasons) != len(batch):
            judged = judge(batch)
            yield from _answers(commit(self._store, judged), judged.reasons)
            return
        if claimed:
            cast("EncodedStore", self._store).put_encoded(encoded)
        yield from _answers([RecordHash(text) for text in encoded.hashes], reasons)


def _answers(stored: Sequence[RecordHash], reasons: dict[str, str]) -> Iterator[given.LocalInput]:
    if stored:
        yield given.RecordsStored(stored)
    if reasons:
        yield given.RecordsRejected(reasons)


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
