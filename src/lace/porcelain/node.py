"""A lace among peers, for programs that run on asyncio: `async with lace.Node(notes, expose="selected") as node:`.

Rule: a thin layer over `lace.runtime.node.node`; everything that an exchange decides is decided there. Leaving the
block ends every link at a phase boundary; cancelling a task ends what that task waits for and nothing else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import isawaitable
from logging import Logger, getLogger
from types import EllipsisType, TracebackType
from typing import Any, NamedTuple, Self, TypedDict, Unpack
from weakref import WeakSet

from lace.errors import LocalProtocolError
from lace.iltp.address import parse_address
from lace.interlace.events import Event
from lace.interlace.setup.terms import Rules, Terms
from lace.notation.identifiers import Verifier
from lace.people.policyrecords import PolicyVersion
from lace.porcelain.exchange import Expose, Select, exposures, rules_for, selector
from lace.porcelain.following import FollowedLink
from lace.porcelain.lace import Lace
from lace.porcelain.misuse import require_lace
from lace.porcelain.policy import LacePolicy, policy_quotas
from lace.porcelain.policywatch import OnPolicy, PolicyWatch
from lace.records.keys import Signer
from lace.runtime.clock import Clock
from lace.runtime.host.quotas import Quotas
from lace.runtime.link.session import Outcome
from lace.runtime.node.links import Heard, Hooks, LinkInfo, LinkListener, NodeLimits
from lace.runtime.node.metrics import MetricsSink
from lace.runtime.node.node import Node, TermsFor
from lace.transports.base import ByteStream, TransportProof
from lace.transports.dial import TransportOptions
from lace.transports.tls import ClientTls, ServerTls
from lace.values import dataclass

MAX_EVENTS = 100_000  # waiting for one listener; beyond that the oldest are dropped


class LinkEvent(NamedTuple):
    """Something that happened on one link."""

    link: LinkInfo
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What our side brings to an exchange: which records it selects, and what it shows of its own.

    What is None is as the policy of the lace says; without one, everything is selected and nothing shown.
    """

    select: Select = None
    expose: Expose | None = None

    @property
    def rules(self) -> Rules:
        """These words as rules, for a lace without a policy; raises if they are wrong."""
        module = selector(self.select)
        return Rules(module, () if self.expose is None else exposures(self.expose, module))

    def rules_in(self, lace: Lace) -> Rules:
        """These words as rules for a lace, whose own policy says what they do not; raises if they are wrong."""
        return rules_for(lace, self.select, self.expose)

    def terms(self, lace: Lace, *, is_open: bool) -> Terms:
        """The policy as terms for the machine."""
        rules = self.rules_in(lace)
        shown = rules.exposures
        return Terms(module=rules.module, exposures=shown, is_open=is_open, record_limits=lace.limits)


PolicyFor = Callable[[TransportProof], "Policy | Awaitable[Policy | None] | None"]
"""Chooses the policy of a peer that dials us by what its connection proves; None, or an error, turns it away."""


class NodeOptions(TypedDict, total=False):
    """What `lace.Node`, `lace.serve` and `lace.connect` all take, under the same names."""

    select: Select
    """Which records we want and offer: rules, a coordinate or its beginning, a hash, several of these; None: what the
    policy of the lace says, and all of them if it carries none."""
    expose: Expose | None
    """Which records peers may see: `all`, `selected`, `none`, or rules; None: what the policy of the lace says, and
    none if it carries none."""
    policy_for: PolicyFor | None
    """Chooses the policy of a peer that dials us by what its connection proves; None refuses it."""
    key: Signer | None
    """Proves us to peers over ws and wss: a SigningKey, or whatever signs for a verifier."""
    trusted: Sequence[Verifier]
    """If there are any: exchange only with peers that prove to be one of these."""
    tls: ClientTls | ServerTls | Sequence[ClientTls | ServerTls] | None
    """For wss: a ServerTls to be dialled with, a ClientTls to dial with, or both."""
    proxies: Sequence[str]
    """Addresses (or `unix`) of proxies that may say where a connection comes from."""
    limits: NodeLimits | None
    """What all links together may use."""
    quotas: Quotas | None
    """How much is stored of peers, signers and groups."""
    hooks: Hooks | None
    """What is called as things happen."""
    on_policy: OnPolicy | None
    """Hears that another policy of the lace is in force, and which of its versions are new."""
    clock: Clock | None
    """Where time comes from; the clock of the lace unless given."""
    logger: Logger | None
    """The parent of the logs `links` and `node`; `logging.getLogger("lace")` unless given."""
    metrics: MetricsSink | None
    """Where the node's numbers go as they change."""


