"""How exchanges end, as a program that embeds Lace sees it: statuses, refusals, followed links, streams that close."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lace
from lace.interlace.reasons import ExchangeRefusal
from lace.runtime.node.refusing import Refusing, RefusingLimits, refusal

PATIENCE_S = 60


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[lace.Lace, lace.Lace]]:
    with lace.open(tmp_path / "a.lace", create=True) as first, lace.open(tmp_path / "b.lace", create=True) as second:
        yield first, second


def put(into: lace.Lace, name: str, app: str = "ding") -> lace.RecordHash:
    return into.put(name.encode(), group="u", app=app, name=name)


def bounded(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, PATIENCE_S))


class Pipe:
    """One end of a stream between two nodes of this process."""

    def __init__(self, incoming: asyncio.Queue[bytes], outgoing: asyncio.Queue[bytes]) -> None:
        self.proof = lace.TransportProof.at("unix:/a/pipe")
        self._incoming, self._outgoing = incoming, outgoing

    async def receive(self) -> bytes:
        return await self._incoming.get()

    async def send(self, data: bytes) -> None:
        await self._outgoing.put(data)

    async def close(self) -> None:
        await self._outgoing.put(b"")

    def abort(self) -> None:
        self._outgoing.put_nowait(b"")


def pipe() -> tuple[Pipe, Pipe]:
    there: asyncio.Queue[bytes] = asyncio.Queue()
    back: asyncio.Queue[bytes] = asyncio.Queue()
    return Pipe(back, there), Pipe(there, back)


def test_an_exchange_that_converges_says_so_and_raises_nothing(pair: tuple[lace.Lace, lace.Lace]) -> None:
    put(pair[0], "1")
    done = lace.exchange(*pair, expose="all")
    assert (done.status, done.raise_for_status().moved) == ("converged", 1)


def test_a_record_that_a_quota_keeps_out_makes_an_exchange_incomplete(
    pair: tuple[lace.Lace, lace.Lace], tmp_path: Path
) -> None:
    put(pair[0], "1")
    quotas = lace.Quotas(known_peer=lace.Allowance(records=0))
    with lace.serve(pair[0], f"unix:{tmp_path}/s.sock", expose="all") as (address,):
        outcome = lace.connect(pair[1], address, quotas=quotas)
    assert outcome.status is lace.ExchangeStatus.INCOMPLETE
    with pytest.raises(lace.NotConverged, match="1 wanted and not asked for") as raised:
        outcome.raise_for_status()
    assert raised.value.status == "incomplete"


@pytest.mark.parametrize("transport", ["unix", "tcp", "ws"])
@pytest.mark.clause("072-TELL-01", "072-TELL-03")
def test_a_peer_without_a_policy_is_told_that_it_is_refused(
    pair: tuple[lace.Lace, lace.Lace], tmp_path: Path, transport: str
) -> None:
    put(pair[0], "1")
    place = {"unix": f"unix:{tmp_path}/s.sock", "tcp": "tcp:127.0.0.1:0", "ws": "ws:127.0.0.1:0"}[transport]
    with lace.serve(pair[0], place, expose="all", policy_for=lambda _: None) as (address,):
        for _ in range(2):
            outcome = lace.connect(pair[1], address)
            assert (outcome.status, outcome.abort) == ("refused", "refused by the peer"), outcome
    with pytest.raises(lace.NotConverged, match="ended refused: refused by the peer: its policy has no terms for us"):
        outcome.raise_for_status()


@pytest.mark.clause("072-REASON-01")
def test_a_policy_that_fails_refuses_with_another_word(pair: tuple[lace.Lace, lace.Lace], tmp_path: Path) -> None:
    def fail(_: lace.TransportProof) -> lace.Policy | None:
        raise RuntimeError("no database")

    with lace.serve(pair[0], f"unix:{tmp_path}/s.sock", policy_for=fail) as (address,):
        assert "failed to decide" in lace.connect(pair[1], address).detail


def test_policy_for_is_asked_about_attached_streams(pair: tuple[lace.Lace, lace.Lace]) -> None:
    put(pair[0], "1")
    asked: list[lace.TransportProof] = []

    async def run(policy: lace.Policy | None) -> tuple[lace.ExchangeStatus, lace.ExchangeStatus]:
        def policy_for(proof: lace.TransportProof) -> lace.Policy | None:
            asked.append(proof)
            return policy

        async with lace.Node(pair[0], policy_for=policy_for) as server, lace.Node(pair[1]) as client:
            one, other = pipe()
            outcomes = await asyncio.gather(server.attach(one, dialled=False), client.attach(other, dialled=True))
            return outcomes[0].status, outcomes[1].status

    assert bounded(run(None)) == ("refused", "refused")
    assert bounded(run(lace.Policy(expose="all"))) == ("converged", "converged")
    assert len(asked) == 2
    assert len(list(pair[1].list())) == 1


VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "refused-exchange.json").read_text(encoding="utf-8"))


@pytest.mark.clause("072-FACT-01", "072-FACT-02", "072-REASON-01")
@pytest.mark.parametrize(
    "said, abort",
    [(text, "refused by the peer") for text in VECTORS["streams"].values()]
    + [(text, "malformed fact block") for text in VECTORS["malformed"].values()],
)
def test_what_stands_for_a_refusal(pair: tuple[lace.Lace, lace.Lace], said: str, abort: str) -> None:
    async def run() -> str:
        async with lace.Node(pair[0]) as node:
            ours, theirs = pipe()
            await theirs.send(said.encode())
            await theirs.close()
            return (await node.attach(ours, dialled=True)).abort

    assert bounded(run()) == abort


@pytest.mark.clause("072-FACT-01", "072-TELL-01")
def test_refusals_are_the_bytes_of_the_vectors() -> None:
    assert {why.value: refusal(why).decode() for why in ExchangeRefusal} == VECTORS["streams"]


@pytest.mark.clause("072-TELL-02")
def test_a_crowd_of_refused_peers_is_told_nothing() -> None:
    async def run() -> bytes:
        ours, theirs = pipe()
        await Refusing(RefusingLimits(max_told=0)).tell(ours, ExchangeRefusal.POLICY)
        return await theirs.receive()

    assert bounded(run()) == b""


def test_a_followed_link_settles_after_each_put_and_ends_with_its_block(
    pair: tuple[lace.Lace, lace.Lace], tmp_path: Path
) -> None:
    far, near = pair
    put(far, "1")

    async def run() -> None:
        async with lace.Node(far, select="//u", expose="all") as server, lace.Node(near, expose="all") as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            async with client.follow(address) as link, client.events() as events:
                await link.settled()
                assert (link.state, link.address, link.peer) == ("settled", address, None)
                assert len(list(near.list())) == 1
                for number in range(5):
                    record = put(near, f"near {number}")
                    await link.settled()
                    assert far.get(record) == f"near {number}".encode()
                near.put(b"", group="other", app="x", name="nobody wants it")
                await link.settled()
            assert (link.state, link.outcome.status if link.outcome else None) == ("ended", "converged")
            with pytest.raises(lace.LocalProtocolError, match="not followed any more"):
                await link.settled()
            assert [event async for event in events] == []

    bounded(run())


def test_a_followed_link_that_is_refused_says_so_instead_of_waiting(
    pair: tuple[lace.Lace, lace.Lace], tmp_path: Path
) -> None:
    async def run() -> None:
        async with lace.Node(pair[0], policy_for=lambda _: None) as server, lace.Node(pair[1]) as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            async with client.follow(address) as link:
                with pytest.raises(lace.NotConverged, match="refused"):
                    await link.settled()

    bounded(run())


def test_a_followed_link_waits_for_a_peer_that_comes_later(pair: tuple[lace.Lace, lace.Lace], tmp_path: Path) -> None:
    put(pair[0], "1")
    quick = lace.NodeLimits(backoff_first_s=0.05, backoff_most_s=0.1)

    async def run() -> None:
        async with lace.Node(pair[1], limits=quick) as client, client.follow(f"unix:{tmp_path}/s.sock") as link:
            while link.state != "waiting":
                await asyncio.sleep(0.01)
            assert "s.sock" in str(link.error)
            async with lace.Node(pair[0], expose="all") as server:
                await server.serve(f"unix:{tmp_path}/s.sock")
                await link.settled()
            assert len(list(pair[1].list())) == 1

    bounded(run())


def test_a_closed_stream_of_changes_ends_loops_that_wait(pair: tuple[lace.Lace, lace.Lace]) -> None:
    seen: list[lace.Change] = []
    changes = pair[0].changes("0/0")
    reader = threading.Thread(target=lambda: seen.extend(changes))
    reader.start()
    put(pair[0], "1")
    while not seen:
        reader.join(0.01)
    changes.close()
    reader.join(PATIENCE_S)
    assert not reader.is_alive()

    async def run() -> int:
        async with pair[0].changes("0/0") as stream:
            async for _ in stream:
                asyncio.get_running_loop().call_later(0.05, stream.close)
        return len(seen)

    assert bounded(run()) == 1
    assert list(changes) == []


class Counted:
    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def add(self, name: str, by: float, label: str) -> None:
        self.values[name] = self.values.get(name, 0) + by

    def put(self, name: str, value: float, label: str) -> None:
        self.values[name] = value


class Agent:
    """Signs elsewhere: only a verifier and a method are seen."""

    def __init__(self) -> None:
        self._key = lace.generate_key()
        self.verifier = self._key.verifier
        self.is_broken = False

    def sign(self, digest: bytes, /) -> bytes:
        return bytes(64) if self.is_broken else self._key.sign(digest)


def test_signer_clock_logger_and_metrics_are_the_applications(
    pair: tuple[lace.Lace, lace.Lace], caplog: pytest.LogCaptureFixture
) -> None:
    agent, counted = Agent(), Counted()
    pair[0].put(b"signed", group="u", app="ding", name="s", sign=agent)
    caplog.set_level(logging.INFO, "ours")
    with lace.serve(
        pair[0], "ws:127.0.0.1:0", expose="all", key=agent, logger=logging.getLogger("ours"), metrics=counted
    ) as (address,):
        outcome = lace.connect(pair[1], address, key=lace.generate_key(), trusted=[agent.verifier])
    assert outcome.raise_for_status().result.peer_verifier == agent.verifier
    assert next(iter(pair[1].list()))["Signed-By"] == agent.verifier
    assert counted.values["exchanges_total"] == 1
    ended = [line for line in caplog.records if line.name == "ours.links" and "ended" in line.message]
    assert [line.__dict__["lace_status"] for line in ended] == ["converged"]
    agent.is_broken = True
    with pytest.raises(lace.KeyUnavailable, match="wrong signature"):
        pair[0].put(b"x", group="u", app="ding", name="t", sign=agent)


def test_a_node_refuses_an_option_that_it_does_not_know(pair: tuple[lace.Lace, lace.Lace]) -> None:
    with pytest.raises(TypeError, match="there is no option 'exposed': give one of select, expose"):
        lace.Node(pair[0], exposed="all")  # type: ignore[misc]
