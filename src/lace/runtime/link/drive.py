"""The pump of one exchange: a ByteStream, a Session, our own side, a clock; asyncio around, threads inside (050, 060).

Rule: it decides nothing. Bytes go to the session as they come, requests are carried out, answers go back. Blocking
work runs in threads here and nowhere else. What waits is bounded: past the bounds nothing more is read from the peer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from lace.errors import LaceError
from lace.iltp.items import Resource
from lace.interlace import effects as asked
from lace.interlace import inputs as given
from lace.interlace.events import Event, FixedPoint
from lace.interlace.host import NOT_NOW, Cancelled, Host, limit_of, perform
from lace.limits import SECOND_NS
from lace.runtime.clock import Clock, SteadyTai
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.link.judging import Gathering, Judging
from lace.runtime.link.leftovers import Leftovers
from lace.runtime.link.outgoing import Outgoing
from lace.runtime.link.paying import Paying
from lace.runtime.link.session import (
    CheckedResource,
    CheckResource,
    Outcome,
    ReceivedRecords,
    Request,
    Session,
    checked,
)
from lace.runtime.link.straight import Straight
from lace.runtime.link.turns import LinkTurns, LoopTurns
from lace.runtime.link.waiting import Waiting
from lace.runtime.link.wakes import Wakes, set_within
from lace.runtime.link.writing import Writing, Written
from lace.runtime.node.bounds import Budget, DriveLimits
from lace.runtime.node.metering import Bucket, Debt, LinkMeter, LinkRates, slices
from lace.runtime.trace.tap import Tap
from lace.transports.base import ByteStream, TransportProof
from lace.workers.collector import seldom_collecting

BLOCKS_AT_ONCE = 8  # received blocks that are worked off before other links have their turn
BULK_BLOCKS = 64  # while records are expected
SHORT_TEXT = 256  # bytes of rules that are read at once: a millisecond, and those of most peers


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
    ) -> None:
        self._stream = stream
        self.session = session
        self.host = host
        self._time = SteadyTai(clock)
        self._turns = turns or LoopTurns().of(None)
        self.over = asyncio.Event()
        accounts_time = accounts_time or self._time  # of all that charge the same accounts
        self.meter = LinkMeter(rates or LinkRates(), accounts_time.now_ns, peer_account)
        self._paying = Paying(session, self.meter, accounts_time, self.over, on_limited)
        self._turns.pay = partial(self._paying.charge, "cpu_s")
        self._calls = HostCalls(threads, evaluators, self.meter, accounts_time)
        self._limits = limits or DriveLimits()
        self._waiting = Waiting(session, self._limits, budget, strangers)
        self._room = self._waiting.room
        self._leftovers = Leftovers(stream, session, self._waiting, self._paying, self._time, self._limits.leftover_s)
        self._judging = Judging(host, self._calls, judges or threads, self._waiting, self._limits.verify_slices)
        self._on_stored = on_stored
        self._tap = tap
        self._writing = Writing(stream, session, self._turns, tap, self._limits.send_timeout_s)
        self._wakes = Wakes(session, self._time)
        self._service: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._is_taking = False  # bytes that were received are being given to the session
        self._is_going_on = self._is_lost = False
        self._cut_because = ""
        self._rested_at_ns: int | None = None
        self._outgoing = Outgoing(
            session, host, self._calls, self._waiting, self._wakes.send, self._time, self._limits.service_ns
        )
        parts = self._outgoing, self._paying, self._waiting
        self._straight = Straight(stream, session, host, *parts, self.over, on_event, tap)
        self._work = self._straight.work
        self._gathering = Gathering(self._work, session, self._wakes.work, self.over, self._limits)

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
        loops = (self._receive(), self._send(), self._perform(), self._commit(), self._watch_time())
        tasks = [asyncio.create_task(self._guarded(loop)) for loop in loops]
        try:
            await self.over.wait()
            await self._turns.ended()
            await self._settle(sending=tasks[1], performing=tasks[2])
        finally:
            await self._cancel(tasks)
            self._stream.abort()  # closed already, unless this was cancelled
            self._waiting.tell(0)
            self._waiting.tell_held(0)
        if self._failure is not None:
            raise self._failure
        detail = self._cut_because or "by our own side"
        return self.session.outcome or Outcome(self.session.machine.result(), abort="cut", detail=detail)

    @property
    def held_bytes(self) -> int:
        """About what this link keeps in memory: what waits both ways, and claims that are not ours as well."""
        return self._waiting.held

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
        self.over.set()
        self._stream.abort()
        self._after()

    def tend(self) -> None:
        """Look now and then whether the peer has gone while it is not read from."""
        if self._leftovers.are_unread_for_long(holds_records=self.session.machine.expects_records):
            self._after()

    async def _settle(self, sending: asyncio.Task[None], performing: asyncio.Task[None]) -> None:
        """A finished exchange flushes and closes; an aborted one closes without further bytes (050-ERR-20)."""
        outcome = self.session.outcome
        self._calls.cancel_evaluation()  # of no use to anybody any more
        if outcome is None or outcome.abort or self._failure is not None:
            self._stream.abort()
        else:
            await asyncio.wait([sending], timeout=self._limits.flush_timeout_s)
            await self._stream.close()
        # The cursor that saves the next exchange its listing, and the last events, are still to be kept and told.
        await asyncio.wait([performing], timeout=self._limits.flush_timeout_s)

    async def _cancel(self, tasks: Sequence[asyncio.Task[None]]) -> None:
        running: list[asyncio.Task[Any]] = [*tasks, *([self._service] if self._service else []), *self._judging.drop()]
        self._calls.cancel()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self.host.close()
        self.session.close()

    async def _guarded(self, loop: Coroutine[Any, Any, None]) -> None:
        """A fault of our own ends this link and no other."""
        try:
            await loop
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - re-raised by `run`, which is waiting for it
            self._failure = self._failure or error
            self.over.set()
            self._after()

    # --- the loops ---------------------------------------------------------------------------------------------

    async def _receive(self) -> None:
        while not self.over.is_set():
            await self._waiting.wait_for_room()
            data = await self._stream.receive()
            if self.over.is_set():
                return
            if self._tap is not None and data:
                self._tap.received(data)
            is_bulk = self.session.machine.expects_records
            self._is_taking = True
            # Among records too: what is given to the session is worked off though the peer has gone, and may be loops.
            for piece in slices(data, BULK_BLOCKS if is_bulk else BLOCKS_AT_ONCE, holds_records=is_bulk):
                await self._take(piece)
                if self.over.is_set():
                    return
                if self._leftovers.are_given_up(len(piece), holds_records=is_bulk):
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
        if why := await self._paying.afford():
            self.cut(why)

    def _give(self, data: bytes) -> None:
        if not self.over.is_set():
            self.session.receive_data(data, self.now_ns)
            self._paying.charge("bytes", len(data))
            self._straight.foresee()
            self._after_turn()

    def _go_on(self) -> None:
        """Read on after the others had their turn, at the peer's cost."""
        self._is_going_on = False
        if not self.over.is_set() and self.session.is_behind:
            self.session.go_on(self.now_ns)
            self._after_turn()

    async def _give_up(self) -> None:
        """The peer says no more: what it left is worked off if that takes a moment, but no evaluation goes on for it.
        Records that came are still stored."""
        moments = 2  # in the second, if something was worked off in the first
        while not self.over.is_set():
            before = self.session.blocks_in
            await set_within(self.over, self._limits.leftover_s)
            moments = moments - 1 if self.session.blocks_in != before else 0
            if moments <= 0 and not self._waiting.storing_bytes and not self.over.is_set():
                self.session.lose(self.now_ns)
                self._after()
                return

    async def _send(self) -> None:
        """Write what the session has; once the exchange is over, return when nothing is left."""
        while True:
            self._wakes.send.clear()
            self._straight.is_sending = True
            written = await self._writing.flush(self._room.set)
            if written is Written.LOST:
                self._lose()
            elif written is Written.STUCK:
                self.cut(written.value)
            if written is not Written.ALL:
                return
            self._straight.is_sending = False
            if self.over.is_set():
                return
            await self._wakes.send.wait()

    def _lose(self) -> None:
        """The peer takes no bytes any more: for the exchange that is the end of the stream (060-DISC-01), once what
        it sent before has been taken."""
        self._is_lost = True
        if not self._is_taking:
            self._end_stream()

    def _end_stream(self) -> None:
        self.session.receive_eof(self.now_ns)
        self._after()

    async def _watch_time(self) -> None:
        while not self.over.is_set():
            if await self._wakes.is_due():
                self.session.handle_timer(self.now_ns)
                self._after()

    async def _perform(self) -> None:
        """Everything but sending listings and records and committing, one request after the other."""
        while True:
            self._wakes.work.clear()
            while self._work:
                await self._turns.done(self._after_turn)
                if self._work and not self._straight.may_go_on:
                    self._straight.is_held_up = True
                    request = self._work.popleft()
                    if not self.over.is_set() or isinstance(request, asked.Report | asked.KeepClaims):
                        await self._perform_one(request)
                    self._straight.is_held_up = False
            if self.over.is_set():
                return
            await self._wakes.work.wait()

    async def _perform_one(self, request: Request) -> None:
        match request:
            case ReceivedRecords():
                await self._judging.begin(await self._gathering.batch(request))
            case CheckResource(resource):
                await self._check(resource)
            case asked.SendListing():
                self._start_service(self._outgoing.list(request))
            case asked.SendRecords():
                self._start_service(self._outgoing.serve(request))
            case asked.Report(event):
                await self._report(event)
            case _:
                is_long = isinstance(request, asked.PreparePolicy | asked.Evaluate)
                if is_long:
                    await self._afford()  # what was sent ahead waits as well
                call = self._calls.evaluate if is_long else self._calls.call
                answer = await call(partial(perform, self.host, request))
                if answer is not None and answer is not NOT_NOW:
                    await self._answer_in_turn(answer)

    async def _check(self, resource: Resource) -> None:
        """Rules of the peer: short ones where they are, in a turn, for a thread would take longer to be woken."""
        look = partial(checked, resource, self.session.terms.engine_limits)
        found = None if len(resource.text) <= SHORT_TEXT else await self._calls.in_thread(look)
        await self._turns.done(lambda: self._note_checked(look() if found is None else found))

    async def _report(self, event: Event) -> None:
        self._straight.tell(event)
        if isinstance(event, FixedPoint) and self.session.terms.is_open:
            with contextlib.suppress(Cancelled):  # the link has ended
                await self._calls.evaluate(self.host.rest)

    async def _commit(self) -> None:
        while True:
            for answer in await self._judging.commit_next():
                await self._answer_in_turn(answer)
                if self._on_stored is not None and isinstance(answer, given.RecordsStored):
                    self._on_stored()

    def _start_service(self, service: Coroutine[Any, Any, given.LocalInput]) -> None:
        self._service = asyncio.create_task(self._guarded(self._serviced(service)))

    async def _serviced(self, service: Coroutine[Any, Any, given.LocalInput]) -> None:
        """What goes out while the peer's items come in; a store that fails ends the exchange, not the node."""
        try:
            await self._answer_in_turn(await service)
        except LaceError as error:
            await self._answer_in_turn(given.LocalFailed(str(error), limit_of(error)))

    # --- small moves -------------------------------------------------------------------------------------------

    async def _answer_in_turn(self, answer: given.LocalInput) -> None:
        """What an answer leads to may take a while: blocks that waited for it are read."""
        await self._turns.done(partial(self._answer_and_go_on, answer))

    def _answer_and_go_on(self, answer: given.LocalInput) -> None:
        self.session.answer(answer, self.now_ns)
        self._after_turn()

    def _answer(self, answer: given.LocalInput) -> None:
        self.session.answer(answer, self.now_ns)
        self._after()

    def _note_checked(self, found: CheckedResource) -> None:
        self.session.resource_checked(found, self.now_ns)
        self._after()

    def _after_turn(self) -> None:
        """The same in a turn, which goes on with what is next as long as nothing has to wait for that."""
        self._straight.go(self.now_ns)
        self._after()

    def _after(self) -> None:
        """What a call into the session brought: work, bytes, another timer, the end."""
        self._paying.charge_blocks()
        self._straight.collect()
        if not self.session.machine.is_resting:
            self._rested_at_ns = None
        elif self._rested_at_ns is None:
            self._rested_at_ns = self.now_ns
        if self.session.is_behind and not self._is_going_on:
            self._is_going_on = True
            self._turns.do(self._go_on)
        self._wakes.after(has_work=bool(self._work) or self._gathering.is_waiting, is_over=self.over.is_set())
        self._room.set()
