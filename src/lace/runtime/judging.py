"""Received records on their way into the store: several batches are judged at once, and committed in their order.

Rule: a few short records are judged where they are committed: handing them from thread to thread takes longer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from lace.interlace import inputs as given
from lace.interlace.host import Arrived, Call, Host, store
from lace.limits import KIB
from lace.runtime.hostcalls import HostCalls
from lace.runtime.waiting import Waiting

FEW = 16  # records
_SHORT = 64 * KIB


class Judging:
    """The batches of one link that are being judged; no more than a few, so that a fast peer waits."""

    def __init__(self, host: Host[Any], calls: HostCalls, judges: Executor, waiting: Waiting, most: int) -> None:
        self._host = host
        self._calls = calls
        self._judges = judges  # wait for worker processes, which nothing else should wait behind
        self._waiting = waiting
        self._under_way: asyncio.Queue[tuple[asyncio.Task[Any] | list[Arrived], int]] = asyncio.Queue(most)

    async def begin(self, batch: list[Arrived]) -> None:
        size = sum([len(data) for _, data in batch])
        if len(batch) <= FEW and size <= _SHORT:
            await self._under_way.put((batch, size))
            return
        judging = self._calls.call(partial(self._host.judge, batch), self._judges)
        await self._under_way.put((asyncio.create_task(judging), size))

    async def commit_next(self) -> Sequence[given.LocalInput]:
        """Commit the oldest batch, once it is judged, while the next ones are being judged."""
        begun, size = await self._under_way.get()
        if isinstance(begun, list):
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


def _judge_and_store(host: Host[Any], batch: list[Arrived], call: Call) -> Sequence[given.LocalInput]:
    return store(host, host.judge(batch, call), call)
