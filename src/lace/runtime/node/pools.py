"""Who does the work of a node: threads for its store, for judging and for evaluating, and worker processes.

Rule: all links share them, and all nodes of a process the threads that idle. Each kind of work that waits for something
has a number of threads of its own, so that nothing else waits behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from importlib import import_module
from typing import TypeVar

from lace.errors import LaceError
from lace.runtime.link.turns import LoopTurns
from lace.runtime.node.fairness import FairThreads
from lace.runtime.node.links import NodeLimits
from lace.runtime.node.workers import SlicedVerify, Workers
from lace.runtime.rules.guesthouse import GuestHouse, GuestLimits
from lace.store.base import RecordStore
from lace.workers.lending import BorrowedThreads

T = TypeVar("T")
OURSELVES = 0  # among the numbers of links: what is done for all of them


class NodePools:
    """Threads and processes, from the start of a node to its end."""

    def __init__(
        self, store: RecordStore, limits: NodeLimits, verify_slices: int, guest_limits: GuestLimits | None
    ) -> None:
        self.turns: LoopTurns = LoopTurns()
        most_long = max(1, (os.cpu_count() or 1) - 1)  # one core is the event loop's
        self.threads: FairThreads = FairThreads(limits.threads, "lace", most_long=most_long, ours=[OURSELVES])
        self.workers: Workers = Workers(limits.workers)
        self.evaluators: BorrowedThreads = BorrowedThreads(limits.max_links, "lace-evaluate")
        self.judges: BorrowedThreads = BorrowedThreads(self.workers.count + 1, "lace-judge")
        self.verify: SlicedVerify = SlicedVerify(self.threads.of(OURSELVES), verify_slices)
        self.house: GuestHouse = GuestHouse(getattr(store, "path", None), guest_limits, limits.threads)

    async def in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.threads.of(OURSELVES), work)

    async def load_engine(self) -> None:
        """What the first peer's rules will need, while no peer waits for it."""
        await self.in_thread(lambda: import_module("lace.runtime.rules.guests"))

    async def end(self, last_work: Callable[[], object], until: float) -> bool:
        """Do one last thing, then let everybody go; whether all work ended in time (of the event loop's clock).

        Threads cannot be killed: those that still work are left behind.
        """
        loop = asyncio.get_running_loop()
        with contextlib.suppress(LaceError, TimeoutError):
            await asyncio.wait_for(self.in_thread(last_work), max(0.1, until - loop.time()))
        self.house.close()
        pools = (self.threads, self.judges, self.evaluators)
        for pool in pools:
            pool.shutdown()
        while (is_busy := any(pool.at_work for pool in pools)) and loop.time() <= until:
            await asyncio.sleep(0.005)
        self.workers.close()
        return not is_busy
