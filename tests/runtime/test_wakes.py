"""The loops of a driver are woken for what they have to do, and for nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

import pytest

from lace.limits import SECOND_NS
from lace.runtime.clock import SteadyTai, SystemClock
from lace.runtime.link.session import Session
from lace.runtime.link.wakes import Wakes, set_within


@dataclass
class Asked:
    """What wakes ask of a session."""

    has_data: bool = False
    next_timer: int | None = None


def wakes() -> tuple[Wakes, Asked, SteadyTai]:
    asked, clock = Asked(), SteadyTai(SystemClock())
    return Wakes(cast(Session, asked), clock), asked, clock


@pytest.mark.parametrize("has_work", [True, False])
@pytest.mark.parametrize("has_data", [True, False])
@pytest.mark.parametrize("is_over", [True, False])
def test_work_and_bytes_wake_their_loops_and_the_end_wakes_all(has_work: bool, has_data: bool, is_over: bool) -> None:
    async def run() -> None:
        made, asked, _ = wakes()
        asked.has_data = has_data
        made.after(has_work=has_work, is_over=is_over)
        assert made.work.is_set() == (has_work or is_over)
        assert made.send.is_set() == (has_data or is_over)

    asyncio.run(run())


def test_a_time_that_moved_on_is_waited_for_again() -> None:
    async def run() -> None:
        made, asked, clock = wakes()
        asked.next_timer = clock.now_ns + SECOND_NS // 50
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0)
        asked.next_timer = clock.now_ns + 60 * SECOND_NS
        made.after(has_work=False, is_over=False)
        assert not await waiting  # the first time came, and is not the one any more
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0)
        asked.next_timer = clock.now_ns
        made.after(has_work=False, is_over=False)
        assert await waiting

    asyncio.run(run())


def test_without_a_time_nothing_is_due_until_one_is_set_or_all_is_over() -> None:
    async def run() -> None:
        made, asked, clock = wakes()
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0.01)
        assert not waiting.done()
        asked.next_timer = clock.now_ns - 1
        made.after(has_work=False, is_over=False)
        assert await waiting
        asked.next_timer = None
        waiting = asyncio.create_task(made.is_due())
        await asyncio.sleep(0)
        made.after(has_work=False, is_over=True)
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
