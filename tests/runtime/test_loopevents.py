"""Waits on an event loop: for a time that moves, for an event and no longer."""

from __future__ import annotations

import asyncio

from lace.limits import SECOND_NS
from lace.runtime.clock import SteadyTai, SystemClock
from lace.runtime.loopevents import DueTimer, set_within


class Times:
    """A time that is moved, and what came of it."""

    def __init__(self) -> None:
        self.clock = SteadyTai(SystemClock())
        self.due: int | None = None
        self.has_come = asyncio.Event()
        self.timer = DueTimer(lambda: self.due, self.clock, self._come)

    def _come(self) -> None:
        self.due = None
        self.has_come.set()

    def move(self, to_ns: int) -> None:
        self.due = self.clock.now_ns + to_ns
        self.timer.look()


def test_a_time_that_moved_on_is_waited_for_again() -> None:
    async def run() -> None:
        times = Times()
        times.move(SECOND_NS // 50)
        times.move(SECOND_NS // 10)
        assert not await set_within(times.has_come, 0.05)  # the first time came, and is not the one any more
        assert await set_within(times.has_come, 10)

    asyncio.run(run())


def test_an_earlier_time_is_not_missed() -> None:
    async def run() -> None:
        times = Times()
        times.move(60 * SECOND_NS)
        times.move(0)
        assert await set_within(times.has_come, 10)

    asyncio.run(run())


def test_without_a_time_nothing_comes_and_after_the_end_neither() -> None:
    async def run() -> None:
        times = Times()
        times.timer.look()
        assert not await set_within(times.has_come, 0.01)
        times.move(SECOND_NS // 100)
        times.timer.close()
        assert not await set_within(times.has_come, 0.03)

    asyncio.run(run())


def test_an_event_is_waited_for_no_longer_than_said() -> None:
    async def run() -> None:
        event = asyncio.Event()
        assert not await set_within(event, 0.001)
        event.set()
        assert await set_within(event, 0)
        assert await set_within(event, None)

    asyncio.run(run())
