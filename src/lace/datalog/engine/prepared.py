"""A program that is compiled once and asked about a few facts at a time (030).

Rule: an answer is that of an evaluation over the facts of its question and the fixed facts alone; nothing of a question
is left for the next one but texts, and after a number of those everything starts over.

A faster way beside `evaluate`, which plans its rules for each question: a question about one record takes between a
fifth and a quarter of the processor time (decision 385, docs/ways.md), and a node asks one or two for each record that
it forwards. `PreparedProgram.ask` chooses between the two, and tests/engine/test_prepared.py compares them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from lace.datalog.engine.answering import evaluate
from lace.datalog.engine.base import RowSource
from lace.datalog.engine.maintain import Materialized, materialize
from lace.datalog.language.syntax import Atom, Fact, Predicate, Variable
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.meter import CurrentInterrupt, Meter
from lace.datalog.source import FactSource, all_facts
from lace.limits import EngineLimits
from lace.notation.stopping import Interrupt, never
from lace.thresholds import PreparedThresholds
from lace.values import dataclass


class Answered(NamedTuple):
    """The values of a goal, and how many rows were touched to find them."""

    values: list[str]
    rows: int


@dataclass(slots=True)
class _Compiled:
    derived: Materialized
    watch: CurrentInterrupt
    fixed: frozenset[Fact]
    without: dict[Predicate, dict[str, None]]  # the values of each goal where a question brings no facts
    texts: int = 0  # that questions brought since


class PreparedProgram:
    """A program with goals of one place; any thread may ask, and none waits for another."""

    def __init__(
        self,
        checked: CheckedProgram,
        goals: Collection[Predicate],
        limits: EngineLimits,
        *,
        guests: Collection[Predicate] = (),
        thresholds: PreparedThresholds | None = None,
    ) -> None:
        self._checked = checked
        self._goals = goals
        self._limits = limits
        self._guests = guests  # whose rules count as a peer's (see `Meter`)
        self._thresholds = thresholds or PreparedThresholds()
        self._compiled: _Compiled | None = None
        self._place: list[None] = [None]  # for one question at what is compiled; one that finds none is evaluated

    def ask(
        self,
        goal: Predicate,
        sources: Sequence[FactSource],
        fixed: Collection[Fact] = (),
        interrupt: Interrupt = never,
    ) -> Answered:
        """The values of a goal, over the facts of some sources and the fixed ones.

        Questions with other fixed facts than the last one start over; `interrupt` is asked now and then whether to
        give up.
        """
        is_small = _facts_at_most(sources) <= self._thresholds.max_facts
        if is_small and self._take_place():
            try:
                return self._suppose(goal, list(all_facts(*sources)), frozenset(fixed), interrupt)
            except BaseException:
                self._forget()  # what a question left half done must not be what the next one finds
                raise
            finally:
                self._place.append(None)
        meter = Meter(self._limits, interrupt=interrupt, guests=self._guests)
        asked = Atom(goal, (Variable("P"),))
        found = evaluate(self._checked, sources, extra=fixed, goals=[asked], limits=self._limits, meter=meter)
        return Answered(found.text_columns(goal)[0], meter.rows)

    def get_ready(self, fixed: Iterable[Fact] = ()) -> None:
        """Compile the rules now, unless a question is at work."""
        if self._take_place():
            try:
                self._compile(frozenset(fixed), never)
            finally:
                self._place.append(None)

    def close(self) -> None:
        """Let go of what was compiled; nobody asks any more."""
        self._forget()

    def _take_place(self) -> bool:
        """Whether nobody else is at what is compiled, and nobody will be until the place is given back."""
        try:
            self._place.pop()  # which no two threads can do at once
        except IndexError:
            return False
        return True

    def _suppose(self, goal: Predicate, facts: list[Fact], fixed: frozenset[Fact], interrupt: Interrupt) -> Answered:
        compiled = self._compile(fixed, interrupt)
        compiled.texts += sum(len(fact.values) for fact in facts)
        changes = compiled.derived.suppose(facts)
        went = {value for (value,) in changes.removed.get(goal, ())}
        came = [value for (value,) in changes.added.get(goal, ())]
        values = [value for value in compiled.without[goal] if value not in went] + came
        return Answered(values, compiled.derived.meter.rows)

    def _compile(self, fixed: frozenset[Fact], interrupt: Interrupt) -> _Compiled:
        held = self._compiled
        if held is None or held.fixed != fixed or held.texts > self._thresholds.max_texts:
            self._forget()
            watch = CurrentInterrupt(interrupt)
            meter = Meter(self._limits, interrupt=watch, guests=self._guests)
            derived = materialize(self._checked, [], self._limits, extra=fixed, meter=meter)
            without = {goal: dict.fromkeys(derived.values(goal)) for goal in self._goals}
            held = self._compiled = _Compiled(derived, watch, fixed, without)
        held.watch.interrupt = interrupt
        return held

    def _forget(self) -> None:
        held, self._compiled = self._compiled, None
        if held is not None:
            held.derived.close()


def _facts_at_most(sources: Sequence[FactSource]) -> int:
    """How many facts there are; where some repeat it may be more, and to count those of many takes long."""
    return sum(
        source.at_most(predicate) if isinstance(source, RowSource) else source.count(predicate)
        for source in sources
        for predicate in source.predicates()
    )
