"""What an application hears of an exchange (050-OPS-04): progress, never protocol.

Rule: an event says what happened on our side; no event changes what happens next.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lace.notation.identifiers import ExchangePlanId, RecordHash
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class EpochBegan:
    """Both sides agreed on a plan."""

    plan: ExchangePlanId
    epoch: int


@dataclass(frozen=True, slots=True)
class Advertising:
    """Both advertisement states are known: ours as sent, the peer's as reconciled."""

    ours: int
    theirs: int


@dataclass(frozen=True, slots=True)
class Requested:
    """The two request lists of a loop."""

    by_us: int
    by_peer: int


@dataclass(frozen=True, slots=True)
class Received:
    """Records validated and stored."""

    hashes: Sequence[RecordHash]
    bytes_received: int  # of the whole exchange so far


@dataclass(frozen=True, slots=True)
class Rejected:
    """Records that came and are not kept, with why."""

    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unwanted:
    """So many records came unasked, as agreed, and our rules did not want them: nothing is kept of them."""

    count: int


@dataclass(frozen=True, slots=True)
class HoldingBack:
    """Records that a side's rules want and that it does not ask for, because it would not keep them: by reason."""

    by_us: Mapping[str, int]
    by_peer: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Taken:
    """Records that were sent and that the peer kept."""

    hashes: Sequence[str]


@dataclass(frozen=True, slots=True)
class RefusedByPeer:
    """Records that were sent and that the peer did not keep, with its reasons."""

    reasons: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Sent:
    """Records written to the peer; whether it keeps them is told later, by Taken or RefusedByPeer, if it tells."""

    hashes: Sequence[str]
    bytes_sent: int  # of the whole exchange so far


@dataclass(frozen=True, slots=True)
class NotAvailable:
    """Requested records that the peer can no longer send."""

    hashes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Deferred:
    """Requested records that the peer left for later."""

    hashes: Sequence[str]


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Nothing requestable is left on either side."""

    loops: int


@dataclass(frozen=True, slots=True)
class Ticked:
    """The shared time moved."""

    tai: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The exchange is over; `reason` is empty if nothing went wrong."""

    reason: str


Event = (
    EpochBegan
    | Advertising
    | Requested
    | Received
    | Rejected
    | Unwanted
    | HoldingBack
    | Sent
    | Taken
    | RefusedByPeer
    | NotAvailable
    | Deferred
    | FixedPoint
    | Ticked
    | Closed
)
"""Anything that may happen on a link."""
