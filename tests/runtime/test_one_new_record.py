"""One new record on an open link: what is done in one go, what threads are woken for; the answers stay the same."""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from differences.test_shared import JOINED, filled, questions
from interlace.pair import ALL, blob, config_of, group_module, plex
from interop.harness import PATIENCE_S, Serving, hashes, make_node, serving, terms_of
from interop.test_node import eventually, put
from lace.errors import LimitExceeded
from lace.iltp.address import TcpAddress
from lace.interlace.host import Call, Cancelled, NotNow
from lace.limits import MIB, SECOND_NS, ExchangeLimits
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.runtime.host.recentbodies import RecentBodies
from lace.runtime.link.drive import Driver
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.link.stepper import judge_and_store
from lace.runtime.node.bounds import DriveLimits
from lace.runtime.node.links import NodeLimits
from lace.runtime.node.metering import LinkRates, Rate
from lace.runtime.rules.byrecord import ByRecord
from lace.runtime.rules.evaluator import StoreEvaluator
from lace.runtime.rules.followedset import NO_CLAIMS, SharedSet
from lace.runtime.rules.guesthouse import GuestHouse
from lace.runtime.rules.policybook import PolicyBook
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore
from lace.thresholds import RuleThresholds
from lace.transports.base import WRITE_BUFFER_BYTES
from lace.transports.pipe import PipeStream
from siege import speech

U_AND_V = [validate(plex(f"n/{n}", group="u" if n % 2 else "v")) for n in range(8)]


class Following:
    """The set of one link, which other links share."""

    def __init__(self, store: RecordStore, module: Module, house: GuestHouse | None = None) -> None:
        self.store = store
        self._module = module
        self._prepared, self._question = questions(module)
        self.host = LocalHost(
            store, config_of(0, module).terms, policies=PolicyBook(), house=house, bodies=RecentBodies(store)
        )
        self.host.prepare(self._prepared, Call())
        self.host.evaluate(self._question, Call())

    @property
    def sends(self) -> SharedSet:
        assert self.host.shared is not None
        return self.host.shared

    @property
    def current(self) -> set[str] | None:
        """What may be sent, if it is known to be of now."""
        try:
            found = self.sends.current(self._question.runtime, NO_CLAIMS, Call(may_wait=False))
        except NotNow:
            return None
        return set(found.ids.ids().texts())

    def refresh_now(self) -> None:
        """As a thread does that stored a few records."""
        with suppress(NotNow):
            self.sends.refresh(Call(may_wait=False))

    def evaluated_anew(self) -> set[str]:
        anew = LocalHost(self.store, config_of(0, self._module).terms)
        anew.prepare(self._prepared, Call())
        anew.evaluate(self._question, Call())
        assert anew.agreed is not None
        assert anew.agreed.own is not None
        return set(anew.agreed.own.ids.ids().texts())


@pytest.mark.parametrize("is_served", [False, True])
@pytest.mark.parametrize("module", [ALL, group_module("u")])
def test_whoever_stores_a_few_records_brings_the_set_up_to_date(module: Module, is_served: bool) -> None:
    """A first record, a second one, some at once, a removal, both, and one that is there already."""
    house = GuestHouse(None, None, 2) if is_served else None
    following = Following(MemoryStore(), module, house)
    store = following.store
    steps: list[tuple[list[int], list[int]]] = [([1], []), ([2], []), ([3, 4, 5], []), ([], [3]), ([6, 7], [1])]
    steps.append(([2], []))
    for came, went in steps:
        store.put([U_AND_V[n] for n in came])
        store.delete(*(U_AND_V[n].hash for n in went))
        assert following.current is None
        following.refresh_now()
        assert following.current == following.evaluated_anew()
    following.host.close()


def test_what_takes_long_or_is_in_other_hands_waits_for_its_turn() -> None:
    for module, count in ((ALL, RuleThresholds().max_short_records + 1), (JOINED, 1)):
        following = Following(filled(), module)
        following.store.put([validate(plex(f"late/{n}")) for n in range(count)])
        following.refresh_now()
        assert following.current is None
        following.sends.refresh(Call())
        assert following.current == following.evaluated_anew()
    following = Following(filled(), ALL)
    following.store.put([validate(plex("late"))])
    with following.sends.alone(Call()):
        following.refresh_now()
        assert following.current is None
    following.refresh_now()
    assert following.current == following.evaluated_anew()


