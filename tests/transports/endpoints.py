"""Real endpoints of every transport for the contract suite: a listener, a dialer, both ends connected."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from lace.iltp.address import Address, StdioAddress, TcpAddress, UnixAddress, WebSocketAddress
from lace.notation.tai import TAI
from lace.records.keys import SigningKey
from lace.transports.base import ByteStream
from lace.transports.certificate import write_self_signed
from lace.transports.dial import TransportOptions, dial, listen
from lace.transports.tls import ClientTls, ServerTls

NOW = TAI.of_unix_ns(1_790_000_000 * 10**9)
ALICE = SigningKey.from_secret("&.00420lG51WS82GdB30pE3m0H4XCK5HON61_Q6mlT7Xx.H3")
BOB = SigningKey(bytes(31) + b"\x07")

# A child that sends back what it gets, in pieces of its own.
ECHO_CHILD = """
import os
while data := os.read(0, 65536):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]
"""


def fixed_clock() -> TAI:
    """A clock that stands still."""
    return NOW


def plain_options() -> TransportOptions:
    """Nobody proves anything."""
    return TransportOptions(clock=fixed_clock)


def any_port(scheme: str, tmp_path: Path) -> Address:
    """An address of a scheme to listen on, wherever there is room."""
    match scheme:
        case "unix":
            return UnixAddress(str(tmp_path / "lace.sock"))
        case "tcp":
            return TcpAddress("127.0.0.1", 0)
        case "tcp6":
            return TcpAddress("::1", 0)
        case "ws" | "wss":
            return WebSocketAddress("127.0.0.1", 0, secure=scheme == "wss")
    raise ValueError(scheme)


def with_certificate(options: TransportOptions, tmp_path: Path) -> tuple[TransportOptions, bytes]:
    """Server options with a fresh certificate, and its pin."""
    files = ServerTls(certificate_file=tmp_path / "cert.pem", key_file=tmp_path / "key.pem")
    pin = write_self_signed(
        files.certificate_file, files.key_file, ["127.0.0.1", "localhost"], not_before=datetime.now(UTC), valid_days=2
    )
    return replace(options, server_tls=files), pin


Prepare = Callable[[TransportOptions], TransportOptions]


def unchanged(options: TransportOptions) -> TransportOptions:
    """No change."""
    return options


@asynccontextmanager
async def connected(
    scheme: str, tmp_path: Path, client: Prepare = unchanged, server: Prepare = unchanged
) -> AsyncIterator[tuple[ByteStream, ByteStream]]:
    """The dialer's and the acceptor's end of one real connection."""
    accepting, dialing = server(plain_options()), client(plain_options())
    if scheme == "wss":
        accepting, pin = with_certificate(accepting, tmp_path)
        dialing = replace(dialing, client_tls=ClientTls(pin=pin))
    async with await listen(any_port(scheme, tmp_path), accepting) as listener:
        near = await dial(listener.address, dialing)
        far = await listener.accept()
        try:
            yield near, far
        finally:
            near.abort()
            far.abort()


async def echo_child(options: TransportOptions) -> ByteStream:
    """A stream to a child process that sends everything back."""
    return await dial(StdioAddress(), replace(options, command=(sys.executable, "-c", ECHO_CHILD)))
