"""From the rules of a stratum to plans (030, evaluation): join order, semi-naive versions, early tests.

Rule: the order of a plan depends on sizes and on the text of literals, never on the order in which a rule, a program
or a fact source happens to list them; so a limit is hit the same way however the input was written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

from lace.datalog.language.formatting import format_atom, format_literal, format_rule
from lace.datalog.language.syntax import (
    Atom,
    Cardinality,
    Compare,
    Constant,
    Literal,
    Negated,
    Positive,
    Predicate,
    Rule,
    TextShape,
    Unequal,
    Variable,
)
from lace.datalog.language.terms import names_among, variable_names
from lace.datalog.planning.circles import MeetingCosts, beside, circle, grows
from lace.datalog.planning.plan import (
    CountTest,
    Filter,
    Join,
    Meet,
    Node,
    Project,
    Rank,
    RulePlan,
    Scan,
    Unit,
    Version,
    Without,
)
from lace.datalog.planning.sameobject import SameObject
from lace.datalog.planning.stratify import Stratum
from lace.values import dataclass


class Sizes(Protocol):
    """What an executor knows about its relations when a stratum starts."""

    def rows(self, scan: Scan) -> float:
        """How many facts a scan gives."""

    def distinct(self, scan: Scan, position: int) -> float:
        """How many different values a scan has at a position."""


def scan_of(atom: Atom, wanted: Set[str], version: Version = Version.ALL) -> Scan:
    """The scan of an atom: variables that nobody wants are as good as `_`, unless they repeat."""
    first: dict[str, int] = {}
    equal: list[tuple[int, int]] = []
    constants: list[tuple[int, str]] = []
    for position, term in enumerate(atom.terms):
        if isinstance(term, Constant):
            constants.append((position, term.value))
        elif isinstance(term, Variable):
            if term.name in first:
                equal.append((first[term.name], position))  # 030-TERM-06
            else:
                first[term.name] = position
    variables = tuple((position, name) for name, position in first.items() if name in wanted)
    return Scan(atom.predicate, variables, tuple(constants), tuple(equal), version)


@dataclass(slots=True)
class _Estimate:
    """What is believed about the rows built so far."""

    rows: float
    distinct: dict[str, float]

    def joined(self, scan: Scan, sizes: Sizes) -> float:
        """How many rows a join with the scan would give."""
        size = sizes.rows(scan)
        names = scan.variables
        shared = [(position, name) for position, name in names if name in self.distinct]
        if not names:
            return self.rows * min(1.0, size)
        for position, name in shared:
            size /= max(self.distinct[name], sizes.distinct(scan, position), 1.0)
        out = self.rows * size
        return min(out, self.rows) if len(shared) == len(names) else out

    def join(self, scan: Scan, sizes: Sizes, later: Collection[str]) -> None:
        """Read the scan; how many values a variable has is counted only where a later scan will ask."""
        self.rows = self.joined(scan, sizes)
        for position, name in scan.variables:
            if name not in later:
                continue
            here = sizes.distinct(scan, position)
            self.distinct[name] = min(self.distinct.get(name, here), here, max(self.rows, 1.0))


class _RulePlanner:
    """Chooses the order of one rule, greedily by the rows each step is expected to give."""

    def __init__(
        self,
        rule: Rule,
        ranks: Mapping[tuple[Predicate, int], Rank],
        sizes: Sizes,
        meeting: MeetingCosts | None = None,
    ) -> None:
        self.rule = rule
        self.ranks = ranks
        self.sizes = sizes
        self.meeting = meeting
        self.bound: set[str] = set()
        self.met: list[str] = []  # those of them that were bound by meeting, in order
        self.estimate = _Estimate(1.0, {})
        self.node: Node | None = None
        # Asked for again at each step; literals are told apart as objects, because their texts are what is expensive.
        self._scans: dict[tuple[int, Version], Scan] = {}
        self._texts: dict[int, str] = {}
        positive = [name for lit in rule.body if isinstance(lit, Positive) for name in variable_names(lit)]
        self.outer = frozenset(positive)
        self.uses = Counter(set(names_among(rule.head.terms)))  # in how many places of the rule a variable stands
        for literal in rule.body:
            self.uses.update(set(variable_names(literal)))

    def plan(self, scans: Mapping[int, Version], first: int | None) -> RulePlan:
        """A plan that reads body literal `first` first and the others in the cheapest order found."""
        atoms = {n: lit for n, lit in enumerate(self.rule.body) if isinstance(lit, Positive)}
        pending: list[Literal] = sorted(
            (lit for lit in dict.fromkeys(self.rule.body) if not isinstance(lit, Positive)), key=_test_order
        )
        pending = self._apply(pending, atoms)
        if first is not None:
            self._read(atoms.pop(first), scans.get(first, Version.ALL), atoms.values(), pending)
            pending = self._apply(pending, atoms)
        while atoms:
            pending = self._meet(scans, atoms, pending)
            best = min(atoms, key=lambda n: self._cost(atoms[n], scans.get(n, Version.ALL)), default=None)
            if best is None:
                break
            if self._reduce(best, scans, atoms, pending):
                pending = self._apply(pending, atoms)
                continue
            self._read(atoms.pop(best), scans.get(best, Version.ALL), atoms.values(), pending)
            pending = self._apply(pending, atoms)
        head = self.rule.head
        return RulePlan(self.rule, Project(self.node or Unit(), head.predicate, head.terms))

    def _meet(
        self, versions: Mapping[int, Version], atoms: dict[int, Positive], pending: list[Literal]
    ) -> list[Literal]:
        """Join what stands in a circle value by value, if joining it two atoms at a time would make many rows.

        Atoms that bind more than the circle needs stay, to be joined with what they have in common with it.
        """
        if self.meeting is None or len(atoms) + bool(self.bound) < 3:
            return pending
        scans = {n: self._scan(atoms[n], versions.get(n, Version.ALL)) for n in atoms}
        uses = Counter(name for scan in scans.values() for _, name in scan.variables)
        shared = {name for name, times in uses.items() if times > 1}.union(self.bound)
        names = {n: frozenset(name for _, name in scan.variables if name in shared) for n, scan in scans.items()}
        core = circle(names, self.bound)
        if not core:
            return pending
        of_circle = sorted(beside(core, names, self.bound), key=lambda n: str(scans[n]))
        cheapest = min(atoms, key=lambda n: self._cost(atoms[n], scans[n].version))
        known = self.estimate.rows if self.node is not None else None
        if cheapest not in of_circle and (
            known is None or self._cost(atoms[cheapest], scans[cheapest].version)[0] <= known
        ):
            return pending  # it leaves fewer rows for the circle
        met = {n: self._binding(scans[n], shared) for n in of_circle}
        if not grows([met[n] for n in of_circle if n in core], self.bound, known, self.sizes.rows, self.meeting):
            return pending
        for n in of_circle:
            if len(met[n].variables) == len(scans[n].variables):
                del atoms[n]
        left = list(dict.fromkeys(met.values()))
        while missing := sorted({name for scan in left for _, name in scan.variables} - self.bound):
            self._bind(self._next(missing, left), left, atoms.values(), pending)
            pending = self._apply(pending, atoms)
        return pending

    def _reduce(
        self, best: int, versions: Mapping[int, Version], atoms: dict[int, Positive], pending: list[Literal]
    ) -> bool:
        """Before a join that makes many rows of each: keep to values that another atom has too (Yannakakis).

        A row takes them from whichever of the two has fewer, so that a long list is not made only to be thrown away.
        """
        if self.meeting is None or self.node is None:
            return False
        scan = self._scan(atoms[best], versions.get(best, Version.ALL))
        known = [name for _, name in scan.variables if name in self.bound]
        if not known or self.estimate.joined(scan, self.sizes) <= self.meeting.growth * self.estimate.rows:
            return False
        others = {n: self._scan(atoms[n], versions.get(n, Version.ALL)) for n in atoms if n != best}
        found: list[tuple[float, str, int]] = []
        for place, name in scan.variables:
            if name in self.bound:
                continue
            for n, other in others.items():
                there = [at for at, shared in other.variables if shared == name]
                if there:
                    values = max(self.sizes.distinct(scan, place), 1.0)
                    found.append((self.sizes.distinct(other, there[0]) / values, name, n))
        share, name, partner = min(found, default=(1.0, "", -1), key=lambda each: (each[:2], str(others[each[2]])))
        if not found or share * self.meeting.growth >= 1:
            return False
        met = [self._binding(each, {*self.bound, name}) for each in (scan, others[partner])]
        for n, each, whole in ((best, met[0], scan), (partner, met[1], others[partner])):
            if len(each.variables) == len(whole.variables):
                del atoms[n]
        self._bind((name,), met, atoms.values(), pending)
        return True

    def _binding(self, scan: Scan, names: Collection[str]) -> Scan:
        """A scan that binds some of its variables only, in the order in which they come to be known."""
        order = {name: number for number, name in enumerate(self.met)}
        kept = sorted((pair for pair in scan.variables if pair[1] in names), key=lambda pair: order.get(pair[1], -1))
        return replace(scan, variables=tuple(kept))

    def _next(self, missing: Sequence[str], scans: Sequence[Scan]) -> tuple[str, ...]:
        """The variable that is bound next; all that are left, if each would have a single atom to be sought in even
        then: a fixed order would follow every way through a node that very many others know."""
        best = min(missing, key=lambda name: self._offered(name, scans))
        known = {*self.bound, best}
        beside = {name: sum(_joins(scan, name, known) for scan in scans) for name in missing if name != best}
        is_open = self._offered(best, scans)[0] == -1 and any(count < 2 for count in beside.values())
        return tuple(missing) if is_open else (best,)

    def _offered(self, name: str, scans: Sequence[Scan]) -> tuple[int, float, str]:
        """What makes a variable the next one: atoms that know others of its variables; then few values."""
        own = [scan for scan in scans if any(other == name for _, other in scan.variables)]
        known = sum(_joins(scan, name, self.bound) for scan in own)
        return -known, min(self._values(name, scan) for scan in own), name

    def _values(self, name: str, scan: Scan) -> float:
        """How many values of a variable a scan is expected to have for one row."""
        place = next(place for place, other in scan.variables if other == name)
        values = self.sizes.distinct(scan, place)
        known = [self.sizes.distinct(scan, place) for place, other in scan.variables if other in self.bound]
        return min([values, *(self.sizes.rows(scan) / max(count, 1.0) for count in known)])

    def _bind(
        self, names: Sequence[str], scans: Sequence[Scan], later: Iterable[Positive], pending: list[Literal]
    ) -> None:
        """One variable more, or several, by way of all atoms of a circle that speak of them."""
        own = [scan for scan in scans if any(other in names for _, other in scan.variables)]
        for name in names:
            here = [scan for scan in own if any(other == name for _, other in scan.variables)]
            self.estimate.rows *= min(self._values(name, scan) for scan in here)
            places = [(scan, place) for scan in here for place, other in scan.variables if other == name]
            values = [self.sizes.distinct(scan, place) for scan, place in places]
            self.bound.add(name)
            self.met.append(name)
            self.estimate.distinct[name] = min([*values, max(self.estimate.rows, 1.0)])
        needed = set(names_among(self.rule.head.terms))
        for literal in (*later, *pending):
            needed.update(variable_names(literal))
        for scan in scans:
            own_names = {other for _, other in scan.variables}
            needed.update(own_names if own_names - self.bound else ())
        bound_here = tuple(dict.fromkeys(self._binding(scan, self.bound) for scan in own))
        self.node = Meet(self.node or Unit(), tuple(names), bound_here, tuple(sorted(needed & self.bound)))

    def _scan(self, literal: Positive, version: Version) -> Scan:
        key = id(literal), version
        if key not in self._scans:
            self._scans[key] = scan_of(literal.atom, self._wanted(literal.atom), version)
        return self._scans[key]

    def _wanted(self, atom: Atom) -> frozenset[str]:
        """Variables of an atom that the rest of the rule speaks of."""
        return frozenset(name for name in names_among(atom.terms) if self.uses[name] > 1)

    def _cost(self, literal: Positive, version: Version) -> tuple[float, bool, str]:
        scan = self._scan(literal, version)
        apart = bool(scan.variables) and not any(name in self.bound for _, name in scan.variables)
        if id(literal) not in self._texts:
            self._texts[id(literal)] = format_literal(literal)
        # What is joined to nothing gives nothing, whatever its size.
        rows = self.estimate.joined(scan, self.sizes) if self.estimate.rows else 0.0
        return rows, apart, self._texts[id(literal)]

    def _read(self, literal: Positive, version: Version, later: Iterable[Positive], pending: list[Literal]) -> None:
        scan = self._scan(literal, version)
        if self.node is None:
            self.node = scan
        else:
            on = tuple(name for _, name in scan.variables if name in self.bound)
            needed = set(names_among(self.rule.head.terms))
            for other in (*later, *pending):
                needed.update(variable_names(other))
            known = dict.fromkeys([*sorted(self.bound), *(name for _, name in scan.variables)])
            self.node = Join(self.node, scan, on, tuple(name for name in known if name in needed))
        self.estimate.join(scan, self.sizes, {name for other in later for name in variable_names(other)})
        self.bound.update(name for _, name in scan.variables)

    def _apply(self, pending: list[Literal], atoms: Mapping[int, Positive]) -> list[Literal]:
        """Put every test whose variables are bound right here; give back the others."""
        left: list[Literal] = []
        for literal in pending:
            needs = {name for name in variable_names(literal) if name in self.outer}
            if needs <= self.bound and (self.node is not None or not atoms):
                self.node = self._test(self.node or Unit(), literal)
            else:
                left.append(literal)
        return left

    def _test(self, node: Node, literal: Literal) -> Node:
        match literal:
            case Negated(atom):
                scan = scan_of(atom, self.outer)
                return Without(node, scan, tuple(name for _, name in scan.variables))
            case Cardinality(atom, operator, bound):
                scan = scan_of(atom, self.outer)
                on = tuple(name for _, name in scan.variables)
                return CountTest(node, scan, on, operator, bound, self._rank(scan))
            case Unequal() | Compare() | TextShape():
                return Filter(node, literal)
            case _:
                return node  # true

    def _rank(self, scan: Scan) -> Rank | None:
        return self.ranks.get((scan.predicate, free_place(scan)))


def _joins(scan: Scan, name: str, known: Collection[str]) -> bool:
    """Whether a scan says what values a variable has beside some that are known."""
    names = {other for _, other in scan.variables}
    return name in names and not names.isdisjoint(known)


def free_place(scan: Scan) -> int:
    """The one place that a counted scan leaves free, where variables fix all others; -1 if it is not like that."""
    free = set(range(scan.predicate.arity)).difference(place for place, _ in scan.variables)
    return free.pop() if len(free) == 1 and scan.variables and not scan.constants and not scan.equal else -1


def _test_order(literal: Literal) -> tuple[int, str]:
    cheap_first = (Unequal, Compare, TextShape, Negated, Cardinality)
    rank = next((n for n, kind in enumerate(cheap_first) if isinstance(literal, kind)), len(cheap_first))
    return rank, format_literal(literal)


NO_RANKS: Mapping[tuple[Predicate, int], Rank] = {}
Ranks = Mapping[tuple[Predicate, int], Rank]


def plan_rule(rule: Rule, sizes: Sizes, ranks: Ranks = NO_RANKS, meeting: MeetingCosts | None = None) -> RulePlan:
    """The rule over whole relations."""
    return _RulePlanner(rule, ranks, sizes, meeting).plan({}, None)


def plan_from(
    rule: Rule,
    literal: int,
    versions: Mapping[int, Version],
    sizes: Sizes,
    ranks: Ranks = NO_RANKS,
    meeting: MeetingCosts | None = None,
) -> RulePlan:
    """The rule read from one positive body literal; whatever has no version is read whole."""
    return _RulePlanner(rule, ranks, sizes, meeting).plan(versions, literal)


def recursive_literals(rule: Rule, predicates: Set[Predicate]) -> list[int]:
    """The body places that read the rule's own stratum, in the order of their texts: not of how they were written."""
    places = [
        place
        for place, literal in enumerate(rule.body)
        if isinstance(literal, Positive) and literal.atom.predicate in predicates
    ]
    return sorted(places, key=lambda place: format_literal(rule.body[place]))


