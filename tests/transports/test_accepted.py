"""Streams that wait to be taken: a crowd at the door keeps nobody else out, and nobody waits behind all of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from lace.errors import TransportError
from lace.iltp.address import TcpAddress
from lace.transports.accepted import AcceptQueue
from lace.transports.base import TransportProof


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


def taken(queue: AcceptQueue[Stream], count: int) -> list[Stream]:
    async def run() -> list[Stream]:
        return [await queue.accept() for _ in range(count)]

    return asyncio.run(run())


def test_one_stream_does_not_wait_behind_a_crowd() -> None:
    queue, crowd = AcceptQueue[Stream](64), crowd_of(2, 30)
    for stream in crowd:
        assert queue.offer(stream)
    before = taken(queue, 10)
    lone = Stream("192.0.2.1")
    assert queue.offer(lone)
    assert lone in taken(queue, 3)  # behind those networks at most that have had as few
    assert taken(queue, len(crowd) - 12) == [stream for stream in crowd if stream not in before][2:]


def test_where_there_is_no_room_the_last_of_the_largest_crowd_leaves() -> None:
    queue = AcceptQueue[Stream](8)
    few, many = crowd_of(1, 2), [Stream("192.0.2.9", number) for number in range(6)]
    for stream in few + many:
        assert queue.offer(stream)
    lone = Stream("192.0.2.1")
    assert queue.offer(lone)
    assert [stream.is_aborted for stream in many] == [False] * 5 + [True]
    assert not lone.is_aborted
    more = Stream("192.0.2.9", 7)
    assert not queue.offer(more)  # a crowd makes no room for itself
    assert more.is_aborted
    assert set(map(id, taken(queue, 8))) == set(map(id, [*few, *many[:5], lone]))


def test_those_who_have_gone_leave_first() -> None:
    """Whoever is cut and comes again leaves one behind each time."""
    queue = AcceptQueue[Stream](8)
    gone = [Stream(f"127.0.1.{host}", is_left=True) for host in range(6)]
    here = [Stream(f"127.0.2.{host}") for host in range(2)]
    for stream in gone + here:
        assert queue.offer(stream)
    lone = Stream("192.0.2.1")
    assert queue.offer(lone)
    assert all(stream.is_aborted for stream in gone)
    assert taken(queue, 3) == [*here, lone]


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
    for stream in streams:
        queue.offer(stream)
    queue.close()
    assert all(stream.is_aborted for stream in streams)
