"""What an interlace machine asks for (050): a closed union.

Rule: the machine asks, the driver does. Effects are carried out in the order given; the ones that say so are
answered by exactly one input. Of our own records an effect speaks by the handle of a set, never as a list.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lace.differences.keyed import U64, DifferenceKey
from lace.differences.sketch import Symbols
from lace.interlace.claims.advertisement import Claims
from lace.interlace.claims.partitions import Partition
from lace.interlace.events import Event
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.interlace.runtimefacts import RuntimeFacts
from lace.interlace.setup.hello import FieldSchema
from lace.notation.fact import Fact
from lace.policy.compile import ExchangePlan
from lace.policy.exposure import Exposure
from lace.policy.origin import Source, Viewer
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class SetHandle:
    """What we may send at one moment, by name; the host knows the rest.

    A host gives the same number to the same set of the same policy and another one when the set has changed. A handle
    serves until the next evaluation has been answered, and as the `since` of SendChanges or Measure until that was
    carried out.
    """

    number: int
    count: int


# --- to the peer -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendFacts:
    """Fact lines of the current block."""

    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class SendListing:
    """The canonical records of a set under our label as lines of the current block; answered by ListingSent."""

    own: SetHandle
    source: Source
    prefixes: Sequence[str] | None = None  # only these partitions
    records: Sequence[str] | None = None  # only these records
    is_named: bool = False  # whether the answer says which records they were

    def names(self, listed: Claims) -> list[str]:
        """What the answer says of some that were listed."""
        return [claim.hash for claim in listed] if self.is_named else []


@dataclass(frozen=True, slots=True)
class SendChanges:
    """How a set differs from an earlier one, or all of it, to a peer in this process."""

    own: SetHandle
    since: SetHandle | None


@dataclass(frozen=True, slots=True)
class SendResource:
    """A resource block."""

    id: str
    kind: str
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRecords:
    """Load and write those of these records that are in a set, until a bound is reached; answered by RecordsSent.

    A record that would pass `limit_bytes` is not written, and none after it; the same for `budget_bytes`, except that
    the first record is written however large it is.
    """

    own: SetHandle
    hashes: Sequence[str]
    budget_bytes: int
    limit_bytes: int
    are_in_set: bool = False  # we listed them from this very set, so they need not be looked up again


@dataclass(frozen=True, slots=True)
class EndBlock:
    """The blank line."""


# --- to our own side -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePolicy:
    """Make the local executable of a plan, forgetting the one before; answered by PolicyPrepared or PolicyRefused.

    The peer's claims are kept for a plan that stays the same, else those of the cursor under this key are taken.
    """

    plan: ExchangePlan
    local_index: int
    viewer: Viewer
    schema: FieldSchema
    send_gate: bool
    exposures: tuple[Exposure, ...]  # what the peer's rules see of our records
    own_source: Source
    peer_source: Source
    record_formats: frozenset[str]  # that may be requested (050-FMT-03, 050-FMT-04)
    keeps_claims: bool = False
    cursor_key: str = ""
    difference_key: DifferenceKey | None = None  # 070, if it is agreed

    @property
    def are_all_ours(self) -> bool:
        """Whether the peer brought the rules that we did."""
        first, second = self.plan.operands
        return first.module.id == second.module.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate:
    """Evaluate over the store's newest snapshot and the peer's claims; answered by Evaluated or EvaluationFailed."""

    runtime: RuntimeFacts
    measured_bytes: int = 0  # up to here the length of our listing has to be exact
    max_requests: int = 0  # how many of the requestable records are named, the smallest hashes first
    max_request_bytes: int = 0  # as lines of a request list
    refused: frozenset[str] = frozenset()  # not to be requested now


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise:
    """Summarise a set under our label; answered by Summarised."""

    own: SetHandle
    source: Source
    parents: Sequence[str] | None = None  # the children of these partitions; None: the starting partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeClaims:
    """The peer's claims changed, or are these from now on if `is_whole`; answered by ClaimsTaken.

    With `max_named` the answer names what differs from our set, if neither side has more differences than that.
    `crossed` went from one side to the other since the last request lists: a set that lacks one of them is not settled.
    """

    added: Claims
    removed: Sequence[str] = ()
    is_whole: bool = False
    max_named: int = 0
    crossed: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconcile:
    """Take over what the peer says of its partitions, as far as its claims can be named; answered by Reconciled.

    `listed` were promised before and are given now as `claims`, or ListingRefused is the answer. `offered` are all
    non-empty children of `parents`, or all its starting partitions: whatever else was held there is forgotten.
    """

    own: SetHandle
    offered: Sequence[Partition]
    parents: Sequence[str] | None = None
    listed: Sequence[Partition] = ()
    claims: Claims = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Measure a set under the epoch's key, and say how it differs from an earlier one; answered by Measured (070).

    The root is worked out once for all links; sums are a pass over the set for each.
    """

    own: SetHandle
    since: SetHandle | None = None
    root: bool = False
    sums: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """Some symbols of a set's sketch; answered by Sketched."""

    own: SetHandle
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decode:
    """Further symbols of the peer's set, the first is number `start`; answered by Decoded."""

    own: SetHandle
    start: int
    symbols: Symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeDifference:
    """The peer claims what is in a set but for some records, and these claims beside; answered by DifferenceTaken.

    It is taken over only if count and sums are those that the peer told. Where the roots agree the sets are the same,
    and what either side told is taken for both.
    """

    own: SetHandle
    claims: Claims
    told: U64
    is_equal: bool = False
    absent: Sequence[str] = ()
    named: U64 | None = None  # the same as short ids, if the peer named them
    crossed: Collection[str] = ()  # as in TakeClaims


@dataclass(frozen=True, slots=True, kw_only=True)
class TakeChange:
    """The peer's claims changed since they were last taken over; answered by DifferenceTaken.

    It is taken over only if count and sums are then those that the peer told: with the records that it was sent
    meanwhile, or without them.
    """

    own: SetHandle
    added: Claims
    removed: Sequence[str]
    sent: Sequence[str]
    told: U64


@dataclass(frozen=True, slots=True)
class KeepClaims:
    """Keep the peer's claims for the next exchange over this link; not answered."""

    key: str


@dataclass(frozen=True, slots=True)
class StoreRecords:
    """Validate and store what was received under these hashes; each is answered once, stored or rejected.

    Whatever was received with them and is not among them is dropped: it is not wanted (070-TAKE-05).
    """

    hashes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Report:
    """Something an application may want to know; the peer never sees it (050-OPS-04)."""

    event: Event


@dataclass(frozen=True, slots=True)
class Finish:
    """Close the stream: the exchange is over."""

    result: InterlaceResult


@dataclass(frozen=True, slots=True)
class Abort:
    """Close the stream without further bytes (050-ERR-20); `result` is what was reached before."""

    reason: AbortReason
    detail: str
    result: InterlaceResult


HostEffect = (
    PreparePolicy
    | Evaluate
    | Summarise
    | TakeClaims
    | Reconcile
    | Measure
    | Sketch
    | Decode
    | TakeDifference
    | TakeChange
    | KeepClaims
)
"""What a host carries out as it stands, by `lace.interlace.host.perform`."""

Effect = (
    SendFacts
    | SendListing
    | SendChanges
    | SendResource
    | SendRecords
    | EndBlock
    | HostEffect
    | StoreRecords
    | Report
    | Finish
    | Abort
)
