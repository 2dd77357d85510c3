"""Who pays for what several links use: all in equal parts, nobody more than alone, and hanging up helps nobody."""

from __future__ import annotations

import asyncio
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from time import thread_time
from typing import Any

import pytest

from differences.test_shared import JOINED, filled, questions
from interlace.pair import ALL, config_of, plex
from lace.interlace.host import Call, Cancelled
from lace.policy.operand import Module
from lace.records.validate import validate
from lace.runtime.clock import SteadyTai, SystemClock
from lace.runtime.host.host import LocalHost
from lace.runtime.link.hostcalls import HostCalls
from lace.runtime.node.metering import LinkMeter, LinkRates
from lace.runtime.rules import followedset
from lace.runtime.rules.evaluator import Delta, StoreEvaluator
from lace.runtime.rules.policybook import PolicyBook
from lace.store.memory import MemoryStore


class Purse:
    """Somebody who pays."""

    def __init__(self) -> None:
        self.paid = 0.0

    def pay(self, cpu_s: float) -> None:
        self.paid += cpu_s


class Costs:
    """A clock that only evaluations of something new move, by what the test says they take."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = self.next = 0.0
        self.spent = 0.0
        self.book = PolicyBook(clock=lambda: self.now)
        really = StoreEvaluator.evaluate

        def evaluate(evaluator: StoreEvaluator, *arguments: Any) -> Delta:
            before = evaluator.cursor
            found = really(evaluator, *arguments)
            if evaluator.cursor != before:
                self.now += self.next
                self.spent += self.next
            return found

        monkeypatch.setattr(StoreEvaluator, "evaluate", evaluate)


class Linked:
    """One link over a shared store."""

    def __init__(self, store: MemoryStore, module: Module, book: PolicyBook) -> None:
        self.purse = Purse()
        self._host = LocalHost(store, config_of(0, module).terms, policies=book)
        prepared, self._question = questions(module)
        self._host.prepare(prepared, Call())

    def ask(self, costs: Costs) -> None:
        """An evaluation, and what the thread that did it charges for it."""
        call, started = Call(payer=self.purse), costs.now
        self._host.evaluate(self._question, call)
        self.purse.pay(costs.now - started + call.cpu_s)

    def leave(self) -> None:
        self._host.close()


@pytest.mark.parametrize("module", [ALL, JOINED])
@pytest.mark.parametrize("seed", range(5))
def test_all_that_is_spent_is_paid_and_nobody_pays_more_than_alone(
    module: Module, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links come, ask, and go in any order, while records come."""
    draw, store, costs = random.Random(seed), filled(), Costs(monkeypatch)
    book = costs.book
    links: list[Linked] = []
    purses: list[tuple[Purse, float]] = []  # with what had been spent when the link came
    for number in range(60):
        costs.next = draw.choice([0.0, 0.5, 2.0, 8.0])
        match draw.randrange(4):
            case 0:
                links.append(Linked(store, module, book))
                purses.append((links[-1].purse, costs.spent))
            case 1 if len(links) > 1:
                links.pop(draw.randrange(len(links))).leave()
            case 2:
                store.put([validate(plex(f"late {number}"))])
            case _ if links:
                draw.choice(links).ask(costs)
    assert costs.spent > 0
    assert sum(purse.paid for purse, _ in purses) == pytest.approx(costs.spent)
    for purse, before in purses:
        assert -1e-9 <= purse.paid <= costs.spent - before + 1e-9


def test_links_that_follow_the_same_pay_the_same_whoever_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    store, costs = filled(), Costs(monkeypatch)
    book = costs.book
    links = [Linked(store, JOINED, book) for _ in range(4)]
    for link in links:
        link.ask(costs)
    for number in range(3):
        store.put([validate(plex(f"late {number}"))])
        costs.next = 8.0
        for link in links:
            link.ask(costs)
    assert [link.purse.paid for link in links] == pytest.approx([6.0] * 4)


