"""WebSocket: ILTP bytes in binary messages, after an upgrade that may prove identities (060, P24).

Rule: message boundaries mean nothing. Messages are cut by size only, both ways, and a text message ends the stream.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Self
from weakref import WeakKeyDictionary

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers, HeadersLike
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI
from websockets.http11 import USER_AGENT, Request, Response
from websockets.protocol import State

from lace.errors import InvalidText, TransportError
from lace.iltp.address import WebSocketAddress
from lace.notation.identifiers import Verifier
from lace.transports.accepted import ACCEPTED_AT_ONCE, AcceptQueue, has_hung_up, is_torn_down, let_wait
from lace.transports.base import WRITE_BUFFER_BYTES, TransportLimits, TransportProof
from lace.transports.doorway import Doorway, GuardedConnection, Refused, guarded
from lace.transports.frames import PacedConnection
from lace.transports.pipe import DEFAULT_LIMITS
from lace.transports.proof import (
    HEADER,
    NONCE_BYTES,
    Claim,
    Clock,
    ProofMemory,
    ProofRefused,
    Signer,
    Upgrade,
    check_claim,
    client_message,
    parse_claim,
    server_message,
    sign_as_client,
    sign_as_server,
)
from lace.transports.tcp import reason
from lace.transports.tls import (
    ClientTls,
    ServerTls,
    certificate_sha256,
    check_pin,
    client_context,
    peer_certificate_sha256,
    server_context,
)
from lace.values import dataclass

_QUIET = logging.getLogger("lace.websocket")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False  # failures reach the caller as errors, not as log lines of a library


class WebSocketStream:
    """A ByteStream over one WebSocket connection."""

    def __init__(self, connection: Connection, proof: TransportProof, limits: TransportLimits) -> None:
        self._connection = connection
        self._limits = limits
        self._ended = False
        self.proof = proof

    async def receive(self) -> bytes:
        while not self._ended:
            try:
                message = await self._connection.recv()
            except ConnectionClosed as error:
                self._ended = True
                if why := getattr(self._connection, "cut_because", ""):
                    raise TransportError(why) from error
                break
            if isinstance(message, str):  # 060-WSF-04
                self._ended = True
                self.abort()
                raise TransportError("the peer sent a text message; ILTP travels in binary messages")
            if message:  # 060-WSF-06: an empty message is no end
                return message
        return b""

    async def send(self, data: bytes) -> None:
        size = self._limits.message_bytes
        try:
            if len(data) <= size:
                await self._connection.send(data)
                return
            view = memoryview(data)
            for start in range(0, len(data), size):
                await self._connection.send(view[start : start + size])
        except ConnectionClosed as error:
            raise TransportError(f"the connection was lost: {error}") from error

    async def close(self) -> None:
        await self._connection.close()
        await self._connection.wait_closed()

    def abort(self) -> None:
        if isinstance(self._connection, PacedConnection):
            self._connection.drop()
        else:
            self._connection.transport.abort()

    @property
    def is_left(self) -> bool:
        return self._connection.state is not State.OPEN or has_hung_up(self._connection.transport)

    @property
    def is_deaf(self) -> bool:
        return self._connection.state is State.CLOSED or is_torn_down(self._connection.transport)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """What a dialer brings: its key if it will prove itself, and whom it expects to meet."""

    clock: Clock
    signer: Signer | None = None
    expected: Sequence[Verifier] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerIdentity:
    """What an acceptor brings: its key, and under which addresses it may be dialled with a proof over plain ws."""

    clock: Clock
    signer: Signer | None = None
    names: Sequence[WebSocketAddress] = ()
    origins: Sequence[str] = ()  # of web pages that may speak with us; programs have none


def _settings(limits: TransportLimits) -> dict[str, Any]:
    """What both ends tell the library."""
    return {
        "compression": None,  # 070 packs what packs well, and a short message cannot unpack into a long one
        "max_size": limits.max_message_bytes,
        "max_queue": 4,  # messages read ahead: with `max_size` this bounds what one peer makes us hold
        "write_limit": WRITE_BUFFER_BYTES,
        "open_timeout": limits.connect_timeout_s,
        "close_timeout": limits.close_timeout_s,
        "ping_interval": limits.keepalive_s,
        "ping_timeout": limits.keepalive_s,
        "logger": _QUIET,
    }


async def dial_websocket(
    address: WebSocketAddress,
    identity: ClientIdentity,
    tls: ClientTls | None = None,
    limits: TransportLimits = DEFAULT_LIMITS,
) -> WebSocketStream:
    """Connect, upgrade, and check what the server proves."""
    tls = tls or ClientTls()
    dialer = _Dialer(address, identity, tls, limits)
    context = client_context(tls) if address.secure else None
    try:
        connection = await connect(
            address.url,
            create_connection=dialer.connection_class(),
            ssl=context,
            server_hostname=address.host if context else None,
            proxy=None,
            **_settings(limits),
        )
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
        raise TransportError(f"cannot reach {address}: {reason(error)}") from error
    try:
        return WebSocketStream(connection, dialer.proof(connection), limits)
    except TransportError:
        connection.transport.abort()
        raise


class _ProvingConnection(ClientConnection):
    """A client connection that signs its upgrade request once the server's certificate is known."""

    dialer: _Dialer

    async def handshake(
        self, additional_headers: HeadersLike | None = None, user_agent_header: str | None = USER_AGENT
    ) -> None:
        headers = Headers()
        if additional_headers is not None:
            headers.update(additional_headers)
        headers[HEADER] = str(self.dialer.claim(self))
        await super().handshake(headers, user_agent_header)


