"""A port of another kind says so, and a port that answers HTTP has health, counters, and nothing else."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from lace.errors import LaceError
from lace.iltp.address import Address, TcpAddress, WebSocketAddress
from lace.runtime.node.metrics import Metrics, serve_metrics
from lace.store.memory import MemoryStore
from lace.transports.dial import TransportOptions, listen
from lace.transports.tls import ClientTls
from transports.endpoints import any_port, plain_options, with_certificate

from .harness import make_node, terms_of


async def told(address: Address, options: TransportOptions | None = None) -> str:
    """What a node says after it dialled the wrong kind of port."""
    node = make_node(MemoryStore(), transport=options) if options else make_node(MemoryStore())
    try:
        outcome = await node.exchange(address, terms_of())
        return f"{outcome.abort}: {outcome.detail}"
    except LaceError as error:
        return str(error)
    finally:
        await node.shutdown()


@pytest.mark.parametrize(
    ("serves", "dials", "said"),
    [
        ("ws", "tcp", "if the port speaks ws or wss"),
        ("wss", "tcp", "if the port speaks ws or wss"),
        ("tcp", "ws", "this port does not speak ws"),
        ("wss", "ws", "this port speaks wss"),
        ("tcp", "wss", "this port does not speak wss"),
        ("ws", "wss", "this port does not speak wss"),
    ],
)
def test_who_dials_a_port_of_another_kind_is_told_which(tmp_path: Path, serves: str, dials: str, said: str) -> None:
    async def run() -> str:
        serving, _ = with_certificate(plain_options(), tmp_path)
        server = make_node(MemoryStore(), transport=serving)
        bound = await server.listen(any_port(serves, tmp_path), terms_of())
        assert isinstance(bound, TcpAddress | WebSocketAddress)
        wrong: Address = TcpAddress(bound.host, bound.port)
        if dials != "tcp":
            wrong = WebSocketAddress(bound.host, bound.port, secure=dials == "wss")
        try:
            return await told(wrong, replace(plain_options(), client_tls=ClientTls(pin=bytes(32))))
        finally:
            await server.shutdown()

    assert said in asyncio.run(run())


async def get(port: int, path: str, headers: str = "") -> str:
    """What a port answers to a plain request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{headers}\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    return answer


def test_the_port_of_the_counters_answers_health_readiness_and_nothing_else() -> None:
    async def run() -> None:
        ready = asyncio.Event()
        served = await serve_metrics(Metrics(), 0, ready.is_set)
        port = served.sockets[0].getsockname()[1]
        assert (await get(port, "/healthz")).startswith("HTTP/1.1 200")
        assert (await get(port, "/readyz")).startswith("HTTP/1.1 503")
        ready.set()
        assert (await get(port, "/readyz")).startswith("HTTP/1.1 200")
        for path in ("/", "/metrics", "/metrics?x=1"):
            assert "lace_connections_active" in await get(port, path)
        for path in ("/other", "/healthz/x", "//", "/metrics/../../etc/passwd"):
            assert (await get(port, path)).startswith("HTTP/1.1 404")
        served.close()

    asyncio.run(run())


def test_a_ws_port_answers_health_and_404_for_the_rest(tmp_path: Path) -> None:
    async def run() -> None:
        async with await listen(any_port("ws", tmp_path), plain_options()) as listener:
            assert isinstance(listener.address, WebSocketAddress)
            port = listener.address.port
            for path in ("/healthz", "/readyz"):
                assert (await get(port, path)).startswith("HTTP/1.1 200")
            for path in ("/", "/metrics", "/healthz/"):
                assert (await get(port, path)).startswith("HTTP/1.1 404")

    asyncio.run(run())
