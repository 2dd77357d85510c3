"""Plays below TLS: connections that a wss server has to accept before it knows what they are."""

from __future__ import annotations

import asyncio
import random

from siege.gates import Hostile
from siege.scenes import PATIENCE_S, scene, speak

_RECORD = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"  # how a ClientHello of 512 bytes begins


@scene("tls: connect and hang up", only="tls", links=64)
async def knocks(peer: Hostile, draw: random.Random) -> None:
    return


@scene("tls: connections that say nothing and stay", only="tls", links=256)
async def mute(peer: Hostile, draw: random.Random) -> None:
    await peer.read_to_the_end(PATIENCE_S)


@scene("tls: a hello that is none", only="tls", links=64)
async def garbage(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, _RECORD + draw.randbytes(600))


@scene("tls: half of a hello, and then nothing", only="tls", links=256)
async def half(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, _RECORD)


@scene("tls: a hello, a byte now and then", only="tls", links=128)
async def drip(peer: Hostile, draw: random.Random) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for byte in _RECORD + draw.randbytes(501):
            if peer.is_closed:
                return
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.1)


@scene("tls: requests without TLS", only="tls")
async def plain(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
