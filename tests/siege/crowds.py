"""Plays of many: keys and rules that are invented anew for every link, and links that set each other to work."""

from __future__ import annotations

import asyncio
import os
import random

from interlace.pair import blob
from interop.harness import honest_stream
from interop.test_misbehaviour import OURS
from lace.iltp.address import WebSocketAddress
from lace.records.keys import SigningKey
from lace.transports.proof import HEADER, NONCE_BYTES, Upgrade, sign_as_client
from siege import speech
from siege.gates import UPGRADE_KEY, Hostile, frame
from siege.scenes import PATIENCE_S, scene, speak

FAR_AHEAD_NS = 260 * 365 * 86_400 * 10**9


async def _prove(peer: Hostile, draw: random.Random) -> None:
    """Upgrade under a key that nobody has seen."""
    key = SigningKey.generate(draw.randbytes)
    address = WebSocketAddress("127.0.0.1", peer.gate.port, secure=peer.gate.is_tls)
    upgrade = Upgrade(address, peer.certificate, UPGRADE_KEY)
    claim = sign_as_client(upgrade, key, os.urandom(NONCE_BYTES), speech.now())
    await peer.upgrade(f"{HEADER}: {claim}")


@scene("keys: another one for every link, at rest", only="ws", links=256)
async def many_keys(peer: Hostile, draw: random.Random) -> None:
    await _prove(peer, draw)
    await speak(peer, frame(speech.opening() + b"\n\n"))


@scene("keys: another one for every link, and a long listing each", only="ws", links=32)
async def heavy_keys(peer: Hostile, draw: random.Random) -> None:
    await _prove(peer, draw)
    seed = draw.randbytes(8)
    said = speech.opening() + speech.listing(speech.bogus(seed + n.to_bytes(4, "big")) for n in range(20_000))
    for start in range(0, len(said), 60_000):
        await peer.send(frame(said[start : start + 60_000]))
    await peer.read_to_the_end(PATIENCE_S)


@scene("keys: proofs by the thousand, each hung up on", only="ws")
async def proofs(peer: Hostile, draw: random.Random) -> None:
    await _prove(peer, draw)


@scene("rules: small, and others each time")
async def many_rules(peer: Hostile, draw: random.Random) -> None:
    name = draw.randbytes(8).hex()
    await peer.send(speech.opening(speech.rules(f"Bad(P) :- Field(P,'Group',_,'{name}').\n")) + b"\n\n")
    await peer.read_to_the_end(draw.uniform(0.05, 0.3))


@scene("rules: the same costly ones on every link, broken off in the middle")
async def broken_off(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(speech.joins(60)) + b"\n\n")
    await peer.read_to_the_end(draw.uniform(0.05, 0.6))


@scene("rules: as many as may be, each reading the one before")
async def deep_rules(peer: Hostile, draw: random.Random) -> None:
    last, name = 120, draw.randbytes(4).hex()
    pairs = [
        f"Z{n}(P) :- Z{n - 1}(P), not W{n}(P).\nW{n}(P) :- Z{n - 1}(P), Field(P,'Group',_,'{name}').\n"
        for n in range(1, last)
    ]
    chain = "".join(pairs)
    await speak(peer, speech.opening(speech.rules(f"Z0(P) :- Have(P).\n{chain}Bad(P) :- W{last - 1}(P).\n")) + b"\n")


@scene("records: one at a time, while everybody else follows")
async def one_by_one(peer: Hostile, draw: random.Random) -> None:
    if draw.random() < 0.75:
        await speak(peer, speech.opening() + b"\n\n")
    else:
        await speak(peer, honest_stream([blob(draw.randbytes(64))], [OURS]))


@scene("time: clocks that are centuries apart, and ticks that go back")
async def wrong_time(peer: Hostile, draw: random.Random) -> None:
    when = draw.choice([-FAR_AHEAD_NS // 10, FAR_AHEAD_NS])
    await peer.send(speech.opening(later_ns=when) + b"\n\n")
    start = speech.now(when)
    for step in range(50):
        await peer.send(f"TickReady('{start.plus_ns((50 - step) * speech.TICK_NS)}')\n\n".encode())
        await asyncio.sleep(0.01)
