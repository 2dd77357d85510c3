"""The interlace machine (050): one side of one link. Inputs in, effects out.

Rule: pure. It touches no clock, store or stream; what it needs done it returns as effects, and every change of phase
is a row of `phases.MOVES`. A peer's fault becomes an `Abort` effect, our own misuse a LocalProtocolError.

It is made of parts that are thrown away when they are over: a Negotiation until an epoch is agreed, the Epoch until the
next one, a Loop until its request lists are exchanged, a Transfer until its records are stored. docs/machine.md
explains how they follow each other.
"""

from __future__ import annotations

from typing import assert_never, get_args

from lace.errors import LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.advertisement import ListingReader
from lace.interlace.agreement import Agreement
from lace.interlace.blocks import BlockReader
from lace.interlace.carrying import Transfer
from lace.interlace.core import Core
from lace.interlace.effects import Abort, Effect, Finish, SetHandle
from lace.interlace.epoch import Epoch, require_epoch
from lace.interlace.events import Closed, EpochBegan, FixedPoint, Received, Rejected
from lace.interlace.loop import Loop, LoopEnd
from lace.interlace.negotiation import LACEGRAM, Modules, Negotiation
from lace.interlace.phases import READS, TIMED, Move, Phase, Question
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.result import InterlaceResult
from lace.interlace.terms import MachineConfig
from lace.interlace.vocabulary import EXCHANGE_OPERAND, Block
from lace.policy.operand import Module

_PEER_INPUTS = get_args(given.PeerInput)


