"""The rules of a peer on the cluster: whose turn it is there, and what one evaluation may use of it (P36).

Rule: what is counted is counted for all steps of an evaluation together. What the driver evaluates itself it hands to
`engine`, which is where the bounds of that stand (`lace.runtime.guestprograms`).
"""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterator
from contextlib import contextmanager

from lace.errors import LimitExceeded
from lace.interlace.host import Call
from lace.runtime.fairness import FairDoor
from lace.runtime.guestprograms import ProgramEngine
from lace.values import dataclass


@dataclass(eq=False)
class ClusterGuest:
    """One evaluation."""

    engine: ProgramEngine
    door: FairDoor  # to the cluster: few evaluations of peers' rules at a time, next is who used least
    account: Hashable
    call: Call
    max_seconds: float  # on the cluster
    max_rows: int  # derived, by all rules together
    max_rounds: int
    rule: str = ""  # that is at work
    rows: int = 0
    rounds: int = 0
    used_s: float = 0.0
    was_late: bool = False
    _began: float | None = None

    @contextmanager
    def on_cluster(self) -> Iterator[None]:
        """A turn; a job that the call's watcher does not end in time ends at the next step."""
        with self.door.inside(self.account, self.call.check):
            self._began = time.monotonic()
            try:
                yield
            finally:
                self.used_s += time.monotonic() - self._began
                self._began = None

    @property
    def is_late(self) -> bool:
        """Whether it has had the cluster for too long."""
        began = self._began
        if began is not None and self.used_s + time.monotonic() - began > self.max_seconds:
            self.was_late = True
        return self.was_late

    def step(self, rule: str) -> None:
        """The next step, and the rule that is at work in it; raises if there is to be none."""
        self.call.check()
        if self.is_late:
            raise self.too_late()
        self.rule = rule or self.rule

    def too_late(self) -> LimitExceeded:
        """The error of having had the cluster for too long."""
        return LimitExceeded("max_guest_seconds", round(self.max_seconds), "a peer's rules on Spark", rule=self.rule)

    def derives(self, rows: int) -> bool:
        """Count rows; whether there may be so many."""
        self.rows += rows
        return self.rows <= self.max_rows

    def goes_round(self) -> bool:
        """Count a round of a recursion; whether there may be one more."""
        self.step("")
        self.rounds += 1
        return self.rounds <= self.max_rounds
