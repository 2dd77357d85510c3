"""What links share at the engine: each waits for its own turn, and nobody is locked out by one that waits for its."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from differences.test_shared import JOINED, filled, questions
from interlace.pair import ALL, config_of, group_module, plex
from lace.interlace import effects as asked
from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.host import Call, Cancelled
from lace.records.validate import validate
from lace.runtime.host.host import LocalHost
from lace.runtime.node.fairness import FairDoor
from lace.runtime.rules import followedset
from lace.runtime.rules.evaluator import Delta, StoreEvaluator
from lace.runtime.rules.guesthouse import GuestHouse
from lace.runtime.rules.guests import GuestEvaluator
from lace.runtime.rules.policybook import PolicyBook
from lace.store.memory import MemoryStore
from siege.speech import bogus

CROWD, LONE = "a crowd", "somebody else"


class Links:
    """Two links of different networks over one store, under the same rules; the crowd's came first."""

    def __init__(self) -> None:
        self.store: MemoryStore = filled()
        self.house = GuestHouse(None, threads=1)
        self.book, terms = PolicyBook(), config_of(0, ALL).terms
        prepared, self.question = questions(ALL)
        self.hosts: dict[str, LocalHost] = {}
        for name in (CROWD, LONE):
            host = self.hosts[name] = LocalHost(self.store, terms, policies=self.book, house=self.house, guest=name)
            host.prepare(prepared, Call())
            self.ask(name)

    def ask(self, name: str, most: int = 0) -> Any:
        question = replace(self.question, max_requests=most, max_request_bytes=100 * most)
        return self.hosts[name].evaluate(question, Call())

    @property
    def shared(self) -> followedset.SharedSet:
        found = self.hosts[LONE].shared
        assert isinstance(found, followedset.SharedSet)
        assert found is self.hosts[CROWD].shared
        return found


def test_a_set_that_is_of_now_is_found_while_somebody_is_at_it() -> None:
    links = Links()
    before = links.ask(LONE).own
    with ThreadPoolExecutor(1) as threads, links.shared.alone(Call()):
        assert threads.submit(links.ask, LONE).result(10).own == before
    links.store.put([validate(plex("late"))])
    assert links.ask(LONE).own != before  # what came is not overlooked


def test_who_used_least_is_first_though_another_asked_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A crowd that waits for its turn holds nothing that others need."""
    links, order = Links(), list[Hashable]()
    with links.house.here(True, CROWD, Call()):
        began = time.thread_time()
        while time.thread_time() - began < 0.2:
            pass
    really = StoreEvaluator.evaluate

    def evaluate(evaluator: StoreEvaluator, runtime: Any, claims: Any, call: Call) -> Delta:
        order.append(call.account)
        links.store.put([validate(plex(f"after {len(order)}"))])  # so that the next one has something to do too
        return really(evaluator, runtime, claims, call)

    monkeypatch.setattr(StoreEvaluator, "evaluate", evaluate)
    links.store.put([validate(plex("late"))])
    with ThreadPoolExecutor(3) as threads:
        with links.house.here(True, "at work", Call()):
            futures = []
            for waiting, name in enumerate((CROWD, LONE), 1):
                futures.append(threads.submit(links.ask, name))
                while links.house.ours.waiting < waiting:
                    time.sleep(0.001)
            threads.submit(links.shared.keep).result(10)  # which nobody else may be at
        for future in futures:
            future.result(10)
    assert order == [LONE, CROWD]


def test_what_one_link_claims_is_looked_through_in_its_own_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever link the rules were prepared for: else all that others claim is done in that one's name."""
    links, turns = Links(), list[Hashable]()
    really: Callable[..., Any] = FairDoor.inside

    @contextmanager
    def inside(door: FairDoor, account: Hashable, check: Callable[[], None]) -> Iterator[None]:
        turns.append(account)
        with really(door, account, check):
            yield

    monkeypatch.setattr(FairDoor, "inside", inside)
    agreed = links.hosts[LONE].agreed
    assert agreed is not None
    claims = [Advertisement(bogus(bytes([number])), ()) for number in range(100)]
    agreed.claims.take(asked.TakeClaims(added=claims, removed=[], is_whole=True))
    assert len(links.ask(LONE, 1000).requests) == len(claims)
    assert set(turns) == {LONE}


