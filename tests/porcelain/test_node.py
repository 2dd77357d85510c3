"""The public node: serve, connect, follow, attach, events, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import lace
from lace.errors import LocalProtocolError, TransportError
from lace.interlace.events import FixedPoint, Received
from lace.porcelain.lace import Lace
from lace.transports.base import TransportProof


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[Lace, Lace]]:
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        yield first, second


def put(into: Lace, name: str, app: str = "ding") -> lace.RecordHash:
    return into.put(name.encode(), group="u", app=app, name=name)


def have(one: Lace) -> set[str]:
    return {record for _, record in one.store.records_since()}


def bounded(work: object) -> object:
    return asyncio.run(asyncio.wait_for(work, 60))  # type: ignore[arg-type]


def test_one_node_serves_and_another_connects(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    far, near = pair
    wanted, other = put(far, "1"), put(far, "2", app="private")

    async def run() -> None:
        async with lace.Node(far, expose="all") as server, lace.Node(near, select="//u//ding//") as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            outcome = await client.connect(address)
            assert outcome.result.fixed_point
            assert have(near) == {wanted}
            everything = await client.connect(address, policy=lace.Policy(select="all"))
            assert everything.result.received_hashes == (other,)

    bounded(run())


def test_a_followed_peer_is_heard_of_until_the_task_is_cancelled(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    far, near = pair
    put(far, "1")

    async def run() -> None:
        async with lace.Node(far, expose="all") as server, lace.Node(near) as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            events = client.events()
            following = asyncio.create_task(client.follow(address))
            later = ""
            async for link, event in events:
                assert link.dialled
                if isinstance(event, FixedPoint) and not later:
                    later = put(far, "2")  # noticed, though nobody told the node
                if isinstance(event, Received) and later in event.hashes:
                    break
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            assert have(near) == have(far)

    bounded(run())


def test_events_end_when_the_node_does(pair: tuple[Lace, Lace]) -> None:
    async def run() -> list[lace.LinkEvent]:
        async with lace.Node(pair[0]) as node:
            events = node.events()
        return [event async for event in events]

    assert bounded(run()) == []


def test_the_policy_may_depend_on_who_dials(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    far, near = pair
    note = put(far, "1")
    asked: list[TransportProof] = []

    def policy_for(proof: TransportProof) -> lace.Policy | None:
        asked.append(proof)
        return lace.Policy(expose="all") if len(asked) > 1 else None

    async def run() -> None:
        async with lace.Node(far, policy_for=policy_for) as server, lace.Node(near) as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            turned_away = await client.connect(address)
            assert turned_away.abort
            assert have(near) == set()
            assert (await client.connect(address)).result.received_hashes == (note,)

    bounded(run())
    assert [proof.peer for proof in asked] == [None, None]


class Loop:
    """A transport of the application's own: two queues."""

    def __init__(self, incoming: asyncio.Queue[bytes], outgoing: asyncio.Queue[bytes]) -> None:
        self.proof = TransportProof.at("unix:/nowhere/at/all")
        self._incoming, self._outgoing = incoming, outgoing

    async def receive(self) -> bytes:
        return await self._incoming.get()

    async def send(self, data: bytes) -> None:
        await self._outgoing.put(data)

    async def close(self) -> None:
        await self._outgoing.put(b"")

    def abort(self) -> None:
        self._outgoing.put_nowait(b"")


def test_an_exchange_runs_over_a_transport_of_the_application(pair: tuple[Lace, Lace]) -> None:
    first, second = pair
    put(first, "1")
    put(second, "2")

    async def run() -> None:
        there: asyncio.Queue[bytes] = asyncio.Queue()
        back: asyncio.Queue[bytes] = asyncio.Queue()
        async with lace.Node(first, expose="all") as one, lace.Node(second, expose="all") as other:
            outcomes = await asyncio.gather(
                one.attach(Loop(back, there), dialled=True), other.attach(Loop(there, back), dialled=False)
            )
        assert all(outcome.result.fixed_point for outcome in outcomes)

    bounded(run())
    assert have(first) == have(second)
    assert len(have(first)) == 2


def test_a_transport_of_the_application_says_where_it_leads_in_the_words_of_an_address() -> None:
    peer = lace.generate_key().verifier
    proof = lace.TransportProof.at("tcp:10.0.0.7", peer=peer)
    assert (str(proof.address), proof.peer, proof.signed) == ("tcp:10.0.0.7:4790", peer, False)
    with pytest.raises(lace.InvalidText, match="`stdio` or `scheme:address`"):
        lace.TransportProof.at("mine")


def test_cancelling_one_exchange_leaves_the_node_and_its_other_links_alone(
    pair: tuple[Lace, Lace], tmp_path: Path
) -> None:
    far, near = pair
    put(far, "1")

    async def run() -> None:
        left = asyncio.Event()

        async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1000):
                pass
            writer.close()
            left.set()

        silent = await asyncio.start_unix_server(say_nothing, f"{tmp_path}/silent.sock")
        async with lace.Node(far, expose="all") as server, lace.Node(near) as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            stuck = asyncio.create_task(client.connect(f"unix:{tmp_path}/silent.sock"))
            await asyncio.sleep(0.2)
            stuck.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stuck
            await left.wait()  # the connection went with the task
            assert (await client.connect(address)).result.fixed_point
        silent.close()
        await silent.wait_closed()

    bounded(run())
    assert have(near) == have(far)


def test_what_is_wrong_is_told_where_it_is_said(pair: tuple[Lace, Lace], tmp_path: Path) -> None:
    with pytest.raises(lace.InvalidExchangePlan):
        lace.Node(pair[0], select="MaySend(P) :- Have(P).")
    with pytest.raises(LocalProtocolError):
        bounded(lace.Node(pair[0]).connect("tcp:127.0.0.1:9"))

    async def unreachable() -> None:
        async with lace.Node(pair[0]) as node:
            await node.connect(f"unix:{tmp_path}/nobody.sock")

    with pytest.raises(TransportError):
        bounded(unreachable())