class LaceNode:
    """One lace, its links and their events; its public name is `lace.Node`."""

    def __init__(self, lace: Lace, *, max_events: int = MAX_EVENTS, **options: Unpack[NodeOptions]) -> None:
        require_known(options)
        require_lace(lace)
        clock = options.get("clock") or lace.clock
        key = options.get("key")
        client_tls, server_tls = _tls_of(options.get("tls"))
        self._lace = lace
        self._policy = Policy(select=options.get("select"), expose=options.get("expose"))
        self._policy.terms(lace, is_open=True)  # wrong rules raise here, not when the first peer arrives
        self._policy_for = options.get("policy_for")
        self._options = TransportOptions(
            clock=clock.tai,
            signer=key,
            trusted=tuple(options.get("trusted", ())),
            client_tls=client_tls or ClientTls(),
            server_tls=server_tls,
            proxies=tuple(options.get("proxies", ())),
        )
        self._clock = clock
        self._here = key.verifier if key else None
        self._limits = options.get("limits")
        self._quotas = options.get("quotas")
        self._given = options.get("hooks") or Hooks()
        self._logger = options.get("logger") or getLogger("lace")
        self._sink = options.get("metrics")
        self._max_events = max_events
        self._listeners: WeakSet[LinkEvents] = WeakSet()  # weak: a listener that left its loop must not be kept
        self._node: Node | None = None
        self._on_policy = options.get("on_policy")
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        hooks = replace(self._given, on_event=self._hear)
        self._node = Node(
            self._lace.store,
            self._options,
            self._clock,
            here=self._here,
            limits=self._limits,
            hooks=hooks,
            quotas=self._quotas if self._quotas is not None else policy_quotas(self._lace.policy()),
            horizon_s=self._lace.horizon_s,
            logger=self._logger,
            sink=self._sink,
        )
        watch = PolicyWatch(self._lace, self._take_policy, tell_members=self._node.know_members)
        self._watching = asyncio.create_task(watch.run())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        node, self._node = self._running, None
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await node.shutdown()
        for listener in list(self._listeners):
            listener.end()

    @property
    def _running(self) -> Node:
        if self._node is None:
            raise LocalProtocolError("a node runs inside its `async with` block")
        return self._node

    async def serve(self, *addresses: str) -> list[str]:
        """Accept peers until the node ends; returns the addresses as bound (port 0 is any free one)."""
        offered = self._policy.terms(self._lace, is_open=True)
        terms = offered if self._policy_for is None else self._terms_for
        return [str(await self._running.listen(parse_address(address, listening=True), terms)) for address in addresses]

    def change_rules(self, *, select: Select | EllipsisType = ..., expose: Expose | EllipsisType | None = ...) -> int:
        """Change what is selected and shown from now on, without new connections; arguments not given stay as they are.

        This holds for all links of the node, open ones and later ones: served, followed and attached. An open exchange
        continues under the new rules once everything under way has crossed; returns how many do. A link with a policy
        of its own keeps it. `policy_for` is asked again about every open link that it decided, and a link that it now
        turns away is ended; call this without arguments if only its answers have changed. Wrong rules raise, and
        nothing changes. If the new rules and the peer's cannot be compiled into one plan, that link ends; a followed
        peer is dialled again.
        """
        before = self._policy
        policy = Policy(
            select=before.select if isinstance(select, EllipsisType) else select,
            expose=before.expose if isinstance(expose, EllipsisType) else expose,
        )
        rules = policy.rules_in(self._lace)
        changed = self._running.change_rules(rules)
        self._policy = policy
        return changed

    def _take_policy(self, policy: LacePolicy, newer: list[PolicyVersion]) -> None:
        """The lace has another policy: open links go on under it, except where words of ours say otherwise."""
        node = self._running
        node.change_rules(self._policy.rules_in(self._lace))
        if self._quotas is None:
            node.reload(policy_quotas(policy))
        if self._on_policy is not None:
            self._on_policy(policy, newer)

    async def connect(self, address: str, *, policy: Policy | None = None) -> Outcome:
        """Dial a peer, exchange until neither side wants more, and return the outcome."""
        return await self._running.exchange(parse_address(address), self._offered(policy, is_open=False))

    def follow(self, address: str, *, policy: Policy | None = None) -> FollowedLink:
        """Keep an open exchange with a peer and dial again when it is lost: `async with node.follow(address) as link:`.

        Awaited instead, it follows until the task is cancelled or the node ends.
        """
        node, parsed, offered = self._running, parse_address(address), self._offered(policy, is_open=True)

        def keep(listener: LinkListener) -> Coroutine[Any, Any, None]:
            return node.keep(parsed, offered, listener=listener)

        return FollowedLink(address, keep, self._stored_now, lambda: self._node is node)

    def _stored_now(self) -> int:
        return self._lace.store.cursor().record

    def _offered(self, policy: Policy | None, *, is_open: bool) -> Terms | TermsFor:
        """The node's own terms, which may change, or those of one link, which do not."""
        terms = (policy or self._policy).terms(self._lace, is_open=is_open)
        return terms if policy is None else lambda _: terms

    async def attach(
        self, stream: ByteStream, *, dialled: bool, is_open: bool = False, policy: Policy | None = None
    ) -> Outcome:
        """Exchange over a byte stream of your own; exactly one of its two sides has `dialled`.

        A peer that dialled us gets the policy that `policy_for` chooses, unless you give one here.
        """
        terms = self._offered(policy, is_open=is_open)
        if self._policy_for is not None and policy is None and not dialled:
            terms = partial(self._terms_for, is_open=is_open)
        return await self._running.attach(stream, terms, dialled)

    def events(self) -> LinkEvents:
        """The events of all links from now until the node ends; a slow listener loses the oldest.

        In `async with node.events() as events:` it listens until the block ends. Otherwise nothing is kept for a
        listener that left its loop and dropped or closed what this returned.
        """
        listener = LinkEvents(self._max_events)
        self._listeners.add(listener)
        return listener

    def _hear(self, link: LinkInfo, event: Event) -> Heard:
        for listener in list(self._listeners):
            listener.put(LinkEvent(link, event))
        return None if self._given.on_event is None else self._given.on_event(link, event)

    def _terms_for(self, proof: TransportProof, *, is_open: bool = True) -> Terms | Awaitable[Terms | None] | None:
        assert self._policy_for is not None
        policy = self._policy_for(proof)
        if isawaitable(policy):
            return self._chosen_later(policy, is_open=is_open)
        return self._chosen(policy, is_open=is_open)

    def _chosen(self, policy: Policy | None, *, is_open: bool) -> Terms | None:
        return None if policy is None else policy.terms(self._lace, is_open=is_open)

    async def _chosen_later(self, coming: Awaitable[Policy | None], *, is_open: bool) -> Terms | None:
        return self._chosen(await coming, is_open=is_open)


