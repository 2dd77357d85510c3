"""Worker processes for received records and roots, and what the machine hears of a judged batch.

Rule: a worker that fails costs time, never a record or a root: whoever asked does its work himself.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future

from lace.errors import LaceError
from lace.intake.check import Checked, check_job
from lace.intake.received import Claimed, Received, split_claims
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.partitions import Partition, summarise
from lace.interlace.rootwork import pack, split, unpack
from lace.limits import RecordLimits
from lace.store.base import RecordStore
from lace.workers.pool import BackgroundPool


def answers(received: Received) -> list[given.LocalInput]:
    """What the machine hears of a batch that was committed."""
    heard: list[given.LocalInput] = []
    if received.stored:
        heard.append(given.RecordsStored(received.stored))
    if received.refused:
        heard.append(given.RecordsRejected(received.refused))
    return heard


def commit_safely(received: Received, store: RecordStore) -> list[given.LocalInput]:
    """Store what passed, durable on return; the machine's answers."""
    try:
        received.commit(store)
    except LaceError as error:
        return [given.LocalFailed(str(error))]
    return answers(received)


class Workers(BackgroundPool):
    """Worker processes that judge what comes in and work out roots."""

    def __init__(self, count: int | None = None) -> None:
        super().__init__(count, first=pack({}, "", 0))  # what roots need is loaded before any is asked for

    def submit(self, batch: Sequence[Claimed], limits: RecordLimits) -> Future[Checked] | None:
        """Have a batch judged by a worker; None if there is none."""
        claimed, frames = split_claims(batch)
        return self.ask(check_job(frames, limits, claimed), frames)

    def summarise(self, effect: asked.Summarise) -> given.Summarised:
        """Carry out Summarise: a share here and one on each other core, if there are workers for them."""
        shares = split(effect.parts, self.count if self.is_ready else 1)
        source, longest = effect.source, effect.max_line_bytes
        waiting = [self.ask(pack(share, source, longest)) for share in shares[1:]]
        found = summarise(shares[0], source, longest)
        for share, future in zip(shares[1:], waiting, strict=True):
            found += _shared(future) or summarise(share, source, longest)
        return given.Summarised(found)


def _shared(future: Future[list[tuple[str, int, str]]] | None) -> list[Partition]:
    """What a worker worked out; nothing if it has not begun yet or died."""
    if future is None or future.cancel():
        return []
    try:
        return unpack(future.result())
    except (OSError, RuntimeError, LaceError, EOFError):
        return []
