"""Frames below the stream: none is lost by parsing in turn, and those that carry nothing are few."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from lace.errors import TransportError
from lace.iltp.address import WebSocketAddress
from lace.transports.base import ByteStream, TransportLimits
from lace.transports.dial import listen
from lace.transports.door import HalfOpen
from lace.transports.frames import PacedConnection, Turns
from siege.gates import Gate, Hostile, frame
from transports.endpoints import any_port, plain_options

PING, PONG = 0x89, 0x8A


def between(tmp_path: Path, play: Callable[[Hostile, ByteStream], Awaitable[None]]) -> None:
    """A raw client, upgraded, and the stream that the server has of it."""

    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener, asyncio.timeout(30):
            assert isinstance(listener.address, WebSocketAddress)
            client = await Gate("raw", listener.address.port).enter("127.0.0.1")
            await client.upgrade()
            stream = await listener.accept()
            try:
                await play(client, stream)
            finally:
                client.leave()
                stream.abort()

    asyncio.run(run())


async def all_of(stream: ByteStream) -> bytes:
    found = b""
    while data := await stream.receive():
        found += data
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.clause("060-WSF-02")
def test_what_was_sent_before_a_connection_went_arrives_whole_however_it_was_cut(seed: int, tmp_path: Path) -> None:
    """Messages of all sizes, a few of them empty, then the end without a word."""
    draw = random.Random(seed)
    said = [draw.randbytes(draw.choice([0, 1, 2, 125, 126, 5000, 60_000])) for _ in range(60)]
    said += [draw.randbytes(1) for _ in range(3000)]
    draw.shuffle(said)

    async def play(client: Hostile, stream: ByteStream) -> None:
        reading = asyncio.create_task(all_of(stream))
        wire = b"".join(map(frame, said))
        while wire:
            size = draw.choice([1, 700, 100_000, 1_000_000])
            await client.send(wire[:size])
            wire = wire[size:]
        client.end()
        assert await reading == b"".join(said)

    between(tmp_path, play)


@pytest.mark.parametrize(
    "flood",
    [frame(b"", PING), frame(b"x" * 125, PING), frame(b"", PONG), frame(b""), frame(b"", 2) + frame(b"", 0) * 500],
    ids=["pings", "long pings", "pongs", "empty messages", "empty fragments"],
)
def test_who_floods_with_frames_that_carry_nothing_is_cut_and_it_is_said_why(flood: bytes, tmp_path: Path) -> None:
    async def play(client: Hostile, stream: ByteStream) -> None:
        await client.send(frame(b"hello"))
        assert await stream.receive() == b"hello"
        await client.send(flood * 400)
        with pytest.raises(TransportError, match="carry nothing"):
            await all_of(stream)

    between(tmp_path, play)


def test_frames_that_keep_a_connection_alive_are_answered(tmp_path: Path) -> None:
    async def play(client: Hostile, stream: ByteStream) -> None:
        for number in range(50):
            await client.send(frame(b"", PING) + frame(b"") + frame(b"%d" % number))
            assert await stream.receive() == b"%d" % number

    between(tmp_path, play)


@pytest.mark.parametrize("came_first", ["the loss", "our end"])
def test_a_connection_that_is_dropped_with_bytes_unparsed_has_ended_for_everybody(
    came_first: str, tmp_path: Path
) -> None:
    """Whoever waits for its end, the task of its handler first, would be left behind for each such connection."""

    async def play(client: Hostile, stream: ByteStream) -> None:
        connection: Any = stream.connection  # type: ignore[attr-defined]  # a WebSocketStream
        connection.turns = Unhurried()
        await client.send(frame(b"unparsed"))
        while not connection.has_backlog:
            await asyncio.sleep(0.01)
        if came_first == "the loss":
            connection.transport.abort()
            await asyncio.sleep(0.01)
            assert connection.has_backlog
        stream.abort()
        stream.abort()
        await connection.wait_closed()
        assert await stream.receive() == b""

    between(tmp_path, play)


class Unhurried(Turns):
    """Nobody's bytes are parsed."""

    def take(self, connection: PacedConnection) -> None:
        """Later."""


class Pretended:
    """A connection with pieces to parse, all of which cost the same."""

    def __init__(self, network: str, pieces: int, told: list[str], turns: Turns) -> None:
        self.network, self._pieces, self._told, self._turns = network, pieces, told, turns

    @property
    def has_backlog(self) -> bool:
        return self._pieces > 0

    def go_away(self) -> None:
        self._pieces = 0

    def parse_piece(self) -> None:
        self._pieces -= 1
        self._told.append(self.network)
        self._turns.charge(self.network, 1.0)


def test_a_network_with_many_connections_has_the_turns_of_one() -> None:
    told: list[str] = []

    async def run() -> None:
        turns = Turns()
        crowd = [Pretended("crowd", 10, told, turns) for _ in range(20)]
        for connection in [*crowd, Pretended("alone", 10, told, turns)]:
            turns.take(cast(PacedConnection, connection))
        while len(told) < 210:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert told[:40].count("alone") == 10  # one for one, though twenty others wait


def test_what_was_parsed_while_nobody_waited_is_not_held_against_anybody() -> None:
    told: list[str] = []

    async def run() -> None:
        turns = Turns()
        for _ in range(50):
            turns.take(cast(PacedConnection, Pretended("steady", 1, told, turns)))
            await asyncio.sleep(0)
        told.clear()
        crowd = [Pretended(f"crowd {number}", 10, told, turns) for number in range(16)]
        for connection in [*crowd, Pretended("steady", 1, told, turns)]:
            turns.take(cast(PacedConnection, connection))
        while len(told) < 161:
            await asyncio.sleep(0)

    asyncio.run(run())
    assert told.index("steady") <= 2 * 16  # its last piece may be ahead of the level


def test_whoever_has_upgraded_says_its_first_words_though_a_crowd_asks_to_upgrade(tmp_path: Path) -> None:
    """Requests wait for each other: frames do not wait for them, for each of them is charged as a hundred frames."""

    async def play(client: Hostile, stream: ByteStream) -> None:
        connection = cast(Any, stream).connection
        assert connection.requests is not connection.turns
        crowd = Pretended("crowd", 10**9, [], connection.requests)
        connection.requests.charge(connection.network, 1000.0)
        connection.requests.take(crowd)
        await client.send(frame(b"hello"))
        assert await stream.receive() == b"hello"
        assert crowd.has_backlog
        crowd.go_away()

    between(tmp_path, play)


def test_where_too_many_doors_are_half_open_the_largest_crowd_gives_way() -> None:
    half_open = HalfOpen(TransportLimits(max_handshakes=8, max_handshakes_per_prefix=6))
    left: list[int] = []

    def enter(network: str, number: int) -> bool:
        def leave() -> None:
            left.append(number)
            assert place is not None
            place.give_up()

        place = half_open.enter(network, leave)
        return place is not None

    assert all(enter("192.0.2.1", number) for number in range(6))
    assert not enter("192.0.2.1", 99)  # its own network has all it may have
    assert enter("192.0.2.2", 6)
    assert enter("192.0.2.3", 7)
    assert enter("192.0.2.4", 8)  # eight are open: the oldest of the crowd leaves
    assert enter("192.0.2.5", 9)
    assert left == [0, 1]
    assert len(half_open) == 8
