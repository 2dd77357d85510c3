"""The interlace machine (050): one side of one link. Inputs in, effects out.

Rule: pure. It touches no clock, store or stream; what it needs done it returns as effects, and every change of phase
is a row of `phases.MOVES`. A peer's fault becomes an `Abort` effect, our own misuse a LocalProtocolError.

It is made of parts that are thrown away when they are over: a Negotiation until an epoch is agreed, the Epoch and its
Rounds until the next one, a Loop until its request lists are exchanged, a Transfer until its records are stored.
docs/machine.md explains how they follow each other.
"""

from __future__ import annotations

from typing import get_args

from lace.errors import LocalProtocolError
from lace.interlace import inputs as given
from lace.interlace.core import Core
from lace.interlace.effects import Effect, SetHandle
from lace.interlace.ending import Ending
from lace.interlace.events import EpochBegan
from lace.interlace.loop.blocks import BlockReader, reader_for
from lace.interlace.loop.epoch import Epoch
from lace.interlace.loop.rounds import Rounds
from lace.interlace.phases import READS, TIMED, Move, Phase
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.result import InterlaceResult
from lace.interlace.setup.agreement import Agreement
from lace.interlace.setup.negotiation import LACEGRAM, Modules, Negotiation
from lace.interlace.setup.terms import MachineConfig
from lace.interlace.vocabulary import EXCHANGE_OPERAND, Block
from lace.policy.operand import Module

_PEER_INPUTS = get_args(given.PeerInput)


