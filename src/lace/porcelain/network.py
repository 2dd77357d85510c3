"""Exchanges with peers elsewhere, for programs without an event loop of their own.

Rule: a thin layer over `lace.runtime.node.node`; everything that an exchange decides is decided there.

    with lace.open("notes.lace") as notes:
        outcome = lace.connect(notes, "tcp:example.com", select="//u//ding//", expose="selected")

    with lace.open("notes.lace") as notes, lace.serve(notes, "unix:/run/notes.sock", expose="all"):
        ...
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from typing import Any, TypeVar, Unpack

from lace.errors import TransportError
from lace.iltp.address import parse_address
from lace.interlace.setup.terms import Terms
from lace.limits import HORIZON_S
from lace.notation.identifiers import Verifier
from lace.notation.stopping import Interrupt, go_on, never, until
from lace.porcelain.exchange import Expose, Select, rules_for, selector
from lace.porcelain.lace import Lace
from lace.porcelain.node import LaceNode, NodeOptions
from lace.records.keys import Signer
from lace.runtime.clock import Clock, SystemClock
from lace.runtime.host.hosting import MakeHost
from lace.runtime.link.session import Outcome
from lace.runtime.local.relay import OnEvent as RelayOnEvent
from lace.runtime.local.relay import RelayLimits
from lace.runtime.local.relay import relay as relay_between
from lace.runtime.node.node import Hooks, Node
from lace.store.base import RecordStore
from lace.transports.dial import TransportOptions
from lace.transports.tls import ClientTls
from lace.values import dataclass

READY_WITHIN_S = 30.0
_LOOK_S = 0.01  # how often the caller is asked whether to go on
Result = TypeVar("Result")


def connect(
    lace: Lace,
    address: str,
    *,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
    **options: Unpack[NodeOptions],
) -> Outcome:
    """Run a bounded exchange with a peer. TransportError if the peer cannot be reached or is not trusted.

    After `deadline_s` seconds, or once `interrupt` (asked every few milliseconds, by this thread) returns True, it ends
    in `CallStopped`. What was stored stays, and the next exchange goes on from there.
    """

    async def run() -> Outcome:
        async with LaceNode(lace, **options) as node:
            return await _until_told(node.connect(address), stop)

    stop = until(deadline_s, interrupt)
    return asyncio.run(run())


async def _until_told(work: Coroutine[Any, Any, Result], stop: Interrupt) -> Result:
    """What work returns; CallStopped once the interrupt says yes, and then the work is cancelled."""
    if stop is never:
        return await work
    task = asyncio.ensure_future(work)
    try:
        while not task.done():
            go_on(stop, "it exchanged with a peer; what was stored stays")
            await asyncio.wait([task], timeout=_LOOK_S)
        return task.result()
    finally:
        task.cancel()
        await asyncio.wait([task])


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who dials, which peers it trusts, and how far ahead their records may be dated."""

    key: Signer | None = None
    trusted: tuple[Verifier, ...] = ()
    tls: ClientTls | None = None
    horizon_s: float | None = HORIZON_S

    def exchange(
        self,
        store: RecordStore,
        address: str,
        terms: Terms,
        hooks: Hooks | None = None,
        make_host: MakeHost | None = None,
        stop: Interrupt = never,
    ) -> Outcome:
        """Run one bounded exchange in an event loop of its own."""
        clock = SystemClock()

        async def run() -> Outcome:
            node = Node(
                store,
                self.transport(clock),
                clock,
                here=self.here,
                hooks=hooks,
                make_host=make_host,
                horizon_s=self.horizon_s,
            )
            try:
                return await _until_told(node.exchange(parse_address(address), terms), stop)
            finally:
                await node.shutdown()

        return asyncio.run(run())

    @property
    def here(self) -> Verifier | None:
        """Who we are to peers."""
        return self.key.verifier if self.key else None

    def transport(self, clock: Clock) -> TransportOptions:
        """The options for dialling peers."""
        tls = self.tls or ClientTls()
        return TransportOptions(clock=clock.tai, signer=self.key, trusted=self.trusted, client_tls=tls)


def relay(
    first: str,
    second: str,
    *,
    select: Select = None,
    key: Signer | None = None,
    trusted: Sequence[Verifier] = (),
    tls: ClientTls | None = None,
    max_held_bytes: int = RelayLimits().max_held_bytes,
    on_event: RelayOnEvent | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> tuple[Outcome, Outcome]:
    """Relay between two servers until neither can get more from the other; returns the outcome of each exchange.

    Each gets what the other exposes to us, `select` selects and its own rules take. No lace of ours takes part: records
    on their way are held in memory, up to `max_held_bytes`, and written nowhere. TransportError if one of the two
    cannot be reached or is not trusted. After `deadline_s` seconds, or once `interrupt` (asked every few milliseconds,
    by this thread) returns True, it ends in `CallStopped`.
    """
    caller, clock = Caller(key=key, trusted=tuple(trusted), tls=tls), SystemClock()
    standing = relay_between(
        parse_address(first),
        parse_address(second),
        Terms(module=selector(select)),
        caller.transport(clock),
        clock,
        limits=RelayLimits(max_held_bytes=max_held_bytes),
        here=caller.here,
        on_event=on_event,
    )
    return asyncio.run(_until_told(standing, until(deadline_s, interrupt)))


@contextmanager
def serve(
    lace: Lace, *addresses: str, follow: Sequence[str] = (), **options: Unpack[NodeOptions]
) -> Iterator[list[str]]:
    """Accept peers in a thread of its own until the block ends; yields the bound addresses.

    It keeps an open exchange with each peer in `follow`, and dials again whenever the connection is lost. Hooks are
    called in that thread.
    """
    for address in follow:
        parse_address(address)
    server = _Server(LaceNode(lace, **options))
    server.start(addresses, follow)
    try:
        yield server.bound
    finally:
        server.stop()


def terms_of(lace: Lace, select: Select, expose: Expose | None, *, is_open: bool) -> Terms:
    """The terms of our side, from words and, where there are none, from the policy of the lace."""
    rules = rules_for(lace, select, expose)
    return Terms(module=rules.module, exposures=rules.exposures, is_open=is_open, record_limits=lace.limits)


class _Server:
    """A node and its event loop in one thread."""

    def __init__(self, node: LaceNode) -> None:
        self._node = node
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None
        self.bound: list[str] = []

    def start(self, addresses: Sequence[str], peers: Sequence[str]) -> None:
        """Start to accept and dial, or raise why that is not possible."""
        self._thread = threading.Thread(target=self._run, args=(addresses, peers), name="lace-serving", daemon=True)
        self._thread.start()
        if not self._ready.wait(READY_WITHIN_S):
            raise TransportError("the server did not start in time")
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End all links and wait for the thread."""
        if self._loop is not None and self._stop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    def _run(self, addresses: Sequence[str], peers: Sequence[str]) -> None:
        try:
            asyncio.run(self._serve(addresses, peers))
        except BaseException as error:  # noqa: BLE001 - raised again by `start`, in the caller's thread
            self._failure = error
        finally:
            self._ready.set()

    async def _serve(self, addresses: Sequence[str], peers: Sequence[str]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        async with self._node as node, AsyncExitStack() as followed:
            self.bound += await node.serve(*addresses)
            for peer in peers:
                await followed.enter_async_context(node.follow(peer))
            self._ready.set()
            await self._stop.wait()
