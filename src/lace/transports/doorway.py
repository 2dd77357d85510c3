"""What a WebSocket server checks before anything is upgraded (060, P24; docs/identity.md).

Rule: a browser is turned away unless its origin was allowed, a name that is not ours is not answered, whatever is no
request gets a 400, and nobody holds more half-open doors than others leave.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from http import HTTPStatus

from websockets.datastructures import MultipleValuesError
from websockets.exceptions import InvalidMessage
from websockets.http11 import Request

from lace.errors import InvalidText
from lace.iltp.address import WEBSOCKET_PATH, WebSocketAddress, parse_address
from lace.transports.base import TransportLimits
from lace.transports.frames import PacedConnection, Turns
from lace.transports.prefix import is_literal, is_loopback, network_prefix

_BAD_REQUEST = b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Refused(Exception):
    """An upgrade request that is answered with a status and a line."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class Doorway:
    """Counts doors that are half open, and judges requests."""

    def __init__(self, limits: TransportLimits, origins: Sequence[str], names: Sequence[WebSocketAddress]) -> None:
        self._limits = limits
        self._origins = frozenset(origins)
        self._names = tuple(names)
        self._half_open: dict[str, list[Callable[[], None]]] = {}  # by network prefix, the oldest first

    # --- before the request ------------------------------------------------------------------------------------

    def enter(self, host: str, leave: Callable[[], None]) -> bool:
        """A connection was made; whether it may go on to send a request. It is told if it has to leave for another:
        where too many doors are half open, the first to go is the one that stood longest of the largest crowd."""
        prefix = network_prefix(host)
        own = len(self._half_open.get(prefix, ()))
        if own >= self._limits.max_handshakes_per_prefix:
            return False
        if sum(map(len, self._half_open.values())) >= self._limits.max_handshakes:
            crowd = max(self._half_open.values(), key=len)
            if len(crowd) <= own + 1:
                return False
            crowd[0]()  # comes back as `left`
        self._half_open.setdefault(prefix, []).append(leave)
        return True

    def left(self, host: str, leave: Callable[[], None]) -> None:
        """A connection that entered has upgraded or is gone."""
        prefix = network_prefix(host)
        self._half_open[prefix].remove(leave)
        if not self._half_open[prefix]:
            del self._half_open[prefix]

    # --- the request -------------------------------------------------------------------------------------------

    def check(self, request: Request, bound: WebSocketAddress, local: str) -> WebSocketAddress:
        """The address that the dialer named; Refused if this is no request for us."""
        if request.path != WEBSOCKET_PATH:  # 060-WS-03: there is nothing else to ask for
            raise Refused(HTTPStatus.NOT_FOUND, "only /interlace is here")
        for name in ("Sec-WebSocket-Key", "Host"):
            if len(request.headers.get_all(name)) != 1:
                raise Refused(HTTPStatus.BAD_REQUEST, f"one {name} header belongs to a request")
        self._check_origin(request)
        return self._named(request, bound, local)

    def _check_origin(self, request: Request) -> None:
        """Browsers name the page that speaks; programs do not. A page may speak only if the owner said so."""
        origins = request.headers.get_all("Origin")
        if any(origin not in self._origins for origin in origins):
            raise Refused(HTTPStatus.FORBIDDEN, "pages of this origin may not speak here (serve with --origin)")

    def _named(self, request: Request, bound: WebSocketAddress, local: str) -> WebSocketAddress:
        try:
            address = parse_address(f"{bound.scheme}:{request.headers['Host']}")
        except (InvalidText, MultipleValuesError) as error:
            raise Refused(HTTPStatus.BAD_REQUEST, "the Host header names no host") from error
        if not isinstance(address, WebSocketAddress):
            raise Refused(HTTPStatus.BAD_REQUEST, "the Host header names no host")
        if not self._is_ours(address, bound, local):
            text = f"this is not {address.host} (serve with --name {address} if it is)"
            raise Refused(HTTPStatus.FORBIDDEN, text)
        return address

    def _is_ours(self, address: WebSocketAddress, bound: WebSocketAddress, local: str) -> bool:
        """Over plain ws a name that somebody points at us proves nothing, so it must be one we know."""
        if bound.secure or is_literal(address.host):  # the certificate says it better; nobody can own a number
            return True
        ours = {bound.host, *(name.host for name in self._names)}
        return address.host in ours or (address.host == "localhost" and is_loopback(local))


class GuardedConnection(PacedConnection):
    """A server connection that counts for a doorway until it has upgraded, and answers nonsense with a 400."""

    doorway: Doorway
    _host = ""
    _is_answered = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername")
        host = str(peer[0]) if peer else ""
        if self.doorway.enter(host, self._give_way):
            self._host = host
        else:
            self.drop()

    def _give_way(self) -> None:
        self.upgraded()
        self.drop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.upgraded()
        super().connection_lost(exc)

    def upgraded(self) -> None:
        """It has its place among the links from now on."""
        if self._host:
            self.doorway.left(self._host, self._give_way)
            self._host = ""

    def send_data(self) -> None:
        if isinstance(self.protocol.handshake_exc, InvalidMessage) and not self._is_answered:
            self._is_answered = True
            self.transport.write(_BAD_REQUEST)
        super().send_data()


def guarded(doorway: Doorway) -> type[GuardedConnection]:
    """What `serve` builds for each connection."""
    return type("_GuardedConnection", (GuardedConnection,), {"doorway": doorway, "turns": Turns(), "requests": Turns()})
