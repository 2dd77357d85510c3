"""What one side reports of an exchange (050, Interlace-Result).

Rule: it says what this side saw, never what it tried. A hash stands in at most one of received, rejected and not
available, and in at most one of sent, refused and unconfirmed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from lace.interlace.loop.refusals import NOTHING_HELD_BACK, HeldBack, Reason
from lace.notation.identifiers import ExchangePlanId, RecordHash, Verifier
from lace.values import dataclass


class ExchangeStatus(StrEnum):
    """How an exchange ended, the best first."""

    CONVERGED = "converged"  # both sides are known to have what both rules select
    INCOMPLETE = "incomplete"  # it went to its end, and a side refused, lacked or did not confirm something
    CLOSED_EARLY = "closed_early"  # it ended before that: a side hung up, was lost, or broke the protocol
    LIMITED = "limited"  # a limit ended it
    REFUSED = "refused"  # a side has no terms for the other, and nothing was exchanged


@dataclass(frozen=True, slots=True, kw_only=True)
class InterlaceResult:
    """What an exchange reports (050), then what a person also wants to know."""

    link_id: str | None = None  # 050-RESULT-02: 64 hexadecimal digits
    exchange_plan_id: ExchangePlanId | None = None  # 050-RESULT-03
    peer_verifier: Verifier | None = None  # 050-RESULT-04
    received_hashes: Sequence[RecordHash] = ()  # 050-RESULT-05
    rejected_hashes: Mapping[str, str] = field(default_factory=dict)  # 050-RESULT-06, with why
    not_available_hashes: Sequence[str] = ()  # 050-RESULT-07
    bytes_received: int = 0  # 050-RESULT-08
    bytes_sent: int = 0
    cursor_updated: bool = False  # 050-RESULT-09

    sent_hashes: Sequence[str] = ()  # that the peer took (P37)
    unconfirmed_hashes: Sequence[str] = ()  # written to a peer that did not tell what it kept of them
    refused_hashes: Mapping[str, str] = field(default_factory=dict)  # that the peer received and did not keep: why
    held_back: Mapping[str, int] = field(default_factory=dict)  # that our rules want and we would not keep: by reason
    held_back_by_peer: HeldBack = NOTHING_HELD_BACK  # the same of the peer
    fixed_point: bool = False
    loops: int = 0
    advertised_to_peer: int = 0
    advertised_by_peer: int = 0
    both_hold_nothing: bool = False  # no record here and, by its own word, none at the peer
    epochs: int = 0
    limit_reached: str = ""  # the name of the limit that closed the exchange early
    closed_by_peer: bool = False  # the peer closed before our side was done
    store_mark: int = 0  # StoreRecordId high water of the last evaluation (050-STATE-02)

    @property
    def is_complete(self) -> bool:
        """Whether it ended where exchanges should: at a fixed point, with no limit and no early close before it."""
        return self.fixed_point and not self.limit_reached and not self.closed_by_peer

    @property
    def is_converged(self) -> bool:
        """Whether both sides are known to have what both rules select; what a peer did not confirm is not known."""
        return self.is_complete and not self.has_refusals and not self.unconfirmed_hashes

    @property
    def status(self) -> ExchangeStatus:
        """How it ended, for an exchange that nobody broke off."""
        if self.limit_reached:
            return ExchangeStatus.LIMITED
        if not self.is_complete:
            return ExchangeStatus.CLOSED_EARLY
        return ExchangeStatus.CONVERGED if self.is_converged else ExchangeStatus.INCOMPLETE

    @property
    def missing(self) -> str:
        """What keeps it from being converged, in words; empty if nothing does."""
        counts = (
            (len(self.rejected_hashes), "rejected here"),
            (len(self.not_available_hashes), "no longer to be had"),
            (sum(self.held_back.values()), "wanted and not asked for"),
            (sum(self.held_back_by_peer.counts.values()), "that the peer wants and does not ask for"),
            (len(self.missed_by_peer), "that the peer did not keep"),
            (len(self.unconfirmed_hashes), "that the peer did not confirm"),
        )
        said = [f"{count:,} {what}" for count, what in counts if count]
        if self.limit_reached:
            said.insert(0, f"the limit {self.limit_reached} was reached")
        elif not self.is_complete:
            said.insert(0, f"closed by {'the peer' if self.closed_by_peer else 'our side'} before its end")
        return ", ".join(said)

    @property
    def has_refusals(self) -> bool:
        """Whether a side did not keep, take or give something that both rules select."""
        ours = self.rejected_hashes or self.not_available_hashes or self.held_back
        return bool(ours or self.held_back_by_peer or self.missed_by_peer)

    @property
    def missed_by_peer(self) -> Mapping[str, str]:
        """What the peer wanted and did not keep, with its reasons; without what it no longer wanted."""
        return {record: why for record, why in self.refused_hashes.items() if why != Reason.WITHDRAWN}
