"""Streams that were accepted: those that nobody has taken yet, and those whose peer has gone already.

Rule: at most `most` wait; one more is dropped, for whoever accepts is behind already.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Generic, Protocol, TypeVar

from lace.errors import TransportError

_CLOSED = (7, 8)  # of the states of a TCP connection: closed, and closed by the other side


class _Droppable(Protocol):
    def abort(self) -> None: ...


S = TypeVar("S", bound=_Droppable)


class AcceptQueue(Generic[S]):
    """The queue between a server of asyncio's, which pushes, and `Listener.accept`, which pulls."""

    def __init__(self, most: int) -> None:
        self._waiting: asyncio.Queue[S | None] = asyncio.Queue(most)
        self.is_closed = False

    def offer(self, stream: S) -> bool:
        """Let a stream wait; False if it was dropped."""
        if self.is_closed or self._waiting.full():
            stream.abort()
            return False
        self._waiting.put_nowait(stream)
        return True

    async def accept(self) -> S:
        """The next stream; TransportError once closed."""
        stream = None if self.is_closed and self._waiting.empty() else await self._waiting.get()
        if stream is None:
            raise TransportError("the listener is closed")
        return stream

    def close(self) -> None:
        """Drop what waits and wake whoever waits for more."""
        self.is_closed = True
        while not self._waiting.empty():
            stream = self._waiting.get_nowait()
            if stream is not None:
                stream.abort()
        self._waiting.put_nowait(None)  # wakes one `accept`


def has_hung_up(transport: asyncio.BaseTransport) -> bool:
    """Whether the other side of a TCP connection has closed it: asyncio tells that once all was read (Linux only)."""
    sock = transport.get_extra_info("socket")
    if sys.platform != "linux" or sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return False
    try:
        return bool(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in _CLOSED)
    except OSError:
        return True