def test_nobody_is_waited_for_where_other_rules_are_at_work() -> None:
    house = GuestHouse(None, None, 2)
    following = Following(filled(), ALL, house)
    following.store.put([validate(plex("late"))])
    is_ours = True  # both sides brought the same rules
    with ExitStack() as others:
        for number in range(house.places):
            others.enter_context(house.here(is_ours, f"another {number}", Call()))
        following.refresh_now()
        assert following.current is None
    following.refresh_now()
    assert following.current == following.evaluated_anew()


@pytest.mark.parametrize("broken", [Cancelled("given up"), LimitExceeded("max_rows", 1, "rows")])
def test_what_was_broken_off_is_not_what_the_next_one_finds(broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    following = Following(filled(), ALL)
    following.store.put([validate(plex("late"))])

    def fails(*_: object) -> None:
        raise broken

    with monkeypatch.context() as patch:
        patch.setattr(ByRecord, "follow", fails)
        with pytest.raises(type(broken)):
            following.refresh_now()
    assert following.current is None
    following.store.put([validate(plex("later"))])
    following.sends.refresh(Call())
    assert following.current == following.evaluated_anew()


def test_a_set_is_of_now_until_another_process_stores_something(tmp_path: Path) -> None:
    """What our own commit left is told apart from what somebody else made of it."""
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as ours, open_store(path) as theirs:
        ours.put([U_AND_V[0]])
        assert ours.news.at == ours.cursor()
        theirs.put([U_AND_V[1]])
        assert ours.news.at != ours.cursor()
        ours.delete(U_AND_V[1].hash)
        assert ours.news.at == ours.cursor()
        with ours.together():
            ours.put([U_AND_V[2]])
            ours.put([U_AND_V[3]])
        assert ours.news.at == ours.cursor()
        theirs.delete(U_AND_V[0].hash)
        assert ours.news.at != ours.cursor()


def test_what_another_process_stores_reaches_an_open_link(tmp_path: Path) -> None:
    """Before and after records of our own, which the link is told without looking at the file."""

    async def run() -> None:
        path = tmp_path / "a.lace"
        with open_store(path, create=True) as ours, open_store(path) as theirs:
            ours.put([validate(blob(b"first"))])
            async with serving(ours, tmp_path) as server:
                near = MemoryStore()
                node = make_node(near)
                node.keep_in_background(server.address, terms_of())
                for number, store in enumerate((ours, theirs, ours, theirs, theirs, near, theirs)):
                    store.put([validate(blob(b"%d" % number))])
                    await eventually(partial(are_equal, near, ours, number + 2))
                await node.shutdown()

    asyncio.run(run())


@pytest.mark.clause("050-OPEN-03")
def test_what_this_process_stores_is_told_to_open_links_without_looking(tmp_path: Path) -> None:
    async def run() -> None:
        seldom = NodeLimits(store_poll_s=3600.0, shutdown_grace_s=1.0)
        terms = terms_of(tick_interval_ns=3600 * SECOND_NS)  # a tick would find it as well
        async with serving([blob(b"first")], tmp_path, terms=terms, limits=seldom) as server:
            near = MemoryStore()
            node = make_node(near, limits=seldom)
            node.keep_in_background(server.address, terms)
            for number, store in enumerate((near, server.store, near)):
                await eventually(partial(are_equal, near, server.store, number + 1))
                await asyncio.to_thread(store.put, [validate(blob(b"%d" % number))])
            await eventually(partial(are_equal, near, server.store, 4))
            await node.shutdown()
        near.put([validate(blob(b"after the end"))])

    asyncio.run(run())


class Woken:
    """What threads are woken for, of all links of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count: Counter[str] = Counter()
        really = HostCalls.in_thread

        async def in_thread(calls: HostCalls, work: Any, *arguments: Any) -> Any:
            told = work
            while hasattr(told, "func"):
                told = told.args[0] if told.args and hasattr(told.args[0], "func") else told.func
            self.count[getattr(told, "__name__", "other")] += 1
            return await really(calls, work, *arguments)

        monkeypatch.setattr(HostCalls, "in_thread", in_thread)


@pytest.mark.parametrize("scheme", ["unix", "tcp", "ws"])
def test_one_new_record_wakes_few_threads(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever it comes to evaluates what to ask for, and stores it; whoever has it evaluates nothing for each link."""

    async def run() -> None:
        async with serving([blob(b"%d" % n) for n in range(40)], tmp_path, scheme) as server:
            stores = [filled_blobs(40) for _ in range(3)]
            nodes = [make_node(store) for store in stores]
            for node in nodes:
                node.keep_in_background(server.address, terms_of())
            await eventually(lambda: server.node.metrics.get("connections_active") == 3)
            for number in range(2):  # everything is compiled and kept after the first
                put(server.store, blob(b"to begin with %d" % number))
                await eventually(lambda: all(hashes(store) == hashes(server.store) for store in stores))
                await asyncio.sleep(0.1)
            woken = Woken(monkeypatch)
            put(server.store, blob(b"news"))
            await eventually(lambda: all(hashes(store) == hashes(server.store) for store in stores))
            await asyncio.sleep(0.1)
            assert woken.count["judge_and_store"] == 3
            assert woken.count["perform"] <= 3  # of what to ask for, at each of those who lack it
            for node in nodes:
                await node.shutdown()

    asyncio.run(run())


def are_equal(one: RecordStore, other: RecordStore, count: int) -> bool:
    return hashes(one) == hashes(other) and len(hashes(one)) == count


def filled_blobs(count: int) -> MemoryStore:
    store = MemoryStore()
    store.put([validate(blob(b"%d" % n)) for n in range(count)])
    return store


@pytest.mark.parametrize("steps", [1, 2, DriveLimits().steps_a_turn])
def test_however_much_is_done_in_one_turn_everything_arrives(steps: int, tmp_path: Path) -> None:
    """Records of three links, put in a different order at each, and one that is removed again."""
    limits = DriveLimits(steps_a_turn=steps)

    async def run() -> None:
        async with serving([blob(b"first")], tmp_path, drive_limits=limits) as server:
            stores = [MemoryStore() for _ in range(3)]
            nodes = [make_node(store) for store in stores]
            for node in nodes:
                node.keep_in_background(server.address, terms_of())
            for number in range(12):
                put(stores[number % 3], blob(b"%d" % number))
                if number % 4 == 3:
                    await eventually(partial(are_equal, server.store, server.store, 2 + number))
            await eventually(lambda: all(len(hashes(store)) == 13 for store in (*stores, server.store)))
            for node in nodes:
                await node.shutdown()

    asyncio.run(run())


def test_a_store_that_fails_to_be_followed_has_stored_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    following = Following(filled(), ALL)

    def fails(*_: object) -> None:
        raise LimitExceeded("max_rows", 1, "rows")

    monkeypatch.setattr(StoreEvaluator, "evaluate", fails)
    late = plex("late")
    answers = judge_and_store(following.host, [(str(validate(late).hash), late)], Call())
    assert [type(answer).__name__ for answer in answers] == ["RecordsStored"]
    assert following.store.have(validate(late).hash)
    assert following.current is None


LOOPS, LISTED = 220, 600  # some megabytes of answers in few loops: a loop is what takes time


class Ahead:
    """A peer over tcp that says all of its loops at once, and reads when it is told to."""

    def __init__(self, address: TcpAddress, loops: int = LOOPS) -> None:
        self._address = address
        self._loops = loops
        self.received = bytearray()

    async def __aenter__(self) -> Ahead:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)  # else the kernel reads for it
        sock.setblocking(False)
        self._sock, self._loop = sock, asyncio.get_running_loop()
        await self._loop.sock_connect(sock, (self._address.host, self._address.port))
        said = speech.opening() + (speech.listing([speech.bogus(b"one")]) + b"\n\n\n") * self._loops
        self._saying = asyncio.create_task(self._loop.sock_sendall(sock, said))
        return self

    async def say(self, more: bytes) -> None:
        """Something after the loops."""
        await self._saying
        await self._loop.sock_sendall(self._sock, more)

    async def read(self, until: Callable[[int], bool]) -> None:
        while not until(len(self.received)):
            self.received += await self._loop.sock_recv(self._sock, 1 << 16)

    async def __aexit__(self, *_: object) -> None:
        self._saying.cancel()
        self._sock.close()


