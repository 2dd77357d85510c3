"""The phases of a conversation: which items belong to which, on both sides, in each loop (050).

Rule: an item belongs to a phase by what it says. Both sides talk at once, so each has a place of its own; what they say
in the same phase of the same loop stands together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from lace.interlace.vocabulary import Block

Item = dict[str, Any]


class Phase(IntEnum):
    """What both sides do at the same time, in order."""

    RULES = 0
    PLAN = 1
    OFFERS = 2
    REQUESTS = 3
    RECORDS = 4
    CLOSE = 5

    @property
    def title(self) -> str:
        """What a page calls it."""
        return _TITLES[self]

    @property
    def told(self) -> str:
        """What happens in it, in a sentence."""
        return _TOLD[self]


LOOPED = frozenset({Phase.OFFERS, Phase.REQUESTS, Phase.RECORDS})
_TITLES = {
    Phase.RULES: "Rules",
    Phase.PLAN: "Plan",
    Phase.OFFERS: "Offers",
    Phase.REQUESTS: "Requests",
    Phase.RECORDS: "Records",
    Phase.CLOSE: "Close",
}
_TOLD = {
    Phase.RULES: "Each side says by which rules it goes.",
    Phase.PLAN: "Both computed the same plan, or they stop here.",
    Phase.OFFERS: "Each side lists what it would send, or sums it up.",
    Phase.REQUESTS: "Each side asks for what its rules want.",
    Phase.RECORDS: "The records that were asked for, or why not.",
    Phase.CLOSE: "Neither side wants more.",
}


def _names(*blocks: Block) -> frozenset[str]:
    return frozenset(predicate.name for block in blocks for predicate in block.value)


_OFFERS = _names(Block.LISTING, Block.SELECTION, Block.ANSWER, Block.SYMBOLS, Block.REPLY, Block.TOLD)
_BY_NAME = {
    **dict.fromkeys(_names(Block.REQUEST), Phase.REQUESTS),
    **dict.fromkeys(_names(Block.AVAILABILITY), Phase.RECORDS),
    **dict.fromkeys(_OFFERS, Phase.OFFERS),
    **dict.fromkeys(_names(Block.HELLO), Phase.PLAN),
    **dict.fromkeys(_names(Block.SETUP), Phase.RULES),
}
_BY_KIND = {"preface": Phase.RULES, "resource": Phase.RULES, "record": Phase.RECORDS, "close": Phase.CLOSE}
_IN_SEVERAL = frozenset({"Refused", "DifferenceDrop", "TickReady"})  # they belong to the phase they are said in


class Placed(NamedTuple):
    """An item, its number in the conversation, and where it belongs."""

    number: int
    item: Item
    loop: int
    phase: Phase


class Follower:
    """The way of both sides through the phases."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, Phase]] = {"in": (1, Phase.RULES), "out": (1, Phase.RULES)}
        self._moved = 0  # the last loop in which records passed; who offers after that begins the next

    def place(self, item: Item) -> tuple[int, Phase]:
        """Where an item belongs. A side that goes back to an earlier phase begins a loop."""
        loop, phase = self._places[item["way"]]
        found = _phase_of(item)
        if found is Phase.CLOSE:
            loop = max(before for before, _ in self._places.values())
        elif found is not None and (found < phase or (found is Phase.OFFERS and loop == self._moved)):
            loop += 1
        if item["kind"] == "record":
            self._moved = max(self._moved, loop)
        self._places[item["way"]] = loop, phase if found is None else found
        return self._places[item["way"]]


def _phase_of(item: Item) -> Phase | None:
    if (found := _BY_KIND.get(item["kind"])) is not None:
        return found
    if item["kind"] != "facts":
        return None  # the end of a block, a comment, a fault: they belong to what was said before
    names = [line.partition("(")[0] for line in item["lines"]]
    return next((_BY_NAME[name] for name in names if name in _BY_NAME and name not in _IN_SEVERAL), None)


def placed(items: Iterable[Item], first: int = 0) -> list[Placed]:
    """Each item with its phase; `first` is the number of the first one."""
    follower = Follower()
    return [Placed(number, item, *follower.place(item)) for number, item in enumerate(items, first)]


class Step(NamedTuple):
    """One phase of one loop, with what was said in it."""

    loop: int
    phase: Phase
    said: Sequence[Placed]


def steps(found: Iterable[Placed]) -> list[Step]:
    """The phases in order, each with both sides' items by time."""
    together: dict[tuple[int, Phase], list[Placed]] = {}
    for one in found:
        together.setdefault((one.loop, one.phase), []).append(one)
    return [Step(loop, phase, together[loop, phase]) for loop, phase in sorted(together)]
