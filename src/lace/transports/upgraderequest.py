"""What a WebSocket server checks before anything is upgraded (060, P24; docs/identity.md).

Rule: a browser is turned away unless its origin was allowed, a name that is not ours is not answered, and anything
that is not a request gets a 400. A client that is turned away is told why, and so is our log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

from websockets.datastructures import MultipleValuesError
from websockets.exceptions import InvalidMessage
from websockets.http11 import Request

from lace.errors import InvalidText
from lace.iltp.address import WEBSOCKET_PATH, WebSocketAddress, parse_address
from lace.transports.base import Hears
from lace.transports.door import Visitor
from lace.transports.frames import PacedConnection
from lace.transports.networks import is_literal, is_loopback

HEALTH_PATHS = frozenset(("/healthz", "/readyz"))  # for load balancers and supervisors: they tell nothing else
_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Refused(Exception):
    """An upgrade request that is answered with a status and a line; `reason` is what it is counted under."""

    def __init__(self, status: HTTPStatus, reason: str, text: str, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.status = status
        self.reason = reason
        self.retry_after_s = retry_after_s


class RequestCheck:
    """Judges requests."""

    def __init__(self, origins: Sequence[str], names: Sequence[WebSocketAddress]) -> None:
        self._origins = frozenset(origins)
        self._names = tuple(names)

    def check(self, request: Request, bound: WebSocketAddress, local: str) -> WebSocketAddress:
        """The address that the dialer named; Refused if the request is not for us."""
        if request.path != WEBSOCKET_PATH:  # 060-WS-03: there is nothing else to ask for
            raise Refused(HTTPStatus.NOT_FOUND, "no upgrade request", "only /interlace is here")
        for name in ("Sec-WebSocket-Key", "Host"):
            if len(request.headers.get_all(name)) != 1:
                raise Refused(HTTPStatus.BAD_REQUEST, "no upgrade request", f"one {name} header belongs to a request")
        self._check_origin(request)
        return self._named(request, bound, local)

    def _check_origin(self, request: Request) -> None:
        """Browsers name the page that speaks; programs do not. A page may speak only if the owner said so."""
        origins = request.headers.get_all("Origin")
        if any(origin not in self._origins for origin in origins):
            text = "pages of this origin may not speak here (serve with --origin)"
            raise Refused(HTTPStatus.FORBIDDEN, "web page", text)

    def _named(self, request: Request, bound: WebSocketAddress, local: str) -> WebSocketAddress:
        try:
            address = parse_address(f"{bound.scheme}:{request.headers['Host']}")
        except (InvalidText, MultipleValuesError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "no upgrade request", "the Host header names no host") from error
        if not isinstance(address, WebSocketAddress):
            raise Refused(HTTPStatus.BAD_REQUEST, "no upgrade request", "the Host header names no host")
        if not self._is_ours(address, bound, local):
            text = f"this is not {address.host} (serve with --name {address} if it is)"
            raise Refused(HTTPStatus.FORBIDDEN, "wrong Host", text)
        return address

    def _is_ours(self, address: WebSocketAddress, bound: WebSocketAddress, local: str) -> bool:
        """Over plain ws a name that somebody points at us proves nothing, so it must be one we know."""
        if bound.secure or is_literal(address.host):  # the certificate says it better; nobody can own a number
            return True
        ours = {bound.host, *(name.host for name in self._names)}
        return address.host in ours or (address.host == "localhost" and is_loopback(local))


class GuardedConnection(PacedConnection):
    """A server connection that keeps its visitor's place until it has upgraded, and answers nonsense with a 400."""

    visitor: Visitor
    hears: Hears
    certificate: bytes | None = None  # that TLS showed it
    _is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.network: str = self.visitor.network
        self.visitor.drop = self.drop
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.upgraded()
        super().connection_lost(exc)

    def upgraded(self) -> None:
        """It has its place among the links from now on."""
        self.visitor.place.give_up()

    def send_data(self) -> None:
        if isinstance(self.protocol.handshake_exc, InvalidMessage) and not self._is_answered:
            self._is_answered = True
            self.transport.write(_BAD_REQUEST)
            self.hears.refused(self.visitor.host, "no upgrade request", str(self.protocol.handshake_exc))
        super().send_data()
