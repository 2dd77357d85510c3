"""What happens before a connection is a stream: silence, nonsense, deadlines, proxies, proofs from another life."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import struct
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText, TransportError
from lace.iltp.address import TcpAddress, UnixAddress, WebSocketAddress
from lace.notation.tai import TAI
from lace.transports.base import AcceptedStream, Listener, TransportLimits, TransportProof, TurnedAway
from lace.transports.dial import TransportOptions, dial, listen
from lace.transports.proof import ProofMemory, ProofRefused
from lace.transports.proxied import forwarded_for, proxy_name, read_origin
from lace.transports.tls import ClientTls
from lace.transports.upgraderequest import GuardedConnection
from transports.endpoints import ALICE, NOW, any_port, plain_options, with_certificate
from transports.test_upgraderequest import answer, is_closed, request

SHORT_PAUSE = TransportLimits(accept_pause_s=0.01)
SECOND = 10**9


class Heard:
    """Keeps what a listener tells."""

    def __init__(self, retry_after_s: float | None = None) -> None:
        self.refusals: list[tuple[str, str, str]] = []
        self.troubles: list[str] = []
        self._retry_after_s = retry_after_s

    def refused(self, address: object, reason: str, why: str = "") -> None:
        self.refusals.append((str(address), reason, why))

    def trouble(self, text: str) -> None:
        self.troubles.append(text)

    def retry_after_s(self, proof: TransportProof) -> float | None:
        return self._retry_after_s


def port_of(listener: Listener) -> int:
    assert isinstance(listener.address, TcpAddress | WebSocketAddress)
    return listener.address.port


# --- silence and nonsense -------------------------------------------------------------------------------------------

FIRST_WORDS = {
    "nothing": b"",
    "half of a hello": b"\x16\x03\x01\x02\x00",
    "no hello behind its first bytes": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc" + bytes(900),
    "a request without TLS": request("127.0.0.1"),
}


@pytest.mark.parametrize("said", FIRST_WORDS)
def test_what_hangs_up_before_tls_leaves_nothing_behind_though_nobody_collects(said: str, tmp_path: Path) -> None:
    """CPython 3.11.7 keeps a TLS session for each handshake that failed, until the collector comes (gh-109534)."""

    async def run() -> tuple[int, int]:
        options, _ = with_certificate(plain_options(), tmp_path)
        async with await listen(any_port("wss", tmp_path), options) as listener:
            gc.collect()
            gc.disable()
            try:
                for _ in range(20):
                    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
                    writer.write(FIRST_WORDS[said])
                    await writer.drain()
                    if said == "nothing" or said.startswith("half"):
                        writer.write_eof()
                    assert await is_closed(lambda reader=reader: read_all(reader))
                    writer.close()
                    del reader, writer
                for _ in range(10):
                    await asyncio.sleep(0)
                alive = gc.get_objects()
                sessions = sum(isinstance(one, SSLProtocol) for one in alive)
                return sessions, sum(isinstance(one, GuardedConnection) for one in alive)
            finally:
                gc.enable()

    assert asyncio.run(run()) == (0, 0)


async def read_all(reader: asyncio.StreamReader) -> bytes:
    while await reader.read(4096):
        pass  # an alert
    return b""


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_whoever_takes_too_long_is_closed_wherever_it_stands(scheme: str, tmp_path: Path) -> None:
    async def run(said: bytes) -> None:
        options = replace(plain_options(), limits=TransportLimits(connect_timeout_s=0.2))
        options, _ = with_certificate(options, tmp_path / str(len(said)))
        async with await listen(any_port(scheme, tmp_path), options) as listener:
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
            writer.write(said)
            assert await is_closed(lambda: read_all(reader))
            writer.close()

    for said in (b"", b"\x16\x03\x01\x02\x00" if scheme == "wss" else b"GET /interlace HTTP/1.1\r\n"):
        (tmp_path / str(len(said))).mkdir()
        asyncio.run(run(said))


def test_half_open_connections_count_before_tls_and_leave_room_when_they_go(tmp_path: Path) -> None:
    async def run() -> list[tuple[str, str, str]]:
        heard = Heard()
        options = replace(plain_options(), hears=heard, limits=TransportLimits(max_handshakes_per_prefix=2))
        options, pin = with_certificate(options, tmp_path)
        async with await listen(any_port("wss", tmp_path), options) as listener:
            held = [await asyncio.open_connection("127.0.0.1", port_of(listener)) for _ in range(2)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
            assert await is_closed(reader.read)
            writer.close()
            for _, other in held:
                other.close()
            client = replace(plain_options(), client_tls=ClientTls(pin=pin))
            async with asyncio.timeout(20):
                while True:
                    try:
                        stream = await dial(listener.address, client)
                    except TransportError:
                        await asyncio.sleep(0.01)
                    else:
                        stream.abort()
                        return heard.refusals

    refusals = asyncio.run(run())
    assert refusals[0][:2] == ("127.0.0.1", "too many half-open connections")


def test_without_descriptors_a_listener_says_so_once_waits_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real thing, in a process of its own, is in tests/interop/test_doors.py."""

    async def run() -> list[str]:
        heard = Heard()
        async with await listen(
            any_port("tcp", tmp_path), replace(plain_options(), hears=heard, limits=SHORT_PAUSE)
        ) as listener:
            failing = [3]

            def accept(self: socket.socket, real: Callable[..., object] = socket.socket.accept) -> object:
                failing[0] -= 1
                if failing[0] >= 0:
                    raise OSError(24, os.strerror(24))
                return real(self)

            monkeypatch.setattr(socket.socket, "accept", accept)
            stream = await dial(listener.address, plain_options())
            far = await listener.accept()
            far.abort()
            stream.abort()
            return heard.troubles

    said = asyncio.run(run())
    assert len(said) == 2
    assert "cannot accept connections: Too many open files" in said[0]
    assert "accepts connections again" in said[1]


