"""Many links over one store: accept, dial, keep, and end them cleanly (050 drivers, 060).

Rule: links share the store, the threads, the budgets and what was worked out for listings before, and nothing else.
A slow, silent or hostile peer costs its own link; what one link stores, every open link hears of.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

from lace.errors import LaceError, TransportError
from lace.iltp.address import Address, StdioAddress, UnixAddress, bracketed
from lace.interlace import inputs as given
from lace.interlace.config import Link, MachineConfig
from lace.interlace.events import Event, FixedPoint
from lace.limits import MIB, EngineLimits, ExchangeLimits
from lace.notation.identifiers import Verifier
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.policy.transcript import Lowering
from lace.runtime.bounds import Budget, DriveLimits
from lace.runtime.clock import Clock
from lace.runtime.drive import Driver, Tap
from lace.runtime.judging import Workers
from lace.runtime.listing import RememberedListing
from lace.runtime.metrics import Metrics
from lace.runtime.rehearsal import rehearse
from lace.runtime.roots import RememberedRoots
from lace.runtime.session import Outcome, Session
from lace.runtime.side import LocalSide, PolicyEvaluator
from lace.store.base import RecordStore
from lace.transports.base import ByteStream, Listener
from lace.transports.dial import TransportOptions, check_trust, dial, listen

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits:
    """What all links together may use."""

    max_links: int = 256
    max_links_per_peer: int = 32  # by proven verifier, else by host
    max_buffered_bytes: int = 128 * MIB
    threads: int = 4
    max_remembered_claims: int = 250_000  # kept with their roots for other links; a larger store is not rehearsed
    workers: int | None = None  # processes that judge received records; None: one for each core
    store_poll_s: float = 0.1  # how soon records of another process are noticed
    shutdown_grace_s: float = 5.0
    backoff_first_s: float = 0.5
    backoff_most_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeTerms:
    """What our side brings to every exchange of one kind."""

    module: Module
    exposures: tuple[Exposure, ...]  # what a peer's rules may see of our records
    is_open: bool
    send_gate: bool = True
    lowering: Lowering = Lowering.STANDARD
    limits: ExchangeLimits = field(default_factory=ExchangeLimits)
    engine_limits: EngineLimits = field(default_factory=EngineLimits)
    tick_interval_ns: int = 10_000_000_000


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """Which link something is told of."""

    number: int
    address: str
    peer: Verifier | None
    dialled: bool


OnEvent = Callable[[LinkInfo, Event], None]
OnEnd = Callable[[LinkInfo, Outcome], None]
MakeTap = Callable[[LinkInfo], Tap | None]


@dataclass(slots=True)
class Hooks:
    """What an application wants to hear; nothing here changes an exchange."""

    on_open: Callable[[LinkInfo], None] | None = None
    on_event: OnEvent | None = None
    on_end: OnEnd | None = None
    on_trouble: Callable[[str], None] | None = None
    make_tap: MakeTap | None = None


class Node:
    """One lace among peers."""

    def __init__(
        self,
        store: RecordStore,
        transport: TransportOptions,
        clock: Clock,
        *,
        here: Verifier | None = None,
        limits: NodeLimits | None = None,
        drive_limits: DriveLimits | None = None,
        hooks: Hooks | None = None,
    ) -> None:
        self.store = store
        self.metrics = Metrics()
        self._transport = transport
        self._clock = clock
        self._here = here
        self._limits = limits or NodeLimits()
        self._drive_limits = drive_limits or DriveLimits()
        self._hooks = hooks or Hooks()
        self._threads = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="lace")
        self._workers = Workers(self._limits.workers)
        self._listing = RememberedListing(self._limits.max_remembered_claims)
        self._roots = RememberedRoots(self._workers.summarise, self._limits.max_remembered_claims)
        self._budget = Budget(self._limits.max_buffered_bytes)
        self._drivers: dict[int, Driver] = {}
        self._per_peer: Counter[str] = Counter()
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = 0
        self._stopping = asyncio.Event()
        self._changed = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None

    # --- links -------------------------------------------------------------------------------------------------

    async def listen(self, address: Address, terms: ExchangeTerms) -> Address:
        """Accept peers from now on; where that is really bound."""
        listener = await listen(address, self._transport)
        self._listeners.append(listener)
        self._spawn(self._accept(listener, terms))
        return listener.address

    async def rehearse(self, terms: ExchangeTerms) -> None:
        """Prepare for peers that bring the rules of these terms, as most peers of a node do."""
        with contextlib.suppress(LaceError):  # a peer that really comes is told what is wrong
            if (await self._in_thread(self.store.stat)).records <= self._limits.max_remembered_claims:
                config = self._machine_config(Link(), terms, dialled=False, cursor_key="")
                now_ns = self._clock.tai().to_ns()
                summarise, stopped = self._roots.summarise, self._stopping.is_set
                await self._in_thread(lambda: rehearse(config, self._evaluator(terms), summarise, now_ns, stopped))

    async def exchange(
        self, address: Address, terms: ExchangeTerms, transport: TransportOptions | None = None
    ) -> Outcome:
        """Dial once and exchange to the end; this peer may ask for other transport options than the node's."""
        stream = await dial(address, transport or self._transport)
        return await self._run_link(stream, terms, dialled=True, cursor_key=f"dialled {address}")

    async def keep(self, address: Address, terms: ExchangeTerms, transport: TransportOptions | None = None) -> None:
        """Hold an open exchange with an address, dialling again with growing pauses, until the node stops."""
        pause = self._limits.backoff_first_s
        while not self._stopping.is_set():
            try:
                outcome = await self.exchange(address, terms, transport)
                if outcome.result.fixed_point:
                    pause = self._limits.backoff_first_s
            except TransportError as error:
                self._trouble(str(error))
            if self._stopping.is_set():
                return
            await self._pause(pause)
            self.metrics.add("reconnects_total")
            pause = min(pause * 2, self._limits.backoff_most_s)

    def keep_in_background(
        self, address: Address, terms: ExchangeTerms, transport: TransportOptions | None = None
    ) -> None:
        """`keep`, until the node stops."""
        self._spawn(self.keep(address, terms, transport))

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)

    async def _accept(self, listener: Listener, terms: ExchangeTerms) -> None:
        while not self._stopping.is_set():
            try:
                stream = await listener.accept()
            except TransportError:
                return
            reason = self._refusal(stream)
            if reason:
                self.metrics.add("connections_refused_total", label=reason)
                self._trouble(f"refused {stream.proof.address}: {reason}")
                stream.abort()
                continue
            self._spawn(self._serve(stream, terms))

    def _refusal(self, stream: ByteStream) -> str:
        """Why a connection is turned away, or nothing."""
        if len(self._drivers) >= self._limits.max_links:
            return "too many links"
        if self._per_peer[_peer_key(stream)] >= self._limits.max_links_per_peer:
            return "too many links of one peer"
        try:
            check_trust(stream, self._transport.trusted)
        except TransportError:
            return "not trusted"
        return ""

    async def _serve(self, stream: ByteStream, terms: ExchangeTerms) -> None:
        peer = stream.proof.peer
        try:
            await self._run_link(stream, terms, dialled=False, cursor_key=f"accepted {peer}" if peer else "")
        except LaceError as error:
            self._trouble(f"{stream.proof.address}: {error}")

    async def _run_link(self, stream: ByteStream, terms: ExchangeTerms, *, dialled: bool, cursor_key: str) -> Outcome:
        self._numbers += 1
        info = LinkInfo(self._numbers, str(stream.proof.address), stream.proof.peer, dialled)
        driver = self._driver(stream, info, self._config(stream, terms, dialled, cursor_key), terms)
        key = _peer_key(stream)
        self._drivers[info.number] = driver
        self._per_peer[key] += 1
        self._opened(info)
        try:
            if self._stopping.is_set():
                driver.cut()
            outcome = await driver.run()
        finally:
            del self._drivers[info.number]
            self._per_peer[key] -= 1
            if not self._per_peer[key]:
                del self._per_peer[key]
            self.metrics.put("connections_active", len(self._drivers))
        self._ended(info, driver, outcome)
        return outcome

    def _config(self, stream: ByteStream, terms: ExchangeTerms, dialled: bool, cursor_key: str) -> MachineConfig:
        """P7, P8, P24: what the connection makes of our terms."""
        proof = stream.proof
        link = Link(
            transport=str(proof.address),
            encrypted=proof.encrypted,
            here=self._here,
            peer=proof.peer,
            signs_hello=proof.here is not None,
            peer_signs_hello=proof.signed,
        )
        return self._machine_config(link, terms, dialled, cursor_key)

    def _machine_config(self, link: Link, terms: ExchangeTerms, dialled: bool, cursor_key: str) -> MachineConfig:
        return MachineConfig(
            index=0 if dialled else 1,
            module=terms.module,
            link=link,
            is_open=terms.is_open,
            send_gate=terms.send_gate,
            lowering=terms.lowering,
            limits=terms.limits,
            engine_limits=terms.engine_limits,
            tick_interval_ns=terms.tick_interval_ns,
            cursor_key=cursor_key,
            max_service_bytes=self._drive_limits.service_bytes,
        )

    def _driver(self, stream: ByteStream, info: LinkInfo, config: MachineConfig, terms: ExchangeTerms) -> Driver:
        return Driver(
            stream,
            Session(config),
            LocalSide(self.store, lambda: self._evaluator(terms)),
            self._clock,
            self._threads,
            limits=self._drive_limits,
            budget=self._budget,
            on_event=lambda event: self._event(info, event),
            on_stored=self._changed.set,
            tap=self._hooks.make_tap(info) if self._hooks.make_tap else None,
            workers=self._workers,
            summarise=self._roots.summarise,
        )

    def _evaluator(self, terms: ExchangeTerms) -> PolicyEvaluator:
        from lace.runtime.evaluate import StoreEvaluator  # the engine takes its time to load: meanwhile the peer works

        return StoreEvaluator(self.store, terms.exposures, limits=terms.engine_limits, listing=self._listing)

    # --- what is told ------------------------------------------------------------------------------------------

    def _opened(self, info: LinkInfo) -> None:
        self.metrics.add("connections_total", label="dialled" if info.dialled else "accepted")
        self.metrics.put("connections_active", len(self._drivers))
        if self._watching is None:
            self._watching = self._spawn(self._watch_store())
        if self._hooks.on_open is not None:
            self._hooks.on_open(info)

    def _event(self, info: LinkInfo, event: Event) -> None:
        if isinstance(event, FixedPoint):
            self.metrics.add("fixed_points_total")
        if self._hooks.on_event is not None:
            self._hooks.on_event(info, event)

    def _ended(self, info: LinkInfo, driver: Driver, outcome: Outcome) -> None:
        metrics, result = self.metrics, outcome.result
        metrics.add("exchanges_total", label=outcome.abort or ("limit" if result.limit_reached else "complete"))
        metrics.add("records_received_total", len(result.received_hashes))
        metrics.add("records_sent_total", len(result.sent_hashes))
        metrics.add("records_rejected_total", len(result.rejected_hashes))
        metrics.add("bytes_received_total", driver.session.bytes_in)
        metrics.add("bytes_sent_total", driver.session.bytes_out)
        metrics.put("buffered_bytes", self._budget.held)
        if self._hooks.on_end is not None:
            self._hooks.on_end(info, outcome)

    def _trouble(self, text: str) -> None:
        if self._hooks.on_trouble is not None:
            self._hooks.on_trouble(text)

    async def _watch_store(self) -> None:
        """Tell every open link when the store changed, whoever changed it (050-OPEN-03)."""
        seen = await self._in_thread(self.store.cursor)
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), self._limits.store_poll_s)
            self._changed.clear()
            try:
                now = await self._in_thread(self.store.cursor)
            except LaceError as error:
                self._trouble(str(error))
                continue
            if now != seen:
                seen = now
                for driver in list(self._drivers.values()):
                    driver.tell(given.LocalChanged())

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    # --- the end -----------------------------------------------------------------------------------------------

    def change_module(self, module: Module) -> None:
        """Our selector is another one from now on: a new epoch on every open link (050-OPEN-05)."""
        for driver in list(self._drivers.values()):
            driver.tell(given.OperandChanged(module))

    @property
    def has_workers(self) -> bool:
        """Whether worker processes judge what arrives."""
        return self._workers.is_ready

    def store_changed(self) -> None:
        """Say that this process stored something; others' records are noticed by looking now and then."""
        self._changed.set()

    @property
    def stopping(self) -> asyncio.Event:
        """Set once the node is ending."""
        return self._stopping

    async def shutdown(self) -> None:
        """Stop accepting, let exchanges end at a phase boundary, cut what is left, wait for the threads."""
        self._stopping.set()
        self._changed.set()
        for listener in self._listeners:
            await listener.close()
        for driver in list(self._drivers.values()):
            driver.tell(given.CloseRequested())
        await self._wait_for_links(self._limits.shutdown_grace_s)
        for driver in list(self._drivers.values()):
            driver.cut()
        await self._wait_for_links(self._limits.shutdown_grace_s)
        tasks: Sequence[asyncio.Task[None]] = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._threads.shutdown(wait=True)
        self._workers.close()

    async def _wait_for_links(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._drivers:
                    await asyncio.sleep(0.01)

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _peer_key(stream: ByteStream) -> str:
    """Whom a link counts for: the proven verifier, else the host it came from."""
    if stream.proof.peer is not None:
        return stream.proof.peer
    address = stream.proof.address
    if isinstance(address, StdioAddress | UnixAddress):
        return str(address)
    return bracketed(address.host)
