"""What the first peers of a node ask for is there before it listens, and is worked out once."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from interlace.pair import plex
from interop.harness import CLOCK, PATIENCE_S, exchange_once, filled, make_node, terms_of
from lace.interlace.claims.partitions import Partition, Parts
from lace.interlace.host import Call
from lace.interlace.setup.terms import Terms
from lace.policy.operand import Module
from lace.policy.select import select_all, select_coordinate
from lace.runtime.node.links import NodeLimits
from lace.runtime.node.workers import Workers
from lace.runtime.rules.evaluator import Delta, StoreEvaluator
from lace.store.base import RecordStore
from lace.transports.dial import TransportOptions, dial
from siege import speech
from transports.endpoints import any_port

RECORDS = [plex(f"n/{number}", group="u") for number in range(40)]
SUMMARISED = terms_of(select_all(), partition_threshold_bytes=1)


class Work:
    """What was evaluated over a store, and the labels under which the workers of its node worked out roots."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: RecordStore) -> None:
        self.done: list[str] = []
        really, summarise = StoreEvaluator._start, Workers.summarise
        node_workers: list[Workers] = []

        def start(evaluator: StoreEvaluator, *arguments: Any) -> Delta:
            if evaluator.store is store:
                self.done.append("evaluated")
            return really(evaluator, *arguments)

        def hashed(mine: Workers, parts: Parts, source: str, longest: int) -> list[Partition]:
            node_workers.append(mine)
            if mine is node_workers[0]:
                self.done.append(f"hashed under {source}")
            return summarise(mine, parts, source, longest)

        monkeypatch.setattr(StoreEvaluator, "_start", start)
        monkeypatch.setattr(Workers, "summarise", hashed)


@pytest.mark.parametrize("module", [select_all(), select_coordinate("//u//")], ids=["everything", "a part"])
@pytest.mark.parametrize("standard", [False, True], ids=["with capabilities", "without"])
def test_the_first_peers_find_everything_worked_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Module, *, standard: bool
) -> None:
    """Of a node with the capabilities, or of one that summarises to everybody; with the rules that all start with."""
    store = filled(RECORDS)
    work = Work(monkeypatch, store)
    terms = terms_of(module, partition_threshold_bytes=1)

    async def run() -> None:
        node = make_node(store, limits=NodeLimits(ready_records=39), standard=standard)
        address = await node.listen(any_port("unix", tmp_path), terms)
        try:
            ready = set(work.done)
            assert "evaluated" in ready
            # Roots, where ids are all there is to say and nobody will compare sets.
            assert len(ready) == (2 if standard and module.id == select_all().id else 1)
            work.done.clear()
            for _ in range(2):
                outcome, theirs = await exchange_once(address, [], standard=standard)
                assert outcome.is_complete
                assert theirs.stat().records == len(RECORDS)
            assert not ready.intersection(work.done)
        finally:
            await node.shutdown()

    asyncio.run(run())


@pytest.mark.parametrize("foreseen", [False, True], ids=["by the peer", "for everybody"])
def test_little_is_not_waited_for_and_what_depends_on_the_peer_cannot_be_foreseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, foreseen: bool
) -> None:
    store = filled(RECORDS)
    work = Work(monkeypatch, store)

    async def run() -> None:
        node = make_node(store, limits=NodeLimits(ready_records=40 if foreseen else 0))
        await node.listen(any_port("unix", tmp_path), SUMMARISED if foreseen else lambda _: SUMMARISED)
        assert not work.done
        await node.shutdown()

    asyncio.run(run())


def test_a_node_listens_though_it_takes_long_to_get_ready_and_its_end_is_not_held_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, given_up = threading.Event(), threading.Event()

    def never_ready(_: object, terms: Terms, tai_ns: int, call: Call, *, is_standard: bool) -> None:
        begun.set()
        while not call.is_cancelled:
            given_up.wait(0.01)
        given_up.set()

    async def run() -> None:
        monkeypatch.setattr("lace.runtime.host.hosting.Hosting.get_ready", never_ready)
        node = make_node(filled(RECORDS), limits=NodeLimits(ready_records=0, ready_s=0.05))
        address = await asyncio.wait_for(node.listen(any_port("unix", tmp_path), SUMMARISED), PATIENCE_S)
        assert begun.is_set()
        assert (await exchange_once(address, []))[0].is_complete
        assert not given_up.is_set()
        assert await node.shutdown()
        assert given_up.is_set()

    asyncio.run(run())


def test_links_that_wait_for_roots_hold_up_no_short_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six peers are to be told the roots of a set that takes long to hash; one that has the same set is served."""
    begun, hold = threading.Event(), threading.Event()
    really = Workers.summarise

    async def run() -> None:
        node = make_node(filled(RECORDS))

        def slow(mine: Workers, parts: Parts, source: str, longest: int) -> list[Partition]:
            if mine is node.pools.workers:
                begun.set()
                hold.wait(PATIENCE_S)
            return really(mine, parts, source, longest)

        monkeypatch.setattr(Workers, "summarise", slow)
        address = await node.listen(any_port("unix", tmp_path), SUMMARISED)
        crowd = [await dial(address, TransportOptions(clock=CLOCK.tai)) for _ in range(6)]
        try:
            for stream in crowd:
                await stream.send(speech.opening() + b"\n\n")
            assert await asyncio.to_thread(begun.wait, PATIENCE_S)
            outcome, _ = await exchange_once(address, RECORDS)
            assert outcome.is_complete
            assert not hold.is_set()
        finally:
            hold.set()
            for stream in crowd:
                stream.abort()
            await node.shutdown()

    asyncio.run(run())