# --- refusals are told ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ahead_s", "says"), [(86_400, "86,400 s ahead of"), (-100, "100 s behind")])
def test_a_clock_that_is_off_is_told_to_both_sides(ahead_s: int, says: str, tmp_path: Path) -> None:
    async def run() -> list[tuple[str, str, str]]:
        heard = Heard()

        def wrong() -> TAI:
            return NOW.plus_ns(ahead_s * SECOND)

        async with await listen(any_port("ws", tmp_path), replace(plain_options(), hears=heard)) as listener:
            with pytest.raises(ProofRefused, match=f"your clock is {says} the server's"):
                await dial(listener.address, replace(plain_options(), signer=ALICE, clock=wrong))
        return heard.refusals

    [(address, reason, why)] = asyncio.run(run())
    assert (address, reason) == ("127.0.0.1", "clock off")
    assert says in why


def test_a_wrong_host_is_told_to_both_sides_and_words_of_a_server_are_one_clean_line(tmp_path: Path) -> None:
    async def run() -> list[tuple[str, str, str]]:
        heard = Heard()
        async with await listen(any_port("ws", tmp_path), replace(plain_options(), hears=heard)) as listener:
            port = port_of(listener)
            assert "403" in await answer(port, request(f"evil.example:{port}"))
            assert "400" in await answer(port, b"\x00\x01 nonsense\r\n\r\n")
            return heard.refusals

    reasons = [reason for _, reason, _ in asyncio.run(run())]
    assert reasons == ["wrong Host", "no upgrade request"]

    async def rude() -> str:
        async def say(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            body = b"\x1b[31mno\nmore " + b"x" * 5000
            head = f"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
            writer.write(head.encode() + body)
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(say, "127.0.0.1", 0)
        async with server:
            with pytest.raises(ProofRefused) as error:
                await dial(WebSocketAddress("127.0.0.1", server.sockets[0].getsockname()[1]), plain_options())
        return str(error.value)

    said = asyncio.run(rude())
    assert said.isprintable()
    assert len(said) < 400


@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_who_has_no_place_is_told_when_to_come_back_before_and_after_the_upgrade(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        options, pin = with_certificate(replace(plain_options(), hears=Heard(17.2)), tmp_path)
        client = replace(plain_options(), client_tls=ClientTls(pin=pin))
        async with await listen(any_port(scheme, tmp_path), options) as listener:
            with pytest.raises(TurnedAway, match="503") as before:
                await dial(listener.address, client)
            assert before.value.retry_after_s == 18
        async with await listen(any_port(scheme, tmp_path), replace(options, hears=Heard())) as listener:
            near = await dial(listener.address, client)
            far: AcceptedStream = await listener.accept()
            far.turn_away("too many links", 4.5)  # type: ignore[attr-defined]  # a WebSocket
            with pytest.raises(TurnedAway, match="too many links") as after:
                await near.receive()
            assert after.value.retry_after_s == 5
            near.abort()

    asyncio.run(run())


# --- proxies --------------------------------------------------------------------------------------------------------


def v1(host: str, port: int = 4711, family: str = "TCP4") -> bytes:
    return f"PROXY {family} {host} 192.0.2.1 {port} 443\r\n".encode()


def v2(host: str, port: int = 4711) -> bytes:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    ours = socket.inet_pton(family, "::1" if ":" in host else "192.0.2.1")
    body = socket.inet_pton(family, host) + ours + struct.pack(">HH", port, 443) + b"\x03\x00\x01x"
    kind = 0x21 if ":" in host else 0x11
    return b"\r\n\r\n\x00\r\nQUIT\n" + struct.pack(">BBH", 0x21, kind, len(body)) + body


HEADERS = {
    "text": (v1("203.0.113.7"), "203.0.113.7"),
    "text, IPv6": (v1("2001:db8::7", family="TCP6"), "2001:db8::7"),
    "binary": (v2("203.0.113.7"), "203.0.113.7"),
    "binary, IPv6": (v2("2001:db8::7"), "2001:db8::7"),
    "loopback at the proxy": (v1("127.0.0.1"), "127.0.0.1"),
    "of the proxy itself": (b"PROXY UNKNOWN\r\n", "127.0.0.1"),
    "of the proxy itself, binary": (b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00", "127.0.0.1"),
}


def came_from(tmp_path: Path, scheme: str, said: bytes, proxies: tuple[str, ...]) -> TransportProof | list[str]:
    """What the acceptor takes a connection for that begins like this; or why it is refused."""

    async def run() -> TransportProof | list[str]:
        heard = Heard()
        options = replace(plain_options(), proxies=proxies, hears=heard)
        async with await listen(any_port(scheme, tmp_path), options) as listener:
            if isinstance(listener.address, UnixAddress):
                _, writer = await asyncio.open_unix_connection(listener.address.path)
            else:
                _, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
            writer.write(said)
            accepting = asyncio.create_task(listener.accept())
            async with asyncio.timeout(10):
                while not accepting.done() and not heard.refusals:
                    await asyncio.sleep(0.005)
            writer.close()
            if heard.refusals:
                accepting.cancel()
                return [why for _, _, why in heard.refusals]
            stream = await accepting
            if scheme == "tcp":
                assert await stream.receive() == b"after it"
            stream.abort()
            return stream.proof

    return asyncio.run(run())


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("scheme", ["tcp", "ws", "unix"])
def test_a_proxy_that_was_named_says_where_a_connection_comes_from(scheme: str, name: str, tmp_path: Path) -> None:
    header, host = HEADERS[name]
    said = header + (request("127.0.0.1") if scheme == "ws" else b"after it")
    proof = came_from(tmp_path, scheme, said, ("127.0.0.1", "unix"))
    assert isinstance(proof, TransportProof)
    assert proof.via_proxy
    if scheme != "unix" or "itself" not in name:
        assert getattr(proof.address, "host", None) == host
    for loopback in (True, False):
        assert not TransportOptions(clock=plain_options().clock, loopback_is_network=loopback).is_here(proof)


def test_over_ws_the_last_forwarded_address_is_taken_and_only_from_a_proxy_that_was_named(tmp_path: Path) -> None:
    said = request("127.0.0.1", "X-Forwarded-For: 127.0.0.1, 198.51.100.4", "X-Forwarded-For: 203.0.113.7")
    proof = came_from(tmp_path, "ws", said, ("127.0.0.1",))
    assert isinstance(proof, TransportProof)
    assert (getattr(proof.address, "host", None), proof.via_proxy) == ("203.0.113.7", True)
    unnamed = came_from(tmp_path, "ws", said, ("192.0.2.1",))
    assert isinstance(unnamed, TransportProof)
    assert (getattr(unnamed.address, "host", None), unnamed.via_proxy) == ("127.0.0.1", False)
    [why] = came_from(tmp_path, "ws", request("127.0.0.1"), ("127.0.0.1",))
    assert "forwarded no address" in why


@pytest.mark.parametrize("said", [b"\xf0\x9f\xaa\xa2: iltp/1\n", b"PROXY TCP4 x y\r\n", b"PROXY " + b"x" * 200])
def test_a_proxy_that_says_nothing_or_nonsense_is_refused(said: bytes, tmp_path: Path) -> None:
    found = came_from(tmp_path, "tcp", said, ("127.0.0.1",))
    assert isinstance(found, list)
    assert "PROXY" in found[0]


def test_a_header_of_nobody_we_named_is_the_first_thing_that_a_peer_says(tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("tcp", tmp_path), plain_options()) as listener:
            _, writer = await asyncio.open_connection("127.0.0.1", port_of(listener))
            writer.write(v1("203.0.113.7"))
            stream = await listener.accept()
            assert getattr(stream.proof.address, "host", None) == "127.0.0.1"
            assert (await stream.receive()).startswith(b"PROXY ")
            stream.abort()
            writer.close()

    asyncio.run(run())


@given(st.binary(max_size=600))
def test_whatever_a_proxy_sends_is_an_origin_or_an_error(said: bytes) -> None:
    async def run() -> None:
        near, far = socket.socketpair()
        with near, far:
            far.setblocking(False)
            near.sendall(said)
            near.shutdown(socket.SHUT_WR)
            try:
                found = await read_origin(far)
            except (TransportError, ConnectionError):
                return
            assert found is None or (forwarded_for([found[0]]) == found[0] and 0 < found[1] < 65536)

    for prefix in (b"", b"PROXY ", b"\r\n\r\n\x00\r\nQUIT\n\x21\x11"):
        said = prefix + said
        asyncio.run(run())


@pytest.mark.parametrize("text", ["", "example.com", "10.0.0.0/8", "unix:/run/x", "127.0.0.1:80"])
def test_a_proxy_is_named_by_a_number(text: str) -> None:
    with pytest.raises(InvalidText, match="not an IP address"):
        proxy_name(text)


# --- proofs from another life ---------------------------------------------------------------------------------------


@pytest.mark.clause("060-WS-08")
@pytest.mark.parametrize("ahead_s", [0, 1, 50])
def test_a_proof_that_was_used_before_a_restart_is_refused_after_it_however_it_is_dated(
    ahead_s: int, tmp_path: Path
) -> None:
    file = tmp_path / "x.lace-proofs"
    now = [NOW]

    def clock() -> TAI:
        return now[0]

    def server() -> TransportOptions:
        return replace(plain_options(), clock=clock, proofs=ProofMemory(60, 1000, file))

    async def run() -> None:
        sent: list[bytes] = []
        async with await listen(any_port("ws", tmp_path), server()) as listener:
            port = port_of(listener)
            listening = await asyncio.start_server(lambda r, w: pass_on(r, w, port, sent), "127.0.0.1", 0)
            async with listening:
                between = listening.sockets[0].getsockname()[1]
                named = WebSocketAddress("127.0.0.1", between)
                options = replace(server(), names=(named,))
                await listener.close()
                async with await listen(WebSocketAddress("127.0.0.1", port), options):

                    def ahead() -> TAI:
                        return now[0].plus_ns(ahead_s * SECOND)

                    stream = await dial(named, replace(plain_options(), signer=ALICE, clock=ahead))
                    stream.abort()
                now[0] = NOW.plus_ns(SECOND // 2)  # it starts again
                again = replace(server(), names=(named,))
                async with await listen(WebSocketAddress("127.0.0.1", port), again):
                    assert "403" in await answer(port, sent[0])

    asyncio.run(run())
    assert file.exists() == (ahead_s > 0)


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, sent: list[bytes]) -> None:
    """Somebody on the path, who keeps the request."""
    sent.append(await reader.readuntil(b"\r\n\r\n"))
    far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
    far_writer.write(sent[-1])
    writer.write(await far_reader.readuntil(b"\r\n\r\n"))
    await writer.drain()
    await reader.read()
    far_writer.close()
    writer.close()


def test_a_memory_that_cannot_be_written_refuses_what_is_dated_ahead(tmp_path: Path) -> None:
    from lace.transports.proof import Claim

    memory = ProofMemory(60, 10, tmp_path / "no folder" / "x")
    memory.begin(NOW)
    memory.remember(Claim(ALICE.verifier, "a" * 43, NOW), NOW)
    with pytest.raises(ProofRefused, match="ahead"):
        memory.remember(Claim(ALICE.verifier, "b" * 43, NOW.plus_ns(1)), NOW)


def test_the_file_of_a_memory_stays_as_long_as_what_is_remembered(tmp_path: Path) -> None:
    from lace.transports.proof import Claim

    memory = ProofMemory(60, 100_000, tmp_path / "x")
    memory.begin(NOW)
    for number in range(5000):
        now = NOW.plus_ns(number * SECOND)
        memory.remember(Claim(ALICE.verifier, f"{number:043}", now.plus_ns(SECOND)), now)
    assert len((tmp_path / "x").read_text().splitlines()) < 2000
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o600
