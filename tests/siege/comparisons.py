"""Plays of the capabilities (070): packed lines that swell, symbols without end, comparisons that never come to one."""

from __future__ import annotations

import random
import zlib

from lace.iltp.markers import PACKED
from lace.notation import b64a
from siege import speech
from siege.gates import Hostile
from siege.scenes import PATIENCE_S, scene, speak

_WHOLE = 1 << 20


def _capable(draw: random.Random) -> dict[str, int]:
    return {"x_differences": 1, "x_differences_salt": draw.getrandbits(127), "x_compression": 1}


def _packed(lines: bytes, whole: int | None = None) -> bytes:
    data = zlib.compress(lines, 9)
    return b"%s%d %d\n" % (PACKED, whole or len(lines), len(data)) + data


def _summary(draw: random.Random, count: int) -> bytes:
    """What an asker with other records tells first."""
    words = [b64a.encode(draw.randbytes(size)) for size in (16, 16, 48)]
    return (
        f"DifferenceRoot('{count}','{words[0]}')\nDifferenceSummary('{count}','{words[1]}','{words[2]}')\n\n".encode()
    )


@scene("packed: a listing that swells a hundredfold", links=8)
async def swelling(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(**_capable(draw)))
    claim = f"Advertised('{speech.bogus(draw.randbytes(8))}','{speech.SOURCE}')\n".encode()
    await speak(peer, _packed(claim * (_WHOLE // len(claim))) * 60 + b"\n")


@scene("packed: more than it says")
async def bomb(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(**_capable(draw)))
    await speak(peer, _packed(b"Have('x')\n" * 100_000_0, _WHOLE))


@scene("packed: single lines, each an item of its own")
async def splinters(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(**_capable(draw)))
    line = f"Advertised('B.{'A' * 43}.H3','{speech.SOURCE}')\n".encode()
    await speak(peer, _packed(line * 3) * 20_000)


@scene("comparison: symbols asked for one by one")
async def symbol_by_symbol(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(**_capable(draw)) + _summary(draw, 190))
    for end in range(600, 5000):
        await peer.send(f"DifferenceMore('{end}')\n\n".encode())
    await peer.read_to_the_end(PATIENCE_S)


@scene("comparison: as many symbols as may be asked for")
async def all_symbols(peer: Hostile, draw: random.Random) -> None:
    peer.stop_reading()
    await peer.send(speech.opening(**_capable(draw)) + _summary(draw, 190))
    for end in (1 << 16, 1 << 17, 1 << 18, 1 << 20, 1 << 22):
        await peer.send(f"DifferenceMore('{end}')\n\n".encode())
    await peer.read_to_the_end(PATIENCE_S)


@scene("comparison: short ids that name nothing")
async def nameless(peer: Hostile, draw: random.Random) -> None:
    words = sorted(draw.getrandbits(64) for _ in range(50 * 90))
    lines = [
        f"DifferenceLacks('{b64a.encode(b''.join(word.to_bytes(8, 'big') for word in words[start : start + 90]))}')\n"
        for start in range(0, len(words), 90)
    ]
    await speak(peer, speech.opening(**_capable(draw)) + _summary(draw, 190) + "".join(lines).encode() + b"\n")


@scene("capabilities: on and off with every epoch")
async def flapping(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(**_capable(draw)) + _summary(draw, 190))
    for number in range(100):
        module = speech.rules(f"Bad(P) :- Field(P,'Group',_,'{draw.random()}').\n")
        limits = _capable(draw) if number % 2 else {}
        await peer.send((speech.setup(module) + speech.hello(module, **limits)).encode() + _summary(draw, number))
    await peer.read_to_the_end(PATIENCE_S)
