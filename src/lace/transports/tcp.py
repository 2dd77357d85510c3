"""TCP: bytes and nothing proven (060, P23, P24).

Rule: `Transport` shows the dialled host to the dialer and the peer's own endpoint to the acceptor, always with port;
`Peer`, `HelloSigner` and `TransportEncrypted` stay absent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from lace.errors import TransportError
from lace.iltp.address import TcpAddress
from lace.transports.base import READ_BYTES, Hears, Nobody, TransportLimits, TransportProof, prepare_socket, reason
from lace.transports.door import Visitor, bound_sockets
from lace.transports.pipe import DEFAULT_LIMITS, PipeListener, PipeStream


async def dial_tcp(address: TcpAddress, limits: TransportLimits = DEFAULT_LIMITS) -> PipeStream:
    """Connect; TransportError if nobody answers in time."""
    try:
        async with asyncio.timeout(limits.connect_timeout_s):
            reader, writer = await asyncio.open_connection(address.host, address.port, limit=READ_BYTES)
    except (OSError, TimeoutError) as error:
        raise TransportError(f"cannot reach {address}: {reason(error)}") from error
    prepare_socket(writer)
    return PipeStream(reader, writer, TransportProof(address=address), limits)  # 060-TCP-02, 060-TCP-03


async def listen_tcp(
    address: TcpAddress,
    limits: TransportLimits = DEFAULT_LIMITS,
    hears: Hears | None = None,
    proxies: Collection[str] = (),
) -> PipeListener:
    """Bind; port 0 (never in an address text) takes a free one."""
    listener = PipeListener(address, limits)

    def proof(visitor: Visitor) -> TransportProof:
        return TransportProof(address=TcpAddress(visitor.host, visitor.port), via_proxy=visitor.is_from_proxy)

    try:
        sockets = bound_sockets(address.host, address.port)
    except OSError as error:
        raise TransportError(f"cannot listen on {address}: {reason(error)}") from error
    bound = TcpAddress(address.host, sockets[0].getsockname()[1])
    listener.open(sockets, bound, proof, hears or Nobody(), proxies)
    return listener
