"""Address strings: which transport, and where (060, P23).

Rule: `parse_address` is the one door from text; `str` of an address is the text that the `Transport` fact shows,
always with port and path.
"""

from __future__ import annotations

import re
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NoReturn

from lace.errors import InvalidText, excerpt
from lace.notation.text import require_nfc
from lace.values import dataclass

TCP_PORT, WS_PORT, WSS_PORT = 4790, 80, 443
WEBSOCKET_PATH = "/interlace"

_HOST_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")  # P23: RFC 1123, no underscore
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_AUTHORITY = re.compile(r"(?P<host>\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>.*))?")
_MAX_HOST = 253


@dataclass(frozen=True, slots=True)
class StdioAddress:
    """The standard streams of a parent and its child process."""

    def __str__(self) -> str:
        return "stdio"


@dataclass(frozen=True, slots=True)
class UnixAddress:
    """A Unix socket at an absolute path."""

    path: str

    def __str__(self) -> str:
        return f"unix:{self.path}"


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A TCP endpoint; an IPv6 host stands here without its brackets."""

    host: str
    port: int = TCP_PORT

    def __str__(self) -> str:
        return f"tcp:{bracketed(self.host)}:{self.port}"


@dataclass(frozen=True, slots=True)
class WebSocketAddress:
    """A WebSocket endpoint under `/interlace`; `secure` is wss."""

    host: str
    port: int
    secure: bool = False

    @property
    def scheme(self) -> str:
        """`ws` or `wss`."""
        return "wss" if self.secure else "ws"

    @property
    def url(self) -> str:
        """The URL that the upgrade request names."""
        return f"{self.scheme}://{bracketed(self.host)}:{self.port}{WEBSOCKET_PATH}"

    def __str__(self) -> str:
        return f"{self.scheme}:{bracketed(self.host)}:{self.port}{WEBSOCKET_PATH}"


Address = StdioAddress | UnixAddress | TcpAddress | WebSocketAddress


def parse_address(text: str, *, listening: bool = False) -> Address:
    """The address that a text spells, or InvalidText; port 0 is any free one, and only for a listener.

    >>> str(parse_address("wss:example.com"))
    'wss:example.com:443/interlace'
    """
    require_nfc(text, "address")
    if any(character < " " or character == "\x7f" for character in text):
        _refuse("an address holds no control characters", text)
    if text == "stdio":  # 060-ADDR-02: the only form without a colon; `stdio:` is none (P23)
        return StdioAddress()
    scheme, colon, rest = text.partition(":")
    if not colon:
        _refuse("an address is `stdio` or `scheme:address`", text)
    match scheme:  # 060-ADDR-01: lower case only
        case "unix":
            return _unix(rest, text)
        case "tcp":
            host, port = _host_and_port(rest, TCP_PORT, text, listening)
            return TcpAddress(host, port)
        case "ws" | "wss":
            return _websocket(rest, secure=scheme == "wss", text=text, listening=listening)
        case _:
            raise _refusal("the schemes are stdio, unix, tcp, ws and wss", text)


def bracketed(host: str) -> str:
    """A host as it stands before a port."""
    return f"[{host}]" if ":" in host else host


def _unix(path: str, text: str) -> UnixAddress:
    if not path.startswith("/"):
        _refuse("a unix address needs an absolute path", text)  # 060-ADDR-03
    return UnixAddress(path)


def _websocket(rest: str, *, secure: bool, text: str, listening: bool) -> WebSocketAddress:
    if rest.startswith("//"):
        _refuse("URL-style ws:// and wss:// are not Lace addresses", text)  # 060-ADDR-12
    authority, slash, path = rest.partition("/")
    if slash and slash + path != WEBSOCKET_PATH:
        # 060-ADDR-10, 060-ADDR-11: other paths, queries and fragments are not part of the standard form.
        _refuse(f"the path of a WebSocket address is {WEBSOCKET_PATH}", text)
    host, port = _host_and_port(authority, WSS_PORT if secure else WS_PORT, text, listening)
    return WebSocketAddress(host, port, secure)


def _host_and_port(authority: str, default_port: int, text: str, listening: bool) -> tuple[str, int]:
    match = _AUTHORITY.fullmatch(authority)
    if match is None:
        _refuse("an IPv6 host stands in brackets", text)  # 060-ADDR-07
    host, port = match["host"], match["port"]
    if port is None:
        return _host(host, text), default_port
    if listening and port == "0":
        return _host(host, text), 0
    if not _PORT.fullmatch(port) or int(port) > 65535:
        _refuse("a port is a decimal from 1 to 65535", text)  # 060-ADDR-08
    return _host(host, text), int(port)


def _host(host: str, text: str) -> str:
    if host.startswith("["):
        try:
            IPv6Address(host[1:-1])
        except AddressValueError:
            _refuse("brackets hold an IPv6 address", text)
        return host[1:-1]
    labels = host.split(".")
    if len(host) > _MAX_HOST or not all(_HOST_LABEL.fullmatch(label) for label in labels):
        _refuse("a host is a name, an IPv4 address or a bracketed IPv6 address", text)
    if labels[-1].isdigit():
        try:
            IPv4Address(host)
        except AddressValueError:
            _refuse("a host that ends in a number is an IPv4 address", text)
    return host


def _refuse(message: str, text: str) -> NoReturn:
    raise _refusal(message, text)


def _refusal(message: str, text: str) -> InvalidText:
    return InvalidText(message, rule="address", found=excerpt(text))
