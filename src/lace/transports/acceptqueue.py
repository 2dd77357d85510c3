"""Streams that were accepted: those that nobody has taken yet, and those whose peer has gone already.

Rule: at most `most` wait, and they are taken in turn by network, so that one stream does not wait behind a crowd. Where
there is no room, first those leave whose peer has gone, then the last of the largest crowd; only then the newcomer.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Generic, Protocol, TypeVar

from lace.errors import TransportError
from lace.transports.base import TransportProof
from lace.transports.fairqueue import FairQueue
from lace.transports.networks import network_of

_CLOSED, _CLOSED_THERE = 7, 8  # of the states of a TCP connection: closed, and closed by the other side


class _Acceptable(Protocol):
    @property
    def proof(self) -> TransportProof: ...
    @property
    def is_left(self) -> bool: ...
    def abort(self) -> None: ...


S = TypeVar("S", bound=_Acceptable)


class AcceptQueue(Generic[S]):
    """The queue between a server of asyncio's, which pushes, and `Listener.accept`, which pulls."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: FairQueue[S] = FairQueue()
        self._changed = asyncio.Event()
        self._is_looked_through = False  # in this round of the event loop
        self.is_closed: bool = False

    @property
    def waiting(self) -> int:
        """How many wait to be accepted."""
        return len(self._waiting)

    def offer(self, stream: S) -> bool:
        """Let a stream wait; False if it was dropped."""
        network = network_of(stream.proof.address)
        if self.is_closed or not self._has_room_for(network):
            stream.abort()
            return False
        self._waiting.put(network, stream)
        self._changed.set()
        return True

    def _has_room_for(self, network: str) -> bool:
        if len(self._waiting) < self._most:
            return True
        if self._have_some_left():
            return True
        last = self._waiting.make_room(network)
        if last is not None:
            last.abort()
        return last is not None

    def _have_some_left(self) -> bool:
        """Drop those whose peer has gone; whether there were any. The system is asked for each of those that
        wait, so this is done once for all newcomers of one round of the loop."""
        if self._is_looked_through:
            return False
        self._is_looked_through = True
        asyncio.get_running_loop().call_soon(self._look_again)
        left = [(other, stream) for other, stream in self._waiting if stream.is_left]
        for other, stream in left:
            self._waiting.withdraw(other, stream)
            stream.abort()
        return bool(left)

    def _look_again(self) -> None:
        self._is_looked_through = False

    async def accept(self) -> S:
        """The next stream; TransportError once closed."""
        while (taken := self._waiting.take()) is None:
            if self.is_closed:
                raise TransportError("the listener is closed")
            self._changed.clear()
            await self._changed.wait()
        network, stream = taken
        self._waiting.charge(network, 1.0)
        return stream

    def close(self) -> None:
        """Drop what waits and wake the task that waits for more."""
        self.is_closed = True
        for stream in self._waiting.drain():
            stream.abort()
        self._changed.set()


def has_hung_up(transport: asyncio.BaseTransport) -> bool:
    """Whether the other side of a TCP connection has closed it: asyncio tells that once all was read (Linux only)."""
    return _state(transport) in (_CLOSED, _CLOSED_THERE)


def is_torn_down(transport: asyncio.BaseTransport) -> bool:
    """Whether a TCP connection has ended: the other side was told something that nobody was there to take (Linux
    only)."""
    return _state(transport) == _CLOSED


def _state(transport: asyncio.BaseTransport) -> int:
    """Of a TCP connection, as the system has it; 0 of any other."""
    sock = transport.get_extra_info("socket")
    if sys.platform != "linux" or sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return 0
    try:
        return int(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0])
    except OSError:
        return _CLOSED
