"""TCP: bytes and nothing proven (060, P23, P24).

Rule: `Transport` shows the dialled host to the dialer and the peer's own endpoint to the acceptor, always with port;
`Peer`, `HelloSigner` and `TransportEncrypted` stay absent.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket

from lace.errors import TransportError
from lace.iltp.address import TcpAddress
from lace.transports.accepted import ACCEPTED_AT_ONCE, let_wait
from lace.transports.base import READ_BYTES, TransportLimits, TransportProof
from lace.transports.pipe import DEFAULT_LIMITS, PipeListener, PipeStream

KEEPALIVE_AFTER_S = 60
_ERRNO = re.compile(r"\[Errno (\d+)\]")


async def dial_tcp(address: TcpAddress, limits: TransportLimits = DEFAULT_LIMITS) -> PipeStream:
    """Connect; TransportError if nobody answers in time."""
    try:
        async with asyncio.timeout(limits.connect_timeout_s):
            reader, writer = await asyncio.open_connection(address.host, address.port, limit=READ_BYTES)
    except (OSError, TimeoutError) as error:
        raise TransportError(f"cannot reach {address}: {reason(error)}") from error
    prepare_socket(writer)
    return PipeStream(reader, writer, TransportProof(address=address), limits)  # 060-TCP-02, 060-TCP-03


async def listen_tcp(address: TcpAddress, limits: TransportLimits = DEFAULT_LIMITS) -> PipeListener:
    """Bind; port 0 (never in an address text) takes a free one."""
    listener = PipeListener(address, limits)

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        prepare_socket(writer)
        host, port = writer.get_extra_info("peername")[:2]
        listener.offer(PipeStream(reader, writer, TransportProof(address=TcpAddress(host, port)), limits))

    try:
        server = await asyncio.start_server(
            accepted, address.host, address.port, limit=READ_BYTES, backlog=ACCEPTED_AT_ONCE
        )
        let_wait(server)
    except OSError as error:
        raise TransportError(f"cannot listen on {address}: {reason(error)}") from error
    listener.attach(server, TcpAddress(address.host, server.sockets[0].getsockname()[1]))
    return listener


def prepare_socket(writer: asyncio.StreamWriter) -> None:
    """No delay: a phase ends with a short write that the peer waits for. Probes: a peer that is gone takes no link."""
    connection = writer.get_extra_info("socket")
    if connection is not None and connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_AFTER_S)


def reason(error: BaseException) -> str:
    """An operating-system error in words; a timeout has none of its own.

    asyncio puts addresses, and where a name has several of them several errors, into one text: what people can use of
    it is the system's word for the error, if there is one.

    >>> reason(ConnectionRefusedError(111, "Connect call failed ('127.0.0.1', 1)"))
    'Connection refused'
    """
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, socket.gaierror):
        return error.strerror or str(error)
    numbers = set(_ERRNO.findall(str(error))) if isinstance(error, OSError) else set()
    return os.strerror(int(numbers.pop())) if len(numbers) == 1 else str(error)
