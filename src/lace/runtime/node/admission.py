"""Who may open a link, and who has to leave for whom (docs/serving.md has the order of eviction).

Rule: a peer that proved itself never leaves for one that did not, and one that we know for nobody. Whoever we do not
know is counted by network prefix, for addresses are cheap and keys are cheaper. A family, an office and everybody
behind one router are one prefix, so how many links that has matters only when every place is taken: then a newcomer of
a smaller crowd takes the place of a resting link of the largest one. Nobody gives way to an equal: two that pushed
each other out would do so forever.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import field
from enum import IntEnum

from lace.iltp.address import StdioAddress, UnixAddress
from lace.limits import MIB
from lace.notation.identifiers import Verifier
from lace.runtime.node.metering import Bucket, Rate
from lace.transports.base import TransportProof
from lace.transports.networks import network_of
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionLimits:
    """How many links there may be, of whom, and what all of them may hold."""

    max_links: int = 256  # open at a time, of everybody
    max_links_per_peer: int = 256  # by the key of a peer we know, else by network prefix; an owner may want fewer
    reserved_links: int = 32  # of max_links (a quarter at most), kept free for peers that prove themselves
    unknown_keys_share: float = 0.5  # of max_links, that peers with keys nobody here knows may take
    yield_after_s: float = 1.0  # after so long at rest, a link of a crowd gives up its place to a smaller one
    retry_after_s: float = 20.0  # a peer turned away for lack of a place is told to come back after about this long
    calm_links: int = 32  # of each kind of stranger; beyond these, newcomers are let in at a rate only
    newcomers: Rate = field(default_factory=lambda: Rate(20, 20))
    max_rest_s: float = 3600.0  # an unproven link at rest for longer is closed
    max_held_bytes: int = 96 * MIB  # by all links of each kind of stranger: waiting, held claims, unsent


class PeerKind(IntEnum):
    """What is known of a peer; a higher one never leaves for a lower one."""

    ANONYMOUS = 0
    KEY = 1  # proves one that nobody here knows: anybody may have made it
    KNOWN = 2  # trusted by name, a member of the group that is served, or on this machine


@dataclass(frozen=True, slots=True)
class Standing:
    """What one open link is, does and holds."""

    number: int
    kind: PeerKind
    rests_s: float  # 0 while it works
    held_bytes: int
    cpu_s: float
    peer: str = ""  # whom it counts for


def peer_key(proof: TransportProof) -> str:
    """Whom a link counts for: the proven verifier, else the network prefix it came from."""
    if proof.peer is not None:
        return proof.peer
    return network_of(proof.address)


class Admission:
    """Counts links and judges newcomers."""

    def __init__(
        self,
        limits: AdmissionLimits,
        trusted: Collection[Verifier] = (),
        is_here: Callable[[TransportProof], bool] = lambda _: True,
    ) -> None:
        self._limits = limits
        self._trusted = trusted
        self._is_here = is_here  # whether a socket or a pipe of this machine is nobody's but ours
        self._per_peer: Counter[str] = Counter()
        self._of_kind: Counter[PeerKind] = Counter()
        self._newcomers = {kind: Bucket(limits.newcomers, 0) for kind in PeerKind}
        self._members: frozenset[Verifier] = frozenset()
        self._entered: dict[TransportProof, list[tuple[PeerKind, str]]] = {}  # as what each link is counted

    def know(self, members: frozenset[Verifier]) -> frozenset[Verifier]:
        """Who is a member from now on; those who were one until now and are not any more."""
        gone, self._members = self._members - members, members
        return gone

    def kind(self, proof: TransportProof) -> PeerKind:
        """What is known about the peer at the other end."""
        if proof.peer and (proof.peer in self._trusted or proof.peer in self._members):
            return PeerKind.KNOWN
        if isinstance(proof.address, StdioAddress | UnixAddress) and self._is_here(proof):
            return PeerKind.KNOWN
        return PeerKind.ANONYMOUS if proof.peer is None else PeerKind.KEY

    def account(self, proof: TransportProof) -> str:
        """Whom a link counts for, in places and in processor time: another key is made in no time."""
        return peer_key(proof) if self.kind(proof) is PeerKind.KNOWN else network_of(proof.address)

    def enter(self, proof: TransportProof, now_ns: int = 0) -> None:
        """A link begins."""
        kind = self.kind(proof)
        if self._is_busy_for(kind):
            self._newcomers[kind].charge(1, now_ns)
        key = self.account(proof)
        self._per_peer[key] += 1
        self._of_kind[kind] += 1
        self._entered.setdefault(proof, []).append((kind, key))

    def leave(self, proof: TransportProof) -> None:
        """A link is gone."""
        entered = self._entered[proof]
        kind, key = entered.pop()  # a peer that became a member meanwhile was counted as what it was
        if not entered:
            del self._entered[proof]
        self._per_peer[key] -= 1
        if not self._per_peer[key]:
            del self._per_peer[key]
        self._of_kind[kind] -= 1

    def links_of(self, proof: TransportProof) -> int:
        """How many links this peer has."""
        return self._per_peer[self.account(proof)]

    def is_crowd(self, proof: TransportProof) -> bool:
        """Whether this peer has all the links that it may have."""
        return self.links_of(proof) >= self._limits.max_links_per_peer

    def lets_in(self, proof: TransportProof, now_ns: int) -> bool:
        """Whether a peer may begin now, if there is a place: each link that begins costs an evaluation."""
        kind = self.kind(proof)
        return not self._is_busy_for(kind) or self._newcomers[kind].has(1, now_ns)

    def _is_busy_for(self, kind: PeerKind) -> bool:
        return kind is not PeerKind.KNOWN and self._of_kind[kind] >= self._limits.calm_links

    def is_full_for(self, proof: TransportProof) -> bool:
        """Whether somebody has to leave first."""
        return self._is_kind_full(self.kind(proof)) or self._of_kind.total() >= self._limits.max_links

    def _is_kind_full(self, kind: PeerKind) -> bool:
        limits = self._limits
        most = {
            PeerKind.ANONYMOUS: limits.max_links - min(limits.reserved_links, limits.max_links // 4),
            PeerKind.KEY: int(limits.max_links * limits.unknown_keys_share),
            PeerKind.KNOWN: limits.max_links,
        }
        return self._of_kind[kind] >= most[kind]

    def leaver(self, standings: Iterable[Standing], proof: TransportProof) -> int | None:
        """The link that gives its place to this peer: at rest, of the lowest kind, of the largest crowd, the one that
        rested longest; of this peer's own kind only if its crowd stays as large as this peer's becomes."""
        if self.is_crowd(proof):
            return None
        kind, own = self.kind(proof), self.links_of(proof)
        lowest = kind if self._is_kind_full(kind) else PeerKind.ANONYMOUS

        def gives_way(found: Standing) -> bool:
            if not lowest <= found.kind <= min(kind, PeerKind.KEY) or not found.rests_s:
                return False
            if found.kind is not kind:
                return True
            return found.rests_s > self._limits.yield_after_s and self._per_peer[found.peer] > own + 1

        resting = [found for found in standings if gives_way(found)]
        if not resting:
            return None
        return min(resting, key=lambda found: (found.kind, -self._per_peer[found.peer], -found.rests_s)).number

    def evicted(self, standings: Iterable[Standing]) -> list[tuple[int, str]]:
        """Which links have to go now, and why: those at rest for too long, then those that hold most of too much.

        The last link of a kind that holds anything may hold it alone: it has its own bounds, and nobody else suffers.
        """
        found = list(standings)
        tired = {
            link.number for link in found if link.kind is PeerKind.ANONYMOUS and link.rests_s > self._limits.max_rest_s
        }
        leaving = [(number, "rested too long without proof") for number in sorted(tired)]
        for kind in (PeerKind.ANONYMOUS, PeerKind.KEY):
            staying = [link for link in found if link.kind is kind and link.number not in tired and link.held_bytes]
            leaving += [(number, "held too much memory for a stranger") for number in self._too_much(staying)]
        return leaving

    def _too_much(self, staying: list[Standing]) -> Iterable[int]:
        held = sum(link.held_bytes for link in staying)
        # At rest before at work, then the largest: what is lost is the least and the most is won.
        staying = sorted(staying, key=lambda link: (link.rests_s == 0, -link.held_bytes))
        # Once it is too much, down to half of that: who stays has room to go on. Else one would leave now and then,
        # and all others be read a little further for nothing.
        most = self._limits.max_held_bytes
        most = most // 2 if held > most else most
        while held > most and len(staying) > 1:
            out = staying.pop(0)
            held -= out.held_bytes
            yield out.number
