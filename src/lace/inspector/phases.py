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


class TalkPhase(IntEnum):
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


LOOPED = frozenset({TalkPhase.OFFERS, TalkPhase.REQUESTS, TalkPhase.RECORDS})
_TITLES = {
    TalkPhase.RULES: "Rules",
    TalkPhase.PLAN: "Plan",
    TalkPhase.OFFERS: "Offers",
    TalkPhase.REQUESTS: "Requests",
    TalkPhase.RECORDS: "Records",
    TalkPhase.CLOSE: "Close",
}
_TOLD = {
    TalkPhase.RULES: "Each side says by which rules it goes.",
    TalkPhase.PLAN: "Both computed the same plan, or they stop here.",
    TalkPhase.OFFERS: "Each side lists what it would send, or sums it up.",
    TalkPhase.REQUESTS: "Each side asks for what its rules want.",
    TalkPhase.RECORDS: "The records that were asked for, or why not.",
    TalkPhase.CLOSE: "Neither side wants more.",
}


def _names(*blocks: Block) -> frozenset[str]:
    return frozenset(predicate.name for block in blocks for predicate in block.value)


_OFFERS = _names(Block.LISTING, Block.SELECTION, Block.ANSWER, Block.SYMBOLS, Block.REPLY, Block.TOLD)
_BY_NAME = {
    **dict.fromkeys(_names(Block.REQUEST), TalkPhase.REQUESTS),
    **dict.fromkeys(_names(Block.AVAILABILITY), TalkPhase.RECORDS),
    **dict.fromkeys(_OFFERS, TalkPhase.OFFERS),
    **dict.fromkeys(_names(Block.HELLO), TalkPhase.PLAN),
    **dict.fromkeys(_names(Block.SETUP), TalkPhase.RULES),
}
_BY_KIND = {
    "preface": TalkPhase.RULES,
    "resource": TalkPhase.RULES,
    "record": TalkPhase.RECORDS,
    "close": TalkPhase.CLOSE,
}
_IN_SEVERAL = frozenset({"Refused", "DifferenceDrop", "TickReady"})  # they belong to the phase they are said in


class Placed(NamedTuple):
    """An item, its number in the conversation, and where it belongs."""

    number: int
    item: Item
    loop: int
    phase: TalkPhase


class PhaseFollower:
    """The way of both sides through the phases."""

    def __init__(self) -> None:
        self._places: dict[str, tuple[int, TalkPhase]] = {"in": (1, TalkPhase.RULES), "out": (1, TalkPhase.RULES)}
        self._moved = 0  # the last loop in which records passed; who offers after that begins the next

    def place(self, item: Item) -> tuple[int, TalkPhase]:
        """Where an item belongs. A side that goes back to an earlier phase begins a loop."""
        loop, phase = self._places[item["way"]]
        found = _phase_of(item)
        if found is TalkPhase.CLOSE:
            loop = max(before for before, _ in self._places.values())
        elif found is not None and (found < phase or (found is TalkPhase.OFFERS and loop == self._moved)):
            loop += 1
        if item["kind"] == "record":
            self._moved = max(self._moved, loop)
        self._places[item["way"]] = loop, phase if found is None else found
        return self._places[item["way"]]


def _phase_of(item: Item) -> TalkPhase | None:
    if (found := _BY_KIND.get(item["kind"])) is not None:
        return found
    if item["kind"] != "facts":
        return None  # the end of a block, a comment, a fault: they belong to what was said before
    names = [line.partition("(")[0] for line in item["lines"]]
    return next((_BY_NAME[name] for name in names if name in _BY_NAME and name not in _IN_SEVERAL), None)


def placed(items: Iterable[Item], first: int = 0) -> list[Placed]:
    """Each item with its phase; `first` is the number of the first one."""
    follower = PhaseFollower()
    return [Placed(number, item, *follower.place(item)) for number, item in enumerate(items, first)]


class PhaseStep(NamedTuple):
    """One phase of one loop, with what was said in it."""

    loop: int
    phase: TalkPhase
    said: Sequence[Placed]


def steps(found: Iterable[Placed]) -> list[PhaseStep]:
    """The phases in order, each with both sides' items by time."""
    together: dict[tuple[int, TalkPhase], list[Placed]] = {}
    for one in found:
        together.setdefault((one.loop, one.phase), []).append(one)
    return [PhaseStep(loop, phase, together[loop, phase]) for loop, phase in sorted(together)]
