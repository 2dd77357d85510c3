"""What one link has received and not yet processed: past its bounds we read nothing more from the peer.

Rule: the peer that sends faster than we store fills its own window, not our memory.
"""

from __future__ import annotations

import asyncio

from lace.runtime.link.session import Session
from lace.runtime.link.stepper import LinkStepper
from lace.runtime.node.bounds import Budget, DriveLimits

REQUEST_BYTES = 110  # of memory for one record that the peer named in a request, and for a line that it is not here
CLAIM_BYTES = 450  # of memory for one claim of a peer, measured on listings without fields
LINE_FACTOR = 6  # of memory for each byte of a block that is being read: what its claims will take is taken now


class Backlog:
    """Counts what waits, tells the budget that all links share, and says when there is room again."""

    def __init__(
        self,
        session: Session,
        link: LinkStepper,
        limits: DriveLimits,
        budget: Budget | None,
        strangers: Budget | None = None,
    ) -> None:
        self._link = link
        self._session = session
        self._limits = limits
        self._budget = budget
        self._told = 0  # of what waits, to the budget
        self._strangers = strangers  # of all that strangers hold, claims as well; None for whom we know
        self._told_held = 0
        self.is_full: bool = False  # nothing is read from the peer now
        self.room: asyncio.Event = asyncio.Event()  # set whenever something may have become less

    async def wait_for_room(self) -> None:
        while True:
            waiting = self._session.buffered + self._link.storing_bytes
            self.tell(waiting)
            # A link that holds nothing may always read: otherwise those that fill the budget would starve it.
            crowded = self._budget is not None and self._budget.held > self._budget.max_bytes and waiting > 0
            crowded = crowded or self._holds_too_much()
            is_read = self._session.outbox.blocks <= self._limits.max_unsent_blocks
            if waiting <= self._limits.max_waiting_bytes and is_read and not crowded:
                self.is_full = False
                return
            self.is_full = True
            self.room.clear()
            budgets = [budget for budget in (self._budget, self._strangers) if budget is not None]
            if crowded:
                for budget in budgets:
                    budget.freed.clear()
                await _first_of(self.room, *(budget.freed for budget in budgets))
            else:
                await self.room.wait()

    @property
    def held(self) -> int:
        """About what this link keeps in memory: what waits both ways, the block at hand, claims that are not ours,
        requests that have no answer."""
        session, machine = self._session, self._session.machine
        claims = machine.foreign_claims * CLAIM_BYTES + machine.block_bytes * LINE_FACTOR
        requests = (machine.unserved_requests + session.outbox.facts) * REQUEST_BYTES
        return session.buffered + self._link.storing_bytes + session.outbox.bytes + claims + requests

    def _holds_too_much(self) -> bool:
        """Whether strangers together hold more than they may, and this one more than its share of that."""
        budget = self._strangers
        if budget is None:
            return False
        self.tell_held(self.held)
        return budget.held > budget.max_bytes and self._told_held > budget.max_bytes // max(1, budget.holders)

    def tell_held(self, held: int) -> None:
        """Tell what strangers hold together."""
        if self._strangers is not None and held != self._told_held:
            self._strangers.holders += (held > 0) - (self._told_held > 0)
            self._strangers.change(held - self._told_held)
            self._told_held = held

    def tell(self, waiting: int) -> None:
        """Tell the shared budget what this link holds."""
        if self._budget is not None and waiting != self._told:
            self._budget.change(waiting - self._told)
            self._told = waiting


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
