"""The transfer that ends a loop (050): what the peer asked for goes out, what we asked for comes in.

Rule: both directions run at the same time; the transfer is over when our availability block is sent, the peer's is
read, and every record that came has been stored or rejected. Then it is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lace.interlace.claims.advertisement import require_record_ids
from lace.interlace.core import Core
from lace.interlace.effects import EndBlock, SendRecords, StoreRecords
from lace.interlace.events import Deferred, NotAvailable, Sent, Unwanted
from lace.interlace.inputs import RecordsReceived, RecordsSent
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.epoch import Epoch
from lace.interlace.loop.refusals import read_refused
from lace.interlace.phases import Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import NOT_AVAILABLE
from lace.notation.fact import FactColumn


class Transfer:
    """The phase TRANSFER."""

    def __init__(self, core: Core, epoch: Epoch, requested: Sequence[str], *, are_listed: bool = False) -> None:
        self._core = core
        self._epoch = epoch
        served = requested[: core.terms.max_service_records]  # the rest is deferred (050-XFER-01)
        refused = core.ledger.refused
        self._denied = [record for record in served if record in refused] if refused else []  # 071-AGAIN-02
        self._requested = [record for record in served if record not in refused] if self._denied else served
        self._are_listed = are_listed  # by us, of the set that was advertised last
        self._named = 0 if are_listed else len(self._requested)  # by the peer
        self._crossed = False  # record bytes, in either direction
        self._refused_by_peer: Mapping[str, str] = {}  # looked at when all that we send is known to be sent
        self.is_batch_open = True  # the peer's records come before its availability block

    def begin(self) -> None:
        """Look again at what the peer asked for (050-XFER-02: MaySend, Have and the gate at send time)."""
        if self._requested:
            self._epoch.evaluate(Question.WHAT_TO_SERVE)
        else:
            self._end_service([])

    # --- what the peer asked for -------------------------------------------------------------------------------

    @property
    def unserved(self) -> int:
        """How many records the peer named that have no answer yet; of those that we listed it named none."""
        return self._named if self._requested else 0

    def serve(self) -> None:
        """WHAT_TO_SERVE is answered."""
        limits, ledger = self._epoch.agreement.negotiated.limits, self._core.ledger
        self._core.emit(
            SendRecords(
                own=self._epoch.own,
                hashes=self._requested,
                budget_bytes=self._core.terms.max_service_bytes,
                limit_bytes=limits.max_total_transferred_bytes - ledger.round_sent,
                are_in_set=self._are_listed and self._epoch.is_advertised,
            )
        )

    def records_sent(self, answer: RecordsSent) -> None:
        """SendRecords is answered."""
        if not answer.sent and not answer.missing:
            raise ProtocolAbort(
                AbortReason.TRANSFER_LIMIT_EXCEEDED, "nothing more can be sent in this round", "050-ERR-14"
            )
        if answer.sent:
            ledger = self._core.ledger
            ledger.count_sent(answer.sent)
            self._epoch.note_sent([record for record, _ in answer.sent])
            self._crossed = True
            self._core.refusals.note_crossed([record for record, _ in answer.sent])
            self._core.report(Sent([record for record, _ in answer.sent], ledger.bytes_sent))
        self._end_service(answer.missing)

    def _end_service(self, unavailable: Sequence[str]) -> None:
        """P11: the end of the batch, then the availability block; both are always sent."""
        self._requested = ()  # the peer may take its time with its own part
        self._core.emit(EndBlock())
        missing = FactColumn(NOT_AVAILABLE, [*unavailable, *self._denied])
        self._core.send_block(missing, self._core.refusals.facts(), self._epoch.tick_facts())
        self._core.refusals.were_told()
        self._core.sent = True

    # --- what we asked for -------------------------------------------------------------------------------------

    def receive_records(self, batch: RecordsReceived) -> None:
        """Records that come: those before one too many count."""
        core, negotiated = self._core, self._epoch.agreement.negotiated
        limit = negotiated.limits.max_total_transferred_bytes
        names = [record for record, _ in batch.records]
        asked = core.requests.arrive(names)
        room = limit - core.ledger.round_received
        taken, size = fitting([size for _, size in batch.records[:asked]], room)
        core.ledger.count_received(size)
        self._crossed |= asked > 0
        arrived = names[: min(taken, asked)]
        wanted = core.requests.wanted(arrived)
        if arrived:
            self._epoch.note_arrived(arrived)
            core.refusals.note_crossed(arrived)
        if wanted:
            core.storing.update(wanted)
            core.emit(StoreRecords(wanted))
        if len(wanted) < len(arrived):
            core.refusals.not_wanted(frozenset(arrived).difference(wanted))
            core.report(Unwanted(len(arrived) - len(wanted)))
        if taken < asked:  # 050-LIM-06
            raise ProtocolAbort(AbortReason.TRANSFER_LIMIT_EXCEEDED, f"more than {limit} bytes", "050-ERR-14")
        if asked < len(names):
            raise core.requests.unasked(names[asked], negotiated.record_formats)

    def receive_availability(self, block: BlockReader) -> None:
        """What the peer can no longer send; what got no answer is deferred (050-XFER-04)."""
        core = self._core
        missing = [fact.values[0] for fact in dict.fromkeys(block.facts) if fact.predicate == NOT_AVAILABLE]
        self._refused_by_peer = read_refused(block.facts)
        require_record_ids(missing)
        for record in missing:
            core.requests.unavailable(record)
        missing = list(core.requests.wanted(missing))
        for record in missing:
            core.ledger.miss(record)
        if missing:
            core.report(NotAvailable(missing))
        deferred = core.requests.take_deferred()
        if deferred:
            core.report(Deferred(deferred))
        core.received = True

    @property
    def is_over(self) -> bool:
        """Whether both responses are complete and everything that came is stored or rejected."""
        return self._core.is_phase_done and not self._core.storing

    def end(self) -> None:
        """P13: once record bytes have crossed, earlier listings no longer count as seen."""
        self._core.accept_refusals(self._refused_by_peer)
        if self._crossed:
            self._epoch.forget_listings()


def fitting(sizes: Sequence[int], room: int) -> tuple[int, int]:
    """How many records fit, and the bytes that came for them and for the first that does not (P21)."""
    total = sum(sizes)
    if total <= room:
        return len(sizes), total
    total = 0
    for place, size in enumerate(sizes):
        total += size
        if total > room:
            return place, total
    return len(sizes), total
