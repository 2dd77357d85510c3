"""A whole exchange that is refused: the peer is told so, and why, before its stream closes (072).

Rule: a refusal costs a few bytes and a moment. What a refused peer has sent is read and dropped: a
connection that is closed with unread bytes loses what was written last.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from lace.errors import TransportError
from lace.iltp.writer import encode_blank, encode_facts, encode_preface
from lace.interlace.reasons import ExchangeRefusal
from lace.interlace.vocabulary import EXCHANGE_REFUSED
from lace.limits import MIB
from lace.notation.fact import Fact
from lace.transports.base import ByteStream
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusingLimits:
    """What telling refused peers may take."""

    max_told: int = 64  # at a time; further peers are refused without a word
    patience_s: float = 1.0  # for a peer to take our word and hang up
    max_dropped_bytes: int = MIB  # of what it sends meanwhile


class Refusing:
    """Tells peers that they are refused."""

    def __init__(self, limits: RefusingLimits) -> None:
        self._limits = limits
        self._telling = 0

    async def tell(self, stream: ByteStream, why: ExchangeRefusal) -> None:
        """Say why, wait for the peer to hang up, and drop the stream."""
        if self._telling >= self._limits.max_told:
            stream.abort()
            return
        self._telling += 1
        try:
            with suppress(TransportError, TimeoutError, OSError):
                async with asyncio.timeout(self._limits.patience_s):
                    await self._tell(stream, why)
        finally:
            self._telling -= 1
            stream.abort()

    async def _tell(self, stream: ByteStream, why: ExchangeRefusal) -> None:
        await stream.send(refusal(why))
        dropped = 0
        while dropped < self._limits.max_dropped_bytes and (data := await stream.receive()):
            dropped += len(data)
        await stream.close()


def refusal(why: ExchangeRefusal) -> bytes:
    """All that a side says which refuses an exchange (072-TELL-01)."""
    return encode_preface() + encode_facts([Fact(EXCHANGE_REFUSED, (why.value,))]) + encode_blank()