class InterlaceMachine:
    """One side of one link (050-STATE-01).

    `start` and `receive` take the time as TAI nanoseconds of a clock that does not go back, and return effects.
    """

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self._core = Core(config)
        self._modules = Modules(config.terms.module, config.terms.known_modules)
        self._negotiation = Negotiation(self._core, self._modules, is_restart=False)
        self._epoch: Epoch | None = None
        self._loop: Loop | None = None
        self._transfer: Transfer | None = None
        self._block: BlockReader | None = None  # that is being read
        self._crossing: BlockReader | None = None  # a setup that waits until our listing is out
        self._next_module: Module | None = None
        self._close_requested = False
        self._failure: ProtocolAbort | None = None  # waits for records under way
        self._fixed_point = False
        self._closed_by_peer = False
        self._cursor_updated = False

    # --- what a driver asks ------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """What both sides are doing."""
        return self._core.phase

    @property
    def agreement(self) -> Agreement:
        """What this epoch rests on."""
        return require_epoch(self._epoch).agreement

    @property
    def epoch(self) -> Epoch:
        """The epoch that was agreed on last."""
        return require_epoch(self._epoch)

    @property
    def packs(self) -> bool:
        """Whether fact lines may be packed in both directions (070)."""
        return self._epoch is not None and self._epoch.agreement.negotiated.compression

    @property
    def module(self) -> Module:
        """Our operand."""
        return self._modules.own

    @property
    def wants_peer_input(self) -> bool:
        """Whether the peer's next item may be given now; what is not wanted yet belongs to the next phase."""
        core = self._core
        if core.phase not in READS or self._failure is not None or self._crossing is not None:
            return False
        return not core.received and core.question is None

    @property
    def is_closed(self) -> bool:
        """Whether the exchange is over."""
        return self._core.phase is Phase.CLOSED

    @property
    def next_timer(self) -> int | None:
        """When to give TimerFired, in TAI nanoseconds."""
        times = []
        if self._is_timed:
            times.append(self._core.deadline_ns)
        if self._is_resting and self.epoch.announces_ticks:
            times.append(self.epoch.ticks.next_due_ns())
        return min(times, default=None)

    @property
    def _is_timed(self) -> bool:
        """Whether the peer's silence counts (050-LIM-08): while we wait for it, but not at a fixed point."""
        in_block = self.phase is Phase.IDLE and self._block is not None
        return self.wants_peer_input and (self.phase in TIMED or in_block)

    @property
    def _is_resting(self) -> bool:
        return self.phase is Phase.IDLE and self._core.question is None

    def expects_record(self, record: str) -> bool:
        """Whether a record response under this hash may come now; a codec asks before it reads the bytes."""
        return self._is_batch_open and record in self._core.requests.outstanding

    @property
    def expects_records(self) -> bool:
        """Whether a record response may come now."""
        return self._is_batch_open and bool(self._core.requests.outstanding)

    @property
    def advertised(self) -> tuple[int, SetHandle] | None:
        """The set that the peer was told of last, and in which epoch."""
        epoch = self._epoch
        return None if epoch is None or epoch.advertised is None else (epoch.number, epoch.advertised)

    @property
    def outstanding(self) -> frozenset[str]:
        """The records that we asked for and that have not come yet."""
        return frozenset(self._core.requests.outstanding)

    @property
    def refused(self) -> frozenset[str]:
        """The records that the peer could not send, or not well, since its claims last changed."""
        return self._core.requests.refused

    @property
    def _is_batch_open(self) -> bool:
        return self._transfer is not None and self._transfer.is_batch_open

    @property
    def offered(self) -> int:
        """How many records the peer's current listing speaks of, and ours not yet."""
        return max(0, self._loop.offered - self.epoch.own.count) if self._loop is not None else 0

    @property
    def is_resting(self) -> bool:
        """Whether both sides are at a fixed point and nothing is under way."""
        return self._is_resting and self._block is None

    @property
    def foreign_claims(self) -> int:
        """How many claims of the peer are held beyond as many as we make ourselves: those cost memory of their own."""
        return max(0, self._epoch.claims - self._epoch.own.count) if self._epoch is not None else 0

    def result(self) -> InterlaceResult:
        """What this side has to report now."""
        epoch, ledger = self._epoch, self._core.ledger
        agreement = epoch.agreement if epoch is not None else None
        return InterlaceResult(
            link_id=agreement.link_id if agreement else None,
            exchange_plan_id=agreement.plan.id if agreement else None,
            peer_verifier=agreement.peer if agreement else None,
            received_hashes=tuple(ledger.received),
            rejected_hashes=dict(ledger.rejected),
            not_available_hashes=tuple(ledger.not_available),
            bytes_received=ledger.bytes_received,
            bytes_sent=ledger.bytes_sent,
            cursor_updated=self._cursor_updated,
            sent_hashes=tuple(ledger.sent),
            fixed_point=self._fixed_point,
            loops=ledger.loops,
            advertised_to_peer=epoch.own.count if epoch else 0,
            advertised_by_peer=epoch.claims if epoch else 0,
            epochs=epoch.number if epoch else 0,
            limit_reached=ledger.limit_reached,
            closed_by_peer=self._closed_by_peer,
            store_mark=epoch.found.store_mark if epoch else 0,
        )

    # --- the doors ---------------------------------------------------------------------------------------------

    def start(self, now_ns: int) -> list[Effect]:
        """Begin: our setup goes out at once."""
        self._core.now_ns = now_ns
        self._core.enter(Move.START)
        self._negotiation.send_setup()
        return self._core.take()

    def receive(self, item: given.Input, now_ns: int) -> list[Effect]:
        """One input; the effects it calls for."""
        self._core.now_ns = max(self._core.now_ns, now_ns)
        if self.is_closed:
            return []
        if isinstance(item, _PEER_INPUTS) and not self._may_give(item):
            raise LocalProtocolError(f"{type(item).__name__} while {self.phase.value!r} wants no peer input")
        try:
            self._dispatch(item)
        except ProtocolAbort as failure:
            self._fail(failure)
        return self._core.take()

    def _may_give(self, item: given.Input) -> bool:
        return self.wants_peer_input or isinstance(item, given.StreamFailed | given.StreamEnded)

    def _dispatch(self, item: given.Input) -> None:
        match item:
            case given.FactsReceived(facts, size):
                if facts:
                    self._open_block(is_setup=facts[0].predicate == EXCHANGE_OPERAND).read(facts, size)
            case given.AdvertisementsReceived(claims):
                self._open_block().read_claims(claims)
            case given.ChangesReceived():
                self._open_block().changes = item
            case given.ResourceReceived(identifier, kind, text):
                self._receive_resource(identifier, kind, text)
            case given.RecordsReceived():
                self._receive_records(item)
            case given.BlockEnded():
                self._end_block()
            case given.StreamEnded(clean):
                self._end_stream(clean)
            case given.StreamFailed(detail):
                raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, detail, "050-ERR-06")
            case given.ListingSent() | given.RecordsSent() | given.RecordsStored() | given.RecordsRejected():
                self._receive_progress(item)
            case given.LocalChanged():
                self._core.local_changed = True
                self._rest()
            case given.OperandChanged(module):
                self._next_module = module
                self._rest()
            case given.TimerFired():
                self._fire()
            case given.CloseRequested():
                self._close_requested = True
                self._rest()
            case _:
                self._receive_answer(item)

    # --- answers of our own side -------------------------------------------------------------------------------

    def _receive_answer(self, item: given.HostAnswer) -> None:
        match item:
            case given.PolicyRefused(detail):
                raise ProtocolAbort(AbortReason.MALFORMED_PREPARED_POLICY, detail, "050-ERR-09")
            case given.EvaluationFailed(detail):
                raise ProtocolAbort(AbortReason.EVALUATION_FAILED, detail, "050-EVAL-04")
            case given.ListingRefused(detail, clause):
                raise ProtocolAbort(AbortReason.LIST_ROOT_MISMATCH, detail, clause)
            case given.LocalFailed(detail):
                raise ProtocolAbort(AbortReason.LOCAL_FAILURE, detail)
            case given.PolicyPrepared(claims):
                self._core.answered()
                self.epoch.begin_with(claims)
                self._core.enter(Move.READY)
                self._begin_loop()
            case given.Evaluated():
                self._evaluated(self._core.answered(), item)
            case given.Summarised(partitions):
                if self._core.answered() is Question.SUMMARIES:
                    self._running.send_summaries(partitions)
                else:
                    self._running.send_children(partitions)
            case given.Measured():
                self._core.answered()
                self._running.send_measure(item)
            case given.Sketched(symbols):
                self._core.answered()
                self._running.send_symbols(symbols)
            case given.Decoded():
                self._core.answered()
                self._running.decoded(item)
            case given.DifferenceTaken():
                self._core.answered()
                self._running.difference_taken(item)
            case given.ClaimsTaken():
                self._core.answered()
                self._running.listings_compared(item)
            case given.Reconciled():
                if self._core.answered() is Question.THEIR_SUMMARIES:
                    self._running.listings_compared(item)
                else:
                    self._running.answer_checked(item)
            case _:
                assert_never(item)

    def _evaluated(self, question: Question, found: given.Evaluated) -> None:
        epoch = self.epoch
        epoch.accept(found)
        match question:
            case Question.WHAT_TO_LIST:
                self._running.advertise()
            case Question.WHAT_TO_REQUEST:
                self._running.send_requests()
                self._after_loop()
            case Question.WHAT_TO_SERVE:
                self._carrying.serve()
            case Question.ANY_NEWS if epoch.is_advertised and not found.requests:
                self._rest()
            case Question.ANY_NEWS:  # 050-OPEN-03: a changed send set or something to request makes another loop
                self._loop_on_our_own()
            case _:
                raise LocalProtocolError(f"asked to {question.value} and evaluated instead")

    def _receive_progress(
        self, item: given.ListingSent | given.RecordsSent | given.RecordsStored | given.RecordsRejected
    ) -> None:
        """What is told of work that goes on while the peer's items are read."""
        core = self._core
        match item:
            case given.ListingSent():
                self._running.listing_sent()
                if self._crossing is not None:
                    block, self._crossing = self._crossing, None
                    self._answer_epoch(block)
                return
            case given.RecordsSent():
                self._carrying.records_sent(item)
            case given.RecordsStored(hashes):
                core.storing.difference_update(hashes)
                core.ledger.store(hashes)
                core.report(Received(hashes, core.ledger.bytes_received))
            case given.RecordsRejected(reasons):
                core.storing.difference_update(reasons)
                core.ledger.reject(reasons)
                core.requests.reject(reasons)
                core.report(Rejected(reasons))
        if self._failure is None:
            self._after_transfer()
        elif not core.storing:
            self._fail(self._failure)

    @property
    def _running(self) -> Loop:
        if self._loop is None:
            raise LocalProtocolError("no loop is under way")
        return self._loop

    @property
    def _carrying(self) -> Transfer:
        if self._transfer is None:
            raise LocalProtocolError("no transfer is under way")
        return self._transfer

    # --- blocks ------------------------------------------------------------------------------------------------

    def _open_block(self, *, is_setup: bool = False) -> BlockReader:
        """The block being read, begun now if this is its first line."""
        if self._block is None:
            if self._is_batch_open:
                raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "facts in a record batch", "050-FACT-10")
            self._block = self._reader(self._expected_kind(is_setup))
            if self.phase is Phase.IDLE:
                self._core.be_patient()
        return self._block

    def _expected_kind(self, is_setup: bool) -> Block:
        kind = READS[self.phase]
        if kind is Block.LISTING and is_setup:  # P20: a setup block stands where an adv could start
            return Block.SETUP
        if kind is Block.SETUP and self._negotiation.is_restart and not is_setup:  # P20: what crossed our setup
            return Block.LISTING
        return kind

    def _reader(self, kind: Block) -> BlockReader:
        """A reader for the next block of a kind; listings are read under the agreed schema and the peer's label."""
        limits = self.config.terms.limits if self._epoch is None else self.agreement.negotiated.limits
        if self._epoch is None:
            return BlockReader(kind, limits.max_fact_block_size)
        negotiated, listing = self.agreement.negotiated, None
        if kind in (Block.LISTING, Block.ANSWER, Block.REPLY, Block.TOLD):
            most = limits.max_advertisement_records_listed
            listing = ListingReader(self.agreement.peer_source, negotiated.schema.names, most)
        return BlockReader(kind, limits.max_fact_block_size, listing, differences=negotiated.differences)

    def _end_block(self) -> None:
        if self._transfer is not None and self._transfer.is_batch_open:
            self._transfer.is_batch_open = False
            return
        block, self._block = self._open_block(), None
        if block.kind is Block.SETUP:
            self._end_setup(block)
        elif self.phase is Phase.SETUP:
            self._negotiation.forget_crossing(block)
        elif block.kind is Block.HELLO:
            self._begin_epoch(self._negotiation.receive_hello(block))
        else:
            self.epoch.hear_ticks(block)
            self._end_loop_block(block)

    def _end_setup(self, block: BlockReader) -> None:
        if self.phase is Phase.SETUP:
            self._negotiation.receive_setup(block)
        elif self.phase is Phase.LISTING and not self._core.sent:
            self._crossing = block  # our listing is on its way: what we say next stands behind it
        else:
            self._answer_epoch(block)

    def _end_loop_block(self, block: BlockReader) -> None:
        match block.kind:
            case Block.SELECTION:
                self._running.receive_selection(block)
            case Block.ANSWER:
                self._running.receive_answer(block)
            case Block.SYMBOLS | Block.REPLY | Block.TOLD:
                self._running.receive_difference(block)
            case Block.REQUEST:
                self._running.receive_requests(block)
                self._after_loop()
            case Block.AVAILABILITY:
                self._carrying.receive_availability(block)
                self._after_transfer()
            case _ if block.is_tick:  # P19: it starts no loop; an awaited adv is still awaited
                self._rest()
            case _ if self.phase is Phase.IDLE:  # P20: the peer starts the next loop, we answer with our own adv
                self._core.enter(Move.LOOP)
                self._loop = Loop(self._core, self.epoch)
                self._loop.receive_listing(block)
                self._begin_loop()
            case _:
                self._running.receive_listing(block)

    def _receive_resource(self, identifier: str, kind: str, text: bytes) -> None:
        """P22: only where a block or batch item may begin; `E.` bytes are accepted and not needed."""
        if self._block is not None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "a resource inside a block", "050-FACT-10")
        if kind == LACEGRAM:
            self._modules.receive(identifier, text)

    def _receive_records(self, batch: given.RecordsReceived) -> None:
        if self._transfer is None or not self._transfer.is_batch_open:
            raise ProtocolAbort(AbortReason.RECORD_NOT_REQUESTED, "a record out of phase", "050-ERR-15")
        self._transfer.receive_records(batch)

    # --- epochs ------------------------------------------------------------------------------------------------

    def _begin_epoch(self, agreement: Agreement) -> None:
        """The evaluator starts anew; the peer's state is kept only under the same plan (050-OPEN-13)."""
        core = self._core
        self._epoch = epoch = Epoch(core, agreement, before=self._epoch)
        core.requests.reset()
        core.ledger.begin_round()
        self._fixed_point = False
        core.enter(Move.AGREED)
        core.report(EpochBegan(agreement.plan.id, epoch.number))
        epoch.prepare()

    def _start_epoch(self) -> None:
        """Our operand changed: our setup block stands where an adv could start (050-OPEN-06)."""
        self._renew()
        self._negotiation.send_setup()

    def _answer_epoch(self, block: BlockReader) -> None:
        """The peer's operand changed; our own adv, if it crossed, is forgotten (050-OPEN-11)."""
        self._renew()
        self._negotiation.receive_setup(block)
        self._negotiation.send_setup()

    def _renew(self) -> None:
        if self._next_module is not None:
            self._modules.own, self._next_module = self._next_module, None
        self._core.enter(Move.OPERAND)
        self._loop = None
        self._negotiation = Negotiation(self._core, self._modules, is_restart=True)

    # --- loops, rest, end --------------------------------------------------------------------------------------

    def _begin_loop(self) -> None:
        """In LISTING with nothing sent: the next loop, unless this is where the exchange turns elsewhere."""
        core = self._core
        if self._close_requested:
            self._finish()
        elif core.ledger.round_loops >= self.agreement.negotiated.limits.max_loop_iterations:
            core.ledger.limit_reached = "max_loop_iterations"  # 050-LIM-07: a partial result
            self._finish()
        elif self._next_module is not None and not core.received:
            self._start_epoch()
        else:
            if not core.received:
                self._loop = Loop(core, self.epoch)
            core.ledger.count_loop()
            self._running.evaluate()

    def _after_loop(self) -> None:
        """Both request lists are exchanged: transfer, go around once more, or rest."""
        loop, core = self._running, self._core
        match loop.end:
            case None:
                return
            case LoopEnd.WANTED:
                core.enter(Move.WANTED)
                self._fixed_point = False
                self._transfer = Transfer(core, self.epoch, loop.peer_requests)
                self._loop = None
                self._transfer.begin()
                self._after_transfer()
            case LoopEnd.NOT_SETTLED:
                core.enter(Move.NOT_SETTLED)
                self._begin_loop()
            case LoopEnd.SETTLED:
                self._loop = None
                self._settle()
            case _:
                assert_never(loop.end)

    def _after_transfer(self) -> None:
        transfer = self._transfer
        if transfer is not None and transfer.is_over:
            transfer.end()
            self._transfer = None
            self._core.enter(Move.TRANSFERRED)
            self._begin_loop()

    def _settle(self) -> None:
        """A fixed point (050-MODEL-08)."""
        core, epoch = self._core, self.epoch
        self._fixed_point = True
        core.report(FixedPoint(core.ledger.loops))
        core.ledger.begin_round()
        epoch.settle()
        if epoch.announces_ticks:
            core.enter(Move.SETTLED)
            self._rest()
        else:
            self._finish()

    def _rest(self) -> None:
        """In IDLE: whether anything calls for another loop."""
        if not self._is_resting or self._block is not None:
            return
        if self._close_requested or self.epoch.has_ticked_enough:
            self._finish()
        elif self._next_module is not None:
            self._start_epoch()
        elif self._core.local_changed:
            self.epoch.evaluate(Question.ANY_NEWS)
        elif not self.epoch.is_advertised:
            self._loop_on_our_own()

    def _loop_on_our_own(self) -> None:
        """050-OPEN-04: we start the next loop; the evaluation at hand is current."""
        self._core.enter(Move.LOOP)
        self._core.ledger.count_loop()
        self._loop = Loop(self._core, self.epoch)
        self._loop.advertise()

    def _fire(self) -> None:
        if self._is_timed and self._core.now_ns >= self._core.deadline_ns:  # 050-LIM-08
            raise ProtocolAbort(AbortReason.PHASE_TIMEOUT, f"while {self.phase.value}", "050-ERR-12")
        if self._is_resting:
            facts = self.epoch.tick_facts()
            if facts:  # P19: a tick block
                self._core.send_block(facts)
                self._rest()

    def _end_stream(self, clean: bool) -> None:
        """A disconnect at a phase boundary is a clean close (060); anywhere else it breaks the round."""
        in_batch = self.phase is Phase.TRANSFER and not self._core.received
        negotiating = self.phase in (Phase.SETUP, Phase.HELLO) and not self._negotiation.is_restart
        if not clean or self._block is not None or in_batch or negotiating:
            raise ProtocolAbort(AbortReason.STREAM_BROKEN, f"the peer closed while {self.phase.value}")
        if self.phase is Phase.IDLE or not self._core.storing:
            self._closed_by_peer = self.phase is not Phase.IDLE
            self._core.question = None
            self._finish()

    def _finish(self) -> None:
        if self._epoch is not None and self._fixed_point:
            self._cursor_updated |= self._epoch.save_claims()
        self._core.enter(Move.CLOSE)
        self._core.report(Closed(""))
        self._core.emit(Finish(self.result()))

    def _fail(self, failure: ProtocolAbort) -> None:
        """Abort, after records under way have been answered so that the result names what was stored."""
        if self.is_closed:
            return
        if self._core.storing and failure.reason is not AbortReason.LOCAL_FAILURE:
            self._failure = self._failure or failure.with_traceback(None)  # whose frames would hold the machine
            return
        self._core.enter(Move.CLOSE)
        self._core.report(Closed(str(failure)))
        self._core.emit(Abort(failure.reason, failure.detail, self.result()))
