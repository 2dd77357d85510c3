"""Who judges received records and works out roots: threads of this process, or worker processes if there is much to do.

Rule: either way the same records pass, and a verdict is committed in the order in which its batch came. A worker that
fails costs time, never a record: its batch is judged here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import cast

from lace.errors import LaceError
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.partitions import Partition, summarise
from lace.interlace.rootwork import pack, split, unpack
from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.judge import Verify
from lace.runtime.ingest import Claimed, Judged, commit, judge
from lace.store.base import RecordStore
from lace.store.checking import Checked
from lace.store.ingest import EncodedStore
from lace.store.worker import WorkerPool

Commit = Callable[[RecordStore], list[given.LocalInput]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged batch: how many bytes came, whether anything is to be stored, and how."""

    size: int
    is_any_valid: bool
    commit: Commit

    def commit_safely(self, store: RecordStore) -> list[given.LocalInput]:
        """Store what passed, durable on return; the machine's answers."""
        try:
            return self.commit(store)
        except LaceError as error:
            return [given.LocalFailed(str(error))]


def judge_here(batch: Sequence[Claimed], verify: Verify) -> Verdict:
    """Judge in this thread; `verify` may spread the signatures over others."""
    judged = judge(batch, None, verify)
    return Verdict(judged.size, bool(judged.valid), lambda store: _store_judged(store, judged))


def verdict_of(batch: Sequence[Claimed], checked: Checked, verify: Verify) -> Verdict:
    """The verdict of a worker; judged again here if it does not speak of exactly the records that were claimed."""
    reasons = {batch[ordinal][0]: reason for ordinal, _, reason in checked.refused}
    encoded = checked.batch([data for _, data in batch])
    claimed = [batch[ordinal][0] for ordinal in checked.kept]
    if list(encoded.hashes) != claimed or len(claimed) + len(reasons) != len(batch):
        return judge_here(batch, verify)

    def commit_encoded(store: RecordStore) -> list[given.LocalInput]:
        if claimed:
            cast("EncodedStore", store).put_encoded(encoded)
        return _answers(list(map(RecordHash, claimed)), reasons)

    return Verdict(sum([len(data) for _, data in batch]), bool(claimed), commit_encoded)


def _store_judged(store: RecordStore, judged: Judged) -> list[given.LocalInput]:
    return _answers(commit(store, judged), judged.reasons)


def _answers(stored: Sequence[RecordHash], reasons: dict[str, str]) -> list[given.LocalInput]:
    answers: list[given.LocalInput] = []
    if stored:
        answers.append(given.RecordsStored(stored))
    if reasons:
        answers.append(given.RecordsRejected(reasons))
    return answers


class Workers:
    """Worker processes, started in the background when they are first wanted.

    They judge what comes in and work out roots; while there is none, whoever asks does it himself.
    """

    def __init__(self, count: int | None = None) -> None:
        self._count = (os.cpu_count() or 1) if count is None else count
        self._pool: WorkerPool | None = None
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._closed = False

    def want(self) -> None:
        """Have them started; until they are there, `submit` gives None."""
        with self._lock:
            if self._starting is None and not self._closed and self._count > 0:
                self._starting = threading.Thread(target=self._start, name="lace-workers", daemon=True)
                self._starting.start()

    def _start(self) -> None:
        self._pool = pool = WorkerPool(self._count)
        for _ in range(self._count):  # each loads what roots need before it is asked for any
            pool.ask(pack({}, "", 0))

    @property
    def is_ready(self) -> bool:
        """Whether they were started."""
        return self._pool is not None and not self._closed

    def submit(self, frames: Sequence[bytes]) -> Future[Checked] | None:
        """Have a batch judged by a worker; None if there is none."""
        pool = self._pool
        return None if pool is None or self._closed else pool.check(frames, RecordLimits())

    def summarise(self, effect: asked.Summarise) -> given.Summarised:
        """Carry out Summarise: a share here and one on each other core, if there are workers for them."""
        pool = None if self._closed else self._pool
        shares = split(effect.parts, self._count if pool is not None else 1)
        source, longest = effect.source, effect.max_line_bytes
        waiting = [pool.ask(pack(share, source, longest)) for share in shares[1:]] if pool is not None else []
        found = summarise(shares[0], source, longest)
        for share, future in zip(shares[1:], waiting, strict=True):
            found += _shared(future) or summarise(share, source, longest)
        return given.Summarised(found)

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._closed = True
        if self._starting is not None:
            self._starting.join()
        if self._pool is not None:
            self._pool.close()


def _shared(future: Future[list[tuple[str, int, str]]]) -> list[Partition]:
    """What a worker worked out; nothing if it has not begun yet or died."""
    if future.cancel():
        return []
    try:
        return unpack(future.result())
    except (OSError, RuntimeError, LaceError, EOFError):
        return []
