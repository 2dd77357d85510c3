"""The loops of a driver are woken for what they have to do, and for nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from lace.limits import SECOND_NS
from lace.runtime.clock import SteadyTai, SystemClock
from lace.runtime.link.stepper import LinkStepper
from lace.runtime.link.wakes import Wakes, set_within


@dataclass
class Asked:
    """What wakes ask of a link and its session."""

    has_data: bool = False
    next_timer: int | None = None

    @property
    def session(self) -> Asked:
        return self


def wakes() -> tuple[Wakes, Asked, SteadyTai]:
    asked, clock = Asked(), SteadyTai(SystemClock())
    return Wakes(cast(LinkStepper, asked), clock), asked, clock


@pytest.mark.parametrize("has_data", [True, False])
@pytest.mark.parametrize("is_over", [True, False])
def test_bytes_wake_the_loop_that_sends_and_so_does_the_end(has_data: bool, is_over: bool) -> None:
    async def run() -> None:
        made, asked, _ = wakes()
        asked.has_data = has_data
        made.after(is_over=is_over)
        assert made.moved.is_set()
        assert made.send.is_set() == (has_data or is_over)

    asyncio.run(run())


def test_a_time_that_moved_on_is_waited_for_again() -> None:
    async def run() -> None:
        made, asked, clock = wakes()
        asked.next_timer = clock.now_ns + SECOND_NS // 50
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0)
        asked.next_timer = clock.now_ns + 60 * SECOND_NS
        made.after(is_over=False)
        assert not await waiting  # the first time came, and is not the one any more
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0)
        asked.next_timer = clock.now_ns
        made.after(is_over=False)
        assert await waiting

    asyncio.run(run())


def test_without_a_time_nothing_is_due_until_one_is_set_or_all_is_over() -> None:
    async def run() -> None:
        made, asked, clock = wakes()
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        asked.next_timer = clock.now_ns - 1
        made.after(is_over=False)
        assert await waiting
        asked.next_timer = None
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0)
        made.after(is_over=True)
        assert not await waiting

    asyncio.run(run())


def test_an_event_is_waited_for_no_longer_than_said() -> None:
    async def run() -> None:
        event = asyncio.Event()
        assert not await set_within(event, 0.001)
        event.set()
        assert await set_within(event, 0)
        assert await set_within(event, None)

    asyncio.run(run())
