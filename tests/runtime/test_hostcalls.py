"""Calls to a host: in a thread, paid whatever becomes of them, and given up with the link or with the threads."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lace.errors import LaceError
from lace.interlace.host import Call
from lace.runtime.clock import SteadyTai, SystemClock
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.node.metering import LinkMeter, LinkRates


class Calls:
    """The calls of a link over one thread."""

    def __init__(self, threads: ThreadPoolExecutor) -> None:
        clock = SteadyTai(SystemClock())
        self.meter = LinkMeter(LinkRates(), clock.now_ns)
        self.host = HostCalls(threads, None, self.meter, clock)

    @property
    def paid(self) -> float:
        return self.meter.used["cpu_s"]


def run(test: Callable[[Calls, ThreadPoolExecutor], Any]) -> None:
    async def all_of_it() -> None:
        with ThreadPoolExecutor(1) as threads:
            await test(Calls(threads), threads)

    asyncio.run(all_of_it())


def busy(call: Call) -> str:
    until = time.thread_time() + 0.01
    while time.thread_time() < until:
        pass
    return "done"


def test_an_answer_and_its_price_come_together() -> None:
    async def test(calls: Calls, threads: ThreadPoolExecutor) -> None:
        assert await calls.host.call(busy) == "done"
        assert calls.paid >= 0.01

    run(test)


def test_an_error_reaches_whoever_asked_is_paid_and_waits_for_no_collector() -> None:
    class Kept(LaceError):
        pass

    def failing(call: Call) -> None:
        busy(call)
        raise Kept("no")

    async def test(calls: Calls, threads: ThreadPoolExecutor) -> None:
        seen: list[weakref.ref[BaseException]] = []
        gc.disable()
        try:
            try:
                await calls.host.call(failing)
            except Kept as error:
                seen.append(weakref.ref(error))
            await calls.host.call(busy)  # the thread is at something else now
            assert [one() for one in seen] == [None]
        finally:
            gc.enable()
        assert calls.paid >= 0.02

    run(test)


def test_whoever_hangs_up_pays_all_the_same() -> None:
    async def test(calls: Calls, threads: ThreadPoolExecutor) -> None:
        begun, may_end = threading.Event(), threading.Event()

        def slow(call: Call) -> None:
            begun.set()
            assert may_end.wait(10)
            busy(call)

        asking = asyncio.create_task(calls.host.call(slow))
        await asyncio.to_thread(begun.wait, 10)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        may_end.set()
        async with asyncio.timeout(10):
            while calls.paid < 0.01:
                await asyncio.sleep(0.001)

    run(test)


def test_what_waits_behind_others_is_not_begun_for_a_link_that_ended() -> None:
    async def test(calls: Calls, threads: ThreadPoolExecutor) -> None:
        may_end, begun = threading.Event(), []
        threads.submit(may_end.wait, 10)
        asking = asyncio.create_task(calls.host.call(lambda call: begun.append(call)))
        await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        may_end.set()
        assert await calls.host.call(busy) == "done"
        assert not begun

    run(test)


def test_threads_that_end_leave_nobody_waiting() -> None:
    async def test(calls: Calls, threads: ThreadPoolExecutor) -> None:
        may_end = threading.Event()
        threads.submit(may_end.wait, 10)
        asking = asyncio.create_task(calls.host.call(busy))
        await asyncio.sleep(0.01)
        threads.shutdown(wait=False, cancel_futures=True)
        may_end.set()
        async with asyncio.timeout(10):
            with pytest.raises(asyncio.CancelledError):
                await asking

    run(test)
