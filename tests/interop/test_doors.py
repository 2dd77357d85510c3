"""A served lace at its doors, as it ships: crowds of one address, descriptors that run out, SIGHUP, proxies."""

from __future__ import annotations

import asyncio
import json
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

import lace as api
from interlace.pair import blob
from interop.harness import CLOCK, exchange_once, serving, terms_of
from interop.test_processes import PATIENCE_S, command, environment, free_port, lace, make_lace
from lace.cli.options.links import PinType
from lace.errors import TransportError
from lace.iltp.address import Address, TcpAddress, UnixAddress
from lace.policy.select import select_all
from lace.porcelain.network import connect
from lace.runtime.node.metrics import PREFIX, Metrics
from lace.runtime.node.node import NodeLimits
from lace.runtime.node.waitingroom import WaitingLimits
from lace.store import ledger
from lace.transports.base import ByteStream, TurnedAway
from lace.transports.dial import TransportOptions, dial
from lace.transports.tls import ClientTls
from siege import speech

MIB = 1 << 20


async def eventually(found: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not found():
            await asyncio.sleep(0.02)


# --- one address ----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("scheme", ["tcp", "ws"])
def test_a_hundred_followers_behind_one_address_are_all_served_and_stay(scheme: str, tmp_path: Path) -> None:
    """At default settings. With a bound of 32 they evicted each other for ever."""

    async def run() -> None:
        store = make_lace(tmp_path / "x.lace", [blob(b"one")])
        with api.open(store) as opened:
            terms = terms_of(select_all(), timeout_s=30.0)
            async with serving(opened.store, tmp_path, scheme, terms, limits=NodeLimits()) as server:
                metrics = server.node.metrics
                followers: list[ByteStream] = []
                while len(followers) < 100:  # ten at a time, as they would come after an outage
                    coming = [dial(server.address, TransportOptions(clock=CLOCK.tai)) for _ in range(10)]
                    came = await asyncio.gather(*coming)
                    followers += came
                    for stream in came:
                        await stream.send(speech.opening() + b"\n\n")
                reading = [asyncio.create_task(read_on(stream)) for stream in followers]
                await eventually(lambda: metrics.get("fixed_points_total") >= 100)
                assert metrics.get("connections_active") == 100
                outcome, _ = await exchange_once(server.address, [], select_all())  # one more of the same address
                assert outcome.is_complete
                assert not any(task.done() for task in reading)
                assert metrics.get("limited_total", "rest") == 0
                assert metrics.get("connections_total", "accepted") == 101
                for stream in followers:
                    stream.abort()
                await asyncio.gather(*reading)

    asyncio.run(run())


def rests(metrics: Metrics) -> list[float]:
    """For how long each link has had nothing to do."""
    named = f"{PREFIX}link_rests_seconds{{"
    return [float(line.rpartition(" ")[2]) for line in metrics.lines() if line.startswith(named)]


async def read_on(stream: ByteStream) -> None:
    while await stream.receive():
        pass


def test_a_full_house_is_shared_by_networks_and_says_when_to_come_back(tmp_path: Path) -> None:
    """A crowd of one address gives way to another one, and not to its own."""

    async def run() -> None:
        limits = NodeLimits(max_links=4, reserved_links=0, waiting=WaitingLimits(patience_s=0.2), store_poll_s=0.02)
        async with serving([blob(b"one")], tmp_path, "ws", terms_of(select_all()), limits=limits) as server:
            metrics = server.node.metrics
            crowd = [await dial(server.address, TransportOptions(clock=CLOCK.tai)) for _ in range(4)]
            for stream in crowd:
                await stream.send(speech.opening() + b"\n\n")
            reading = [asyncio.create_task(read_on(stream)) for stream in crowd]
            await eventually(lambda: metrics.get("fixed_points_total") >= 4)
            one_more = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            with pytest.raises(TurnedAway, match="too many links") as told:
                await read_on(one_more)
            assert 15 <= (told.value.retry_after_s or 0) <= 25
            assert not any(task.done() for task in reading)
            await eventually(lambda: all(seconds > 1.0 for seconds in rests(metrics)))
            await stranger(server.address.url.split("/")[2])  # type: ignore[union-attr]  # a WebSocket address
            await eventually(lambda: sum(task.done() for task in reading) == 1)
            assert metrics.get("limited_total", "rest") == 1
            assert metrics.get("connections_refused_total", "too many links") == 1
            for stream in crowd:
                stream.abort()
            await asyncio.gather(*reading)

    async def stranger(where: str) -> None:
        """From another address of this machine, which is another network to the server."""
        host, _, port = where.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port), local_addr=("127.0.0.77", 0))
        from siege.gates import frame, upgrade_request

        writer.write(upgrade_request(where) + frame(speech.opening() + b"\n\n"))
        assert b"101" in await reader.readline()
        async with asyncio.timeout(PATIENCE_S):
            while b"iltp/1" not in await reader.readline():
                pass
        writer.close()

    asyncio.run(run())


