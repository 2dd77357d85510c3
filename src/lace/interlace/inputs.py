"""What an interlace machine is told (050): a closed union.

Rule: inputs are values; bytes of records never stand in one. Inputs from the peer come only while the machine
`wants_peer_input`; inputs that answer an effect come once for each effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from lace.differences.keyed import U64
from lace.differences.sketch import Symbols
from lace.errors import LaceError
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import Partition
from lace.interlace.effects import SetHandle
from lace.interlace.loop.refusals import NOTHING_HELD_BACK, HeldBack, Reason
from lace.interlace.setup.terms import Rules
from lace.notation.fact import Fact
from lace.notation.identifiers import RecordHash
from lace.policy.operand import Module
from lace.values import dataclass

# --- from the peer ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FactsReceived:
    """Fact lines of the current block, any part of it, with their bytes (LFs included)."""

    facts: Sequence[Fact]
    size: int = 0


@dataclass(frozen=True, slots=True)
class AdvertisementsReceived:
    """Advertisement records as values instead of fact lines, for a binding that carries values (050-FACT-12)."""

    advertisements: Sequence[Advertisement]


@dataclass(frozen=True, slots=True)
class ChangesReceived:
    """What changed in the peer's send set, or all of it, for two sides in one process (050-ENG-07)."""

    added: Sequence[Advertisement]
    removed: Sequence[str]
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class ResourceReceived:
    """A resource block; `text` are its recovered bytes, `read` what they are as a module if that is known: to read many
    rules takes long, and the driver may have other links that wait."""

    id: str
    kind: str
    text: bytes
    read: Module | LaceError | None = None


@dataclass(frozen=True, slots=True)
class RecordsReceived:
    """Delimited records as their marklines claim, each with its stored size; the driver keeps the bytes."""

    records: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class BlockEnded:
    """The blank line that ends a fact block or a record batch."""


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """The peer closed. `clean` if no item was cut; whether it was a phase boundary the machine knows."""

    clean: bool = True


@dataclass(frozen=True, slots=True)
class StreamFailed:
    """The codec refused the peer's bytes."""

    detail: str


PeerInput = (
    FactsReceived
    | AdvertisementsReceived
    | ChangesReceived
    | ResourceReceived
    | RecordsReceived
    | BlockEnded
    | StreamEnded
    | StreamFailed
)

# --- answers to effects ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PolicyPrepared:
    """Answers PreparePolicy."""

    claims: int = 0  # of the peer that are known from before


@dataclass(frozen=True, slots=True)
class PolicyRefused:
    """Answers PreparePolicy: no local executable could be made."""

    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """Answers Evaluate.

    Sendable: `MaySend(P)`, `Have(P)` and, with the send gate, `CanQueryRecord(Viewer,P)`. Requestable: `MayRequest(P)`
    and not `Have(P)`, claimed by the peer, of an accepted format, and not refused.
    """

    own: SetHandle  # what is sendable
    partitions: int = 0  # starting partitions of it that are not empty
    listing_bytes: int = 0  # its canonical records under our label; at least this, past what was to be measured
    requests: Sequence[str] = ()  # what is requestable, sorted, within the bounds given
    fingerprint: bytes = b""  # of our listing, and below of the peer's: only where listings depend on listings (P13)
    claims_fingerprint: bytes = b""
    store_mark: int = 0  # StoreRecordId high water of the snapshot, for diagnostics (050-STATE-02)
    held_back: HeldBack = NOTHING_HELD_BACK  # what is requestable and would not be kept, where requests were asked for
    claims_are_known: bool = True  # if not they are less than a full listing says, and so are the requests (P34)


@dataclass(frozen=True, slots=True)
class EvaluationFailed:
    """Answers Evaluate: a limit or an error stopped it (050-EVAL-04)."""

    detail: str
    limit: str = ""  # the name of the limit that was reached, if it was one


@dataclass(frozen=True, slots=True)
class Summarised:
    """Answers Summarise: the non-empty partitions, sorted."""

    partitions: Sequence[Partition]


