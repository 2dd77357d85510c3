"""Plays below the stream: WebSocket frames that no exchange ever sees, and upgrades that take their time."""

from __future__ import annotations

import asyncio
import random

from siege.gates import Hostile, frame, upgrade_request
from siege.scenes import PATIENCE_S, scene
from siege.speech import opening

_PING, _PONG = 0x89, 0x8A
_FIRST, _MORE, _LAST = 0x02, 0x00, 0x80  # of a message in fragments


async def _repeat(peer: Hostile, data: bytes, *, reads: bool = True) -> None:
    """After the upgrade: the same frames again and again."""
    await peer.upgrade()
    if not reads:
        peer.stop_reading()
    async with asyncio.timeout(PATIENCE_S):
        while not peer.is_closed:
            await peer.send(data)


@scene("frames: pings, and pongs that nobody reads", only="ws")
async def pings(peer: Hostile, draw: random.Random) -> None:
    await _repeat(peer, frame(draw.randbytes(125), _PING) * 500, reads=False)


@scene("frames: pings of nothing", only="ws")
async def empty_pings(peer: Hostile, draw: random.Random) -> None:
    await _repeat(peer, frame(b"", _PING) * 20_000)


@scene("frames: pongs that nobody asked for", only="ws")
async def pongs(peer: Hostile, draw: random.Random) -> None:
    await _repeat(peer, frame(draw.randbytes(4), _PONG) * 20_000)


@scene("frames: messages of nothing", only="ws")
async def empty_messages(peer: Hostile, draw: random.Random) -> None:
    await _repeat(peer, frame(b"") * 20_000)


@scene("frames: messages of one byte", only="ws")
async def single_bytes(peer: Hostile, draw: random.Random) -> None:
    said = opening() + b"\n\n" + b"# nothing\n\n" * 2000
    await _repeat(peer, b"".join([frame(said[number : number + 1]) for number in range(len(said))]))


@scene("frames: messages in fragments of nothing", only="ws")
async def fragments(peer: Hostile, draw: random.Random) -> None:
    message = frame(b"", _FIRST) + frame(b"", _MORE) * 4000 + frame(b"#", _LAST)
    await _repeat(peer, message * 5)


@scene("frames: an upgrade request, a byte now and then", only="ws", links=256)
async def slow_upgrade(peer: Hostile, draw: random.Random) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for byte in upgrade_request(f"127.0.0.1:{peer.gate.port}", *["X-Long: " + "y" * 100] * 50):
            if peer.is_closed:
                return
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.2)
