"""Streams that were accepted and that nobody has taken yet.

Rule: at most `most` wait; one more is dropped, for whoever accepts is behind already.
"""

from __future__ import annotations

import asyncio
from typing import Generic, Protocol, TypeVar

from lace.errors import TransportError


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
