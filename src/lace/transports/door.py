"""The door of a listener: connections are accepted, counted and looked at here before anything is made for them (060).

Rule: a client that says nothing costs a socket and a place, both for a while. A TLS session or a WebSocket is made only
for a connection that has begun to speak, and every connection counts for its network from accept on until it is a
stream.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import field
from functools import partial
from ssl import SSLContext

from lace.errors import TransportError
from lace.iltp.address import Address
from lace.transports.base import Hears, TransportLimits, reason
from lace.transports.networks import network_prefix
from lace.transports.proxied import UNIX, plain_host, read_origin
from lace.values import dataclass

ACCEPTED_AT_ONCE = 24  # in one round of the event loop: fewer wait long behind a crowd, more hold it up
WAITING_OUTSIDE = 128  # connections that the system keeps until they are accepted
TLS_HANDSHAKE = 0x16  # the first byte of every TLS connection
_SPEAKS_WSS = (
    b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 21\r\n\r\n"
    b"this port speaks wss\n"
)
PROXY_WORDS = b"P\r"  # the first byte of a PROXY header, text or binary; no transport of ours begins with one


class DoorPlace:
    """One connection among those that are half open."""

    def __init__(self, table: HalfOpen, network: str, leave: Callable[[], None]) -> None:
        self._table = table
        self.network = network
        self.leave: Callable[[], None] = leave
        self._deadline: asyncio.TimerHandle | None = None

    def leave_after(self, seconds: float) -> None:
        """It has this long to become a stream."""
        self._deadline = asyncio.get_running_loop().call_later(seconds, self.leave)

    def give_up(self) -> None:
        """It is a stream now, or gone; once is enough."""
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._table.left(self)
        self.leave = _stay  # it knows the connection, which knows this place: what ends goes at once, uncollected


def _stay() -> None:
    """Leave no place: it was given up before."""


class HalfOpen:
    """Connections of a listener that are not streams yet, by network, the oldest first."""

    def __init__(self, limits: TransportLimits) -> None:
        self._limits = limits
        self._places: dict[str, list[DoorPlace]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def enter(self, network: str, leave: Callable[[], None], *, is_proxy: bool = False) -> DoorPlace | None:
        """A place, or None. `leave` is called if it has to be given to another: where too many are half open, the
        first to go is the one that stood longest of the largest crowd. A proxy that the deployment named is not a crowd
        by itself.
        """
        own = len(self._places.get(network, ()))
        if own >= self._limits.max_handshakes_per_prefix and not is_proxy:
            return None
        if len(self) >= self._limits.max_handshakes:
            crowd = max(self._places.values(), key=len)
            if len(crowd) <= own + 1:
                return None
            crowd[0].leave()
        place = DoorPlace(self, network, leave)
        self._places.setdefault(network, []).append(place)
        return place

    def move(self, place: DoorPlace, network: str) -> bool:
        """A proxy said whom it speaks for; whether that network may have one more."""
        own = self._places.get(network, [])
        if len(own) >= self._limits.max_handshakes_per_prefix:
            return False
        self.left(place)
        place.network = network
        self._places.setdefault(network, []).append(place)
        return True

    def left(self, place: DoorPlace) -> None:
        """A connection that entered is a stream, or gone."""
        places = self._places.get(place.network, [])
        if place in places:
            places.remove(place)
            if not places:
                del self._places[place.network]


@dataclass(eq=False, slots=True, kw_only=True)
class Visitor:
    """An accepted connection: its socket, where it comes from, and its place among those that are half open."""

    sock: socket.socket
    host: str  # "" over a unix socket
    port: int
    place: DoorPlace
    is_from_proxy: bool = False  # of a proxy that the deployment named
    has_origin: bool = False  # which said where it comes from
    task: asyncio.Task[None] | None = None
    drop: Callable[[], None] | None = field(default=None)  # ends it once it is more than a socket

    @property
    def network(self) -> str:
        """Whom it counts for."""
        return self.place.network

    def leave(self) -> None:
        """End it, whatever it has become."""
        self.place.give_up()
        if self.drop is not None:
            self.drop()
            return
        if self.task is not None:
            self.task.cancel()
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)  # its present owner reads its end and closes it


Begin = Callable[[Visitor], Awaitable[None]]
"""Makes a stream of a visitor; it gives up the visitor's place when it is one."""


