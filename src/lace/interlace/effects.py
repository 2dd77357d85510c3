"""What an interlace machine asks for (050): a closed union.

Rule: the machine asks, the driver does. Effects are carried out in the order given; the ones that say so are
answered by exactly one input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lace.interlace.advertisement import Advertisement, Claims
from lace.interlace.cursor import AdvertisementCursor
from lace.interlace.events import Event
from lace.interlace.negotiate import FieldSchema
from lace.interlace.partitions import Parts
from lace.interlace.reasons import AbortReason
from lace.interlace.result import InterlaceResult
from lace.interlace.runtimefacts import RuntimeFacts
from lace.notation.fact import Fact
from lace.policy.compile import ExchangePlan
from lace.policy.origin import Source, Viewer

# --- to the peer -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendFacts:
    """Fact lines of the current block."""

    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True)
class SendAdvertisements:
    """The canonical records of these, under our source label, as fact lines of the current block."""

    advertisements: Sequence[Advertisement]
    source: Source


@dataclass(frozen=True, slots=True)
class SendChanges:
    """What changed in our send set since the last one, to a peer in this process; all of it if `is_whole`."""

    added: Sequence[Advertisement]
    removed: Sequence[str]
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class SendResource:
    """A resource block."""

    id: str
    kind: str
    text: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SendRecords:
    """Load and write stored records, in this order, until a bound is reached; answered by RecordsSent.

    A record that would pass `limit_bytes` is not written, and none after it; the same for `budget_bytes`, except that
    the first record is written however large it is.
    """

    hashes: Sequence[str]
    budget_bytes: int
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class EndBlock:
    """The blank line."""


# --- to our own side -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LoadCursor:
    """Answered by CursorLoaded."""

    key: str


@dataclass(frozen=True, slots=True)
class SaveCursor:
    """Keep this for the link; not answered."""

    key: str
    cursor: AdvertisementCursor


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparePolicy:
    """Make the local executable of a plan, forgetting the one before; answered by PolicyPrepared or PolicyRefused."""

    plan: ExchangePlan
    local_index: int
    viewer: Viewer
    schema: FieldSchema
    send_gate: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluate:
    """Evaluate over the store's newest snapshot; answered by Evaluated or EvaluationFailed.

    Advertisement facts come as changes: first those removed, then those added.
    """

    runtime: RuntimeFacts
    source: Source
    advertised_added: Claims
    advertised_removed: Claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Summarise:
    """Work out the roots of many partitions; answered by Summarised.

    It takes time that other links should not wait for, and it may be done in several processes.
    """

    source: str
    parts: Parts
    max_line_bytes: int


@dataclass(frozen=True, slots=True)
class StoreRecords:
    """Validate and store what was received under these hashes; each is answered once, stored or rejected."""

    hashes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Report:
    """Something an application may want to hear of; never seen by the peer (050-OPS-04)."""

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


Effect = (
    SendFacts
    | SendAdvertisements
    | SendChanges
    | SendResource
    | SendRecords
    | EndBlock
    | LoadCursor
    | SaveCursor
    | PreparePolicy
    | Evaluate
    | Summarise
    | StoreRecords
    | Report
    | Finish
    | Abort
)
