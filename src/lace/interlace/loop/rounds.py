"""An epoch under way (050): loop after loop, with transfers between them, to a fixed point; then the rest.

Rule: each loop and each transfer is a part of its own and is dropped when it is over; this module decides which comes
next.
When another epoch is due, `wants_epoch` is set and the machine begins it.
"""

from __future__ import annotations

from typing import assert_never

from lace.errors import LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.core import Core
from lace.interlace.ending import Ending
from lace.interlace.events import FixedPoint, Received, Rejected
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.epoch import Epoch
from lace.interlace.loop.loop import Loop, LoopEnd
from lace.interlace.loop.refusals import Reason
from lace.interlace.loop.transfer import Transfer
from lace.interlace.loop.way import WayAnswer
from lace.interlace.phases import Move, Phase, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import Block

Answer = given.Evaluated | WayAnswer
OwnProgress = given.ListingSent | given.RecordsSent | given.RecordsStored | given.RecordsRejected


class Rounds:
    """The phases LISTING to IDLE of one epoch."""

    def __init__(self, core: Core, ending: Ending, epoch: Epoch) -> None:
        self._core = core
        self._ending = ending
        self.epoch = epoch
        self._loop: Loop | None = None
        self._transfer: Transfer | None = None
        self.wants_epoch: bool = False

    @property
    def is_batch_open(self) -> bool:
        """Whether the peer's records come now."""
        return self._transfer is not None and self._transfer.is_batch_open

    @property
    def unserved(self) -> int:
        """How many records the peer named in its requests and has had no answer for yet."""
        if self._transfer is not None:
            return self._transfer.unserved
        return len(self._loop.peer_requests) if self._loop is not None and not self._loop.is_asked_for_all else 0

    @property
    def _running(self) -> Loop:
        if self._loop is None:
            raise LocalProtocolError("no loop is under way")
        return self._loop

    @property
    def _moving(self) -> Transfer:
        if self._transfer is None:
            raise LocalProtocolError("no transfer is under way")
        return self._transfer

    # --- which part comes next ---------------------------------------------------------------------------------

    def begin_loop(self) -> None:
        """In LISTING with nothing sent: the next loop, unless this is where the exchange turns elsewhere."""
        core = self._core
        if core.close_requested:
            self._ending.finish(self.epoch)
        elif core.ledger.round_loops >= self.epoch.agreement.negotiated.limits.max_loop_iterations:
            core.ledger.limit_reached = "max_loop_iterations"  # 050-LIM-07: a partial result
            self._ending.finish(self.epoch)
        elif core.next_config is not None and not core.received:
            self.wants_epoch = True
        else:
            if not core.received:
                self._loop = Loop(core, self.epoch)
            core.ledger.count_loop()
            self.epoch.evaluate(Question.WHAT_TO_LIST)

    def _loop_on_our_own(self) -> None:
        """050-OPEN-04: we start the next loop; the evaluation at hand is current."""
        self._core.enter(Move.LOOP)
        self._core.ledger.count_loop()
        self._loop = Loop(self._core, self.epoch)
        self._loop.advertise()

    def _after_loop(self) -> None:
        """Both request lists are exchanged: transfer, go around once more, or rest."""
        loop, core = self._running, self._core
        match loop.end:
            case None:
                return
            case LoopEnd.WANTED:
                core.enter(Move.WANTED)
                self._ending.fixed_point = False
                self._transfer, self._loop = self._transfer_after(loop), None
                self._transfer.begin()
                self._after_transfer()
            case LoopEnd.NOT_SETTLED:
                core.enter(Move.NOT_SETTLED)
                self.begin_loop()
            case LoopEnd.SETTLED:
                self._loop = None
                self._settle()
            case _:
                assert_never(loop.end)

    def _transfer_after(self, loop: Loop) -> Transfer:
        return Transfer(self._core, self.epoch, loop.peer_requests, are_listed=loop.is_asked_for_all)

    def _after_transfer(self) -> None:
        transfer = self._transfer
        if transfer is not None and transfer.is_over:
            transfer.end()
            self._transfer = None
            self._core.enter(Move.TRANSFERRED)
            self.begin_loop()

    def _settle(self) -> None:
        """A fixed point (050-MODEL-08)."""
        core, epoch = self._core, self.epoch
        self._ending.fixed_point = True
        core.report(FixedPoint(core.ledger.loops))
        core.ledger.begin_round()
        epoch.settle()
        if epoch.announces_ticks:
            core.enter(Move.SETTLED)
            self.rest()
        else:
            self._ending.finish(epoch)

    def rest(self) -> None:
        """In IDLE with no block begun: whether anything calls for another loop."""
        core, epoch = self._core, self.epoch
        if not core.is_resting:
            return
        if core.close_requested or epoch.has_ticked_enough:
            self._ending.finish(epoch)
        elif core.next_config is not None:
            self.wants_epoch = True
        elif core.local_changed:
            epoch.evaluate(Question.ANY_NEWS)
        elif not epoch.is_advertised:
            self._loop_on_our_own()

    def leave(self) -> None:
        """The next epoch is negotiated: a loop that was begun is forgotten."""
        self._loop = None
        self.wants_epoch = False

    # --- what the peer says ------------------------------------------------------------------------------------

    def end_block(self, block: BlockReader) -> None:
        """A whole block of the peer."""
        self.epoch.hear_ticks(block)
        match block.kind:
            case Block.SELECTION | Block.ANSWER | Block.SYMBOLS | Block.REPLY | Block.TOLD:
                self._running.receive(block)
            case Block.REQUEST:
                self._running.receive_requests(block)
                self._after_loop()
            case Block.AVAILABILITY:
                self._moving.receive_availability(block)
                self._after_transfer()
            case _ if block.is_tick:  # P19: it starts no loop; an awaited adv is still awaited
                self.rest()
            case _ if self._core.phase is Phase.IDLE:  # P20: the peer starts a loop, we answer with our own adv
                self._core.enter(Move.LOOP)
                self._loop = Loop(self._core, self.epoch)
                self._loop.receive_listing(block)
                self.begin_loop()
            case _:
                self._running.receive_listing(block)

    def end_batch(self) -> None:
        """The peer's last record came."""
        self._moving.is_batch_open = False

    def receive_records(self, batch: given.RecordsReceived) -> None:
        """Records of the peer."""
        if not self.is_batch_open:
            raise ProtocolAbort(AbortReason.RECORD_NOT_REQUESTED, "a record out of phase", "050-ERR-15")
        self._moving.receive_records(batch)

    # --- what our own side answers -----------------------------------------------------------------------------

    def receive_answer(self, item: Answer) -> None:
        """A question is answered: the exchange goes on where it was asked."""
        question = self._core.answered()
        if isinstance(item, given.Evaluated):
            self.epoch.accept(item)
            self._evaluated(question)
        else:
            self._running.answer(question, item)
            self._after_loop()

    def _evaluated(self, question: Question) -> None:
        epoch = self.epoch
        match question:
            case Question.WHAT_TO_LIST:
                self._running.advertise()
            case Question.WHAT_TO_REQUEST:
                self._running.send_requests()
                self._after_loop()
            case Question.WHAT_TO_SERVE:
                self._moving.serve()
            case Question.ANY_NEWS if epoch.is_advertised and not epoch.found.requests:
                self.rest()
            case Question.ANY_NEWS:  # 050-OPEN-03: a changed send set or something to request makes another loop
                self._loop_on_our_own()
            case _:
                raise LocalProtocolError(f"asked to {question.value} and evaluated instead")

    def receive_progress(self, item: OwnProgress) -> None:
        """Work that goes on while the peer's items are read has come further."""
        core = self._core
        match item:
            case given.ListingSent(records):
                self._running.listing_sent(records)
                return
            case given.RecordsSent():
                self._moving.records_sent(item)
            case given.RecordsStored(hashes):
                core.storing.difference_update(hashes)
                core.ledger.store(hashes)
                core.report(Received(hashes, core.ledger.bytes_received))
            case given.RecordsRejected(reasons, words):
                core.storing.difference_update(reasons)
                core.ledger.reject(reasons)
                core.requests.reject(reasons, for_good=core.refusals.version > 0)
                core.refusals.refuse({record: words.get(record, Reason.INVALID) for record in reasons})
                core.report(Rejected(reasons))
            case _:
                assert_never(item)
        failure = self._ending.failure
        if failure is None:
            self._after_transfer()
        elif not core.storing:
            self._ending.fail(failure, self.epoch)
