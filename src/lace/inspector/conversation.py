"""A conversation between two peers, item by item, each explained.

Rule: decoded by the reader that `lace tap` uses; an explanation says what an item is for, never how to judge it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from lace.errors import LaceError
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import InspectorLimits
from lace.inspector.page import Data, Page
from lace.inspector.widgets import empty, notice, pager, size, table, url
from lace.notation.decimal import natural
from lace.runtime.trace.telling import explanation
from lace.runtime.trace.trace import Told, TraceReader, Way, read_capture

_FACTS_SHOWN = 200
WHO = {"in": "peer", "out": "we"}


def capture_page(name: str, path: Path, asked: Mapping[str, str], limits: InspectorLimits) -> Page:
    """The page of a captured conversation, from one of its items on."""
    start = natural(asked.get("start", "")) or 0
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
        "lines": list(told.facts[:_FACTS_SHOWN]),
    }


def show_told(told: Sequence[Told]) -> Markup:
    """Items as a table."""
    return show_items([told_data(one) for one in told])


def show_items(items: Sequence[Data]) -> Markup:
    """Items as a table, from the data that a running node gives."""
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