@dataclass(frozen=True, slots=True)
class Lacking:
    """How the peer's listing differs from ours: records that only one of the two names, sorted."""

    peer: Sequence[str]  # in ours
    ours: Sequence[str]  # in the peer's


@dataclass(frozen=True, slots=True)
class ClaimsTaken:
    """Answers TakeClaims: how many claims the peer now makes, and whether that is another set of them than before.

    Where sets are compared (070) it also tells whether they are about exactly the records of our set, with all that
    crossed, and names what differs if that was asked for and is little enough.
    """

    count: int
    changed: bool
    is_own: bool = False
    lacking: Lacking | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reconciled:
    """Answers Reconcile: the offered partitions whose claims cannot be named, and how many claims we know there."""

    unknown: Mapping[Partition, int]
    count: int  # of the peer's claims that are known
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Answers Measure; what came and went since the earlier set, or None if that is not known any more."""

    measured: U64 | None = None  # the sums, if they were asked for
    root: bytes = b""
    count: int = 0
    added: Sequence[str] | None = None
    removed: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class Sketched:
    """Answers Sketch."""

    symbols: Symbols


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Answers Decode: how the sets differ, or that the symbols do not tell yet, or never will."""

    absent: Sequence[str] = ()  # records of ours that the peer lacks
    lacking: U64 | None = None  # short ids of records of the peer that we lack; None: not decoded
    is_hopeless: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferenceTaken:
    """Answers TakeDifference and TakeChange: whether the sums agreed; if not, nothing was changed."""

    agrees: bool
    absent: Sequence[str] = ()  # the records that the peer named
    count: int = 0
    changed: bool = False
    holds_crossed: bool = True  # our set has everything that was said to have crossed


@dataclass(frozen=True, slots=True)
class ListingRefused:
    """Answers Reconcile: what was listed is not what its summaries promised."""

    detail: str
    clause: str


@dataclass(frozen=True, slots=True)
class ListingSent:
    """Answers SendListing: all of it was given to the stream."""

    records: Sequence[str] = ()  # that were listed, if they were to be named


@dataclass(frozen=True, slots=True)
class RecordsSent:
    """Answers SendRecords: what was written with its stored size, and what may not be sent or is no longer there.

    Hashes in neither were left out because of a budget: they are deferred.
    """

    sent: Sequence[tuple[str, int]]
    missing: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RecordsStored:
    """Answers StoreRecords for these: validated and durable."""

    hashes: Sequence[RecordHash]


@dataclass(frozen=True, slots=True)
class RecordsRejected:
    """Answers StoreRecords for these: hash to why they are not kept (050-VALID-05, P37).

    `words` has the reason to tell the peer; where it has none, the bytes were not that record.
    """

    reasons: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, Reason] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LocalFailed:
    """Our own side cannot go on (the store failed, a limit of ours was reached, a program error)."""

    detail: str
    limit: str = ""  # the name of the limit, if it was one


# --- from our own side -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LocalChanged:
    """Records were stored or removed, or another input of the evaluation changed."""


@dataclass(frozen=True, slots=True)
class RulesChanged:
    """Our side has other rules now: a new epoch, where the next loop could start (050-OPEN-05).

    The last that is told before an epoch begins counts. What is None stays as it is.
    """

    rules: Rules
    holds_nothing: bool | None = None  # of MachineConfig, where what we show decides about them
    takes: int | None = None


@dataclass(frozen=True, slots=True)
class TimerFired:
    """The moment of `next_timer` has come."""


@dataclass(frozen=True, slots=True)
class CloseRequested:
    """Our side wants to end the exchange at the next phase boundary (050-OPEN-09)."""


HostAnswer = (
    PolicyPrepared
    | PolicyRefused
    | Evaluated
    | EvaluationFailed
    | Summarised
    | ClaimsTaken
    | Reconciled
    | Measured
    | Sketched
    | Decoded
    | DifferenceTaken
    | ListingRefused
    | LocalFailed
)
LocalInput = (
    HostAnswer
    | ListingSent
    | RecordsSent
    | RecordsStored
    | RecordsRejected
    | LocalChanged
    | RulesChanged
    | TimerFired
    | CloseRequested
)
Input = PeerInput | LocalInput