def test_over_ws_who_could_not_even_wait_is_told_before_the_upgrade(tmp_path: Path) -> None:
    async def run() -> None:
        limits = NodeLimits(max_links=1, waiting=WaitingLimits(max_waiting_per_peer=0), store_poll_s=0.02)
        async with serving([blob(b"one")], tmp_path, "ws", limits=limits) as server:
            held = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            await eventually(lambda: server.node.metrics.get("connections_active") == 1)
            with pytest.raises(TurnedAway, match="503") as told:
                await dial(server.address, TransportOptions(clock=CLOCK.tai))
            assert told.value.retry_after_s
            held.abort()

    asyncio.run(run())


def test_a_follower_that_is_turned_away_waits_as_long_as_it_is_told(tmp_path: Path) -> None:
    """And longer each time: over tcp nobody can tell it anything."""

    async def run() -> None:
        full = NodeLimits(max_links=1, waiting=WaitingLimits(max_waiting_per_peer=0), retry_after_s=3600.0)
        async with serving([blob(b"one")], tmp_path, "ws", limits=full) as server:
            held = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            await eventually(lambda: server.node.metrics.get("connections_active") == 1)
            pauses: list[float] = []
            limits = NodeLimits(backoff_first_s=0.01, backoff_most_s=30.0, store_poll_s=0.02)
            from interop.harness import filled, make_node

            node = make_node(filled([]), limits=limits)

            async def pause(seconds: float) -> None:
                pauses.append(seconds)
                if len(pauses) == 3:
                    node.stopping.set()

            node._pause = pause  # type: ignore[method-assign]  # what it would wait is what is looked at
            await node.keep(server.address, terms_of())
            assert all(0.75 * 30 <= seconds <= 1.25 * 30 for seconds in pauses)  # an hour is more than we would wait
            held.abort()
            await node.shutdown()

    asyncio.run(run())


# --- by the command -------------------------------------------------------------------------------------------------


