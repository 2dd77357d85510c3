"""Bytes of a session on their way to the peer, piece by piece.

Rule: what goes out is made when it is taken, on the event loop; so after a long piece the next one is made in turn. A
stream whose buffer has room makes nobody wait, and thirty peers that ask for what is long would each have all of it
made in one round of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum

from lace.errors import TransportError
from lace.runtime.link.session import Session
from lace.runtime.link.turns import LinkTurns
from lace.runtime.trace.tap import Tap
from lace.transports.base import ByteStream

LONG_PIECE = 64 * 1024  # bytes, about a millisecond of making them


class Written(Enum):
    """How far it came."""

    ALL = "nothing is left"
    LOST = "the connection is lost"
    STUCK = "the peer takes no bytes"


class Writing:
    """The outgoing half of one link."""

    def __init__(
        self, stream: ByteStream, session: Session, turns: LinkTurns, tap: Tap | None, send_timeout_s: float
    ) -> None:
        self._stream = stream
        self._session = session
        self._turns = turns
        self._tap = tap
        self._send_timeout_s = send_timeout_s

    async def flush(self, on_sent: Callable[[], None]) -> Written:
        """Write what the session has, until nothing is left or nothing more is taken."""
        data = self._session.data_to_send()
        while data:
            if self._tap is not None:
                self._tap.sent(data)
            try:
                async with asyncio.timeout(self._send_timeout_s):
                    await self._stream.send(data)
            except TransportError:
                return Written.LOST
            except TimeoutError:
                return Written.STUCK
            on_sent()
            data = await self._next_after(len(data))
        return Written.ALL

    async def _next_after(self, size: int) -> bytes:
        if size < LONG_PIECE:
            return self._session.data_to_send()
        made: list[bytes] = []
        await self._turns.done(lambda: made.append(self._session.data_to_send()))
        return made[0]
