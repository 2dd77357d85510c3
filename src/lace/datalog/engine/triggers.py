"""Rules read from each of their places (030, incremental evaluation): what a change of one predicate can do.

Rule: every place of a body that reads facts is a trigger. A trigger that takes out may find too much (each find is
proven again); one that brings in finds exactly what the new state derives.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from lace.datalog.engine.evaluate import Evaluation, crowd_of
from lace.datalog.engine.ranking_state import Delta, RankStates
from lace.datalog.engine.row_lookup import Visibility
from lace.datalog.engine.runs import CodeRow
from lace.datalog.engine.scalar import ScalarCompiler, ScalarRule
from lace.datalog.engine.turned_rules import RuleRunner, TurnedRule
from lace.datalog.engine.vector import VectorExecutor
from lace.datalog.language.comparisons import integer_key
from lace.datalog.language.formatting import format_literal
from lace.datalog.language.syntax import (
    Atom,
    Cardinality,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.terms import variable_names
from lace.datalog.planning.circles import MeetingCosts
from lace.datalog.planning.names import MARK, VariableNames
from lace.datalog.planning.plan import Rank, Scan, Version
from lace.datalog.planning.planner import free_place, plan_from, scan_of, sorted_rules
from lace.datalog.planning.stratify import Stratum, read_atom
from lace.thresholds import ENGINE_THRESHOLDS
from lace.values import dataclass

Starts = list[tuple["Trigger", list[CodeRow]]]


class _Turning:
    """A rule that is turned around, with the variables that this adds to the author's rule."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        names = VariableNames.beside(rule)
        self.stands = names.fresh(f"{MARK}stands")  # the rank of the fact that the rule derives, as it stands
        self.started = names.fresh(f"{MARK}started")  # the rank of the row that the rule starts from
        self.ranks = [names.fresh(f"{MARK}{place}") for place in range(len(rule.body))]  # of the rows that it reads
        self._outer = {term for lit in rule.body if isinstance(lit, Positive) for term in lit.atom.terms}
        counted = {term.name: term for lit in rule.body if isinstance(lit, Cardinality) for term in _named(lit.atom)}
        self._as_facts = {term: names.fresh(f"{term.name}{MARK}") for term in counted.values()}

    def read_as_facts(self, counted: Atom) -> Atom:
        """A counted atom: its local variables must not look bound to the count that is asked again."""
        terms = (
            self._as_facts[term] if isinstance(term, Variable) and term not in self._outer else term
            for term in counted.terms
        )
        return Atom(counted.predicate, tuple(terms))


