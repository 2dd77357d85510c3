"""Derived facts for a caller that asks for a few of them, such as an explanation.

Rule: what is given for a pattern is complete, and nothing is derived that no pattern asked for. Patterns that several
bindings need are best asked for together (`prepare`): each evaluation has its price, however little it derives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from lace.datalog.engine.answering import evaluate
from lace.datalog.engine.base import Base
from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.result import Result
from lace.datalog.engine.runs import Run
from lace.datalog.engine.verdicts import distinct_codes
from lace.datalog.language.syntax import ANONYMOUS, Atom, Constant, Predicate, Variable
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.meter import Meter
from lace.datalog.planning.demand import Copy
from lace.datalog.source import Row
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.notation.stopping import Interrupt, never
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

Pattern = tuple[str | None, ...]


class FactsOnDemand:
    """The derived facts of a program over base facts, derived when they are asked for."""

    def __init__(
        self,
        checked: CheckedProgram,
        base: Base,
        limits: EngineLimits,
        interrupt: Interrupt = never,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        self._thresholds = thresholds
        self._interrupt = interrupt
        self._checked = checked
        self._base = base
        self._limits = limits
        self._results: list[Result] = []  # the latest last
        self.latest: Result | None = None  # the last evaluation that was needed
        self.rows_touched: int = 0  # by all of them
        self._last_goal: tuple[Atom, Row | None] | None = None
        self._evaluations: Counter[Predicate] = Counter()

    @property
    def kept_results(self) -> int:
        """How many evaluations are kept."""
        return len(self._results)

    def forget_oldest(self) -> None:
        """Between questions: keep what the last ones needed."""
        del self._results[: -self._thresholds.kept_results]

    def first(self, goal: Atom) -> Row | None:
        """The fact that matches a goal and comes first in text order."""
        if self._last_goal is None or self._last_goal[0] != goal:
            self._last_goal = goal, self._first(goal)
        return self._last_goal[1]

    def _first(self, goal: Atom) -> Row | None:
        pattern = tuple(term.value if isinstance(term, Constant) else None for term in goal.terms)
        run = self._covering(goal.predicate, pattern)
        if run is None:  # what it stands on is derived when somebody asks why
            result = self._evaluated([goal], self._limits, only_answers=True)
            assert result.demanded is not None
            run = result.run_of(result.demanded.answers[goal.predicate])
        constants = [(n, self._base.dictionary.find(value)) for n, value in enumerate(pattern) if value is not None]
        names = [term.name if isinstance(term, Variable) else None for term in goal.terms]
        equal = [(names.index(name), n) for n, name in enumerate(names) if name and names.index(name) != n]
        return first_row(run.select((tuple(constants), tuple(equal))), goal.predicate.arity, self._base.dictionary)

    def rows(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """Every fact of a predicate that has the given values, in text order; None is free."""
        self.prepare(predicate, [pattern])
        run = self._covering(predicate, pattern)
        assert run is not None
        return iter(found_rows(run, pattern, self._base.dictionary))

    def found(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """Those of the facts that were derived so far: with each of them all that one derivation of it stands on."""
        runs = [run for result in reversed(self._results) for _, run in self._copies(result, predicate)]
        if len(runs) == 1:
            return iter(found_rows(runs[0], pattern, self._base.dictionary))
        return iter(sorted({row for run in runs for row in found_rows(run, pattern, self._base.dictionary)}))

    def glance(self, predicate: Predicate, pattern: Pattern) -> Row | None:
        """A fact that has the given values if one is easily found."""
        if self._covering(predicate, pattern) is None:
            rows = self._thresholds.glance_rows
            few = replace(
                self._limits,
                max_derived_facts_per_predicate=min(rows, self._limits.max_derived_facts_per_predicate),
                max_working_rows=min(rows, self._limits.max_working_rows),
            )
            try:
                self._evaluate(predicate, [pattern], few)
            except LimitExceeded:
                return None
        return next(self.rows(predicate, pattern), None)

    def prepare(self, predicate: Predicate, patterns: Iterable[Pattern]) -> None:
        """Derive what all of these patterns need together."""
        missing = [pattern for pattern in dict.fromkeys(patterns) if self._covering(predicate, pattern) is None]
        if missing:
            self._evaluations[predicate] += 1
            if self._evaluations[predicate] > self._thresholds.patterns_apart:
                missing = [(None,) * predicate.arity]
            self._evaluate(predicate, missing, self._limits)

    def _evaluate(self, predicate: Predicate, patterns: list[Pattern], limits: EngineLimits) -> None:
        goals = [
            Atom(predicate, tuple(ANONYMOUS if value is None else Constant(value) for value in pattern))
            for pattern in patterns
        ]
        self._evaluated(goals, limits, only_answers=False)

    def _evaluated(self, goals: list[Atom], limits: EngineLimits, *, only_answers: bool) -> Result:
        meter = Meter(limits, interrupt=self._interrupt)
        result = evaluate(self._checked, self._base, goals=goals, limits=limits, only_answers=only_answers, meter=meter)
        self.latest = result
        self.rows_touched += result.stats.rows_touched
        self._results.append(result)
        return result

    def _covering(self, predicate: Predicate, pattern: Pattern) -> Run | None:
        """The derived facts among which all facts of a pattern are."""
        codes = [-1 if value is None else self._base.dictionary.find(value) for value in pattern]
        for result in reversed(self._results):
            for copy, run in self._copies(result, predicate):
                if copy.asked is None:
                    return run
                key = [codes[place] for place in copy.places]
                if min(key) >= 0:
                    asked = result.run_of(copy.asked)
                    if asked.rows and len(asked.index(tuple(range(len(key)))).find(key)):
                        return run
        return None

    def _copies(self, result: Result, predicate: Predicate) -> Iterator[tuple[Copy, Run]]:
        """What an evaluation has of a predicate; what it only ranked it does not have."""
        assert result.demanded is not None
        if predicate not in result.ranked:
            for copy in result.demanded.copies.get(predicate, ()):
                yield copy, result.run_of(copy.predicate)


class BaseFacts:
    """The base facts of a program as texts, found by their values in the columns that an evaluation reads too."""

    def __init__(self, base: Base) -> None:
        self._base = base

    def predicates(self) -> Iterable[Predicate]:
        return dict.fromkeys(predicate for part in self._base.parts for predicate in part.predicates())

    def iterate(self, predicate: Predicate) -> Iterator[Row]:
        return self.query(predicate)

    def query(self, predicate: Predicate, *values: str | None) -> Iterator[Row]:
        pattern = (*values, *(None for _ in range(predicate.arity - len(values))))
        dictionary = self._base.dictionary
        return iter(sorted(row for run in self._base.runs(predicate) for row in found_rows(run, pattern, dictionary)))

    def count(self, predicate: Predicate) -> int:
        return sum(run.rows for run in self._base.runs(predicate))


def found_rows(run: Run, pattern: Pattern, dictionary: Dictionary) -> list[Row]:
    """The rows of a run that have the given values, as texts in their order."""
    places = tuple(n for n, value in enumerate(pattern) if value is not None)
    key = [dictionary.find(pattern[place] or "") for place in places]
    if not run.rows or min(key, default=0) < 0:
        return []
    if not pattern:
        return [()]
    if places:  # the slice that a value names, where a store keeps one
        run = run.part_for([dictionary.find(value) if value is not None else -1 for value in pattern])
    asked = [np.array([code], np.uint32) for code in key]
    found: Sequence[int] = run.sought(places, asked).find(key) if places else range(run.rows)
    if not len(found):
        return []
    numbers = np.asarray(found, np.int64)
    columns = [
        [value] * len(numbers) if value is not None else dictionary.texts(run.column(n)[numbers])
        for n, value in enumerate(pattern)
    ]
    return sorted(zip(*columns, strict=True))


def first_row(run: Run, arity: int, dictionary: Dictionary) -> Row | None:
    """The first row of a run in text order, found column by column: most texts are never read."""
    if not run.rows:
        return None
    numbers = np.arange(run.rows)
    row: list[str] = []
    for place in range(arity):
        column = run.column(place)[numbers]
        codes = distinct_codes(column, dictionary.size)
        texts = dictionary.texts(codes)
        least = min(range(len(texts)), key=texts.__getitem__)
        numbers = numbers[column == codes[least]]
        row.append(texts[least])
    return tuple(row)
