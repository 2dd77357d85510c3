"""Waiting on an event loop: for an event and no longer than so long, from other threads, for a time that moves.

Rule: nothing here makes a task: a server of a hundred links has several of these waits for each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from lace.limits import SECOND_NS
from lace.runtime.clock import SteadyTai


class DueTimer:
    """Calls when a time has come that others move meanwhile."""

    def __init__(self, due: Callable[[], int | None], time: SteadyTai, come: Callable[[], None]) -> None:
        self._due = due
        self._time = time
        self._come = come
        self._set: asyncio.TimerHandle | None = None
        self._set_ns = 0

    def look(self) -> None:
        """Change the time: an earlier one is set now, a later one when the time already set has come."""
        due = self._due()
        if due is not None and (self._set is None or due < self._set_ns):
            if self._set is not None:
                self._set.cancel()
            self._set_ns = due
            delay_s = max(0.0, (due - self._time.now_ns) / SECOND_NS)
            self._set = asyncio.get_running_loop().call_later(delay_s, self._ring)

    def _ring(self) -> None:
        self._set, due = None, self._due()
        if due is not None and due <= self._time.now_ns:
            self._come()
        else:
            self.look()

    def close(self) -> None:
        """Call no more, and let go of whom it would call."""
        if self._set is not None:
            self._set.cancel()
        self._set, self._due, self._come = None, lambda: None, lambda: None


async def set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event for so long; whether it is set. `wait_for` would make a task of that."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
    return event.is_set()


def setter(event: asyncio.Event) -> Callable[[], None]:
    """What sets an event of this loop from any thread; once the loop has ended, nothing."""
    loop = asyncio.get_running_loop()

    def set_it() -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(event.set)

    return set_it
