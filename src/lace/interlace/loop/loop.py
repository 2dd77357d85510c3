"""One loop of an exchange up to its request lists (050): advertise, reconcile, request.

Rule: a phase is left when our part is sent, the peer's part is read and our own side's work on it is done; so both
sides go through the same phases in lockstep (050-DRV-04). A loop is thrown away when it is over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, auto

from lace.errors import LocalProtocolError
from lace.interlace.claims.advertisement import Claims, with_format
from lace.interlace.claims.partitions import START_LENGTH, Partition
from lace.interlace.core import Core
from lace.interlace.effects import (
    EndBlock,
    SendChanges,
    SendFacts,
    SendListing,
    Summarise,
)
from lace.interlace.events import Advertising, HoldingBack, Requested, Taken
from lace.interlace.inputs import ClaimsTaken, Lacking, Reconciled
from lace.interlace.loop.advertise import Offers, summary_fact, uses_partitions
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.compared import ComparedLoop
from lace.interlace.loop.comparing import DROP
from lace.interlace.loop.epoch import TICK_ROOM, Epoch
from lace.interlace.loop.reconciliation import Reconciliation, read_summaries
from lace.interlace.loop.refusals import NOTHING_HELD_BACK, TELLS_DECLINED, read_held_back, read_refused
from lace.interlace.loop.requests import request_bytes
from lace.interlace.phases import Move, Phase, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.notation.fact import Fact


class LoopEnd(Enum):
    """How a loop goes on."""

    WANTED = auto()  # records are asked for: a transfer follows
    NOT_SETTLED = auto()  # nothing is asked for, but the listings may still change (P13)
    SETTLED = auto()  # a fixed point


class Loop(ComparedLoop):
    """The phases LISTING to REQUEST."""

    def __init__(self, core: Core, epoch: Epoch) -> None:
        super().__init__(core, epoch)
        limits = epoch.agreement.negotiated.limits
        self._offers = Offers(limits)
        self._uses_summaries = False  # ours
        self._listed: list[str] = []  # prefixes that the peer wants listed
        self._answering: list[Fact] = []  # child summaries that follow a listing under way
        self._peer_summaries: list[Partition] = []
        self._reconciliation: Reconciliation | None = None
        self._selection: list[Fact] = []  # ours
        self._peer_selection: list[Fact] = []
        self._peer_answer: tuple[Claims, list[Partition]] = [], []
        self._taken: Lacking | None = None  # both sides know what each lacks, so neither names it
        self._requested: list[str] = []
        self.peer_requests: list[str] = []
        self.end: LoopEnd | None = None

    # --- advertisement -----------------------------------------------------------------------------------------

    def advertise(self) -> None:
        """Our `adv`: the whole current send set, listed or summarised (P14, P16)."""
        if self._may_compare and not self._epoch.lists_at_once:
            self._core.ask(Question.MEASURE, self._measure())
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
            threshold_bytes=epoch.partition_threshold_bytes,
        ):
            self._uses_summaries = True
            core.ask(Question.SUMMARIES, Summarise(own=epoch.own, source=source))
        elif epoch.own.count:
            core.emit(SendListing(own=epoch.own, source=source, is_named=self._lists_to_nothing))
        else:
            self._end_advertisement([])  # P19: TickReady rides only in an adv that is not otherwise empty

    def send_summaries(self, partitions: Sequence[Partition]) -> None:
        """SUMMARIES is answered."""
        self._offers.offer(partitions)
        self._end_advertisement([*map(summary_fact, partitions), *self._epoch.tick_facts()])

    def listing_sent(self, records: Sequence[str]) -> None:
        """A listing under way is complete: of our adv, of an answer, or of what differs."""
        if records:  # which the driver names where they are all of our set
            self._listed_by_us, self._lists_all = records, True
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
        else:
            self._peer_listing = block.listing()
        self._core.received = True
        self._compare_listings()

    def _compare_listings(self) -> None:
        core = self._core
        if not core.is_phase_done:
            return
        if self._compare_summaries():
            return
        if self._peer_listing is not None:
            listing, self._peer_listing = self._peer_listing, None
            self._note_listing(listing.added)
            crossed = frozenset(core.refusals.crossed) if self._ends_when_equal else frozenset()
            core.ask(Question.THEIR_LISTING, replace(listing, max_named=self._epoch.takes, crossed=crossed))
            return
        agreement = self._epoch.agreement
        self._reconciliation = Reconciliation(
            self._epoch.own, agreement.peer_source, agreement.negotiated.schema, agreement.negotiated.limits
        )
        core.ask(Question.THEIR_SUMMARIES, self._reconciliation.offer(self._peer_summaries))

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
            if isinstance(answer, ClaimsTaken) and answer.is_own and self._ends_when_equal:
                self._end_without_requests()
            else:
                self._taken = self._crossing(answer)
                self._evaluate_requests()

    def _crossing(self, answer: ClaimsTaken | Reconciled) -> Lacking | None:
        """What crosses without being named (070-TAKE-03): both sides find the same in the same two listings."""
        lacking = answer.lacking if isinstance(answer, ClaimsTaken) else None
        if lacking is None:
            return None
        agreement, records = self._epoch.agreement, [*lacking.ours, *lacking.peer]
        if agreement.names_parts and any(record.startswith("B.") for record in records):
            return None  # a part is asked for once its manifest is here: sent before, it would be sent twice
        formats = agreement.negotiated.record_formats
        return lacking if len(with_format(records, formats)) == len(records) else None

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
        if self._theirs is not None and not self._epoch.found.claims_are_known:
            self._after_differences(DROP)  # P34: a record went while it was worked out what the peer claims about it
            return
        self._requested = list(self._epoch.found.requests)
        core.refusals.held_back = self._epoch.found.held_back
        if self._taken is not None:
            self._take(self._taken)
            return
        core.requests.ask(self._requested)
        if self._requested:
            core.emit(SendFacts(self._request_facts(self._requested)))
        refusals = [*core.refusals.facts(), *self._declined_facts()]
        if refusals:
            core.emit(SendFacts(refusals))
        ticks = self._epoch.tick_facts()
        if ticks:
            core.emit(SendFacts(ticks))
        core.emit(EndBlock())
        core.sent = True
        self._conclude()

    def _declined_facts(self) -> list[Fact]:
        """What we would ask for and would not keep (071-HELD-01), within what the block has room for."""
        book = self._core.refusals
        if book.version < TELLS_DECLINED:
            return []
        used = request_bytes(self._requested) + book.pending_bytes + TICK_ROOM
        return book.held_back.facts(self._epoch.agreement.negotiated.limits.max_fact_block_size - used)

    def _take(self, lacking: Lacking) -> None:
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
        self.peer_requests = self._requested_of_us(block)
        self._core.accept_refusals(read_refused(block.facts))
        self._core.refusals.held_back_by_peer = read_held_back(block.facts)
        self._confirm_sent()
        self._core.received = True
        self._conclude()

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
        if self._requested or self.peer_requests or self._taken is not None:
            self.end = LoopEnd.WANTED
        else:
            self.end = LoopEnd.SETTLED if settled else LoopEnd.NOT_SETTLED
