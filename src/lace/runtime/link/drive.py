"""The runner of one link on an event loop: a ByteStream, a clock, turns; its jobs are done in threads (050, 060).

Rule: it decides nothing. Bytes go to the session as they come, the link is stepped in its turn, its jobs go to threads
and their results back to the link. Blocking work runs in threads here and nowhere else. What waits is bounded: past the
bounds nothing more is read from the peer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from functools import partial
from typing import Any

from lace.interlace import inputs as given
from lace.interlace.events import Event
from lace.interlace.host import Host
from lace.limits import SECOND_NS
from lace.runtime.clock import Clock, SteadyTai
from lace.runtime.link.account import LinkAccount
from lace.runtime.link.backlog import Backlog
from lace.runtime.link.hangup import HangUp
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.link.session import Outcome, Session
from lace.runtime.link.stepper import JobPlace, LinkJob, LinkStepper
from lace.runtime.link.turns import LinkTurns, LoopTurns
from lace.runtime.link.writing import Writing, Written
from lace.runtime.loopevents import DueTimer, set_within
from lace.runtime.node.bounds import Budget, DriveLimits
from lace.runtime.node.metering import Bucket, Debt, LinkMeter, LinkRates, slices
from lace.runtime.trace.tap import Tap
from lace.transports.base import ByteStream, PromptStream, TransportProof
from lace.workers.collector import seldom_collecting

BLOCKS_AT_ONCE = 8  # received blocks that we process before other links have their turn
BULK_BLOCKS = 64  # while records are expected


class Driver:
    """One exchange over one stream, from the first byte to the last."""

    def __init__(
        self,
        stream: ByteStream,
        session: Session,
        host: Host[Any],
        clock: Clock,
        threads: Executor,
        *,
        judges: Executor | None = None,
        evaluators: Executor | None = None,
        limits: DriveLimits | None = None,
        budget: Budget | None = None,
        strangers: Budget | None = None,
        on_event: Callable[[Event], None] | None = None,
        on_stored: Callable[[], None] | None = None,
        tap: Tap | None = None,
        rates: LinkRates | None = None,
        peer_account: Bucket | None = None,
        accounts_time: SteadyTai | None = None,
        on_limited: Callable[[Debt], None] | None = None,
        turns: LinkTurns | None = None,
        hashers: Executor | None = None,
    ) -> None:
        self._stream = stream
        self.session = session
        self.host = host
        self._time = SteadyTai(clock)
        self._turns = turns or LoopTurns().of(None)
        self.over: asyncio.Event = asyncio.Event()
        accounts_time = accounts_time or self._time  # of all that charge the same accounts
        self._limits = limits = limits or DriveLimits()
        self.meter: LinkMeter = LinkMeter(rates or LinkRates(), accounts_time.now_ns, peer_account)
        self._account = LinkAccount(session, self.meter, accounts_time, on_limited)
        self._turns.pay = partial(self._account.charge, "cpu_s")
        self.link: LinkStepper = LinkStepper(
            session, host, limits, account=self._account, on_event=on_event, on_stored=on_stored
        )
        self._calls = HostCalls(threads, evaluators, self.meter, accounts_time)
        self._judges = judges
        self._hashers = hashers
        self._backlog = Backlog(session, self.link, limits, budget, strangers)
        self._room = self._backlog.room
        self._hangup = HangUp(stream, session, self.link, self._backlog, self._account, self._time, limits.leftover_s)
        self._tap = tap
        self._prompt = stream if isinstance(stream, PromptStream) else None
        self._writing = Writing(stream, session, self._turns, tap, limits.send_timeout_s)
        self._to_send, self._moved = asyncio.Event(), asyncio.Event()
        self._timer = DueTimer(partial(_next_timer, self.link), self._time, self._time_came)
        self._jobs: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._is_taking = False  # bytes that were received are being given to the session
        self._is_sending = False  # bytes that had to wait
        self._is_going_on = self._is_step_due = self._is_lost = False
        self._cut_because = ""
        self._rested_at_ns: int | None = None

    @property
    def proof(self) -> TransportProof:
        """What the connection proves."""
        return self._stream.proof

    @property
    def now_ns(self) -> int:
        return self._time.now_ns

    # --- the whole of it ---------------------------------------------------------------------------------------

    async def run(self) -> Outcome:
        """Exchange until the end; LaceError only for a fault of our own program or machine."""
        with seldom_collecting():
            return await self._run()

    async def _run(self) -> Outcome:
        self.session.start(self.now_ns)
        self._after()
        loops = (self._receive, self._send)
        tasks = [asyncio.create_task(self._guarded(loop)) for loop in loops]
        try:
            await self.over.wait()
            await self._turns.ended()
            await self._settle(sending=tasks[1])
        finally:
            await self._cancel([*tasks, *self._jobs])
            self._stream.abort()  # closed already, unless this was cancelled
            self._backlog.tell(0)
            self._backlog.tell_held(0)
        if self._failure is not None:
            raise self._failure
        detail = self._cut_because or "by our own side"
        return self.session.outcome or Outcome(self.session.machine.result(), abort="cut", detail=detail)

    @property
    def held_bytes(self) -> int:
        """About what this link keeps in memory: what waits both ways, and claims that are not ours as well."""
        return self._backlog.held

    @property
    def rests_s(self) -> float:
        """For how long both sides have had nothing to do."""
        return 0.0 if self._rested_at_ns is None else (self.now_ns - self._rested_at_ns) / SECOND_NS

    def tell(self, news: given.LocalChanged | given.RulesChanged | given.CloseRequested) -> None:
        """News of our own side, from the event loop's thread."""
        if self.session.outcome is None and not self.over.is_set():
            self._answer(news)

    def cut(self, why: str = "") -> None:
        """End now, wherever the exchange stands."""
        self._cut_because = why
        self._end()
        self._stream.abort()
        self._after()

    def tend(self) -> None:
        """Look now and then whether the peer has gone while it is not read from."""
        if self._hangup.are_unread_for_long(holds_records=self.session.machine.expects_records):
            self._after()

    async def _settle(self, sending: asyncio.Task[None]) -> None:
        """A finished exchange flushes and closes; an aborted one closes without further bytes (050-ERR-20)."""
        outcome = self.session.outcome
        self._calls.cancel_evaluation()  # of no use to anybody any more
        if outcome is None or outcome.abort or self._failure is not None:
            self._stream.abort()
        else:
            await asyncio.wait([sending], timeout=self._limits.flush_timeout_s)
            await self._stream.close()
        # The cursor that saves the next exchange its listing, and the last events, are still to be kept and told.
        self._after()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._limits.flush_timeout_s):
                while self._failure is None and (self.link.requests or self.link.is_held_up):
                    self._moved.clear()
                    await self._moved.wait()

    async def _cancel(self, tasks: list[asyncio.Task[None]]) -> None:
        self._timer.close()
        self._calls.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.host.close()
        self.session.close()

    async def _guarded(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """A fault of our own ends this link and no other.

        What is to be awaited is made here: a task that is cancelled before it began would leave a coroutine that
        nobody awaited.
        """
        try:
            await work()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - re-raised by `run`, which is waiting for it
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or error
        self._end()
        self._after()

    def _end(self) -> None:
        """Nothing is begun any more but what has to be kept and told."""
        if not self.over.is_set():
            self.over.set()
            self.link.end()

    # --- the loops ---------------------------------------------------------------------------------------------

    async def _receive(self) -> None:
        while not self.over.is_set():
            await self._backlog.wait_for_room()
            data = await self._stream.receive()
            if self.over.is_set():
                return
            if self._tap is not None and data:
                self._tap.received(data)
            is_bulk = self.session.machine.expects_records
            self._is_taking = True
            # Among records too: what it was given the session processes even for a peer that has gone: maybe loops.
            for piece in slices(data, BULK_BLOCKS if is_bulk else BLOCKS_AT_ONCE, holds_records=is_bulk):
                await self._take(piece)
                if self.over.is_set():
                    return
                if self._hangup.are_given_up(len(piece), holds_records=is_bulk):
                    self._after()
                    return
            self._is_taking = False
            if not data or self._is_lost:
                await self._turns.done(self._end_stream)
                await self._give_up()
                return

    async def _take(self, data: bytes) -> None:
        """Give received bytes to the session at its peer's cost, and let the others on while that is overdrawn."""
        if not await self._turns.done(partial(self._give, data)):
            await asyncio.sleep(0)
        await self._afford()

    async def _afford(self) -> None:
        """Wait until no account is overdrawn; a link that would have to wait for too long is cut."""
        while not self.over.is_set() and (debt := self._account.debt()) is not None:
            if self._account.is_too_deep(debt):
                self.cut(f"used more {debt.account} than a link may")
                return
            self._account.waits += 1
            await set_within(self.over, debt.wait_s)

    def _give(self, data: bytes) -> None:
        if not self.over.is_set():
            self.session.receive_data(data, self.now_ns)
            self._account.charge("bytes", len(data))
            if listed := self.session.machine.listed_so_far:
                self.host.expect(listed)
            self._step()

    def _go_on(self) -> None:
        """Read on after the others had their turn, at the peer's cost."""
        self._is_going_on = False
        if not self.over.is_set() and self.session.is_behind:
            self.session.go_on(self.now_ns)
            self._step()

    async def _give_up(self) -> None:
        """The peer has stopped sending: process what it left if that takes a moment, but continue no evaluation for it.
        Records that came are still stored."""
        moments = 2  # in the second, if the first processed something
        while not self.over.is_set():
            before = self.session.blocks_in
            await set_within(self.over, self._limits.leftover_s)
            moments = moments - 1 if self.session.blocks_in != before else 0
            if moments <= 0 and not self.link.storing_bytes and not self.over.is_set():
                self.session.lose(self.now_ns)
                self._after()
                return

    async def _send(self) -> None:
        """Write what the session has; once the exchange is over, return when nothing is left."""
        while True:
            self._to_send.clear()
            self._is_sending = True
            written = await self._writing.flush(self._sent)
            if written is Written.LOST:
                self._lose()
            elif written is Written.STUCK:
                self.cut(written.value)
            if written is not Written.ALL:
                return
            self._is_sending = False
            if self.over.is_set():
                return
            await self._to_send.wait()

    def _sent(self) -> None:
        self._room.set()
        self._step_soon()

    def _put(self) -> None:
        """Hand over what the session has to say, or the beginning of it, if the stream holds nothing back: to wake the
        loop that writes costs more than the write."""
        stream = None if self._is_sending or self.over.is_set() else self._prompt
        if stream is not None and self.session.has_data and stream.is_prompt:
            data = self.session.data_to_send()
            if self._tap is not None:
                self._tap.sent(data)
            stream.put(data)

    def _lose(self) -> None:
        """The peer takes no bytes any more: for the exchange that is the end of the stream (060-DISC-01), once what
        it sent before has been taken."""
        self._is_lost = True
        if not self._is_taking:
            self._end_stream()

    def _end_stream(self) -> None:
        self.session.receive_eof(self.now_ns)
        self._after()

    def _time_came(self) -> None:
        self._turns.do(partial(self._safely, self._handle_timer))

    def _handle_timer(self) -> None:
        if not self.over.is_set():
            due = self.session.next_timer
            if due is not None and due <= self.now_ns:
                self.session.handle_timer(self.now_ns)
            self._step()

    # --- steps and jobs ----------------------------------------------------------------------------------------

    def _step(self) -> None:
        """Part of a turn: step the link, have its jobs begun, send what came of it."""
        for job in self.link.step(self.now_ns):
            task = asyncio.create_task(self._guarded(partial(self._do, job)))
            self._jobs.add(task)
            task.add_done_callback(self._jobs.discard)
        self._put()
        self._after()

    def _step_soon(self) -> None:
        """A turn of its own, if a step would bring anything."""
        if self.link.can_step and not self._is_step_due:
            self._is_step_due = True
            self._turns.do(self._step_due)

    def _step_due(self) -> None:
        self._is_step_due = False
        self._safely(self._step)

    def _safely(self, work: Callable[[], None]) -> None:
        """In a turn that nobody waits for."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - as above
            self._fail(error)

    async def _do(self, job: LinkJob) -> None:
        if job.place is JobPlace.EVALUATION:
            await self._afford()  # what was sent ahead waits as well
            found = await self._calls.evaluate(job.work) if not self.over.is_set() else None
        else:
            threads = {JobPlace.JUDGE: self._judges, JobPlace.HASHING: self._hashers}.get(job.place)
            found = await self._calls.call(job.work, threads)
        # What an answer leads to may take a while: blocks that waited for it are read.
        await self._turns.done(partial(self._done, job, found))

    def _done(self, job: LinkJob, found: Any) -> None:
        job.done(found, self.now_ns)
        self._step()

    def _answer(self, answer: given.LocalInput) -> None:
        self.session.answer(answer, self.now_ns)
        self._after()

    def _after(self) -> None:
        """What a call into the session brought: requests, bytes, another timer, the end."""
        self._account.charge_blocks()
        self.link.collect()
        if self.session.outcome is not None:
            self._end()
        if not self.session.machine.is_resting:
            self._rested_at_ns = None
        elif self._rested_at_ns is None:
            self._rested_at_ns = self.now_ns
        if self.session.is_behind and not self._is_going_on:
            self._is_going_on = True
            self._turns.do(partial(self._safely, self._go_on))
        self._step_soon()
        self._moved.set()
        if self.session.has_data or self.over.is_set():
            self._to_send.set()
        if not self.over.is_set():
            self._timer.look()
        self._room.set()


def _next_timer(link: LinkStepper) -> int | None:
    return link.next_timer