FREE = LinkRates(blocks=Rate(1e6, 1e6), loops=Rate(1e6, 1e6), cpu_s=Rate(1e3, 1e3), peer_cpu_s=Rate(1e3, 1e3))


@pytest.mark.long
def test_a_peer_that_does_not_read_is_not_read_from_and_finds_all_of_it_when_it_does(tmp_path: Path) -> None:
    """Answers in one go are handed over while the connection takes them. What it does not take waits here within the
    bounds, however far the peer runs ahead; and later it hears the same bytes as a peer that reads all the time."""

    async def run() -> tuple[bytes, bytes, int, int]:
        terms = terms_of(limits=ExchangeLimits(max_loop_iterations=1 << 30))
        records = [blob(b"%d" % number) for number in range(LISTED)]
        async with serving(records, tmp_path, "tcp", terms, rates=FREE, standard=True) as server:
            assert isinstance(server.address, TcpAddress)
            async with Ahead(server.address) as prompt, asyncio.timeout(4 * PATIENCE_S):
                await prompt.read(lambda size: is_told(server, size))
            await eventually(lambda: not server.node.links)
            async with Ahead(server.address) as mute, asyncio.timeout(4 * PATIENCE_S):
                await eventually(lambda: bool(server.node.links))
                driver = only_driver(server)
                await eventually(lambda: driver._is_sending and driver.session.outbox.blocks > 0)
                stream, taken = driver._stream, -1
                while taken != driver.session.bytes_in:  # it stands still
                    taken = driver.session.bytes_in
                    await asyncio.sleep(0.2)
                assert isinstance(stream, PipeStream)
                waiting = stream.writer.transport.get_write_buffer_size()
                unsent = driver.session.outbox.bytes
                await mute.read(lambda size: is_told(server, size))
            return bytes(prompt.received), bytes(mute.received), waiting, unsent

    prompt, mute, waiting, unsent = asyncio.run(run())
    assert len(prompt) > 8 * MIB
    assert 0 < waiting <= 2 * WRITE_BUFFER_BYTES
    assert unsent <= MIB + LISTED * 100
    is_the_same = without_time(mute) == without_time(prompt)
    assert is_the_same  # of megabytes, whose difference nobody would read