class _Dialer:
    """The client's half of one upgrade."""

    def __init__(
        self, address: WebSocketAddress, identity: ClientIdentity, tls: ClientTls, limits: TransportLimits
    ) -> None:
        self._address = address
        self._identity = identity
        self._tls = tls
        self._limits = limits
        self._certificate: bytes | None = None
        self._claim: Claim | None = None
        self._upgrade: Upgrade | None = None

    def connection_class(self) -> type[ClientConnection]:
        """What `connect` builds."""
        return type("_DialledConnection", (_ProvingConnection,), {"dialer": self})

    def claim(self, connection: ClientConnection) -> Claim:
        """The claim to send; the pin is checked first, so that nothing is said to a wrong server."""
        if self._address.secure:
            self._certificate = peer_certificate_sha256(connection.transport.get_extra_info("ssl_object"))
            check_pin(self._certificate, self._tls)
        self._upgrade = Upgrade(self._address, self._certificate, connection.protocol.key)
        identity = self._identity
        self._claim = sign_as_client(self._upgrade, identity.signer, os.urandom(NONCE_BYTES), identity.clock())
        return self._claim

    def proof(self, connection: ClientConnection) -> TransportProof:
        """What the server's answer proves; TransportError if that is not whom we expect."""
        header = connection.response.headers.get(HEADER) if connection.response else None
        peer = self._server_verifier(header) if header is not None else None
        expected = self._identity.expected
        if expected and peer not in expected:
            found = f"it is {peer}" if peer else "it proves no identity"
            raise ProofRefused(f"{self._address} is not a trusted peer: {found}")
        # 060-WS-05: the TLS check that we chose has passed, or the handshake would have failed.
        signer = self._identity.signer
        return TransportProof(
            address=self._address,
            peer=peer,
            signed=peer is not None,
            here=signer.verifier if signer else None,
            encrypted=self._address.secure,
        )

    def _server_verifier(self, header: str) -> Verifier | None:
        if self._upgrade is None or self._claim is None:
            raise ProofRefused("the server answered a claim that was never made")
        claim = parse_claim(header)
        message = server_message(self._upgrade, self._claim, claim)
        return check_claim(claim, message, self._identity.clock(), self._limits.proof_window_s)


async def listen_websocket(
    address: WebSocketAddress,
    identity: ServerIdentity,
    tls: ServerTls | None = None,
    limits: TransportLimits = DEFAULT_LIMITS,
) -> WebSocketListener:
    """Bind; port 0 (never in an address text) takes a free one."""
    if address.secure and tls is None:
        raise TransportError("a wss listener needs a certificate and its key")
    listener = WebSocketListener(address, identity, tls, limits)
    await listener.start()
    return listener


@dataclass(slots=True)
class _Upgraded:
    """What the checks of one upgrade request found, kept until the stream is made."""

    peer: Verifier | None = None
    answer: Claim | None = None


