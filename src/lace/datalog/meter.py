"""Work is counted where it is done (P36): rows touched, bytes held, and a question whether to go on.

Rule: what is counted is a function of the program and of the facts that its rules can see; no clock, no cache and no
order of facts changes it. The only thing that may depend on time is the `interrupt` that a caller hands in.

A row touched is one row that a step of a plan reads or makes. A step that is started counts as `STEP_ROWS`, since
setting it up costs about as much; and a row that is followed by itself counts as `SINGLE_ROWS`, since the interpreter
sees to each. So a count is roughly proportional to time, whichever way a change was worked through.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager

from lace.datalog.language.formatting import format_rule
from lace.datalog.language.syntax import (
    NOWHERE,
    Atom,
    Cardinality,
    Literal,
    Negated,
    Place,
    Positive,
    Predicate,
    Program,
    Rule,
)
from lace.datalog.limit_errors import limit_reached
from lace.datalog.planning.names import authored_name, is_authored, is_for_asked
from lace.errors import EvaluationStopped, LimitExceeded
from lace.limits import EngineLimits
from lace.notation.stopping import Interrupt, never
from lace.values import dataclass

STEP_ROWS = 768
SINGLE_ROWS = 64
_SINGLES_AT_ONCE = 256
_NO_BUDGET = 1 << 62


class BudgetSpent(Exception):
    """A way of doing things took more than it was given; its caller knows another one."""


@dataclass(slots=True)
class CurrentInterrupt:
    """The interrupt of the call at work, where a meter lives longer than a call."""

    interrupt: Interrupt = never

    def __call__(self) -> bool:
        return self.interrupt()


class Meter:
    """What one piece of work (an evaluation, a change, an explanation) has used and may still use.

    Rules whose heads are among `guests` were written by a peer: their rows are counted a second time, against a limit
    of their own. `interrupt` is asked every few milliseconds; once it answers True, the work ends in
    `EvaluationStopped` and nothing of it is kept.
    """

    def __init__(
        self, limits: EngineLimits, *, interrupt: Interrupt = never, guests: Collection[Predicate] = ()
    ) -> None:
        self.limits = limits
        self._interrupt = interrupt
        self._guests = frozenset(predicate.name for predicate in guests)
        self._is_guest: dict[str, bool] = {}
        self.rule: Rule | None = None  # that runs now
        self._written: dict[tuple[str, Place], Rule] = {}  # by the name of the head, and where they stand
        self._singles = 0  # rows followed one by one and not yet counted
        self._budget_ends = _NO_BUDGET
        self._guest_runs = False
        self.rows: int = 0  # touched since `begin`
        self.guest_rows: int = 0  # those of them that guests' rules touched
        self.held_bytes: int = 0  # by derived facts

    def begin(self) -> None:
        """Start counting for another piece of work."""
        self.rows = self.guest_rows = self._singles = 0

    def tell_as_in(self, program: Program) -> None:
        """Rules are rewritten before they run; errors show them as they stand in this program, or in one told before
        of which this one was made."""
        for rule in program.rules:
            if rule.place != NOWHERE and is_authored(rule):
                self._written[rule.head.predicate.name, rule.place] = rule

    def enter(self, rule: Rule) -> None:
        """The rows that follow are touched by this rule."""
        self.settle()
        self.rule = rule
        name = rule.head.predicate.name
        if name not in self._is_guest:
            self._is_guest[name] = authored_name(name) in self._guests
        self._guest_runs = self._is_guest[name]

    def touch(self, rows: int) -> None:
        """Count rows before they are made, and see whether to go on."""
        self.rows += rows
        if self.rows > self._budget_ends:
            raise BudgetSpent
        if self._guest_runs:
            self.guest_rows += rows
            self._require("max_peer_rows_touched", self.limits.max_peer_rows_touched, self.guest_rows)
        self._require("max_rows_touched", self.limits.max_rows_touched, self.rows)
        if self._interrupt():
            shown = self._shown_rule()
            raise EvaluationStopped(f"stopped from outside in {shown}" if shown else "stopped from outside")

    @contextmanager
    def budget(self, rows: int) -> Iterator[None]:
        """Work that is given up, by `BudgetSpent`, when it touches more rows than these."""
        self._budget_ends = self.rows + rows
        try:
            yield
        finally:
            self._budget_ends = _NO_BUDGET

    def foresee(self, rows: int) -> None:
        """Give up work that has a budget and is sure to touch so many rows more than are left."""
        if self.rows + rows > self._budget_ends:
            raise BudgetSpent

    def follow(self, rows: int) -> None:
        """Count rows that are followed one by one; they are added up, since there are many calls."""
        self._singles += rows
        if self._singles >= _SINGLES_AT_ONCE:
            self.settle()

    def settle(self) -> None:
        """Add up what was followed one by one."""
        rows, self._singles = self._singles, 0
        if rows:
            self.touch(rows * SINGLE_ROWS)

    def hold(self, added_bytes: int) -> None:
        """Count bytes that stay until the work is done."""
        self.held_bytes += added_bytes
        self._require("max_held_bytes", self.limits.max_held_bytes, self.held_bytes)

    def require_room(self, passing_bytes: int) -> None:
        """Refuse a step whose own rows would not fit beside what is held."""
        self._require("max_held_bytes", self.limits.max_held_bytes, self.held_bytes + passing_bytes)

    def exceeded(self, limit: str, allowed: int, detail: str = "", advice: str = "") -> LimitExceeded:
        """The error of a limit that the rule which runs now has met."""
        return limit_reached(limit, allowed, detail, rule=self._shown_rule(), advice=advice)

    def _require(self, limit: str, allowed: int, used: int) -> None:
        if used > allowed:
            raise self.exceeded(limit, allowed)

    def shown(self, predicate: Predicate) -> str:
        """A predicate that the running rule derives, as the program names it."""
        rule = self._written_rule()
        name = authored_name(predicate.name)
        return str(rule.head.predicate if rule and rule.head.predicate.name == name else plain_predicate(predicate))

    def _shown_rule(self) -> str:
        rule = self._written_rule()
        return format_rule(rule) if rule is not None else ""

    def _written_rule(self) -> Rule | None:
        rule = self.rule
        if rule is None:
            return None
        return self._written.get((authored_name(rule.head.predicate.name), rule.place)) or as_written(rule)


def plain_predicate(predicate: Predicate) -> Predicate:
    """A predicate without what rewriting appended to its name."""
    return Predicate(authored_name(predicate.name), predicate.arity)


def as_written(rule: Rule) -> Rule:
    """A rule without the traces of its rewriting for goals or for changes."""
    body = [literal for literal in rule.body if not _is_demand(literal)] or rule.body
    return Rule(_plain_atom(rule.head), tuple(map(_plain_literal, body)))


def _is_demand(literal: Literal) -> bool:
    return isinstance(literal, Positive) and is_for_asked(literal.atom.predicate)


def _plain_atom(atom: Atom) -> Atom:
    return Atom(plain_predicate(atom.predicate), atom.terms)


def _plain_literal(literal: Literal) -> Literal:
    match literal:
        case Positive(atom):
            return Positive(_plain_atom(atom))
        case Negated(atom):
            return Negated(_plain_atom(atom))
        case Cardinality(atom, operator, bound):
            return Cardinality(_plain_atom(atom), operator, bound)
        case _:
            return literal
