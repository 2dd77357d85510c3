"""Rules read from each of their places (030, incremental evaluation): what a change of one predicate can do.

Rule: every place of a body that reads facts is a trigger. A trigger that takes out may find too much (each find is
proven anew); one that brings in finds exactly what the new state derives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lace.datalog.comparisons import integer_key
from lace.datalog.engine.evaluate import Evaluation, LiveSizes
from lace.datalog.engine.ranking_state import Delta, RankStates
from lace.datalog.engine.scalar import ScalarCompiler, ScalarRule
from lace.datalog.engine.table import CodeRow, Sight
from lace.datalog.plan import Rank, Scan, Version
from lace.datalog.planner import plan_from, sorted_rules
from lace.datalog.stratify import Stratum, read_atom
from lace.datalog.syntax import Atom, Cardinality, Constant, Literal, Negated, Positive, Predicate, Rule, Term, Variable

Starts = list[tuple["Trigger", list[CodeRow]]]


@dataclass(frozen=True, slots=True)
class Trigger:
    """A rule that runs from changed rows of one predicate."""

    head: Predicate
    reads: Predicate
    sign: str  # how the place reads: "positive", "negative", "counted" or "ranked"
    takes: bool  # finds what may have to go; otherwise what has come
    rule: ScalarRule
    rank: Rank | None = None
    bound: int | None = None  # of a ranked count: the number that counts are compared with

    @property
    def brings(self) -> bool:
        """Whether it finds what has come."""
        return not self.takes

    def rows(self, came: list[CodeRow], went: list[CodeRow]) -> list[CodeRow]:
        """The changed rows that it runs from."""
        if self.sign == "counted":
            return came + went
        return went if self.takes == (self.sign == "positive") else came


class _OneRow:
    """Sizes for a plan that starts from a single row."""

    def __init__(self, live: LiveSizes) -> None:
        self._live = live

    def rows(self, scan: Scan) -> float:
        return 1.0 if scan.version is Version.DELTA else self._live.rows(scan)

    def distinct(self, scan: Scan, position: int) -> float:
        return 1.0 if scan.version is Version.DELTA else self._live.distinct(scan, position)


class StratumRules:
    """The rules of a stratum, from every place that reads facts, and from their heads."""

    def __init__(self, stratum: Stratum, evaluation: Evaluation, compiler: ScalarCompiler) -> None:
        self.stratum = stratum
        self._compiler = compiler
        self._evaluation = evaluation
        self._sizes = _OneRow(LiveSizes(evaluation.executor, frozenset()))
        self._triggers: list[Trigger] = []
        self._proofs: dict[Predicate, list[ScalarRule]] = {predicate: [] for predicate in stratum.predicates}
        for rule in sorted_rules(stratum.rules):
            self._proofs[rule.head.predicate].append(self._compile(rule, _asked(rule.head), rule.body, Sight.NEW))
            for place, literal in enumerate(rule.body):
                self._add_triggers(rule, place, literal)
        own = frozenset(stratum.predicates)
        self._inner = {
            (predicate, takes): [t for t in self._triggers if t.reads == predicate and t.takes == takes]
            for predicate in own
            for takes in (True, False)
        }
        self._ranks = {trigger.rank for trigger in self._triggers if trigger.rank is not None}
        self._outer = [trigger for trigger in self._triggers if trigger.reads not in own]

    def _compile(self, rule: Rule, start: Atom, body: Sequence[Literal], sight: Sight) -> ScalarRule:
        turned = Rule(rule.head, (Positive(start), *body))
        plan = plan_from(turned, 0, Version.DELTA, self._sizes, self._evaluation.ranks)
        return ScalarRule(self._compiler, plan, sight)

    def _add_triggers(self, rule: Rule, place: int, literal: Literal) -> None:
        read = read_atom(literal)
        if read is None:
            return
        start, kind = read[0], str(read[1])
        others = tuple(lit for n, lit in enumerate(rule.body) if n != place)
        rank, bound = self._rank_of(rule, literal)
        reads = start.predicate
        if rank is not None and isinstance(literal, Cardinality):
            start = _asked_for_rank(literal, rule)
            kind, reads = "ranked", rank.candidates.predicate
        elif isinstance(literal, Cardinality):
            start = _with_own_names(start, rule)
        # Going: whatever the rest of the rule said before or says now, `not` and counts left open.
        doubting = tuple(lit for lit in others if not isinstance(lit, Negated | Cardinality))
        takes = self._compile(rule, start, doubting, Sight.EITHER)
        again = others if kind == "positive" else (*others, literal)
        brings = self._compile(rule, start, again, Sight.NEW)
        head = rule.head.predicate
        self._triggers.append(Trigger(head, reads, kind, True, takes, rank, bound))
        self._triggers.append(Trigger(head, reads, kind, False, brings, rank, bound))

    def _rank_of(self, rule: Rule, literal: Literal) -> tuple[Rank | None, int | None]:
        """The rank behind a counted literal, and the number it is compared with."""
        if not isinstance(literal, Cardinality):
            return None, None
        outer = {t for lit in rule.body if isinstance(lit, Positive) for t in lit.atom.terms}
        places = [n for n, term in enumerate(literal.atom.terms) if isinstance(term, Variable) and term in outer]
        rank = self._evaluation.ranks.get((literal.atom.predicate, places[0])) if len(places) == 1 else None
        key = integer_key(literal.bound.value) if isinstance(literal.bound, Constant) else None
        small = key is not None and abs(key[0]) <= 18
        return rank, int(literal.bound.value) if small and isinstance(literal.bound, Constant) else None

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

    def inner(self, predicate: Predicate, *, takes: bool) -> list[Trigger]:
        """The triggers of a predicate of this stratum."""
        return self._inner[predicate, takes]

    def proves(self, predicate: Predicate, row: CodeRow) -> bool:
        """Whether a rule derives a fact in the new state."""
        found: list[CodeRow] = []

        def note(row: CodeRow) -> bool:
            found.append(row)
            return False  # all of them: where the first stands depends on the order of codes, and work must not (P36)

        for rule in self._proofs[predicate]:
            rule.run(row, note)
        return bool(found)


def _asked(head: Atom) -> Atom:
    """An atom that binds a head's variables to a given fact."""
    return Atom(Predicate("?", head.predicate.arity), head.terms)


def _asked_for_rank(literal: Cardinality, rule: Rule) -> Atom:
    outer = {term for lit in rule.body if isinstance(lit, Positive) for term in lit.atom.terms}
    bound: list[Term] = [term for term in literal.atom.terms if isinstance(term, Variable) and term in outer]
    return Atom(Predicate("?", 1), tuple(bound))


def _with_own_names(counted: Atom, rule: Rule) -> Atom:
    """A counted atom read as facts: its local variables must not look bound to the count that is asked again."""
    outer = {term for lit in rule.body if isinstance(lit, Positive) for term in lit.atom.terms}
    terms: list[Term] = [
        Variable(f"{term.name}?") if isinstance(term, Variable) and term not in outer else term
        for term in counted.terms
    ]
    return Atom(counted.predicate, tuple(terms))