class Door:
    """Sockets that listen, and what becomes of those who come."""

    def __init__(
        self,
        begin: Begin,
        limits: TransportLimits,
        hears: Hears,
        *,
        proxies: Collection[str] = (),
        speaks_tls: bool = False,
    ) -> None:
        self._begin = begin
        self._limits = limits
        self._hears = hears
        self._proxies = frozenset(proxies)
        self._speaks_tls = speaks_tls
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._name = ""
        self._is_short = False  # of what the system has for connections
        self.half_open: HalfOpen = HalfOpen(limits)
        self.is_closed: bool = False

    def open(self, sockets: list[socket.socket], address: Address) -> None:
        """Accept from now on."""
        self._sockets, self._name = sockets, str(address)
        for listening in sockets:
            listening.setblocking(False)
            listening.listen(WAITING_OUTSIDE)
            self._look_at(listening)

    def close(self) -> None:
        """Accept no more, and drop those that are not streams yet."""
        self.is_closed = True
        for listening in self._sockets:
            asyncio.get_running_loop().remove_reader(listening)
            listening.close()
        self._sockets = []
        for task in list(self._tasks):
            task.cancel()

    def _look_at(self, listening: socket.socket) -> None:
        if not self.is_closed:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptor, no memory: the connection waits outside, and so do we
                self._pause(listening, error)
                return
            if self._is_short:
                self._is_short = False
                self._hears.trouble(f"{self._name} accepts connections again")
            sock.setblocking(False)
            host, port = (address[0], address[1]) if isinstance(address, tuple) else ("", 0)
            self._let_in(sock, plain_host(host), port)

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(listening)
        loop.call_later(self._limits.accept_pause_s, self._look_at, listening)
        if not self._is_short:
            self._is_short = True
            self._hears.trouble(
                f"{self._name} cannot accept connections: {reason(error)};"
                f" trying again every {self._limits.accept_pause_s:g} s"
            )

    def _let_in(self, sock: socket.socket, host: str, port: int) -> None:
        is_proxy = (host or UNIX) in self._proxies
        network = network_prefix(host) if host else self._name
        leaving: list[Visitor] = []
        place = self.half_open.enter(network, lambda: leaving[0].leave(), is_proxy=is_proxy)
        if place is None:
            sock.close()
            self._hears.refused(host or self._name, "too many half-open connections")
            return
        visitor = Visitor(sock=sock, host=host, port=port, place=place, is_from_proxy=is_proxy)
        leaving.append(visitor)
        place.leave_after(self._limits.connect_timeout_s)
        visitor.task = asyncio.get_running_loop().create_task(self._bring_in(visitor))
        self._tasks.add(visitor.task)
        visitor.task.add_done_callback(partial(self._brought_in, visitor))

    def _brought_in(self, visitor: Visitor, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        visitor.task = None
        if task.cancelled():  # perhaps before it began
            self._let_go(visitor)

    async def _bring_in(self, visitor: Visitor) -> None:
        try:
            if visitor.is_from_proxy:
                await self._take_origin(visitor)
            if self._speaks_tls:
                first = await _first_byte(visitor.sock)
                if first != bytes([TLS_HANDSHAKE]):
                    if first:
                        self._hears.refused(visitor.host, "no TLS", "the connection did not begin with TLS")
                        with suppress(OSError):  # as far as its buffer takes it at once
                            visitor.sock.send(_SPEAKS_WSS)
                    raise ConnectionError
            await self._begin(visitor)
        except TransportError as error:
            self._hears.refused(visitor.host or self._name, "bad PROXY header", str(error))
            self._let_go(visitor)
        except OSError as error:
            # asyncio (3.11 before .8, 3.12 before .2) leaves a cycle through the error of a TLS handshake that failed:
            # 100 KiB for each until the collector looks at everything, which in a server it seldom does.
            error.__traceback__ = None
            self._let_go(visitor)

    async def _take_origin(self, visitor: Visitor) -> None:
        first = await _first_byte(visitor.sock)
        if not first or first not in PROXY_WORDS:
            return
        origin = await read_origin(visitor.sock)
        visitor.has_origin = True
        if origin is not None:  # else the proxy speaks for itself
            self.speaks_for(visitor, *origin)

    def speaks_for(self, visitor: Visitor, host: str, port: int) -> None:
        """What a proxy that was named says about a connection's origin; TransportError if that has too many."""
        if not self.half_open.move(visitor.place, network_prefix(host)):
            raise TransportError(f"too many half-open connections of {host}")
        visitor.host, visitor.port, visitor.has_origin = host, port, True

    def _let_go(self, visitor: Visitor) -> None:
        visitor.place.give_up()
        if visitor.drop is None:
            visitor.sock.close()


async def _first_byte(sock: socket.socket) -> bytes:
    """What a connection says first, which stays unread; empty if it ends before that."""
    while True:
        try:
            return sock.recv(1, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            await _readable(sock)


async def _readable(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(sock, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sock)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


class _Threshold(asyncio.Protocol):
    """Stands for a protocol until the connection is made, TLS included: what it holds is not made for less."""

    def __init__(self, make: Callable[[], asyncio.Protocol]) -> None:
        self._make = make

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        protocol = self._make()
        transport.set_protocol(protocol)
        protocol.connection_made(transport)


async def made_transport(
    visitor: Visitor, make: Callable[[], asyncio.Protocol], limits: TransportLimits, context: SSLContext | None = None
) -> asyncio.Transport:
    """A transport over the socket of a visitor, through TLS if there is a context; the protocol is made last."""
    given = {}
    if context is not None:
        given = {"ssl_handshake_timeout": limits.connect_timeout_s, "ssl_shutdown_timeout": limits.close_timeout_s}
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_accepted_socket(lambda: _Threshold(make), visitor.sock, ssl=context, **given)
    return transport


def bound_sockets(host: str, port: int) -> list[socket.socket]:
    """Sockets bound to every address of a host; OSError if one cannot be."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            bound = socket.socket(family, kind, protocol)
            sockets.append(bound)
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            bound.bind(address)
    except OSError:
        for bound in sockets:
            bound.close()
        raise
    return sockets
