"""One stratum follows what changed below it (030, incremental evaluation).

Rule: following a change costs at most a part of what recomputing the stratum would cost; past that it is recomputed.

Facts of a recursive stratum have ranks: a fact of rank r has a derivation that rests, within the stratum, on facts of
lower rank only. What may have lost a derivation is looked at from the lowest rank up. A fact that still has such a
derivation stays, and nothing that rests on it is looked at; otherwise it goes, and what rests on it and has a higher
rank comes next. When all are decided, those that went are looked for once more, whatever the ranks: what the rest
derives comes back with a new rank. So facts in a circle cannot keep each other alive (030-INCR-04), and hardly a fact
is taken out that has to come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.engine.grids import Doubtful, SomeRows, rank_of, tuples, unranked, without
from lace.datalog.engine.ranking_state import Delta, RankStates
from lace.datalog.engine.relation import Relation
from lace.datalog.engine.runs import CodeRow, Run
from lace.datalog.engine.table import Table
from lace.datalog.engine.table_views import FixedTableView
from lace.datalog.engine.tombstones import WithRanks
from lace.datalog.engine.triggers import Starts, StratumRules
from lace.datalog.engine.turned_rules import CARRIED_ROWS, Ranked, RuleRunner, TurnedRule, lowest
from lace.datalog.language.syntax import Predicate
from lace.datalog.meter import SINGLE_ROWS, BudgetSpent, Meter
from lace.datalog.planning.stratify import Stratum
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds

_COMPARED_AT_ONCE = 4  # rows of two runs that are compared in the time of one row touched
_TELLING = 64  # facts that tell what deciding one more will take
_ANY_RANK = (1 << 32) - 1
Size = Callable[[Predicate], int]  # how many facts of a predicate changed


class Follower:
    """Brings the strata of a program up to date."""

    def __init__(
        self,
        evaluation: Evaluation,
        runner: RuleRunner,
        ranks: RankStates,
        meter: Meter,
        thresholds: EngineThresholds = ENGINE_THRESHOLDS,
    ) -> None:
        self._evaluation = evaluation
        self._runner = runner
        self._ranks = ranks
        self._meter = meter
        self._limits = meter.limits
        self._thresholds = thresholds

    def follow(self, rules: StratumRules, tables: dict[Predicate, Table], delta: Delta, size: Size) -> None:
        """Make the facts of a stratum what the new state below it derives."""
        changed = sum(size(predicate) for predicate in rules.reads)
        if not changed:
            return
        allowed = self._allowed(rules.stratum)
        # So many changes that following them cannot pay: then not even the attempt is made.
        starts = rules.starts(delta, self._ranks) if changed * SINGLE_ROWS <= allowed else None
        if starts is not None:
            try:
                with self._meter.budget(allowed):
                    self._step(rules, starts)
                return
            except BudgetSpent:
                for predicate in rules.stratum.predicates:
                    self._runner.table(predicate).roll_back()
        self._recompute(rules.stratum, tables)

    def _allowed(self, stratum: Stratum) -> int:
        cost = self._evaluation.costs[stratum.predicates]
        standing = sum(self._runner.table(predicate).rows for predicate in stratum.predicates)
        shrunk = min(1.0, (standing + 1) / (cost.facts + 1))  # fewer facts than then are computed sooner
        return self._thresholds.follow_rows + int(self._thresholds.follow_share * cost.work * shrunk)

    def _step(self, rules: StratumRules, starts: Starts) -> None:
        self._take_out(rules, [(trigger.move, rows) for trigger, rows in starts if trigger.takes])
        found: dict[Predicate, Ranked] = {}
        for trigger, rows in starts:
            if not trigger.takes:
                self._collect(found, trigger.move.head, self._runner.found(trigger.move, rows))
        if rules.stratum.recursive:
            self._look_again(rules, found)
        self._insert(rules, found)
        self._meter.settle()

    # what goes

    def _take_out(self, rules: StratumRules, moves: Iterable[tuple[TurnedRule, list[CodeRow]]]) -> None:
        """Find what may have lost a derivation, by rank; prove it from lower ranks or let it go (030-INCR-03)."""
        doubtful = Doubtful()
        for move, rows in moves:
            doubtful.add(move.head, self._runner.below(move, rows))
        again, each = 0, float(CARRIED_ROWS)  # rows that looking again will take, and that deciding one more fact took
        while doubtful:
            # Give up now if what waits would spend the budget anyway: work that is thrown away doubles the price.
            self._meter.foresee(int(each * doubtful.waiting) + again)
            began, decided = self._meter.rows, 0
            for predicate, facts in doubtful.lowest():
                lost = self._lost(rules, predicate, facts)
                self._meter.touch(CARRIED_ROWS * len(lost))
                self._runner.table(predicate).take([row[: predicate.arity] for row in tuples(lost)])
                for move in rules.inner(predicate, takes=True):
                    doubtful.add(move.head, self._runner.below(move, lost))
                again += CARRIED_ROWS * len(lost)
                decided += len(facts)
            if decided >= _TELLING:
                each = (self._meter.rows - began) / decided

    def _lost(self, rules: StratumRules, predicate: Predicate, facts: SomeRows) -> SomeRows:
        """The facts that nothing of lower rank derives; all have the same rank, their last value.

        A fact of rank 0 once came from below its stratum, any other one from within: only such rules are asked. If
        others derive it by now, it is found when those that went are looked for again.
        """
        left, table, domain = facts, self._runner.table(predicate), self._evaluation.dictionary.size
        within = bool(len(facts) and rank_of(facts))
        for proof in rules.proofs[predicate]:
            if within == (proof.read_ranks > 0):
                asked = left if table.ranked else unranked(left)
                left = without(left, self._runner.below(proof, asked), predicate.arity, domain)
        return left

    def unproven(self, rules: StratumRules, predicate: Predicate, ranks: Ranked) -> list[CodeRow]:
        """The facts that nothing of a lower rank than given derives; there is none among those that stand."""
        doubtful = Doubtful()
        doubtful.add(predicate, [(*row, rank) for row, rank in ranks.items()])
        left: list[CodeRow] = []
        while doubtful:
            for _, facts in doubtful.lowest():
                left += tuples(unranked(self._lost(rules, predicate, facts)))
        return left

    # what comes

    def _look_again(self, rules: StratumRules, found: dict[Predicate, Ranked]) -> None:
        """Whether what went follows from what is left, whatever the ranks."""
        for predicate in rules.stratum.predicates:
            asked = self._runner.carried([(*row, _ANY_RANK) for row in self._runner.table(predicate).gone])
            for proof in rules.proofs[predicate]:
                self._collect(found, predicate, self._runner.found(proof, asked))

    def _collect(self, found: dict[Predicate, Ranked], head: Predicate, more: Ranked) -> None:
        """Facts with the lowest rank that a derivation gives them."""
        found[head] = lowest(found[head], more) if head in found else more

    def _insert(self, rules: StratumRules, found: dict[Predicate, Ranked]) -> None:
        """Add derived facts and, round by round, what follows from them in their own stratum."""
        rounds = 0
        while True:
            new = {predicate: self._added(predicate, facts) for predicate, facts in found.items()}
            if not any(new.values()):
                return
            rounds += 1
            self._require_room(rules.stratum, rounds)
            found = {}
            for predicate, rows in new.items():
                for move in rules.inner(predicate, takes=False):
                    self._collect(found, move.head, self._runner.found(move, rows))

    def _added(self, predicate: Predicate, facts: Ranked) -> list[CodeRow]:
        self._meter.follow(len(facts))
        return self._runner.table(predicate).put(facts)

    def _require_room(self, stratum: Stratum, rounds: int) -> None:
        if rounds > self._limits.max_stratum_iterations:
            limit = self._limits.max_stratum_iterations
            raise self._meter.exceeded("max_stratum_iterations", limit, str(stratum.predicates[0]))
        allowed = self._limits.max_derived_facts_per_predicate
        for predicate in stratum.predicates:
            if self._runner.table(predicate).rows > allowed:
                raise self._meter.exceeded("max_derived_facts_per_predicate", allowed, str(predicate))

    # recomputing

    def recomputed(self, stratum: Stratum, tables: dict[Predicate, Table]) -> dict[Predicate, Relation]:
        """The relations of a stratum over the current state of everything below."""
        evaluation = self._evaluation
        evaluation.domain = evaluation.dictionary.size
        ranked = {predicate for predicate, _ in evaluation.ranks}
        own = ranked.union(stratum.predicates)
        evaluation.refresh({p: FixedTableView(table) for p, table in tables.items() if p not in own}, stratum)
        return {predicate: evaluation.relation(predicate) for predicate in stratum.predicates}

    def _recompute(self, stratum: Stratum, tables: dict[Predicate, Table]) -> None:
        for predicate, relation in self.recomputed(stratum, tables).items():
            table = self._runner.table(predicate)
            after = ranked_run(relation) if table.ranked else relation.whole()
            self._meter.touch((table.rows + after.rows) // _COMPARED_AT_ONCE)
            table.become(after)


def ranked_run(relation: Relation) -> Run:
    """The rows of a relation with their ranks."""
    whole = relation.whole()
    return WithRanks(whole, relation.predicate.arity, relation.ranks())
