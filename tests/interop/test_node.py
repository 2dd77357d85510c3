"""A node with many links: fairness, limits, open exchanges, reconnecting, cursors, a clean end (050, 060)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from interlace.pair import blob, changed, config_of, group_module, hash_of, plex
from interop.harness import (
    CLOCK,
    PATIENCE_S,
    exchange_once,
    filled,
    hashes,
    honest_stream,
    make_node,
    send_raw,
    serving,
    terms_of,
)
from lace.errors import TransportError
from lace.iltp.address import TcpAddress, UnixAddress
from lace.interlace.events import Event, FixedPoint
from lace.interlace.phases import Phase
from lace.limits import MIB
from lace.porcelain.policywatch import POLL_S
from lace.records.validate import validate
from lace.runtime.host.host import HostBounds
from lace.runtime.link.session import Outcome
from lace.runtime.node.bounds import DriveLimits
from lace.runtime.node.metrics import MAX_LIMITED_PEERS, Metrics, serve_metrics
from lace.runtime.node.node import Hooks, LinkInfo, Node, NodeLimits
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.columns.repair.copies import compact
from lace.transports.base import ByteStream
from lace.transports.dial import TransportOptions, dial
from runtime.memory_link import End
from transports.endpoints import ALICE, BOB


async def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():
            await asyncio.sleep(0.01)


def put(store: RecordStore, *records: bytes) -> None:
    store.put([validate(record) for record in records])


async def is_turned_away(exchange: Awaitable[tuple[Outcome, RecordStore]]) -> bool:
    """Whether a connection ended before anything was agreed."""
    try:
        outcome, _ = await exchange
    except TransportError:
        return True
    return bool(outcome.abort)


@pytest.mark.long
def test_many_peers_at_once_converge_over_one_store(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([blob(b"server")], tmp_path) as server:
            peers = [exchange_once(server.address, [blob(b"peer %d" % n)]) for n in range(8)]
            outcomes = await asyncio.gather(*peers)
            assert all(outcome.is_complete and outcome.result.fixed_point for outcome, _ in outcomes)
            assert len(hashes(server.store)) == 9
            again, store = await exchange_once(server.address, [])
            assert again.is_complete
            assert hashes(store) == hashes(server.store)

    asyncio.run(run())


def test_an_open_exchange_passes_on_what_either_side_stores(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([blob(b"server")], tmp_path) as server:
            near, other = filled([blob(b"near")]), filled([])
            nodes = [make_node(near), make_node(other)]
            for node in nodes:
                node.keep_in_background(server.address, terms_of())
            await eventually(lambda: hashes(near) == hashes(other) == hashes(server.store) and len(hashes(near)) == 2)
            put(near, blob(b"from near"))
            await eventually(lambda: len(hashes(other)) == 3)
            put(server.store, blob(b"from the server"))
            await eventually(lambda: len(hashes(near)) == len(hashes(other)) == 4)
            for node in nodes:
                await node.shutdown()

    asyncio.run(run())


@pytest.mark.clause("050-OPEN-05", "050-OPEN-06")
def test_a_peer_that_changes_its_operand_gets_a_new_epoch_on_the_open_link(tmp_path: Path) -> None:
    """No selector of ours changes on a wire: whoever wants another dials again. A peer's may, as often as it likes."""

    async def run() -> None:
        groups = "uvw"
        async with serving([plex(group, group=group) for group in groups], tmp_path) as server:
            peer = End(config_of(0, group_module("u"), is_open=True), filled([]))
            stream = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            peer.session.start(CLOCK.tai().to_ns())
            for number, group in enumerate(groups, 1):
                if number > 1:
                    peer.session.answer(changed(group_module(group)), CLOCK.tai().to_ns())
                await speak(peer, stream, lambda number=number: len(peer.have) == number)
            assert peer.have == hashes(server.store)
            stream.abort()
            assert (await server.next_outcome()).result.epochs == len(groups)

    asyncio.run(run())


