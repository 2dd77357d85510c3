"""Hostile connections: raw bytes over tcp or WebSocket, from an address of the attacker's choice."""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

_BINARY = 0x82
UPGRADE_KEY = "dGhlIHNhbXBsZSBub25jZQ=="


@dataclass(frozen=True, slots=True)
class Gate:
    """Where the server listens, and how to speak there."""

    scheme: str  # tcp or ws, or raw: the bytes of an HTTP client
    port: int
    is_tls: bool = False

    async def enter(self, source: str) -> Hostile:
        """A connection from a loopback address; each address counts as a network of its own."""
        context = _anybody() if self.is_tls else None
        # Cancelled in the middle, asyncio would close politely, through TLS, and wait for an answer that no loop reads.
        opening = asyncio.create_task(
            asyncio.open_connection("127.0.0.1", self.port, local_addr=(source, 0), ssl=context)
        )
        try:
            reader, writer = await asyncio.shield(opening)
        except asyncio.CancelledError:
            with suppress(OSError):
                (await opening)[1].transport.abort()
            raise
        peer = Hostile(self, reader, writer)
        if self.scheme == "ws":
            try:
                await peer.upgrade()
            except BaseException:
                peer.leave()
                raise
        return peer


@cache
def _anybody() -> ssl.SSLContext:
    """A context that takes any server for the right one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


@dataclass(slots=True)
class Hostile:
    """One hostile connection."""

    gate: Gate
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _reads: bool = field(default=True)

    @property
    def certificate(self) -> bytes | None:
        """The SHA-256 of what the server showed."""
        found = self._writer.get_extra_info("ssl_object")
        return hashlib.sha256(found.getpeercert(True)).digest() if found is not None else None

    async def upgrade(self, *headers: str) -> None:
        """Become a WebSocket."""
        self._writer.write(upgrade_request(f"127.0.0.1:{self.gate.port}", *headers))
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
                self._writer.write(frame(data[start : start + 60_000]))
        else:
            self._writer.write(data)
        await self._writer.drain()
        await asyncio.sleep(0)  # through TLS nothing waits where the connection is lost, and nobody would hear of it
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

    def end(self) -> None:
        """Say no more, once all of it has gone."""
        self._writer.close()

    def leave(self) -> None:
        """Drop the connection."""
        self._writer.transport.abort()


def upgrade_request(host: str, *headers: str) -> bytes:
    """What asks a server to become a WebSocket."""
    lines = ["GET /interlace HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [f"Sec-WebSocket-Key: {UPGRADE_KEY}", "Sec-WebSocket-Version: 13", *headers, "", ""]
    return "\r\n".join(lines).encode()


def frame(data: bytes, first: int = _BINARY) -> bytes:
    """A masked frame; a whole binary message unless its first byte says otherwise."""
    mask = os.urandom(4)
    length = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack(">H", len(data))
    pad = (mask * (len(data) // 4 + 1))[: len(data)]
    masked = int.from_bytes(data, "big") ^ int.from_bytes(pad, "big")
    return bytes([first]) + length + mask + masked.to_bytes(len(data), "big")
