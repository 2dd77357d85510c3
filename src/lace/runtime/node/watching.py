"""What a running node tells somebody who watches it: its links, what moved on each, and what was said.

Rule: it listens to the node's hooks and changes nothing. It answers on a unix socket that only the node's own user may
open, one question a connection, and everything it keeps is bounded. The orders that a node takes there are handed in;
each is something that the node's user may also do by a signal.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from lace.errors import TransportError
from lace.interlace import events as ev
from lace.runtime.link.session import Outcome
from lace.runtime.node.links import Heard, Hooks, LinkInfo, MakeTap
from lace.runtime.trace.trace import Passed, Told, TraceReader, Way
from lace.values import dataclass

QUESTION_BYTES = 256
QUESTION_SECONDS = 5.0
Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchLimits:
    """What is kept for a watcher."""

    ended_links: int = 50
    items: int = 300  # of one link's conversation
    lines: int = 40  # of one item
    rejected: int = 50  # records of one link, with why
    troubles: int = 50


@dataclass(slots=True)
class _Link:
    """What was heard of one link."""

    info: LinkInfo
    opened: float
    items: deque[Json]
    reader: TraceReader = field(default_factory=TraceReader)
    phase: str = "exchanging operands"
    ended: float | None = None
    plan: str = ""
    epoch: int = 0
    advertised: tuple[int, int] = (0, 0)
    asked: tuple[int, int] = (0, 0)
    received: int = 0
    sent: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    loops: int = 0
    waits_for: int = 0
    not_available: int = 0
    rejected: dict[str, str] = field(default_factory=dict)
    refused_by_peer: Counter[str] = field(default_factory=Counter)  # records by the peer's reason
    limits: list[str] = field(default_factory=list)
    ending: str = ""

    def row(self) -> Json:
        info = self.info
        return {
            "link": info.number, "address": info.address, "peer": info.peer, "dialled": info.dialled,
            "phase": self.phase, "seconds": round((self.ended or time.monotonic()) - self.opened, 1),
            "open": self.ended is None, "ending": self.ending, "plan": self.plan, "epoch": self.epoch,
            "we_advertise": self.advertised[0], "peer_advertises": self.advertised[1],
            "we_ask": self.asked[0], "peer_asks": self.asked[1], "received": self.received, "sent": self.sent,
            "bytes_in": self.bytes_in, "bytes_out": self.bytes_out, "loops": self.loops, "waits_for": self.waits_for,
            "not_available": self.not_available, "rejected": dict(self.rejected),
            "refused_by_peer": dict(self.refused_by_peer), "limits": list(self.limits),
        }  # fmt: skip


Orders = dict[str, Callable[[], Json]]
"""What a node does when it is told a word on its socket."""


class Watch:
    """Collects what a node's hooks tell; conversations are decoded only if some of their items are kept."""

    def __init__(self, limits: WatchLimits | None = None, orders: Orders | None = None) -> None:
        self._limits = limits or WatchLimits()
        self._orders = orders if orders is not None else {}
        self._links: dict[int, _Link] = {}
        self._troubles: deque[Json] = deque(maxlen=self._limits.troubles)
        self._started = time.monotonic()

    def join(self, hooks: Hooks) -> Hooks:
        """The same hooks, heard here too."""
        return Hooks(
            on_open=_both(self._opened, hooks.on_open),
            on_event=_both(self._event, hooks.on_event),
            on_end=_both(self._ended, hooks.on_end),
            on_trouble=_both(self._trouble, hooks.on_trouble),
            on_limited=_both(self._limited, hooks.on_limited),
            make_tap=self._make_tap(hooks),
        )

    def _make_tap(self, hooks: Hooks) -> MakeTap:
        return lambda info: _Taps(self._ear(info), hooks.make_tap(info) if hooks.make_tap else None)

    def answer(self, question: str) -> Json:
        """`links` for all of them, `link N` for one with its conversation, or an order."""
        kind, _, number = question.strip().partition(" ")
        if order := self._orders.get(question.strip()):
            return order()
        if kind == "link" and number.isdecimal():
            found = self._links.get(int(number))
            return (
                {"link": {**found.row(), "items": list(found.items)}} if found else {"error": "there is no such link"}
            )
        if kind != "links":
            return {"error": " or ".join(["ask for `links`", "`link N`", *(f"`{word}`" for word in self._orders)])}
        return {
            "seconds": round(time.monotonic() - self._started, 1),
            "links": [link.row() for link in self._links.values()],
            "troubles": list(self._troubles),
        }

    # --- what is heard

    def _link(self, info: LinkInfo) -> _Link:
        found = self._links.get(info.number)
        if found is None:
            found = self._links[info.number] = _Link(info, time.monotonic(), deque(maxlen=self._limits.items))
        return found

    def _opened(self, info: LinkInfo) -> None:
        self._link(info)
        ended = [number for number, link in self._links.items() if link.ended is not None]
        for number in ended[: max(0, len(ended) - self._limits.ended_links)]:
            del self._links[number]

    def _event(self, info: LinkInfo, event: ev.Event) -> None:
        link = self._link(info)
        match event:
            case ev.EpochBegan(plan, epoch):
                link.plan, link.epoch, link.phase = str(plan), epoch, "advertising"
            case ev.Advertising(ours, theirs):
                link.advertised, link.phase = (ours, theirs), "exchanging request lists"
            case ev.Requested(by_us, by_peer):
                link.asked, link.waits_for, link.phase = (by_us, by_peer), by_us, "transferring records"
            case ev.Received(hashes):
                link.received += len(hashes)
                link.waits_for = max(0, link.waits_for - len(hashes))
            case ev.Sent(hashes):
                link.sent += len(hashes)
            case ev.RefusedByPeer(reasons):
                link.sent -= len(reasons)
                known = link.refused_by_peer
                known.update(why for why in reasons.values() if why in known or len(known) < self._limits.rejected)
            case ev.Rejected(reasons):
                for record, why in reasons.items():
                    if len(link.rejected) < self._limits.rejected:
                        link.rejected[str(record)] = why
            case ev.NotAvailable(hashes):
                link.not_available += len(hashes)
            case ev.Deferred(hashes):
                link.waits_for = len(hashes)
            case ev.FixedPoint(loops):
                link.loops, link.waits_for, link.phase = loops, 0, "at a fixed point"
            case ev.Closed(reason):
                link.phase, link.ending = "closed", reason
            case _:
                pass  # the shared time moved, or what nobody wanted came

    def _ended(self, info: LinkInfo, outcome: Outcome) -> None:
        link = self._link(info)
        link.ended, link.phase = time.monotonic(), "closed"
        link.ending = ": ".join(part for part in (outcome.abort, outcome.detail) if part)
        if outcome.result.limit_reached:
            link.limits.append(str(outcome.result.limit_reached))

    def _limited(self, info: LinkInfo, why: str) -> None:
        link = self._link(info)
        if why not in link.limits and len(link.limits) < self._limits.rejected:
            link.limits.append(why)

    def _trouble(self, text: str) -> None:
        self._troubles.append({"seconds": round(time.monotonic() - self._started, 1), "text": text})

    def _ear(self, info: LinkInfo) -> Callable[[Way, bytes], None]:
        link = self._link(info)
        keeps_items = self._limits.items > 0

        def hear(way: Way, data: bytes) -> None:
            if way == "in":
                link.bytes_in += len(data)
            else:
                link.bytes_out += len(data)
            if not keeps_items:
                return
            passed = Passed(int((time.monotonic() - link.opened) * 1e9), way, data)
            link.items.extend(_item(told, self._limits.lines) for told in link.reader.feed(passed))

        return hear


