"""What one side reports of an exchange (050, Interlace-Result).

Rule: it says what this side saw; a hash stands in at most one of received, rejected and not available.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from lace.notation.identifiers import ExchangePlanId, RecordHash, Verifier
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class InterlaceResult:
    """The fields of 050, then what a person also wants to know."""

    link_id: str | None = None  # 050-RESULT-02: 64 hexadecimal digits
    exchange_plan_id: ExchangePlanId | None = None  # 050-RESULT-03
    peer_verifier: Verifier | None = None  # 050-RESULT-04
    received_hashes: Sequence[RecordHash] = ()  # 050-RESULT-05
    rejected_hashes: Mapping[str, str] = field(default_factory=dict)  # 050-RESULT-06, with why
    not_available_hashes: Sequence[str] = ()  # 050-RESULT-07
    bytes_received: int = 0  # 050-RESULT-08
    bytes_sent: int = 0
    cursor_updated: bool = False  # 050-RESULT-09

    sent_hashes: Sequence[str] = ()
    fixed_point: bool = False
    loops: int = 0
    advertised_to_peer: int = 0
    advertised_by_peer: int = 0
    both_hold_nothing: bool = False  # no record here and, by its own word, none at the peer
    epochs: int = 0
    limit_reached: str = ""  # the name of the limit that closed the exchange early
    closed_by_peer: bool = False  # the peer closed before our side was done
    store_mark: int = 0  # StoreRecordId high water of the last evaluation (050-STATE-02)
