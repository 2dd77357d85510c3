"""Records that a peer sent, each under the hash it was asked for (050, validation).

Rule: what came under a hash is that record or a reason, never an exception; nothing is stored before it was judged,
and nothing is acknowledged before it is durable.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass

from lace.intake.check import Checked, Checker, check, checkers
from lace.intake.judge import Verify
from lace.limits import IngestLimits, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.keys import verify_batch
from lace.store.base import RecordStore
from lace.store.columns.encode import EncodedBatch

Claimed = tuple[str, bytes]  # the hash that was asked for, and what came under its name


@dataclass(frozen=True, slots=True)
class Received:
    """A judged batch: the records that are stored by `commit`, and the reasons against the others, by their hash."""

    size: int  # bytes of all that came
    stored: list[RecordHash]
    refused: dict[str, str]
    batch: EncodedBatch

    def commit(self, store: RecordStore) -> None:
        """Store what passed, durable on return."""
        if self.stored:
            store.put_encoded(self.batch)


def judge_received(batch: Sequence[Claimed], limits: RecordLimits, verify: Verify = verify_batch) -> Received:
    """Judge in this thread; `verify` may spread the signatures over others."""
    claimed, frames = split_claims(batch)
    return received_from(batch, check(frames, limits, verify, claimed))


def received_from(batch: Sequence[Claimed], checked: Checked) -> Received:
    """What a worker found in a batch that went to it by `split_claims`."""
    encoded = checked.batch([data for _, data in batch])
    refused = {batch[ordinal][0]: reason for ordinal, _, reason in checked.refused}
    return Received(sum([len(data) for _, data in batch]), list(map(RecordHash, encoded.hashes)), refused, encoded)


def split_claims(batch: Sequence[Claimed]) -> tuple[list[str], list[bytes]]:
    """The hashes and the frames of a batch."""
    return [claim for claim, _ in batch], [data for _, data in batch]


class Intake:
    """The receiving end of a transfer into one store: batches are judged side by side and committed in order."""

    def __init__(
        self,
        store: RecordStore,
        checker: Checker | None,
        committer: Executor,
        *,
        max_waiting: int,
        record_limits: RecordLimits,
        limits: IngestLimits,
    ) -> None:
        self._store = store
        self._checker = checker
        self._committer = committer  # one thread: the order stays, and while it waits for a disk the sender reads on
        self._max_waiting = max_waiting
        self._record_limits = record_limits
        self._limits = limits
        self._batch: list[Claimed] = []
        self._batch_bytes = 0
        self._waiting: deque[Future[Received]] = deque()

    def add(self, records: Sequence[Claimed]) -> Iterator[Received]:
        """Take records in; batches come out when they are durable."""
        self._batch += records
        self._batch_bytes += sum([len(data) for _, data in records])
        limits = self._limits
        if len(self._batch) >= limits.max_chunk_records or self._batch_bytes >= limits.max_chunk_bytes:
            yield from self._pass_on()

    def flush(self) -> Iterator[Received]:
        """Judge and store everything that waits."""
        yield from self._pass_on()
        while self._waiting:
            yield self._waiting.popleft().result()

    def _pass_on(self) -> Iterator[Received]:
        batch, self._batch, self._batch_bytes = self._batch, [], 0
        if not batch:
            return
        if self._checker is None:
            received = judge_received(batch, self._record_limits)
            received.commit(self._store)
            yield received
            return
        claimed, frames = split_claims(batch)
        checked = self._checker(frames, self._record_limits, claimed)
        self._waiting.append(self._committer.submit(self._commit, batch, checked))
        while len(self._waiting) > self._max_waiting:
            yield self._waiting.popleft().result()

    def _commit(self, batch: list[Claimed], checked: Future[Checked]) -> Received:
        received = received_from(batch, checked.result())
        received.commit(self._store)
        return received


@contextmanager
def checkers_for(record_count: int, limits: IngestLimits) -> Iterator[tuple[Checker | None, int]]:
    """Worker processes if there is enough to do, and how many; None for doing it here."""
    count = os.cpu_count() or 1
    if record_count < limits.max_chunk_records:
        yield None, 0
        return
    with checkers(count) as checker:
        yield checker, count
