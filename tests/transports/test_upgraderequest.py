"""What a WebSocket server answers before it upgrades: origins, hosts, nonsense, crowds, old proofs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from lace.cli.app import app
from lace.errors import TransportError
from lace.iltp.address import WebSocketAddress
from lace.notation.tai import TAI
from lace.transports.base import TransportLimits
from lace.transports.dial import TransportOptions, dial, listen
from transports.endpoints import ALICE, NOW, any_port, plain_options

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
SECOND = 10**9


def request(host: str, *more: str, path: str = "/interlace", key: str | None = KEY) -> bytes:
    lines = [f"GET {path} HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += [] if key is None else [f"Sec-WebSocket-Key: {key}"]
    return "\r\n".join([*lines, "Sec-WebSocket-Version: 13", *more, "", ""]).encode()


async def answer(port: int, data: bytes) -> str:
    """The first line that a server says to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(data)
        async with asyncio.timeout(10):
            return (await reader.readline()).decode().strip()
    finally:
        writer.close()


def asked(
    tmp_path: Path,
    data: Callable[[int], bytes],
    options: TransportOptions | None = None,
) -> str:
    async def run() -> str:
        async with await listen(any_port("ws", tmp_path), options or plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            return await answer(listener.address.port, data(listener.address.port))

    return asyncio.run(run())


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "", "file://"])
def test_a_web_page_is_turned_away_whatever_it_calls_itself(origin: str, tmp_path: Path) -> None:
    assert "403" in asked(tmp_path, lambda port: request(f"127.0.0.1:{port}", f"Origin: {origin}"))


def test_a_page_whose_origin_was_allowed_may_speak_and_no_other(tmp_path: Path) -> None:
    options = replace(plain_options(), origins=("https://notes.example",))
    good = "Origin: https://notes.example"
    assert "101" in asked(tmp_path, lambda port: request(f"127.0.0.1:{port}", good), options)
    assert "403" in asked(tmp_path, lambda port: request(f"127.0.0.1:{port}", "Origin: https://evil"), options)
    assert "403" in asked(tmp_path, lambda port: request(f"127.0.0.1:{port}", good, "Origin: https://evil"), options)


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{port}", "localhost.evil.example:{port}"])
def test_a_name_that_somebody_pointed_at_us_is_not_answered(host: str, tmp_path: Path) -> None:
    assert "403" in asked(tmp_path, lambda port: request(host.format(port=port)))


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "192.0.2.1"])
def test_addresses_and_names_of_our_own_are_answered(host: str, tmp_path: Path) -> None:
    assert "101" in asked(tmp_path, lambda port: request(host.format(port=port)))


def test_a_name_that_was_configured_is_answered(tmp_path: Path) -> None:
    options = replace(plain_options(), names=(WebSocketAddress("notes.example", 80),))
    assert "101" in asked(tmp_path, lambda port: request("notes.example"), options)


BAD: dict[str, bytes] = {
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\r\n\r\n",
    "ILTP": "🪢: iltp/1\n\r\n".encode(),
    "no key": request("127.0.0.1", key=None),
    "no key but an identity": request("127.0.0.1", "Lace-Identity: x", key=None),
    "two keys": request("127.0.0.1", f"Sec-WebSocket-Key: {KEY}"),
    "a bad key": request("127.0.0.1", key="x"),
    "two hosts": request("127.0.0.1", "Host: 127.0.0.1"),
    "no host": request("127.0.0.1").replace(b"Host: 127.0.0.1\r\n", b""),
    "an empty host": request(""),
    "a host with a path": request("127.0.0.1/x"),
    "a host with a user": request("me@127.0.0.1"),
    "a host with controls": request("a\x1b[31m"),
    "a host that is not ASCII": request("ü.example"),
    "an old version": request("127.0.0.1").replace(b"Version: 13", b"Version: 8"),
    "a header without a colon": request("127.0.0.1", "nonsense"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_upgrade_request_gets_a_400(name: str, tmp_path: Path) -> None:
    assert asked(tmp_path, lambda port: BAD[name]).startswith("HTTP/1.1 400 ")


def test_half_open_doors_are_counted_by_network_and_in_all(tmp_path: Path) -> None:
    async def run(limits: TransportLimits, most: int) -> None:
        async with await listen(any_port("ws", tmp_path), replace(plain_options(), limits=limits)) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            port = listener.address.port
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(most)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await is_closed(reader.read)  # turned away before a byte of its request was read
            writer.close()
            held[0][1].close()
            async with asyncio.timeout(10):
                while "101" not in await answer(port, request(f"127.0.0.1:{port}")):
                    await asyncio.sleep(0.01)
            for _, half_open in held[1:]:
                half_open.close()

    asyncio.run(run(TransportLimits(max_handshakes_per_prefix=2), 2))
    asyncio.run(run(TransportLimits(max_handshakes=3), 3))


async def is_closed(read: Callable[[], Awaitable[bytes]]) -> bool:
    try:
        async with asyncio.timeout(10):
            return await read() == b""
    except ConnectionError:
        return True


@pytest.mark.clause("060-WS-08")
def test_over_plain_ws_a_proof_from_before_the_server_began_is_refused(tmp_path: Path) -> None:
    """Its nonces are gone with the process before it: whoever read the proof could use it again."""

    async def run(age_s: int) -> None:
        def earlier() -> TAI:
            return NOW.plus_ns(-age_s * SECOND)

        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            stream = await dial(listener.address, replace(plain_options(), signer=ALICE, clock=earlier))
            stream.abort()

    asyncio.run(run(0))
    with pytest.raises(TransportError, match="403"):
        asyncio.run(run(1))


@pytest.mark.parametrize(
    "command",
    [
        ["interlace", "x.lace", "tcp:127.0.0.1:1", "--key", "me"],
        ["follow", "x.lace", "tcp:127.0.0.1:1", "--key", "me"],
        ["serve", "x.lace", "tcp:127.0.0.1:1", "--key", "me"],
    ],
)
def test_a_key_that_no_connection_can_show_is_an_error(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = CliRunner().invoke(app, command)
    assert found.exit_code == 2
    assert "--key proves nothing" in found.output
