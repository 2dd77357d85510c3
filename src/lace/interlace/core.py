"""What all parts of a machine share: who we are, the phase, the clock argument, what goes out, what was moved (050).

Rule: nothing here decides what a phase means. The parts (`negotiation`, `loop`, `transfer`) hold the core and the core
holds none of them, so a part that is over is simply dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lace.errors import LocalProtocolError, excerpt
from lace.interlace.effects import Effect, EndBlock, HostEffect, Report, SendFacts
from lace.interlace.events import Event, RefusedByPeer
from lace.interlace.inputs import RulesChanged
from lace.interlace.ledger import Ledger
from lace.interlace.loop.refusals import RefusalBook
from lace.interlace.loop.requests import RequestBook
from lace.interlace.phases import QUESTIONS, Move, Phase, Question, move
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.terms import MachineConfig, Terms
from lace.notation.fact import Fact


class Core:
    """The shared ground of one machine."""

    def __init__(self, config: MachineConfig) -> None:
        self.config = config
        self.phase: Phase = Phase.NEW
        self.now_ns = 0
        self.deadline_ns: int = 0
        self.sent: bool = False  # our part of the current phase
        self.received: bool = False  # the peer's part of it
        self.question: Question | None = None  # what the exchange stands still for
        self.close_requested = False
        self.next_config: MachineConfig | None = None  # with our rules of the next epoch
        self.local_changed = False  # something that an evaluation reads changed since the last one for a listing
        self.storing: set[str] = set()  # received and not yet answered
        self.requests: RequestBook = RequestBook()
        self.refusals: RefusalBook = RefusalBook()
        self.ledger: Ledger = Ledger(max_hashes=config.terms.max_result_hashes)
        self._out: list[Effect] = []

    @property
    def terms(self) -> Terms:
        """What our side brings to this epoch."""
        return self.config.terms

    def change_rules(self, told: RulesChanged) -> None:
        """From the next epoch on; there is none if these are the rules of this one."""
        config = self.config
        holds_nothing = config.holds_nothing if told.holds_nothing is None else told.holds_nothing
        takes = config.takes if told.takes is None else told.takes
        changed = replace(config, terms=config.terms.under(told.rules), holds_nothing=holds_nothing, takes=takes)
        self.next_config = None if told.rules.are(config.terms.rules) else changed

    def enter(self, why: Move) -> None:
        """Leave the phase for the next."""
        self.phase = move(self.phase, why)
        self.sent = self.received = False
        self.be_patient()

    def be_patient(self) -> None:
        """From now on the peer has the whole time of a phase."""
        self.deadline_ns = self.now_ns + self.terms.limits.phase_timeout_ns

    @property
    def is_resting(self) -> bool:
        """Whether both sides are at a fixed point and nothing was asked of ours."""
        return self.phase is Phase.IDLE and self.question is None

    @property
    def is_phase_done(self) -> bool:
        """Whether our part is sent and the peer's is read (050-DRV-04)."""
        return self.sent and self.received

    # --- what the peer did not keep ------------------------------------------------------------------------------

    def accept_refusals(self, reasons: Mapping[str, str]) -> None:
        """Each is about a record that was sent and not refused before; others abort (071-FACT-03), as P21 has it."""
        for record in reasons:
            if not self.ledger.has_sent(record):
                raise ProtocolAbort(
                    AbortReason.MALFORMED_FACT_BLOCK,
                    f"Refused for {excerpt(record)}, which was not sent",
                    "071-FACT-03",
                )
        if reasons:
            self.ledger.refuse(reasons)
            self.report(RefusedByPeer(reasons))

    # --- what goes out -----------------------------------------------------------------------------------------

    def emit(self, *effects: Effect) -> None:
        """Have something done."""
        self._out += effects

    def report(self, event: Event) -> None:
        """Tell the application."""
        self._out.append(Report(event))

    def send_block(self, *runs: Sequence[Fact]) -> None:
        """Facts and the end of the block that they complete."""
        self._out += [SendFacts(facts) for facts in runs if facts]
        self._out.append(EndBlock())

    def take(self) -> list[Effect]:
        """What was asked for since this was last called."""
        effects, self._out = self._out, []
        return effects

    # --- questions to our own side -----------------------------------------------------------------------------

    def ask(self, question: Question, effect: HostEffect) -> None:
        """Have the host answer before the exchange goes on."""
        if self.question is not None or QUESTIONS[question] is not self.phase:
            raise LocalProtocolError(f"asked to {question.value} while {self.phase.value}")
        self.question = question
        self._out.append(effect)

    def answered(self) -> Question:
        """What the answer at hand answers."""
        question, self.question = self.question, None
        if question is None:
            raise LocalProtocolError("an answer to no question")
        self.be_patient()
        return question
