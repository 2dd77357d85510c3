"""Our own side of a link: the store and the evaluator behind one blocking surface.

Rule: every method here may block and runs in a thread of the driver's choosing; none of them knows streams or phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from lace.errors import LaceError, LocalProtocolError
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.cursor import AdvertisementCursor
from lace.interlace.partitions import summarise
from lace.limits import RecordLimits
from lace.runtime.loading import Loaded, stored_batches
from lace.store.base import RecordStore

CURSORS = "cursor"  # the settings namespace of advertisement cursors


class PolicyEvaluator(Protocol):
    """Makes the local executable of a plan and evaluates it."""

    def prepare(self, effect: asked.PreparePolicy) -> given.PolicyPrepared | given.PolicyRefused: ...

    def evaluate(self, effect: asked.Evaluate) -> given.Evaluated | given.EvaluationFailed: ...

    def get_ready(self) -> None: ...


class LocalSide:
    """One link's view of the store."""

    def __init__(
        self,
        store: RecordStore,
        make_evaluator: Callable[[], PolicyEvaluator],
        record_limits: RecordLimits | None = None,
    ) -> None:
        self.store = store
        self.record_limits = record_limits or RecordLimits()
        self._make_evaluator = make_evaluator
        self._evaluator: PolicyEvaluator | None = None  # made for the first plan

    def load_cursor(self, key: str) -> given.LocalInput:
        """What was kept for this link."""
        return self._guard(lambda: given.CursorLoaded(self.store.get_setting(CURSORS, key)))

    def save_cursor(self, key: str, cursor: AdvertisementCursor) -> None:
        """Keep a cursor; losing one costs the next exchange a listing, so failures are not errors."""
        try:
            self.store.put_setting(CURSORS, key, cursor.encode())
        except LaceError:
            return

    def prepare(self, effect: asked.PreparePolicy) -> given.LocalInput:
        """The local executable of a plan."""
        if self._evaluator is None:
            self._evaluator = self._make_evaluator()
        evaluator = self._evaluator
        return self._guard(lambda: evaluator.prepare(effect))

    def evaluate(self, effect: asked.Evaluate) -> given.LocalInput:
        """Evaluate over the newest snapshot."""
        evaluator = self._evaluator
        if evaluator is None:
            raise LocalProtocolError("nothing was prepared to evaluate")
        return self._guard(lambda: evaluator.evaluate(effect))

    def get_ready(self) -> None:
        """Both sides rest: prepare for small changes."""
        if self._evaluator is not None:
            self._evaluator.get_ready()

    @staticmethod
    def summarise(effect: asked.Summarise) -> given.Summarised:
        """The roots of many partitions."""
        return given.Summarised(summarise(effect.parts, effect.source, effect.max_line_bytes))

    def load(self, hashes: Sequence[str], max_records: int, max_bytes: int) -> Iterator[Loaded]:
        """Stored bytes batch by batch, None for what is no longer there; each step may block."""
        return stored_batches(self.store, hashes, max_records, max_bytes)

    @staticmethod
    def _guard(work: Callable[[], given.LocalInput]) -> given.LocalInput:
        try:
            return work()
        except LaceError as error:
            return given.LocalFailed(str(error))
