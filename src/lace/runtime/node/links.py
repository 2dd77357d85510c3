"""The links of a node: their limits, who they are, what is told of them.

Rule: plain values; nothing here opens, reads or ends a link.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import field, replace
from typing import Protocol

from lace.errors import TransportError
from lace.interlace.events import Event
from lace.interlace.setup.terms import Link, Terms
from lace.limits import MIB
from lace.notation.identifiers import Verifier
from lace.runtime.host.cursors import CursorLimits
from lace.runtime.link.drive import Driver
from lace.runtime.link.session import Outcome
from lace.runtime.node.admission import AdmissionLimits, PeerKind, Standing
from lace.runtime.node.metrics import LinkRow, Metrics
from lace.runtime.node.refusing import RefusingLimits
from lace.runtime.node.waitingroom import WaitingLimits
from lace.runtime.trace.tap import Tap
from lace.transports.base import TransportProof
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeLimits(AdmissionLimits):
    """What all links together may use."""

    max_buffered_bytes: int = 128 * MIB  # received and not yet stored, or written and not yet taken
    threads: int = 4  # for reading the store and checking what came
    workers: int | None = None  # processes that judge received records; None: one for each core
    store_poll_s: float = 0.1  # how soon records of another process are noticed
    shutdown_grace_s: float = 2.0  # for links at work; after it they are cut
    leaving_grace_s: float = 2.0  # the same for the links of somebody who left the group
    shutdown_most_s: float = 4.0  # for all of it
    ready_records: int = 10_000  # above so many, what the first peers ask for is worked out before a node listens
    ready_s: float = 10.0  # for that; then it listens, and goes on with it
    decide_s: float = 10.0  # for an async `policy_for`; a peer that is not decided about by then is turned away
    tend_s: float = 0.25  # how often links are checked for those that have to leave
    backoff_first_s: float = 0.5  # before a lost peer is dialled again; doubles each time, and differs by a quarter
    backoff_most_s: float = 60.0  # to which that grows
    backoff_over_s: float = 10.0  # a link that held for so long was well: the next pause is the first one again
    waiting: WaitingLimits = field(default_factory=WaitingLimits)
    refusing: RefusingLimits = field(default_factory=RefusingLimits)
    cursors: CursorLimits = field(default_factory=CursorLimits)


@dataclass(frozen=True, slots=True)
class LinkInfo:
    """Which link something is told of."""

    number: int
    address: str
    peer: Verifier | None
    dialled: bool
    account: str = ""  # whom its work is charged to: a key that we know, else a network


def link_of(proof: TransportProof, here: Verifier | None) -> Link:
    """What a connection proves of both ends, as rules and hellos see it."""
    return Link(
        transport=str(proof.address),
        encrypted=proof.encrypted,
        here=here,
        peer=proof.peer,
        signs_hello=proof.here is not None,
        peer_signs_hello=proof.signed,
    )


def terms_for_stranger(terms: Terms) -> Terms:
    """040 allows a stricter lowering: a peer from elsewhere that dialled us and proved nothing gives nothing, unless
    the owner said otherwise. So nothing is requested of it."""
    return replace(terms, max_requests=0)


Heard = Awaitable[None] | None
"""What a hook returns: nothing, or, as an `async def`, what is awaited beside the exchange."""

OnEvent = Callable[[LinkInfo, Event], Heard]
OnEnd = Callable[[LinkInfo, Outcome], Heard]
CurrentTerms = Callable[[], "Terms | Awaitable[Terms | None] | None"]
"""The terms of one link, as they are when this is called; None if the peer is not wanted any more."""


@dataclass(frozen=True, slots=True)
class LinkTerms:
    """The terms of one link, and how to hear what they are after rules have changed."""

    offered: Terms | None
    ask: CurrentTerms
    changes: int  # of the node's rules, when they were offered


class LinkListener(Protocol):
    """Who follows one peer, and is told how its connections come and go."""

    @property
    def is_over(self) -> bool:
        """Whether the peer is not to be dialled again."""

    def opened(self, info: LinkInfo, driver: Driver) -> None:
        """A connection to the peer begins."""

    def ended(self, outcome: Outcome) -> None:
        """It ended, or the peer refused it."""

    def lost(self, error: TransportError) -> None:
        """The peer cannot be reached."""


MakeTap = Callable[[LinkInfo], Tap | None]


@dataclass(slots=True)
class Hooks:
    """What an application wants to hear; nothing here changes an exchange.

    A hook may be `async def`, except for `make_tap`. What one raises goes to `on_trouble` and to the log `lace.hooks`.
    """

    on_open: Callable[[LinkInfo], Heard] | None = None
    on_event: OnEvent | None = None
    on_end: OnEnd | None = None
    on_trouble: Callable[[str], Heard] | None = None
    on_limited: Callable[[LinkInfo, str], Heard] | None = None
    make_tap: MakeTap | None = None


@dataclass(slots=True)
class OpenLink:
    """A link and what was told of it."""

    info: LinkInfo
    driver: Driver
    terms: CurrentTerms
    key: str = ""  # whom it counts for
    kind: PeerKind = PeerKind.KNOWN
    is_leaving: bool = False
    bytes_in: int = 0
    bytes_out: int = 0

    def standing(self) -> Standing:
        driver = self.driver
        cpu_s = driver.meter.used["cpu_s"]
        return Standing(self.info.number, self.kind, driver.rests_s, driver.held_bytes, cpu_s, self.key)

    def count(self, metrics: Metrics) -> None:
        session = self.driver.session
        metrics.add("bytes_received_total", session.bytes_in - self.bytes_in)
        metrics.add("bytes_sent_total", session.bytes_out - self.bytes_out)
        self.bytes_in, self.bytes_out = session.bytes_in, session.bytes_out

    def row(self) -> LinkRow:
        session, used = self.driver.session, self.driver.meter.used
        return LinkRow(
            {"link": str(self.info.number), "address": self.info.address, "peer": self.info.peer or ""},
            {
                "bytes_received": session.bytes_in,
                "bytes_sent": session.bytes_out,
                "held_bytes": self.driver.held_bytes,
                "cpu_seconds": round(used["cpu_s"], 3),
                "loops": int(used["loops"]),
                "rests_seconds": round(self.driver.rests_s, 1),
            },
        )
