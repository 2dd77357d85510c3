"""A lace among peers, for programs that run on asyncio: `async with lace.Node(notes, expose="selected") as node:`.

Rule: a thin layer over `lace.runtime.node.node`; everything that an exchange decides is decided there. Leaving the
block ends every link at a phase boundary; cancelling a task ends what that task waits for and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from inspect import isawaitable
from types import EllipsisType, TracebackType
from typing import NamedTuple, Self
from weakref import WeakSet

from lace.errors import LocalProtocolError
from lace.iltp.address import parse_address
from lace.interlace.events import Event
from lace.interlace.setup.terms import Rules, Terms
from lace.notation.identifiers import Verifier
from lace.porcelain.exchange import Expose, Select, exposures, selector
from lace.porcelain.lace import Lace
from lace.records.keys import SigningKey
from lace.runtime.clock import SystemClock
from lace.runtime.host.quotas import Quotas
from lace.runtime.link.session import Outcome
from lace.runtime.node.links import Heard, Hooks, LinkInfo, NodeLimits
from lace.runtime.node.node import Node, TermsFor
from lace.transports.base import ByteStream, TransportProof
from lace.transports.dial import TransportOptions
from lace.transports.tls import ClientTls, ServerTls
from lace.values import dataclass

MAX_EVENTS = 100_000  # that wait for one listener; then the oldest are dropped


class LinkEvent(NamedTuple):
    """Something that happened on one link."""

    link: LinkInfo
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What our side brings to an exchange: which records it wants to share, and what it shows of its own."""

    select: Select = None
    expose: Expose = "none"

    @property
    def rules(self) -> Rules:
        """The same as rules; raises what is wrong with them."""
        module = selector(self.select)
        return Rules(module, exposures(self.expose, module))

    def terms(self, lace: Lace, *, is_open: bool) -> Terms:
        """The same for the machine."""
        rules = self.rules
        shown = rules.exposures
        return Terms(module=rules.module, exposures=shown, is_open=is_open, record_limits=lace.limits)


PolicyFor = Callable[[TransportProof], "Policy | Awaitable[Policy | None] | None"]
"""Which policy a peer that dials us gets, by what its connection proves; None turns it away, and so does an error."""