async def speak(peer: End, stream: ByteStream, ends: Callable[[], bool]) -> None:
    """Carry bytes between a session of a test and whoever is at the other end, until something holds at rest."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            peer.perform(CLOCK.tai().to_ns())
            if peer.taken < len(peer.sent):
                await stream.send(bytes(peer.sent[peer.taken :]))
                peer.taken = len(peer.sent)
            if ends() and peer.session.machine.phase is Phase.IDLE:
                return
            peer.session.receive_data(await stream.receive(), CLOCK.tai().to_ns())


@pytest.mark.clause("060-DISC-01")
def test_a_kept_exchange_reconnects_and_goes_on(tmp_path: Path) -> None:
    async def run() -> None:
        near, far = filled([blob(b"near")]), filled([blob(b"far")])
        path = UnixAddress(str(tmp_path / "lace.sock"))
        troubles: list[str] = []
        node = make_node(near, Hooks(on_trouble=troubles.append))
        node.keep_in_background(path, terms_of())
        await eventually(lambda: bool(troubles))  # nobody listens yet
        for number in range(2):
            server = make_node(far)
            await server.listen(path, terms_of())
            await eventually(lambda: hashes(near) == hashes(far))
            await server.shutdown()
            put(far, blob(b"while away %d" % number))
        assert node.metrics.get("reconnects_total") >= 2
        await node.shutdown()

    asyncio.run(run())


def test_a_cursor_outlives_the_connection(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([blob(b"%d" % n) for n in range(5)], tmp_path) as server:
            near = filled([])
            first, _ = await exchange_once(server.address, near, standard=True)
            assert first.result.cursor_updated
            assert near.settings("cursor")
            again, _ = await exchange_once(server.address, near, standard=True)
            assert again.result.fixed_point
            assert not again.result.cursor_updated  # nothing changed since

    asyncio.run(run())


def test_a_silent_peer_costs_nothing_but_its_own_link(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([blob(b"server")], tmp_path) as server:
            silent = [await dial(server.address, TransportOptions(clock=CLOCK.tai)) for _ in range(5)]
            stalled = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            await stalled.send(honest_stream([blob(b"x")], [blob(b"server")])[:-300])  # and never reads
            outcome, _ = await exchange_once(server.address, [blob(b"honest")])
            assert outcome.result.fixed_point
            for stream in (*silent, stalled):
                stream.abort()

    asyncio.run(run())


def test_the_link_of_who_left_ends_although_its_peer_never_comes_to_the_end_of_a_phase(tmp_path: Path) -> None:
    assert POLL_S + NodeLimits().leaving_grace_s < 5 - 2  # what is promised, with two seconds for the machine

    async def run() -> None:
        acceptor = TransportOptions(clock=CLOCK.tai, signer=BOB, trusted=(ALICE.verifier,))
        limits = NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0, leaving_grace_s=0.05)
        patient = terms_of(timeout_s=PATIENCE_S * 10)
        async with serving([blob(b"server")], tmp_path, "ws", patient, transport=acceptor, limits=limits) as server:
            assert server.node.know_members(frozenset((ALICE.verifier,))) == 0
            stream = await dial(server.address, TransportOptions(clock=CLOCK.tai, signer=ALICE))  # and says nothing
            await eventually(lambda: server.node.metrics.get("connections_active") == 1)
            assert server.node.know_members(frozenset()) == 1
            outcome = await server.next_outcome()
            assert (outcome.abort, outcome.detail) == ("cut", "not a member of the group any more")
            stream.abort()

    asyncio.run(run())


def test_links_are_limited_per_peer_and_in_all(tmp_path: Path) -> None:
    async def run(limits: NodeLimits, why: str) -> None:
        async with serving([blob(b"server")], tmp_path, limits=limits) as server:
            held = [await dial(server.address, TransportOptions(clock=CLOCK.tai)) for _ in range(2)]
            await eventually(lambda: server.node.metrics.get("connections_active") == 2)
            assert await is_turned_away(exchange_once(server.address, []))
            assert server.node.metrics.get("connections_refused_total", why) == 1
            for stream in held:
                stream.abort()
            await eventually(lambda: server.node.metrics.get("connections_active") == 0)
            assert (await exchange_once(server.address, []))[0].is_complete

    quick = NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0)
    asyncio.run(run(replace(quick, max_links=2), "too many links"))
    asyncio.run(run(replace(quick, max_links_per_peer=2), "too many links of one peer"))


@pytest.mark.parametrize("is_idle", [True, False])
def test_a_shutdown_ends_exchanges_and_leaves_the_store_whole(is_idle: bool, tmp_path: Path) -> None:
    async def run() -> None:
        ended: list[Outcome] = []
        settled = asyncio.Event()

        def on_event(_: LinkInfo, event: Event) -> None:
            if isinstance(event, FixedPoint):
                settled.set()

        near, far = filled([blob(b"near")]), filled([blob(b"far")])
        server = make_node(far, Hooks(on_end=lambda _, outcome: ended.append(outcome), on_event=on_event))
        address = await server.listen(UnixAddress(str(tmp_path / "s")), terms_of())
        node = make_node(near)
        silent = None
        if is_idle:
            node.keep_in_background(address, terms_of())
            await asyncio.wait_for(settled.wait(), PATIENCE_S)
        else:
            silent = await dial(address, TransportOptions(clock=CLOCK.tai))  # says nothing: it has to be cut
            await eventually(lambda: server.metrics.get("connections_active") == 1)
        await server.shutdown()
        assert [outcome.abort for outcome in ended] == ["" if is_idle else "cut"]
        assert far.check_integrity() == []
        assert not (tmp_path / "s").exists()
        await node.shutdown()
        if silent is not None:
            silent.abort()

    asyncio.run(run())


@pytest.mark.clause("060-WS-08", "060-RT-05", "060-RT-06", "050-SIGN-02")
@pytest.mark.parametrize("scheme", ["ws", "wss"])
def test_two_keys_prove_themselves_and_bind_the_link(scheme: str, tmp_path: Path) -> None:
    from lace.transports.tls import ClientTls
    from transports.endpoints import with_certificate

    async def run() -> None:
        acceptor = TransportOptions(clock=CLOCK.tai, signer=BOB, trusted=(ALICE.verifier,))
        dialer = TransportOptions(clock=CLOCK.tai, signer=ALICE, trusted=(BOB.verifier,))
        if scheme == "wss":
            acceptor, pin = with_certificate(acceptor, tmp_path)
            dialer = replace(dialer, client_tls=ClientTls(pin=pin))
        async with serving([blob(b"b")], tmp_path, scheme, transport=acceptor, here=BOB.verifier) as server:
            outcome, _ = await exchange_once(server.address, [blob(b"a")], transport=dialer, here=ALICE.verifier)
            theirs = await server.next_outcome()
            assert outcome.is_complete
            assert outcome.result.peer_verifier == BOB.verifier
            assert theirs.result.peer_verifier == ALICE.verifier
            assert outcome.result.link_id == theirs.result.link_id is not None
            stranger = replace(dialer, signer=None)
            assert await is_turned_away(exchange_once(server.address, [], transport=stranger))

    asyncio.run(run())


def test_nothing_is_sent_to_a_peer_that_is_shown_nothing(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([blob(b"secret")], tmp_path, terms=terms_of(exposures=())) as server:
            outcome, store = await exchange_once(server.address, [blob(b"gift")])
            assert outcome.is_complete
            assert len(hashes(store)) == 1
            assert len(hashes(server.store)) == 2

    asyncio.run(run())


@pytest.mark.clause("060-STREAM-06")
def test_large_records_both_ways_stay_within_the_buffers(tmp_path: Path) -> None:
    """More than all buffers hold crosses in both directions; neither side waits for the other to finish."""

    async def run() -> None:
        tight = DriveLimits(max_waiting_bytes=MIB, max_batch_bytes=MIB, max_unsent_bytes=MIB // 4)
        ours = [blob(bytes([n]) * (3 * MIB)) for n in range(6)]
        theirs = [blob(bytes([n + 100]) * (3 * MIB)) for n in range(6)]
        async with serving(ours, tmp_path, terms=terms_of(timeout_s=60), drive_limits=tight) as server:
            node = make_node(filled(theirs), drive_limits=tight)
            outcome = await asyncio.wait_for(node.exchange(server.address, terms_of(is_open=False, timeout_s=60)), 90)
            assert outcome.is_complete
            assert len(outcome.result.received_hashes) == len(outcome.result.sent_hashes) == 6
            await node.shutdown()

    asyncio.run(run())


def test_a_large_request_is_served_in_several_loops(tmp_path: Path) -> None:
    async def run() -> None:
        records = [blob(b"%d" % n * 1000) for n in range(30)]
        slow = DriveLimits(service_ns=0)  # one chunk a phase, the rest deferred
        chunk = HostBounds(load_records=10)
        async with serving(records, tmp_path, drive_limits=slow, host_bounds=chunk) as server:
            outcome, store = await exchange_once(server.address, [])
            assert outcome.is_complete
            assert outcome.result.loops == 4
            assert hashes(store) == hashes(server.store)

    asyncio.run(run())


def test_the_counters_can_be_scraped(tmp_path: Path) -> None:
    async def run() -> None:
        async with serving([blob(b"server")], tmp_path) as server:
            await exchange_once(server.address, [blob(b"peer")])
            await server.next_outcome()
            metrics = await serve_metrics(server.node.metrics, 0)
            port = metrics.sockets[0].getsockname()[1]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % port)
            page = (await reader.read()).decode()
            assert "200 OK" in page
            assert "lace_records_received_total 1\n" in page
            assert 'lace_exchanges_total{kind="complete"} 1\n' in page
            assert 'lace_connections_total{kind="accepted"} 1\n' in page
            writer.close()
            metrics.close()

    asyncio.run(run())


def test_a_store_that_was_written_anew_is_told_once_and_a_newcomer_is_not_left_waiting(tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "a.lace"
        told: list[str] = []
        with open_store(path, create=True) as store:
            node = make_node(store, Hooks(on_trouble=told.append))
            address = await node.listen(UnixAddress(str(tmp_path / "s.sock")), terms_of())
            compact(path)
            for _ in range(2):
                stream = await dial(address, TransportOptions(clock=CLOCK.tai))
                assert await asyncio.wait_for(stream.receive(), PATIENCE_S) == b""
                stream.abort()
            assert node.outdated.is_set()
            await asyncio.sleep(10 * 0.02)  # as many looks at the store
            assert len(told) <= 3
            assert all("open it again" in text for text in told)
            await node.shutdown()

    asyncio.run(run())


def test_a_link_ends_when_the_store_is_written_anew(tmp_path: Path) -> None:
    async def run() -> None:
        path = tmp_path / "a.lace"
        with open_store(path, create=True) as store:
            async with serving(store, tmp_path) as server:
                await exchange_once(server.address, [blob(b"peer")])
                assert not server.node.outdated.is_set()
                compact(path)
                await asyncio.wait_for(server.node.outdated.wait(), PATIENCE_S)

    asyncio.run(run())


def test_the_peers_that_were_limited_last_have_counters_of_their_own() -> None:
    metrics = Metrics()
    for number in range(MAX_LIMITED_PEERS):
        metrics.count_limited(f"10.0.0.{number}", "loops")
    metrics.count_limited("10.0.0.0", "bytes")
    metrics.count_limited("10.0.0.0", "bytes")
    metrics.count_limited('a "peer"', "rest")
    rows = [line for line in metrics.lines() if line.startswith("lace_peer_limited_total")]
    assert len(rows) == MAX_LIMITED_PEERS + 1  # one has two
    assert rows[-3:] == [
        'lace_peer_limited_total{peer="10.0.0.0",kind="bytes"} 2',
        'lace_peer_limited_total{peer="10.0.0.0",kind="loops"} 1',
        'lace_peer_limited_total{peer="a \\"peer\\"",kind="rest"} 1',
    ]
    assert 'lace_limited_total{kind="loops"} 64' in metrics.text()


@pytest.mark.parametrize(
    "headers, status",
    [
        ("Host: localhost:9464\r\n", 200), ("host: [::1]\r\n", 200), ("", 200),
        ("Host: evil.example:9464\r\n", 403), ("Host: localhost.evil.example\r\n", 403),
        ("Host: localhost\r\nHost: evil.example\r\n", 403),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", 403),
    ],
)  # fmt: skip
def test_the_counters_are_not_for_a_web_page(headers: str, status: int) -> None:
    """A name that was made to point at this machine is the page's own, so its browser lets it read the answer."""

    async def run() -> bytes:
        served = await serve_metrics(Metrics(), 0)
        reader, writer = await asyncio.open_connection(*served.sockets[0].getsockname())
        writer.write(f"GET /metrics HTTP/1.1\r\n{headers}\r\n".encode())
        page = await reader.read()
        writer.close()
        served.close()
        return page

    page = asyncio.run(run())
    assert page.startswith(f"HTTP/1.1 {status} ".encode())
    assert (b"lace_connections_active" in page) == (status == 200)