def test_blocks_that_were_sent_ahead_are_charged_when_they_are_read(tmp_path: Path) -> None:
    """Whether bytes that came made us read them or an answer that they were waiting for."""

    async def run() -> tuple[int, float]:
        terms = terms_of(limits=ExchangeLimits(max_loop_iterations=1 << 30))
        async with serving([blob(b"one")], tmp_path, "tcp", terms, rates=FREE, standard=True) as server:
            assert isinstance(server.address, TcpAddress)
            async with Ahead(server.address, loops=30) as peer, asyncio.timeout(PATIENCE_S):
                await peer.read(lambda size: is_told(server, size, loops=30))
                driver = only_driver(server)
                return driver.session.blocks_in, driver.meter.used["blocks"]

    taken, charged = asyncio.run(run())
    assert charged == taken == 122


def test_loops_sent_where_records_are_expected_are_taken_a_few_blocks_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the session was given it works off, though the peer has gone meanwhile."""
    lacked = speech.listing([speech.bogus(b"one")])

    async def run() -> list[int]:
        terms = terms_of(limits=ExchangeLimits(max_loop_iterations=1 << 30))
        async with serving([blob(b"one")], tmp_path, "tcp", terms, rates=FREE, standard=True) as server:
            assert isinstance(server.address, TcpAddress)
            async with Ahead(server.address, loops=0) as peer, asyncio.timeout(PATIENCE_S):
                await peer.say(lacked + b"\n")
                await eventually(lambda: bool(server.node.links))
                session = only_driver(server).session
                await eventually(lambda: session.machine.expects_records)
                pieces: list[int] = []
                receive = session.receive_data

                def received(data: bytes, now_ns: int) -> None:
                    pieces.append(data.count(b"\n\n"))
                    receive(data, now_ns)

                monkeypatch.setattr(session, "receive_data", received)
                await peer.say(b"\n\n" + (lacked + b"\n\n\n") * 300)
                await peer.read(lambda size: is_told(server, size, loops=301))
                return pieces

    pieces = asyncio.run(run())
    assert len(pieces) > 1
    assert max(pieces) <= 64


def only_driver(server: Serving) -> Driver:
    return server.node.links[0].driver


def is_told(server: Serving, size: int, loops: int = LOOPS) -> bool:
    """Whether a peer has read all that is said to all of its loops."""
    if not server.node.links:
        return False
    session = only_driver(server).session
    return session.blocks_in == 4 * loops + 2 and size == session.bytes_out and not session.has_data


def without_time(said: bytes) -> bytes:
    """What was said but for what hangs on the clock: a slow exchange has ticks."""
    return re.sub(rb"HelloTAI\([^)]*\)|TickReady\([^)]*\)\n", b"", said)
