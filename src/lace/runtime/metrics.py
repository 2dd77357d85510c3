"""Counters of a node, as numbers and as Prometheus text.

Rule: counting never fails and never blocks; label values come from closed sets, so the table cannot grow with peers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

PREFIX = "lace_"
HELP = {
    "connections_active": ("gauge", "Links that are open now."),
    "connections_total": ("counter", "Links opened, by direction."),
    "connections_refused_total": ("counter", "Connections turned away, by why."),
    "exchanges_total": ("counter", "Exchanges ended, by how."),
    "fixed_points_total": ("counter", "Fixed points reached."),
    "records_received_total": ("counter", "Records validated and stored."),
    "records_sent_total": ("counter", "Records written to peers."),
    "records_rejected_total": ("counter", "Records whose bytes failed validation."),
    "bytes_received_total": ("counter", "Stream bytes read from peers."),
    "bytes_sent_total": ("counter", "Stream bytes written to peers."),
    "buffered_bytes": ("gauge", "Received bytes that wait for a phase or for the store."),
    "reconnects_total": ("counter", "Times that a kept link was dialled again."),
}


class Metrics:
    """Named numbers with at most one label."""

    def __init__(self) -> None:
        self._values: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, by: int = 1, label: str = "") -> None:
        """Count."""
        self._values[name, label] += by

    def put(self, name: str, value: int) -> None:
        """Set a gauge."""
        self._values[name, ""] = value

    def get(self, name: str, label: str = "") -> int:
        """A number; 0 if nothing was counted."""
        return self._values[name, label]

    def lines(self) -> Iterator[str]:
        """Prometheus text exposition, sorted."""
        for name, (kind, help_text) in HELP.items():
            yield f"# HELP {PREFIX}{name} {help_text}"
            yield f"# TYPE {PREFIX}{name} {kind}"
            found = sorted((label, value) for (key, label), value in self._values.items() if key == name)
            for label, value in found or [("", 0)]:
                yield f'{PREFIX}{name}{{kind="{label}"}} {value}' if label else f"{PREFIX}{name} {value}"

    def text(self) -> str:
        """The whole page."""
        return "\n".join(self.lines()) + "\n"


async def serve_metrics(metrics: Metrics, port: int) -> asyncio.Server:
    """Answer every request on a loopback port with the counters."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(5):
                await reader.readuntil(b"\r\n\r\n")
                body = metrics.text().encode()
                head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nConnection: close\r\n"
                writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # a scraper that went away costs nothing
        finally:
            writer.close()

    return await asyncio.start_server(answer, "127.0.0.1", port, limit=8192)
