"""Threads that links share: a turn for whoever used least."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from functools import partial
from time import monotonic, sleep, thread_time

import pytest

from lace.runtime.node.fairness import LONG_S, FairDoor, FairThreads, Pace


def burn(seconds: float) -> None:
    until = thread_time() + seconds
    while thread_time() < until:
        pass


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + 30
    while not holds():
        assert monotonic() < end
        sleep(0.001)


def test_a_link_that_comes_waits_for_what_is_at_work_and_not_for_what_is_queued() -> None:
    threads, order = FairThreads(1, "test"), list[str]()
    hold = threading.Event()
    first = threads.submit(1, hold.wait)
    crowd = [threads.submit(1, lambda n=number: (burn(0.002), order.append(f"crowd {n}"))) for number in range(20)]
    lone = threads.submit(2, lambda: order.append("lone"))
    hold.set()
    for future in (first, lone, *crowd):
        future.result(30)
    assert order.index("lone") <= 1
    assert order[-1] == "crowd 19"
    threads.shutdown()


def test_links_that_ask_one_after_the_other_take_turns_by_what_they_used() -> None:
    threads = FairThreads(1, "test")
    used: dict[int, int] = {1: 0, 2: 0}

    def ask(link: int, cost: float) -> None:
        for _ in range(20):
            threads.submit(link, lambda: burn(cost)).result(30)
            used[link] += 1

    heavy = threading.Thread(target=ask, args=(1, 0.01))
    light = threading.Thread(target=ask, args=(2, 0.0001))
    heavy.start()
    light.start()
    light.join()
    assert used[1] < 20  # the light one did not wait for as many of the heavy one's
    heavy.join()
    threads.shutdown()


def test_failures_and_results_reach_whoever_waits() -> None:
    async def run() -> None:
        threads = FairThreads(2, "test")
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(threads.of(7), lambda: 5) == 5
        with pytest.raises(ZeroDivisionError):
            await loop.run_in_executor(threads.of(7), lambda: 1 // 0)
        threads.shutdown()

    asyncio.run(run())


def test_what_waits_at_the_end_is_given_up_and_the_threads_are_given_back() -> None:
    threads, hold, begun = FairThreads(1, "test"), threading.Event(), threading.Event()
    working: Future[bool] = threads.submit(1, lambda: begun.set() or hold.wait())  # type: ignore[func-returns-value]
    assert begun.wait(30)
    waiting = threads.submit(2, lambda: None)
    threads.shutdown()
    with pytest.raises(CancelledError):
        waiting.result(5)
    with pytest.raises(RuntimeError):
        threads.submit(1, lambda: None)
    hold.set()
    assert working.result(5)
    until(lambda: threads.at_work == 0)


def test_no_more_threads_than_there_may_be_and_none_before_they_are_needed() -> None:
    threads, hold, begun = FairThreads(3, "test", ours=range(10)), threading.Event(), list[int]()
    assert threads.at_work == 0

    def stay(number: int) -> None:
        begun.append(number)
        hold.wait(30)

    futures = [threads.of(number).submit(stay, number) for number in range(10)]
    until(lambda: len(begun) == 3)
    assert threads.at_work == 3
    hold.set()
    for future in futures:
        future.result(30)
    until(lambda: threads.at_work == 0)
    threads.shutdown()


def test_one_thread_is_kept_for_those_whose_last_work_was_short() -> None:
    """Two threads, a heavy account with ever more to do: a light one never waits for it to end, a stranger does."""
    threads, hold, begun = FairThreads(2, "test"), threading.Event(), threading.Event()
    threads.submit("heavy", lambda: burn(0.1)).result(30)
    threads.submit("light", lambda: None).result(30)

    def stay() -> bool:
        begun.set()
        return hold.wait()

    crowd = [threads.submit("heavy", stay) for _ in range(5)]
    assert begun.wait(30)
    stranger = threads.submit("stranger", lambda: 6)  # who used least, and yet the thread that is free is not for it
    assert threads.submit("light", lambda: 5).result(30) == 5
    assert not any(future.done() for future in (stranger, *crowd))
    hold.set()
    assert stranger.result(30) == 6
    assert all(future.result(30) for future in crowd)
    threads.shutdown()


def test_work_that_is_known_to_be_long_has_few_threads_at_a_time_and_the_others_are_free() -> None:
    threads, hold = FairThreads(4, "test", most_long=1), threading.Event()
    for heavy in range(6):
        threads.submit(heavy, lambda: burn(2 * LONG_S)).result(30)
    threads.submit("light", lambda: None).result(30)
    begun = list[int]()

    def stay(account: int) -> None:
        begun.append(account)
        hold.wait(30)

    crowd = [threads.submit(heavy, lambda account=heavy: stay(account)) for heavy in range(6)]  # type: ignore[misc]
    for _ in range(3):
        assert threads.submit("light", lambda: 5).result(30) == 5
    assert len(begun) == 1
    hold.set()
    for future in crowd:
        future.result(30)
    assert sorted(begun) == list(range(6))
    threads.shutdown()


def test_long_work_of_many_accounts_that_nobody_knows_leaves_the_other_threads_alone() -> None:
    """Four threads, and everybody is new: work that says it is long has one of them, and brands nobody."""
    threads, hold = FairThreads(4, "test", most_long=1), threading.Event()
    begun = list[int]()

    def stay(account: int) -> None:
        begun.append(account)
        hold.wait(30)
        burn(2 * LONG_S)

    crowd = [threads.of(number, is_long=True).submit(stay, number) for number in range(6)]
    assert [threads.submit(f"new {number}", lambda: 5).result(30) for number in range(3)] == [5, 5, 5]
    assert len(begun) == 1
    hold.set()
    for future in crowd:
        future.result(30)
    assert [threads.pace(number) for number in range(6)] == [Pace.UNKNOWN] * 6
    threads.shutdown()


def test_accounts_that_nobody_knows_leave_one_thread_to_those_that_are_short() -> None:
    threads, hold = FairThreads(2, "test"), threading.Event()
    threads.submit("light", lambda: None).result(30)
    crowd = [threads.submit(number, hold.wait) for number in range(5)]
    assert threads.submit("light", lambda: 5).result(30) == 5
    assert not any(future.done() for future in crowd)
    hold.set()
    assert all(future.result(30) for future in crowd)
    threads.shutdown()


def test_one_short_piece_of_work_does_not_make_a_heavy_account_light_and_many_do() -> None:
    threads = FairThreads(2, "test", ours=["ours"])
    for account in ("heavy", "ours"):
        threads.submit(account, lambda: burn(2 * LONG_S)).result(30)
        threads.submit(account, lambda: None).result(30)
    threads.submit("new", lambda: None).result(30)
    paces = {"heavy": Pace.LONG, "ours": Pace.SHORT, "new": Pace.SHORT, "unseen": Pace.UNKNOWN}
    assert {account: threads.pace(account) for account in paces} == paces
    for _ in range(20):
        threads.submit("heavy", lambda: None).result(30)
    assert threads.pace("heavy") is Pace.SHORT
    threads.shutdown()


def test_at_a_door_few_are_inside_and_whoever_used_least_is_next() -> None:
    door, order, inside = FairDoor(1), list[str](), list[int]()
    hold, begun = threading.Event(), threading.Event()

    def pass_door(account: str, cost: float, first: bool = False) -> None:
        with door.inside(account, lambda: None):
            inside.append(len(inside))
            if first:
                begun.set()
                hold.wait(30)
            burn(cost)
            order.append(account)

    holder = threading.Thread(target=pass_door, args=("hostile", 0.05, True))
    holder.start()
    assert begun.wait(30)
    crowd = [threading.Thread(target=pass_door, args=("hostile", 0.01)) for _ in range(5)]
    for thread in crowd:
        thread.start()
    lone = threading.Thread(target=pass_door, args=("good", 0.0))
    lone.start()
    while door.waiting < 6:
        pass
    hold.set()
    for thread in (holder, lone, *crowd):
        thread.join(30)
    assert order.index("good") <= 1
    assert order.count("hostile") == 6


def test_who_waits_at_a_door_for_nobody_leaves_and_the_others_pass() -> None:
    door, hold = FairDoor(1), threading.Event()
    gone = threading.Event()
    begun = threading.Event()

    def stay() -> None:
        with door.inside("a", lambda: None):
            begun.set()
            hold.wait(30)

    def check() -> None:
        if gone.is_set():
            raise InterruptedError("nobody waits")

    staying = threading.Thread(target=stay)
    staying.start()
    assert begun.wait(30)
    gone.set()
    with pytest.raises(InterruptedError), door.inside("b", check):
        pass
    assert door.waiting == 0
    hold.set()
    staying.join(30)
    with door.inside("c", lambda: None):
        pass


@pytest.mark.parametrize("places", [1, 2, 5])
def test_at_a_door_everybody_who_may_enter_is_called_though_some_give_up(places: int) -> None:
    """Nobody looks by himself: whoever was not called would stand there for ever."""
    door, passed, most = FairDoor(places, look_s=600.0), list[int](), list[int]()
    inside, counting = 0, threading.Lock()

    def check(number: int) -> None:
        if number % 4 == 3:
            raise InterruptedError("nobody waits for it")

    def pass_door(number: int) -> None:
        nonlocal inside
        for _ in range(5):
            with suppress(InterruptedError), door.inside(number % 3, partial(check, number)):
                with counting:
                    inside += 1
                    most.append(inside)
                burn(0.0005)
                with counting:
                    inside -= 1
                passed.append(number)

    threads = [threading.Thread(target=pass_door, args=(number,), daemon=True) for number in range(24)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert all(passed.count(number) == 5 for number in range(24) if number % 4 != 3)
    assert max(most) <= places
    assert door.waiting == 0
