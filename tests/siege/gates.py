"""Hostile connections: raw bytes over tcp or WebSocket, from an address of the attacker's choice."""

from __future__ import annotations

import asyncio
import os
import struct
from dataclasses import dataclass, field

_BINARY = 0x82


@dataclass(frozen=True, slots=True)
class Gate:
    """Where the server listens, and how to speak there."""

    scheme: str  # tcp, ws, or raw: the bytes of an HTTP client
    port: int

    async def enter(self, source: str) -> Hostile:
        """A connection from a loopback address; each address counts as a network of its own."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0))
        peer = Hostile(self, reader, writer)
        if self.scheme == "ws":
            try:
                await peer.upgrade()
            except BaseException:
                peer.leave()
                raise
        return peer


@dataclass(slots=True)
class Hostile:
    """One hostile connection."""

    gate: Gate
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _reads: bool = field(default=True)

    async def upgrade(self) -> None:
        head = f"GET /interlace HTTP/1.1\r\nHost: 127.0.0.1:{self.gate.port}\r\nUpgrade: websocket\r\n"
        rest = "Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        self._writer.write((head + rest).encode())
        await self._writer.drain()
        await self._reader.readuntil(b"\r\n\r\n")

    @property
    def is_closed(self) -> bool:
        """Whether the server has cut us."""
        return self._reader.at_eof() or self._writer.is_closing()

    def stop_reading(self) -> None:
        """From now on the server speaks to nobody."""
        self._reads = False
        self._writer.transport.pause_reading()  # type: ignore[attr-defined]  # a socket transport

    async def send(self, data: bytes) -> None:
        """Say bytes, in WebSocket messages where these are spoken."""
        if self.gate.scheme == "ws":
            for start in range(0, len(data), 60_000):
                self._writer.write(_frame(data[start : start + 60_000]))
        else:
            self._writer.write(data)
        await self._writer.drain()
        if self._reads:
            await self._discard(0)

    async def read_to_the_end(self, seconds: float) -> None:
        """Read and forget until the server closes, or for so long."""
        await self._discard(seconds)

    async def _discard(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds if seconds else 0.001):
                while await self._reader.read(1 << 18):
                    pass
        except TimeoutError:
            return

    def leave(self) -> None:
        """Drop the connection."""
        self._writer.transport.abort()


def _frame(data: bytes) -> bytes:
    """A masked binary message."""
    mask = os.urandom(4)
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    pad = (mask * (len(data) // 4 + 1))[: len(data)]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")
    return bytes([_BINARY]) + length + mask + masked.to_bytes(len(data), "big")