def test_rules_of_a_peer_are_looked_through_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside whoever evaluates, each of many threads at it would have the event loop wait for it."""
    links, begun = Links(), list[str]()
    really = GuestEvaluator.__init__

    def note(evaluator: GuestEvaluator, store: Any, policy: Any, house: GuestHouse, guest: str, **more: Any) -> None:
        begun.append(guest)
        really(evaluator, store, policy, house, guest, **more)

    monkeypatch.setattr(GuestEvaluator, "__init__", note)
    terms, (prepared, question) = config_of(0, ALL).terms, questions(ALL, JOINED)
    host = LocalHost(links.store, terms, policies=PolicyBook(), house=links.house, guest=CROWD)
    host.prepare(prepared, Call())
    with ThreadPoolExecutor(1) as threads:
        with links.house.here(False, "at work", Call()):
            asking = threads.submit(host.evaluate, question, Call())
            while not links.house.guests.waiting:
                assert not asking.done(), asking.result()
                time.sleep(0.001)
            assert begun == []
        asking.result(10)
    assert begun == [CROWD]


def test_of_many_links_that_come_to_rest_one_prepares_and_in_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    links, prepared = Links(), list[StoreEvaluator]()
    really = StoreEvaluator.get_ready

    def get_ready(evaluator: StoreEvaluator) -> None:
        prepared.append(evaluator)
        really(evaluator)

    monkeypatch.setattr(StoreEvaluator, "get_ready", get_ready)
    with ThreadPoolExecutor(2) as threads:
        with links.house.here(True, "at work", Call()):
            resting = [threads.submit(host.rest, Call()) for host in links.hosts.values()]
            while links.house.ours.waiting < len(resting):
                time.sleep(0.001)
            assert prepared == []
        for future in resting:
            future.result(10)
    assert len(prepared) == 1
    assert links.shared.is_ready


def test_who_has_left_prepares_for_nothing() -> None:
    links, call = Links(), Call()
    with ThreadPoolExecutor(1) as threads, links.house.here(True, "at work", Call()):
        resting = threads.submit(links.hosts[LONE].rest, call)
        while not links.house.ours.waiting:
            time.sleep(0.001)
        call.cancel()
        with pytest.raises(Cancelled):
            resting.result(10)
    assert not links.shared.is_ready


def test_a_crowd_with_ever_other_rules_does_not_have_our_own_forgotten() -> None:
    links = Links()
    ours, book = links.shared, links.book
    for host in links.hosts.values():
        host.close()
    for number in range(20):
        module = group_module(f"g{number}")
        prepared, question = questions(module)
        host = LocalHost(links.store, config_of(0, ALL).terms, policies=book, house=links.house, guest=CROWD)
        host.prepare(prepared, Call())
        host.evaluate(question, Call())
        host.close()
    assert book.known <= 5  # of a crowd no more than before
    for number in range(20):  # as for a crowd with ever other keys: the text that comes is our own
        made = LocalHost(links.store, config_of(0, group_module(f"k{number}")).terms, policies=book, guest=CROWD)
        prepared, question = questions(group_module(f"k{number}"))
        made.prepare(prepared, Call())
        made.evaluate(question, Call())
        made.close()
    assert book.known <= 8
    prepared, question = questions(ALL)
    again = LocalHost(links.store, config_of(0, ALL).terms, policies=book, house=links.house, guest=LONE)
    again.prepare(prepared, Call())
    again.evaluate(question, Call())
    assert again.shared is ours