def test_who_left_pays_for_nothing_that_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    store, costs = filled(), Costs(monkeypatch)
    book = costs.book
    stays, goes = Linked(store, JOINED, book), Linked(store, JOINED, book)
    stays.ask(costs)
    goes.ask(costs)
    goes.leave()
    store.put([validate(plex("late"))])
    costs.next = 8.0
    stays.ask(costs)
    assert (stays.purse.paid, goes.purse.paid) == pytest.approx((8.0, 0.0))


def test_links_come_and_go_while_the_rules_of_another_are_looked_through(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes long for one peer is waited for by nobody else: event loops give back what ended links used."""
    store, costs = filled(), Costs(monkeypatch)
    book = costs.book
    first, late = Linked(store, ALL, book), Linked(store, JOINED, book)
    first.ask(costs)
    is_begun, may_end = threading.Event(), threading.Event()
    really = StoreEvaluator.__init__

    def slow(evaluator: StoreEvaluator, *arguments: Any, **options: Any) -> None:
        is_begun.set()
        assert may_end.wait(10)
        really(evaluator, *arguments, **options)

    monkeypatch.setattr(StoreEvaluator, "__init__", slow)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(late.ask, costs)
        assert is_begun.wait(10)
        leaving = threads.submit(first.leave)
        leaving.result(5)
        may_end.set()
        slow.result(10)
    twin = Linked(store, JOINED, book)
    twin.ask(costs)
    assert twin._host.shared is late._host.shared is not None


def test_an_evaluation_goes_on_for_whoever_still_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that breaks off what others wait for would make them pay for beginning anew."""
    store, book = filled(), PolicyBook()
    hosts = [LocalHost(store, config_of(0, JOINED).terms, policies=book) for _ in range(2)]
    prepared, question = questions(JOINED)
    for host in hosts:
        host.prepare(prepared, Call())
    calls = [Call(), Call()]
    is_begun, may_end = threading.Event(), threading.Event()
    really, seen = StoreEvaluator.evaluate, []

    def evaluate(evaluator: StoreEvaluator, runtime: Any, claims: Any, call: Call) -> Delta:
        is_begun.set()
        may_end.wait(10)
        seen.append(call.is_cancelled)
        call.check()
        return really(evaluator, runtime, claims, call)

    monkeypatch.setattr(StoreEvaluator, "evaluate", evaluate)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(hosts[0].evaluate, question, calls[0])
        assert is_begun.wait(10)
        second = threads.submit(hosts[1].evaluate, question, calls[1])
        shared = hosts[0].shared
        assert isinstance(shared, followedset.SharedSet)
        while shared.asking < 2:
            pass
        calls[0].cancel()
        may_end.set()
        assert first.result(10).own == second.result(10).own
    assert seen == [False, False]


def test_one_that_nobody_waits_for_any_more_is_broken_off_and_who_waits_its_turn_hears_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = LocalHost(filled(), config_of(0, JOINED).terms, policies=PolicyBook())
    prepared, question = questions(JOINED)
    host.prepare(prepared, Call())
    host.evaluate(question, Call())
    shared = host.shared
    assert isinstance(shared, followedset.SharedSet)
    host.store.put([validate(plex("late"))])  # else nobody has to be waited for
    call = Call()
    with ThreadPoolExecutor(1) as threads, shared.alone(Call()):  # somebody else is at it
        waiting = threads.submit(host.evaluate, question, call)
        call.cancel()
        with pytest.raises(Cancelled):
            waiting.result(10)


def test_who_hangs_up_in_the_middle_pays_for_what_was_done() -> None:
    """And for what other processes did: whoever came again would else begin with nothing owed."""

    async def run() -> float:
        meter = LinkMeter(LinkRates(), 0)
        with ThreadPoolExecutor(1) as threads:
            calls = HostCalls(threads, None, meter, SteadyTai(SystemClock()))
            begun = threading.Event()

            def work(call: Call) -> None:
                begun.set()
                until = thread_time() + 0.05
                while thread_time() < until or not call.is_cancelled:
                    pass
                call.cpu_s += 3.0  # of a process of its own
                call.check()

            task = asyncio.create_task(calls.evaluate(work))
            await asyncio.to_thread(begun.wait, 10)
            calls.cancel()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        return meter.used["cpu_s"]

    assert asyncio.run(run()) >= 3.05
