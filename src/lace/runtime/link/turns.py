"""Turns on the event loop: how much of what peers cause is worked on between two looks at everything else.

Rule: in one round of the loop links together do little, whatever many of them sent; the rest waits for the next round,
first who used least. Without this, thirty links that each do a few milliseconds' work make everybody wait for all of
them, round after round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from time import thread_time

from lace.transports.fairqueue import FairQueue, after_others

ROUND_S = 0.002  # of processor time; the piece of work that crosses it is finished
END_S = 0.0005  # about what the end of a link takes, in the rounds after its turn
Work = Callable[[], None]
Pay = Callable[[float], None]
"""Told what a piece of work took, in seconds of processor time: to ask for that takes long enough to be asked once."""


def _nobody_pays(_: float) -> None:
    """The queue keeps the only account."""


class LoopTurns:
    """What links do on one event loop; shared by all of a node."""

    def __init__(self, round_s: float = ROUND_S, clock: Callable[[], float] = thread_time) -> None:
        self._round_s = round_s
        self._clock = clock
        self._left = round_s  # of this round
        self._waiting: FairQueue[tuple[Work, asyncio.Future[None] | None, Pay]] = FairQueue()
        self._is_round_over_awaited = False
        self.on_work: Callable[[], None] | None = None  # told whenever there is some

    def __len__(self) -> int:
        return len(self._waiting)

    def of(self, account: Hashable) -> LinkTurns:
        """The turns of one account."""
        return LinkTurns(self, account)

    def do(self, account: Hashable, work: Work, pay: Pay = _nobody_pays) -> None:
        """Have a piece of work done, later in any case: nobody waits for it."""
        self._waiting.put(account, (work, None, pay))
        self._await_round()

    async def ended(self, account: Hashable) -> None:
        """Wait for a turn to end a link: when many hang up at once, they end one after the other."""
        await self.done(account, lambda: self._spend(account, END_S))

    async def done(self, account: Hashable, work: Work, pay: Pay = _nobody_pays) -> bool:
        """Do a piece of work: at once if there is time left in this round and nobody waits, else in turn. Whether
        others had theirs meanwhile."""
        if not self._waiting and self._left > 0:
            self._await_round()
            self._waiting.pass_by(account)
            self._do(account, work, pay)
            return False
        waiting = asyncio.get_running_loop().create_future()
        self._waiting.put(account, (work, waiting, pay))
        self._await_round()
        await waiting
        return True

    def _await_round(self) -> None:
        if not self._is_round_over_awaited:
            if self.on_work is not None:
                self.on_work()
            self._is_round_over_awaited = True
            after_others(self._begin_round)

    def _begin_round(self) -> None:
        self._left = self._round_s
        try:
            while self._left > 0 and (taken := self._waiting.take()) is not None:
                account, (work, waiting, pay) = taken
                if waiting is None or not waiting.done():  # cancelled, if its link was
                    self._do_for(waiting, account, work, pay)
        finally:
            # Not before: the one that was served wakes first, and the next step of its exchange may be next.
            self._is_round_over_awaited = False
            if self._waiting:
                self._await_round()

    def _do_for(self, waiting: asyncio.Future[None] | None, account: Hashable, work: Work, pay: Pay) -> None:
        try:
            self._do(account, work, pay)
        except Exception as error:
            if waiting is None:
                raise
            waiting.set_exception(error)
        else:
            if waiting is not None:
                waiting.set_result(None)

    def _do(self, account: Hashable, work: Work, pay: Pay) -> None:
        started = self._clock()
        try:
            work()
        finally:
            used = self._clock() - started
            self._spend(account, used)
            pay(used)

    def _spend(self, account: Hashable, used: float) -> None:
        self._left -= used
        self._waiting.charge(account, used)


class LinkTurns:
    """Turns as one account sees them."""

    def __init__(self, turns: LoopTurns, account: Hashable) -> None:
        self._turns = turns
        self._account = account
        self.pay: Pay = _nobody_pays  # who is told what each piece of work took

    def do(self, work: Work) -> None:
        """Later in any case: nobody waits for it."""
        self._turns.do(self._account, work, self.pay)

    async def done(self, work: Work) -> bool:
        """At once, or in turn; whether others had theirs meanwhile."""
        return await self._turns.done(self._account, work, self.pay)

    async def ended(self) -> None:
        """A turn to end a link."""
        await self._turns.ended(self._account)
