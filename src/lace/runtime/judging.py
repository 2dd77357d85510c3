"""Received records on their way into the store: several batches are judged at once, and committed in their order."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from lace.interlace import inputs as given
from lace.interlace.host import Arrived, Host, store
from lace.runtime.hostcalls import HostCalls
from lace.runtime.waiting import Waiting


class Judging:
    """The batches of one link that are being judged; no more than a few, so that a fast peer waits."""

    def __init__(self, host: Host[Any], calls: HostCalls, judges: Executor, waiting: Waiting, most: int) -> None:
        self._host = host
        self._calls = calls
        self._judges = judges  # wait for worker processes, which nothing else should wait behind
        self._waiting = waiting
        self._under_way: asyncio.Queue[tuple[asyncio.Task[Any], int]] = asyncio.Queue(most)

    async def begin(self, batch: list[Arrived]) -> None:
        judging = self._calls.call(partial(self._host.judge, batch), self._judges)
        size = sum([len(data) for _, data in batch])
        await self._under_way.put((asyncio.create_task(judging), size))

    async def commit_next(self) -> Sequence[given.LocalInput]:
        """Commit the oldest batch, once it is judged, while the next ones are being judged."""
        judging, size = await self._under_way.get()
        answers = await self._calls.call(partial(store, self._host, await judging))
        self._waiting.storing_bytes -= size
        return answers

    def drop(self) -> list[asyncio.Task[Any]]:
        """Give up on what is under way; the tasks, for somebody to cancel."""
        tasks = []
        while not self._under_way.empty():
            tasks.append(self._under_way.get_nowait()[0])
        return tasks
