"""A conversation between two peers: drawn as a sequence by phase, and followed along a line of time.

Rule: decoded by the reader that `lace tap` uses; an explanation says what an item is for, never how to judge it. What a
side has at a moment is only what was said until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from pathlib import Path

from lace.errors import LaceError
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits
from lace.inspector.names import Names, fact
from lace.inspector.page import Data, Page
from lace.inspector.phases import LOOPED, Item, PhaseStep, Placed, placed, steps
from lace.inspector.widgets import count, empty, notice, pager, short, size, url
from lace.notation.decimal import natural
from lace.runtime.trace.telling import explanation
from lace.runtime.trace.trace import Told, TraceReader, Way, read_capture

_FACTS_SHOWN = 200
_LINES_READ = 20_000  # of one item, for the line of time
_KINDS = 2  # of facts that the title of an arrow names
_LISTED = 40  # records that one arrow lists
TimeLine = Callable[[Sequence[Item], Mapping[str, str]], Markup]


def capture_page(
    name: str, path: Path, asked: Mapping[str, str], limits: InspectorLimits, names: Names, line: TimeLine
) -> Page:
    """The page of a captured conversation, from one of its items on."""
    start = natural(asked.get("start", "")) or 0
    told: list[Item] = []
    trouble = ""
    try:
        told.extend(map(told_data, islice(read_told(path), start + limits.told_lines + 1)))
    except LaceError as error:
        trouble = str(error)
    end = start + limits.told_lines
    every = placed(told)
    shown = every[start:end]
    base = f"/capture/{name}"
    following = url(base, {"start": end}) if len(told) > end else None
    timeline = line(told[:end], asked)
    moved = sum(one["kind"] == "record" for one in told)
    more = " or more" if following else ""
    lead = f"{count(len(told[:end]), 'item')}{more}, {count(moved, 'record')}{more} in "
    listing = (
        show_steps(steps(shown), names)
        if shown
        else empty("Nothing was said." if not start else "The conversation ended before.")
    )
    body = join(
        tag("h1", name),
        tag("p", lead, tag("code", path), class_="lead"),
        trouble and notice("bad", trouble),
        timeline if told else None,
        tag("h2", "What was said", id="said"),
        listing,
        pager(following, base if start else None),
    )
    data: Data = {
        "path": str(path),
        "items": [_cut(one.item) for one in shown],
        "phases": [{"loop": step.loop, "phase": step.phase.title, "items": [one.number for one in step.said]}
                   for step in steps(shown)],
        "next": following,
        "error": trouble or None,
    }  # fmt: skip
    return Page(title=name, data=data, body=body, here=name, fragment=timeline)


def read_told(path: Path) -> Iterator[Told]:
    """A capture, item by item."""
    reader, last, ways = TraceReader(), 0, list[Way]()
    for passed in read_capture(path):
        last = passed.ns
        if passed.way not in ways:
            ways.append(passed.way)
        yield from reader.feed(passed)
    for way in ways:
        yield from reader.end(last, way)


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
        "lines": list(told.facts[:_LINES_READ]),
    }


def _cut(item: Item) -> Item:
    return {**item, "lines": item["lines"][:_FACTS_SHOWN]}


def show_steps(found: Sequence[PhaseStep], names: Names) -> Markup:
    """A conversation as a sequence: both sides, phase by phase, each arrow with what it carries."""
    if not found:
        return empty("Nothing was said yet.")
    heads = tag("div", tag("span", "us", class_="us"), tag("span", "peer", class_="peer"), class_="lifelines")
    several = found[-1].loop > 1
    return tag("div", heads, [_step(step, names, several=several) for step in found], class_="sequence")


def _step(step: PhaseStep, names: Names, *, several: bool) -> Markup:
    loop = tag("span", f"loop {step.loop}", class_="badge") if several and step.phase in LOOPED else None
    first = min(one.item["seconds"] for one in step.said)
    told = tag("p", f"{first:.3f} s. {step.phase.told}", class_="note")
    head = tag("div", tag("h3", step.phase.title, " ", loop), told, class_="phase-head")
    spoken = [one for one in step.said if one.item["kind"] != "end"] or list(step.said)
    arrows = []
    for (way, _), group in groupby(spoken, key=lambda one: (one.item["way"], _together(one.item))):
        arrows.append(_arrow(way, list(group), names))
    return tag("div", head, tag("ol", arrows, class_="arrows"), class_="phase")


def _together(item: Item) -> str:
    """Neighbours of one kind are one arrow, if they are records; everything else is an arrow of its own."""
    return "record" if item["kind"] == "record" else str(item["offset"]) + item["kind"]


def _arrow(way: str, group: Sequence[Placed], names: Names) -> Markup:
    item = group[0].item
    if item["kind"] == "record":
        said: Markup = tag("strong", count(len(group), "record"))
        listed = [tag("li", tag("code", short(one.item["text"]), title=one.item["text"]), " ",
                      tag("span", size(one.item["size"]), class_="note")) for one in group[:_LISTED]]  # fmt: skip
        more = len(group) > _LISTED and tag("p", f"and {len(group) - _LISTED:,} more", class_="note")
        inner = join(tag("ul", listed, class_="plain"), more or None)
    elif item["kind"] == "end":
        said, inner = tag("span", "nothing to say", class_="faint"), Markup("")
    else:
        said = tag("strong", _title(item))
        inner = _lines(item, names)
    total = sum(one.item["size"] for one in group)
    note = tag("span", f"{size(total)}, {group[0].item['seconds']:.3f} s", class_="note")
    explained = tag("p", item["explained"], class_="note") if item["explained"] not in ("", item["text"]) else None
    if item["kind"] == "end":
        explained = None
    head = join(said, " ", note)
    body = tag("details", tag("summary", head), explained, inner) if inner else join(tag("div", head), explained)
    kind = "out" if way == "out" else "in"
    who = tag("span", "us to peer: " if kind == "out" else "peer to us: ", class_="visually-hidden")
    bad = " bad" if item["kind"] == "fault" else ""
    return tag("li", tag("div", who, body, class_=f"bubble{bad}"), class_=f"arrow {kind}")


def _title(item: Item) -> str:
    """What an arrow is called."""
    match item["kind"]:
        case "preface":
            return "Hello: iltp/1"
        case "resource":
            identifier, _, kind = item["text"].partition(" ")
            return f"{kind or 'Text'} {short(identifier)}"
        case "close":
            return "Ends the stream"
        case "fault":
            return str(item["text"])
    kinds = item["text"].split(", ")
    if len(kinds) <= _KINDS:
        return str(item["text"])
    rest = sum(natural(kind.partition(" ")[0]) or 0 for kind in kinds[1:])
    return f"{kinds[0]} and {rest:,} other facts"


def _lines(item: Item, names: Names) -> Markup:
    lines = item["lines"]
    if not lines:
        return Markup("")
    more = f"… and {len(lines) - _FACTS_SHOWN:,} more" if len(lines) > _FACTS_SHOWN else ""
    return tag("pre", [join(fact(line, names), "\n") for line in lines[:_FACTS_SHOWN]], more)
