"""Why a fact does not hold: for each rule that could give it, where its last binding died.

Rule: every claim is checked against what holds; if a limit cut the search short, the answer reports that.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from lace.datalog.binding import Binding
from lace.datalog.explain.known import Known, Pattern, bind_head, extend, pattern_of
from lace.datalog.explain.proof import Counted, Proof, counted, substituted, substituted_test, why
from lace.datalog.language.formatting import format_fact
from lace.datalog.language.syntax import (
    Atom,
    Cardinality,
    Compare,
    Constant,
    Fact,
    Literal,
    Negated,
    Positive,
    Predicate,
    Rule,
    TextShape,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.errors import LaceError
from lace.limits import ExplainLimits
from lace.values import dataclass

_DEFAULT_LIMITS = ExplainLimits()
_MISSES_COMPARED = 16


@dataclass(frozen=True, slots=True, eq=False)
class MissingFact:
    """A positive atom found no fact; the nearest one differs at `differs`, and a derived one is explained in turn."""

    atom: Atom
    nearest: Fact | None
    differs: tuple[int, ...]
    because: Absence | None


@dataclass(frozen=True, slots=True, eq=False)
class BlockedBy:
    """A negated atom found this fact."""

    atom: Atom
    proof: Proof


@dataclass(frozen=True, slots=True)
class WrongCount:
    """A cardinality test counted otherwise."""

    counted: Counted


@dataclass(frozen=True, slots=True)
class TestFailed:
    """A builtin is false for these values."""

    literal: Unequal | Compare | TextShape | TrueLiteral


Miss = MissingFact | BlockedBy | WrongCount | TestFailed


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """What became of one rule: `reached` bindings came as far as the literal at `place`, and none went further."""

    rule: Rule
    place: int
    reached: int
    complete: bool  # False: more bindings than the limit; those not followed may have died elsewhere
    passed: tuple[tuple[int, int], ...]  # (place, bindings left after it), in the order they were tried
    binding: tuple[tuple[str, str], ...]  # of the nearest miss
    miss: Miss


@dataclass(frozen=True, slots=True, eq=False)
class Absence:
    """Why no fact matches an atom."""

    goal: Atom
    attempts: tuple[Attempt, ...]
    other_rules: int  # rules for the predicate whose head has other constants
    nearest: Fact | None  # for a base predicate
    cut: bool = False  # deeper than the limit, already being explained above, or free places have to be equal


def why_not(known: Known, goal: Fact | Atom, limits: ExplainLimits = _DEFAULT_LIMITS) -> Absence:
    """Why a fact, or any fact that matches an atom, does not hold; LaceError if one does."""
    atom = goal if isinstance(goal, Atom) else Atom(goal.predicate, tuple(map(Constant, goal.values)))
    found = known.first(atom)
    if found is not None:
        raise LaceError(f"{format_fact(Fact(atom.predicate, found))} holds: ask why")
    return _explained(known, atom, limits, ())


def _explained(known: Known, goal: Atom, limits: ExplainLimits, above: tuple[Atom, ...]) -> Absence:
    pattern = pattern_of(goal.terms, {})
    if not known.is_derived(goal.predicate):
        return Absence(goal, (), 0, _nearest(known, goal.predicate, pattern))
    free = [term.name for term in goal.terms if isinstance(term, Variable)]
    if len(above) >= limits.max_depth or goal in above or len(free) > len(set(free)):
        return Absence(goal, (), 0, None, cut=True)
    attempts = []
    for rule in known.rules[goal.predicate]:
        binding = bind_head(rule, pattern)
        if binding is not None:
            attempts.append(_attempt(known, rule, binding, limits, (*above, goal)))
    return Absence(goal, tuple(attempts), len(known.rules[goal.predicate]) - len(attempts), None)


def _attempt(known: Known, rule: Rule, binding: Binding, limits: ExplainLimits, above: tuple[Atom, ...]) -> Attempt:
    """Follow all bindings atom by atom until none is left."""
    reached, complete = [binding], True
    passed: list[tuple[int, int]] = []
    for place in known.order(rule, binding):
        literal = rule.body[place]
        left = list(islice(_distinct(known, literal, reached), limits.max_bindings + 1))
        if not left:
            nearest, miss = _nearest_miss(known, literal, reached, limits, above)
            return Attempt(rule, place, len(reached), complete, tuple(passed), tuple(sorted(nearest.items())), miss)
        if len(left) > limits.max_bindings:
            complete = False
            left.pop()
        passed.append((place, len(left)))
        reached = left
    raise LaceError(f"the rule at line {rule.place.line} gives the fact: what holds is not complete")


def _distinct(known: Known, literal: Literal, bindings: list[Binding]) -> Iterator[Binding]:
    seen: set[tuple[str, ...]] = set()
    known.prepare(literal, bindings)
    for binding in bindings:
        for extended, _ in extend(known, literal, binding, known.rows):
            key = tuple(extended.values())  # names come in one order for all bindings of a rule
            if key not in seen:
                seen.add(key)
                yield extended


def _nearest_miss(
    known: Known, literal: Literal, reached: list[Binding], limits: ExplainLimits, above: tuple[Atom, ...]
) -> tuple[Binding, Miss]:
    match literal:
        case Positive(atom):
            return _missing_fact(known, atom, reached, limits, above)
        case Negated(atom):
            row = next(known.matches(atom, reached[0]))
            proof = why(known, Fact(atom.predicate, row), limits)
            return reached[0], BlockedBy(substituted(atom, reached[0]), proof)
        case Cardinality():
            return reached[0], WrongCount(counted(known, literal, reached[0], limits))
        case _:
            return reached[0], TestFailed(substituted_test(literal, reached[0]))


def _missing_fact(
    known: Known, atom: Atom, reached: list[Binding], limits: ExplainLimits, above: tuple[Atom, ...]
) -> tuple[Binding, MissingFact]:
    best: tuple[Binding, Fact | None, tuple[int, ...]] = (reached[0], None, ())
    for binding in reached[:_MISSES_COMPARED]:
        pattern = pattern_of(atom.terms, binding)
        nearest = _nearest(known, atom.predicate, pattern)
        differs = _difference(pattern, nearest)
        if nearest is not None and (best[1] is None or len(differs) < len(best[2])):
            best = (binding, nearest, differs)
    missing = substituted(atom, best[0])
    because = _explained(known, missing, limits, above) if known.is_derived(atom.predicate) else None
    return best[0], MissingFact(missing, best[1], best[2], because)


def _difference(pattern: Pattern, nearest: Fact | None) -> tuple[int, ...]:
    if nearest is None:
        return ()
    pairs = zip(pattern, nearest.values, strict=True)
    return tuple(i for i, (value, found) in enumerate(pairs) if value is not None and value != found)


def _nearest(known: Known, predicate: Predicate, pattern: Pattern) -> Fact | None:
    """A fact that agrees with the pattern in all places but one, the last if possible, else in one; None if none does.

    The first place mostly names what a fact is about, so it is let go last; a query with it bound is also cheap.
    """
    bound = [place for place, value in enumerate(pattern) if value is not None]
    kept_sets = [[place for place in bound if place != dropped] for dropped in reversed(bound)]
    kept_sets += [[place] for place in bound] if len(bound) > 2 else []
    for kept in kept_sets:
        relaxed = tuple(value if place in kept else None for place, value in enumerate(pattern))
        row = known.glance(predicate, relaxed) if kept else None
        if row is not None:
            return Fact(predicate, row)
    return None