class InterlaceMachine:
    """One side of one link (050-STATE-01).

    `start` and `receive` take the time as TAI nanoseconds of a clock that does not go back, and return effects.
    """

    def __init__(self, config: MachineConfig) -> None:
        self._core = Core(config)
        self._modules = Modules(config.terms.module, config.terms.known_modules)
        self._negotiation = Negotiation(self._core, self._modules, is_restart=False)
        self._rounds: Rounds | None = None  # of the epoch that was agreed on last
        self._block: BlockReader | None = None  # that is being read
        self._crossing: BlockReader | None = None  # a setup that waits until our listing is out
        self._ending = Ending(self._core)

    # --- what a driver asks ------------------------------------------------------------------------------------

    @property
    def config(self) -> MachineConfig:
        """Our place and our terms, with the rules of this epoch."""
        return self._core.config

    @property
    def phase(self) -> Phase:
        """What both sides are doing."""
        return self._core.phase

    @property
    def agreement(self) -> Agreement:
        """What this epoch rests on."""
        return self.epoch.agreement

    @property
    def epoch(self) -> Epoch:
        """The epoch that was agreed on last."""
        return self._agreed.epoch

    @property
    def _agreed(self) -> Rounds:
        if self._rounds is None:
            raise LocalProtocolError("nothing is agreed yet")
        return self._rounds

    @property
    def _epoch(self) -> Epoch | None:
        return None if self._rounds is None else self._rounds.epoch

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
        if core.phase not in READS or self._ending.failure is not None or self._crossing is not None:
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
        if self._core.is_resting and self.epoch.announces_ticks:
            times.append(self.epoch.ticks.next_due_ns())
        return min(times, default=None)

    @property
    def _is_timed(self) -> bool:
        """Whether the peer's silence counts (050-LIM-08): while we wait for it, but not at a fixed point."""
        in_block = self.phase is Phase.IDLE and self._block is not None
        return self.wants_peer_input and (self.phase in TIMED or in_block)

    def expects_record(self, record: str) -> bool:
        """Whether a record response under this hash may come now; a codec asks before it reads the bytes."""
        return self.is_batch_open and record in self._core.requests.outstanding

    @property
    def expects_records(self) -> bool:
        """Whether a record response may come now."""
        return self.is_batch_open and bool(self._core.requests.outstanding)

    @property
    def awaits_records(self) -> bool:
        """Whether records that we asked for, or take unasked (070), are still to come, in this phase or a later one."""
        return bool(self._core.requests.outstanding)

    @property
    def is_batch_open(self) -> bool:
        """Whether records of the peer come now."""
        return self._rounds is not None and self._rounds.is_batch_open

    @property
    def advertised(self) -> tuple[int, SetHandle] | None:
        """The set that we last advertised to the peer, and in which epoch."""
        epoch = self._epoch
        return None if epoch is None or epoch.advertised is None else (epoch.number, epoch.advertised)

    @property
    def outstanding(self) -> frozenset[str]:
        """The records that we asked for, or take unasked (070), and that are still to come."""
        return frozenset(self._core.requests.wanted(list(self._core.requests.outstanding)))

    @property
    def refused(self) -> frozenset[str]:
        """The records that the peer could not send, or not well, since its claims last changed."""
        return self._core.requests.refused

    @property
    def is_resting(self) -> bool:
        """Whether both sides are at a fixed point and nothing is under way."""
        return self._core.is_resting and self._block is None

    @property
    def foreign_claims(self) -> int:
        """How many claims of the peer are held beyond as many as we make ourselves: those cost memory of their own."""
        return max(0, self._epoch.claims - self._epoch.own.count) if self._epoch is not None else 0

    @property
    def block_bytes(self) -> int:
        """Bytes of lines of the block that is being read; they are in memory as facts."""
        return self._block.size if self._block is not None else 0

    @property
    def unserved_requests(self) -> int:
        """How many records the peer named in its requests and has had no answer for yet."""
        return self._rounds.unserved if self._rounds is not None else 0

    @property
    def listed_so_far(self) -> int:
        """Records that the block at hand lists: so many claims are coming at least, if nothing is wrong with it."""
        return self._block.listed if self._block is not None else 0

    def result(self) -> InterlaceResult:
        """What this side has to report now."""
        return self._ending.result(self._epoch)

    # --- the doors ---------------------------------------------------------------------------------------------

    def start(self, now_ns: int) -> list[Effect]:
        """Begin: our setup goes out first, without waiting for the peer's."""
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
            if self._rounds is not None and self._rounds.wants_epoch:
                self._start_epoch()
        except ProtocolAbort as failure:
            self._ending.fail(failure, self._epoch)
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
            case given.ResourceReceived():
                self._receive_resource(item)
            case given.RecordsReceived():
                if self._rounds is None:
                    raise ProtocolAbort(AbortReason.RECORD_NOT_REQUESTED, "a record before hello", "050-ERR-15")
                self._rounds.receive_records(item)
            case given.BlockEnded():
                self._end_block()
            case given.StreamEnded(clean):
                self._end_stream(clean)
            case given.StreamFailed(detail):
                raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, detail, "050-ERR-06")
            case given.ListingSent() | given.RecordsSent() | given.RecordsStored() | given.RecordsRejected():
                self._agreed.receive_progress(item)
                self._answer_crossing()
            case given.LocalChanged():
                self._core.local_changed = True
                self._rest()
            case given.RulesChanged():
                self._change_rules(item)
                self._rest()
            case given.TimerFired():
                self._fire()
            case given.CloseRequested():
                self._core.close_requested = True
                self._rest()
            case _:
                self._receive_answer(item)

    # --- answers of our own side -------------------------------------------------------------------------------

    def _receive_answer(self, item: given.HostAnswer) -> None:
        match item:
            case given.PolicyRefused(detail):
                raise ProtocolAbort(AbortReason.MALFORMED_PREPARED_POLICY, detail, "050-ERR-09")
            case given.EvaluationFailed(detail, limit):
                raise ProtocolAbort(AbortReason.EVALUATION_FAILED, detail, "050-EVAL-04", limit)
            case given.ListingRefused(detail, clause):
                raise ProtocolAbort(AbortReason.LIST_ROOT_MISMATCH, detail, clause)
            case given.LocalFailed(detail, limit):
                raise ProtocolAbort(AbortReason.LOCAL_FAILURE, detail, limit=limit)
            case given.PolicyPrepared(claims):
                self._core.answered()
                self.epoch.begin_with(claims)
                self._core.enter(Move.READY)
                self._agreed.begin_loop()
            case _:
                self._agreed.receive_answer(item)

    # --- blocks ------------------------------------------------------------------------------------------------

    def _open_block(self, *, is_setup: bool = False) -> BlockReader:
        """The block being read, begun now if this is its first line."""
        if self._block is None:
            if self.is_batch_open:
                raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "facts in a record batch", "050-FACT-10")
            agreement = self._epoch.agreement if self._epoch is not None else None
            self._block = reader_for(self._expected_kind(is_setup), agreement, self.config.terms.limits)
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

    def _end_block(self) -> None:
        if self.is_batch_open:
            self._agreed.end_batch()
            return
        block, self._block = self._open_block(), None
        if block.kind is Block.SETUP:
            self._end_setup(block)
        elif self.phase is Phase.SETUP:
            self._negotiation.forget_crossing(block)
        elif block.kind is Block.HELLO:
            self._begin_epoch(self._negotiation.receive_hello(block))
        else:
            self._agreed.end_block(block)

    def _end_setup(self, block: BlockReader) -> None:
        if self.phase is Phase.SETUP:
            self._negotiation.receive_setup(block)
        else:
            self._crossing = block
            self._answer_crossing()

    def _answer_crossing(self) -> None:
        """Answer the peer's setup, but behind a listing of ours that is on its way."""
        if self._crossing is not None and (self.phase is Phase.IDLE or self._core.sent):
            block, self._crossing = self._crossing, None
            self._answer_epoch(block)

    def _receive_resource(self, resource: given.ResourceReceived) -> None:
        """P22: only where a block or batch item may begin; `E.` bytes are accepted and not needed."""
        if self._block is not None:
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, "a resource inside a block", "050-FACT-10")
        if resource.kind == LACEGRAM:
            self._modules.receive(resource.id, resource.text, resource.read)

    # --- epochs ------------------------------------------------------------------------------------------------

    def _begin_epoch(self, agreement: Agreement) -> None:
        """The evaluator starts over; the peer's state is kept only under the same plan (050-OPEN-13)."""
        core = self._core
        epoch = Epoch(core, agreement, before=self._epoch)
        self._rounds = Rounds(core, self._ending, epoch)
        core.requests.reset()
        core.refusals.begin(agreement.negotiated.refusals)
        core.ledger.begin_round()
        self._ending.fixed_point = False
        core.enter(Move.AGREED)
        core.report(EpochBegan(agreement.plan.id, epoch.number))
        epoch.prepare()

    def _change_rules(self, told: given.RulesChanged) -> None:
        """For the next epoch. Where the peer was sent all the texts that it takes (060-RES-39) the exchange ends at the
        next boundary instead: another connection begins with the new rules."""
        if self._modules.may_announce(told.rules.module, self._core.terms.stream_limits.max_resources):
            self._core.change_rules(told)
        else:
            self._core.close_requested = True

    def _start_epoch(self) -> None:
        """Our rules changed: our setup block stands where an adv could start (050-OPEN-06)."""
        self._renew()
        self._negotiation.send_setup()

    def _answer_epoch(self, block: BlockReader) -> None:
        """The peer's rules changed; our own adv, if it crossed, is forgotten (050-OPEN-11)."""
        self._renew()
        self._negotiation.receive_setup(block)
        self._negotiation.send_setup()

    def _renew(self) -> None:
        core = self._core
        if core.next_config is not None:
            core.config, core.next_config = core.next_config, None
            self._modules.own = core.terms.module
        core.enter(Move.OPERAND)
        self._agreed.leave()
        self._negotiation = Negotiation(self._core, self._modules, is_restart=True)

    # --- rest and end ------------------------------------------------------------------------------------------

    def _rest(self) -> None:
        if self._rounds is not None and self._block is None:
            self._rounds.rest()

    def _fire(self) -> None:
        if self._is_timed and self._core.now_ns >= self._core.deadline_ns:  # 050-LIM-08
            raise ProtocolAbort(AbortReason.PHASE_TIMEOUT, f"while {self.phase.value}", "050-ERR-12")
        if self._core.is_resting:
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
            self._core.question = None
            self._ending.finish(self._epoch, by_peer=self.phase is not Phase.IDLE)
