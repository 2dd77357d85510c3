"""One contract for every transport, over real sockets, pipes and child processes (060)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lace.errors import TransportError
from lace.iltp.address import StdioAddress, TcpAddress, UnixAddress, WebSocketAddress
from lace.transports.base import ByteStream, TransportProof, UidMap
from lace.transports.dial import TransportOptions, dial, listen
from transports.endpoints import ALICE, any_port, connected, echo_child, plain_options

SOCKETS = ["unix", "tcp", "tcp6", "ws", "wss"]


async def read_exactly(stream: ByteStream, size: int) -> bytes:
    received = bytearray()
    while len(received) < size:
        data = await stream.receive()
        if not data:
            break
        received += data
    return bytes(received)


@pytest.mark.clause("060-STREAM-03", "060-WSF-02", "060-WSF-05")
@pytest.mark.parametrize("scheme", SOCKETS)
def test_bytes_pass_unchanged_both_ways(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(scheme, tmp_path) as (near, far):
            sent = bytes(range(256)) * 4096
            for left, right in ((near, far), (far, near)):
                sending = asyncio.create_task(left.send(sent))
                assert await read_exactly(right, len(sent)) == sent
                await sending

    asyncio.run(run())


@pytest.mark.clause("060-STREAM-06")
@pytest.mark.parametrize("scheme", SOCKETS)
def test_both_sides_may_send_a_lot_at_once(scheme: str, tmp_path: Path) -> None:
    """Nobody waits for the other to finish: more than all buffers hold goes through in both directions."""
    size, piece = 16 << 20, bytes(1 << 20)

    async def side(stream: ByteStream) -> int:
        async def send() -> None:
            for _ in range(size // len(piece)):
                await stream.send(piece)

        sending = asyncio.create_task(send())
        received = len(await read_exactly(stream, size))
        await sending
        return received

    async def run() -> None:
        async with connected(scheme, tmp_path) as (near, far):
            assert await asyncio.gather(side(near), side(far)) == [size, size]

    asyncio.run(run())


@pytest.mark.parametrize("scheme", SOCKETS)
def test_closing_delivers_what_was_sent_and_then_the_end(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(scheme, tmp_path) as (near, far):
            await near.send(b"last words")
            closing = asyncio.create_task(near.close())
            assert await read_exactly(far, 1000) == b"last words"
            assert await far.receive() == b""
            await far.close()
            await closing
            near.abort()  # after the end there is nothing left to abort

    asyncio.run(run())


@pytest.mark.clause("060-DISC-01")
@pytest.mark.parametrize("scheme", SOCKETS)
def test_a_dropped_connection_reads_as_the_end_and_cannot_be_written(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(scheme, tmp_path) as (near, far):
            near.abort()
            assert await far.receive() == b""

            async def insist() -> None:
                for _ in range(100):
                    await far.send(bytes(1 << 16))

            with pytest.raises(TransportError):
                await insist()

    asyncio.run(run())


@pytest.mark.parametrize("scheme", SOCKETS)
def test_a_peer_that_takes_nothing_makes_send_wait(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with connected(scheme, tmp_path) as (near, _):

            async def flood() -> None:
                for _ in range(256):
                    await near.send(bytes(1 << 20))

            with pytest.raises(TimeoutError):
                await asyncio.wait_for(flood(), 0.5)

    asyncio.run(run())


@pytest.mark.parametrize("scheme", SOCKETS)
def test_a_closed_listener_accepts_nobody(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        options = plain_options()
        if scheme == "wss":
            from transports.endpoints import with_certificate

            options, _ = with_certificate(options, tmp_path)
        listener = await listen(any_port(scheme, tmp_path), options)
        address = listener.address
        waiting = asyncio.create_task(listener.accept())
        await asyncio.sleep(0)
        await listener.close()
        with pytest.raises(TransportError):
            await waiting
        with pytest.raises(TransportError):
            await dial(address, options)

    asyncio.run(run())


@pytest.mark.parametrize("scheme", ["tcp", "unix", "ws"])
def test_an_address_in_use_is_a_transport_error(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port(scheme, tmp_path), plain_options()) as listener:
            with pytest.raises(TransportError):
                await listen(listener.address, plain_options())

    asyncio.run(run())


# --- what each transport shows ----------------------------------------------------------------------------------------


@pytest.mark.clause("060-RT-01", "060-TCP-01", "060-TCP-02", "060-TCP-03")
@pytest.mark.parametrize("scheme", ["tcp", "tcp6"])
def test_tcp_shows_the_remote_endpoint_and_proves_nothing(scheme: str, tmp_path: Path) -> None:
    async def run() -> None:
        def keyed(options: TransportOptions) -> TransportOptions:
            return replace(options, signer=ALICE, uids=UidMap({os.getuid(): ALICE.verifier}))

        async with connected(scheme, tmp_path, keyed, keyed) as (near, far):
            host = "::1" if scheme == "tcp6" else "127.0.0.1"
            assert isinstance(near.proof.address, TcpAddress)
            assert near.proof == TransportProof(address=TcpAddress(host, near.proof.address.port))
            assert isinstance(far.proof.address, TcpAddress)
            assert far.proof == TransportProof(address=TcpAddress(host, far.proof.address.port))
            assert far.proof.address.port != near.proof.address.port

    asyncio.run(run())


@pytest.mark.clause("060-TCP-03", "060-TCP-04")
def test_a_tcp_dialer_shows_the_host_as_it_was_dialled() -> None:
    async def run() -> None:
        async with await listen(TcpAddress("127.0.0.1", 0), plain_options()) as listener:
            assert isinstance(listener.address, TcpAddress)
            stream = await dial(TcpAddress("localhost", listener.address.port), plain_options())
            assert str(stream.proof.address) == f"tcp:localhost:{listener.address.port}"
            stream.abort()

    asyncio.run(run())


@pytest.mark.clause("060-UNIX-01", "060-UNIX-02", "060-UNIX-03", "060-UNIX-04", "060-UNIX-05")
def test_unix_maps_the_peers_user_to_a_verifier_only_where_configured(tmp_path: Path) -> None:
    def mapped(options: TransportOptions) -> TransportOptions:
        return replace(options, uids=UidMap({os.getuid(): ALICE.verifier}))

    def other(options: TransportOptions) -> TransportOptions:
        return replace(options, uids=UidMap({os.getuid() + 1: ALICE.verifier}))

    async def run() -> None:
        path = UnixAddress(str(tmp_path / "lace.sock"))
        async with connected("unix", tmp_path, mapped, other) as (near, far):
            assert near.proof == TransportProof(address=path, peer=ALICE.verifier)
            assert far.proof == TransportProof(address=path)  # the bound path on both sides, no other fact
        async with connected("unix", tmp_path, server=mapped) as (near, far):
            assert (near.proof.peer, far.proof.peer) == (None, ALICE.verifier)

    asyncio.run(run())


def test_a_unix_socket_is_private_replaces_a_dead_one_and_is_removed_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "lace.sock"

    async def run() -> None:
        listener = await listen(UnixAddress(str(path)), plain_options())
        assert path.stat().st_mode & 0o777 == 0o600
        await listener.close()
        assert not path.exists()

    asyncio.run(run())
    left_behind = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])"
    subprocess.run([sys.executable, "-c", left_behind, str(path)], check=True)
    assert path.exists()
    asyncio.run(run())
    path.write_text("not a socket")
    with pytest.raises(TransportError, match="something else"):
        asyncio.run(run())


@pytest.mark.clause("060-STDIO-02", "060-STDIO-03", "060-STDIO-04")
def test_a_child_process_is_a_peer(tmp_path: Path) -> None:
    async def run() -> None:
        stream = await echo_child(replace(plain_options(), stated_peer=ALICE.verifier))
        assert stream.proof == TransportProof(address=StdioAddress(), peer=ALICE.verifier)
        sent = bytes(range(256)) * 2048
        sending = asyncio.create_task(stream.send(sent))
        assert await read_exactly(stream, len(sent)) == sent
        await sending
        await stream.close()
        stream.abort()  # after the end there is nothing left to abort
        assert (await echo_child(plain_options())).proof.peer is None

    asyncio.run(run())


def test_a_child_that_cannot_start_or_was_not_named_is_a_transport_error() -> None:
    async def run(command: tuple[str, ...]) -> None:
        with pytest.raises(TransportError):
            await dial(StdioAddress(), replace(plain_options(), command=command))

    asyncio.run(run(("/no/such/program",)))
    asyncio.run(run(()))


CHILD = """
import asyncio, sys
from lace.transports.stdio import open_stdio
async def run():
    stream = await open_stdio()
    print("this is no protocol")
    data = await stream.receive()
    await stream.send(data.upper())
    await stream.close()
