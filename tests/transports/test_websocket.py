"""WebSocket framing, and identity by signed upgrade headers (060-WSF, 060-WS, P24)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from lace.errors import TransportError
from lace.iltp.address import WebSocketAddress
from lace.notation import b64a
from lace.notation.tai import TAI
from lace.transports.base import TransportLimits
from lace.transports.dial import TransportOptions, dial, listen
from lace.transports.proof import (
    HEADER,
    Claim,
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
from lace.transports.tls import ClientTls
from transports.endpoints import ALICE, BOB, NOW, any_port, connected, plain_options, with_certificate
from transports.test_contract import read_exactly

SECOND = 10**9


def keyed(key: object) -> Callable[[TransportOptions], TransportOptions]:
    return lambda options: replace(options, signer=key)  # type: ignore[arg-type]  # a SigningKey


# --- framing ----------------------------------------------------------------------------------------------------------


async def raw_client(url: str, **headers: str) -> ClientConnection:
    return await connect(url, additional_headers=headers, compression=None, proxy=None)


@pytest.mark.clause("060-WSF-03", "060-WSF-05", "060-WSF-06", "060-WS-02")
def test_message_boundaries_empty_messages_and_pings_mean_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            client = await raw_client(listener.address.url)
            stream = await listener.accept()
            for byte in b"one byte a message":
                await client.send(bytes([byte]))
                await client.send(b"")
                await client.ping()
            assert await read_exactly(stream, 18) == b"one byte a message"
            await stream.send(b"x" * 600_000)
            sizes = []
            while sum(sizes) < 600_000:
                message = await client.recv()
                assert isinstance(message, bytes)  # binary, opcode 2
                sizes.append(len(message))
            assert max(sizes) <= TransportLimits().message_bytes
            await client.close()
            stream.abort()

    asyncio.run(run())


@pytest.mark.clause("060-WSF-04")
def test_a_text_message_ends_the_stream_with_an_error(tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            client = await raw_client(listener.address.url)
            stream = await listener.accept()
            await client.send("Have('x')\n")
            with pytest.raises(TransportError, match="text message"):
                await stream.receive()
            assert await stream.receive() == b""
            client.transport.abort()

    asyncio.run(run())


def test_a_message_over_the_limit_ends_the_stream(tmp_path: Path) -> None:
    async def run() -> None:
        options = replace(plain_options(), limits=TransportLimits(max_message_bytes=1000))
        async with await listen(any_port("ws", tmp_path), options) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            client = await raw_client(listener.address.url)
            stream = await listener.accept()
            await client.send(bytes(1001))
            assert await stream.receive() == b""
            client.transport.abort()

    asyncio.run(run())


@pytest.mark.clause("060-WS-03")
@pytest.mark.parametrize("path", ["/", "/note", "/interlace/x", "/interlace?x=1"])
def test_nothing_but_interlace_can_be_asked_for(path: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            with pytest.raises(InvalidStatus, match="404"):
                await raw_client(listener.address.url.removesuffix("/interlace") + path)

    asyncio.run(run())


# --- identity ---------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-WS-08", "060-RT-03")
@pytest.mark.parametrize("scheme", ["ws", "wss"])
@pytest.mark.parametrize("client, server", [(ALICE, BOB), (ALICE, None), (None, BOB)])
def test_each_key_proves_itself_to_the_other_side(scheme: str, client: object, server: object, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(scheme, tmp_path, keyed(client), keyed(server)) as (near, far):
            alice = ALICE.verifier if client else None
            bob = BOB.verifier if server else None
            assert (near.proof.here, near.proof.peer, near.proof.signed) == (alice, bob, bob is not None)
            assert (far.proof.here, far.proof.peer, far.proof.signed) == (bob, alice, alice is not None)

    asyncio.run(run())


def test_a_dialer_meets_whom_it_trusts_or_nobody(tmp_path: Path) -> None:
    def trusting(key: object) -> Callable[[TransportOptions], TransportOptions]:
        return lambda options: replace(options, trusted=(key.verifier,))  # type: ignore[attr-defined]  # a SigningKey

    async def run(client: Callable[[TransportOptions], TransportOptions], server: object) -> None:
        async with connected("ws", tmp_path, client, keyed(server)) as (near, _):
            assert near.proof.peer == BOB.verifier

    asyncio.run(run(trusting(BOB), BOB))
    with pytest.raises(ProofRefused, match="not a trusted peer"):
        asyncio.run(run(trusting(ALICE), BOB))
    with pytest.raises(ProofRefused, match="proves no identity"):
        asyncio.run(run(trusting(BOB), None))


def upgrade_of(connection_key: str, address: WebSocketAddress, certificate: bytes | None = None) -> Upgrade:
    return Upgrade(address, certificate, connection_key)


class ForgingConnection(ClientConnection):
    """A dialer that builds its identity header by a function of the upgrade."""

    forge: Callable[[Upgrade], str]
    address: WebSocketAddress
    sent: str

    async def handshake(self, additional_headers: object = None, user_agent_header: str | None = None) -> None:
        header = type(self).forge(Upgrade(self.address, None, self.protocol.key))
        type(self).sent = header
        await super().handshake({HEADER: header}, user_agent_header)


async def forged(
    address: WebSocketAddress, forge: Callable[[Upgrade], str], url: str | None = None
) -> ClientConnection:
    kind = type("Forged", (ForgingConnection,), {"forge": staticmethod(forge), "address": address})
    return await connect(url or address.url, create_connection=kind, compression=None, proxy=None)


def signed(upgrade: Upgrade, now: TAI = NOW, nonce: bytes = bytes(32)) -> Claim:
    return sign_as_client(upgrade, ALICE, nonce, now)


FORGERIES: dict[str, Callable[[Upgrade], str]] = {
    "other connection key": lambda upgrade: str(signed(replace(upgrade, key="AAAAAAAAAAAAAAAAAAAAAA=="))),
    "other address": lambda upgrade: str(signed(replace(upgrade, address=WebSocketAddress("relay", 80)))),
    "with a certificate": lambda upgrade: str(signed(replace(upgrade, certificate=bytes(32)))),
    "too old": lambda upgrade: str(signed(upgrade, NOW.plus_ns(-61 * SECOND))),
    "too new": lambda upgrade: str(signed(upgrade, NOW.plus_ns(61 * SECOND))),
    "other verifier": lambda upgrade: str(replace(signed(upgrade), verifier=BOB.verifier)),
    "other nonce": lambda upgrade: str(replace(signed(upgrade), nonce=b64a.encode(b"\x01" * 32))),
    "other time": lambda upgrade: str(replace(signed(upgrade), tai=NOW.plus_ns(1))),
    "a server's signature": lambda upgrade: str(
        sign_as_server(upgrade, Claim(ALICE.verifier, b64a.encode(bytes(32)), NOW), ALICE, bytes(32), NOW)
    ),
    "no signature": lambda upgrade: f"{ALICE.verifier} {b64a.encode(bytes(32))} {NOW} -",
    "signature of nobody": lambda upgrade: "- " + str(signed(upgrade)).partition(" ")[2],
    "short nonce": lambda upgrade: f"- {b64a.encode(bytes(31))} {NOW} -",
    "bad time": lambda upgrade: f"- {b64a.encode(bytes(32))} now -",
    "bad verifier": lambda upgrade: str(signed(upgrade)).replace("V.", "P.", 1),
    "five parts": lambda upgrade: str(signed(upgrade)) + " x",
    "empty": lambda upgrade: "",
}


@pytest.mark.clause("060-WS-08", "060-RT-03")
@pytest.mark.parametrize("name", FORGERIES)
def test_a_proof_that_is_not_for_this_connection_is_refused_before_the_upgrade(name: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            with pytest.raises(InvalidStatus, match="403"):
                await forged(listener.address, FORGERIES[name])

    asyncio.run(run())


@pytest.mark.clause("060-WS-08")
def test_a_good_proof_works_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            client = await forged(listener.address, lambda upgrade: str(signed(upgrade)))
            stream = await listener.accept()
            assert stream.proof.peer == ALICE.verifier
            with pytest.raises(InvalidStatus, match="403"):  # same nonce, though signed for the new connection
                await forged(listener.address, lambda upgrade: str(signed(upgrade)))
            client.transport.abort()
            stream.abort()

    asyncio.run(run())


@pytest.mark.clause("060-WS-08")
def test_over_plain_ws_a_proof_names_one_of_our_addresses(tmp_path: Path) -> None:
    """A relay that the client dialled as `localhost` cannot pass the proof on to a server that is not called so."""

    async def run(options: TransportOptions) -> None:
        async with await listen(any_port("ws", tmp_path), options) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            named = WebSocketAddress("localhost", listener.address.port)
            stream = await dial(named, replace(plain_options(), signer=ALICE))
            stream.abort()

    with pytest.raises(TransportError, match="403"):
        asyncio.run(run(plain_options()))

    async def known() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as probe:
            assert isinstance(probe.address, WebSocketAddress)
            port = probe.address.port
        names = (WebSocketAddress("localhost", port),)
        async with await listen(WebSocketAddress("127.0.0.1", port), replace(plain_options(), names=names)) as listener:
            stream = await dial(names[0], replace(plain_options(), signer=ALICE))
            assert (await listener.accept()).proof.peer == ALICE.verifier
            stream.abort()

    asyncio.run(known())


@pytest.mark.clause("060-WS-05")
def test_a_wrong_pin_ends_before_anything_is_said(tmp_path: Path) -> None:
    async def run() -> None:
        options, pin = with_certificate(plain_options(), tmp_path)
        async with await listen(any_port("wss", tmp_path), options) as listener:
            wrong = replace(plain_options(), client_tls=ClientTls(pin=bytes(32)), signer=ALICE)
            with pytest.raises(TransportError, match=b64a.encode(pin)):
                await dial(listener.address, wrong)

    asyncio.run(run())


@pytest.mark.clause("060-WS-05")
def test_without_a_pin_the_certificate_needs_a_ca_and_the_right_name(tmp_path: Path) -> None:
    async def run() -> None:
        options, _ = with_certificate(plain_options(), tmp_path)
        async with await listen(any_port("wss", tmp_path), options) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            with pytest.raises(TransportError):
                await dial(listener.address, plain_options())
            ca = replace(plain_options(), client_tls=ClientTls(ca_file=tmp_path / "cert.pem"))
            stream = await dial(listener.address, ca)
            assert stream.proof.encrypted
            stream.abort()

    asyncio.run(run())


# --- the signed text --------------------------------------------------------------------------------------------------

UPGRADE = Upgrade(WebSocketAddress("example.com", 443, secure=True), bytes(range(32)), "dGhlIHNhbXBsZSBub25jZQ==")


def test_the_signed_bytes_are_those_of_the_document() -> None:
    claim = Claim(ALICE.verifier, b64a.encode(bytes(32)), TAI.parse("1790000037:000000000"))
    answer = Claim(BOB.verifier, b64a.encode(b"\x01" * 32), TAI.parse("1790000038:000000000"))
    document = (Path(__file__).parents[2] / "docs" / "identity.md").read_text(encoding="utf-8")
    assert b64a.encode(client_message(UPGRADE, claim)) in document
    assert b64a.encode(server_message(UPGRADE, claim, answer)) in document
    assert str(UPGRADE.address) in document


def test_a_claim_reads_back() -> None:
    claim = sign_as_client(UPGRADE, ALICE, b"\x05" * 32, NOW)
    assert parse_claim(str(claim)) == claim
    challenge = sign_as_client(UPGRADE, None, b"\x05" * 32, NOW)
    assert parse_claim(str(challenge)) == challenge
    assert check_claim(challenge, client_message(UPGRADE, challenge), NOW, 60) is None


def test_a_memory_forgets_after_the_window_and_refuses_when_full() -> None:
    memory = ProofMemory(60, max_entries=2)
    claims = [Claim(None, b64a.encode(bytes([n]) * 32), NOW) for n in range(3)]
    memory.remember(claims[0], NOW)
    memory.remember(claims[1], NOW)
    with pytest.raises(ProofRefused, match="before"):
        memory.remember(claims[0], NOW.plus_ns(120 * SECOND))
    with pytest.raises(ProofRefused, match="too many"):
        memory.remember(claims[2], NOW)
    memory.remember(claims[2], NOW.plus_ns(121 * SECOND))
