"""Who checks chunks of frames: worker processes, or this one.

Rule: a verdict is `check`'s, wherever it was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import closing, contextmanager
from typing import Protocol

from lace.intake.check import Checked, check, check_job
from lace.limits import RecordLimits
from lace.workers.pool import WorkerPool


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
