"""Counters of a node, as numbers and as Prometheus text.

Rule: counting never fails and never blocks; label values come from closed sets, so the table cannot grow with peers.
Only links that are open now have rows of their own, and the peers that were limited last; there is a limit to both.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Protocol

from lace.interlace.events import Event, FixedPoint, Received, RefusedByPeer, Rejected, Sent
from lace.values import dataclass

PREFIX = "lace_"
HELP = {
    "connections_active": ("gauge", "Links that are open now."),
    "connections_total": ("counter", "Links opened, by direction."),
    "connections_refused_total": ("counter", "Connections turned away, by why."),
    "exchanges_total": ("counter", "Exchanges ended, by how."),
    "fixed_points_total": ("counter", "Fixed points reached."),
    "records_received_total": ("counter", "Records validated and stored."),
    "records_sent_total": ("counter", "Records written to peers."),
    "records_refused_total": ("counter", "Records written to peers that did not keep them, by their reason."),
    "records_rejected_total": ("counter", "Records that came and were not kept."),
    "bytes_received_total": ("counter", "Stream bytes read from peers."),
    "bytes_sent_total": ("counter", "Stream bytes written to peers."),
    "buffered_bytes": ("gauge", "Received bytes that wait for a phase or for the store."),
    "limited_total": ("counter", "Times that a link was made to wait or cut for the good of others, by what it used."),
    "loop_stall_seconds": ("gauge", "The longest the event loop was ever late, by the wall."),
    "loop_own_stall_seconds": ("gauge", "The same, less the time that its thread waited for a processor."),
    "loop_busy_seconds": ("gauge", "The most processor time that the event loop used at a stretch."),
    "reconnects_total": ("counter", "Times that a kept link was dialled again."),
}


LINK_HELP = {
    "bytes_received": "Stream bytes read from this peer.",
    "bytes_sent": "Stream bytes written to this peer.",
    "held_bytes": "About what this link keeps in memory.",
    "cpu_seconds": "Processor time spent for this peer.",
    "loops": "Loops of this exchange.",
    "rests_seconds": "For how long this link has been at rest.",
}


MAX_LIMITED_PEERS = 64  # with a row for each way in which they were limited
_PEER_LIMITED = "The same by peer, the ones that were limited last: a key that we know, else a network."
_OUR_NAMES = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:\d+)?")


@dataclass(frozen=True, slots=True)
class LinkRow:
    """An open link: who it is, and its numbers by the names of LINK_HELP."""

    labels: Mapping[str, str]
    values: Mapping[str, float]


class MetricsSink(Protocol):
    """Where an application wants a node's numbers, as they change: a few lines over prometheus_client or OpenTelemetry.

    Names are those of the metrics page without its prefix; `label` is empty where a number has none.
    """

    def add(self, name: str, by: float, label: str) -> None:
        """A counter grew."""

    def put(self, name: str, value: float, label: str) -> None:
        """A gauge has this value now."""


def _no_links() -> Iterable[LinkRow]:
    return ()


class Metrics:
    """Named numbers with at most one label; `live` brings them up to date and gives the rows of open links."""

    def __init__(self, live: Callable[[], Iterable[LinkRow]] = _no_links, sink: MetricsSink | None = None) -> None:
        self._sink = sink
        self._values: dict[tuple[str, str], float] = defaultdict(int)
        self._live = live
        self._limited: OrderedDict[str, Counter[str]] = OrderedDict()  # peer: how often, by what it used

    def count_event(self, event: Event) -> None:
        """What an event of an exchange adds, as it happens."""
        match event:
            case FixedPoint():
                self.add("fixed_points_total")
            case Received(hashes):
                self.add("records_received_total", len(hashes))
            case Sent(hashes):
                self.add("records_sent_total", len(hashes))
            case Rejected(reasons):
                self.add("records_rejected_total", len(reasons))
            case RefusedByPeer(reasons):
                for reason, count in Counter(reasons.values()).items():
                    self.add("records_refused_total", count, label=reason)

    def add(self, name: str, by: int = 1, label: str = "") -> None:
        """Count."""
        self._values[name, label] += by
        if self._sink is not None:
            self._sink.add(name, by, label)

    def count_limited(self, peer: str, kind: str) -> None:
        """A peer was made to wait or cut for what it used."""
        self.add("limited_total", label=kind)
        self._limited.setdefault(peer, Counter())[kind] += 1
        self._limited.move_to_end(peer)
        if len(self._limited) > MAX_LIMITED_PEERS:
            self._limited.popitem(last=False)

    def put(self, name: str, value: float) -> None:
        """Set a gauge."""
        self._values[name, ""] = value
        if self._sink is not None:
            self._sink.put(name, value, "")

    def get(self, name: str, label: str = "") -> int:
        """A count; 0 if nothing was counted."""
        return int(self._values[name, label])

    def lines(self) -> Iterator[str]:
        """Prometheus text exposition, sorted."""
        rows = list(self._live())
        for name, (kind, help_text) in HELP.items():
            yield f"# HELP {PREFIX}{name} {help_text}"
            yield f"# TYPE {PREFIX}{name} {kind}"
            found = sorted((label, value) for (key, label), value in self._values.items() if key == name)
            for label, value in found or [("", 0)]:
                yield f'{PREFIX}{name}{{kind="{label}"}} {value}' if label else f"{PREFIX}{name} {value}"
        yield f"# HELP {PREFIX}peer_limited_total {_PEER_LIMITED}"
        yield f"# TYPE {PREFIX}peer_limited_total counter"
        for peer, counts in self._limited.items():
            for kind, count in sorted(counts.items()):
                yield f"{PREFIX}peer_limited_total{_labels({'peer': peer, 'kind': kind})} {count}"
        for name, help_text in LINK_HELP.items():
            yield f"# HELP {PREFIX}link_{name} {help_text}"
            yield f"# TYPE {PREFIX}link_{name} gauge"
            for row in rows:
                yield f"{PREFIX}link_{name}{_labels(row.labels)} {row.values[name]}"

    def text(self) -> str:
        """The whole page."""
        return "\n".join(self.lines()) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f"{label}={json.dumps(value)}" for label, value in labels.items()) + "}"


def _always() -> bool:
    return True


async def serve_metrics(metrics: Metrics, port: int, is_ready: Callable[[], bool] = _always) -> asyncio.Server:
    """Answer on a loopback port: `/metrics` (and `/`) with the counters, `/healthz` while the node runs, `/readyz` once
    it takes peers. A request that a web page makes a browser send gets nothing.
    """

    def respond(asked: bytes) -> tuple[str, str]:
        if not _is_from_here(asked):
            return "403 Forbidden", ""
        path = asked.split(b"\r\n", 1)[0].split(b" ")[1:2]
        match path[0].partition(b"?")[0] if path else b"":
            case b"/" | b"/metrics":
                return "200 OK", metrics.text()
            case b"/healthz":
                return "200 OK", "ok\n"
            case b"/readyz":
                return ("200 OK", "ready\n") if is_ready() else ("503 Service Unavailable", "starting\n")
        return "404 Not Found", "only /metrics, /healthz and /readyz are here\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(5):
                asked = await reader.readuntil(b"\r\n\r\n")
                status, page = respond(asked)
                body = page.encode()
                head = f"HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a scraper that went away costs nothing
        finally:
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", port, limit=8192)


def _is_from_here(asked: bytes) -> bool:
    """Whether a request names this machine: a page on a name that was made to point here names its own."""
    lines = [line.partition(":") for line in asked.decode("latin-1").lower().split("\r\n")[1:]]
    if any(name.strip() == "origin" for name, _, _ in lines):
        return False
    hosts = [value.strip() for name, _, value in lines if name.strip() == "host"]
    return all(_OUR_NAMES.fullmatch(host) for host in hosts)
