"""The rules of a peer on the cluster: whose turn it is there, and what one evaluation may use of it (P36).

Rule: what is counted is counted for all steps of an evaluation together. What the driver evaluates itself it hands to
`engine`, which is where the bounds of that stand (`lace.runtime.rules.guestprograms`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from contextlib import AbstractContextManager, contextmanager

from lace.errors import LaceError, LimitExceeded
from lace.interlace.host import Call
from lace.runtime.node.fairness import FairDoor
from lace.runtime.rules.guestprograms import ProgramEngine
from lace.values import dataclass

_LOOK_S = 0.05


class GaveWay(LaceError):
    """A guest left the cluster to others; it may come again."""


@dataclass(eq=False)
class ClusterGuest:
    """One evaluation. Tasks that run are not taken from their cores by others that wait: a guest who has had its slice
    gives way, and begins again with twice as much."""

    engine: ProgramEngine
    door: FairDoor  # to the cluster: few evaluations of peers' rules at a time, next is who used least
    account: Hashable
    call: Call
    present: Callable[[], AbstractContextManager[None]]  # from when it wants the cluster until it has left it
    others_wait: Callable[[], bool]  # whether anybody else wants the cluster
    slice_s: float  # that others wait for it at most
    max_seconds: float  # on the cluster, of all slices
    max_rows: int  # derived, by all rules together
    max_rounds: int
    rule: str = ""  # that is at work
    rows: int = 0
    rounds: int = 0
    used_s: float = 0.0
    was_late: bool = False
    gave_way: bool = False
    _began: float | None = None

    @contextmanager
    def on_cluster(self) -> Iterator[None]:
        """A turn; a job that the call's watcher does not end in time ends at the next step."""
        with self.present(), self.door.inside(self.account, self.call.check):
            until = time.monotonic() + self.slice_s
            while self.others_wait() and time.monotonic() < until:
                self.call.check()
                time.sleep(_LOOK_S)
            self._began = time.monotonic()
            try:
                yield
            finally:
                self.used_s += time.monotonic() - self._began
                self._began = None

    @property
    def has_to_go(self) -> bool:
        """Whether it has had the cluster for too long, or for as long as others wait for it."""
        if (began := self._began) is not None:
            now = time.monotonic()
            self.was_late = self.was_late or self.used_s + now - began > self.max_seconds
            self.gave_way = self.gave_way or (now - began > self.slice_s and self.others_wait())
        return self.was_late or self.gave_way

    def step(self, rule: str) -> None:
        """The next step, and the rule that is at work in it; raises if there is to be none."""
        self.call.check()
        if self.has_to_go:
            raise self.reason()
        self.rule = rule or self.rule

    def reason(self) -> LaceError:
        """Why it had to go."""
        if not self.was_late:
            return GaveWay("others waited for the cluster")
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
