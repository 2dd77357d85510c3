"""A running node, live: its links, what moves on each, and their conversations.

Rule: the node is only queried over its watch socket, never changed.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lace.errors import TransportError
from lace.inspector.conversation import show_items
from lace.inspector.html import Markup, join, tag
from lace.inspector.page import Data, Page
from lace.inspector.widgets import count, empty, fields, figure, link, notice, section, short, size, table
from lace.notation.jsontext import read_json
from lace.runtime.trace.telling import explanation

HERE = "Node"
REFRESH_MS = 1000
_TIMEOUT_S = 5.0
_MOST_BYTES = 32 << 20


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


def node_page(address: str, asked: Mapping[str, str]) -> Page:
    """The page of all links, or of one with its conversation."""
    number = asked.get("link", "")
    try:
        data = ask_node(address, f"link {number}" if number.isdecimal() else "links")
    except TransportError as error:
        body = notice("warning", str(error))
        data = {"error": str(error)}
        return _page("Node", data, body)
    if "link" in data:
        return _page(f"Link {number}", data, _link(data["link"]), [("Node", "/node")])
    if "error" in data:
        return _page("Node", data, empty(data["error"], link("All links", "/node")))
    return _page("Node", data, _links(data))


def _page(title: str, data: Data, body: Markup, crumbs: list[tuple[str, str]] | None = None) -> Page:
    live = tag("div", body, id="live", data_refresh=REFRESH_MS)
    return Page(
        title=title, data=data, body=join(tag("h1", title), live), here=HERE, fragment=live, crumbs=crumbs or ()
    )


def _links(data: Data) -> Markup:
    links = data["links"]
    figures = tag(
        "div",
        figure(sum(one["open"] for one in links), "open links"),
        figure(f"{sum(one['received'] for one in links):,}", "records received"),
        figure(f"{sum(one['sent'] for one in links):,}", "records sent"),
        figure(size(sum(one["bytes_in"] for one in links)), "came in"),
        figure(size(sum(one["bytes_out"] for one in links)), "went out"),
        figure(f"{sum(len(one['rejected']) for one in links):,}", "records refused"),
        class_="figures",
    )
    rows = [
        (
            link(f"Link {one['link']}", f"/node?link={one['link']}"),
            join(
                tag("span", one["address"]),
                one["peer"] and tag("div", tag("code", short(one["peer"])), title=one["peer"]),
            ),
            _state(one),
            f"{one['received']:,}",
            f"{one['sent']:,}",
            f"{one['waits_for']:,}",
            f"{size(one['bytes_in'])} / {size(one['bytes_out'])}",
        )
        for one in reversed(links)
    ]
    columns = ("Link", "Peer", "Phase", "Received", "Sent", "Waits for", "Bytes in / out")
    listing = table("Links", columns, rows, right=frozenset(columns[3:]))
    quiet = empty("No peer has connected yet.", "This page updates by itself.")
    troubles = [
        tag("li", tag("span", f"{one['seconds']:.0f} s ", class_="faint"), one["text"]) for one in data["troubles"]
    ]
    return join(figures, listing if rows else quiet, troubles and section("Trouble", tag("ul", reversed(troubles))))


def _state(one: Data) -> Markup:
    kind = "bad" if one["ending"] else "good" if one["phase"] == "at a fixed point" else ""
    marks = [tag("span", f"limit: {name}", class_="badge warn") for name in one["limits"]]
    refused = one["rejected"] and tag("span", f"{len(one['rejected'])} refused", class_="badge bad")
    return join(tag("span", one["phase"], class_=f"badge {kind}"), " ", marks, " ", refused or None)


def _link(one: Data) -> Markup:
    about: list[tuple[str, object]] = [
        ("Peer", join(one["address"], " ", one["peer"] and tag("code", one["peer"]))),
        ("Opened by", "us" if one["dialled"] else "the peer"),
        ("Phase", _state(one)),
        ("Plan", tag("code", one["plan"]) if one["plan"] else "not agreed yet"),
        ("Advertised", f"{count(one['we_advertise'], 'record')} by us, {one['peer_advertises']:,} by the peer"),
        ("Asked for", f"{count(one['we_ask'], 'record')} by us, {one['peer_asks']:,} by the peer"),
        ("Moved", f"{count(one['received'], 'record')} in, {one['sent']:,} out; waits for {one['waits_for']:,}"),
        ("Bytes", f"{size(one['bytes_in'])} in, {size(one['bytes_out'])} out"),
        ("Limits hit", ", ".join(one["limits"]) or "none"),
    ]
    if one["ending"]:
        about.append(("Ended", tag("strong", one["ending"])))
    rejected = [(tag("code", short(record)), why) for record, why in one["rejected"].items()]
    items = [{**item, "explained": explanation(item["kind"], item["text"], item["lines"])} for item in one["items"]]
    return join(
        fields(about),
        rejected and section("Refused", table("Refused records", ("Record", "Why"), rejected)),
        section(
            "Conversation", show_items(items[::-1]) if items else empty("Nothing was said yet."), note="Newest first."
        ),
    )
