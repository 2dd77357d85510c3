"""Turns on the event loop: how much is done in one round, and for whom first."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from lace.runtime.link.turns import END_S, LoopTurns


class Meter:
    """A clock that only work moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float, then: Callable[[], object] = lambda: None) -> Callable[[], None]:
        def run() -> None:
            self.now += seconds
            then()

        return run


def test_what_many_send_at_once_is_spread_over_rounds_of_the_loop() -> None:
    """Thirty-two links with 2 ms of work each, 4 ms a round: never more than 6 ms between two looks at the others."""

    async def run() -> list[float]:
        clock = Meter()
        turns = LoopTurns(0.004, clock)
        tasks = [asyncio.create_task(turns.done(link, clock.work(0.002))) for link in range(32)]
        rounds, last = [], 0.0
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            rounds.append(clock.now - last)
            last = clock.now
        return rounds

    rounds = asyncio.run(run())
    assert sum(rounds) == pytest.approx(0.064)
    assert max(rounds) <= 0.006


def test_whoever_used_little_is_next_however_much_the_others_have_queued() -> None:
    async def run() -> list[str]:
        clock, order = Meter(), list[str]()
        turns = LoopTurns(0.004, clock)
        crowd = turns.of("crowd")
        for number in range(50):
            crowd.do(clock.work(0.003, lambda n=number: order.append(f"crowd {n}")))  # type: ignore[misc]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await turns.of("lone").done(clock.work(0.001, lambda: order.append("lone")))
        while len(turns):
            await asyncio.sleep(0)
        return order

    order = asyncio.run(run())
    assert order.index("lone") <= 6
    assert [name for name in order if name != "lone"] == [f"crowd {number}" for number in range(50)]


def test_an_account_that_comes_again_finds_what_it_used() -> None:
    """Another link of the same network does not begin anew."""

    async def run() -> list[str]:
        clock, order = Meter(), list[str]()
        turns = LoopTurns(0.001, clock)
        await turns.of("again").done(clock.work(1.0))
        keeping = asyncio.create_task(turns.of("level").done(clock.work(0.1)))
        await keeping
        for name in ("again", "other", "again", "other"):
            turns.of(name).do(clock.work(0.01, lambda n=name: order.append(n)))  # type: ignore[misc]
        while len(turns):
            await asyncio.sleep(0)
        return order

    assert asyncio.run(run()) == ["other", "other", "again", "again"]


def test_what_was_done_while_nobody_waited_is_not_held_against_anybody() -> None:
    """A peer that came a hundred times before a crowd did is not behind each of the crowd for all of that."""

    async def run() -> list[str]:
        clock, order = Meter(), list[str]()
        turns = LoopTurns(0.004, clock)
        for _ in range(100):
            await turns.of("steady").done(clock.work(0.003))
            await asyncio.sleep(0)
        for piece in range(10):
            for name in (*(f"crowd {number}" for number in range(16)), *(["steady"] if not piece else [])):
                turns.of(name).do(clock.work(0.003, lambda n=name: order.append(n)))  # type: ignore[misc]
        while len(turns):
            await asyncio.sleep(0)
        return order

    order = asyncio.run(run())
    assert len(order) == 161
    assert order.index("steady") <= 2 * 16  # one of the last pieces of its own may be ahead of the level


@pytest.mark.parametrize("hops", [0, 1, 2])
def test_an_exchange_of_many_steps_waits_for_one_round_with_each_of_them(hops: int) -> None:
    """Though it takes some rounds of the loop until it asks for the next step, and though what the others do asks for
    more turns while it is done: else the next round would begin before whoever was served has woken."""

    async def run() -> int:
        clock, pieces = Meter(), list[int]()
        turns, is_over = LoopTurns(0.004, clock), list[bool]()

        def go_on() -> None:
            pieces.append(1)
            if not is_over:
                turns.do("crowd", clock.work(0.005, go_on))  # more than a round has, and more of it behind

        go_on()
        await turns.done("lone", clock.work(0.0001))
        before = len(pieces)
        for _ in range(10):
            for _ in range(hops):
                await asyncio.sleep(0)
            await turns.done("lone", clock.work(0.0001))
        is_over.append(True)
        return len(pieces) - before

    assert asyncio.run(run()) <= 11


def test_it_is_told_whether_others_had_their_turn_meanwhile() -> None:
    async def run() -> list[bool]:
        clock = Meter()
        turns = LoopTurns(0.004, clock)
        return [await turns.done(name, clock.work(0.003)) for name in ("a", "b", "c")]

    assert asyncio.run(run()) == [False, False, True]


def test_a_failure_reaches_whoever_waits_and_the_others_go_on() -> None:
    async def run() -> tuple[str, int]:
        clock = Meter()
        turns, done = LoopTurns(0.001, clock), list[int]()
        turns.do("busy", clock.work(0.01))  # takes all of the next round: the others wait

        def fail() -> None:
            raise ZeroDivisionError("of one link")

        failing = asyncio.create_task(turns.done("one", fail))
        going = asyncio.create_task(turns.done("two", clock.work(0.001, lambda: done.append(1))))
        leaving = asyncio.create_task(turns.done("three", clock.work(0.001, lambda: done.append(2))))
        await asyncio.sleep(0)
        leaving.cancel()
        results = await asyncio.gather(failing, going, leaving, return_exceptions=True)
        return str(results[0]), sum(done)

    assert asyncio.run(run()) == ("of one link", 1)


def test_with_time_left_work_is_done_at_once() -> None:
    async def run() -> int:
        clock, done = Meter(), list[int]()
        turns = LoopTurns(0.004, clock)
        coroutine = turns.done("a", clock.work(0.001, lambda: done.append(1)))
        with pytest.raises(StopIteration):
            coroutine.send(None)  # without a round of the loop
        return len(done)

    assert asyncio.run(run()) == 1


def test_links_that_end_at_once_end_a_few_in_each_round() -> None:
    async def run() -> list[int]:
        turns, ended, rounds = LoopTurns(0.004, Meter()), list[int](), list[int]()

        async def end(number: int) -> None:
            await turns.ended(number)
            ended.append(number)

        tasks = [asyncio.create_task(end(number)) for number in range(256)]
        while not all(task.done() for task in tasks):
            before = len(ended)
            await asyncio.sleep(0)
            rounds.append(len(ended) - before)
        assert sorted(ended) == list(range(256))
        return rounds

    assert max(asyncio.run(run())) <= 0.004 / END_S + 1