class WebSocketListener:
    """A WebSocket server whose streams wait in a bounded queue."""

    def __init__(
        self, address: WebSocketAddress, identity: ServerIdentity, tls: ServerTls | None, limits: TransportLimits
    ) -> None:
        self.address = address
        self._identity = identity
        self._limits = limits
        self._context = server_context(tls) if tls and address.secure else None
        self._certificate = certificate_sha256(tls) if tls and address.secure else None
        self._memory = ProofMemory(limits.proof_window_s, limits.max_remembered_proofs)
        self._started = identity.clock()
        self._doorway = Doorway(limits, identity.origins, identity.names)
        self._upgrades: WeakKeyDictionary[ServerConnection, _Upgraded] = WeakKeyDictionary()
        self._accepted: AcceptQueue[WebSocketStream] = AcceptQueue(limits.max_pending_accepts)
        self._server: Server | None = None

    async def start(self) -> None:
        """Begin to accept."""
        limits = self._limits
        try:
            self._server = await serve(
                self._offer,
                self.address.host,
                self.address.port,
                ssl=self._context,
                create_connection=guarded(self._doorway),
                process_request=self._check_request,
                process_response=self._answer,
                server_header=None,
                backlog=ACCEPTED_AT_ONCE,
                **_settings(limits),
            )
            let_wait(self._server)
        except OSError as error:
            raise TransportError(f"cannot listen on {self.address}: {reason(error)}") from error
        port = self._server.sockets[0].getsockname()[1]
        self.address = WebSocketAddress(self.address.host, port, self.address.secure)

    async def accept(self) -> WebSocketStream:
        return await self._accepted.accept()

    async def close(self) -> None:
        if self._accepted.is_closed:
            return
        if self._server is not None:
            self._server.close(close_connections=False)
        self._accepted.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _check_request(self, connection: ServerConnection, request: Request) -> Response | None:
        try:
            dialled = self._doorway.check(request, self.address, connection.local_address[0])
            upgraded = self._upgraded(connection, request, dialled)
        except Refused as refused:
            return connection.respond(refused.status, f"{refused}\n")
        except (ProofRefused, InvalidText) as error:
            return connection.respond(HTTPStatus.FORBIDDEN, f"{error}\n")
        self._upgrades[connection] = upgraded
        return None

    def _upgraded(self, connection: ServerConnection, request: Request, dialled: WebSocketAddress) -> _Upgraded:
        headers = request.headers.get_all(HEADER)
        if not headers:
            return _Upgraded()
        if len(headers) > 1:
            raise ProofRefused("identity refused: one identity header is enough")
        claim = parse_claim(headers[0])
        now = self._identity.clock()
        upgrade = Upgrade(dialled, self._certificate, request.headers["Sec-WebSocket-Key"])
        peer = check_claim(claim, client_message(upgrade, claim), now, self._limits.proof_window_s)
        if peer is not None:
            self._check_name(connection, upgrade.address)
            self._check_age(claim)
            self._memory.remember(claim, now)
        signer = self._identity.signer
        answer = sign_as_server(upgrade, claim, signer, os.urandom(NONCE_BYTES), now) if signer else None
        return _Upgraded(peer, answer)

    def _check_age(self, claim: Claim) -> None:
        """Nonces do not outlive us: over plain ws, a proof from before we began may be one that was read and kept."""
        if self._certificate is None and claim.tai < self._started:
            raise ProofRefused("identity refused: this proof is older than the server; try again")

    def _check_name(self, connection: ServerConnection, dialled: WebSocketAddress) -> None:
        """Over plain ws only the address keeps a relay from reusing a proof, so it must be one of ours."""
        if self._certificate is not None:
            return
        local = connection.local_address
        if dialled not in (self.address, WebSocketAddress(local[0], local[1]), *self._identity.names):
            raise ProofRefused(f"identity refused: this is not {dialled}")

    def _answer(self, connection: ServerConnection, request: Request, response: Response) -> None:
        upgraded = self._upgrades.get(connection)
        if upgraded is not None and upgraded.answer is not None:
            response.headers[HEADER] = str(upgraded.answer)

    async def _offer(self, connection: ServerConnection) -> None:
        """Queue an upgraded connection; the library closes it when this returns, so wait for its end."""
        if isinstance(connection, GuardedConnection):
            connection.upgraded()
        upgraded = self._upgrades.pop(connection, _Upgraded())
        host, port = connection.remote_address[:2]
        proof = TransportProof(
            address=WebSocketAddress(host, port, self.address.secure),  # P23
            peer=upgraded.peer,
            signed=upgraded.peer is not None,
            here=upgraded.answer.verifier if upgraded.answer else None,
            encrypted=self.address.secure,
        )
        if self._accepted.offer(WebSocketStream(connection, proof, self._limits)):
            await connection.wait_closed()
