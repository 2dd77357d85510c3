"""The host that a node gives a link: its own store behind a gate, or what the application makes.

Rule: whatever host it is, what a peer may bring is decided by the gate here.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from lace.errors import LaceError
from lace.interlace.host import Call, Host
from lace.interlace.setup.terms import Terms
from lace.people.receiving import Receiving
from lace.policy.exposure import shows_everything
from lace.runtime.host.cursors import CursorBook
from lace.runtime.host.host import HostBounds, LocalHost
from lace.runtime.host.quotas import GateRules, QuotaGate, Quotas, quotas_for, wants_lengths
from lace.runtime.host.recentbodies import RecentBodies
from lace.runtime.host.refusedbefore import has_refused
from lace.runtime.node.admission import peer_key
from lace.runtime.node.links import LinkInfo
from lace.runtime.node.pools import NodePools
from lace.runtime.node.reports import Reports
from lace.runtime.rules.policybook import PolicyBook
from lace.store.base import RecordStore, StoreCursor
from lace.transports.base import TransportProof
from lace.values import dataclass

MakeHost = Callable[[Terms, QuotaGate], Host[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosting:
    """What the hosts of all links share."""

    store: RecordStore
    pools: NodePools
    reports: Reports
    policies: PolicyBook
    cursors: CursorBook
    bounds: HostBounds | None
    make: MakeHost | None
    quotas: Callable[[], Quotas | None]  # None: FOR_STRANGERS, where others can reach us
    is_here: Callable[[TransportProof], bool]
    horizon: Callable[[], str] | None
    receiving: Receiving | None = None  # the receive rules of the lace's policy; an archive carries none
    bodies: RecentBodies | None = None  # a host of the application's has its own ways

    def host(self, terms: Terms, proof: TransportProof, info: LinkInfo, is_known: bool, account: str) -> Host[Any]:
        gate = self._gate(terms, proof, info, is_known)
        if self.make is not None:
            return self.make(terms, gate)
        return LocalHost(
            self.store,
            terms,
            workers=self.pools.workers,
            verify=self.pools.verify,
            bounds=self.bounds,
            policies=self.policies,
            house=self.pools.house,
            guest=account,
            gate=gate,
            cursors=self.cursors,
            bodies=self.bodies,
        )

    def get_ready(self, terms: Terms, tai_ns: int, call: Call, *, is_standard: bool) -> None:
        """Work out what the first links under these terms will need; where that fails, they are told."""
        from lace.runtime.node.readying import get_ready  # with the rules, which take their time to load

        host = LocalHost(self.store, terms, workers=self.pools.workers, policies=self.policies, house=self.pools.house)
        try:
            with contextlib.suppress(LaceError):
                get_ready(host, terms, tai_ns, call, is_standard=is_standard)
                self.policies.keep()
        finally:
            host.close()

    @property
    def is_empty(self) -> bool:
        """Whether there never was a record.

        Not asked where an application's host stands for the store: to know it, an archive would ask its cluster.
        """
        return self.make is None and self.store.cursor() == StoreCursor()

    def holds_nothing(self, terms: Terms) -> bool:
        """Whether it may be said that there is no record (070-CAP-06: not where some may be hidden)."""
        return shows_everything(terms.exposures) and self.is_empty

    def takes(self, terms: Terms, proof: TransportProof, is_known: bool) -> int:
        """How many records this peer may bring unnamed (070-TAKE-02): none where we may hold what we do not list, or
        where there may be no room for them; an application's host has its own ways to find out what it lacks."""
        is_alike = self.make is None and shows_everything(terms.exposures)
        if not is_alike or self.wants_lengths(terms, proof, is_known) or has_refused(self.store):
            return 0
        return terms.max_taken

    def wants_lengths(self, terms: Terms, proof: TransportProof, is_known: bool) -> bool:
        """Whether the length of a record may decide whether we keep it; not asked where nothing is requested."""
        return terms.max_requests > 0 and wants_lengths(self.store, self._rules(terms, proof, is_known))

    def _rules(self, terms: Terms, proof: TransportProof, is_known: bool) -> GateRules:
        quotas = quotas_for(self.quotas(), is_known=is_known, is_here=self.is_here(proof))
        return GateRules(
            quotas=quotas,
            is_known=is_known,
            peer=peer_key(proof),
            horizon=self.horizon,
            limits=terms.record_limits,
            receiving=self.receiving,
        )

    def _gate(self, terms: Terms, proof: TransportProof, info: LinkInfo, is_known: bool) -> QuotaGate:
        """What this peer may bring."""
        loop, rules = asyncio.get_running_loop(), self._rules(terms, proof, is_known)

        def tell(kind: str, why: str) -> None:
            with contextlib.suppress(RuntimeError):  # of a thread that outlived the loop
                loop.call_soon_threadsafe(self.reports.limited, info, kind, why)

        return QuotaGate(self.store, rules, tell)