def _named(atom: Atom) -> list[Variable]:
    return [term for term in atom.terms if isinstance(term, Variable)]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A rule that runs from changed rows of one predicate."""

    reads: Predicate
    sign: str  # how the place reads: "positive", "negative", "counted" or "ranked"
    takes: bool  # finds what may have to go; otherwise what has come
    move: TurnedRule
    rank: Rank | None = None
    bound: int | None = None  # of a ranked count: the number that counts are compared with

    def rows(self, came: list[CodeRow], went: list[CodeRow]) -> list[CodeRow]:
        """The changed rows that it runs from."""
        if self.sign == "counted":
            return came + went
        return went if self.takes == (self.sign == "positive") else came


class _FewRows:
    """Sizes for a plan that starts from a few rows.

    The values of these come from facts, so popular ones come often: what such a value leads to is not the average over
    all values but the average over all facts.
    """

    def __init__(self, executor: VectorExecutor) -> None:
        self._executor = executor

    def rows(self, scan: Scan) -> float:
        if scan.version is Version.DELTA:
            return 1.0
        return float(sum(view.rows for view in self._executor.views(scan)))

    def distinct(self, scan: Scan, position: int) -> float:
        if scan.version is Version.DELTA:
            return 1.0
        return sum(view.evenness(position) for view in self._executor.views(scan))

    def crowd(self, scan: Scan, position: int) -> float:
        """How many rows have the code of a row picked at random."""
        return crowd_of(self._executor.views(scan), position)


class StratumRules:
    """The rules of a stratum, from every place that reads facts, and from their heads."""

    def __init__(
        self,
        stratum: Stratum,
        evaluation: Evaluation,
        runner: RuleRunner,
        compiler: ScalarCompiler,
        growth: float = ENGINE_THRESHOLDS.meeting_growth_followed,
    ) -> None:
        self.stratum = stratum
        self._own = frozenset(stratum.predicates) if stratum.recursive else frozenset()
        self._compiler = compiler
        self._runner = runner
        self._evaluation = evaluation
        self._sizes = _FewRows(runner.executors[Visibility.NEW])
        self._meeting = MeetingCosts(growth, self._sizes.crowd)
        self._triggers: list[Trigger] = []
        self.proofs: dict[Predicate, list[TurnedRule]] = {predicate: [] for predicate in stratum.predicates}
        for rule in sorted_rules(stratum.rules):
            turning = _Turning(rule)
            self.proofs[rule.head.predicate].append(self._proof(turning))
            for place, literal in enumerate(rule.body):
                self._add_triggers(turning, place, literal)
        self._inner: defaultdict[tuple[Predicate, bool], list[TurnedRule]] = defaultdict(list)
        for trigger in self._triggers:
            if trigger.reads in stratum.predicates:
                self._inner[trigger.reads, trigger.takes].append(trigger.move)
        self._ranks = {trigger.rank for trigger in self._triggers if trigger.rank is not None}
        self._outer = [trigger for trigger in self._triggers if trigger.reads not in stratum.predicates]

    @property
    def reads(self) -> set[Predicate]:
        """The predicates below that set something off."""
        return {trigger.reads for trigger in self._outer}

    # turning rules

    def _move(
        self,
        turning: _Turning,
        start: Atom,
        body: Sequence[Literal],
        ranks: list[Variable],
        visibility: Visibility,
        stood: Collection[int] = (),
    ) -> TurnedRule:
        """A rule that starts from given rows; of the body literals at the places `stood` it sees what did not come."""
        rule = turning.rule
        head = Atom(
            Predicate(f"{rule.head.predicate.name}{MARK}", rule.head.predicate.arity + len(ranks)),  # nobody reads it
            (*rule.head.terms, *ranks),
        )
        turned = Rule(head, (Positive(start), *body))
        versions = {0: Version.DELTA, **{place + 1: Version.OLD for place in stood}}
        plan = plan_from(turned, 0, versions, self._sizes, self._evaluation.ranks, self._meeting)
        asks = bool(ranks) and ranks[-1] == turning.stands
        return TurnedRule(rule, plan, visibility, len(ranks) - asks, asks, ScalarRule(self._compiler, plan, visibility))

    def _with_ranks(self, turning: _Turning, body: Sequence[Literal]) -> tuple[list[Literal], list[Variable]]:
        """A body whose atoms of the own stratum are read with their ranks."""
        literals: list[Literal] = []
        ranks: list[Variable] = []
        for literal in body:
            if isinstance(literal, Positive) and literal.atom.predicate in self._own:
                ranks.append(turning.ranks[len(ranks)])
                literals.append(Positive(self._runner.ranked_atom(literal.atom, ranks[-1])))
            else:
                literals.append(literal)
        return literals, ranks

    def _proof(self, turning: _Turning) -> TurnedRule:
        """From facts, with their ranks, to their derivations in the new state."""
        body, ranks = self._with_ranks(turning, turning.rule.body)
        asked = [turning.stands] if self._own else []
        start = self._runner.start_atom((*turning.rule.head.terms, *asked))
        return self._move(turning, start, body, ranks + asked, Visibility.NEW)

    def _takes(self, turning: _Turning, start: Atom, others: Sequence[Literal], started: list[Variable]) -> TurnedRule:
        """From what went to the facts that may have rested on it: whatever the rest of the rule said before or says
        now, `not` and counts left open."""
        doubting = [lit for lit in others if not isinstance(lit, Negated | Cardinality)]
        head = turning.rule.head
        if not self._own:
            return self._move(turning, start, [*doubting, Positive(head)], [], Visibility.EITHER)
        stands = Positive(self._runner.ranked_atom(head, turning.stands))
        return self._move(turning, start, [*doubting, stands], [*started, turning.stands], Visibility.EITHER)

    def _add_triggers(self, turning: _Turning, place: int, literal: Literal) -> None:
        read = read_atom(literal)
        if read is None:
            return
        rule = turning.rule
        start, kind = read[0], str(read[1])
        others = tuple(lit for n, lit in enumerate(rule.body) if n != place)
        rank, bound = self._rank_of(rule, literal)
        reads = start.predicate
        if rank is not None and isinstance(literal, Cardinality):
            terms: tuple[Term, ...] = (literal.atom.terms[rank.place],)
            kind, reads = "ranked", rank.candidates.predicate
        elif isinstance(literal, Cardinality):
            terms = turning.read_as_facts(start).terms
        else:
            terms = start.terms
        started = [turning.started] if reads in self._own and kind == "positive" else []
        begin = self._runner.start_atom((*terms, *started))
        takes = self._takes(turning, begin, others, started)
        again, ranks = self._with_ranks(turning, others if kind == "positive" else (*others, literal))
        stood = self._seen_before(rule, place) if kind == "positive" else []
        brings = self._move(turning, begin, again, started + ranks, Visibility.NEW, stood)
        self._triggers.append(Trigger(reads, kind, True, takes, rank, bound))
        self._triggers.append(Trigger(reads, kind, False, brings, rank, bound))

    def _seen_before(self, rule: Rule, place: int) -> list[int]:
        """The other places, counted without this one, whose new rows set the rule off themselves and come before it.

        What rests on several new rows is found from the first of them only. Rows of the own stratum come round by
        round, so no place is left to them. Places have the order of their texts: not of how they were written.
        """
        below = [
            n
            for n, literal in enumerate(rule.body)
            if isinstance(literal, Positive) and literal.atom.predicate not in self.stratum.predicates
        ]
        below.sort(key=lambda n: (format_literal(rule.body[n]), n))
        return [n - (n > place) for n in below[: below.index(place)]] if place in below else []

    def _rank_of(self, rule: Rule, literal: Literal) -> tuple[Rank | None, int | None]:
        """The rank behind a counted literal, and the number it is compared with."""
        if not isinstance(literal, Cardinality):
            return None, None
        outer = frozenset(name for lit in rule.body if isinstance(lit, Positive) for name in variable_names(lit))
        free = free_place(scan_of(literal.atom, outer))
        rank = self._evaluation.ranks.get((literal.atom.predicate, free))
        key = integer_key(literal.bound.value) if isinstance(literal.bound, Constant) else None
        small = key is not None and abs(key[0]) <= 18
        return rank, int(literal.bound.value) if small and isinstance(literal.bound, Constant) else None

    # reading changes

    def starts(self, delta: Delta, ranks: RankStates) -> Starts | None:
        """The triggers that a change below sets off, with their rows; None where stepping is not possible."""
        found: Starts = []
        for trigger in self._outer:
            came, went = delta(trigger.reads)
            if not came and not went:
                continue
            rows = trigger.rows(came, went)
            if trigger.rank is not None:
                if trigger.bound is None:
                    return None
                state = ranks.follow(trigger.rank, delta)
                rows = [(identity,) for identity in dict.fromkeys(state.doubtful(trigger.bound))]
            if rows:
                found.append((trigger, rows))
        if found and not all(ranks.follow(rank, delta).usable for rank in self._ranks):
            return None
        return found

    def inner(self, predicate: Predicate, *, takes: bool) -> list[TurnedRule]:
        """What a change of a predicate of this stratum sets off."""
        return self._inner[predicate, takes]
