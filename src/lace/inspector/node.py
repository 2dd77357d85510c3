"""A running node, live: its links, how much moves on each and how fast, and their conversations.

Rule: the node is only queried over its watch socket, never changed. Rates are differences between two answers of the
node, so they begin when somebody looks.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from lace.errors import TransportError
from lace.inspector.charts import sparkline
from lace.inspector.conversation import show_steps
from lace.inspector.html import Markup, join, tag
from lace.inspector.inspected import Inspected
from lace.inspector.names import Names
from lace.inspector.page import Data, Page
from lace.inspector.phases import Item, placed, steps
from lace.inspector.timeline import timeline
from lace.inspector.widgets import (
    count,
    empty,
    fields,
    figure,
    lasted,
    link,
    notice,
    section,
    short,
    signer,
    size,
    table,
)
from lace.notation.jsontext import read_json
from lace.runtime.trace.telling import explanation

HERE = "Node"
REFRESH_MS = 1000
_TIMEOUT_S = 5.0
_MOST_BYTES = 32 << 20
_SAMPLES = 120  # two minutes of looking
_SOONEST_S = 0.5  # between two samples of one thing
_LINKS = 256  # links that are measured


class Sample(NamedTuple):
    """Totals at a moment."""

    at: float
    bytes_in: int
    bytes_out: int
    records: int


class RateMeter:
    """The last totals of the node and of each link, as often as somebody looked."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._samples: dict[int, deque[Sample]] = {}

    def note(self, number: int, rows: Sequence[Data]) -> list[Sample]:
        """Take a sample of some links together, and return the samples so far; number 0 stands for all links."""
        now = time.monotonic()
        sample = Sample(
            now,
            sum(row["bytes_in"] for row in rows),
            sum(row["bytes_out"] for row in rows),
            sum(row["received"] + row["sent"] for row in rows),
        )
        with self._lock:
            kept = self._samples.setdefault(number, deque(maxlen=_SAMPLES))
            if not kept or now - kept[-1].at >= _SOONEST_S:
                kept.append(sample)
            while len(self._samples) > _LINKS:
                del self._samples[next(one for one in self._samples if one != 0)]
            return list(kept)


def rates(samples: Sequence[Sample], place: int) -> list[float]:
    """Differences per second between neighbours; a total that fell (an ended link was forgotten) counts as nothing."""
    return [
        max(0.0, (after[place] - before[place]) / max(1e-3, after.at - before.at))
        for before, after in pairwise(samples)
    ]


def ask_node(address: str, question: str) -> Any:
    """A node's answer; TransportError if there is none."""
    path = address.removeprefix("unix:")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as near:
            near.settimeout(_TIMEOUT_S)
            near.connect(path)
            near.sendall(question.encode("ascii") + b"\n")
            answer = bytearray()
            while piece := near.recv(1 << 16):
                answer += piece
                if len(answer) > _MOST_BYTES:
                    raise TransportError(f"{path}: this is not the answer of a node")
        return read_json(bytes(answer))
    except (OSError, ValueError) as error:
        raise TransportError(
            f"{path}: no node answers there ({error}); start one with `lace serve --watch {Path(path)}`"
        ) from error


def node_page(inspected: Inspected, meter: RateMeter, asked: Mapping[str, str]) -> Page:
    """The page of all links, or of one with its conversation."""
    number = asked.get("link", "")
    try:
        data = ask_node(inspected.node, f"link {number}" if number.isdecimal() else "links")
    except TransportError as error:
        return _page("Node", {"error": str(error)}, notice("warning", str(error)))
    names = inspected.names()
    if "link" in data:
        one = data["link"]
        samples = meter.note(int(number), [one])
        items = [{**item, "explained": explanation(item["kind"], item["text"], item["lines"])} for item in one["items"]]
        if "at" in asked:  # somebody holds the line of time: what is drawn must not move below the hand
            return _still(inspected, number, data, items, asked)
        return _page(f"Link {number}", data, _link(one, items, samples, names), [("Node", "/node")])
    if "error" in data:
        return _page("Node", data, empty(data["error"], link("All links", "/node")))
    return _page("Node", data, _links(data, meter.note(0, data["links"]), names))


def _page(title: str, data: Data, body: Markup, crumbs: list[tuple[str, str]] | None = None) -> Page:
    live = tag("div", body, id="live", data_refresh=REFRESH_MS)
    return Page(
        title=title, data=data, body=join(tag("h1", title), live), here=HERE, fragment=live, crumbs=crumbs or ()
    )


def _still(inspected: Inspected, number: str, data: Data, items: Sequence[Item], asked: Mapping[str, str]) -> Page:
    """One link at a moment of its conversation."""
    line = timeline(inspected, "/node", items, asked, kept={"link": number})
    live = tag("p", link("Back to the live link", f"/node?link={number}"))
    body = join(tag("h1", f"Link {number}"), live, line)
    return Page(title=f"Link {number}", data=data, body=body, here=HERE, fragment=line, crumbs=[("Node", "/node")])


