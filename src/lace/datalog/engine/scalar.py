"""Plans row by row (030, incremental evaluation): for changes so small that a column is not worth setting up.

Rule: the same plan nodes as the column executor, turned into a chain of calls; each call extends one assignment and
hands it on. Every way through is followed to its end, so that what is counted does not depend on the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import assert_never

from lace.datalog.engine.dictionary import Dictionary
from lace.datalog.engine.row_lookup import RowLookup, Visibility
from lace.datalog.engine.runs import CodeRow
from lace.datalog.engine.table import Table
from lace.datalog.engine.verdicts import Verdicts, holds
from lace.datalog.language.comparisons import cardinality_holds
from lace.datalog.language.syntax import Constant, Operator, Predicate, Term, Variable
from lace.datalog.language.terms import variable_names
from lace.datalog.meter import Meter
from lace.datalog.planning.plan import (
    CountTest,
    Filter,
    Join,
    Meet,
    Rank,
    RulePlan,
    Scan,
    Test,
    Version,
    Without,
    chain,
)
from lace.values import dataclass

Assignment = list[int]
Step = Callable[[Assignment], None]
CountOf = Callable[[Rank, int], int]
_KEPT_VERDICTS = 1024  # of a count test, by count


class TooManyRows(Exception):
    """Too many rows to go on row by row."""


class ScalarRule:
    """A plan that starts from single rows of its first scan."""

    def __init__(self, compiler: ScalarCompiler, plan: RulePlan, visibility: Visibility) -> None:
        start, *nodes = chain(plan.root)
        assert isinstance(start, Scan)
        self._slots: dict[str, int] = {}
        self._receiver: list[dict[CodeRow, None]] = [{}]  # of the rows of a run: the steps hold it, and not the rule
        self._constants = [(n, compiler.dictionary.code(text)) for n, text in start.constants]
        self._equal = start.equal
        self._taken = [(n, self._slot(name)) for n, name in start.variables]
        step = self._project(compiler, plan.root.terms)
        for node in reversed(nodes[:-1]):
            assert isinstance(node, Join | Meet | Without | CountTest | Filter)
            step = compiler.step(node, self._slot, step, visibility)
        self._step = step
        self._width = len(self._slots)

    def _slot(self, name: str) -> int:
        return self._slots.setdefault(name, len(self._slots))

    def _project(self, compiler: ScalarCompiler, terms: tuple[Term, ...]) -> Step:
        codes = [compiler.dictionary.code(t.value) if isinstance(t, Constant) else -1 for t in terms]
        slots = [self._slot(t.name) if isinstance(t, Variable) else -1 for t in terms]
        parts = list(zip(codes, slots, strict=True))
        receiver = self._receiver

        def project(values: Assignment) -> None:
            receiver[0][tuple([values[slot] if slot >= 0 else code for code, slot in parts])] = None

        return project

    def run(self, row: CodeRow, found: dict[CodeRow, None]) -> None:
        """Put every head row that a starting row leads to among those found."""
        for n, code in self._constants:
            if row[n] != code:
                return
        for first, second in self._equal:
            if row[first] != row[second]:
                return
        values = [0] * self._width
        for n, slot in self._taken:
            values[slot] = row[n]
        self._receiver[0] = found
        self._step(values)


@dataclass(frozen=True, slots=True)
class _Way:
    """One of the atoms that a variable is sought in."""

    offering: RowLookup  # by what is known
    whole: RowLookup  # by that and the value
    keys: list[int]  # the slots of what is known
    place: int  # of the variable in its rows
    visibility: Visibility


@dataclass(frozen=True, slots=True)
class _Choice:
    """A variable that may be bound next."""

    target: int  # its slot
    ways: list[_Way]
    further: Step
    single: bool  # one value is as good as many

    def offered(self, values: Assignment) -> tuple[int, _Choice, int, list[CodeRow]]:
        """How many values it has at most, and where: which way, and the keys of all."""
        keys = [tuple([values[k] for k in way.keys]) for way in self.ways]
        sizes = [way.offering.size(key) for way, key in zip(self.ways, keys, strict=True)]
        fewest = min(sizes)
        return fewest, self, sizes.index(fewest), keys


_OFFERED = itemgetter(0)


class ScalarCompiler:
    """Makes calls out of plan nodes."""

    def __init__(
        self,
        table: Callable[[Predicate], Table],
        dictionary: Dictionary,
        verdicts: Verdicts,
        count_of: CountOf,
        meter: Meter,
    ) -> None:
        self._table = table
        self.dictionary = dictionary
        self._verdicts = verdicts
        self.count_of = count_of
        self._meter = meter
        self.left: int = 0  # rows that may still be followed

    def _follow(self, rows: int) -> None:
        if rows > self.left:
            self._meter.follow(self.left)  # so that giving up costs the same in whatever order rows came
            raise TooManyRows
        self.left -= rows
        self._meter.follow(rows)

    def step(
        self,
        node: Join | Meet | Without | CountTest | Filter,
        slot: Callable[[str], int],
        follow: Step,
        visibility: Visibility,
    ) -> Step:
        """The call for one node."""
        match node:
            case Join():
                return self._join(node, slot, follow, visibility)
            case Meet():
                return self._meet(node, slot, follow, visibility)
            case Without():
                return self._without(node, slot, follow)
            case CountTest():
                return self._count_test(node, slot, follow)
            case Filter():
                return self._filter(node.test, slot, follow)
            case _:
                assert_never(node)

    def _lookup(self, scan: Scan, on: tuple[str, ...], slot: Callable[[str], int]) -> tuple[RowLookup, list[int]]:
        places = {name: place for place, name in scan.variables}
        constants = tuple((n, self.dictionary.code(text)) for n, text in scan.constants)
        lookup = self._table(scan.predicate).lookup((constants, scan.equal), tuple(places[name] for name in on))
        lookup.prepare()
        return lookup, [slot(name) for name in on]

    def _join(self, node: Join, slot: Callable[[str], int], follow: Step, visibility: Visibility) -> Step:
        lookup, keys = self._lookup(node.scan, node.on, slot)
        binds = [(place, slot(name)) for place, name in node.binds]
        if node.scan.version is Version.OLD:
            visibility = Visibility.STOOD

        def join(values: Assignment) -> None:
            found = lookup.find(tuple([values[k] for k in keys]), visibility)
            self._follow(len(found) + 1)
            for row in found:
                for place, target in binds:
                    values[target] = row[place]
                follow(values)
                if not binds:
                    return  # one match is as good as many

        return join

    def _meet(self, node: Meet, slot: Callable[[str], int], follow: Step, visibility: Visibility) -> Step:
        return self._met(node, frozenset(node.known), node.names, slot, follow, visibility)

    def _met(
        self,
        node: Meet,
        known: frozenset[str],
        names: tuple[str, ...],
        slot: Callable[[str], int],
        follow: Step,
        visibility: Visibility,
    ) -> Step:
        """Bind some variables, each assignment beginning with the one that has the fewest values."""
        if not names:
            return follow
        choices: list[_Choice] = []
        own = [{other for _, other in scan.variables} for scan in node.scans]
        near = [name for name in names if any(name in mine and not mine.isdisjoint(known) for mine in own)]
        for name in near or names:
            rest = tuple(other for other in names if other != name)
            ways = [
                self._way(scan, known, name, slot, visibility)
                for scan in node.scans
                if any(other == name for _, other in scan.variables)
            ]
            further = self._met(node, known | {name}, rest, slot, follow, visibility)
            choices.append(_Choice(slot(name), ways, further, single=not rest and name not in node.keep))

        def meet(values: Assignment) -> None:
            best = min((choice.offered(values) for choice in choices), key=_OFFERED)
            _, choice, fewest, keys = best
            way = choice.ways[fewest]
            self._follow(best[0] + 1)
            offered = dict.fromkeys([row[way.place] for row in way.offering.find(keys[fewest], way.visibility)])
            others = [(choice.ways[n], key) for n, key in enumerate(keys) if n != fewest]
            for value in offered:
                if all(other.whole.find((*key, value), other.visibility) for other, key in others):
                    values[choice.target] = value
                    choice.further(values)
                    if choice.single:
                        return  # one value is as good as many

        return meet

    def _way(
        self, scan: Scan, bound: frozenset[str], name: str, slot: Callable[[str], int], visibility: Visibility
    ) -> _Way:
        known = tuple(other for _, other in scan.variables if other in bound)
        offering, keys = self._lookup(scan, known, slot)
        whole, _ = self._lookup(scan, (*known, name), slot)
        place = next(place for place, other in scan.variables if other == name)
        seen = Visibility.STOOD if scan.version is Version.OLD else visibility
        return _Way(offering, whole, keys, place, seen)

    def _without(self, node: Without, slot: Callable[[str], int], follow: Step) -> Step:
        lookup, keys = self._lookup(node.scan, node.on, slot)

        def without(values: Assignment) -> None:
            found = lookup.find(tuple([values[k] for k in keys]), Visibility.NEW)
            self._follow(len(found) + 1)
            if not found:
                follow(values)

        return without

    def _count_test(self, node: CountTest, slot: Callable[[str], int], follow: Step) -> Step:
        bound, operator = node.bound, node.operator
        bound_slot = slot(bound.name) if isinstance(bound, Variable) else -1
        count = self._counter(node, slot)
        if isinstance(bound, Constant):
            return self._fixed_count_test(count, operator, bound.value, follow)

        def count_test(values: Assignment) -> None:
            if cardinality_holds(count(values), operator, self.dictionary.text(values[bound_slot])):
                follow(values)

        return count_test

    def _fixed_count_test(
        self, count: Callable[[Assignment], int], operator: Operator, bound: str, follow: Step
    ) -> Step:
        """Counts stay close to each other while facts come and go, so what was said of one is kept."""
        said: dict[int, bool] = {}

        def fixed_count_test(values: Assignment) -> None:
            number = count(values)
            holds_now = said.get(number)
            if holds_now is None:
                if len(said) >= _KEPT_VERDICTS:
                    said.clear()
                holds_now = said[number] = cardinality_holds(number, operator, bound)
            if holds_now:
                follow(values)

        return fixed_count_test

    def _counter(self, node: CountTest, slot: Callable[[str], int]) -> Callable[[Assignment], int]:
        rank = node.rank
        if rank is not None:
            place = slot(node.identity)

            def ranked(values: Assignment) -> int:
                self._follow(1)
                return self.count_of(rank, values[place])

            return ranked
        lookup, keys = self._lookup(node.scan, node.on, slot)

        def count(values: Assignment) -> int:
            found = lookup.count(tuple([values[k] for k in keys]))
            self._follow(found + 1)
            return found

        return count

    def _filter(self, test: Test, slot: Callable[[str], int], follow: Step) -> Step:
        names = sorted(set(variable_names(test)))
        if len(names) == 1:
            place, judged = slot(names[0]), self._verdicts.judged(test)

            def filter_one(values: Assignment) -> None:
                if judged.one(values[place]):
                    follow(values)

            return filter_one
        slots = {name: slot(name) for name in names}

        def value(term: Term, values: Assignment) -> str:
            if isinstance(term, Variable):
                return self.dictionary.text(values[slots[term.name]])
            assert isinstance(term, Constant)
            return term.value

        def filter_several(values: Assignment) -> None:
            if holds(test, lambda term: value(term, values)):
                follow(values)

        return filter_several