@contextmanager
def served_log(tmp_path: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A `lace serve` whose log goes into a file."""
    log = tmp_path / "log"
    with log.open("wb") as file:
        child = subprocess.Popen(
            command("serve", *arguments, "--log", "json"), stderr=file, env=environment(tmp_path), cwd=tmp_path
        )
    try:
        wait_for(lambda: "listening" in log.read_text())
        yield child, log
    finally:
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE_S) == 0
        assert "Traceback" not in log.read_text()


def wait_for(found: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < until
        time.sleep(0.02)


def told(log: Path, event: str) -> list[str]:
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return [line["text"] for line in lines if line["event"] == event]


def certificate(tmp_path: Path, name: str) -> bytes:
    folder = tmp_path / name
    folder.mkdir()
    found = lace("cert", "127.0.0.1", "--cert", str(folder / "cert.pem"), "--cert-key", str(folder / "key.pem"))
    assert found.exit_code == 0, found.output
    der = ssl.PEM_cert_to_DER_cert((folder / "cert.pem").read_text())
    import hashlib

    return PinType().convert(hashlib.sha256(der).hexdigest(), None, None)


@pytest.mark.long
def test_connecting_to_wss_and_hanging_up_costs_a_server_no_memory(tmp_path: Path) -> None:
    """A health check every two seconds left gigabytes a day: 60 to 100 KiB each, on CPython 3.11.7."""
    make_lace(tmp_path / "x.lace", [])
    certificate(tmp_path, "one")
    port = free_port()
    options = ("--cert", "one/cert.pem", "--cert-key", "one/key.pem")
    with served_log(tmp_path, "x.lace", f"wss:127.0.0.1:{port}", *options) as (child, _):
        server = psutil.Process(child.pid)

        def knock(times: int) -> int:
            for _ in range(times):
                socket.create_connection(("127.0.0.1", port), timeout=30).close()
            wait_for(lambda: not [one for one in server.net_connections() if one.status == "ESTABLISHED"])
            return server.memory_info().rss

        before = knock(200)
        assert knock(1500) - before < 16 * MIB  # it was more than 90


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
@pytest.mark.parametrize("scheme", ["tcp", "wss"])
def test_descriptors_that_run_out_are_a_log_line_and_a_pause(scheme: str, tmp_path: Path) -> None:
    make_lace(tmp_path / "x.lace", [blob(b"one")])
    pin = certificate(tmp_path, "one")
    port = free_port()
    options = ("--cert", "one/cert.pem", "--cert-key", "one/key.pem", "--expose", "all")
    where = f"{scheme}:127.0.0.1:{port}"
    with served_log(tmp_path, "x.lace", where, *options) as (child, log):
        with api.open(tmp_path / "first.lace", create=True) as mine:
            assert connect(mine, where, tls=ClientTls(pin=pin)).is_complete
        _, hard = resource.prlimit(child.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (psutil.Process(child.pid).num_fds() + 4, hard))
        with ExitStack() as held:
            for _ in range(12):
                held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
            wait_for(lambda: any("Too many open files" in text for text in told(log, "trouble")))
        resource.prlimit(child.pid, resource.RLIMIT_NOFILE, (hard, hard))
        wait_for(lambda: any("again" in text for text in told(log, "trouble")))
        with api.open(tmp_path / "mine.lace", create=True) as mine:
            assert connect(mine, where, tls=ClientTls(pin=pin)).is_complete
        assert len([text for text in told(log, "trouble") if "Too many open files" in text]) <= 2


@pytest.mark.long
def test_sighup_reads_the_certificate_and_quotas_again_and_nobody_is_lost(tmp_path: Path) -> None:
    make_lace(tmp_path / "x.lace", [blob(b"one")])
    pins = [certificate(tmp_path, name) for name in ("one", "two")]
    port = free_port()
    config = tmp_path / "lace.toml"
    text = f'store = "x.lace"\nlisten = ["wss:127.0.0.1:{port}"]\nexpose = ["all"]\nlog = "json"\n'
    text += 'certificate = "one/cert.pem"\ncertificate_key = "one/key.pem"\n'
    config.write_text(text)
    where = f"wss:127.0.0.1:{port}"
    with served_log_of(tmp_path, config) as (child, log):

        def reaches(pin: bytes) -> bool:
            with api.open(tmp_path / "mine.lace", create=not (tmp_path / "mine.lace").exists()) as mine:
                try:
                    return connect(mine, where, tls=ClientTls(pin=pin)).is_complete
                except TransportError:
                    return False

        assert (reaches(pins[0]), reaches(pins[1])) == (True, False)
        for name in ("cert.pem", "key.pem"):
            shutil.copy(tmp_path / "two" / name, tmp_path / "one" / name)
        config.write_text(text + '[quotas]\npeer = "1MiB"\n')
        child.send_signal(signal.SIGHUP)
        wait_for(lambda: len(told(log, "reloaded")) == 1)
        assert "is another one now" in told(log, "reloaded")[0]
        assert "quotas" in told(log, "reloaded")[0]
        assert (reaches(pins[0]), reaches(pins[1])) == (False, True)
        (tmp_path / "one" / "cert.pem").write_text("no certificate")
        child.send_signal(signal.SIGHUP)
        wait_for(lambda: any("SIGHUP" in text for text in told(log, "trouble")))
        assert reaches(pins[1])  # the last good one stays
        config.write_text("nonsense")
        child.send_signal(signal.SIGHUP)
        wait_for(lambda: len([text for text in told(log, "trouble") if "SIGHUP" in text]) == 2)
        assert reaches(pins[1])


@contextmanager
def served_log_of(tmp_path: Path, config: Path) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    log = tmp_path / "log"
    with log.open("wb") as file:
        child = subprocess.Popen(
            command("serve", "--config", str(config)), stderr=file, env=environment(tmp_path), cwd=tmp_path
        )
    try:
        wait_for(lambda: "listening" in log.read_text())
        yield child, log
    finally:
        child.send_signal(signal.SIGTERM)
        assert child.wait(PATIENCE_S) == 0


@pytest.mark.long
def test_sighup_without_anything_to_read_says_so_and_the_server_goes_on(tmp_path: Path) -> None:
    make_lace(tmp_path / "x.lace", [blob(b"one")])
    port = free_port()
    with served_log(tmp_path, "x.lace", f"tcp:127.0.0.1:{port}", "--expose", "all") as (child, log):
        child.send_signal(signal.SIGHUP)
        wait_for(lambda: len(told(log, "reloaded")) == 1)
        assert "nothing to reload" in told(log, "reloaded")[0]
        with api.open(tmp_path / "mine.lace", create=True) as mine:
            assert connect(mine, f"tcp:127.0.0.1:{port}").is_complete


# --- who counts as local --------------------------------------------------------------------------------------------


@asynccontextmanager
async def before(address: Address, header: bytes) -> AsyncIterator[TcpAddress]:
    """A proxy on this machine that passes on what it gets, this header first."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if isinstance(address, UnixAddress):
            far_reader, far_writer = await asyncio.open_unix_connection(address.path)
        else:
            assert isinstance(address, TcpAddress)
            far_reader, far_writer = await asyncio.open_connection(address.host, address.port)
        far_writer.write(header)
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    async with server:
        yield TcpAddress("127.0.0.1", server.sockets[0].getsockname()[1])


@pytest.mark.parametrize("how", ["plain", "network", "proxy"])
@pytest.mark.parametrize("scheme", ["tcp", "unix"])
@pytest.mark.parametrize("takes", [False, True])
def test_a_stranger_behind_a_proxy_of_this_machine_is_no_neighbour(
    takes: bool, how: str, scheme: str, tmp_path: Path
) -> None:
    """Unless the deployment says so it is: it gives what it likes, and no quota counts it."""

    async def run() -> tuple[bool, list[str]]:
        options = TransportOptions(clock=CLOCK.tai)
        if how == "network":
            options = replace(options, loopback_is_network=True)
        if how == "proxy":
            options = replace(options, proxies=("127.0.0.1", "unix"))
        header = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n" if how == "proxy" else b""
        store = make_lace(tmp_path / "x.lace", [blob(b"one")])
        with api.open(store) as opened:
            given = {"transport": options, "takes_from_strangers": takes}
            async with (
                serving(opened.store, tmp_path, scheme, **given) as server,
                before(server.address, header) as proxy,
            ):
                await exchange_once(proxy, [blob(b"a gift")])
                await server.next_outcome()
                taken = opened.store.stat().records == 2
                return taken, sorted(ledger.all_usage(opened.store))

    taken, accounts = asyncio.run(run())
    assert taken == (takes or how == "plain")
    if how == "plain" or not takes:
        assert accounts == []
    else:
        networks = {"proxy": "203.0.113.7", "network": "127.0.0.1" if scheme == "tcp" else f"unix:{tmp_path}/lace.sock"}
        assert accounts == [f"peer {networks[how]}", "strangers"]