def test_worker_processes_judge_what_threads_would(tmp_path: Path) -> None:
    """With much to receive, worker processes judge; a bad record among good ones is refused all the same."""

    async def run() -> None:
        limits = NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0, workers=1)
        eager = HostBounds(min_records_for_workers=1)
        records = [blob(b"%d" % n) for n in range(40)]
        stream = honest_stream(records, [])
        async with serving([], tmp_path, limits=limits, host_bounds=eager) as server:
            warm, _ = await exchange_once(server.address, [blob(b"first")])  # starts the workers
            assert warm.result.fixed_point
            await eventually(lambda: server.node.has_workers)
            server.store.delete(hash_of(blob(b"first")))
            await send_raw(server.address, stream.replace(b"Data-Length: 1\n\n7", b"Data-Length: 1\n\n8", 1))
            while not (outcome := await server.next_outcome()).result.rejected_hashes:
                pass
            assert list(outcome.result.rejected_hashes) == [str(hash_of(blob(b"7")))]
            assert len(outcome.result.received_hashes) == 39
            assert len(hashes(server.store)) == 39

    asyncio.run(run())


def test_worker_processes_start_while_a_long_listing_still_comes_and_for_no_short_one(tmp_path: Path) -> None:
    async def run() -> None:
        limits = NodeLimits(store_poll_s=0.02, shutdown_grace_s=1.0, workers=1)
        lines = honest_stream([blob(b"%d" % n) for n in range(9)], []).splitlines(keepends=True)
        places = [place for place, line in enumerate(lines, 1) if line.startswith(b"Advertised(")]
        async with serving([], tmp_path, limits=limits, host_bounds=HostBounds(min_records_for_workers=7)) as server:
            stream = await dial(server.address, TransportOptions(clock=CLOCK.tai))
            begun = 0
            for listed in (6, 7):
                await stream.send(b"".join(lines[begun : places[listed - 1]]))
                begun = places[listed - 1]
                await eventually(lambda listed=listed: listings(server.node) == [listed])  # type: ignore[misc]
                assert server.node.pools.workers.is_wanted == (listed == 7)
            await eventually(lambda: server.node.has_workers)
            stream.abort()
            await server.next_outcome()
            assert not hashes(server.store)

    asyncio.run(run())


