"""Address strings (060-ADDR)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.iltp.address import (
    Address,
    StdioAddress,
    TcpAddress,
    UnixAddress,
    WebSocketAddress,
    parse_address,
)


@pytest.mark.parametrize(
    "text, address",
    [
        pytest.param("stdio", StdioAddress(), marks=pytest.mark.clause("060-ADDR-01", "060-ADDR-02", "060-ADDR-13")),
        pytest.param(
            "unix:/tmp/lace.sock", UnixAddress("/tmp/lace.sock"), marks=pytest.mark.clause("060-ADDR-03", "060-ADDR-13")
        ),
        pytest.param("tcp:127.0.0.1:4790", TcpAddress("127.0.0.1", 4790), marks=pytest.mark.clause("060-ADDR-13")),
        pytest.param("tcp:example.com:9000", TcpAddress("example.com", 9000), marks=pytest.mark.clause("060-ADDR-13")),
        pytest.param("tcp:[::1]:4790", TcpAddress("::1", 4790), marks=pytest.mark.clause("060-ADDR-07", "060-ADDR-13")),
        pytest.param(
            "ws:127.0.0.1:4790/interlace",
            WebSocketAddress("127.0.0.1", 4790),
            marks=pytest.mark.clause("060-ADDR-05", "060-ADDR-13"),
        ),
        pytest.param(
            "wss:example.com/interlace",
            WebSocketAddress("example.com", 443, secure=True),
            marks=pytest.mark.clause("060-ADDR-06", "060-ADDR-13"),
        ),
        pytest.param("tcp:example.com", TcpAddress("example.com", 4790), marks=pytest.mark.clause("060-ADDR-04")),
        pytest.param("tcp:[fe80::2]", TcpAddress("fe80::2", 4790), marks=pytest.mark.clause("060-ADDR-04")),
        pytest.param("ws:h", WebSocketAddress("h", 80), marks=pytest.mark.clause("060-ADDR-05", "060-ADDR-09")),
        pytest.param("ws:h:81", WebSocketAddress("h", 81), marks=pytest.mark.clause("060-ADDR-09")),
        pytest.param("ws:[::1]:81/interlace", WebSocketAddress("::1", 81), marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("wss:h", WebSocketAddress("h", 443, secure=True), marks=pytest.mark.clause("060-ADDR-06")),
        pytest.param("tcp:h:1", TcpAddress("h", 1), marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:65535", TcpAddress("h", 65535), marks=pytest.mark.clause("060-ADDR-08")),
    ],
)
def test_an_address_parses_to_its_parts(text: str, address: Address) -> None:
    assert parse_address(text) == address


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("stdio:", marks=pytest.mark.clause("060-ADDR-02")),
        pytest.param("", marks=pytest.mark.clause("060-ADDR-01")),
        pytest.param("http:h", marks=pytest.mark.clause("060-ADDR-01")),
        pytest.param("TCP:h:1", marks=pytest.mark.clause("060-ADDR-01")),
        pytest.param("Stdio", marks=pytest.mark.clause("060-ADDR-01")),
        pytest.param("localhost", marks=pytest.mark.clause("060-ADDR-01")),
        pytest.param("unix:rel", marks=pytest.mark.clause("060-ADDR-03")),
        pytest.param("unix:", marks=pytest.mark.clause("060-ADDR-03")),
        pytest.param("unix:/a\x00b", marks=pytest.mark.clause("060-ADDR-03")),
        pytest.param("tcp:", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp::4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:::1:4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:[127.0.0.1]:4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:[::1:4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:1.2.3.400:4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:a..b:4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:a b:4790", marks=pytest.mark.clause("060-ADDR-07")),
        pytest.param("tcp:h:", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:x", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:0", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:01", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:+1", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:65536", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:४७९०", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("tcp:h:1/interlace", marks=pytest.mark.clause("060-ADDR-08")),
        pytest.param("ws:h/other", marks=pytest.mark.clause("060-ADDR-10")),
        pytest.param("ws:h/", marks=pytest.mark.clause("060-ADDR-10")),
        pytest.param("ws:h/interlace/", marks=pytest.mark.clause("060-ADDR-10")),
        pytest.param("ws:h/interlace?x=1", marks=pytest.mark.clause("060-ADDR-11")),
        pytest.param("ws:h?x=1", marks=pytest.mark.clause("060-ADDR-11")),
        pytest.param("ws:h/interlace#x", marks=pytest.mark.clause("060-ADDR-11")),
        pytest.param("ws://h/interlace", marks=pytest.mark.clause("060-ADDR-12")),
        pytest.param("wss://h", marks=pytest.mark.clause("060-ADDR-12")),
    ],
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(InvalidText) as refusal:
        parse_address(text)
    assert refusal.value.rule == "address"


ports = st.integers(1, 65535)
hosts = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(str),
    st.from_regex(r"[a-z]([a-z0-9-]{0,8}[a-z0-9])?(\.[a-z]{1,8}){0,3}", fullmatch=True),
)
addresses = st.one_of(
    st.just(StdioAddress()),
    st.from_regex(r"/[a-zé0-9/._ -]{1,30}", fullmatch=True).map(UnixAddress),
    st.builds(TcpAddress, hosts, ports),
    st.builds(WebSocketAddress, hosts, ports, st.booleans()),
)


@pytest.mark.clause("060-ADDR-14")
@given(addresses)
def test_formatting_and_parsing_are_inverse(address: Address) -> None:
    assert parse_address(str(address)) == address
    assert str(parse_address(str(address))) == str(address)


@pytest.mark.clause("060-TCP-04")
def test_a_dialled_tcp_name_shows_the_default_port() -> None:
    assert str(parse_address("tcp:example.com")) == "tcp:example.com:4790"


@pytest.mark.clause("060-WS-04", "060-ADDR-09")
def test_a_websocket_address_shows_port_and_path() -> None:
    assert str(parse_address("ws:example.com")) == "ws:example.com:80/interlace"
    assert str(parse_address("wss:[::1]")) == "wss:[::1]:443/interlace"


@pytest.mark.parametrize("host", ["a_b.com", "_dns.com", "a.b_", "-a.com", "a-.com", "a..b", "a.b.123", "ä.com"])
def test_a_host_name_is_one_of_rfc_1123(host: str) -> None:
    """P23: labels of letters, digits and inner hyphens, and the last is not a number."""
    with pytest.raises(InvalidText):
        parse_address(f"tcp:{host}:4790")
    assert str(parse_address("tcp:a-b.c1:4790")) == "tcp:a-b.c1:4790"
