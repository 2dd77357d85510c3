"""A ByteStream over an asyncio reader and writer: the common part of stdio, unix and tcp.

Rule: bytes pass unchanged; at most WRITE_BUFFER_BYTES wait here.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from typing import Self

from lace.errors import TransportError
from lace.iltp.address import Address
from lace.transports.acceptqueue import AcceptQueue, has_hung_up, is_torn_down
from lace.transports.base import (
    READ_BYTES,
    WRITE_BUFFER_BYTES,
    Hears,
    Nobody,
    TransportLimits,
    TransportProof,
    prepare_socket,
)
from lace.transports.door import Door, Visitor, made_transport

DEFAULT_LIMITS = TransportLimits()


class PipeStream:
    """One direction read, the other written, both through asyncio's own buffers."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        proof: TransportProof,
        limits: TransportLimits = DEFAULT_LIMITS,
        after_close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self._reader = reader
        self.writer = writer
        self._limits = limits
        self._after_close = after_close
        self._closed = False
        self.proof = proof
        writer.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    async def receive(self) -> bytes:
        try:
            return await self._reader.read(READ_BYTES)
        except OSError:  # reset, broken pipe, host gone: the stream has ended
            return b""

    async def send(self, data: bytes) -> None:
        if self.writer.is_closing():
            raise TransportError("the connection is closed")
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError as error:
            raise TransportError(f"the connection was lost: {error}") from error

    @property
    def is_prompt(self) -> bool:
        return not self.writer.is_closing() and not self.writer.transport.get_write_buffer_size()

    def put(self, data: bytes) -> None:
        self.writer.write(data)  # a connection that is lost by that ends what is received

    async def close(self) -> None:
        """Flush and close; a peer that takes no bytes any more is dropped after the limit."""
        try:
            async with asyncio.timeout(self._limits.close_timeout_s):
                self.writer.close()
                await self.writer.wait_closed()
                self._closed = True
        except TimeoutError:
            self.abort()
        except OSError:
            pass  # gone already
        await self._finish()

    def abort(self) -> None:
        if not self._closed:  # a pipe's transport forgets its loop when it closes and cannot be aborted after that
            self.writer.transport.abort()

    @property
    def is_left(self) -> bool:
        return self.writer.is_closing() or self._reader.at_eof() or has_hung_up(self.writer.transport)

    @property
    def is_deaf(self) -> bool:
        return self.writer.is_closing() or is_torn_down(self.writer.transport)

    async def _finish(self) -> None:
        if self._after_close is not None:
            after, self._after_close = self._after_close, None
            await after()


class PipeListener:
    """A door whose streams wait in a bounded queue."""

    def __init__(self, address: Address, limits: TransportLimits = DEFAULT_LIMITS) -> None:
        self.address = address
        self._limits = limits
        self.accepted: AcceptQueue[PipeStream] = AcceptQueue(limits.max_pending_accepts)
        self.door: Door | None = None
        self._hears: Hears = Nobody()
        self._proof: Callable[[Visitor], TransportProof] | None = None
        self.after_close: Callable[[], None] | None = None

    def open(
        self,
        sockets: list[socket.socket],
        address: Address,
        proof: Callable[[Visitor], TransportProof],
        hears: Hears,
        proxies: Collection[str],
    ) -> None:
        """Accept on sockets that are bound to an address; `proof` says what a connection proves."""
        self.address, self._proof, self._hears = address, proof, hears
        self.door = Door(self._begin, self._limits, hears, proxies=proxies)
        self.door.open(sockets, address)

    async def _begin(self, visitor: Visitor) -> None:
        if visitor.is_from_proxy and not visitor.has_origin:
            raise TransportError("the proxy sent no PROXY header")
        reader = asyncio.StreamReader(limit=READ_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport = await made_transport(visitor, lambda: protocol, self._limits)
        visitor.place.give_up()
        writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
        prepare_socket(writer)
        assert self._proof is not None
        self.offer(PipeStream(reader, writer, self._proof(visitor), self._limits))

    def offer(self, stream: PipeStream) -> None:
        """Queue an accepted stream; drop it when too many wait already."""
        if not self.accepted.offer(stream) and not self.accepted.is_closed:
            self._hears.refused(stream.proof.address, "too many wait to be served")

    async def accept(self) -> PipeStream:
        return await self.accepted.accept()

    async def close(self) -> None:
        if self.accepted.is_closed:
            return
        if self.door is not None:
            self.door.close()
        self.accepted.close()
        if self.after_close is not None:
            self.after_close()

    def reload(self) -> list[str]:
        """Nothing of it was read from a file."""
        return []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
