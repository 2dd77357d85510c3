"""The army: hostile links of one play, each beginning anew as soon as it was cut."""

from __future__ import annotations

import asyncio
import random
import sys

from siege.gates import Gate
from siege.scenes import Scene, repertoire

SOURCES = 16  # loopback addresses that links come from; each counts as a network of its own
PAUSE_S = 0.02  # between two lives of a link


async def besiege(scene: Scene, gate: Gate, links: int, seed: int) -> None:
    """Until killed; says one line once every link has tried its door."""
    tried = [asyncio.Event() for _ in range(links)]
    tasks = [asyncio.create_task(soldier(scene, gate, number, seed, tried[number])) for number in range(links)]
    await asyncio.gather(*(event.wait() for event in tried))
    sys.stdout.write("here\n")
    sys.stdout.flush()
    await asyncio.gather(*tasks)


async def soldier(scene: Scene, gate: Gate, number: int, seed: int, tried: asyncio.Event) -> None:
    """One hostile link, life after life."""
    life = 0
    while True:
        draw = random.Random(f"{seed} {number} {life}")
        life += 1
        peer = None
        try:
            peer = await gate.enter(f"127.0.1.{1 + number % SOURCES}")
            tried.set()
            await scene.play(peer, draw)
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # cut: that is what should happen
        finally:
            tried.set()
            if peer is not None:
                peer.leave()
        await asyncio.sleep(PAUSE_S)


def gate_of(scene: Scene, scheme: str, port: int) -> Gate:
    """How the links of a play come in: through TLS over wss, unless it is what they attack."""
    speaks = "raw" if scene.only else {"wss": "ws"}.get(scheme, scheme)
    return Gate(speaks, port, is_tls=scheme == "wss" and scene.only != "tls")


def attack(name: str, scheme: str, port: int, links: int, seed: int) -> None:
    """Run an army in this process."""
    scene = repertoire()[name]
    asyncio.run(besiege(scene, gate_of(scene, scheme, port), links, seed))
