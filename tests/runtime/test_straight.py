"""One new record on an open link: what is done in one go, what threads are woken for; the answers stay the same."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from differences.test_shared import JOINED, filled, questions
from interlace.pair import ALL, blob, config_of, group_module, plex
from interop.harness import hashes, make_node, serving, terms_of
from interop.test_node import eventually, put
from lace.errors import LimitExceeded
from lace.interlace.host import Call, Cancelled
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime import judging, straight
from lace.runtime.bodies import RecentBodies
from lace.runtime.evaluate import FEW_RECORDS, StoreEvaluator
from lace.runtime.guesthouse import GuestHouse
from lace.runtime.host import LocalHost
from lace.runtime.hostcalls import HostCalls
from lace.runtime.policybook import PolicyBook
from lace.runtime.recordwise import Recordwise
from lace.runtime.sends import SharedSends
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore

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
    def sends(self) -> SharedSends:
        assert self.host.shared_sends is not None
        return self.host.shared_sends

    @property
    def current(self) -> set[str] | None:
        """What may be sent, if it is known to be of now."""
        found = self.sends.at_once()
        return None if found is None else set(found.ids.ids().texts())

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
        following.sends.refresh_shortly(Call())
        assert following.current == following.evaluated_anew()
    following.host.close()


def test_what_takes_long_or_is_in_other_hands_waits_for_its_turn() -> None:
    for module, count in ((ALL, FEW_RECORDS + 1), (JOINED, 1)):
        following = Following(filled(), module)
        following.store.put([validate(plex(f"late/{n}")) for n in range(count)])
        following.sends.refresh_shortly(Call())
        assert following.current is None
        following.sends.refresh(Call())
        assert following.current == following.evaluated_anew()
    following = Following(filled(), ALL)
    following.store.put([validate(plex("late"))])
    with following.sends._undivided(Call()):
        following.sends.refresh_shortly(Call())
        assert following.current is None
    following.sends.refresh_shortly(Call())
    assert following.current == following.evaluated_anew()


def test_nobody_is_waited_for_where_other_rules_are_at_work() -> None:
    house = GuestHouse(None, None, 2)
    following = Following(filled(), ALL, house)
    following.store.put([validate(plex("late"))])
    is_ours = True  # both sides brought the same rules
    with house.here(is_ours, "another", Call()), house.here(is_ours, "a third", Call()):
        following.sends.refresh_shortly(Call())
        assert following.current is None
    following.sends.refresh_shortly(Call())
    assert following.current == following.evaluated_anew()


@pytest.mark.parametrize("broken", [Cancelled("given up"), LimitExceeded("max_rows", 1, "rows")])
def test_what_was_broken_off_is_not_what_the_next_one_finds(broken: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    following = Following(filled(), ALL)
    following.store.put([validate(plex("late"))])

    def fails(*_: object) -> None:
        raise broken

    with monkeypatch.context() as patch:
        patch.setattr(Recordwise, "follow", fails)
        with pytest.raises(type(broken)):
            following.sends.refresh_shortly(Call())
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
                    if store is not theirs:
                        (node if store is near else server.node).store_changed()
                    await eventually(partial(are_equal, near, ours, number + 2))
                await node.shutdown()

    asyncio.run(run())


class Woken:
    """What threads are woken for, of all links of this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count: Counter[str] = Counter()
        really = HostCalls._in_thread

        async def in_thread(calls: HostCalls, work: Any, *arguments: Any) -> Any:
            told = work
            while hasattr(told, "func"):
                told = told.args[0] if told.args and hasattr(told.args[0], "func") else told.func
            self.count[getattr(told, "__name__", "other")] += 1
            return await really(calls, work, *arguments)

        monkeypatch.setattr(HostCalls, "_in_thread", in_thread)


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
                server.node.store_changed()
                await eventually(lambda: all(hashes(store) == hashes(server.store) for store in stores))
                await asyncio.sleep(0.1)
            woken = Woken(monkeypatch)
            put(server.store, blob(b"news"))
            server.node.store_changed()
            await eventually(lambda: all(hashes(store) == hashes(server.store) for store in stores))
            await asyncio.sleep(0.1)
            assert woken.count["_judge_and_store"] == 3
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


@pytest.mark.parametrize("at_once", [1, 2, straight.AT_ONCE])
def test_however_much_is_done_in_one_go_everything_arrives(
    at_once: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records of three links, put in a different order at each, and one that is removed again."""
    monkeypatch.setattr(straight, "AT_ONCE", at_once)

    async def run() -> None:
        async with serving([blob(b"first")], tmp_path) as server:
            stores = [MemoryStore() for _ in range(3)]
            nodes = [make_node(store) for store in stores]
            for node in nodes:
                node.keep_in_background(server.address, terms_of())
            for number in range(12):
                put(stores[number % 3], blob(b"%d" % number))
                nodes[number % 3].store_changed()
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

    monkeypatch.setattr(StoreEvaluator, "follow_shortly", fails)
    late = plex("late")
    answers = judging._judge_and_store(following.host, [(str(validate(late).hash), late)], Call())
    assert [type(answer).__name__ for answer in answers] == ["RecordsStored"]
    assert following.store.have(validate(late).hash)
    assert following.current is None
