"""The answers of rules over a lace: every error, or the facts of every head, ready to be paged and explained.

Rule: one evaluation answers a whole page and the pages after it; it is kept while neither rules nor lace change, and
texts are looked up only for the rows that are shown.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import field
from threading import Lock

from lace.datalog.engine import Base, Result, evaluate
from lace.datalog.explain.explanation import Explanation
from lace.datalog.goals import column_names
from lace.datalog.language.annotations import read_annotated_all
from lace.datalog.language.parser import parse_atom
from lace.datalog.language.syntax import Atom, Constant, Predicate, Variable
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, check_all, check_program
from lace.datalog.source import Row
from lace.errors import InvalidLacegram, LaceError, LimitExceeded
from lace.inspector.inspected import OpenedLace
from lace.limits import EngineLimits, ExplainLimits
from lace.policy.lint import doubts
from lace.porcelain.explain import Explainer
from lace.porcelain.query import base_of
from lace.store.base import StoreCursor
from lace.values import dataclass

# Rules are evaluated while somebody types, so a slip must not exhaust the machine: half-written rules often lack joins.
TYPING_LIMITS = EngineLimits(
    max_derived_facts_per_predicate=1 << 22, max_working_rows=1 << 24, max_stratum_iterations=100_000
)
EXPLAIN_LIMITS = ExplainLimits(max_facts=100_000, max_bindings=2_000)


@dataclass(slots=True)
class Asked:
    """A program with its facts, or why it has none."""

    errors: list[InvalidLacegram]
    limit: str = ""
    doubts: Sequence[InvalidLacegram] = ()
    checked: CheckedProgram | None = None
    result: Result | None = None
    base: Base | None = None
    explainer: Explainer | None = None
    work: Lock = field(default_factory=Lock)

    @property
    def heads(self) -> list[Predicate]:
        """The derived predicates in the order in which the text defines them."""
        rules = self.checked.program.rules if self.checked else ()
        return list(dict.fromkeys(rule.head.predicate for rule in rules))

    def head(self, wanted: str) -> Predicate | None:
        """The head that was asked for; else the last one that no other rule reads, since people write at the end."""
        for predicate in self.heads:
            if str(predicate) == wanted:
                return predicate
        return self.heads[-1] if self.heads else None

    def names(self, predicate: Predicate) -> tuple[str, ...]:
        """The column names that the first rule of a head uses."""
        rules = self.checked.program.rules if self.checked else ()
        return column_names(next(rule.head for rule in rules if rule.head.predicate == predicate))

    def count(self, predicate: Predicate) -> int:
        """How many facts a head has."""
        return self.result.count(predicate) if self.result else 0

    def rows(self, predicate: Predicate, start: int, limit: int) -> list[Row]:
        """Some facts of a head, in the engine's own order."""
        if self.result is None or self.base is None:
            return []
        if not predicate.arity:
            return [()] * self.count(predicate)
        columns = [column[start : start + limit] for column in self.result.columns(predicate)]
        return list(zip(*(self.base.dictionary.texts(column) for column in columns), strict=True))

    def explain(self, goal: str) -> Explanation:
        """Why the first fact that matches a goal holds, or why none does."""
        if self.explainer is None:
            raise LaceError("the rules have errors")
        atom = parse_atom(goal, limits=TYPING_LIMITS)
        with self.work:
            return self.explainer.explain(self._first(atom) or atom)

    def _first(self, goal: Atom) -> Atom | None:
        """The first fact of a goal without constants: it is known here, and a bound goal is faster to prove."""
        is_open = all(isinstance(term, Variable) for term in goal.terms) and len(set(goal.terms)) == len(goal.terms)
        if goal.predicate not in self.heads or not goal.terms or not is_open:
            return None
        rows = self.rows(goal.predicate, 0, 1)
        return Atom(goal.predicate, tuple(Constant(value) for value in rows[0])) if rows else None


class Answers:
    """The last few programs that were evaluated, with their facts."""

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._lock = Lock()
        self._answers: OrderedDict[tuple[str, str, StoreCursor], Asked] = OrderedDict()

    def ask(self, opened: OpenedLace, rules: str) -> Asked:
        """A program over the current state of a lace."""
        key = (opened.slug, rules, opened.lace.store.cursor())
        with self._lock:
            found = self._answers.get(key)
            if found is not None:
                self._answers.move_to_end(key)
                return found
        found = ask(opened, rules)
        with self._lock:
            self._answers[key] = found
            while len(self._answers) > self._kept:
                self._answers.popitem(last=False)
        return found


def ask(opened: OpenedLace, rules: str, limits: EngineLimits = TYPING_LIMITS) -> Asked:
    """A program over a lace, evaluated if it has no errors."""
    try:
        source, errors = read_annotated_all(rules, name="", limits=limits)
        errors += check_all(source.program, LOCAL_PROFILE, limits)
        if errors:
            return Asked(sorted(errors, key=lambda error: (error.line, error.column)))
        if not source.program.rules:
            return Asked([])
        checked = check_program(source.program, LOCAL_PROFILE, limits)
        found = doubts(source.program, LOCAL_PROFILE)
        with opened.work:
            base = base_of(opened.lace)
            result = evaluate(checked, base, limits=limits)
            explainer = Explainer(opened.lace, rules, name="", limits=limits, explain_limits=EXPLAIN_LIMITS)
    except LimitExceeded as error:
        return Asked([], limit=str(error))
    return Asked([], "", found, checked, result, base, explainer, opened.work)
