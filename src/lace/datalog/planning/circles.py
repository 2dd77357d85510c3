"""Atoms that go round in a circle: where a join of two relations at a time may make far more rows than the rule (030).

Rule: a body without a circle is joined atom by atom; one with a circle only where that is expected to make many more
rows than the atoms have. Which of the two depends on sizes and on the text of literals, never on their order.

A circle is what is left of a body when ears are taken off (Graham, Yu, Özsoyoğlu): a variable that one atom alone
has, and an atom all of whose variables another one has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

from lace.datalog.planning.plan import Scan
from lace.values import dataclass

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class MeetingCosts:
    """When to meet instead of joining, and what tells how a join grows."""

    growth: float  # rows that a join makes of one of its atoms: from here on
    crowd: Callable[[Scan, int], float]  # how many rows have the value of a row picked at random


def circle(atoms: Mapping[int, Names], bound: Collection[str]) -> frozenset[int]:
    """The atoms that stand in a circle, those of the known variables taken as one atom more."""
    left = {**{number: set(names) for number, names in atoms.items()}, -1: set(bound)}
    changed = True
    while changed:
        changed = False
        uses = Counter(name for names in left.values() for name in names)
        for names in left.values():
            alone = {name for name in names if uses[name] == 1}
            if alone:
                names -= alone
                changed = True
        for number in sorted(left, reverse=True):  # what is known goes last
            if any(left[number] <= left[other] for other in left if other != number):
                del left[number]
                changed = True
                break
    found = frozenset(left) - {-1}
    return found if len(found) > 1 else frozenset()


def beside(core: Collection[int], atoms: Mapping[int, Names], bound: Collection[str]) -> frozenset[int]:
    """The atoms of a circle, and those that say something of its variables alone."""
    names = {name for number in core for name in atoms[number]}.union(bound)
    return frozenset(number for number, own in atoms.items() if own <= names and own.difference(bound))


def grows(
    scans: Sequence[Scan], bound: Collection[str], known: float | None, sizes: SizesOf, costs: MeetingCosts
) -> bool:
    """Whether joining a circle two atoms at a time is expected to make many times the rows of its atoms.

    `known` rows were built so far, if any: then the circle is joined to each of them.
    """
    rows, names, left = known or 1.0, set(bound), list(scans)
    allowed = costs.growth * (known if known is not None else sum(map(sizes, scans)))
    while left:
        made = {id(scan): _joined(rows, scan, names, sizes, costs) for scan in left}
        best = min(left, key=lambda scan: (made[id(scan)], str(scan)))
        rows = made[id(best)]
        if rows > allowed:
            return True
        names.update(name for _, name in best.variables)
        left.remove(best)
    return False


SizesOf = Callable[[Scan], float]


def _joined(rows: float, scan: Scan, names: Collection[str], sizes: SizesOf, costs: MeetingCosts) -> float:
    """How many rows a join would make if popular values are as popular on both sides."""
    met = [place for place, name in scan.variables if name in names]
    if not met:
        return rows * sizes(scan)
    if len(met) == len(scan.variables):
        return rows
    return rows * min(costs.crowd(scan, place) for place in met)
