"""What a proxy says about the connections that it passes on: PROXY headers (versions 1 and 2) and `X-Forwarded-For`.

Rule: only a proxy that the deployment named is believed, and of a list of forwarded addresses only the last one, which
that proxy added itself. Everything before it came from the client that dialled the proxy.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Sequence
from ipaddress import ip_address

from lace.errors import InvalidText, TransportError

UNIX = "unix"  # how a proxy that dials our unix socket is named
_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_MOST_V1 = 107  # bytes of a text header, its line end included
_MOST_V2 = 536  # bytes behind the fixed part: two addresses and some options; we read no more
_LOCAL, _PROXY = 0x20, 0x21
_TCP4, _TCP6 = 0x11, 0x21


def proxy_name(text: str) -> str:
    """How a deployment names a proxy: its address as a number, or `unix`; InvalidText if it is neither.

    >>> proxy_name("::ffff:10.0.0.1"), proxy_name("unix")
    ('10.0.0.1', 'unix')
    """
    if text == UNIX:
        return text
    try:
        return plain_host(str(ip_address(text)))
    except ValueError:
        raise InvalidText(f"{text!r} is not an IP address, nor the word unix", rule="proxy", place=text) from None


def plain_host(host: str) -> str:
    """An address as a deployment would write it: an IPv4 address that came over IPv6 as what it is."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return host
    mapped = getattr(address, "ipv4_mapped", None)
    return host if mapped is None else str(mapped)


async def read_origin(sock: socket.socket) -> tuple[str, int] | None:
    """Read a PROXY header, and no byte more: where the connection comes from, None if from the proxy itself."""
    start = await _exactly(sock, len(_SIGNATURE))
    if start == _SIGNATURE:
        return await _binary(sock)
    if not start.startswith(b"PROXY "):
        raise TransportError("what the proxy sent first is not a PROXY header")
    line = start
    while not line.endswith(b"\r\n"):
        if len(line) >= _MOST_V1:
            raise TransportError("a PROXY header of version 1 has no end")
        line += await _exactly(sock, 1)
    return _text(line)


def _text(line: bytes) -> tuple[str, int] | None:
    words = line.decode("latin-1").split()
    if words[1:2] == ["UNKNOWN"]:
        return None
    if len(words) != 6 or words[1] not in ("TCP4", "TCP6"):
        raise TransportError("a PROXY header of version 1 is PROXY TCP4|TCP6 and two addresses with ports")
    return _checked(words[2], words[4])


async def _binary(sock: socket.socket) -> tuple[str, int] | None:
    command, family, length = struct.unpack(">BBH", await _exactly(sock, 4))
    if length > _MOST_V2:
        raise TransportError(f"a PROXY header of version 2 has {length} bytes; {_MOST_V2} are read at most")
    rest = await _exactly(sock, length)
    if command == _LOCAL:
        return None
    if command != _PROXY:
        raise TransportError("a PROXY header of version 2 with a command that is unknown")
    sizes = {_TCP4: 4, _TCP6: 16}
    if family not in sizes:  # a socket of the proxy's machine, or no stream
        return None
    size = sizes[family]
    if length < 2 * size + 4:
        raise TransportError("a PROXY header of version 2 is too short for its addresses")
    return _checked(str(ip_address(rest[:size])), str(struct.unpack(">H", rest[2 * size : 2 * size + 2])[0]))


def _checked(host: str, port: str) -> tuple[str, int]:
    try:
        found = plain_host(str(ip_address(host)))
    except ValueError:
        raise TransportError("a PROXY header names an origin that is not an address") from None
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise TransportError("a PROXY header names an origin without a port")
    return found, int(port)


def forwarded_for(values: Sequence[str]) -> str:
    """The origin by `X-Forwarded-For`: the last address, which the proxy added; TransportError if there is none.

    >>> forwarded_for(["198.51.100.1, 203.0.113.7"])
    '203.0.113.7'
    """
    last = ",".join(values).rpartition(",")[2].strip()
    if last.startswith("["):  # [address]:port
        last = last[1:].partition("]")[0]
    elif last.count(":") == 1:  # address:port
        last = last.partition(":")[0]
    try:
        return plain_host(str(ip_address(last)))
    except ValueError:
        raise TransportError("the proxy forwarded no address (PROXY header or X-Forwarded-For)") from None


async def _exactly(sock: socket.socket, size: int) -> bytes:
    loop, data = asyncio.get_running_loop(), b""
    while len(data) < size:
        more = await loop.sock_recv(sock, size - len(data))
        if not more:
            raise ConnectionError("the proxy hung up")
        data += more
    return data
