"""Received records on their way into the store: several batches are judged at once, and committed in their order.

Rule: a few short records are judged where they are committed, and what our set becomes by them is worked out there as
well: handing them from thread to thread takes longer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from lace.errors import LaceError
from lace.interlace import inputs as given
from lace.interlace.host import Arrived, Call, Host, store
from lace.limits import KIB
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.link.session import ReceivedRecords, Request, Session
from lace.runtime.link.waiting import Waiting
from lace.runtime.node.bounds import DriveLimits

FEW = 16  # records
_SHORT = 64 * KIB


class Judging:
    """The batches of one link that are being judged; no more than a few, so that a fast peer waits."""

    def __init__(self, host: Host[Any], calls: HostCalls, judges: Executor, waiting: Waiting, most: int) -> None:
        self._host = host
        self._calls = calls
        self._judges = judges  # wait for worker processes, which nothing else should wait behind
        self._waiting = waiting
        self._under_way: asyncio.Queue[tuple[asyncio.Task[Any] | Sequence[Arrived], int]] = asyncio.Queue(most)

    async def begin(self, received: ReceivedRecords) -> None:
        batch, size = received.records, received.size
        if len(batch) <= FEW and size <= _SHORT:
            await self._under_way.put((batch, size))
            return
        judging = self._calls.call(partial(self._host.judge, batch), self._judges)
        await self._under_way.put((asyncio.create_task(judging), size))

    async def commit_next(self) -> Sequence[given.LocalInput]:
        """Commit the oldest batch, once it is judged, while the next ones are being judged."""
        begun, size = await self._under_way.get()
        if not isinstance(begun, asyncio.Task):
            answers = await self._calls.call(partial(_judge_and_store, self._host, begun))
        else:
            answers = await self._calls.call(partial(store, self._host, await begun))
        self._waiting.storing_bytes -= size
        return answers

    def drop(self) -> list[asyncio.Task[Any]]:
        """Give up on what is under way; the tasks, for somebody to cancel."""
        tasks = []
        while not self._under_way.empty():
            begun, _ = self._under_way.get_nowait()
            if isinstance(begun, asyncio.Task):
                tasks.append(begun)
        return tasks


class Gathering:
    """One batch of what arrives close together: many records are judged and stored in half the time of few."""

    def __init__(
        self, work: deque[Request], session: Session, wake: asyncio.Event, over: asyncio.Event, limits: DriveLimits
    ) -> None:
        self._work = work  # what comes next
        self._session = session
        self._wake = wake  # there is more of it
        self._over = over
        self._limits = limits
        self.is_waiting = False  # for more

    async def batch(self, first: ReceivedRecords) -> ReceivedRecords:
        """The records of a request, and of those that follow it."""
        batch, size = list(first.records), first.size
        while size < self._limits.max_batch_bytes and await self._comes_more():
            more = self._work.popleft()
            if isinstance(more, ReceivedRecords):
                batch += more.records
                size += more.size
        return ReceivedRecords(batch, size)

    async def _comes_more(self) -> bool:
        """Whether the next request holds records too; waits for it a moment while records are outstanding."""
        self.is_waiting = False
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.linger_s):
                while not self._work and self._session.machine.expects_records and not self._over.is_set():
                    self._wake.clear()
                    self.is_waiting = True
                    await self._wake.wait()
        return bool(self._work) and isinstance(self._work[0], ReceivedRecords)


def _judge_and_store(host: Host[Any], batch: Sequence[Arrived], call: Call) -> Sequence[given.LocalInput]:
    answers = store(host, host.judge(batch, call), call)
    shared = host.shared
    if shared is not None and any(isinstance(one, given.RecordsStored) for one in answers):
        following = Call(payer=call.payer, may_wait=False)
        with contextlib.suppress(LaceError):  # NotNow; any other error the next caller that asks for the set gets too
            shared.refresh(following)
        call.cpu_s += following.cpu_s
    return answers
