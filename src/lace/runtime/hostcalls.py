"""What one link asks of its host: in threads, charged to the peer, and cancelled when the link ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from functools import partial
from time import thread_time
from typing import TypeVar

from lace.interlace.host import Call
from lace.runtime.clock import SteadyTai
from lace.runtime.metering import LinkMeter

T = TypeVar("T")


class HostCalls:
    """The calls of a link that are under way."""

    def __init__(self, threads: Executor, evaluators: Executor | None, meter: LinkMeter, time: SteadyTai) -> None:
        self._threads = threads
        self._evaluators = evaluators or threads  # wait for their turn, which nothing else should wait behind
        self._meter = meter
        self._time = time
        self._under_way: set[Call] = set()
        self._evaluation: Call | None = None  # the one of them that may take long

    async def call(self, work: Callable[[Call], T], threads: Executor | None = None) -> T:
        """One call to the host, in a thread."""
        with self.calling() as call:
            return await self.in_thread(work, call, threads=threads)

    async def evaluate(self, work: Callable[[Call], T]) -> T:
        with self.calling() as call:
            self._evaluation = call
            try:
                return await self.in_thread(work, call, threads=self._evaluators)
            finally:
                self._evaluation = None
                self._charge(call.cpu_s)  # of a process of its own, which the thread only waited for

    @contextlib.contextmanager
    def calling(self) -> Iterator[Call]:
        """A call that is cancelled when the link ends."""
        call = Call()
        self._under_way.add(call)
        try:
            yield call
        finally:
            self._under_way.discard(call)

    async def in_thread(self, work: Callable[..., T], *arguments: object, threads: Executor | None = None) -> T:
        timed = partial(_timed, partial(work, *arguments))
        result, cpu_s = await asyncio.get_running_loop().run_in_executor(threads or self._threads, timed)
        self._charge(cpu_s)
        return result

    def _charge(self, cpu_s: float) -> None:
        self._meter.charge("cpu_s", cpu_s, self._time.now_ns)

    def cancel_evaluation(self) -> None:
        if self._evaluation is not None:
            self._evaluation.cancel()

    def cancel(self) -> None:
        for call in list(self._under_way):
            call.cancel()


def _timed(work: Callable[[], T]) -> tuple[T, float]:
    started = thread_time()
    return work(), thread_time() - started
