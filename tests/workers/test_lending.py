"""Threads lent to whoever has work: used again, few of them idle, none lost to an error or a fork."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError
from contextlib import AsyncExitStack
from pathlib import Path
from time import monotonic, sleep

import pytest

import lace
from lace.workers.lending import MAX_IDLE, STOCK, BorrowedThreads, ThreadStock


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + 30
    while not holds():
        assert monotonic() < end
        sleep(0.001)


def test_one_thread_does_what_comes_one_after_the_other_for_whoever_asks() -> None:
    stock, seen = ThreadStock(), set[int]()
    for name in ("one", "other", "one"):
        borrowed = BorrowedThreads(4, name, stock)
        assert borrowed.submit(threading.get_ident).result(30)
        seen.add(borrowed.submit(threading.get_ident).result(30))
        until(lambda: stock.idle >= 1)
    assert len(seen) <= 2  # a second was begun where the first had not come back yet


def test_no_more_run_at_a_time_than_may_and_few_stay_afterwards() -> None:
    stock, hold, most = ThreadStock(max_idle=2), threading.Event(), list[int]()
    borrowed = BorrowedThreads(5, "test", stock)
    futures = [borrowed.submit(lambda: (most.append(1), hold.wait(30))) for _ in range(20)]
    until(lambda: len(most) == 5)
    assert borrowed.at_work == 5
    hold.set()
    for future in futures:
        future.result(30)
    until(lambda: borrowed.at_work == 0 and stock.idle == 2)


def test_a_thread_that_nobody_needs_ends_after_a_while() -> None:
    stock = ThreadStock(idle_s=0.01)
    BorrowedThreads(3, "test", stock).submit(lambda: None).result(30)
    until(lambda: stock.idle == 0)
    assert BorrowedThreads(3, "test", stock).submit(lambda: 5).result(30) == 5


def test_errors_belong_to_whoever_waits_and_what_waits_at_the_end_is_given_up() -> None:
    borrowed, hold = BorrowedThreads(1, "test", ThreadStock()), threading.Event()
    with pytest.raises(ZeroDivisionError):
        borrowed.submit(lambda: 1 // 0).result(30)
    begun = threading.Event()

    def work() -> bool:
        begun.set()
        return hold.wait(30)

    working = borrowed.submit(work)
    waiting = borrowed.submit(lambda: None)
    assert begun.wait(30)
    borrowed.shutdown()
    with pytest.raises(CancelledError):
        waiting.result(5)
    with pytest.raises(RuntimeError, match="have ended"):
        borrowed.submit(lambda: None)
    hold.set()
    assert working.result(30)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python warns of a fork among threads
def test_a_process_that_was_forked_has_threads_of_its_own() -> None:
    BorrowedThreads(1, "test").submit(lambda: None).result(30)
    child = os.fork()
    if child == 0:
        done = BorrowedThreads(1, "test").submit(lambda: 5).result(20)
        os._exit(0 if done == 5 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.long
def test_ten_nodes_at_rest_have_the_idle_threads_of_one(tmp_path: Path) -> None:
    """Ten nodes that follow each other in a ring, each with records of its own, all with everything in the end."""

    def of_nodes() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name.startswith("lace")]

    before = len(of_nodes()) - STOCK.idle

    async def ring() -> int:
        laces = [lace.open(":memory:") for _ in range(10)]
        async with AsyncExitStack() as stack:
            nodes = [await stack.enter_async_context(lace.Node(one, expose="all")) for one in laces]
            served = [await node.serve(f"unix:{tmp_path / str(index)}") for index, node in enumerate(nodes)]
            for index, one in enumerate(laces):
                with one.batch() as batch:
                    for number in range(20):
                        batch.put(b"x", group="u", app="a", name=f"{index}/{number}")
            links = [
                await stack.enter_async_context(node.follow(served[index - 1][0])) for index, node in enumerate(nodes)
            ]
            while any(one.stat().records < 200 for one in laces):
                await asyncio.sleep(0.02)
            for link in links:
                await link.settled()
            await asyncio.sleep(0.3)  # a moment in which nothing is under way
            return len(of_nodes())

    # Beside them stand the threads of the event loop, four and one for each core, however many nodes there are.
    assert 0 < asyncio.run(asyncio.wait_for(ring(), 120)) - before <= MAX_IDLE
