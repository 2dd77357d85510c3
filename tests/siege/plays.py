"""Plays of a siege: rules that cost, listings, floods, silence, records, bad requests, each error row of 050, 060."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from interlace.pair import blob
from interop.harness import honest_stream
from interop.test_misbehaviour import OURS, STREAM_ERRORS, TABLE, THEIRS, Spoil
from lace.notation import b64a
from lace.policy.operand import Module
from siege import speech
from siege.gates import Gate, Hostile, upgrade_request
from siege.scenes import PATIENCE_S, scene, speak

# --- rules that cost ------------------------------------------------------------------------------------------------


def _rules(name: str, module: Callable[[], Module]) -> None:
    @scene(f"rules: {name}")
    async def play(peer: Hostile, draw: random.Random) -> None:
        await speak(peer, speech.opening(module()) + b"\n")


_rules("a counter of 65,536 rounds", speech.counter)
_rules("joins of 10^8 rows filtered to nothing", speech.joins)
_rules("cross products that are kept", speech.products)
_rules("closure of a dense graph", speech.closure)
_rules("counts over products", speech.counting)
_rules("a hundred predicates that grow", speech.many_predicates)


@scene("rules: that cost, of a link that does not wait")
async def hit_and_run(peer: Hostile, draw: random.Random) -> None:
    make = draw.choice([speech.counter, speech.joins, speech.products, speech.many_predicates])
    await peer.send(speech.opening(make()) + b"\n")
    await peer.read_to_the_end(draw.uniform(0.05, 1.0))


@scene("rules: of another size each time")
async def varied_rules(peer: Hostile, draw: random.Random) -> None:
    make, low, high = draw.choice([(speech.joins, 20, 200), (speech.products, 5, 40), (speech.closure, 10, 120)])
    await speak(peer, speech.opening(make(draw.randint(low, high))) + b"\n")


@scene("rules: a new epoch as soon as the last is agreed")
async def epochs(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening() + b"\n\n")
    for number in range(200):
        module = speech.rules(f"Bad(P) :- Have(P), P != 'x{number}{draw.random()}', P != P.\n")
        await peer.send((speech.setup(module) + speech.hello(module)).encode() + b"\n\n")
    await peer.read_to_the_end(PATIENCE_S)


@scene("rules: a recursive selector that follows while records go", links=8)
async def following(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, speech.opening(speech.follower()) + b"\n\n")


# --- listings -------------------------------------------------------------------------------------------------------


@scene("listing: 8,192 bogus claims, then one summary of all but one")
async def guesses(peer: Hostile, draw: random.Random) -> None:
    seed = draw.randbytes(8)
    claims = [speech.bogus(seed + number.to_bytes(4, "big"), "00") for number in range(8192)]
    summary = f"AdvertisementPartition('00','8191','{b64a.encode(draw.randbytes(32))}')\n\n".encode()
    await speak(peer, speech.opening() + speech.listing(claims) + speech.requests() + b"\n\n" + summary)


@scene("listing: as long as a block may be, then rest", links=8)
async def long_listing(peer: Hostile, draw: random.Random) -> None:
    seed = draw.randbytes(8)
    claims = [speech.bogus(seed + number.to_bytes(4, "big")) for number in range(99_000)]
    await speak(peer, speech.opening() + speech.listing(claims) + speech.requests())


@scene("listing: a lie in every partition")
async def lying_summaries(peer: Hostile, draw: random.Random) -> None:
    lines = [
        f"AdvertisementPartition('{a}{b}','{draw.randint(1, 10**9)}','{b64a.encode(draw.randbytes(32))}')\n"
        for a in b64a.ALPHABET
        for b in b64a.ALPHABET
    ]
    await speak(peer, speech.opening() + "".join(sorted(lines)).encode() + b"\n\n")


@scene("listing: never ends")
async def endless_listing(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening())
    async with asyncio.timeout(PATIENCE_S):
        while not peer.is_closed:
            claims = [speech.bogus(draw.randbytes(16)) for _ in range(1000)]
            await peer.send(speech.listing(claims)[:-1])


@scene("requests: a million records that nobody has")
async def wild_requests(peer: Hostile, draw: random.Random) -> None:
    wanted = [speech.bogus(draw.randbytes(16)) for _ in range(100_000)]
    await speak(peer, speech.opening() + b"\n" + speech.requests(wanted))


# --- floods and silence ---------------------------------------------------------------------------------------------


@scene("flood: tick blocks")
async def ticks(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening(tick_ns=speech.TICK_NS) + b"\n\n")
    start = speech.now()
    async with asyncio.timeout(PATIENCE_S):
        while not peer.is_closed:
            await peer.send(speech.ticks(2000, start))


@scene("flood: loops pipelined by a peer that never reads")
async def loops(peer: Hostile, draw: random.Random) -> None:
    peer.stop_reading()
    await peer.send(speech.opening())
    async with asyncio.timeout(PATIENCE_S):
        while not peer.is_closed:
            await peer.send((speech.listing([speech.bogus(draw.randbytes(8))]) + b"\n\n\n") * 200)


@scene("flood: comments between blocks")
async def comments(peer: Hostile, draw: random.Random) -> None:
    await peer.send(speech.opening() + b"\n\n")
    async with asyncio.timeout(PATIENCE_S):
        while not peer.is_closed:
            await peer.send(b"# nothing\n\n" * 4000)


@scene("flood: connections that say nothing", links=64)
async def silence(peer: Hostile, draw: random.Random) -> None:
    await asyncio.sleep(draw.uniform(0.0, 0.2))


@scene("silence: links at a fixed point", links=256)
async def resting(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, speech.opening() + b"\n\n")


@scene("silence: links that never say hello", links=256)
async def mute(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, speech.PREFACE.encode())


@scene("silence: a byte now and then")
async def drip(peer: Hostile, draw: random.Random) -> None:
    async with asyncio.timeout(PATIENCE_S):
        for byte in speech.opening():
            await peer.send(bytes([byte]))
            await asyncio.sleep(0.05)


# --- records --------------------------------------------------------------------------------------------------------


@scene("records: pushed as fast as they are taken", links=8)
async def push(peer: Hostile, draw: random.Random) -> None:
    records = [blob(draw.randbytes(16_384)) for _ in range(64)]
    await speak(peer, honest_stream(records, [OURS]))


@scene("records: that fail their hash")
async def corrupt(peer: Hostile, draw: random.Random) -> None:
    records = [blob(draw.randbytes(256)) for _ in range(16)]
    stream = honest_stream(records, [OURS])
    for record in records:
        stream = stream.replace(record[-64:], draw.randbytes(64), 1)
    await speak(peer, stream)


@scene("records: cut at a random byte")
async def cut(peer: Hostile, draw: random.Random) -> None:
    stream = honest_stream([THEIRS], [OURS])
    await peer.send(stream[: draw.randrange(len(stream))])


@scene("bytes: an honest stream with a few of them changed")
async def mutated(peer: Hostile, draw: random.Random) -> None:
    stream = bytearray(honest_stream([THEIRS], [OURS]))
    for _ in range(draw.randint(1, 5)):
        stream[draw.randrange(len(stream))] = draw.randrange(256)
    await peer.send(bytes(stream))
    await peer.read_to_the_end(draw.uniform(0.1, 2.0))


@scene("bytes: at random")
async def noise(peer: Hostile, draw: random.Random) -> None:
    await speak(peer, draw.randbytes(draw.randint(1, 65_536)))


# --- WebSocket only -------------------------------------------------------------------------------------------------


def _door(name: str, request: Callable[[Gate, random.Random], bytes], links: int = 32) -> None:
    @scene(f"ws: {name}", only="ws", links=links)
    async def play(peer: Hostile, draw: random.Random) -> None:
        await speak(peer, request(peer.gate, draw))


_door(
    "a page of another origin",
    lambda gate, draw: upgrade_request(f"127.0.0.1:{gate.port}", "Origin: https://evil.example"),
)
_door("a name that was bound anew", lambda gate, draw: upgrade_request(f"evil{draw.random()}.example:{gate.port}"))
_door("no key but an identity", lambda gate, draw: upgrade_request("127.0.0.1").replace(b"Sec-WebSocket-Key", b"X"))
_door("bytes that are no request", lambda gate, draw: draw.randbytes(2000) + b"\r\n\r\n")
_door("requests that never end", lambda gate, draw: upgrade_request("127.0.0.1")[:-2], links=256)
_door("headers without number", lambda gate, draw: b"GET /interlace HTTP/1.1\r\n" + b"X: y\r\n" * 10_000)


# --- every error row of 050 and 060 ---------------------------------------------------------------------------------


def _error(name: str, spoil: Spoil) -> None:
    @scene(f"error: {name}")
    async def play(peer: Hostile, draw: random.Random) -> None:
        stream = honest_stream([THEIRS], [OURS])
        source = stream.split(b"\nAdvertised('", 1)[1].split(b"'")[2]
        await speak(peer, spoil(stream).replace(b"@SOURCE@", source))


for _name, (_spoil, _) in {**STREAM_ERRORS, **TABLE}.items():
    _error(_name, _spoil)