class _Taps:
    """A tap that two listen to."""

    def __init__(self, hear: Callable[[Way, bytes], None], other: Any) -> None:
        self._hear, self._other = hear, other

    def received(self, data: bytes) -> None:
        self._hear("in", data)
        if self._other is not None:
            self._other.received(data)

    def sent(self, data: bytes) -> None:
        self._hear("out", data)
        if self._other is not None:
            self._other.sent(data)


def _item(told: Told, lines: int) -> Json:
    return {"seconds": told.ns / 1e9, "way": told.way, "offset": told.offset, "size": told.size, "kind": told.kind,
            "text": told.text, "lines": list(told.facts[:lines])}  # fmt: skip


def _both(first: Callable[..., None], second: Callable[..., Heard] | None) -> Callable[..., Heard]:
    def told(*what: Any) -> Heard:
        first(*what)
        return None if second is None else second(*what)

    return told


@asynccontextmanager
async def watched(
    path: Path | None, hooks: Hooks, *, limits: WatchLimits | None = None, orders: Orders | None = None
) -> AsyncIterator[Hooks]:
    """Hooks for a node whose watchers are answered on a unix socket that nobody else may open; without a path, the
    same hooks and no socket."""
    if path is None:
        yield hooks
        return
    watch = Watch(limits, orders)
    server = await _serve(watch, path)
    try:
        yield watch.join(hooks)
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def _serve(watch: Watch, path: Path) -> asyncio.Server:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(QUESTION_SECONDS):
                question = await reader.readline()
                writer.write(json.dumps(watch.answer(question.decode("ascii", "replace"))).encode() + b"\n")
                await writer.drain()
        except (TimeoutError, OSError, ValueError):
            pass  # a watcher that went away costs nothing
        finally:
            writer.close()

    if path.is_socket():
        path.unlink()  # left behind by a node that is gone
    mask = os.umask(0o177)
    try:
        return await asyncio.start_unix_server(answer, path, limit=QUESTION_BYTES)
    except OSError as error:
        raise TransportError(f"{path}: cannot be used to watch the node: {error.strerror or error}") from error
    finally:
        os.umask(mask)
