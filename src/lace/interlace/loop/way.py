"""How a loop learns what both sides advertise (050, 070): what all ways have in common.

Rule: a way starts in LISTING with our `adv` and ends in REQUEST with both advertisement states known, or gives up and
leaves the loop to another way. It moves between the phases of its own; which way a loop takes is the loop's to decide.

`listed` lists whole sets, `partitioned` compares them partition by partition (P16), `compared` by sums and sketches
(070). Each has the fields that it needs and no others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto

from lace.errors import LocalProtocolError
from lace.interlace.claims.partitions import Partition
from lace.interlace.core import Core
from lace.interlace.effects import TakeClaims
from lace.interlace.inputs import (
    ClaimsTaken,
    Decoded,
    DifferenceTaken,
    Lacking,
    Measured,
    Reconciled,
    Sketched,
    Summarised,
)
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.differencefacts import Summary
from lace.interlace.loop.epoch import Epoch
from lace.interlace.phases import Question
from lace.notation.fact import Fact
from lace.values import dataclass

WayAnswer = Summarised | ClaimsTaken | Reconciled | Measured | Sketched | Decoded | DifferenceTaken


class Progress(Enum):
    """How far a way has come after a step."""

    OPEN = auto()  # it waits for the peer or for an answer of our own side
    ADVERTISED = auto()  # our `adv` is out
    KNOWN = auto()  # in REQUEST: both advertisement states are current
    EQUAL = auto()  # in REQUEST: and the sets are equal, so that neither side can ask for anything (070-EQUAL-03)
    UNEXPLAINED = auto()  # in REQUEST: the changes that the peer listed do not explain its sums (070-BASE-04)
    DOUBTED = auto()  # in REQUEST: what the sketch gave does not add up either (070-DROP-01)
    DROPPED = auto()  # given up: the standard advertisement follows (070-DROP-02)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PeerAdvertisement:
    """The peer's `adv`: a listing, partition summaries, or a summary of its set with the changes beside it."""

    listing: TakeClaims | None = None
    partitions: Sequence[Partition] = ()
    summary: Summary | None = None


class Way(ABC):
    """One way of learning what the peer advertises, and of telling it what we do."""

    taken: Lacking | None = None  # both sides know what each lacks, so neither names it (070-TAKE-03)

    def __init__(self, core: Core, epoch: Epoch) -> None:
        self._core = core
        self._epoch = epoch

    @abstractmethod
    def advertise(self) -> Progress:
        """Send our `adv`."""

    @abstractmethod
    def listing_sent(self) -> Progress:
        """A listing on its way out is complete."""

    @abstractmethod
    def meet(self, theirs: PeerAdvertisement) -> Progress:
        """Both `adv` are there."""

    @abstractmethod
    def answer(self, question: Question, item: WayAnswer) -> Progress:
        """Our own side answered a question of this way."""

    def receive(self, block: BlockReader) -> Progress:
        """A block of the peer in a phase of this way."""
        raise LocalProtocolError(f"a {block.kind.value} block on a way that has none")

    def _end_advertisement(self, facts: Sequence[Fact]) -> Progress:
        self._core.send_block(facts)
        self._epoch.note_advertised()
        self._core.sent = True
        return Progress.ADVERTISED

    def _take_listing(self, listing: TakeClaims) -> Progress:
        """Have our own side take over a listing of the peer."""
        core, epoch = self._core, self._epoch
        crossed = frozenset(core.refusals.crossed) if epoch.ends_when_equal else frozenset()
        core.ask(Question.THEIR_LISTING, replace(listing, max_named=epoch.takes, crossed=crossed))
        return Progress.OPEN


def unasked(question: Question, item: WayAnswer) -> LocalProtocolError:
    """Our own side gave an answer that the question does not have."""
    return LocalProtocolError(f"asked to {question.value}, and {type(item).__name__} came")
