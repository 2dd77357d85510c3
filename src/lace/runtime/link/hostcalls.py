"""What one link asks of its host: in threads, charged to the peer, and cancelled when the link ends.

Rule: work is charged when it ends, by the thread that did it. A peer that hangs up meanwhile pays all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from time import thread_time
from typing import TypeVar

from lace.interlace.host import Call
from lace.runtime.clock import SteadyTai
from lace.runtime.node.metering import LinkMeter

T = TypeVar("T")
E = TypeVar("E")


class HostCalls:
    """The calls of a link that are under way."""

    def __init__(self, threads: Executor, evaluators: Executor | None, meter: LinkMeter, time: SteadyTai) -> None:
        self._threads = threads
        self._evaluators = evaluators or threads  # wait for their turn, which nothing else should wait behind
        self._meter = meter
        self._time = time
        self._loop = asyncio.get_running_loop()
        self._under_way: set[Call] = set()
        self._evaluation: Call | None = None  # the one of them that may take long

    async def call(self, work: Callable[[Call], T], threads: Executor | None = None) -> T:
        """One call to the host, in a thread."""
        with self.calling() as call:
            return await self.in_thread(partial(work, call), call, threads)

    async def evaluate(self, work: Callable[[Call], T]) -> T:
        with self.calling() as call:
            self._evaluation = call
            try:
                return await self.in_thread(partial(work, call), call, self._evaluators)
            finally:
                self._evaluation = None

    @contextlib.contextmanager
    def calling(self) -> Iterator[Call]:
        """A call that is cancelled when the link ends."""
        call = Call(payer=self)
        self._under_way.add(call)
        try:
            yield call
        finally:
            self._under_way.discard(call)

    async def in_thread(self, work: Callable[[], T], call: Call, threads: Executor | None) -> T:
        """As `run_in_executor`, but the loop is woken once: for the answer and its price.

        An error holds the frames that it came through. None of them may hold the future that holds the error, so
        threads are handed that in a list, and take it out.
        """
        answer: asyncio.Future[T] = self._loop.create_future()
        handed = [answer]
        queued = (threads or self._threads).submit(self._paid, work, call, handed)
        queued.add_done_callback(partial(self._given_up, handed))
        try:
            return await answer
        except asyncio.CancelledError:
            queued.cancel()
            raise
        finally:
            del answer

    def _paid(self, work: Callable[[], T], call: Call, handed: list[asyncio.Future[T]]) -> None:
        """In a thread."""
        started, answer = thread_time(), handed.pop()
        try:
            tell = partial(_unless_done, answer, answer.set_result, work())
        except BaseException as error:  # noqa: BLE001 - it belongs to the caller that waits for the answer
            tell = partial(_unless_done, answer, answer.set_exception, error)
        spent = thread_time() - started + call.cpu_s
        self._soon(partial(self._settle, spent, tell))
        del tell, answer

    def _settle(self, cpu_s: float, tell: Callable[[], None]) -> None:
        self._charge(cpu_s)
        tell()

    def _given_up(self, handed: list[asyncio.Future[T]], queued: Future[None]) -> None:
        """The pool was shut down, or the caller stopped waiting, before the work began."""
        if queued.cancelled():
            self._soon(handed.pop().cancel)

    def pay(self, cpu_s: float) -> None:
        """From any thread."""
        self._soon(partial(self._charge, cpu_s))

    def _soon(self, work: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # of a thread that outlived the loop
            self._loop.call_soon_threadsafe(work)

    def _charge(self, cpu_s: float) -> None:
        self._meter.charge("cpu_s", cpu_s, self._time.now_ns)

    def cancel_evaluation(self) -> None:
        if self._evaluation is not None:
            self._evaluation.cancel()

    def cancel(self) -> None:
        for call in list(self._under_way):
            call.cancel()


def _unless_done(answer: asyncio.Future[T], tell: Callable[[E], None], found: E) -> None:
    """Set an answer, unless its caller has stopped waiting."""
    if not answer.done():
        tell(found)
