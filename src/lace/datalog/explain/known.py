"""The facts that an explanation reads: base facts by query, derived facts from the evaluation that derives them.

Rule: nothing is scanned that a bound value can find, and nothing derived that no step of the explanation asks for. That
something does not hold, or how often it does, is said only of facts that are known completely (`rows`); what a proof
stands on may be any facts that stand on each other (`support`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from lace.datalog.binding import Binding, match, value_of
from lace.datalog.language.comparisons import cardinality_holds, compare, text_shape
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
    Term,
    TextShape,
    Unequal,
    Variable,
)
from lace.datalog.language.terms import literal_terms
from lace.datalog.language.validate import CheckedProgram, variables
from lace.datalog.planning.stratify import read_atom
from lace.datalog.source import FactSource, Row
from lace.errors import EvaluationStopped
from lace.notation.stopping import Interrupt, never

Pattern = tuple[str | None, ...]
Trail = tuple["Trail", Row | None] | None  # the row each literal so far took, the last one first


class DerivedFacts(Protocol):
    """Something that derives facts for an explanation."""

    def first(self, goal: Atom) -> Row | None:
        """The fact that matches a goal and comes first in text order."""

    def rows(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """Every fact of a derived predicate that has the given values."""

    def found(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """Facts that have the given values; with each of them all that one derivation of it stands on."""

    def glance(self, predicate: Predicate, pattern: Pattern) -> Row | None:
        """A fact that has the given values if one is easily found."""

    def prepare(self, predicate: Predicate, patterns: Iterable[Pattern]) -> None:
        """These patterns are asked for next."""


class Known:
    """Everything that holds: a snapshot's base facts and what an executor derives from them."""

    def __init__(
        self,
        checked: CheckedProgram,
        source: FactSource,
        derived: DerivedFacts,
        *,
        index_after: int = 64,
        max_indexed_rows: int = 1 << 19,
        interrupt: Interrupt = never,
    ) -> None:
        self._interrupt = interrupt
        self.checked = checked
        self.rules: dict[Predicate, list[Rule]] = {predicate: [] for predicate in checked.derived}
        for stratum in checked.strata:
            for rule in stratum.rules:
                self.rules[rule.head.predicate].append(rule)
        self._source = source
        self._derived = derived
        self._index_after = index_after  # a small base predicate asked so often is worth an index of its own
        self._max_indexed_rows = max_indexed_rows
        self._asked: Counter[Predicate] = Counter()
        self._indexes: dict[Predicate, RowIndex] = {}
        self._orders: dict[tuple[int, frozenset[str]], list[int]] = {}  # by rule (they live as long as the program)

    def is_derived(self, predicate: Predicate) -> bool:
        """Whether rules, and not the snapshot, say what holds."""
        return predicate in self.rules

    def first(self, goal: Atom) -> Row | None:
        """The first fact that matches a goal."""
        if goal.predicate in self.rules:
            return self._derived.first(goal)
        return min(self.matches(goal, {}), default=None)

    def rows(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """The facts of a predicate that have the given values; None is free."""
        if self._interrupt():
            raise EvaluationStopped(f"stopped from outside while explaining, at {predicate}")
        if predicate in self.rules:
            return self._derived.rows(predicate, pattern)
        index = self._indexes.get(predicate)
        if index is None:
            self._asked[predicate] += 1
            often = self._asked[predicate] > self._index_after
            if not often or self._source.count(predicate) > self._max_indexed_rows:
                return self._source.query(predicate, *pattern)
            index = self._indexes[predicate] = RowIndex(self._source.iterate(predicate))
        return index.find(pattern)

    def support(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """Facts enough to prove whatever was derived so far."""
        derived = predicate in self.rules
        return self._derived.found(predicate, pattern) if derived else self.rows(predicate, pattern)

    def glance(self, predicate: Predicate, pattern: Pattern) -> Row | None:
        """A fact that has the given values if one is easily found."""
        derived = predicate in self.rules
        return self._derived.glance(predicate, pattern) if derived else next(self.rows(predicate, pattern), None)

    def prepare(self, literal: Literal, bindings: Iterable[Binding]) -> None:
        """A literal is tested under these bindings next."""
        read = read_atom(literal)
        if read is not None and read[0].predicate in self.rules:
            patterns = (pattern_of(read[0].terms, binding) for binding in bindings)
            self._derived.prepare(read[0].predicate, patterns)

    def size(self, predicate: Predicate) -> int:
        """About how many facts a predicate has, for choosing an order; what has to be derived counts as many."""
        return 1 << 31 if predicate in self.rules else self._source.count(predicate)

    def holds(self, fact: Fact) -> bool:
        """Whether a fact is there."""
        return next(self.rows(fact.predicate, fact.values), None) is not None

    def matches(self, atom: Atom, binding: Binding) -> Iterator[Row]:
        """The facts that an atom reads under a binding."""
        for row in self.rows(atom.predicate, pattern_of(atom.terms, binding)):
            if match(atom, row, binding) is not None:
                yield row

    def order(self, rule: Rule, binding: Mapping[str, str]) -> list[int]:
        """The body's places in an order that reads little and tells much: builtins as early as they can stand, the
        atom of which most is known, and what negates or counts at the end."""
        key = (id(rule), frozenset(binding))
        found = self._orders.get(key)
        if found is None:
            found = self._orders[key] = _ordered(self, rule, set(binding))
        return found


class RowIndex:
    """Rows by the values at whatever positions are asked for."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.rows: Sequence[Row] = sorted(rows)
        self._by: dict[tuple[int, ...], dict[Row, list[Row]]] = {}

    def find(self, pattern: Pattern) -> Iterator[Row]:
        positions = tuple(i for i, value in enumerate(pattern) if value is not None)
        if not positions:
            return iter(self.rows)
        table = self._by.get(positions)
        if table is None:
            table = self._by[positions] = {}
            for row in self.rows:
                table.setdefault(tuple(row[i] for i in positions), []).append(row)
        return iter(table.get(tuple(value for value in pattern if value is not None), ()))


def bind_head(rule: Rule, pattern: Pattern) -> Binding | None:
    """The binding under which a rule's head has the given values, or None."""
    binding: Binding = {}
    for term, value in zip(rule.head.terms, pattern, strict=True):
        if value is None:
            continue
        if isinstance(term, Constant) and term.value != value:
            return None
        if isinstance(term, Variable) and binding.setdefault(term.name, value) != value:
            return None
    return binding


def pattern_of(terms: Iterable[Term], binding: Mapping[str, str]) -> Pattern:
    """What is known of the values of terms."""
    return tuple(
        term.value if isinstance(term, Constant) else binding.get(term.name) if isinstance(term, Variable) else None
        for term in terms
    )


def _ordered(known: Known, rule: Rule, bound: set[str]) -> list[int]:
    positive = [literal.atom for literal in rule.body if isinstance(literal, Positive)]
    bindable = {name for atom in positive for name in variables(atom.terms)}
    rest = list(range(len(rule.body)))
    order: list[int] = []
    while rest:
        place = min(rest, key=lambda place: _cost(known, rule.body[place], bound, bindable))
        rest.remove(place)
        order.append(place)
        literal = rule.body[place]
        if isinstance(literal, Positive):
            bound.update(variables(literal.atom.terms))
    return order


def _cost(known: Known, literal: Literal, bound: set[str], bindable: set[str]) -> tuple[int, int, int]:
    if not isinstance(literal, Positive):
        ready = (variables(literal_terms(literal)).keys() & bindable) <= bound
        reads = isinstance(literal, Negated | Cardinality)
        return (4 if not ready else 3 if reads else 0), 0, 0
    free = sum(
        not isinstance(term, Constant) and getattr(term, "name", None) not in bound for term in literal.atom.terms
    )
    touching = free < literal.atom.predicate.arity
    return (1 if touching else 2), free, known.size(literal.atom.predicate)


def supports(
    known: Known, literals: Sequence[Literal], binding: Binding
) -> Iterator[tuple[Binding, tuple[Row | None, ...]]]:
    """Every binding under which all literals hold by facts derived so far, with the row that each positive one took.

    Depth first, on a list: a proof may be deeper than Python's stack.
    """
    stack: list[Iterator[tuple[Binding, Trail]]] = [iter([(binding, None)])]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
        elif len(stack) > len(literals):
            yield found[0], _rows_of(found[1])
        else:
            stack.append(_extended(known, literals[len(stack) - 1], *found))


def _extended(known: Known, literal: Literal, binding: Binding, trail: Trail) -> Iterator[tuple[Binding, Trail]]:
    for extended, row in extend(known, literal, binding, known.support):
        yield extended, (trail, row)


def _rows_of(trail: Trail) -> tuple[Row | None, ...]:
    rows: list[Row | None] = []
    while trail is not None:
        trail, row = trail
        rows.append(row)
    return tuple(reversed(rows))


def extend(
    known: Known, literal: Literal, binding: Binding, rows_of: Callable[[Predicate, Pattern], Iterator[Row]]
) -> Iterator[tuple[Binding, Row | None]]:
    """The ways in which a literal holds under a binding, a positive one by rows from `rows_of`."""
    if isinstance(literal, Positive):
        for row in rows_of(literal.atom.predicate, pattern_of(literal.atom.terms, binding)):
            extended = match(literal.atom, row, binding)
            if extended is not None:
                yield extended, row
    elif test_holds(known, literal, binding):
        yield binding, None


def test_holds(known: Known, literal: Literal, binding: Binding) -> bool:
    """Whether a literal that binds nothing is true."""
    match literal:
        case Negated(atom):
            return next(known.matches(atom, binding), None) is None
        case Cardinality(atom, operator, bound):
            count = sum(1 for _ in known.matches(atom, binding))
            return cardinality_holds(count, operator, value_of(bound, binding))
        case Unequal(left, right):
            return value_of(left, binding) != value_of(right, binding)
        case Compare(kind, left, operator, right):
            return compare(kind, value_of(left, binding), operator, value_of(right, binding))
        case TextShape(text, start, delimiters, end):
            parts = (value_of(text, binding), value_of(start, binding), delimiters, value_of(end, binding))
            return text_shape(*parts)
        case _:
            return True