def sorted_rules(rules: Iterable[Rule]) -> list[Rule]:
    """Rules in an order that does not depend on how they or their atoms were written down, exact repeats dropped."""
    return sorted(dict.fromkeys(rules), key=_rule_order)


@lru_cache(maxsize=1024)
def _sorted_once(same: SameObject[Stratum]) -> tuple[Rule, ...]:
    """The sorted rules of a stratum that may be planned many times."""
    return tuple(sorted_rules(same.value.rules))


def _rule_order(rule: Rule) -> tuple[str, list[str], str]:
    return format_atom(rule.head), sorted(map(format_literal, rule.body)), format_rule(rule)


def plan_start(
    stratum: Stratum, sizes: Sizes, ranks: Ranks = NO_RANKS, meeting: MeetingCosts | None = None
) -> tuple[RulePlan, ...]:
    """The first round: rules that read nothing of their own stratum (all of it is still empty)."""
    own = frozenset(stratum.predicates)
    return tuple(
        plan_rule(rule, sizes, ranks, meeting)
        for rule in _sorted_once(SameObject(stratum))
        if not recursive_literals(rule, own)
    )


def plan_rounds(
    stratum: Stratum, sizes: Sizes, ranks: Ranks = NO_RANKS, meeting: MeetingCosts | None = None
) -> tuple[RulePlan, ...]:
    """Semi-naive variants: one per recursive literal; those before it see all facts, those after it the old ones."""
    own = frozenset(stratum.predicates)
    plans: list[RulePlan] = []
    for rule in _sorted_once(SameObject(stratum)):
        places = recursive_literals(rule, own)
        for at, place in enumerate(places):
            versions = {n: Version.OLD if later > at else Version.ALL for later, n in enumerate(places)}
            versions[place] = Version.DELTA
            plans.append(_RulePlanner(rule, ranks, sizes, meeting).plan(versions, place))
    return tuple(plans)
