"""Evaluate a program, or only what goals ask of it (030-EVAL-04).

Rule: a goal never costs much more than the program without it. Demand is tried first. Where what is asked for spreads,
and that takes more work than a share of what reading the base facts takes, evaluation without demand runs beside it,
step by step, and whichever is done first answers. So a demand that spreads over everything adds a fifth to what it
should have saved, and one that pays is never given up for an evaluation that may have no end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lace.datalog.engine.base import Base, Facts, RowSource, admit, predicates_given
from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.engine.relation import Relation
from lace.datalog.engine.result import Result
from lace.datalog.language.syntax import Atom, Constant, Fact, Predicate
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.meter import Meter
from lace.datalog.planning.demand import Demanded, demand, only_what_goals_read
from lace.datalog.planning.existence import existence_counted
from lace.datalog.planning.stratify import read_atom
from lace.datalog.source import FactSource
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

_DEFAULT_LIMITS = EngineLimits()
_GROWTH = 1.2  # how much further each turn goes
_SHARED_LIMITS = ("max_rows_touched", "max_peer_rows_touched")  # spent for both ways, so that neither can go on
_STEP_WORK = 4_000  # rows that take as long as a step takes to begin: demand takes many small ones


def evaluate(
    checked: CheckedProgram,
    source: Base | Facts | Sequence[FactSource],
    *,
    extra: Iterable[Fact] = (),
    goals: Iterable[Atom] | None = None,
    limits: EngineLimits = _DEFAULT_LIMITS,
    meter: Meter | None = None,
    only_answers: bool = True,
    thresholds: EngineThresholds = ENGINE_THRESHOLDS,
) -> Result:
    """Every derived fact; with goals, the facts that match them and no more work than they need.

    Unless `only_answers` are wanted, whatever an answer stands on is derived too.
    A `meter` counts what the evaluation uses, and can be asked to stop it; its limits should be the same.
    """
    meter = meter or Meter(limits)
    base = source if isinstance(source, Base) else Base(source, limits)
    own = RowSource(extra)
    admit(checked, [*base.parts, own], limits)
    meter.tell_as_in(checked.program)
    given = predicates_given([*base.parts, own])
    written, checked = checked, existence_counted(checked, given)
    if goals is None:
        evaluation = Evaluation(checked, base, own, meter, thresholds=thresholds)
        evaluation.run()
        return Result(evaluation, base, derived=written.derived)
    meter.begin()
    asked = list(goals)
    sizes = BaseSizes(base, own)
    demanded = demand(checked, asked, sizes.rows, only_answers=only_answers, given=given)
    if not demanded.spreads:
        return _finished(_Attempt(demanded, base, own, meter, thresholds), base)
    return _race(checked, demanded, asked, base, own, meter, sizes, thresholds)


class BaseSizes:
    """How many base facts an atom reads."""

    def __init__(self, base: Base, own: RowSource) -> None:
        self._base = base
        self._own = own

    def rows(self, atom: Atom) -> int:
        """The facts that have the constants of an atom; an evaluation will look at the same selection."""
        find = self._base.dictionary.find
        constants = tuple((n, find(term.value)) for n, term in enumerate(atom.terms) if isinstance(term, Constant))
        found = sum(run.select((constants, ())).rows for run in self._base.runs(atom.predicate))
        return found + len(self._own.rows(atom.predicate))

    def read_by(self, checked: CheckedProgram) -> int:
        """The base facts that a program reads at least."""
        read = [found[0] for rule in checked.program.rules for found in map(read_atom, rule.body) if found]
        return sum(self.rows(atom) for atom in dict.fromkeys(read) if atom.predicate in checked.base)


class _Attempt:
    """One way to answer, under way."""

    def __init__(
        self,
        demanded: Demanded,
        base: Base,
        own: RowSource,
        meter: Meter,
        thresholds: EngineThresholds,
        ready: Mapping[Predicate, Relation] | None = None,
    ) -> None:
        self.demanded = demanded
        self._meter = meter
        given = RowSource(demanded.seeds)
        for predicate in own.predicates():
            given.add(predicate, own.rows(predicate))
        self.evaluation = Evaluation(demanded.checked, base, given, meter, ready, thresholds)
        self._steps: Iterator[None] = self.evaluation.steps()
        self.work = 0  # rows touched so far, and steps begun
        self.held_bytes = 0
        self.failed: LimitExceeded | None = None

    def advance(self, work: float) -> bool:
        """Go on until so much work is done in all; True if there is an answer."""
        if self.failed is not None:
            return False
        rows, held = self._meter.rows, self._meter.held_bytes
        done = self.work
        try:
            for _ in self._steps:
                done += _STEP_WORK
                self.work = done + self._meter.rows - rows
                if self.work > work:
                    return False
        except LimitExceeded as error:
            if error.limit in _SHARED_LIMITS:
                raise
            self.failed = error
            return False
        finally:
            self.held_bytes += self._meter.held_bytes - held
        return True

    def drop(self) -> None:
        """Another answers: what was derived here goes."""
        self._meter.held_bytes -= self.held_bytes


def _finished(attempt: _Attempt, base: Base) -> Result:
    attempt.advance(float("inf"))
    if attempt.failed is not None:
        raise attempt.failed
    return Result(attempt.evaluation, base, attempt.demanded)


def _race(
    checked: CheckedProgram,
    demanded: Demanded,
    goals: list[Atom],
    base: Base,
    own: RowSource,
    meter: Meter,
    sizes: BaseSizes,
    thresholds: EngineThresholds,
) -> Result:
    """Demand and evaluation without it in turns, so that neither does much after the other could have answered."""
    has_constants = any(isinstance(term, Constant) for goal in goals for term in goal.terms)
    share = thresholds.demand_share if has_constants else thresholds.open_demand_share
    head_start = thresholds.head_start_rows
    few = _Attempt(demanded, base, own, meter, thresholds)
    if few.advance(head_start):
        return _finished(few, base)
    plain = only_what_goals_read(checked, goals, predicates_given([*base.parts, own]))
    if few.advance(max(head_start, share * sizes.read_by(plain.checked))):
        return _finished(few, base)
    shared = derived_alike(few.evaluation, plain.checked, checked.derived)
    everything = _Attempt(plain, base, own, meter, thresholds, shared)
    first, other = _first_done(few, everything, share)
    if not shared:
        other.drop()
    return _finished(first, base)


def derived_alike(
    evaluation: Evaluation, checked: CheckedProgram, known: frozenset[Predicate]
) -> dict[Predicate, Relation]:
    """What an evaluation has completed of the predicates that another program derives by the same rules; only of those
    `known` to both, since what either made for itself means nothing in the other."""
    alike: dict[Predicate, Relation] = {}
    for stratum in checked.strata:
        rules = set(stratum.rules)
        own = {rule for rule in evaluation.checked.program.rules if rule.head.predicate in stratum.predicates}
        read = {found[0].predicate for rule in rules for found in map(read_atom, rule.body) if found}
        below = read.difference(stratum.predicates) & checked.derived
        if (
            known.issuperset(stratum.predicates)
            and own == rules
            and below <= alike.keys()
            and evaluation.completed.keys() >= set(stratum.predicates)
        ):
            alike.update({predicate: evaluation.completed[predicate] for predicate in stratum.predicates})
    return alike


def _first_done(few: _Attempt, everything: _Attempt, share: float) -> tuple[_Attempt, _Attempt]:
    while everything.failed is None:
        if everything.advance(few.work / share):
            return everything, few
        if few.advance(_GROWTH * share * everything.work):
            return few, everything
        if few.failed is not None:
            return everything, few
    return few, everything