def test_a_node_that_listens_has_loaded_its_engine_before_the_first_peer_comes(tmp_path: Path) -> None:
    program = """
import asyncio, sys
from pathlib import Path
from interop.harness import serving
assert "lace.runtime.rules.guests" not in sys.modules and "lace.datalog.engine" not in sys.modules
async def run():
    async with serving([], Path(sys.argv[1])), asyncio.timeout(60):
        while not {"lace.runtime.rules.guests", "lace.datalog.engine"} <= sys.modules.keys():
            await asyncio.sleep(0.01)
asyncio.run(run())
"""
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def listings(node: Node) -> list[int]:
    """How many records each peer has listed so far."""
    return [found.driver.session.machine.listed_so_far for found in node.links]


@pytest.mark.clause("040-LOCAL-04")
@pytest.mark.parametrize(("host", "is_open"), [("127.0.0.1", False), ("0.0.0.0", False), ("0.0.0.0", True)])
def test_a_stranger_from_elsewhere_gives_nothing_unless_the_owner_says_so(host: str, is_open: bool) -> None:
    """It gets what is exposed; what it offers is not requested."""

    async def run() -> None:
        ours, theirs = filled([blob(b"ours")]), filled([blob(b"theirs")])
        node = make_node(ours, takes_from_strangers=is_open)
        bound = await node.listen(TcpAddress(host, 0), terms_of())
        assert isinstance(bound, TcpAddress)
        outcome, _ = await exchange_once(TcpAddress("127.0.0.1", bound.port), theirs)
        assert outcome.result.fixed_point
        await node.shutdown()
        both = {hash_of(blob(b"ours")), hash_of(blob(b"theirs"))}
        assert hashes(theirs) == both
        assert hashes(ours) == (both if is_open or host == "127.0.0.1" else {hash_of(blob(b"ours"))})

    asyncio.run(run())
