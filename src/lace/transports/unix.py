"""Unix sockets: the peer's user, told by the kernel and mapped to a verifier by the deployment (060, P23, P24).

Rule: `Transport` shows the bound path on both sides; `Peer` is set only through the configured uid map.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import struct
from collections.abc import Collection
from pathlib import Path

from lace.errors import TransportError
from lace.iltp.address import TcpAddress, UnixAddress
from lace.transports.base import READ_BYTES, Hears, Nobody, TransportLimits, TransportProof, UidMap, reason
from lace.transports.door import Visitor
from lace.transports.pipe import DEFAULT_LIMITS, PipeListener, PipeStream

NOBODY = UidMap()
SOCKET_MODE = 0o600  # only this user, unless the deployment opens it


async def dial_unix(
    address: UnixAddress, uids: UidMap = NOBODY, limits: TransportLimits = DEFAULT_LIMITS
) -> PipeStream:
    """Connect to a bound path."""
    try:
        async with asyncio.timeout(limits.connect_timeout_s):
            reader, writer = await asyncio.open_unix_connection(address.path, limit=READ_BYTES)
    except (OSError, TimeoutError) as error:
        raise TransportError(f"cannot reach {address}: {reason(error)}") from error
    return PipeStream(reader, writer, _proof(address, writer.get_extra_info("socket"), uids), limits)


async def listen_unix(
    address: UnixAddress,
    uids: UidMap = NOBODY,
    limits: TransportLimits = DEFAULT_LIMITS,
    mode: int = SOCKET_MODE,
    hears: Hears | None = None,
    proxies: Collection[str] = (),
) -> PipeListener:
    """Bind a path; one left behind by a dead process is taken over, a living one is not."""
    listener = PipeListener(address, limits)

    def proof(visitor: Visitor) -> TransportProof:
        if visitor.is_from_proxy:  # the user at the other end is the proxy's
            origin = TcpAddress(visitor.host, visitor.port) if visitor.host else address
            return TransportProof(address=origin, via_proxy=True)
        return _proof(address, visitor.sock, uids)

    _remove_stale(address)
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        previous = os.umask(0o777 & ~mode)
        try:
            bound.bind(address.path)
        finally:
            os.umask(previous)
    except OSError as error:
        bound.close()
        raise TransportError(f"cannot listen on {address}: {reason(error)}") from error
    listener.open([bound], address, proof, hears or Nobody(), proxies)
    listener.after_close = lambda: Path(address.path).unlink(missing_ok=True)
    return listener


def peer_uid(connection: socket.socket) -> int | None:
    """The user of the process at the other end, or None where the system cannot tell (060-UNIX-01)."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    size = struct.calcsize("3i")
    _, uid, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(uid)


def _proof(address: UnixAddress, connection: socket.socket, uids: UidMap) -> TransportProof:
    peer = uids.verifier(peer_uid(connection))
    return TransportProof(address=address, peer=peer)  # 060-UNIX-03 to 060-UNIX-05


def _remove_stale(address: UnixAddress) -> None:
    path = Path(address.path)
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise TransportError(f"cannot listen on {address}: something else is there")
    except OSError:
        return  # nothing there; binding tells what else is wrong
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(address.path)
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
        except OSError:
            return
        else:
            raise TransportError(f"cannot listen on {address}: a process is listening there")