class LaceNode:
    """One lace, its links, and what is told of them; `lace.Node` is its public name."""

    def __init__(
        self,
        lace: Lace,
        *,
        select: Select = None,
        expose: Expose = "none",
        policy_for: PolicyFor | None = None,
        key: SigningKey | None = None,
        trusted: Sequence[Verifier] = (),
        client_tls: ClientTls | None = None,
        server_tls: ServerTls | None = None,
        limits: NodeLimits | None = None,
        quotas: Quotas | None = None,
        hooks: Hooks | None = None,
        max_events: int = MAX_EVENTS,
    ) -> None:
        clock = SystemClock()
        self._lace = lace
        self._policy = Policy(select=select, expose=expose)
        self._policy.terms(lace, is_open=True)  # what is wrong with rules is told here, not to the first peer
        self._policy_for = policy_for
        self._options = TransportOptions(
            clock=clock.tai,
            signer=key,
            trusted=tuple(trusted),
            client_tls=client_tls or ClientTls(),
            server_tls=server_tls,
        )
        self._clock = clock
        self._here = key.verifier if key else None
        self._limits = limits
        self._quotas = quotas
        self._given = hooks or Hooks()
        self._max_events = max_events
        self._listeners: WeakSet[LinkEvents] = WeakSet()  # one that left its loop is nobody's any more
        self._node: Node | None = None

    async def __aenter__(self) -> Self:
        hooks = replace(self._given, on_event=self._hear)
        self._node = Node(
            self._lace.store,
            self._options,
            self._clock,
            here=self._here,
            limits=self._limits,
            hooks=hooks,
            quotas=self._quotas,
            horizon_s=self._lace.horizon_s,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        node, self._node = self._running, None
        await node.shutdown()
        for listener in list(self._listeners):
            listener.end()

    @property
    def _running(self) -> Node:
        if self._node is None:
            raise LocalProtocolError("a node runs inside its `async with` block")
        return self._node

    async def serve(self, *addresses: str) -> list[str]:
        """Accept peers until the node ends; the addresses as they are really bound (port 0 is any free one)."""
        offered = self._policy.terms(self._lace, is_open=True)
        terms = offered if self._policy_for is None else self._terms_for
        return [str(await self._running.listen(parse_address(address, listening=True), terms)) for address in addresses]

    def change_rules(self, *, select: Select | EllipsisType = ..., expose: Expose | EllipsisType = ...) -> int:
        """Select and show something else from now on, without a new connection; what is not named stays as it is.

        It holds for all links of this node, those that are open and those to come: served, followed and attached. An
        open exchange goes on under the new rules when what is under way has crossed; how many do is returned. A link
        with a policy of its own keeps that one. `policy_for` is asked again about every open link that it was asked
        about, and one that it turns away now is ended; call this without arguments if only its answers have changed.
        Rules that are wrong raise, and nothing changes. The peer may refuse them with its own (a plan that cannot be
        compiled): then that link ends, and one that is followed is dialled again.
        """
        before = self._policy
        policy = Policy(
            select=before.select if isinstance(select, EllipsisType) else select,
            expose=before.expose if isinstance(expose, EllipsisType) else expose,
        )
        rules = policy.rules
        changed = self._running.change_rules(rules)
        self._policy = policy
        return changed

    async def connect(self, address: str, *, policy: Policy | None = None) -> Outcome:
        """Dial a peer, exchange until neither side wants more, and say how it ended."""
        return await self._running.exchange(parse_address(address), self._offered(policy, is_open=False))

    async def follow(self, address: str, *, policy: Policy | None = None) -> None:
        """Keep an open exchange with a peer, dialling again when it is lost, until cancelled or the node ends."""
        await self._running.keep(parse_address(address), self._offered(policy, is_open=True))

    def _offered(self, policy: Policy | None, *, is_open: bool) -> Terms | TermsFor:
        """The node's own terms, which may change, or those of one link, which do not."""
        terms = (policy or self._policy).terms(self._lace, is_open=is_open)
        return terms if policy is None else lambda _: terms

    async def attach(
        self, stream: ByteStream, *, dialled: bool, is_open: bool = False, policy: Policy | None = None
    ) -> Outcome:
        """Exchange over a byte stream of your own making; one side of it has `dialled`, the other has not (P7)."""
        return await self._running.attach(stream, self._offered(policy, is_open=is_open), dialled)

    def events(self) -> LinkEvents:
        """What happens on all links from now on, until the node ends; slow listeners lose the oldest, not the peer.

        Nothing is kept for a listener that has left its loop and let go of what this returned, or closed it.
        """
        listener = LinkEvents(self._max_events)
        self._listeners.add(listener)
        return listener

    def _hear(self, link: LinkInfo, event: Event) -> Heard:
        for listener in list(self._listeners):
            listener.put(LinkEvent(link, event))
        return None if self._given.on_event is None else self._given.on_event(link, event)

    def _terms_for(self, proof: TransportProof) -> Terms | Awaitable[Terms | None] | None:
        assert self._policy_for is not None
        policy = self._policy_for(proof)
        return self._served_later(policy) if isawaitable(policy) else self._served(policy)

    def _served(self, policy: Policy | None) -> Terms | None:
        return None if policy is None else policy.terms(self._lace, is_open=True)

    async def _served_later(self, coming: Awaitable[Policy | None]) -> Terms | None:
        return self._served(await coming)


class LinkEvents(AsyncIterator[LinkEvent]):
    """The events that wait for one listener; `async for` over it, once."""

    def __init__(self, most: int) -> None:
        self._waiting: deque[LinkEvent] = deque(maxlen=most)
        self._news = asyncio.Event()
        self._is_over = False

    def put(self, event: LinkEvent) -> None:
        """Something happened."""
        if not self._is_over:
            self._waiting.append(event)
            self._news.set()

    def end(self) -> None:
        """Nothing more will happen; what waits can still be read."""
        self._is_over = True
        self._news.set()

    async def aclose(self) -> None:
        """Leave: what waits is let go of, and nothing more is kept."""
        self.end()
        self._waiting.clear()

    async def __anext__(self) -> LinkEvent:
        while not self._waiting:
            if self._is_over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()