def _links(data: Data, samples: Sequence[Sample], names: Names) -> Markup:
    links = data["links"]
    still_open = sum(one["open"] for one in links)
    refused = sum(len(one["rejected"]) for one in links)
    troubles = data["troubles"]
    verdict = tag(
        "p",
        tag("strong", f"Up for {lasted(data['seconds'])}, {count(still_open, 'open link')}. "),
        tag("span", f"{refused:,} refused", class_="badge bad") if refused else None, " ",
        tag("span", count(len(troubles), "trouble"), class_="badge warn") if troubles else None,
        tag("span", "no trouble", class_="badge good") if not troubles and not refused else None,
        class_="verdict",
    )  # fmt: skip
    figures = tag(
        "div",
        _rated(f"{sum(one['received'] + one['sent'] for one in links):,}", "records moved", samples, 3, "/s"),
        _rated(size(sum(one["bytes_in"] for one in links)), "came in", samples, 1),
        _rated(size(sum(one["bytes_out"] for one in links)), "went out", samples, 2),
        figure(f"{sum(one['waits_for'] for one in links):,}", "records waited for"),
        class_="figures",
    )
    rows = [
        (
            link(f"Link {one['link']}", f"/node?link={one['link']}"),
            join(signer(one["peer"], names) if one["peer"] else tag("span", "a stranger", class_="faint"),
                 tag("div", one["address"], class_="note")),
            _state(one),
            lasted(one["seconds"]),
            f"{one['received']:,} / {one['sent']:,}",
            f"{one['waits_for']:,}",
            f"{size(one['bytes_in'])} / {size(one['bytes_out'])}",
        )
        for one in reversed(links)
    ]  # fmt: skip
    columns = ("Link", "Peer", "Phase", "For", "Records in / out", "Waits for", "Bytes in / out")
    listing = table("Links", columns, rows, right=frozenset(columns[3:]))
    quiet = empty("No peer has connected yet.", "This page updates by itself.")
    told = [tag("li", tag("span", f"{lasted(one['seconds'])} ", class_="faint"), one["text"]) for one in troubles]
    return join(verdict, figures, listing if rows else quiet, told and section("Trouble", tag("ul", reversed(told))))


def _rated(number: object, label: str, samples: Sequence[Sample], place: int, unit: str = "B/s") -> Markup:
    """A total with its rate now and what it was lately."""
    found = rates(samples, place)
    now = found[-1] if found else 0.0
    rate = f"{now:,.1f}{unit}" if unit == "/s" else f"{size(int(now))}/s"
    drawn = sparkline(f"{label}, lately: {rate}", found, "peer" if place == 1 else "") if len(found) > 1 else None
    return tag("div", tag("b", number), tag("span", f"{label}, {rate}"), drawn, class_="figure")


def _state(one: Data) -> Markup:
    kind = "bad" if one["ending"] else "good" if one["phase"] == "at a fixed point" else ""
    marks = [tag("span", f"limit: {name}", class_="badge warn") for name in one["limits"]]
    refused = one["rejected"] and tag("span", f"{len(one['rejected'])} refused", class_="badge bad")
    return join(tag("span", one["phase"], class_=f"badge {kind}"), " ", marks, " ", refused or None)


def _link(one: Data, items: Sequence[Item], samples: Sequence[Sample], names: Names) -> Markup:
    about: list[tuple[str, object]] = [
        ("Peer", join(signer(one["peer"], names) if one["peer"] else "a stranger", " at ", one["address"])),
        ("Opened by", "us" if one["dialled"] else "the peer"),
        ("Phase", join(_state(one), f" for {lasted(one['seconds'])}")),
        ("Plan", tag("code", short(one["plan"]), title=one["plan"]) if one["plan"] else "not agreed yet"),
        ("Advertised", f"{count(one['we_advertise'], 'record')} by us, {one['peer_advertises']:,} by the peer"),
        ("Asked for", f"{count(one['we_ask'], 'record')} by us, {one['peer_asks']:,} by the peer"),
        ("Moved", f"{count(one['received'], 'record')} in, {one['sent']:,} out; waits for {one['waits_for']:,}"),
        ("Limits hit", ", ".join(one["limits"]) or "none"),
    ]
    if one["ending"]:
        about.append(("Ended", tag("strong", one["ending"])))
    figures = tag(
        "div",
        _rated(f"{one['received'] + one['sent']:,}", "records moved", samples, 3, "/s"),
        _rated(size(one["bytes_in"]), "came in", samples, 1),
        _rated(size(one["bytes_out"]), "went out", samples, 2),
        class_="figures",
    )
    rejected = [(tag("code", short(record), title=record), why) for record, why in one["rejected"].items()]
    back = items and link("Line of time", f"/node?link={one['link']}&at={len(items) - 1}", class_="button")
    return join(
        figures,
        fields(about),
        rejected and section("Refused", table("Refused records", ("Record", "Why"), rejected)),
        section("Conversation", back or None, show_steps(steps(placed(items)), names)),
    )
