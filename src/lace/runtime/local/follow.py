"""An open exchange between two laces of this process, as a stream of events (050, open exchange).

Rule: both sides run in one worker thread, so that a slow listener or a busy event loop delays only itself. What this
process stores it says; what another one does is noticed by the stores' cursors, which are looked at now and then.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.result import InterlaceResult
from lace.interlace.setup.terms import Rules
from lace.limits import SECOND_NS
from lace.runtime.clock import SystemClock
from lace.runtime.local.local import ExchangeAborted, LocalExchange
from lace.runtime.local.party import Party
from lace.runtime.loopevents import setter
from lace.store.base import StoreCursor

POLL_S = 0.1  # how soon a commit of another process is noticed
MAX_EVENTS = 100_000


class LocalFollow:
    """Iterate for `(side, event)`; `async with` ends the exchange at a phase boundary."""

    def __init__(
        self,
        first: Party,
        second: Party,
        *,
        poll_s: float = POLL_S,
    ) -> None:
        self._events: deque[tuple[int, Event]] = deque(maxlen=MAX_EVENTS)  # the newest, if nobody reads
        self._exchange = LocalExchange(first, second, clock=SystemClock(), on_event=self._hear)
        self._parties = (first, second)
        self._poll_s = poll_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="lace-follow")
        self._seen: list[StoreCursor] = [StoreCursor(), StoreCursor()]
        self._wake = asyncio.Event()
        self._news: list[tuple[int, given.LocalInput]] = []
        self._is_started = False

    def _hear(self, side: int, event: Event) -> None:
        self._events.append((side, event))

    # --- for the application -----------------------------------------------------------------------------------

    def change_rules(self, side: int, rules: Rules) -> None:
        """One side selects and shows something else from now on: a new epoch (050-OPEN-05)."""
        self._news.append((side, given.RulesChanged(rules)))
        self._wake.set()

    async def close(self) -> None:
        """End the exchange at the next phase boundary."""
        if not self._is_over and self._is_started:
            await self._in_thread(self._end)
        self._exchange.__exit__()
        self._thread.shutdown()

    def results(self) -> tuple[InterlaceResult, InterlaceResult]:
        """What both sides have to report so far."""
        return self._exchange.results()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[tuple[int, Event]]:
        unlisten = [party.store.news.listen(setter(self._wake)) for party in self._parties]
        try:
            async for heard in self._turns():
                yield heard
        finally:
            for end in unlisten:
                end()

    async def _turns(self) -> AsyncIterator[tuple[int, Event]]:
        while True:
            self._wake.clear()  # before the stores are looked at: what comes then wakes us once more
            await self._in_thread(self._turn)
            while self._events:
                yield self._events.popleft()
            for side in self._exchange.sides:
                if side.aborted is not None:
                    raise ExchangeAborted(side.aborted.reason, side.aborted.detail, side.index, self.results())
            if self._is_over:
                return
            await self._pause()

    # --- in the thread -----------------------------------------------------------------------------------------

    @property
    def _is_over(self) -> bool:
        return all(side.is_over for side in self._exchange.sides)

    def _turn(self) -> None:
        """Give the machines what is new, and move until they rest."""
        if not self._is_started:
            self._is_started = True
            self._exchange.start()
        for index, party in enumerate(self._parties):
            now = party.store.cursor()
            if now != self._seen[index]:
                self._seen[index] = now
                self._exchange.tell(index, given.LocalChanged())
        news, self._news = self._news, []
        for index, item in news:
            self._exchange.tell(index, item)
        for side in self._exchange.sides:
            due = side.machine.next_timer
            if due is not None and due <= self._exchange.now_ns:
                self._exchange.tell(side.index, given.TimerFired())
        self._exchange.run()

    def _end(self) -> None:
        self._exchange.tell(0, given.CloseRequested())
        self._exchange.run()

    async def _pause(self) -> None:
        timers = (side.machine.next_timer for side in self._exchange.sides)
        until_ns = min((due for due in timers if due is not None), default=None)
        pause_s = self._poll_s
        if until_ns is not None:
            pause_s = min(pause_s, max(0.0, (until_ns - self._exchange.now_ns) / SECOND_NS))
        try:
            async with asyncio.timeout(pause_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _in_thread(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, work)