class LinkEvents(AsyncIterator[LinkEvent]):
    """The events that wait for one listener; `async for` over it, once."""

    def __init__(self, most: int) -> None:
        self._waiting: deque[LinkEvent] = deque(maxlen=most)
        self._news = asyncio.Event()
        self._is_over = False

    def put(self, event: LinkEvent) -> None:
        """Queue an event."""
        if not self._is_over:
            self._waiting.append(event)
            self._news.set()

    def end(self) -> None:
        """Take no more events; those that wait can still be read."""
        self._is_over = True
        self._news.set()

    async def aclose(self) -> None:
        """Drop the events that wait, and take no more."""
        self.end()
        self._waiting.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def __anext__(self) -> LinkEvent:
        while not self._waiting:
            if self._is_over:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        return self._waiting.popleft()


def require_known(options: Mapping[str, object]) -> None:
    """TypeError for an option that no node takes: Python itself does not check what comes as `**options`."""
    for name in options.keys() - NodeOptions.__annotations__.keys():
        known = ", ".join(NodeOptions.__annotations__)
        meant = f"hooks=lace.Hooks({name}=…)" if name in Hooks.__dataclass_fields__ else f"one of {known}"
        raise TypeError(f"there is no option {name!r}: give {meant}")


def _tls_of(
    given: ClientTls | ServerTls | Sequence[ClientTls | ServerTls] | None,
) -> tuple[ClientTls | None, ServerTls | None]:
    """How to dial and how to be dialled."""
    both = () if given is None else (given,) if isinstance(given, ClientTls | ServerTls) else given
    client = [one for one in both if isinstance(one, ClientTls)]
    server = [one for one in both if isinstance(one, ServerTls)]
    if len(client) > 1 or len(server) > 1:
        raise LocalProtocolError("tls is a ServerTls, a ClientTls, or one of each")
    return (client[0] if client else None), (server[0] if server else None)
