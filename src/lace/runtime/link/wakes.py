"""When the loops of a driver go on: there is work, there are bytes to send, a time has come.

Rule: a loop is woken for something that it has to do. A server of a hundred links would otherwise spend half of its
turns on loops that look around and lie down again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from lace.limits import SECOND_NS
from lace.runtime.clock import SteadyTai
from lace.runtime.link.stepper import LinkStepper


class Wakes:
    """One link's."""

    def __init__(self, link: LinkStepper, time: SteadyTai) -> None:
        self._link = link
        self._time = time
        self.moved = asyncio.Event()  # something has come or was done
        self.send = asyncio.Event()
        self._timer = asyncio.Event()
        self._awaited_ns: int | None = None  # the time that is being waited for; a later one may have been set since

    def after(self, *, is_over: bool) -> None:
        """The session was given something."""
        self.moved.set()
        if self._link.session.has_data or is_over:
            self.send.set()
        due = self._link.next_timer
        if is_over or (due is not None and (self._awaited_ns is None or due < self._awaited_ns)):
            self._timer.set()

    async def is_due(self) -> bool:
        """Wait for the session's timer, or for an earlier one to be set; whether it has come."""
        self._timer.clear()
        due = self._awaited_ns = self._link.next_timer
        delay_s = None if due is None else max(0.0, (due - self._time.now_ns) / SECOND_NS)
        await set_within(self._timer, delay_s)
        due = self._link.next_timer
        return due is not None and due <= self._time.now_ns


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
