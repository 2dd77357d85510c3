"""WebSocket: ILTP bytes in binary messages, after an upgrade that may prove identities (060, P24).

Rule: message boundaries mean nothing. Messages are cut by size only, both ways, and a text message ends the stream.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
from collections.abc import Collection, Sequence
from dataclasses import field
from hashlib import sha256
from http import HTTPStatus
from ssl import SSLError
from typing import Any, Self, cast
from weakref import WeakKeyDictionary

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.connection import Connection
from websockets.asyncio.server import Server, ServerConnection
from websockets.datastructures import Headers, HeadersLike
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidMessage,
    InvalidStatus,
    InvalidURI,
    WebSocketException,
)
from websockets.frames import CloseCode
from websockets.http11 import USER_AGENT, Request, Response
from websockets.protocol import State
from websockets.server import ServerProtocol

from lace.errors import InvalidText, TransportError
from lace.iltp.address import WebSocketAddress
from lace.notation.identifiers import Verifier
from lace.records.keys import Signer
from lace.transports.acceptqueue import AcceptQueue, has_hung_up, is_torn_down
from lace.transports.base import (
    WRITE_BUFFER_BYTES,
    Hears,
    Nobody,
    TransportLimits,
    TransportProof,
    TurnedAway,
    reason,
)
from lace.transports.door import Door, Visitor, bound_sockets, made_transport
from lace.transports.frames import PacedConnection, Turns
from lace.transports.pipe import DEFAULT_LIMITS
from lace.transports.proof import (
    HEADER,
    NONCE_BYTES,
    Claim,
    Clock,
    ProofMemory,
    ProofRefused,
    Upgrade,
    check_claim,
    client_message,
    parse_claim,
    server_message,
    sign_as_client,
    sign_as_server,
)
from lace.transports.proxied import forwarded_for
from lace.transports.tls import (
    ClientTls,
    ServerTls,
    certificate_sha256,
    check_pin,
    client_context,
    peer_certificate,
    server_context,
)
from lace.transports.upgraderequest import HEALTH_PATHS, GuardedConnection, Refused, RequestCheck
from lace.values import dataclass

_QUIET = logging.getLogger("lace.websocket")
_QUIET.addHandler(logging.NullHandler())
_QUIET.propagate = False  # failures reach the caller as errors, not as log lines of a library
_CLOSING: set[asyncio.Future[None]] = set()  # connections that are told to come back; asyncio itself forgets tasks
AFTER = " after seconds: "
FORWARDED = "X-Forwarded-For"
MAX_WORDS = 300  # bytes of what a server says that turns us away


class WebSocketStream:
    """A ByteStream over one WebSocket connection."""

    def __init__(self, connection: Connection, proof: TransportProof, limits: TransportLimits) -> None:
        self.connection = connection
        self._limits = limits
        self._ended = False
        self.proof = proof

    async def receive(self) -> bytes:
        while not self._ended:
            try:
                message = await self.connection.recv()
            except ConnectionClosed as error:
                self._ended = True
                if why := getattr(self.connection, "cut_because", ""):
                    raise TransportError(why) from error
                if error.rcvd is not None and error.rcvd.code == CloseCode.TRY_AGAIN_LATER:
                    seconds = error.rcvd.reason.rpartition(AFTER)[2]
                    raise TurnedAway(f"the peer turned us away: {error.rcvd.reason}", _seconds(seconds)) from error
                break
            if isinstance(message, str):  # 060-WSF-04
                self._ended = True
                self.abort()
                raise TransportError("the peer sent a text message; ILTP travels in binary messages")
            if message:  # 060-WSF-06: an empty message is not an end
                return message
        return b""

    async def send(self, data: bytes) -> None:
        size = self._limits.message_bytes
        try:
            if len(data) <= size:
                await self.connection.send(data)
                return
            view = memoryview(data)
            for start in range(0, len(data), size):
                await self.connection.send(view[start : start + size])
        except ConnectionClosed as error:
            raise TransportError(f"the connection was lost: {error}") from error

    async def close(self) -> None:
        await self.connection.close()
        await self.connection.wait_closed()

    def turn_away(self, why: str, retry_after_s: float) -> None:
        """Close it, and say when to come back."""
        reason = f"{why}; come back{AFTER}{math.ceil(retry_after_s)}"
        closing = asyncio.ensure_future(self.connection.close(CloseCode.TRY_AGAIN_LATER, reason))
        _CLOSING.add(closing)
        closing.add_done_callback(_CLOSING.discard)

    def abort(self) -> None:
        if isinstance(self.connection, PacedConnection):
            self.connection.drop()
        else:
            self.connection.transport.abort()

    @property
    def is_left(self) -> bool:
        return self.connection.state is not State.OPEN or has_hung_up(self.connection.transport)

    @property
    def is_deaf(self) -> bool:
        return self.connection.state is State.CLOSED or is_torn_down(self.connection.transport)


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
    proxies: Collection[str] = ()  # that may say where a connection comes from
    proofs: ProofMemory | None = None  # that listeners share; None: its own, which ends with the listener
    hears: Hears = field(default_factory=Nobody)


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
    except InvalidStatus as error:
        raise _turned_away(address, error.response) from error
    except InvalidMessage as error:
        raise TransportError(f"{address}: this port does not speak ws; if it speaks tcp, dial that") from error
    except (OSError, TimeoutError, InvalidHandshake, InvalidURI, EOFError) as error:
        if address.secure and not dialer.began and _is_no_tls(error):
            text = f"{address}: this port does not speak wss; if it speaks ws or tcp, dial that"
            raise TransportError(text) from error
        raise TransportError(f"cannot reach {address}: {reason(error)}") from error
    try:
        return WebSocketStream(connection, dialer.proof(connection), limits)
    except TransportError:
        connection.transport.abort()
        raise


def _is_no_tls(error: BaseException) -> bool:
    """Whether a server answered a TLS handshake with something else, or hung up on it."""
    if isinstance(error, SSLError):
        return error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE")
    return isinstance(error, ConnectionResetError | ConnectionAbortedError | EOFError)


def _turned_away(address: WebSocketAddress, response: Response) -> TransportError:
    """What a server says that does not upgrade us; its words are its own, so one line of them is shown."""
    words = bytes(response.body or b"")[:MAX_WORDS].decode("utf-8", "replace")
    said = "".join(mark for mark in words if mark.isprintable())
    text = f"{address} turned us away ({response.status_code}): {said or response.reason_phrase}"
    if response.status_code == HTTPStatus.SERVICE_UNAVAILABLE:
        return TurnedAway(text, _seconds(response.headers.get("Retry-After", "")))
    return ProofRefused(text) if response.status_code == HTTPStatus.FORBIDDEN else TransportError(text)


def _seconds(text: str) -> float | None:
    return float(text) if text.isascii() and text.isdigit() and len(text) < 7 else None


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

    @property
    def began(self) -> bool:
        """Whether TLS, if any, was made, and the request was written."""
        return self._claim is not None

    def connection_class(self) -> type[ClientConnection]:
        """What `connect` builds."""
        return type("_DialledConnection", (_ProvingConnection,), {"dialer": self})

    def claim(self, connection: ClientConnection) -> Claim:
        """The claim to send; the pin is checked first, so that nothing is said to a wrong server."""
        if self._address.secure:
            certificate = peer_certificate(connection.transport.get_extra_info("ssl_object"))
            check_pin(certificate, self._tls)
            self._certificate = sha256(certificate).digest()
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
    listener.start()
    return listener


@dataclass(slots=True)
class _Upgraded:
    """What the checks of one upgrade request found, kept until the stream is made."""

    peer: Verifier | None = None
    answer: Claim | None = None


class WebSocketListener:
    """A door whose connections upgrade, and then wait in a bounded queue; to the library it is their server."""

    def __init__(
        self, address: WebSocketAddress, identity: ServerIdentity, tls: ServerTls | None, limits: TransportLimits
    ) -> None:
        self.address: WebSocketAddress = address
        self._identity = identity
        self._limits = limits
        self._hears = identity.hears
        self._tls = tls if address.secure else None
        self._context = server_context(self._tls) if self._tls else None
        self._certificate = certificate_sha256(self._tls) if self._tls else None
        self._memory = identity.proofs or ProofMemory(limits.proof_window_s, limits.max_remembered_proofs)
        self._memory.begin(identity.clock())
        self._request_check = RequestCheck(identity.origins, identity.names)
        self.door = Door(
            self._begin, limits, self._hears, proxies=identity.proxies, speaks_tls=self._context is not None
        )
        self._turns, self._requests = Turns(), Turns()
        self._handlers: set[asyncio.Task[None]] = set()
        self._upgrades: WeakKeyDictionary[ServerConnection, _Upgraded] = WeakKeyDictionary()
        self.accepted: AcceptQueue[WebSocketStream] = AcceptQueue(limits.max_pending_accepts)

    def start(self) -> None:
        """Begin to accept."""
        try:
            sockets = bound_sockets(self.address.host, self.address.port)
        except OSError as error:
            raise TransportError(f"cannot listen on {self.address}: {reason(error)}") from error
        port = sockets[0].getsockname()[1]
        self.address = WebSocketAddress(self.address.host, port, self.address.secure)
        self.door.open(sockets, self.address)

    async def accept(self) -> WebSocketStream:
        return await self.accepted.accept()

    async def close(self) -> None:
        if self.accepted.is_closed:
            return
        self.door.close()
        self.accepted.close()

    def reload(self) -> list[str]:
        """Read the certificate again, for connections from now on; what was done. TransportError if it cannot be used,
        and then the old one stays."""
        if self._tls is None:
            return []
        context, certificate = server_context(self._tls), certificate_sha256(self._tls)
        is_new = certificate != self._certificate
        self._context, self._certificate = context, certificate
        how = "is another one now" if is_new else "is the same as before"
        return [f"the certificate {self._tls.certificate_file} of {self.address} {how}"]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- connections -------------------------------------------------------------------------------------------

    async def _begin(self, visitor: Visitor) -> None:
        """TLS if it is spoken here; only then the connection is made."""
        certificate = self._certificate  # it may be another one before the request comes

        def make() -> GuardedConnection:
            connection = self.connection(visitor)
            connection.certificate = certificate
            handler = asyncio.get_running_loop().create_task(self._attend(connection))
            self._handlers.add(handler)
            handler.add_done_callback(self._handlers.discard)
            return connection

        await made_transport(visitor, make, self._limits, self._context)

    def connection(self, visitor: Visitor) -> GuardedConnection:
        settings = _settings(self._limits)
        settings.pop("compression")
        settings.pop("open_timeout")
        protocol = ServerProtocol(max_size=settings.pop("max_size"), logger=settings.pop("logger"))
        connection = GuardedConnection(protocol, cast("Server", self), **settings)
        connection.visitor, connection.hears = visitor, self._hears
        connection.turns, connection.requests = self._turns, self._requests
        return connection

    def is_serving(self) -> bool:
        """Asked by the library before it upgrades."""
        return not self.door.is_closed

    async def _attend(self, connection: GuardedConnection) -> None:
        """One connection from its request to its end. The visitor's place has the deadline of the upgrade."""
        try:
            await connection.handshake(self._check_request, self._answer, None)
            if connection.protocol.state is State.OPEN:
                connection.start_keepalive()
                async with connection:
                    await self._offer(connection)
        except (OSError, EOFError, WebSocketException):
            pass  # the reader of the stream is told
        finally:
            connection.transport.abort()

    def _check_request(self, connection: ServerConnection, request: Request) -> Response | None:
        assert isinstance(connection, GuardedConnection)
        visitor = connection.visitor
        if request.path in HEALTH_PATHS:  # a listener that answers is ready
            return connection.respond(HTTPStatus.OK, "ok\n")
        try:
            if visitor.is_from_proxy and not visitor.has_origin:
                self.door.speaks_for(visitor, forwarded_for(request.headers.get_all(FORWARDED)), visitor.port)
            dialled = self._request_check.check(request, self.address, connection.local_address[0])
            upgraded = self._upgraded(connection, request, dialled)
            self._check_place(connection, upgraded)
        except Refused as refused:
            return self._refuse(connection, refused)
        except ProofRefused as error:
            return self._refuse(connection, Refused(HTTPStatus.FORBIDDEN, error.kind, str(error)))
        except InvalidText as error:
            return self._refuse(connection, Refused(HTTPStatus.FORBIDDEN, "bad proof", str(error)))
        except TransportError as error:
            return self._refuse(connection, Refused(HTTPStatus.FORBIDDEN, "no forwarded address", str(error)))
        self._upgrades[connection] = upgraded
        return None

    def _refuse(self, connection: GuardedConnection, refused: Refused) -> Response:
        """Who asked is told why, and so is our log."""
        self._hears.refused(connection.visitor.host, refused.reason, str(refused))
        response = connection.respond(refused.status, f"{refused}\n")
        if refused.retry_after_s is not None:
            response.headers["Retry-After"] = str(math.ceil(refused.retry_after_s))
        return response

    def _check_place(self, connection: GuardedConnection, upgraded: _Upgraded) -> None:
        """Before the upgrade a peer can still be told to come back later."""
        retry_after_s = self._hears.retry_after_s(self._proof(connection, upgraded))
        if retry_after_s is not None:
            text = f"there is no place now; come back in {math.ceil(retry_after_s)} s"
            raise Refused(HTTPStatus.SERVICE_UNAVAILABLE, "too many links", text, retry_after_s)

    def _upgraded(self, connection: GuardedConnection, request: Request, dialled: WebSocketAddress) -> _Upgraded:
        headers = request.headers.get_all(HEADER)
        if not headers:
            return _Upgraded()
        if len(headers) > 1:
            raise ProofRefused("one identity header is enough")
        claim = parse_claim(headers[0])
        now = self._identity.clock()
        upgrade = Upgrade(dialled, connection.certificate, request.headers["Sec-WebSocket-Key"])
        peer = check_claim(claim, client_message(upgrade, claim), now, self._limits.proof_window_s)
        if peer is not None:
            self._check_name(connection, upgrade.address)
            if connection.certificate is None:
                self._memory.require_new(claim)
            self._memory.remember(claim, now)
        signer = self._identity.signer
        answer = sign_as_server(upgrade, claim, signer, os.urandom(NONCE_BYTES), now) if signer else None
        return _Upgraded(peer, answer)

    def _check_name(self, connection: ServerConnection, dialled: WebSocketAddress) -> None:
        """Over plain ws only the address keeps a relay from reusing a proof, so it must be one of ours."""
        if self._certificate is not None:
            return
        local = connection.local_address
        if dialled not in (self.address, WebSocketAddress(local[0], local[1]), *self._identity.names):
            raise ProofRefused(f"this is not {dialled}", "wrong Host")

    def _answer(self, connection: ServerConnection, request: Request, response: Response) -> None:
        upgraded = self._upgrades.get(connection)
        if upgraded is not None and upgraded.answer is not None:
            response.headers[HEADER] = str(upgraded.answer)

    async def _offer(self, connection: GuardedConnection) -> None:
        """Queue an upgraded connection; it is closed when this returns, so wait for its end."""
        connection.upgraded()
        proof = self._proof(connection, self._upgrades.pop(connection, _Upgraded()))
        if self.accepted.offer(WebSocketStream(connection, proof, self._limits)):
            await connection.wait_closed()
        elif not self.accepted.is_closed:
            self._hears.refused(proof.address, "too many wait to be served")

    def _proof(self, connection: GuardedConnection, upgraded: _Upgraded) -> TransportProof:
        visitor = connection.visitor
        return TransportProof(
            address=WebSocketAddress(visitor.host, visitor.port, self.address.secure),  # P23
            peer=upgraded.peer,
            signed=upgraded.peer is not None,
            here=upgraded.answer.verifier if upgraded.answer else None,
            encrypted=self.address.secure,
            via_proxy=visitor.is_from_proxy,
        )
