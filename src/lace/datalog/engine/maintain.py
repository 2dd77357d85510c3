"""Facts come and go, derived facts follow (030, incremental evaluation).

Rule: after every change each derived relation equals full evaluation of the new snapshot (030-INCR-02).

A stratum is changed in two steps. First whatever may have lost a derivation is found by reading rules backwards from
what went (or, through `not` and `Cardinality`, from what came); each such fact is proven again or goes. Then rules run
forwards from what came. Proving again needs no derivation counts; `lace.datalog.engine.follow` says how recursion is
kept honest, and when a stratum is computed as at the start instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lace.datalog.admission import admit_source, check_fact
from lace.datalog.engine.base import Base, Facts, RowSource, admit, predicates_given
from lace.datalog.engine.changes import LateRows, RelationChanges, as_rows, count_rows
from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.engine.follow import Follower, ranked_run
from lace.datalog.engine.ranking_state import RankStates
from lace.datalog.engine.runs import CodeRow, Run
from lace.datalog.engine.scalar import ScalarCompiler
from lace.datalog.engine.table import Table
from lace.datalog.engine.triggers import StratumRules
from lace.datalog.engine.turned_rules import RuleRunner
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import CheckedProgram
from lace.datalog.limit_errors import limit_reached
from lace.datalog.meter import Meter
from lace.datalog.planning.existence import existence_counted
from lace.datalog.source import FactSource, MemorySource, Row
from lace.errors import EvaluationStopped, LimitExceeded
from lace.limits import EngineLimits
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

_DEFAULT_LIMITS = EngineLimits()
_LINES_AT_A_TIME = 1 << 16


def materialize(
    checked: CheckedProgram,
    source: Base | Facts | Sequence[FactSource],
    limits: EngineLimits = _DEFAULT_LIMITS,
    *,
    extra: RowSource | Iterable[Fact] = (),
    ready: bool = True,
    meter: Meter | None = None,
    thresholds: EngineThresholds = ENGINE_THRESHOLDS,
) -> Materialized:
    """Evaluate once, then follow changes; if not made `ready` for the first at once, it takes longer.

    A `meter` counts what the evaluation and then each change uses, and can be asked to stop either.
    """
    base = source if isinstance(source, Base) else Base(source, limits)
    made = Materialized(checked, base, extra, meter or Meter(limits), thresholds)
    if ready:
        made.get_ready()
    return made


class Materialized:
    """The derived facts of a program over facts that change."""

    def __init__(
        self,
        checked: CheckedProgram,
        base: Base,
        extra: RowSource | Iterable[Fact],
        meter: Meter,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        meter.tell_as_in(checked.program)  # before it is rewritten: a limit names rules as their author wrote them
        self._limits = limits = meter.limits
        own = extra if isinstance(extra, RowSource) else RowSource(extra)
        admit(checked, [*base.parts, own], limits)
        self._checked = checked = existence_counted(checked, predicates_given([*base.parts, own]))
        self.meter = meter
        self._thresholds = thresholds
        self._evaluation = Evaluation(checked, base, own, meter, thresholds=thresholds)
        self._evaluation.run()
        self._dictionary = base.dictionary
        self._tables: dict[Predicate, Table] = {}
        self._ranks = RankStates(self.table, base.dictionary)
        self._ranked = {predicate for predicate, _ in self._evaluation.ranks}
        self._recursive = {p for stratum in checked.strata if stratum.recursive for p in stratum.predicates}
        self._strata: list[StratumRules] | None = None
        self._compiler = ScalarCompiler(self._read, base.dictionary, base.verdicts, self._ranks.count, meter)
        self._runner = RuleRunner(self.table, self._evaluation, base.verdicts, self._compiler, meter, thresholds)
        self._follower = Follower(self._evaluation, self._runner, self._ranks, meter, thresholds)
        self._deltas: dict[Predicate, tuple[list[CodeRow], list[CodeRow]]] = {}

    def table(self, predicate: Predicate) -> Table:
        """The facts of a predicate as they change."""
        found = self._tables.get(predicate)
        if found is None:
            relation, ranked = self._evaluation.relation(predicate), predicate in self._recursive
            run = ranked_run(relation) if ranked else relation.whole()
            found = self._tables[predicate] = Table(predicate, run, ranked=ranked, thresholds=self._thresholds)
        return found

    def _read(self, predicate: Predicate) -> Table:
        return self._runner.table(predicate)

    @property
    def ranked(self) -> frozenset[Predicate]:
        """Predicates that are only counted by rank: readable, but not kept and not among the changes (P31)."""
        return frozenset(self._ranked)

    def close(self) -> None:
        """Let go of all facts. Nothing of this is usable afterwards, and nothing waits for the garbage collector: a
        table and its lookups know each other, and so do compiled rules and what runs them."""
        for table in self._tables.values():
            table.close()
        self._runner.close()
        del self._tables, self._strata, self._ranks, self._compiler, self._runner, self._follower, self._evaluation

    # reading

    def count(self, predicate: Predicate) -> int:
        """How many facts a predicate has."""
        return self._current(predicate).rows

    def rows(self, predicate: Predicate, *, ordered: bool = True) -> list[Row]:
        """The facts of a predicate, in text order unless that does not matter."""
        rows = _text_rows(self._current(predicate).current(), predicate, self._dictionary)
        return sorted(rows) if ordered else rows

    def frozen(self, predicate: Predicate) -> Callable[[], list[Row]]:
        """The facts of a predicate as they are now, whenever they are read; nothing is copied that stays."""
        run, dictionary = self._current(predicate).current(), self._dictionary
        return lambda: _text_rows(run, predicate, dictionary)

    def values(self, predicate: Predicate) -> list[str]:
        """The values of a predicate of one place, in no order."""
        (column,) = (self._current(predicate).current().column(n) for n in range(predicate.arity))
        return self._dictionary.texts(column)

    def value_lines(self, predicate: Predicate, at_a_time: int = _LINES_AT_A_TIME) -> Iterator[bytes]:
        """The same as UTF-8, each value ended by a line break, some at a time: a million ids are never a million
        strings. For values that hold no line break, as record ids."""
        (column,) = (self._current(predicate).current().column(n) for n in range(predicate.arity))
        for start in range(0, len(column), at_a_time):
            yield self._dictionary.lines(column[start : start + at_a_time])

    def contains(self, fact: Fact) -> bool:
        """Whether a fact holds."""
        codes = tuple(self._dictionary.find(value) for value in fact.values)
        return min(codes, default=0) >= 0 and self._current(fact.predicate).has(codes)

    def _current(self, predicate: Predicate) -> Table:
        """The facts of a predicate; those that are only ranked are worked out for this one answer."""
        if predicate not in self._ranked:
            return self.table(predicate)
        stratum = next(s for s in self._checked.strata if predicate in s.predicates)
        relation = self._follower.recomputed(stratum, self._tables)[predicate]
        return Table(predicate, relation.whole())

    # changing

    def get_ready(self) -> list[StratumRules]:
        """Compile what follows changes, and make the indexes that it needs."""
        if self._strata is None:
            self._strata = [
                StratumRules(
                    stratum, self._evaluation, self._runner, self._compiler, self._thresholds.meeting_growth_followed
                )
                for stratum in self._checked.strata
                if not self._ranked.issuperset(stratum.predicates)
            ]
        return self._strata

    def apply(self, added: Iterable[Fact] = (), removed: Iterable[Fact] = ()) -> RelationChanges:
        """Make the snapshot (old without `removed`) with `added`, and all derived facts follow."""
        changes = self._follow(added, removed)
        self._ranks.settle(self._delta)
        for table in self._tables.values():
            if table.is_changed:
                table.commit()
        self._deltas = {}
        return changes

    def suppose(self, added: Iterable[Fact]) -> RelationChanges:
        """What more facts would change; they do not stay, so that nothing has to be taken out again."""
        changes = self._follow(added, ())
        self._roll_back()
        return changes

    def _follow(self, added: Iterable[Fact], removed: Iterable[Fact]) -> RelationChanges:
        strata = self.get_ready()
        self.meter.begin()
        came, went = self._admit(added), self._admit(removed)  # a fact that is refused has changed nothing yet
        try:
            self._change_base(came, went)
            for rules in strata:
                self._follower.follow(rules, self._tables, self._delta, self._size)
            self.meter.settle()
        except (LimitExceeded, EvaluationStopped):
            self._roll_back()
            raise
        return self._changes()

    def _roll_back(self) -> None:
        self._ranks.forget()
        for table in self._tables.values():
            table.roll_back()
        self._deltas = {}

    def unproven(self, rules: StratumRules, predicate: Predicate, ranks: Mapping[CodeRow, int]) -> list[CodeRow]:
        """The facts that nothing of a lower rank than given derives; there is none among those that stand."""
        return self._follower.unproven(rules, predicate, dict(ranks))

    def _admit(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts that the program reads, checked."""
        given = list(facts)
        admit_source(self._checked, MemorySource(given), self._limits)
        for fact in given:
            check_fact(fact, self._limits)
        return [fact for fact in given if fact.predicate in self._checked.base]

    def _change_base(self, came: list[Fact], went: list[Fact]) -> None:
        # What goes is taken out first, so that a fact in both lists stays. It is only looked up: a text that has no
        # code is in no fact, and asking for its removal must not give it one.
        for (predicate, _), codes in zip(went, self._dictionary.found([fact.values for fact in went]), strict=True):
            if min(codes, default=0) >= 0:
                self.table(predicate).remove(codes)
        for (predicate, _), codes in zip(came, self._dictionary.codes([fact.values for fact in came]), strict=True):
            self.table(predicate).add(codes)
        self._dictionary.settle()
        runtime = self._checked.profile.runtime
        for limit, allowed, part in (
            ("max_runtime_facts", self._limits.max_runtime_facts, self._checked.base & runtime),
            ("max_base_facts", self._limits.max_base_facts, self._checked.base - runtime),
        ):
            if came and sum(self.table(predicate).rows for predicate in part) > allowed:
                raise limit_reached(limit, allowed, "facts of the predicates that the program reads")

    def _delta(self, predicate: Predicate) -> tuple[list[CodeRow], list[CodeRow]]:
        table = self._tables.get(predicate)
        if table is None or not table.is_changed:
            return [], []
        if predicate not in self._deltas:  # asked for when it is final: everything below is done
            came, went = table.changes()
            self._deltas[predicate] = as_rows(came, predicate.arity), as_rows(went, predicate.arity)
        return self._deltas[predicate]

    def _size(self, predicate: Predicate) -> int:
        table = self._tables.get(predicate)
        return sum(map(count_rows, table.changes())) if table is not None and table.is_changed else 0

    def _changes(self) -> RelationChanges:
        derived = [p for p in self._checked.derived if p in self._tables and self._tables[p].is_changed]
        found = {predicate: self._tables[predicate].changes() for predicate in derived}
        added, removed = ({p: pair[side] for p, pair in found.items()} for side in (0, 1))
        return RelationChanges(LateRows(added, self._dictionary), LateRows(removed, self._dictionary))


def _text_rows(run: Run, predicate: Predicate, dictionary: Dictionary) -> list[Row]:
    columns = [dictionary.texts(run.column(n)) for n in range(predicate.arity)]
    return list(zip(*columns, strict=True)) if columns else [()] * run.rows
