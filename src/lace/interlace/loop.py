"""One loop of an exchange up to its request lists (050): advertise, reconcile, request.

Rule: a phase is left when our part is sent, the peer's part is read and our own side's work on it is done; so both
sides go through the same phases in lockstep (050-DRV-04). A loop is thrown away when it is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from lace.differences.compare import agrees
from lace.differences.keyed import U64
from lace.differences.sketch import Symbols
from lace.errors import LocalProtocolError
from lace.facts.predicates import MAY_REQUEST
from lace.interlace.advertise import Offers, summary_fact, uses_partitions
from lace.interlace.advertisement import Claims, require_record_ids
from lace.interlace.blocks import BlockReader
from lace.interlace.comparing import (
    ASK,
    DROP,
    Comparison,
    Outcome,
    malformed,
    only,
    read_summary,
    summary_facts,
)
from lace.interlace.core import Core
from lace.interlace.effects import (
    EndBlock,
    Measure,
    SendChanges,
    SendFacts,
    SendListing,
    Summarise,
    TakeChange,
    TakeClaims,
    TakeDifference,
)
from lace.interlace.epoch import Epoch
from lace.interlace.events import Advertising, Requested
from lace.interlace.inputs import ClaimsTaken, Decoded, DifferenceTaken, Measured, Reconciled
from lace.interlace.partitions import START_LENGTH, Partition
from lace.interlace.phases import Move, Phase, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.reconciliation import Reconciliation, read_summaries
from lace.notation.fact import Fact, FactColumn


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
        limits = epoch.agreement.negotiated.limits
        self._offers = Offers(limits)
        self._uses_summaries = False  # ours
        self._listed: list[str] = []  # prefixes that the peer wants listed
        self._answering: list[Fact] = []  # child summaries that follow a listing under way
        self._peer_listing: TakeClaims | None = None
        self._peer_summaries: list[Partition] = []
        self._reconciliation: Reconciliation | None = None
        self._selection: list[Fact] = []  # ours
        self._peer_selection: list[Fact] = []
        self._peer_answer: tuple[Claims, list[Partition]] = [], []
        # 070: the two summaries, and what follows if they differ
        self._is_standard = not epoch.agreement.negotiated.differences or core.config.is_direct
        self._ours: U64 | None = None
        self._theirs: U64 | None = None
        self._peer_withdrawn: list[str] = []
        self._summary: list[Fact] = []  # ours, behind a listing under way
        self._has_base = epoch.compared is not None
        self._comparison: Comparison | None = None
        self._doubt: Fact | None = None  # sent in the place of our requests
        self._requested: list[str] = []
        self.peer_requests: list[str] = []
        self.offered = 0  # records that the peer's listing speaks of
        self.end: LoopEnd | None = None

    # --- advertisement -----------------------------------------------------------------------------------------

    def evaluate(self) -> None:
        """What to list, over everything that is known now."""
        self._epoch.evaluate(Question.WHAT_TO_LIST)

    def advertise(self) -> None:
        """Our `adv`: the whole current send set, listed or summarised (P14, P16)."""
        core, epoch = self._core, self._epoch
        if not self._is_standard and (self._has_base or epoch.own.count >= core.terms.min_compared):
            core.ask(Question.MEASURE, Measure(own=epoch.own, since=epoch.compared))
        else:
            self._advertise_all()

    def _advertise_all(self) -> None:
        core, epoch, agreement = self._core, self._epoch, self._epoch.agreement
        negotiated, source = agreement.negotiated, agreement.own_source
        if core.config.is_direct:
            core.emit(SendChanges(epoch.own, epoch.told))
            epoch.told = epoch.own
            self._end_advertisement([])
        elif uses_partitions(
            epoch.found,
            negotiated.limits,
            agreed=negotiated.partitions,
            threshold_bytes=core.terms.partition_threshold_bytes,
        ):
            self._uses_summaries = True
            core.ask(Question.SUMMARIES, Summarise(own=epoch.own, source=source))
        elif epoch.own.count:
            core.emit(SendListing(own=epoch.own, source=source))
        else:
            self._end_advertisement([])  # P19: TickReady rides only in an adv that is not otherwise empty

    def send_summaries(self, partitions: Sequence[Partition]) -> None:
        """SUMMARIES is answered."""
        self._offers.offer(partitions)
        self._end_advertisement([*map(summary_fact, partitions), *self._epoch.tick_facts()])

    def send_measure(self, found: Measured) -> None:
        """MEASURE is answered: our summary, and what changed since the loop before (070-BASE-01)."""
        self._ours = found.measured
        self._summary = summary_facts(found) if self._has_base else summary_facts(Measured(measured=found.measured))
        listed = self._changes(found.added or ()) if self._has_base else []
        if listed:
            source = self._epoch.agreement.own_source
            self._core.emit(SendListing(own=self._epoch.own, source=source, records=listed))
        else:
            self._end_advertisement([*self._summary, *self._epoch.tick_facts()])

    def _changes(self, added: Sequence[str]) -> list[str]:
        """Which of the records that came since the base the peer has to be told of: not those that it sent itself, if
        they all are in the set; and none at all if there are too many, then it will ask."""
        arrived = self._epoch.arrived
        listed = [record for record in added if record not in arrived] if arrived.issubset(added) else list(added)
        limits = self._epoch.agreement.negotiated.limits
        return listed if len(listed) <= limits.max_advertisement_records_listed else []

    def listing_sent(self) -> None:
        """A listing under way is complete: of our adv, of an answer, or of what differs."""
        if self._comparison is not None:
            self._comparison.listing_sent()
            self._go_on()
        elif self._core.phase is Phase.LISTING:
            self._end_advertisement([*self._summary, *self._epoch.tick_facts()])
        else:
            self._end_answer()

    def _end_advertisement(self, facts: list[Fact]) -> None:
        self._core.send_block(facts)
        self._epoch.note_advertised()
        self._core.sent = True
        self._compare_listings()

    def receive_listing(self, block: BlockReader) -> None:
        """The peer's `adv` is complete."""
        negotiated = self._epoch.agreement.negotiated
        if self._receive_summary(block):
            return
        summaries = read_summaries(block.facts, START_LENGTH)
        if summaries and block.lists:
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, "records and summaries in one advertisement", "050-LIST-09"
            )
        if summaries and not negotiated.partitions:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "partitions were not agreed", "050-LIST-09")
        if summaries:
            self._peer_summaries = summaries
            self.offered = sum([partition.count for partition in summaries])
        else:
            self._peer_listing = block.listing()
            self.offered = len(self._peer_listing.added)
        self._core.received = True
        self._compare_listings()

    def _receive_summary(self, block: BlockReader) -> bool:
        """Whether the peer's `adv` is a summary of 070; then it is taken down."""
        found = read_summary(block.facts)
        if found is None:
            return False
        self._theirs, self._peer_withdrawn = found
        if self._is_standard or (not self._has_base and (block.lists or self._peer_withdrawn)):
            raise malformed("a summary where none may stand")
        self._peer_listing = block.listing()
        self.offered = int(self._theirs[0])
        self._core.received = True
        self._compare_listings()
        return True

    def _compare_listings(self) -> None:
        core = self._core
        if not core.is_phase_done:
            return
        if self._ours is not None and self._theirs is not None:
            self._compare_summaries(self._ours, self._theirs)
            return
        if self._ours is not None or self._theirs is not None:
            self._catch_up()
            return
        if self._peer_listing is not None:
            listing, self._peer_listing = self._peer_listing, None
            core.ask(Question.THEIR_LISTING, listing)
            return
        agreement = self._epoch.agreement
        self._reconciliation = Reconciliation(
            self._epoch.own, agreement.peer_source, agreement.negotiated.schema, agreement.negotiated.limits
        )
        core.ask(Question.THEIR_SUMMARIES, self._reconciliation.offer(self._peer_summaries))

    # --- differences (070) -------------------------------------------------------------------------------------

    def _compare_summaries(self, ours: U64, theirs: U64) -> None:
        core, own = self._core, self._epoch.own
        listing, self._peer_listing = self._peer_listing, None
        if self._has_base and listing is not None:
            added, sent = listing.added, sorted(self._epoch.sent)
            change = TakeChange(own=own, added=added, removed=self._peer_withdrawn, sent=sent, told=theirs)
            core.ask(Question.THEIR_CHANGE, change)
        elif agrees(ours, theirs):  # 070-EQUAL-01
            core.ask(Question.THEIR_CHANGE, TakeDifference(own=own, claims=(), told=theirs))
        else:
            self._begin_comparison(Move.DIFFERING)

    def _begin_comparison(self, why: Move) -> None:
        if self._ours is None or self._theirs is None:
            raise LocalProtocolError("a comparison without two summaries")
        self._comparison = Comparison(self._core, self._epoch, self._ours, self._theirs)
        self._comparison.begin(why)
        self._go_on()

    def _catch_up(self) -> None:
        """070-ADV-02: one of us sent a summary and the other did not; whoever did sends its standard `adv` now."""
        core, mine = self._core, self._ours is not None
        self._forget_summaries()
        core.enter(Move.DROPPED)
        core.received, core.sent = mine, not mine
        if mine:
            self._advertise_all()

    def _forget_summaries(self) -> None:
        self._is_standard = True
        self._ours = self._theirs = self._comparison = self._doubt = None
        self._summary = []

    def _drop(self) -> None:
        """070-DROP-02: both of us send the standard `adv`."""
        self._forget_summaries()
        self._peer_listing = None
        self._core.requests.outstanding.clear()
        self._core.enter(Move.DROPPED)
        self._advertise_all()

    def difference_taken(self, answer: DifferenceTaken) -> None:
        """THEIR_CHANGE, THEIR_REPLY or THEIR_RECORDS is answered."""
        if answer.agrees:
            self._epoch.note_claims(answer)
        if self._comparison is None:
            self._core.enter(Move.LISTED)
            self._after_differences(ASK if not answer.agrees else None)
        else:
            self._comparison.taken(answer)
            self._go_on()

    def send_symbols(self, symbols: Symbols) -> None:
        """SYMBOLS is answered."""
        self._comparing.send_symbols(symbols)

    def decoded(self, found: Decoded) -> None:
        """THEIR_SYMBOLS is answered."""
        self._comparing.decoded(found)
        self._go_on()

    def receive_difference(self, block: BlockReader) -> None:
        """A block of the comparison."""
        self._comparing.receive(block)
        self._go_on()

    @property
    def _comparing(self) -> Comparison:
        if self._comparison is None:
            raise LocalProtocolError("no comparison is under way")
        return self._comparison

    def _go_on(self) -> None:
        """Leave the comparison when it is over."""
        match self._comparing.outcome:
            case Outcome.AGREED | Outcome.DOUBTED:
                doubt = DROP if self._comparing.outcome is Outcome.DOUBTED else None
                self._comparison = None
                self._core.enter(Move.LISTED)
                self._after_differences(doubt)
            case Outcome.DROPPED:
                self._drop()
            case Outcome.OPEN:
                return

    def _after_differences(self, doubt: Fact | None) -> None:
        """In REQUEST: our requests, or what we doubt in their place (070-BASE-04, 070-DROP-01)."""
        if doubt is None:
            self._evaluate_requests()
            return
        self._doubt = doubt
        self._core.send_block([doubt])
        self._core.sent = True

    def _settle_doubts(self, block: BlockReader) -> bool:
        """Whether either side sent a doubt instead of its requests; then the loop goes on as that says."""
        doubts = {self._doubt, *(fact for fact in (ASK, DROP) if only(block.facts, fact, bool(block.requested)))}
        doubts.discard(None)
        if not doubts:
            return False
        if self._is_standard:
            raise malformed("a doubt of what was listed")
        self._doubt = None
        self._core.requests.outstanding.clear()
        if DROP in doubts:
            self._drop()
        else:
            self._begin_comparison(Move.ASKED)
        return True

    # --- listings ----------------------------------------------------------------------------------------------

    def listings_compared(self, answer: ClaimsTaken | Reconciled) -> None:
        """THEIR_LISTING or THEIR_SUMMARIES is answered."""
        self._epoch.note_claims(answer)
        if self._reconciliation is not None and isinstance(answer, Reconciled):
            self._reconciliation.settle(answer.unknown)
        if self._reconciliation is not None or self._uses_summaries:
            self._core.enter(Move.SUMMARISED)
            self._send_selection()
        else:
            self._core.enter(Move.LISTED)
            self._evaluate_requests()

    # --- partitions --------------------------------------------------------------------------------------------

    def _send_selection(self) -> None:
        self._selection = self._reconciliation.select() if self._reconciliation is not None else []
        self._core.send_block(self._selection)
        self._core.sent = True
        self._after_selections()

    def receive_selection(self, block: BlockReader) -> None:
        """What the peer wants listed and narrowed."""
        self._peer_selection = block.facts
        self._core.received = True
        self._after_selections()

    def _after_selections(self) -> None:
        if not self._core.is_phase_done:
            return
        if not self._selection and not self._peer_selection:  # P16: the last LF is the empty selection of both sides
            self._core.enter(Move.NOTHING_SELECTED)
            self._evaluate_requests()
            return
        self._core.enter(Move.SELECTED)
        self._answer()

    def _answer(self) -> None:
        """Every partition that the peer selected: listed, or as its children."""
        core, source = self._core, self._epoch.agreement.own_source
        answer = self._offers.answer(self._peer_selection)
        self._listed = sorted(answer.listed)
        if answer.narrowed:
            core.ask(Question.CHILDREN, Summarise(own=self._epoch.own, source=source, parents=answer.narrowed))
        else:
            self._send_answer()

    def send_children(self, children: Sequence[Partition]) -> None:
        """CHILDREN is answered."""
        self._offers.offer(children)
        self._answering = [summary_fact(child) for child in children]
        self._send_answer()

    def _send_answer(self) -> None:
        if self._listed:
            source = self._epoch.agreement.own_source
            self._core.emit(SendListing(own=self._epoch.own, source=source, prefixes=self._listed))
        else:
            self._end_answer()

    def _end_answer(self) -> None:
        self._core.send_block(self._answering)
        self._answering = []
        self._core.sent = True
        self._check_answer()

    def receive_answer(self, block: BlockReader) -> None:
        """What the peer lists and narrows for us."""
        self._peer_answer = block.claims(), read_summaries(block.facts, None)
        if self._reconciliation is None and any(self._peer_answer):
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "an answer to no selection", "050-PART-18")
        self._core.received = True
        self._check_answer()

    def _check_answer(self) -> None:
        if not self._core.is_phase_done:
            return
        claims, children = self._peer_answer
        if self._reconciliation is None:
            self._core.enter(Move.ANSWERED)
            self._send_selection()
        else:
            self._core.ask(Question.THEIR_ANSWER, self._reconciliation.answer(claims, children))

    def answer_checked(self, answer: Reconciled) -> None:
        """THEIR_ANSWER is answered."""
        if self._reconciliation is None:
            raise LocalProtocolError("an answer to no partitions")
        self._epoch.note_claims(answer)
        self._reconciliation.settle(answer.unknown)
        self._core.enter(Move.ANSWERED)
        self._send_selection()

    # --- requests ----------------------------------------------------------------------------------------------

    def _evaluate_requests(self) -> None:
        """In REQUEST: both advertisement states are current (050-RECON-06); evaluate what to request."""
        self._epoch.note_reconciled()
        self._core.report(Advertising(self._epoch.own.count, self._epoch.claims))
        self._epoch.evaluate(Question.WHAT_TO_REQUEST)

    def send_requests(self) -> None:
        """WHAT_TO_REQUEST is answered."""
        core = self._core
        self._requested = list(self._epoch.found.requests)
        core.requests.outstanding = set(self._requested)
        if self._requested:
            core.emit(SendFacts(FactColumn(MAY_REQUEST, self._requested)))
        ticks = self._epoch.tick_facts()
        if ticks:
            core.emit(SendFacts(ticks))
        core.emit(EndBlock())
        core.sent = True
        self._conclude()

    def receive_requests(self, block: BlockReader) -> None:
        """What the peer wants."""
        if self._settle_doubts(block):
            return
        self.peer_requests = list(dict.fromkeys(block.requested))
        require_record_ids(self.peer_requests)
        self._core.received = True
        self._conclude()

    def _conclude(self) -> None:
        if not self._core.is_phase_done:
            return
        self._core.report(Requested(len(self._requested), len(self.peer_requests)))
        settled = self._epoch.note_listings()
        if self._requested or self.peer_requests:
            self.end = LoopEnd.WANTED
        else:
            self.end = LoopEnd.SETTLED if settled else LoopEnd.NOT_SETTLED
