"""Streams that wait to be taken: a crowd at the door keeps nobody else out, and nobody waits behind all of it."""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from lace.errors import TransportError
from lace.iltp.address import TcpAddress, WebSocketAddress
from lace.transports.acceptqueue import AcceptQueue
from lace.transports.base import HeardStream, TransportProof
from lace.transports.dial import listen
from lace.transports.door import ACCEPTED_AT_ONCE
from lace.transports.pipe import PipeListener
from lace.transports.websocket import WebSocketListener
from transports.endpoints import any_port, plain_options


@dataclass(eq=False)
class Stream:
    """As much of a stream as a queue of them looks at."""

    host: str
    number: int = 0
    is_left: bool = False
    is_aborted: bool = False

    @property
    def proof(self) -> TransportProof:
        return TransportProof(address=TcpAddress(self.host, 1000 + self.number))

    def abort(self) -> None:
        self.is_aborted = True


def crowd_of(hosts: int, each: int) -> list[Stream]:
    return [Stream(f"127.0.1.{host}", number) for number in range(each) for host in range(hosts)]


def offered(queue: AcceptQueue[Stream], *streams: Stream) -> list[bool]:
    """Which of them may wait; all come in one round of the loop."""

    async def run() -> list[bool]:
        found = [queue.offer(stream) for stream in streams]
        await asyncio.sleep(0)
        return found

    return asyncio.run(run())


def taken(queue: AcceptQueue[Stream], count: int) -> list[Stream]:
    async def run() -> list[Stream]:
        return [await queue.accept() for _ in range(count)]

    return asyncio.run(run())


def test_one_stream_does_not_wait_behind_a_crowd() -> None:
    queue, crowd = AcceptQueue[Stream](64), crowd_of(2, 30)
    assert all(offered(queue, *crowd))
    before = taken(queue, 10)
    lone = Stream("192.0.2.1")
    assert all(offered(queue, lone))
    assert lone in taken(queue, 3)  # behind those networks at most that have had as few
    assert taken(queue, len(crowd) - 12) == [stream for stream in crowd if stream not in before][2:]


def test_where_there_is_no_room_the_last_of_the_largest_crowd_leaves() -> None:
    queue = AcceptQueue[Stream](8)
    few, many = crowd_of(1, 2), [Stream("192.0.2.9", number) for number in range(6)]
    assert all(offered(queue, *few, *many))
    lone = Stream("192.0.2.1")
    assert all(offered(queue, lone))
    assert [stream.is_aborted for stream in many] == [False] * 5 + [True]
    assert not lone.is_aborted
    more = Stream("192.0.2.9", 7)
    assert not any(offered(queue, more))  # a crowd makes no room for itself
    assert more.is_aborted
    assert set(map(id, taken(queue, 8))) == set(map(id, [*few, *many[:5], lone]))


def test_those_who_have_gone_leave_first() -> None:
    """Whoever is cut and comes again leaves one behind each time."""
    queue = AcceptQueue[Stream](8)
    gone = [Stream(f"127.0.1.{host}", is_left=True) for host in range(6)]
    here = [Stream(f"127.0.2.{host}") for host in range(2)]
    assert all(offered(queue, *gone, *here))
    lone = Stream("192.0.2.1")
    assert all(offered(queue, lone))
    assert all(stream.is_aborted for stream in gone)
    assert taken(queue, 3) == [*here, lone]


def test_it_is_asked_once_in_a_round_who_of_those_that_wait_has_gone() -> None:
    """The system is asked for each of them: not for all of them at each newcomer of a crowd."""

    class Asked(Stream):
        times = 0

        @property
        def is_left(self) -> bool:  # type: ignore[override]
            Asked.times += 1
            return False

        @is_left.setter
        def is_left(self, _: bool) -> None:
            pass

    queue, crowd = AcceptQueue[Stream](8), [Asked("192.0.2.9", number) for number in range(40)]
    assert sum(offered(queue, *crowd)) == 8
    assert Asked.times == 8
    offered(queue, *crowd_of(2, 2))  # in another round
    assert Asked.times == 16


def test_nobody_comes_after_the_end_and_who_waits_hears_of_it() -> None:
    async def run() -> None:
        queue, waits = AcceptQueue[Stream](8), Stream("192.0.2.1")
        accepting = asyncio.create_task(queue.accept())
        await asyncio.sleep(0)
        queue.close()
        with pytest.raises(TransportError):
            await accepting
        assert not queue.offer(waits)
        assert waits.is_aborted
        with pytest.raises(TransportError):
            await queue.accept()

    asyncio.run(run())


def test_what_waits_at_the_end_is_dropped() -> None:
    queue, streams = AcceptQueue[Stream](8), crowd_of(2, 2)
    offered(queue, *streams)
    queue.close()
    assert all(stream.is_aborted for stream in streams)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_of_a_crowd_that_comes_at_once_a_few_are_accepted_in_each_round_and_nobody_is_turned_away(
    scheme: str, tmp_path: Path
) -> None:
    """Those that wait outside are connected already, however few are accepted at a time."""

    async def run() -> list[int]:
        rounds: list[int] = []
        async with await listen(any_port(scheme, tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, TcpAddress | WebSocketAddress)
            where = (listener.address.host, listener.address.port)
            crowd = [socket.create_connection(where, timeout=5) for _ in range(30)]
            async with asyncio.timeout(30):  # whoever is turned away never stands there
                while sum(rounds) < len(crowd):
                    before = standing(listener)
                    await asyncio.sleep(0)
                    rounds.append(standing(listener) - before)
            for one in crowd:
                one.close()
        return rounds

    rounds = asyncio.run(run())
    assert max(rounds) <= ACCEPTED_AT_ONCE
    assert sum(rounds) == 30 > ACCEPTED_AT_ONCE


def standing(listener: object) -> int:
    """How many were accepted: among the streams, or before their upgrade."""
    if isinstance(listener, WebSocketListener):
        return len(listener.door.half_open)
    assert isinstance(listener, PipeListener)
    return listener.accepted.waiting


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the state of a connection")
@pytest.mark.parametrize("leaves", ["half", "reset", "stays"])
def test_who_says_no_more_may_still_listen_and_whose_end_is_torn_down_does_not(leaves: str, tmp_path: Path) -> None:
    async def run() -> tuple[bool, bool, bytes]:
        async with await listen(any_port("tcp", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, TcpAddress)
            peer = socket.create_connection((listener.address.host, listener.address.port), timeout=5)
            stream = await listener.accept()
            assert isinstance(stream, HeardStream)
            assert not stream.is_deaf
            peer.sendall(b"last words")
            if leaves == "half":
                peer.shutdown(socket.SHUT_WR)
            elif leaves == "reset":
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.close()
            await asyncio.sleep(0.05)
            found = stream.is_left, stream.is_deaf
            if leaves != "reset":
                await stream.send(b"to you")
                assert peer.recv(100) == b"to you"
            said = b"" if leaves == "reset" else await stream.receive()
            stream.abort()
            peer.close()
            return *found, said

    expected = {
        "half": (True, False, b"last words"),
        "reset": (True, True, b""),
        "stays": (False, False, b"last words"),
    }
    assert asyncio.run(run()) == expected[leaves]
