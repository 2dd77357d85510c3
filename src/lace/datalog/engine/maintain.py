"""Facts come and go, derived facts follow (030, incremental evaluation).

Rule: after every change each derived relation equals full evaluation of the new snapshot (030-INCR-02).

A stratum is changed in two steps. First whatever may have lost a derivation is found by reading rules backwards from
what went (or, through `not` and `Cardinality`, from what came); each such fact is proven anew or goes. Then rules run
forwards from what came. Recursive strata take out everything doubtful before proving, so that facts cannot support
each other in a circle (030-INCR-04). Proving anew needs no derivation counts, so nothing has to be kept per fact.
Large changes are not worth stepping through: the stratum is computed as at the start and compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from lace.datalog.admission import admit_source, check_fact
from lace.datalog.beyond import existence_counted
from lace.datalog.engine.base import Base, Facts, RowSource, admit
from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.engine.ranking_state import RankStates
from lace.datalog.engine.relation import Relation
from lace.datalog.engine.scalar import ScalarCompiler
from lace.datalog.engine.table import CodeRow, Table
from lace.datalog.engine.triggers import StratumRules, Trigger
from lace.datalog.meter import Meter
from lace.datalog.source import FactSource, MemorySource, Row
from lace.datalog.stratify import Stratum
from lace.datalog.syntax import Fact, Predicate
from lace.datalog.validate import CheckedProgram
from lace.errors import EvaluationStopped, LimitExceeded
from lace.limits import EngineLimits

_DEFAULT_LIMITS = EngineLimits()
_STEP_ROWS = 4_096  # more changed rows than this are worked through as columns
_FEW_ROWS = 16  # more rows than this are turned into texts as columns
_CODES = Mapping[Predicate, list[CodeRow]]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a change did to derived facts."""

    added: Mapping[Predicate, tuple[Row, ...]] = field(default_factory=dict)
    removed: Mapping[Predicate, tuple[Row, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed)


def materialize(
    checked: CheckedProgram,
    source: Base | Facts | Sequence[FactSource],
    limits: EngineLimits = _DEFAULT_LIMITS,
    *,
    extra: RowSource | Iterable[Fact] = (),
    ready: bool = True,
    meter: Meter | None = None,
) -> Materialized:
    """Evaluate once, then follow changes; if not made `ready` for the first at once, it takes longer.

    A `meter` counts what the evaluation and then each change uses, and can be asked to stop either.
    """
    base = source if isinstance(source, Base) else Base(source, limits)
    made = Materialized(checked, base, extra, meter or Meter(limits))
    if ready:
        made.get_ready()
    return made


class Materialized:
    """The derived facts of a program over facts that change."""

    def __init__(self, checked: CheckedProgram, base: Base, extra: RowSource | Iterable[Fact], meter: Meter) -> None:
        self._checked = checked = existence_counted(checked)
        self._limits = limits = meter.limits
        own = extra if isinstance(extra, RowSource) else RowSource(extra)
        admit(checked, [*base.parts, own], limits)
        self.meter = meter
        self._evaluation = Evaluation(checked, base, own, meter)
        self._evaluation.run()
        self._dictionary = base.dictionary
        self._tables: dict[Predicate, Table] = {}
        self._ranks = RankStates(self.table, base.dictionary)
        self._compiler = ScalarCompiler(self.table, base.dictionary, base.verdicts, self._ranks.count, meter)
        self._ranked = {predicate for predicate, _ in self._evaluation.ranks}
        self._strata: list[StratumRules] | None = None

    def table(self, predicate: Predicate) -> Table:
        """The facts of a predicate as they change."""
        found = self._tables.get(predicate)
        if found is None:
            found = self._tables[predicate] = Table(predicate, self._evaluation.relation(predicate).whole())
        return found

    @property
    def ranked(self) -> frozenset[Predicate]:
        """Predicates that are only counted by rank: readable, but not kept and not among the changes (P31)."""
        return frozenset(self._ranked)

    # reading

    def count(self, predicate: Predicate) -> int:
        """How many facts a predicate has."""
        return self._current(predicate).rows

    def rows(self, predicate: Predicate, *, ordered: bool = True) -> list[Row]:
        """The facts of a predicate, in text order unless that does not matter."""
        run = self._current(predicate).current()
        columns = [self._dictionary.texts(run.column(n)) for n in range(predicate.arity)]
        rows: list[Row] = list(zip(*columns, strict=True)) if columns else [()] * run.rows
        return sorted(rows) if ordered else rows

    def values(self, predicate: Predicate) -> list[str]:
        """The values of a predicate of one place, in no order."""
        (column,) = (self._current(predicate).current().column(n) for n in range(predicate.arity))
        return self._dictionary.texts(column)

    def contains(self, fact: Fact) -> bool:
        """Whether a fact holds."""
        codes = tuple(self._dictionary.find(value) for value in fact.values)
        return min(codes, default=0) >= 0 and self._current(fact.predicate).has(codes)

    def _current(self, predicate: Predicate) -> Table:
        """The facts of a predicate; those that are only ranked are worked out for this one answer."""
        if predicate not in self._ranked:
            return self.table(predicate)
        stratum = next(s for s in self._checked.strata if predicate in s.predicates)
        relation = self._recomputed(stratum)[predicate]
        return Table(predicate, relation.whole())

    # changing

    def get_ready(self) -> list[StratumRules]:
        """Compile what follows changes, and make the indexes that it needs."""
        if self._strata is None:
            self._strata = [
                StratumRules(stratum, self._evaluation, self._compiler)
                for stratum in self._checked.strata
                if not self._ranked.issuperset(stratum.predicates)
            ]
        return self._strata

    def apply(self, added: Iterable[Fact] = (), removed: Iterable[Fact] = ()) -> Changes:
        """Make the snapshot (old without `removed`) with `added`, and all derived facts follow."""
        strata = self.get_ready()
        self.meter.begin()
        came, went = self._admit(added), self._admit(removed)
        try:
            self._change_base(came, went)
            for rules in strata:
                self._change_stratum(rules)
            self.meter.settle()
        except (LimitExceeded, EvaluationStopped):
            self._ranks.forget()
            for table in self._tables.values():
                table.roll_back()
            raise
        changes = self._changes()
        self._ranks.settle(self._delta)
        for table in self._tables.values():
            if table.fresh or table.gone:
                table.commit()
        return changes

    def _admit(self, facts: Iterable[Fact]) -> list[Fact]:
        """The facts that the program reads, checked."""
        given = list(facts)
        admit_source(self._checked, MemorySource(given), self._limits)
        for fact in given:
            check_fact(fact, self._limits)
        return [fact for fact in given if fact.predicate in self._checked.base]

    def _change_base(self, came: list[Fact], went: list[Fact]) -> None:
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
                raise LimitExceeded(limit, allowed, "facts of the predicates that the program reads")

    def _change_stratum(self, rules: StratumRules) -> None:
        starts = rules.starts(self._delta, self._ranks)
        if starts is None or sum(len(rows) for _, rows in starts) > _STEP_ROWS:
            self._recompute(rules.stratum)
            return
        if starts:
            self._take_out(rules, [pair for pair in starts if pair[0].takes])
            self._bring_in(rules, [pair for pair in starts if pair[0].brings])

    def _delta(self, predicate: Predicate) -> tuple[list[CodeRow], list[CodeRow]]:
        table = self._tables.get(predicate)
        return table.changes() if table is not None and (table.fresh or table.gone) else ([], [])

    def _take_out(self, rules: StratumRules, starts: list[tuple[Trigger, list[CodeRow]]]) -> None:
        """Find what may have lost a derivation, prove it anew or let it go (030-INCR-03, 030-INCR-04)."""
        doubtful: dict[tuple[Predicate, CodeRow], None] = {}
        queue: list[tuple[Predicate, CodeRow]] = []
        for trigger, rows in starts:
            self._doubt(trigger, rows, doubtful, queue)
        while queue:
            batch, queue = queue, []
            for predicate, row in batch:
                for trigger in rules.inner(predicate, takes=True):
                    self._doubt(trigger, [row], doubtful, queue)
        if rules.stratum.recursive:
            for predicate, row in doubtful:
                self.table(predicate).remove(row)
            proven = [(predicate, row) for predicate, row in doubtful if rules.proves(predicate, row)]
            self._insert(rules, proven)
            return
        for predicate, row in doubtful:
            if not rules.proves(predicate, row):
                self.table(predicate).remove(row)

    def _doubt(
        self,
        trigger: Trigger,
        rows: list[CodeRow],
        doubtful: dict[tuple[Predicate, CodeRow], None],
        queue: list[tuple[Predicate, CodeRow]],
    ) -> None:
        table = self.table(trigger.head)

        def doubt(row: CodeRow) -> bool:
            fact = (trigger.head, row)
            if fact not in doubtful and table.has(row):
                doubtful[fact] = None
                queue.append(fact)
            return False

        for row in rows:
            trigger.rule.run(row, doubt)

    def _bring_in(self, rules: StratumRules, starts: list[tuple[Trigger, list[CodeRow]]]) -> None:
        found: dict[tuple[Predicate, CodeRow], None] = {}
        for trigger, rows in starts:
            self._collect(trigger, rows, found)
        self._insert(rules, found)

    def _collect(self, trigger: Trigger, rows: list[CodeRow], found: dict[tuple[Predicate, CodeRow], None]) -> None:
        def collect(row: CodeRow) -> bool:
            found[trigger.head, row] = None
            return False

        for row in rows:
            trigger.rule.run(row, collect)

    def _insert(self, rules: StratumRules, facts: Iterable[tuple[Predicate, CodeRow]]) -> None:
        """Add derived facts and, round by round, what follows from them in their own stratum."""
        rounds = 0
        while True:
            new = [(predicate, row) for predicate, row in facts if self.table(predicate).add(row)]
            if not new:
                return
            rounds += 1
            self._require_room(rules.stratum, rounds)
            found: dict[tuple[Predicate, CodeRow], None] = {}
            for predicate, row in new:
                for trigger in rules.inner(predicate, takes=False):
                    self._collect(trigger, [row], found)
            facts = found

    def _require_room(self, stratum: Stratum, rounds: int) -> None:
        if rounds > self._limits.max_stratum_iterations:
            limit = self._limits.max_stratum_iterations
            raise LimitExceeded("max_stratum_iterations", limit, str(stratum.predicates[0]))
        allowed = self._limits.max_derived_facts_per_predicate
        for predicate in stratum.predicates:
            if self.table(predicate).rows > allowed:
                raise LimitExceeded("max_derived_facts_per_predicate", allowed, str(predicate))

    # computing anew

    def _recomputed(self, stratum: Stratum) -> dict[Predicate, Relation]:
        """The relations of a stratum over the current state of everything below."""
        evaluation = self._evaluation
        evaluation.domain = self._dictionary.size
        below = [p for p in self._tables if p not in stratum.predicates]
        evaluation.refresh({p: self._tables[p].current() for p in below}, stratum)
        return {predicate: evaluation.relation(predicate) for predicate in stratum.predicates}

    def _recompute(self, stratum: Stratum) -> None:
        for predicate, relation in self._recomputed(stratum).items():
            table = self.table(predicate)
            before, after = set(table.scan()), set(Table(predicate, relation.whole()).scan())
            for row in before - after:
                table.remove(row)
            for row in after - before:
                table.add(row)

    def _changes(self) -> Changes:
        added: dict[Predicate, tuple[Row, ...]] = {}
        removed: dict[Predicate, tuple[Row, ...]] = {}
        for predicate in sorted(self._checked.derived & self._tables.keys()):
            came, went = self._delta(predicate)
            if came:
                added[predicate] = self._texts(came)
            if went:
                removed[predicate] = self._texts(went)
        return Changes(added, removed)

    def _texts(self, rows: list[CodeRow]) -> tuple[Row, ...]:
        if len(rows) < _FEW_ROWS or not rows[0]:
            return tuple(sorted(tuple(map(self._dictionary.text, row)) for row in rows))
        columns = [self._dictionary.texts(np.array(column, np.uint32)) for column in zip(*rows, strict=True)]
        return tuple(sorted(zip(*columns, strict=True)))
