"""Worker processes for received records and roots.

Rule: a worker that fails costs time, never a record or a root: the caller does the work itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor, Future

from lace.errors import LaceError
from lace.intake.check import Checked, check_job
from lace.intake.received import Claimed, split_claims
from lace.interlace.claims.partitions import Partition, Parts, summarise
from lace.interlace.claims.sharedroots import is_worth_sharing, pack, split, unpack
from lace.limits import RecordLimits
from lace.records.keys import verify_batch
from lace.records.model import DEFAULT_LIMITS
from lace.records.validate import SignatureTask
from lace.workers.pool import BackgroundPool


class Workers(BackgroundPool):
    """Worker processes that judge what comes in and work out roots."""

    def __init__(self, count: int | None = None) -> None:
        # What roots need is loaded before any is asked for, then what records need, which come later.
        super().__init__(count, first=(pack({}, "", 0), check_job((), DEFAULT_LIMITS)))

    def submit(self, batch: Sequence[Claimed], limits: RecordLimits) -> Future[Checked] | None:
        """Have a batch judged by a worker; None if there is none."""
        claimed, frames = split_claims(batch)
        return self.ask(check_job(frames, limits, claimed), frames)

    def summarise(self, parts: Parts, source: str, max_line_bytes: int) -> list[Partition]:
        """Roots of many partitions: a share here and one on each other core, if there are workers for them."""
        shares = split(parts, self.count if self.is_ready and is_worth_sharing(parts) else 1)
        waiting = [self.ask(pack(share, source, max_line_bytes)) for share in shares[1:]]
        found = summarise(shares[0], source, max_line_bytes)
        for share, future in zip(shares[1:], waiting, strict=True):
            found += _shared(future) or summarise(share, source, max_line_bytes)
        return found


def _shared(future: Future[list[tuple[str, int, str]]] | None) -> list[Partition]:
    """A worker's result; None if it has not begun or has died."""
    if future is None or future.cancel():
        return []
    try:
        return unpack(future.result())
    except (OSError, RuntimeError, LaceError, EOFError):
        return []


class SlicedVerify:
    """Verifies signatures in several threads: most slices in the pool, the last one in the thread that asks, so that a
    full pool cannot lock itself."""

    def __init__(self, threads: Executor, max_slices: int) -> None:
        self._threads = threads
        self._max_slices = max_slices

    def __call__(self, tasks: Sequence[SignatureTask]) -> list[str | None]:
        slices = max(1, min(self._max_slices, len(tasks) // 32))
        size = -(-len(tasks) // slices) or 1
        parts = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        futures = [self._threads.submit(verify_batch, part) for part in parts[:-1]]
        last = verify_batch(parts[-1]) if parts else []
        reasons: list[str | None] = []
        for part, future in zip(parts, futures, strict=False):
            # A job that has not begun is taken back and done here.
            reasons += verify_batch(part) if future.cancel() else future.result()
        return reasons + last
