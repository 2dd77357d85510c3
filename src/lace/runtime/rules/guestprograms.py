"""A program over facts that come along, for a host without a store that another process could open (P36).

Rule: as in `guests`: rules that a peer wrote are tried here with little fuel, and what needs more goes to a process
whose memory is limited and that can be killed. One `GuestEngine` answers all questions of one evaluation; what they
use is added up, so that two hundred small bombs are one bomb.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import IO, Protocol

from lace.datalog.engine import Meter, RowSource, evaluate
from lace.datalog.language.syntax import Atom, Fact, Predicate, Program, Variable
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.meter import plain_predicate
from lace.datalog.source import Row
from lace.errors import EvaluationStopped, LimitExceeded
from lace.interlace.host import Call
from lace.limits import EngineLimits
from lace.notation.stopping import Interrupt, never
from lace.runtime.rules.guesthouse import GuestHouse, GuestKilled, Name, confine
from lace.values import dataclass

FACTS_A_RECORD = 8  # about: what may be held is granted by record


@dataclass(frozen=True, slots=True)
class ProgramQuestion:
    """What a program derives of some facts."""

    program: CheckedProgram
    facts: RowSource
    wanted: tuple[Predicate, ...]
    extra: tuple[Fact, ...] = ()  # beside those
    is_goal: bool = False  # derive what is wanted and what that needs, and no more
    written: Program | None = None  # errors show rules as they stand here

    @property
    def size(self) -> int:
        """How many facts there are."""
        return sum(map(self.facts.at_most, self.facts.predicates()))


@dataclass(frozen=True, slots=True)
class ProgramAnswer:
    """The wanted facts by column, and what they cost."""

    counts: Mapping[Predicate, int]
    columns: Mapping[Predicate, list[list[str]]]
    rows_touched: int
    held_bytes: int

    def rows(self, predicate: Predicate) -> list[Row]:
        """The facts of a predicate."""
        columns = self.columns[predicate]
        return list(zip(*columns, strict=True)) if columns else [()] * self.counts[predicate]


class ProgramEngine(Protocol):
    """Answers questions."""

    def ask(self, question: ProgramQuestion, limits: EngineLimits) -> ProgramAnswer: ...


class OwnEngine:
    """For rules of our own: here, within the limits of the engine and no others."""

    def ask(self, question: ProgramQuestion, limits: EngineLimits) -> ProgramAnswer:
        """The answer."""
        return answered(question, Meter(limits))


def answered(question: ProgramQuestion, meter: Meter, most: int | None = None) -> ProgramAnswer:
    """What the embedded engine derives; no more facts than these."""
    checked, wanted = question.program, question.wanted
    meter.tell_as_in(question.written or checked.program)
    goals = [Atom(one, tuple(Variable(f"V{n}") for n in range(one.arity))) for one in wanted]
    found = evaluate(
        checked,
        [question.facts],
        extra=question.extra,
        goals=goals if question.is_goal else None,
        limits=meter.limits,
        meter=meter,
    )
    counts = {predicate: found.count(predicate) for predicate in wanted}
    if most is not None and sum(counts.values()) > most:
        largest = max(counts, key=counts.__getitem__)
        meter.rule = next((rule for rule in checked.program.rules if rule.head.predicate == largest), meter.rule)
        raise meter.exceeded("max_answer_rows", most, meter.shown(largest))
    columns = {predicate: found.text_columns(predicate) for predicate in wanted}
    return ProgramAnswer(counts, columns, meter.rows, meter.held_bytes)


class GuestEngine:
    """For rules that a peer wrote: one evaluation, which may ask any number of questions."""

    def __init__(self, house: GuestHouse, name: Name, account: Hashable, call: Call) -> None:
        house.refuse_again(name)
        self._house = house
        self._name = name
        self._account = account
        self._call = call
        self._moves = house.is_known_as_costly(name)
        self._fuel = house.limits.first_rows  # left, here
        self._rows = 0  # touched so far, wherever
        self._held = 0
        self._brought = 0  # facts that came back
        self._cpu_s = 0.0  # of processes

    def ask(self, question: ProgramQuestion, limits: EngineLimits) -> ProgramAnswer:
        """The answer, or which limit stands against it."""
        self._call.check()
        found = None if self._moves else self._here(question, limits)
        if found is None:
            found = self._elsewhere(question, limits)
        self._rows += found.rows_touched
        self._held += found.held_bytes
        self._brought += sum(found.counts.values())
        self._call.charge(rows=found.rows_touched)
        return found

    def _limits(self, limits: EngineLimits, question: ProgramQuestion, rows: int, *, is_first: bool) -> EngineLimits:
        most = self._house.limits.held_bytes(question.size // FACTS_A_RECORD, is_first=is_first)
        return replace(
            limits,
            max_peer_rows_touched=min(limits.max_peer_rows_touched, max(0, rows)),
            max_held_bytes=min(limits.max_held_bytes, max(0, most - self._held)),
        )

    def _here(self, question: ProgramQuestion, limits: EngineLimits) -> ProgramAnswer | None:
        """The answer if little fuel is enough for it."""
        meter = _meter(question, self._limits(limits, question, self._fuel, is_first=True), self._interrupt)
        try:
            with self._house.here(False, self._account, self._call):
                return answered(question, meter, self._most)
        except LimitExceeded:
            self._house.note_costly(self._name)
            self._moves = True
            return None
        except EvaluationStopped:
            self._call.check()
            raise
        finally:
            self._fuel -= meter.rows

    def _interrupt(self) -> bool:
        return self._call.is_cancelled

    @property
    def _most(self) -> int:
        return self._house.limits.max_answer_rows - self._brought

    def _elsewhere(self, question: ProgramQuestion, limits: EngineLimits) -> ProgramAnswer:
        """The answer of a process; of another one, once, if somebody else ended the first."""
        far = self._limits(limits, question, self._house.limits.max_rows - self._rows, is_first=False)
        job = AnswerQuestion(question, far, self._most, self._house.limits.process_bytes(far.max_held_bytes))
        try:
            return self._ask_far(job)
        except GuestKilled:
            self._call.check()
        try:
            return self._ask_far(job)
        except GuestKilled as error:
            raise EvaluationStopped(f"{error}, twice") from None

    def _ask_far(self, job: AnswerQuestion) -> ProgramAnswer:
        most, before = self._house.limits.max_cpu_s, self._call.cpu_s
        if self._cpu_s > most:
            self._house.note_stopped(self._name)
            raise LimitExceeded("max_cpu_s", int(most), "processor seconds of a peer's rules in processes of their own")
        try:
            # The process is nobody's afterwards: its memory was limited by what this question may hold.
            with self._house.turn(self._account, self._name, None, self._call, job.process_bytes) as room:
                return room.ask(job)
        finally:
            self._cpu_s += self._call.cpu_s - before


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    """A question for another process."""

    question: ProgramQuestion
    limits: EngineLimits
    most: int
    process_bytes: int

    def run(self, _: IO[bytes]) -> ProgramAnswer:
        """There."""
        confine(self.process_bytes)
        try:
            return answered(self.question, _meter(self.question, self.limits, never), self.most)
        except MemoryError:
            held = self.limits.max_held_bytes
            raise LimitExceeded("max_held_bytes", held, "memory of a process that evaluates a peer's rules") from None


def _meter(question: ProgramQuestion, limits: EngineLimits, interrupt: Interrupt) -> Meter:
    """All rules count as the peer's: where parts were put into one another, whose they are cannot be told any more."""
    heads = {plain_predicate(rule.head.predicate) for rule in question.program.program.rules}
    return Meter(limits, interrupt=interrupt, guests=heads)