asyncio.run(run())
"""


@pytest.mark.clause("060-STDIO-01")
def test_a_child_keeps_its_stdout_for_the_stream() -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD],
        input=b"hello",
        capture_output=True,
        check=True,
        timeout=60,
        env=_child_environment(),
    )
    assert child.stdout == b"HELLO"
    assert b"this is no protocol" in child.stderr


def _child_environment() -> dict[str, str]:
    import lace

    return {**os.environ, "PYTHONPATH": str(Path(lace.__file__).parent.parent)}


@pytest.mark.clause("060-WS-01", "060-WS-04", "060-WS-06", "060-WS-07", "060-RT-02", "060-RT-03")
def test_ws_shows_port_and_path_and_proves_nothing_by_itself(tmp_path: Path) -> None:
    async def run() -> None:
        async with connected("ws", tmp_path) as (near, far):
            assert isinstance(near.proof.address, WebSocketAddress)
            assert near.proof == TransportProof(address=near.proof.address)
            assert str(near.proof.address) == f"ws:127.0.0.1:{near.proof.address.port}/interlace"
            assert isinstance(far.proof.address, WebSocketAddress)
            assert far.proof == TransportProof(address=far.proof.address)
            assert str(far.proof.address).startswith("ws:127.0.0.1:")

    asyncio.run(run())


@pytest.mark.clause("060-WS-05", "060-WS-07", "060-RT-02", "060-RT-10")
def test_wss_proves_encryption_and_no_identity(tmp_path: Path) -> None:
    async def run() -> None:
        async with connected("wss", tmp_path) as (near, far):
            assert (near.proof.encrypted, near.proof.peer) == (True, None)
            assert (far.proof.encrypted, far.proof.peer) == (True, None)
            assert str(near.proof.address).startswith("wss:127.0.0.1:")

    asyncio.run(run())


def test_only_trusted_peers_are_spoken_with(tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("tcp", tmp_path), plain_options()) as listener:
            with pytest.raises(TransportError, match="proves no identity"):
                await dial(listener.address, replace(plain_options(), trusted=(ALICE.verifier,)))

    asyncio.run(run())
