"""The facts that an explanation reads: base facts by query, derived facts by index.

Rule: nothing is scanned that a bound value can find. A predicate that is read only inside `Cardinality` is not
materialised (P31): its facts for a pattern are worked out from its rules when they are asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from lace.datalog.binding import Binding, match, value_of
from lace.datalog.comparisons import cardinality_holds, compare, text_shape
from lace.datalog.source import FactSource, MemorySource, Row
from lace.datalog.stratify import read_atom
from lace.datalog.syntax import (
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
from lace.datalog.terms import literal_terms
from lace.datalog.validate import CheckedProgram, variables

Pattern = tuple[str | None, ...]
Trail = tuple["Trail", Row | None] | None  # the row each literal so far took, the last one first


class Known:
    """Everything that holds: a snapshot's base facts and what an executor derived from them."""

    def __init__(
        self,
        checked: CheckedProgram,
        source: FactSource,
        derived: Callable[[Predicate], Iterable[Row]],
        *,
        index_after: int = 64,
        max_indexed_rows: int = 1 << 19,
    ) -> None:
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
        self._indexes: dict[Predicate, _Index] = {}
        self._on_demand = _counted_only(checked)
        self._orders: dict[tuple[int, frozenset[str]], list[int]] = {}  # by rule (they live as long as the program)

    def is_derived(self, predicate: Predicate) -> bool:
        """Whether rules, and not the snapshot, say what holds."""
        return predicate in self.rules

    def rows(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        """The facts of a predicate that have the given values; None is free."""
        if predicate in self._on_demand:
            return self._worked_out(predicate, pattern)
        index = self._indexes.get(predicate)
        if index is None and self._is_better_queried(predicate):
            return self._source.query(predicate, *pattern)
        if index is None:
            rows = self._derived(predicate) if predicate in self.rules else self._source.iterate(predicate)
            index = self._indexes[predicate] = _Index(rows)
        return index.find(pattern)

    def _is_better_queried(self, predicate: Predicate) -> bool:
        if predicate in self.rules or isinstance(self._source, MemorySource):
            return False
        self._asked[predicate] += 1
        return self._asked[predicate] <= self._index_after or self._source.count(predicate) > self._max_indexed_rows

    def size(self, predicate: Predicate) -> int:
        """About how many facts a predicate has, for choosing an order; what is worked out on demand counts as many."""
        if predicate in self._on_demand:
            return 1 << 62
        if predicate not in self.rules:
            return self._source.count(predicate)
        return len(self._indexes[predicate].rows) if predicate in self._indexes else 1 << 31

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

    def _worked_out(self, predicate: Predicate, pattern: Pattern) -> Iterator[Row]:
        found: set[Row] = set()
        for rule in self.rules[predicate]:
            binding = bind_head(rule, pattern)
            if binding is None:
                continue
            literals = [rule.body[place] for place in self.order(rule, binding)]
            for solution, _ in solutions(self, literals, binding):
                row = tuple(value_of(term, solution) for term in rule.head.terms)
                if row not in found:
                    found.add(row)
                    yield row


class _Index:
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


def _counted_only(checked: CheckedProgram) -> frozenset[Predicate]:
    """Derived predicates, not recursive, that no positive or negated atom reads and some cardinality test counts."""
    read: dict[str, set[Predicate]] = {"positive": set(), "negative": set(), "counted": set()}
    for rule in checked.program.rules:
        for literal in rule.body:
            found = read_atom(literal)
            if found is not None:
                read[found[1]].add(found[0].predicate)
    recursive = {predicate for stratum in checked.strata if stratum.recursive for predicate in stratum.predicates}
    return frozenset((read["counted"] & checked.derived) - read["positive"] - read["negative"] - recursive)


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


def solutions(
    known: Known, literals: Sequence[Literal], binding: Binding
) -> Iterator[tuple[Binding, tuple[Row | None, ...]]]:
    """Every binding under which all literals hold, with the row that each positive one took; depth first, on a list."""
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
    for extended, row in extend(known, literal, binding):
        yield extended, (trail, row)


def _rows_of(trail: Trail) -> tuple[Row | None, ...]:
    rows: list[Row | None] = []
    while trail is not None:
        trail, row = trail
        rows.append(row)
    return tuple(reversed(rows))


def extend(known: Known, literal: Literal, binding: Binding) -> Iterator[tuple[Binding, Row | None]]:
    """The ways in which a literal holds under a binding."""
    if isinstance(literal, Positive):
        for row in known.rows(literal.atom.predicate, pattern_of(literal.atom.terms, binding)):
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
