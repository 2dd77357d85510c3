"""A conversation between two peers, item by item, each explained.

Rule: told by the same reader that `lace tap` has; an explanation says what an item is for, never what to think of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from lace.errors import LaceError
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD, MAY_REQUEST
from lace.inspector.html import Markup, join, tag
from lace.inspector.opened import InspectorLimits
from lace.inspector.page import Data, Page
from lace.inspector.words import empty, notice, pager, size, table, url
from lace.interlace import vocabulary as said
from lace.runtime.trace import Told, TraceReader, Way, read_capture

_FACTS_SHOWN = 200
WHO = {"in": "peer", "out": "we"}
KINDS = {
    "preface": "Opens the stream: this side speaks ILTP version 1.",
    "resource": "A rule text that the other side may not know yet, named by its hash.",
    "record": "A record, with the hash that it claims; it is stored only if its bytes hold to that.",
    "end": "A blank line: this side's part of the phase is complete.",
    "close": "This side ended the stream.",
    "fault": "These bytes break the rules of the stream; the rest of this direction is not read.",
}
FACTS = {
    said.EXCHANGE_OPERAND.name: "This side's rules, by their hash, as operand of the plan.",
    said.HELLO_EXCHANGE_PLAN.name: "The plan that this side computed; both must say the same.",
    said.HELLO_SIGNER.name: "Who this side is.",
    said.HELLO_TAI.name: "This side's clock.",
    said.HELLO_TICK_INTERVAL.name: "How often the shared time moves in an open exchange.",
    said.HELLO_RECORD_FORMAT.name: "A record format that this side understands.",
    said.HELLO_ADVERTISED_FIELD.name: "A field that this side's listing will carry, because rules read it.",
    said.HELLO_ALL_ADVERTISED_FIELDS.name: "This side's listing will carry every field.",
    said.HELLO_LIMIT.name: "A limit of this side.",
    ADVERTISED.name: "A record that this side has and would send.",
    ADVERTISED_FIELD.name: "A field of an advertised record.",
    said.ADVERTISEMENT_PARTITION.name: "All advertised records whose hashes begin so, as a count and a root.",
    said.LIST_PARTITION.name: "The other side's summary of this partition differs: list it.",
    said.NARROW_PARTITION.name: "The other side's summary of this partition differs: cut it finer.",
    said.DIFFERENCE_ROOT.name: "How many records this side has to offer, and a root that only this very set has.",
    said.DIFFERENCE_SUMMARY.name: "All of this side's set in one line: how many, and sums that differ where sets do.",
    said.DIFFERENCE_WITHDRAWN.name: "A record that was in this side's set a loop ago and is not any more.",
    said.DIFFERENCE_SYMBOLS.name: "A sketch of this side's set; enough of it tells the other side what differs.",
    said.DIFFERENCE_MORE.name: "The sketch does not suffice yet: more of it.",
    said.DIFFERENCE_LACKS.name: "What the other side has and this side lacks, by short names.",
    said.DIFFERENCE_ASK.name: "This side could not make out the other's set: compare the sets by sketches.",
    said.DIFFERENCE_DROP.name: "Comparing sets does not pay: go on with plain advertisements.",
    MAY_REQUEST.name: "A record that this side asks for.",
    said.NOT_AVAILABLE.name: "A record that was asked for and cannot be sent any more.",
    said.TICK_READY.name: "This side is ready for the next moment of the shared time.",
}


def capture_page(name: str, path: Path, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """A captured conversation from one of its items on."""
    start = int(asked["start"]) if asked.get("start", "").isdecimal() and len(asked["start"]) < 12 else 0
    told: list[Told] = []
    trouble = ""
    try:
        told = list(islice(read_told(path), start, start + limits.told_lines + 1))
    except LaceError as error:
        trouble = str(error)
    shown = told[: limits.told_lines]
    base = f"/capture/{name}"
    following = url(base, {"start": start + len(shown)}) if len(told) > len(shown) else None
    listing = (
        show_told(shown) if shown else empty("Nothing was said." if not start else "The conversation ended before.")
    )
    body = join(
        tag("h1", name),
        tag("p", "Captured in ", tag("code", path), class_="lead"),
        trouble and notice("bad", trouble),
        listing,
        pager(following, base if start else None),
    )
    data: Data = {
        "path": str(path),
        "items": [told_data(one) for one in shown],
        "next": following,
        "error": trouble or None,
    }
    return Page(title=name, data=data, body=body, here=name)


def read_told(path: Path) -> Iterator[Told]:
    """A capture, item by item."""
    teller, last, ways = TraceReader(), 0, list[Way]()
    for passed in read_capture(path):
        last = passed.ns
        if passed.way not in ways:
            ways.append(passed.way)
        yield from teller.feed(passed)
    for way in ways:
        yield from teller.end(last, way)


def told_data(told: Told) -> Data:
    """An item for programs."""
    return {
        "seconds": told.ns / 1e9,
        "way": told.way,
        "offset": told.offset,
        "size": told.size,
        "kind": told.kind,
        "text": told.text,
        "explained": explanation(told.kind, told.text, told.facts),
        "lines": list(told.facts[:_FACTS_SHOWN]),
    }


def explanation(kind: str, text: str, facts: Sequence[str]) -> str:
    """What an item is for."""
    if kind != "facts":
        return KINDS.get(kind, "")
    names = dict.fromkeys(fact.partition("(")[0] for fact in facts)
    return " ".join(f"{FACTS[name]}" for name in names if name in FACTS) or text


def show_told(told: Sequence[Told]) -> Markup:
    """Items as a table."""
    return show_items([told_data(one) for one in told])


def show_items(items: Sequence[Data]) -> Markup:
    """The same from their data, as a running node gives it."""
    rows = [
        (
            tag("span", f"{one['seconds']:.3f} s", class_="moment"),
            tag("span", WHO.get(one["way"], one["way"]), class_=f"badge {'good' if one['way'] == 'out' else ''}"),
            one["kind"],
            _said(one),
            size(one["size"]),
        )
        for one in items
    ]
    return table("Conversation", ("At", "Who", "Item", "What it says", "Size"), rows, right=frozenset({"Size"}))


def _said(one: Data) -> Markup:
    text = tag("code", one["text"]) if one["kind"] in ("record", "resource") else tag("span", one["text"])
    explained = tag("p", one["explained"], class_="note") if one["explained"] != one["text"] else None
    lines = one["lines"]
    if not lines:
        return join(text, explained)
    more = f"\n… and more than {_FACTS_SHOWN}" if len(lines) >= _FACTS_SHOWN else ""
    unfolded = tag("details", tag("summary", text), tag("pre", "\n".join(lines) + more))
    return join(unfolded, explained)
