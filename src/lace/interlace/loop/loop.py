"""One loop of an exchange up to its request lists (050): advertise, reconcile, request.

Rule: a loop holds one way (`way`) of making both advertisement states known, takes another only where the peer's `adv`
or a doubt calls for it, and ends with the request lists. A phase is left when our part is sent, the peer's part is read
and our own side's work on it is done; so both sides go through the same phases in lockstep (050-DRV-04).
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import assert_never

from lace.errors import LocalProtocolError
from lace.interlace.claims.partitions import START_LENGTH
from lace.interlace.core import Core
from lace.interlace.effects import EndBlock, SendFacts
from lace.interlace.events import Advertising, HoldingBack, Requested, Taken
from lace.interlace.inputs import Lacking
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.compared import ComparedWay
from lace.interlace.loop.differencefacts import ASK, DROP, malformed, only, read_summary
from lace.interlace.loop.epoch import TICK_ROOM, Epoch
from lace.interlace.loop.listed import ListedWay, ToNothingWay
from lace.interlace.loop.listingsize import uses_partitions
from lace.interlace.loop.partitioned import PartitionedWay, read_summaries
from lace.interlace.loop.refusals import NOTHING_HELD_BACK, TELLS_DECLINED, read_held_back, read_refused
from lace.interlace.loop.requests import OneLine, request_bytes
from lace.interlace.loop.way import PeerAdvertisement, Progress, Way, WayAnswer
from lace.interlace.phases import Move, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.notation.fact import Fact


class LoopEnd(Enum):
    """How a loop goes on."""

    WANTED = auto()  # records are asked for: a transfer follows
    NOT_SETTLED = auto()  # nothing is asked for, but the listings may still change (P13)
    SETTLED = auto()  # a fixed point


class Loop:
    """The phases LISTING to REQUEST."""

    def __init__(self, core: Core, epoch: Epoch) -> None:
        self._core = core
        self._epoch = epoch
        self._way: Way | None = None  # chosen when it is known what we may send
        self._peer_adv: PeerAdvertisement | None = None  # which may be there before that
        self._may_compare = epoch.agreement.negotiated.differences and not core.config.is_direct
        self._one_line = OneLine(core.terms.min_asked_in_one_line)
        self._doubt: Fact | None = None  # sent in the place of our requests
        self._requested: list[str] = []
        self.peer_requests: list[str] = []
        self.end: LoopEnd | None = None

    @property
    def is_asked_for_all(self) -> bool:
        """Whether the peer asked in one line for all of our set."""
        return self._one_line.is_asked_for_all

    @property
    def _chosen(self) -> Way:
        if self._way is None:
            raise LocalProtocolError("nothing is advertised yet")
        return self._way

    # --- which way ---------------------------------------------------------------------------------------------

    def advertise(self) -> None:
        """Our `adv`: the whole current send set, compared, summarised or listed."""
        core, epoch = self._core, self._epoch
        # With a base always, without one if there is enough to compare; a peer that holds nothing has nothing to.
        enough = epoch.compared is not None or epoch.own.count >= core.terms.min_compared
        if self._may_compare and enough and not epoch.lists_at_once:
            self._take(ComparedWay(core, epoch, self._one_line))
        else:
            self._take(self._standard_way())

    def _standard_way(self) -> Way:
        """P14, P16: what 050 has without 070."""
        core, epoch = self._core, self._epoch
        negotiated, threshold = epoch.agreement.negotiated, epoch.partition_threshold_bytes
        if not core.config.is_direct and uses_partitions(
            epoch.found, negotiated.limits, agreed=negotiated.partitions, threshold_bytes=threshold
        ):
            return PartitionedWay(core, epoch)
        return (ToNothingWay if self._may_compare and epoch.lists_at_once else ListedWay)(core, epoch)

    def _take(self, way: Way) -> None:
        self._way = way
        self._go_on(way.advertise())

    def _meet(self) -> None:
        """Go on if both `adv` are there: with the way that both of them allow."""
        core, theirs, way = self._core, self._peer_adv, self._chosen
        if not core.is_phase_done or theirs is None:
            return
        is_compared = isinstance(way, ComparedWay)
        if is_compared != (theirs.summary is not None):
            self._catch_up(is_ours=is_compared)
            return
        self._peer_adv = None
        if theirs.listing is not None and self._may_compare and self._epoch.is_listed_at_once:
            # Which records they are is not asked here: putting many in order takes long.
            self._one_line.whole_listing = theirs.listing.added
        if theirs.partitions and not isinstance(way, PartitionedWay):
            way = self._way = PartitionedWay(core, self._epoch)
        self._go_on(way.meet(theirs))

    def _catch_up(self, *, is_ours: bool) -> None:
        """070-ADV-02: one side sent a summary and the other did not; the one that did sends its standard `adv` now."""
        core = self._core
        self._forget_comparing()
        core.enter(Move.CAUGHT_UP)
        if is_ours:
            core.received = True
            self._take(self._standard_way())
        else:
            core.sent = True
            self._peer_adv = None

    def _drop(self) -> None:
        """070-DROP-02: both of us send the standard `adv`."""
        self._forget_comparing()
        self._peer_adv = None
        self._core.requests.outstanding.clear()
        self._core.enter(Move.DROPPED)
        self._take(self._standard_way())

    def _forget_comparing(self) -> None:
        self._may_compare = False
        self._one_line = OneLine(self._core.terms.min_asked_in_one_line)

    def _go_on(self, progress: Progress) -> None:
        """What follows from where our way has got to."""
        match progress:
            case Progress.OPEN:
                return
            case Progress.ADVERTISED:
                self._meet()
            case Progress.KNOWN:
                self._evaluate_requests()
            case Progress.EQUAL:
                self._end_without_requests()
            case Progress.UNEXPLAINED:
                self._send_doubt(ASK)
            case Progress.DOUBTED:
                self._send_doubt(DROP)
            case Progress.DROPPED:
                self._drop()
            case _:
                assert_never(progress)

    # --- what comes in -----------------------------------------------------------------------------------------

    def receive_listing(self, block: BlockReader) -> None:
        """The peer's `adv` is complete."""
        self._peer_adv = self._read_advertisement(block)
        self._core.received = True
        if self._way is not None:
            self._meet()

    def _read_advertisement(self, block: BlockReader) -> PeerAdvertisement:
        summary = read_summary(block.facts)
        if summary is not None:
            has_base, from_asker = self._epoch.compared is not None, not self._core.config.is_asker
            if not self._may_compare or (not has_base and (block.lists or summary.withdrawn)):
                raise malformed("a summary where none may stand")
            if (summary.root is None) != has_base or (summary.sums is not None) != (has_base or from_asker):
                raise malformed("not the summary that this side may send now")
            return PeerAdvertisement(listing=block.listing(), summary=summary)
        partitions = read_summaries(block.facts, START_LENGTH)
        if partitions and block.lists:
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, "records and summaries in one advertisement", "050-LIST-09"
            )
        if partitions and not self._epoch.agreement.negotiated.partitions:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "partitions were not agreed", "050-LIST-09")
        return PeerAdvertisement(partitions=partitions) if partitions else PeerAdvertisement(listing=block.listing())

    def receive(self, block: BlockReader) -> None:
        """A block of the peer between its `adv` and its requests."""
        self._go_on(self._chosen.receive(block))

    def answer(self, question: Question, item: WayAnswer) -> None:
        """Our own side answered a question that our way asked."""
        self._go_on(self._chosen.answer(question, item))

    def listing_sent(self, records: Sequence[str]) -> None:
        """A listing under way is complete; of a whole set the driver names the records."""
        if records:
            self._one_line.by_us, self._one_line.is_whole_set = records, True
        self._go_on(self._chosen.listing_sent())

    # --- requests ----------------------------------------------------------------------------------------------

    def _evaluate_requests(self) -> None:
        """In REQUEST: both advertisement states are current (050-RECON-06); evaluate what to request."""
        self._epoch.note_reconciled()
        self._core.report(Advertising(self._epoch.own.count, self._epoch.claims))
        self._epoch.evaluate(Question.WHAT_TO_REQUEST)

    def _end_without_requests(self) -> None:
        """070-EQUAL-03: what the peer may send we may send too, so we have it; and the other way round."""
        self._epoch.note_reconciled()
        self._core.report(Advertising(self._epoch.own.count, self._epoch.claims))
        self._core.refusals.held_back = self._core.refusals.held_back_by_peer = NOTHING_HELD_BACK
        self._confirm_sent()
        self._core.sent = self._core.received = True
        self._conclude()

    def send_requests(self) -> None:
        """WHAT_TO_REQUEST is answered."""
        core = self._core
        if isinstance(self._way, ComparedWay) and not self._epoch.found.claims_are_known:
            self._send_doubt(DROP)  # P34: a record went while it was worked out what the peer claims about it
            return
        self._requested = list(self._epoch.found.requests)
        core.refusals.held_back = self._epoch.found.held_back
        taken = self._chosen.taken
        if taken is not None:
            self._ask_for_nothing(taken)
            return
        core.requests.ask(self._requested)
        if self._requested:
            core.emit(SendFacts(self._one_line.request_facts(self._requested)))
        refusals = [*core.refusals.facts(), *self._declined_facts()]
        if refusals:
            core.emit(SendFacts(refusals))
        ticks = self._epoch.tick_facts()
        if ticks:
            core.emit(SendFacts(ticks))
        core.emit(EndBlock())
        core.sent = True
        self._conclude()

    def _send_doubt(self, doubt: Fact) -> None:
        """In REQUEST: what we doubt, in the place of our requests (070-BASE-04, 070-DROP-01)."""
        self._doubt = doubt  # the phase ends with the peer's block, whatever is in it
        self._core.send_block([doubt])

    def _declined_facts(self) -> list[Fact]:
        """What we would ask for and would not keep (071-HELD-01), within what the block has room for."""
        book = self._core.refusals
        if book.version < TELLS_DECLINED:
            return []
        used = request_bytes(self._requested) + book.pending_bytes + TICK_ROOM
        return book.held_back.facts(self._epoch.agreement.negotiated.limits.max_fact_block_size - used)

    def _ask_for_nothing(self, lacking: Lacking) -> None:
        """070-TAKE-04: as if each had asked for all that it lacks; what our rules want of it is taken."""
        core, comes = self._core, frozenset(lacking.ours)
        self._requested = [record for record in self._requested if record in comes]
        core.requests.ask(self._requested, lacking.ours)
        self.peer_requests = list(lacking.peer)
        core.sent = core.received = True
        self._conclude()

    def receive_requests(self, block: BlockReader) -> None:
        """What the peer wants."""
        if self._settle_doubts(block):
            return
        self.peer_requests = self._one_line.requested_of_us(block)
        self._core.accept_refusals(read_refused(block.facts))
        self._core.refusals.held_back_by_peer = read_held_back(block.facts)
        self._confirm_sent()
        self._core.received = True
        self._conclude()

    def _settle_doubts(self, block: BlockReader) -> bool:
        """Whether either side sent a doubt instead of its requests; then the loop goes on as that says."""
        doubts = {self._doubt, *(fact for fact in (ASK, DROP) if only(block.facts, fact, bool(block.requested)))}
        doubts.discard(None)
        if not doubts:
            return False
        way = self._chosen
        if not self._may_compare or (DROP not in doubts and not isinstance(way, ComparedWay)):
            raise malformed("a doubt of what was listed")
        self._doubt = None
        self._core.requests.outstanding.clear()
        if isinstance(way, ComparedWay) and DROP not in doubts:
            self._go_on(way.sketch(Move.ASKED))
        else:
            self._drop()
        return True

    def _confirm_sent(self) -> None:
        """071-TAKEN-01: the peer could have refused what was sent, and took the rest."""
        taken = self._core.ledger.confirm() if self._core.refusals.version else []
        if taken:
            self._core.report(Taken(taken))

    def _conclude(self) -> None:
        if not self._core.is_phase_done:
            return
        self._core.refusals.conclude()
        news = self._core.refusals.news()
        if news is not None:
            self._core.report(HoldingBack(news[0].counts, news[1].counts))
        self._core.report(Requested(len(self._requested), len(self.peer_requests)))
        settled = self._epoch.note_listings()
        if self._requested or self.peer_requests or self._chosen.taken is not None:
            self.end = LoopEnd.WANTED
        else:
            self.end = LoopEnd.SETTLED if settled else LoopEnd.NOT_SETTLED
