"""From an address to a stream or a listener, whichever transport it names.

Rule: the one place that knows all transports. Nothing outside this package asks which one a stream is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import field
from typing import Self, assert_never

from lace.errors import TransportError
from lace.iltp.address import Address, StdioAddress, TcpAddress, UnixAddress, WebSocketAddress
from lace.notation.identifiers import Verifier
from lace.records.keys import Signer
from lace.transports.base import (
    AcceptedStream,
    ByteStream,
    Hears,
    Listener,
    Nobody,
    TransportLimits,
    TransportProof,
    UidMap,
)
from lace.transports.networks import is_loopback
from lace.transports.proof import Clock, ProofMemory, ProofRefused
from lace.transports.stdio import STDIO, open_stdio, spawn_child
from lace.transports.tcp import dial_tcp, listen_tcp
from lace.transports.tls import ClientTls, ServerTls
from lace.transports.unix import SOCKET_MODE, dial_unix, listen_unix
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportOptions:
    """What a deployment brings to its connections; each transport takes what concerns it."""

    clock: Clock
    signer: Signer | None = None  # proves us over ws and wss
    trusted: Sequence[Verifier] = ()  # if any: only peers proven to be one of these
    uids: UidMap = field(default_factory=UidMap)
    unix_mode: int = SOCKET_MODE
    client_tls: ClientTls = field(default_factory=ClientTls)
    server_tls: ServerTls | None = None
    names: Sequence[WebSocketAddress] = ()  # other addresses under which a ws server may be dialled with a proof
    origins: Sequence[str] = ()  # of web pages that may speak with a ws server; all others are turned away
    command: Sequence[str] = ()  # the child to speak with over stdio
    stated_peer: Verifier | None = None  # who is at the other end of stdio, as the parent states
    proxies: Sequence[str] = ()  # addresses (or "unix") of proxies that may say where a connection comes from
    loopback_is_network: bool = False  # who comes from this machine is a stranger as well: a proxy stands here
    proofs: ProofMemory | None = None  # of proofs that were used, shared by listeners
    hears: Hears = field(default_factory=Nobody)  # what listeners have to tell
    limits: TransportLimits = field(default_factory=TransportLimits)

    def is_here(self, proof: TransportProof) -> bool:
        """Whether the peer of a connection is on this machine, as far as that counts for anything."""
        return not self.loopback_is_network and not proof.via_proxy and is_local(proof.address)


async def dial(address: Address, options: TransportOptions) -> ByteStream:
    """Open a stream to an address; TransportError if it cannot be opened or the peer is not one of the trusted."""
    stream = await _dial(address, options)
    try:
        check_trust(stream, options.trusted)
    except ProofRefused:
        stream.abort()
        raise
    return stream


async def _dial(address: Address, options: TransportOptions) -> ByteStream:
    limits = options.limits
    match address:
        case StdioAddress():
            if not options.command:
                raise TransportError("stdio needs the command of the child process to speak with")
            return await spawn_child(options.command, options.stated_peer, limits)
        case UnixAddress():
            return await dial_unix(address, options.uids, limits)
        case TcpAddress():
            return await dial_tcp(address, limits)
        case WebSocketAddress():
            # Loaded here: most commands never open a WebSocket.
            from lace.transports.websocket import ClientIdentity, dial_websocket

            identity = ClientIdentity(clock=options.clock, signer=options.signer, expected=options.trusted)
            return await dial_websocket(address, identity, options.client_tls, limits)
        case _:
            assert_never(address)


async def listen(address: Address, options: TransportOptions) -> Listener:
    """Bind an address; stdio gives one stream, that of the parent process."""
    limits = options.limits
    match address:
        case StdioAddress():
            return ParentListener(await open_stdio(options.stated_peer, limits))
        case UnixAddress():
            return await listen_unix(address, options.uids, limits, options.unix_mode, options.hears, options.proxies)
        case TcpAddress():
            return await listen_tcp(address, limits, options.hears, options.proxies)
        case WebSocketAddress():
            from lace.transports.websocket import ServerIdentity, listen_websocket

            identity = ServerIdentity(
                clock=options.clock,
                signer=options.signer,
                names=options.names,
                origins=options.origins,
                proxies=options.proxies,
                proofs=options.proofs,
                hears=options.hears,
            )
            return await listen_websocket(address, identity, options.server_tls, limits)
        case _:
            assert_never(address)


def is_local(address: Address) -> bool:
    """Whether only processes of this machine can come in at an address."""
    return isinstance(address, StdioAddress | UnixAddress) or is_loopback(address.host)


def check_trust(stream: ByteStream, trusted: Sequence[Verifier]) -> None:
    """Raise ProofRefused if only some peers are trusted and this stream proves none of them."""
    if trusted and stream.proof.peer not in trusted:
        found = f"it is {stream.proof.peer}" if stream.proof.peer else "it proves no identity"
        raise ProofRefused(f"the peer at {stream.proof.address} is not trusted: {found}")


class ParentListener:
    """A listener on stdio: the parent is the one peer that ever comes."""

    def __init__(self, stream: AcceptedStream) -> None:
        self.address: Address = STDIO
        self._waiting: AcceptedStream | None = stream
        self._closed = asyncio.Event()

    async def accept(self) -> AcceptedStream:
        if self._waiting is not None:
            stream, self._waiting = self._waiting, None
            return stream
        await self._closed.wait()
        raise TransportError("the listener is closed")

    async def close(self) -> None:
        self._closed.set()

    def reload(self) -> list[str]:
        """Nothing of it was read from a file."""
        return []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
