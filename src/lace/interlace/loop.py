"""One loop of an exchange (050): advertise, reconcile, request, transfer.

Rule: a phase is left when our part is sent, the peer's part is read and our own work on it is done; so both sides go
through the same phases in lockstep (050-DRV-04).
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.errors import LocalProtocolError
from lace.facts.predicates import MAY_REQUEST
from lace.interlace.advertise import Offers, summary_fact, uses_partitions
from lace.interlace.advertisement import Advertisement, require_record_id
from lace.interlace.blocks import BlockReader
from lace.interlace.config import MachineConfig
from lace.interlace.core import MachineCore, Purpose
from lace.interlace.effects import EndBlock, SendAdvertisements, SendChanges, SendFacts, SendRecords, StoreRecords
from lace.interlace.events import Advertising, Deferred, FixedPoint, NotAvailable, Requested, Sent
from lace.interlace.inputs import ChangesReceived, RecordsReceived, RecordsSent
from lace.interlace.partitions import START_LENGTH, Changes, Partition
from lace.interlace.phases import Move, Phase
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.reconcile import Reconciliation, read_partition
from lace.interlace.transfer import split_service
from lace.interlace.vocabulary import NOT_AVAILABLE, Block
from lace.notation.fact import Fact, FactColumn

_MAX_SEEN_LISTINGS = 4096
_TICK_ROOM = 64  # bytes of a block left for a TickReady line


class LoopPhases(MachineCore):
    """The phases LISTING to TRANSFER."""

    def __init__(self, config: MachineConfig) -> None:
        super().__init__(config)
        self._offers: Offers | None = None
        self._reconciliation: Reconciliation | None = None
        self._own_summarised = False
        self._selected = False
        self._peer_selection: list[Fact] = []
        self._peer_claims: list[Advertisement] = []
        self._peer_changes: ChangesReceived | None = None
        self._peer_summaries: list[Partition] = []
        self._offered = 0  # records that the peer's listing speaks of
        self._peer_requests: list[str] = []
        self._sendable_version: int | None = None  # of our own claims, if all that the peer requests is among them
        self._unavailable: list[str] = []
        self._requested = 0
        self._batch_open = False
        self._crossed = False
        self._served = 0  # records sent since we last foresaw what the peer would list
        self._unsent: dict[str, Advertisement | None] = {}  # direct: our changes since the last advertisement
        self._sent_whole = False  # direct: whether the peer has our whole state of this epoch
        self._own_listing = b""
        self._seen_listings: dict[bytes, None] = {}
        self._moved_by_itself = False  # whether our send set changed since it was advertised, and not by claims alone

    # --- advertisement -----------------------------------------------------------------------------------------

    def _begin_loop(self) -> None:
        """In LISTING with nothing sent: the next loop, unless this is where the exchange turns elsewhere."""
        raise NotImplementedError

    def _send_advertisement(self) -> None:
        """Our `adv`: the whole current send set, listed or summarised (P14, P16)."""
        agreement = self.agreement
        negotiated, source = agreement.negotiated, agreement.own_source
        self._offers = Offers(self._own, source, negotiated.limits)
        self._own_summarised = False
        if self.config.is_direct:
            self._send_changes()
        elif uses_partitions(
            self._own,
            source,
            negotiated.limits,
            agreed=negotiated.partitions,
            threshold_bytes=self.config.partition_threshold_bytes,
        ):
            self._own_summarised = True
            self._with_roots_of(self._own, source, self._own.prefixes(), self._send_summaries)
            return
        elif len(self._own):
            self._emit(SendAdvertisements(self._own.listing(), source))
            ticks = self._tick_facts()  # P19: TickReady rides only in an adv that is not otherwise empty
            if ticks:
                self._emit(SendFacts(ticks))
        self._end_advertisement()

    def _send_summaries(self) -> None:
        if self._offers is None:
            raise LocalProtocolError("summaries of no advertisement")
        partitions = self._own.summaries(self.agreement.own_source)
        self._offers.offer(partitions)
        self._emit(SendFacts([*map(summary_fact, partitions), *self._tick_facts()]))
        self._end_advertisement()

    def _end_advertisement(self) -> None:
        if self.agreement.have_reads_advertisements:
            self._own_listing = self._own.fingerprint(self.agreement.own_source)
        self._emit(EndBlock())
        self._advertised_version = self._own.version
        self._moved_by_itself = False
        self._sent = True
        if self._received:
            self._listing_done()
        else:
            self._foresee()

    def _foresee(self) -> None:
        """While the peer makes up its listing: if it now has all that is ours, it will probably list just that."""
        has_all = len(self._held) + self._served >= len(self._own)
        if self._served and has_all and self._own_summarised:
            self._served = 0
            self._with_roots_of(self._own, self.agreement.peer_source, self._own.prefixes(), lambda: None)

    def _send_changes(self) -> None:
        if self._sent_whole:
            added = [claim for claim in self._unsent.values() if claim is not None]
            removed = [record for record, claim in self._unsent.items() if claim is None]
            self._emit(SendChanges(added, removed))
        else:
            self._emit(SendChanges(self._own.listing(), (), is_whole=True))
        self._sent_whole = True
        self._unsent.clear()

    def _accept_evaluation(self, added: Sequence[Advertisement], removed: Sequence[str]) -> None:
        """The effective send set changes only here (050-SEND-01)."""
        if (added or removed) and not self._evaluates_claims:
            self._moved_by_itself = True
        for record in removed:
            self._own.drop(record)
        self._own.put_all(added)
        if self.config.is_direct and self._sent_whole:
            self._unsent.update((record, None) for record in removed)
            self._unsent.update((claim.hash, claim) for claim in added)

    def _receive_listing(self, block: BlockReader) -> None:
        """The peer's `adv` is complete."""
        summaries = self._read_summaries(block.facts, START_LENGTH)
        if summaries and block.lists:
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, "records and summaries in one advertisement", "050-LIST-09"
            )
        if summaries and not self.agreement.negotiated.partitions:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "partitions were not agreed", "050-LIST-09")
        self._peer_claims = block.claims()
        self._peer_changes = block.changes
        self._offered = len(self._peer_claims) + sum([partition.count for partition in summaries])
        self._reconciliation = None
        if summaries:
            self._reconciliation = Reconciliation(
                held=self._held,
                own=self._own,
                source=self.agreement.peer_source,
                schema=self.agreement.negotiated.schema,
                limits=self.agreement.negotiated.limits,
                max_line_bytes=self.config.max_line_bytes,
            )
            self._peer_summaries = summaries
        self._received = True

    @staticmethod
    def _read_summaries(facts: Sequence[Fact], length: int | None) -> list[Partition]:
        return [read_partition(fact, length) for fact in dict.fromkeys(facts)]

    def _listing_done(self) -> None:
        if not (self._sent and self._received):
            return
        if self._reconciliation is not None:
            ours = self._reconciliation.likely_ours(self._peer_summaries)
            self._with_roots_of(self._own, self.agreement.peer_source, ours, self._take_offer)
        else:
            self._apply_listing()
            self._listed()

    def _take_offer(self) -> None:
        if self._reconciliation is not None:
            self._reconciliation.offer(self._peer_summaries)
        self._listed()

    def _listed(self) -> None:
        if self._reconciliation is not None or self._own_summarised:
            self._enter(Move.SUMMARISED)
            self._send_selection()
        else:
            self._enter(Move.LISTED)
            self._reconciled()

    def _apply_listing(self) -> None:
        """A full listing replaces the peer's previous state (050-RECON-04); so does the sum of its changes."""
        changes = self._peer_changes
        if changes is None or changes.is_whole:
            claims = self._peer_claims if changes is None else changes.added
            self._note_changes(self._held.replace_all(claims))
            return
        dropped = [claim for record in changes.removed if (claim := self._held.drop(record)) is not None]
        taken = self._held.put_all(changes.added)
        self._note_changes(Changes(taken.added, [*dropped, *taken.removed]))

    def _note_changes(self, changes: Changes) -> None:
        if changes.added or changes.removed:
            self._pending.removed.extend(changes.removed)
            self._pending.added.extend(changes.added)
            self._book.forgive()  # 050-XFER-11

    # --- partitions --------------------------------------------------------------------------------------------

    def _send_selection(self) -> None:
        facts = self._reconciliation.select() if self._reconciliation is not None else []
        self._selected = bool(facts)
        if facts:
            self._emit(SendFacts(facts))
        self._emit(EndBlock())
        self._sent = True
        self._selection_done()

    def _selection_done(self) -> None:
        if not (self._sent and self._received):
            return
        if not self._selected and not self._peer_selection:  # P16: the last LF is the empty selection of both sides
            if self._reconciliation is not None:
                self._note_changes(self._reconciliation.changes)
            self._enter(Move.NOTHING_SELECTED)
            self._reconciled()
            return
        self._enter(Move.SELECTED)
        self._send_answer()

    def _send_answer(self) -> None:
        if self._offers is None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "nothing is on offer", "050-PART-19")
        answer = self._offers.answer(self._peer_selection)
        if answer.listed:
            self._emit(SendAdvertisements(answer.listed, self.agreement.own_source))
        if answer.children:
            self._emit(SendFacts([summary_fact(child) for child in answer.children]))
        self._emit(EndBlock())
        self._sent = True
        self._answer_done()

    def _receive_answer(self, block: BlockReader) -> None:
        claims, children = block.claims(), self._read_summaries(block.facts, None)
        reconciliation = self._reconciliation
        if reconciliation is None:
            if claims or children:
                raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "an answer to no selection", "050-PART-18")
            self._received = True
            self._answer_done()
            return
        parts = reconciliation.sort_out(claims)

        def accept(summaries: Sequence[Partition]) -> None:
            reconciliation.receive(parts, summaries, children)
            self._received = True
            self._answer_done()

        self._with_roots(self.agreement.peer_source, parts, accept)

    def _answer_done(self) -> None:
        if self._sent and self._received:
            self._enter(Move.ANSWERED)
            self._send_selection()

    # --- requests ----------------------------------------------------------------------------------------------

    def _reconciled(self) -> None:
        """In REQUEST: both advertisement states are current (050-RECON-06); evaluate what to request."""
        self._report(Advertising(len(self._own), len(self._held)))
        self._evaluate(Purpose.REQUEST)

    def _send_requests(self) -> None:
        negotiated = self.agreement.negotiated
        chosen = self._book.choose(
            self._held,
            negotiated.record_formats & self.config.record_formats,  # 050-FMT-03, 050-FMT-04
            self.config.max_requests,
            negotiated.limits.max_fact_block_size - _TICK_ROOM,
        )
        self._requested = len(chosen)
        for facts in (FactColumn(MAY_REQUEST, chosen), self._tick_facts()):
            if facts:
                self._emit(SendFacts(facts))
        self._emit(EndBlock())
        self._sent = True
        self._requests_done()

    def _receive_requests(self, block: BlockReader) -> None:
        requested = list(dict.fromkeys(block.requested))
        if len(self._own.among(requested)) == len(requested):  # what we advertise has a record id for a name
            self._sendable_version = self._own.version
        else:
            self._sendable_version = None
            for record in requested:
                require_record_id(record)
        self._peer_requests = requested
        self._received = True

    def _requests_done(self) -> None:
        if not (self._sent and self._received):
            return
        self._report(Requested(self._requested, len(self._peer_requests)))
        settled = self._note_listings()
        if self._requested or self._peer_requests:
            self._enter(Move.WANTED)
            self._begin_transfer()
        elif settled:
            self._settled()
        else:
            self._enter(Move.NOT_SETTLED)
            self._begin_loop()

    def _note_listings(self) -> bool:
        """P13: whether a quiet loop ends here; remembers this loop's two listings."""
        if not self.agreement.have_reads_advertisements:
            return True
        pair = self._own_listing + self._held.fingerprint(self.agreement.peer_source)
        seen = pair in self._seen_listings
        self._seen_listings[pair] = None
        if len(self._seen_listings) > _MAX_SEEN_LISTINGS:
            del self._seen_listings[next(iter(self._seen_listings))]
        return seen

    def _is_alternating(self) -> bool:
        """Whether what changed in our send set since its listing is only that claims brought back an earlier one.

        Anything else, a record that came or the time, is news that the peer has to hear in another loop.
        """
        if self._moved_by_itself:
            return False
        own = self._own.fingerprint(self.agreement.own_source)
        return any(pair.startswith(own) for pair in self._seen_listings)

    def _settled(self) -> None:
        """A fixed point (050-MODEL-08)."""
        self._fixed_point = True
        self._report(FixedPoint(self._ledger.loops))
        self._ledger.begin_round()
        if self.agreement.have_reads_advertisements and self._is_alternating():
            self._advertised_version = self._own.version  # alternating listings are settled too (050-BOUND-09)
        if self._announces_ticks:
            self._enter(Move.SETTLED)
            self._rest()
        else:
            self._save_cursor()
            self._finish()

    def _rest(self) -> None:
        """In IDLE: whether anything calls for another loop."""
        raise NotImplementedError

    # --- transfer ----------------------------------------------------------------------------------------------

    def _begin_transfer(self) -> None:
        self._fixed_point = False
        self._batch_open = True
        if self._peer_requests:
            self._evaluate(Purpose.SERVICE)  # 050-XFER-02: MaySend, Have and the gate at send time
        else:
            self._end_service([])

    def _serve(self) -> None:
        send, self._unavailable = split_service(
            self._peer_requests,
            self._own,
            self.config.max_service_records,
            all_sendable=self._sendable_version == self._own.version,
        )
        if not send:
            self._end_service(self._unavailable)
            return
        limit = self.agreement.negotiated.limits.max_total_transferred_bytes - self._ledger.round_sent
        self._emit(SendRecords(hashes=send, budget_bytes=self.config.max_service_bytes, limit_bytes=limit))

    def _records_sent(self, answer: RecordsSent) -> None:
        unavailable = [*self._unavailable, *answer.missing]
        if not answer.sent and not unavailable:
            raise ProtocolAbort(
                AbortReason.TRANSFER_LIMIT_EXCEEDED, "nothing more can be sent in this round", "050-ERR-14"
            )
        if answer.sent:
            self._ledger.count_sent(answer.sent)
            self._crossed = True
            self._served += len(answer.sent)
            self._report(Sent([record for record, _ in answer.sent], self._ledger.bytes_sent))
        self._end_service(unavailable)

    def _end_service(self, unavailable: Sequence[str]) -> None:
        """P11: the end of the batch, then the availability block; both are always sent."""
        self._emit(EndBlock())
        facts = [Fact(NOT_AVAILABLE, (record,)) for record in unavailable] + self._tick_facts()
        if facts:
            self._emit(SendFacts(facts))
        self._emit(EndBlock())
        self._sent = True
        self._transfer_done()

    def _receive_records(self, batch: RecordsReceived) -> None:
        if self.phase is not Phase.TRANSFER or not self._batch_open:
            raise ProtocolAbort(AbortReason.RECORD_NOT_REQUESTED, "a record out of phase", "050-ERR-15")
        limit = self.agreement.negotiated.limits.max_total_transferred_bytes
        arrived = [record for record, _ in batch.records]
        size = sum([size for _, size in batch.records])
        if self._ledger.round_received + size <= limit and self._book.arrive_all(arrived):
            self._ledger.count_received(size)
            self._crossed = True
            self._storing.update(arrived)
            self._emit(StoreRecords(arrived))
        else:
            self._receive_one_by_one(batch, limit)

    def _receive_one_by_one(self, batch: RecordsReceived, limit: int) -> None:
        """A batch that holds a record too many: those before it count."""
        arrived: list[str] = []
        try:
            for record, size in batch.records:
                self._book.arrive(record, self.agreement.negotiated.record_formats)
                self._ledger.count_received(size)
                self._crossed = True
                if self._ledger.round_received > limit:  # 050-LIM-06
                    raise ProtocolAbort(AbortReason.TRANSFER_LIMIT_EXCEEDED, f"more than {limit} bytes", "050-ERR-14")
                arrived.append(record)
        finally:
            if arrived:
                self._storing.update(arrived)
                self._emit(StoreRecords(arrived))

    def _receive_availability(self, block: BlockReader) -> None:
        missing = [require_record_id(fact.values[0]) for fact in dict.fromkeys(block.facts)]
        for record in missing:
            self._book.unavailable(record)
            self._ledger.miss(record)
        if missing:
            self._report(NotAvailable(missing))
        deferred = self._book.take_deferred()
        if deferred:
            self._report(Deferred(deferred))
        self._received = True

    def _transfer_done(self) -> None:
        if not (self._sent and self._received) or self._storing:
            return
        if self._crossed:
            self._seen_listings.clear()  # P13: since record bytes last crossed in either direction
            self._crossed = False
        self._enter(Move.TRANSFERRED)
        self._begin_loop()

    def _block_kind(self) -> Block:
        """The kind of block that this phase reads next."""
        return {
            Phase.SELECTION: Block.SELECTION,
            Phase.ANSWER: Block.ANSWER,
            Phase.REQUEST: Block.REQUEST,
            Phase.TRANSFER: Block.AVAILABILITY,
            Phase.HELLO: Block.HELLO,
            Phase.SETUP: Block.SETUP,
        }.get(self.phase, Block.LISTING)
