"""Followers that hold many records without a store for each: columns of ids that all share, and what came since.

A follower is a real link: socket, codec, machine, host. Only its store is new and empty, and what it had before the
benchmark began is known by ids alone; a server cannot tell.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from hubs.stores import record_of
from lace.differences.ids import Ids
from lace.differences.idset import set_of
from lace.iltp.address import TcpAddress
from lace.interlace import events as ev
from lace.interlace.claims.peerclaims import PeerClaims
from lace.interlace.host import Call, Payer
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.terms import Terms
from lace.policy.exposure import expose_all
from lace.policy.operand import Module
from lace.records.model import ValidRecord
from lace.runtime.clock import SystemClock
from lace.runtime.host.host import LocalHost
from lace.runtime.host.quotas import QuotaGate
from lace.runtime.host.recentbodies import RecentBodies
from lace.runtime.link.session import Outcome
from lace.runtime.node.links import Hooks, LinkInfo, NodeLimits
from lace.runtime.node.node import Node
from lace.runtime.rules.followedset import FollowedSet, SharedSet
from lace.runtime.rules.generation import Generation
from lace.runtime.rules.policy import LinkPolicy, SharingKey
from lace.runtime.rules.policybook import MakeEvaluator, PolicyBook
from lace.store import MemoryStore
from lace.store.base import StoreCursor
from lace.transports.base import READ_BYTES, TransportProof, prepare_socket
from lace.transports.dial import TransportOptions
from lace.transports.pipe import DEFAULT_LIMITS, PipeStream


class _Overlay:
    """What a store's rules select, and what the follower had before."""

    def __init__(self, above: FollowedSet, base: Generation) -> None:
        self._above = above
        self._seen = above.all_of([])
        self._newest = base

    @property
    def cursor(self) -> StoreCursor:
        return self._above.cursor

    def current(self, runtime: RuntimeFacts, claims: PeerClaims, call: Call) -> Generation:
        return self._upon(self._above.current(runtime, claims, call))

    def refresh(self, call: Call) -> None:
        if isinstance(self._above, SharedSet):
            self._above.refresh(call)

    @property
    def is_current(self) -> bool:
        return isinstance(self._above, SharedSet) and self._above.is_current

    def _upon(self, now: Generation) -> Generation:
        if now is not self._seen:
            came, went = now.ids.since(self._seen.ids)
            self._newest, self._seen = self._newest.then(came.texts(), went.texts()), now
        return self._newest

    def requestable(self, own: Generation, claims: PeerClaims, call: Call) -> Sequence[str]:
        return list(self._above.requestable(own, claims, call))

    def rest(self, call: Call) -> None:
        self._above.rest(call)

    def all_of(self, records: Sequence[str]) -> Generation:
        return self._above.all_of(records)

    def leave(self, payer: Payer | None) -> None:
        self._above.leave(payer)

    def close(self) -> None:
        self._above.close()


class _Book(PolicyBook):
    def __init__(self, base: Ids) -> None:
        super().__init__()
        self._base = base

    def take(
        self, policy: LinkPolicy, runtime: RuntimeFacts, make_evaluator: MakeEvaluator
    ) -> tuple[FollowedSet, SharingKey | None]:
        sends, key = super().take(policy, runtime, make_evaluator)
        base = Generation(1, set_of(self._base), lambda records: sends.all_of(list(records)).listing(), 1024)
        return _Overlay(sends, base), key


class Follower:
    """One of many, with a store of its own."""

    def __init__(
        self, number: int, module: Module, base: Ids, *, is_open: bool = True, source: str | None = None
    ) -> None:
        self.number = number
        self._source = source or f"127.0.{1 + number // 250}.{1 + number % 250}"
        self.store = MemoryStore()
        once = record_of(number, "u/gone")  # a store that was never written to would say that it holds nothing
        self.store.put([once])
        self.store.delete(once.hash)
        self._base = base
        self._terms = Terms(module=module, exposures=(expose_all(),), is_open=is_open)
        self.arrived: dict[str, float] = {}  # records, and when they were stored
        self.is_settled = asyncio.Event()
        clock = SystemClock()
        hooks = Hooks(on_event=self._event)
        limits = NodeLimits(threads=1, workers=0, store_poll_s=60.0)
        options = TransportOptions(clock=clock.tai)
        self._node = Node(self.store, options, clock, limits=limits, hooks=hooks, make_host=self._host)
        self._node.pulse.interval_s = 60.0  # the clients' own doings are not what is measured
        self._link: asyncio.Task[Outcome] | None = None

    def _host(self, terms: Terms, gate: QuotaGate) -> LocalHost:
        return LocalHost(self.store, terms, policies=_Book(self._base), gate=gate, bodies=RecentBodies(self.store))

    def _event(self, _: LinkInfo, event: ev.Event) -> None:
        if isinstance(event, ev.Received):
            now = time.perf_counter()
            self.arrived.update((str(record), now) for record in event.hashes)
        elif isinstance(event, ev.FixedPoint):
            self.is_settled.set()

    async def exchange(self, port: int) -> Outcome:
        """From an address of its own, or of all: a server counts links by where they come from."""
        source = (self._source, 0)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=READ_BYTES, local_addr=source)
        prepare_socket(writer)
        proof = TransportProof(address=TcpAddress("127.0.0.1", port))
        return await self._node.attach(PipeStream(reader, writer, proof, DEFAULT_LIMITS), self._terms, dialled=True)

    async def open(self, port: int) -> None:
        """Exchange until the fixed point, and stay."""
        self._link = asyncio.create_task(self.exchange(port))
        settled = asyncio.create_task(self.is_settled.wait())
        await asyncio.wait([self._link, settled], return_when=asyncio.FIRST_COMPLETED, timeout=600)
        if not self.is_settled.is_set():
            raise RuntimeError(f"follower {self.number}: {self._link.result() if self._link.done() else 'no end'}")

    def put(self, record: ValidRecord) -> float:
        """Store a record; when that was done."""
        self.store.put([record])
        now = self.arrived[str(record.hash)] = time.perf_counter()
        return now

    @property
    def is_linked(self) -> bool:
        return self._link is not None and not self._link.done()

    async def close(self) -> None:
        await self._node.shutdown(grace_s=0.2)
