"""Who may open a link, and who has to leave for whom (docs/serving.md has the order of eviction).

Rule: a peer that proved itself never leaves for one that did not. Unproven peers are counted by network prefix, for
addresses are cheap; a link at rest that proved nothing has its place only as long as nobody needs it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from lace.iltp.address import StdioAddress, UnixAddress
from lace.limits import MIB
from lace.runtime.metering import Bucket, Rate
from lace.transports.base import TransportProof
from lace.transports.prefix import network_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmissionLimits:
    """How many links there may be, of whom, and what all of them may hold."""

    max_links: int = 256  # open at a time, of everybody
    max_links_per_peer: int = 32  # by proven verifier, else by network prefix
    reserved_links: int = 32  # of max_links (a quarter at most), kept free for peers that prove themselves
    yield_after_s: float = 1.0  # at rest for so long, an unproven link gives its place to whoever comes
    calm_links: int = 32  # of unproven peers; with more, others are let in at the rate below, whoever leaves for them
    newcomers: Rate = field(default_factory=lambda: Rate(20, 20))
    max_rest_s: float = 3600.0  # an unproven link at rest for longer is closed
    max_held_bytes: int = 96 * MIB  # by all links that proved nothing: waiting, held claims, unsent


@dataclass(frozen=True, slots=True)
class Standing:
    """What one open link is, does and holds."""

    number: int
    is_proven: bool
    rests_s: float  # 0 while it works
    held_bytes: int
    cpu_s: float
    peer: str = ""  # whom it counts for


def peer_key(proof: TransportProof) -> str:
    """Whom a link counts for: the proven verifier, else the network prefix it came from."""
    if proof.peer is not None:
        return proof.peer
    address = proof.address
    if isinstance(address, StdioAddress | UnixAddress):
        return str(address)
    return network_prefix(address.host)


class Admission:
    """Counts links and judges newcomers."""

    def __init__(self, limits: AdmissionLimits) -> None:
        self._limits = limits
        self._per_peer: Counter[str] = Counter()
        self._unproven = 0
        self._all = 0
        self._newcomers = Bucket(limits.newcomers, 0)

    def enter(self, proof: TransportProof, now_ns: int = 0) -> None:
        """A link begins."""
        if self._is_busy_for(proof):
            self._newcomers.charge(1, now_ns)
        self._per_peer[peer_key(proof)] += 1
        self._unproven += proof.peer is None
        self._all += 1

    def leave(self, proof: TransportProof) -> None:
        """A link is gone."""
        key = peer_key(proof)
        self._per_peer[key] -= 1
        if not self._per_peer[key]:
            del self._per_peer[key]
        self._unproven -= proof.peer is None
        self._all -= 1

    def links_of(self, proof: TransportProof) -> int:
        """How many links this peer has."""
        return self._per_peer[peer_key(proof)]

    def is_crowd(self, proof: TransportProof) -> bool:
        """Whether this peer has all the links that it may have, so that one of its own has to leave first."""
        return self._per_peer[peer_key(proof)] >= self._limits.max_links_per_peer

    def lets_in(self, proof: TransportProof, now_ns: int) -> bool:
        """Whether a peer may begin now, if there is a place: each link that begins costs an evaluation."""
        return not self._is_busy_for(proof) or self._newcomers.has(1, now_ns)

    def _is_busy_for(self, proof: TransportProof) -> bool:
        return proof.peer is None and self._unproven >= self._limits.calm_links

    def is_full_for(self, proof: TransportProof) -> bool:
        """Whether somebody has to leave first."""
        limits = self._limits
        reserved = min(limits.reserved_links, limits.max_links // 4)
        is_crowded = proof.peer is None and self._unproven >= limits.max_links - reserved
        return is_crowded or self._all >= limits.max_links

    def leaver(self, standings: Iterable[Standing], proof: TransportProof) -> int | None:
        """The link that gives its place to this peer: unproven, at rest, the longest first; of a crowd one of it."""
        patience = self._limits.yield_after_s if proof.peer is None else 0.0
        own = peer_key(proof) if self.is_crowd(proof) else None
        resting = [
            found
            for found in standings
            if not found.is_proven and found.rests_s > patience and own in (None, found.peer)
        ]
        return max(resting, key=lambda found: found.rests_s).number if resting else None

    def evicted(self, standings: Iterable[Standing]) -> list[tuple[int, str]]:
        """Who has to go now, and why: first who rested too long, then who holds most while too much is held.

        The last link that holds anything may hold it alone: it has its own bounds, and nobody else suffers.
        """
        unproven = [found for found in standings if not found.is_proven]
        tired = [found for found in unproven if found.rests_s > self._limits.max_rest_s]
        leaving = [(found.number, "rested too long without proof") for found in tired]
        staying = [found for found in unproven if found not in tired and found.held_bytes]
        held = sum(found.held_bytes for found in staying)
        # At rest before at work, then the largest: what is lost is the least and the most is won.
        staying.sort(key=lambda found: (found.rests_s == 0, -found.held_bytes))
        while held > self._limits.max_held_bytes and len(staying) > 1:
            out = staying.pop(0)
            held -= out.held_bytes
            leaving.append((out.number, "held too much memory without proof"))
        return leaving
