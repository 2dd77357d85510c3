"""What one link has taken in and not yet worked off: past its bounds nothing more is read from the peer.

Rule: the peer that sends faster than we store fills its own window, not our memory.
"""

from __future__ import annotations

import asyncio

from lace.runtime.bounds import Budget, DriveLimits
from lace.runtime.session import Session


class Waiting:
    """Counts what waits, tells the budget that all links share, and says when there is room again."""

    def __init__(self, session: Session, limits: DriveLimits, budget: Budget | None) -> None:
        self._session = session
        self._limits = limits
        self._budget = budget
        self._told = 0  # of what waits, to the budget
        self.storing_bytes = 0  # received, and being judged or committed
        self.room = asyncio.Event()  # set whenever something may have become less

    async def wait_for_room(self) -> None:
        while True:
            waiting = self._session.buffered + self.storing_bytes
            self.tell(waiting)
            # A link that holds nothing may always read: otherwise those that fill the budget would starve it.
            crowded = self._budget is not None and self._budget.held > self._budget.max_bytes and waiting > 0
            is_read = self._session.unsent_blocks <= self._limits.max_unsent_blocks
            if waiting <= self._limits.max_waiting_bytes and is_read and not crowded:
                return
            self.room.clear()
            if self._budget is not None and crowded:
                self._budget.freed.clear()
                await _first_of(self.room, self._budget.freed)
            else:
                await self.room.wait()

    async def drained(self) -> None:
        """Wait until little of what was put is still unsent."""
        while self._session.unsent_bytes > self._limits.max_unsent_bytes:
            self.room.clear()
            await self.room.wait()

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
