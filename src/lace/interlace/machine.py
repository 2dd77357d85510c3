"""The interlace machine (050): one side of one link. Inputs in, effects out.

Rule: pure. It touches no clock, store or stream; what it needs done it returns as effects, and every change of phase
is a row of `phases.MOVES`. A peer's fault becomes an `Abort` effect, our own misuse a LocalProtocolError.
"""

from __future__ import annotations

from typing import assert_never, get_args

from lace.errors import LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.blocks import BlockReader
from lace.interlace.config import MachineConfig
from lace.interlace.core import Purpose
from lace.interlace.effects import Effect, EndBlock, SendFacts
from lace.interlace.epoch import LACEGRAM, EpochPhases
from lace.interlace.events import Received, Rejected
from lace.interlace.phases import TIMED, Move, Phase
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import EXCHANGE_OPERAND, Block

_PEER_INPUTS = get_args(given.PeerInput)


class InterlaceMachine(EpochPhases):
    """One side of one link (050-STATE-01).

    `start` and `receive` take the time as TAI nanoseconds of a clock that does not go back, and return effects.
    """

    def __init__(self, config: MachineConfig) -> None:
        super().__init__(config)

    # --- what a driver asks ------------------------------------------------------------------------------------

    @property
    def wants_peer_input(self) -> bool:
        """Whether the peer's next item may be given now; what is not wanted yet belongs to the next phase."""
        if self.phase in (Phase.NEW, Phase.PREPARE, Phase.CLOSED) or self._failure is not None:
            return False
        return not self._received and self._purpose is None and self._then is None

    @property
    def is_closed(self) -> bool:
        """Whether the exchange is over."""
        return self.phase is Phase.CLOSED

    @property
    def next_timer(self) -> int | None:
        """When to give TimerFired, in TAI nanoseconds."""
        times = []
        if self._is_timed:
            times.append(self._deadline_ns)
        if self._announces_ticks and self._ticks is not None and self.phase is Phase.IDLE and self._purpose is None:
            times.append(self._ticks.next_due_ns())
        return min(times, default=None)

    @property
    def _is_timed(self) -> bool:
        """Whether the peer's silence counts (050-LIM-08): while we wait for it, but not at a fixed point."""
        in_block = self.phase is Phase.IDLE and self._block is not None
        return self.wants_peer_input and (self.phase in TIMED or in_block)

    def expects_record(self, record: str) -> bool:
        """Whether a record response under this hash may come now; a codec asks before it reads the bytes."""
        return self.phase is Phase.TRANSFER and self._batch_open and record in self._book.outstanding

    @property
    def expects_records(self) -> bool:
        """Whether a record response may come now."""
        return self.phase is Phase.TRANSFER and self._batch_open and bool(self._book.outstanding)

    @property
    def offered(self) -> int:
        """How many records the peer's current listing speaks of, and ours not yet."""
        return max(0, self._offered - len(self._own))

    @property
    def is_resting(self) -> bool:
        """Whether both sides are at a fixed point and nothing is under way."""
        return self.phase is Phase.IDLE and self._purpose is None and self._block is None

    @property
    def foreign_claims(self) -> int:
        """How many claims of the peer are held beyond as many as we make ourselves: those cost memory of their own."""
        return max(0, len(self._held) - len(self._own))

    # --- the doors ---------------------------------------------------------------------------------------------

    def start(self, now_ns: int) -> list[Effect]:
        """Begin: our setup goes out at once."""
        self._now_ns = now_ns
        self._enter(Move.START)
        self._send_setup()
        return self._take()

    def receive(self, item: given.Input, now_ns: int) -> list[Effect]:
        """One input; the effects it calls for."""
        self._now_ns = max(self._now_ns, now_ns)
        if self.phase is Phase.CLOSED:
            return []
        if isinstance(item, _PEER_INPUTS) and not self._may_give(item):
            raise LocalProtocolError(f"{type(item).__name__} while {self.phase.value!r} wants no peer input")
        try:
            self._dispatch(item)
        except ProtocolAbort as failure:
            self._fail(failure)
        return self._take()

    def _may_give(self, item: given.Input) -> bool:
        return self.wants_peer_input or isinstance(item, given.StreamFailed | given.StreamEnded)

    def _take(self) -> list[Effect]:
        effects, self._out = self._out, []
        return effects

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
            case given.CursorLoaded(data):
                self._take_cursor(data)
            case given.PolicyPrepared():
                self._enter(Move.READY)
                self._begin_loop()
            case given.PolicyRefused(detail):
                raise ProtocolAbort(AbortReason.MALFORMED_PREPARED_POLICY, detail, "050-ERR-09")
            case given.Evaluated():
                self._evaluated(item)
            case given.EvaluationFailed(detail):
                raise ProtocolAbort(AbortReason.EVALUATION_FAILED, detail, "050-EVAL-04")
            case given.Summarised(partitions):
                self._summarised(partitions)
            case given.RecordsSent():
                self._records_sent(item)
            case given.RecordsStored() | given.RecordsRejected():
                self._answer_stored(item)
            case given.LocalFailed(detail):
                raise ProtocolAbort(AbortReason.LOCAL_FAILURE, detail)
            case given.LocalChanged():
                self._local_changed = True
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
                assert_never(item)

    # --- blocks ------------------------------------------------------------------------------------------------

    def _open_block(self, *, is_setup: bool = False) -> BlockReader:
        """The block being read, begun now if this is its first line."""
        if self._block is None:
            if self.phase is Phase.TRANSFER and self._batch_open:
                raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "facts in a record batch", "050-FACT-10")
            self._block = self._reader(self._expected_kind(is_setup))
            if self.phase is Phase.IDLE:
                self._deadline_ns = self._now_ns + self.config.limits.phase_timeout_ns
        return self._block

    def _expected_kind(self, is_setup: bool) -> Block:
        kind = self._block_kind()
        if kind is Block.LISTING and is_setup:  # P20: a setup block stands where an adv could start
            return Block.SETUP
        if kind is Block.SETUP and self._restarting and not is_setup:  # P20: what crossed our setup
            return Block.LISTING
        return kind

    def _end_block(self) -> None:
        if self.phase is Phase.TRANSFER and self._batch_open:
            self._batch_open = False
            return
        block = self._open_block()
        self._block = None
        if block.kind is Block.SETUP:
            self._end_setup(block)
        elif self.phase is Phase.SETUP:
            self._forget_crossing(block)
        elif block.kind is Block.HELLO:
            self._receive_hello(block)
        else:
            self._hear_ticks(block)
            self._end_loop_block(block)

    def _end_setup(self, block: BlockReader) -> None:
        if self.phase is Phase.SETUP:
            self._receive_setup(block)
            self._setup_done()
        else:
            self._answer_epoch(block)

    def _end_loop_block(self, block: BlockReader) -> None:
        if block.kind is Block.SELECTION:
            self._peer_selection = block.facts
            self._received = True
            self._selection_done()
        elif block.kind is Block.ANSWER:
            self._receive_answer(block)
        elif block.kind is Block.REQUEST:
            self._receive_requests(block)
            self._requests_done()
        elif block.kind is Block.AVAILABILITY:
            self._receive_availability(block)
            self._transfer_done()
        elif block.is_tick:  # P19: it starts no loop; an awaited adv is still awaited
            self._rest()
        else:
            self._end_listing(block)

    def _end_listing(self, block: BlockReader) -> None:
        if self.phase is Phase.IDLE:  # P20: the peer starts the next loop, we answer with our own adv
            self._enter(Move.LOOP)
            self._receive_listing(block)
            self._begin_loop()
        else:
            self._receive_listing(block)
            self._listing_done()

    def _receive_resource(self, identifier: str, kind: str, text: bytes) -> None:
        """P22: only where a block or batch item may begin; `E.` bytes are accepted and not needed."""
        if self._block is not None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "a resource inside a block", "050-FACT-10")
        if kind == LACEGRAM:
            known = self._modules_received.setdefault(identifier, text)
            if known != text:
                raise ProtocolAbort(AbortReason.MALFORMED_MODULE, f"two texts for {identifier[:80]}", "050-ERR-07")

    # --- loops, rest, end --------------------------------------------------------------------------------------

    def _begin_loop(self) -> None:
        if self._close_requested:
            self._finish()
        elif self._ledger.round_loops >= self.agreement.negotiated.limits.max_loop_iterations:
            self._ledger.limit_reached = "max_loop_iterations"  # 050-LIM-07: a partial result
            self._finish()
        elif self._next_module is not None and not self._received:
            self._start_epoch()
        else:
            self._ledger.count_loop()
            self._evaluate(Purpose.LISTING)

    def _rest(self) -> None:
        if self.phase is not Phase.IDLE or self._purpose is not None or self._block is not None:
            return
        if self._close_requested or self._has_ticked_enough():
            self._finish()
        elif self._next_module is not None:
            self._start_epoch()
        elif self._local_changed:
            self._evaluate(Purpose.IDLE)
        elif self._own.version != self._advertised_version:
            self._loop_on_our_own()

    def _has_ticked_enough(self) -> bool:
        """050-TICK-15: a bounded exchange that was asked to wait for ticks."""
        if self.config.is_open or not self.config.ticks_before_close:
            return False
        ticks = self._tick_state()
        waited = (ticks.tick.to_ns() - ticks.start.to_ns()) // ticks.interval_ns
        is_quiet = not self._local_changed and self._own.version == self._advertised_version
        return is_quiet and waited >= self.config.ticks_before_close

    def _loop_on_our_own(self) -> None:
        """050-OPEN-04: we start the next loop; the evaluation at hand is current."""
        self._enter(Move.LOOP)
        self._ledger.count_loop()
        self._send_advertisement()

    def _evaluated(self, answer: given.Evaluated) -> None:
        purpose, self._purpose = self._purpose, None
        if purpose is None:
            raise LocalProtocolError("an evaluation that nobody asked for")
        self._deadline_ns = self._now_ns + self.config.limits.phase_timeout_ns
        self._accept_evaluation(answer.send_added, answer.send_removed)
        self._book.update(answer.request_added, answer.request_removed)
        self._store_mark = answer.store_mark
        match purpose:
            case Purpose.LISTING:
                self._send_advertisement()
            case Purpose.REQUEST:
                self._send_requests()
            case Purpose.SERVICE:
                self._serve()
            case Purpose.IDLE:
                self._after_idle()

    def _after_idle(self) -> None:
        """050-OPEN-03: a changed send set or something to request makes another loop."""
        formats = self.agreement.negotiated.record_formats & self.config.record_formats
        if self._own.version != self._advertised_version or self._book.wanted(self._held, formats):
            self._loop_on_our_own()
        else:
            self._rest()

    def _answer_stored(self, answer: given.RecordsStored | given.RecordsRejected) -> None:
        if isinstance(answer, given.RecordsStored):
            self._storing.difference_update(answer.hashes)
            self._ledger.store(answer.hashes)
            self._report(Received(answer.hashes, self._ledger.bytes_received))
        else:
            self._storing.difference_update(answer.reasons)
            self._ledger.reject(answer.reasons)
            self._book.reject(answer.reasons)
            self._report(Rejected(answer.reasons))
        if self._failure is not None and not self._storing:
            self._fail(self._failure)
        elif self._failure is None:
            self._transfer_done()

    def _fire(self) -> None:
        if self._is_timed and self._now_ns >= self._deadline_ns:  # 050-LIM-08
            raise ProtocolAbort(AbortReason.PHASE_TIMEOUT, f"while {self.phase.value}", "050-ERR-12")
        if self.phase is Phase.IDLE and self._purpose is None:
            facts = self._tick_facts()
            if facts:  # P19: a tick block
                self._emit(SendFacts(facts))
                self._emit(EndBlock())
                self._rest()

    def _end_stream(self, clean: bool) -> None:
        """A disconnect at a phase boundary is a clean close (060); anywhere else it breaks the round."""
        in_batch = self.phase is Phase.TRANSFER and not self._received
        negotiating = self.phase in (Phase.SETUP, Phase.HELLO) and not self._restarting
        if not clean or self._block is not None or in_batch or negotiating:
            raise ProtocolAbort(AbortReason.STREAM_BROKEN, f"the peer closed while {self.phase.value}")
        if self.phase is Phase.IDLE or not self._storing:
            self._closed_by_peer = self.phase is not Phase.IDLE
            self._purpose = None
            self._finish()
