"""News of a store are told once a shared set is of now, and what comes meanwhile waits together (050-OPEN-03)."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest

from lace.interlace.host import Call, Cancelled
from lace.runtime.node.spreading import Spreading


class Slow:
    """A set that takes long to follow."""

    is_current = False

    def __init__(self) -> None:
        self.may_end = threading.Semaphore(0)
        self.begun = 0
        self.ended = 0
        self.calls: list[Call] = []

    def refresh(self, call: Call) -> None:
        self.begun += 1
        self.calls.append(call)
        assert self.may_end.acquire(timeout=10)
        self.ended += 1


class Link:
    """What spreading knows of a driver."""

    def __init__(self, shared: Slow | None) -> None:
        self.over = asyncio.Event()
        self.host = SimpleNamespace(answers_now=True, shared=shared)
        self.shared = shared
        self.told: list[int] = []  # how often the set had been followed by then

    def tell(self, news: object) -> None:
        self.told.append(0 if self.shared is None else self.shared.ended)


async def until(is_so: Any) -> None:
    async with asyncio.timeout(10):
        while not is_so():
            await asyncio.sleep(0.001)


@pytest.mark.clause("050-OPEN-03")
@pytest.mark.parametrize("news", [1, 2, 100])
def test_however_fast_news_come_a_set_is_followed_once_more_for_all_of_them(news: int) -> None:
    async def run() -> None:
        tasks: list[asyncio.Task[None]] = []
        with ThreadPoolExecutor(4) as threads:
            spreading = Spreading(threads, lambda work: tasks.append(asyncio.create_task(work)))
            shared, late = Slow(), Link(None)
            links = [Link(shared), Link(shared)]
            spreading.tell([links[0]])  # type: ignore[list-item]
            await until(lambda: shared.begun == 1)
            for _ in range(news):
                spreading.tell([*links, late])  # type: ignore[list-item]
            assert len(late.told) == news  # who shares nothing waits for nobody
            assert (len(tasks), shared.begun) == (1, 1)
            for _ in range(2):
                shared.may_end.release()
            await asyncio.gather(*tasks)
            assert (shared.begun, links[0].told, links[1].told) == (2, [1, 2], [2])
            shared.may_end.release()
            spreading.tell([links[1]])  # type: ignore[list-item]
            await asyncio.gather(*tasks)
            assert (len(tasks), shared.begun, links[1].told) == (2, 3, [2, 3])

    asyncio.run(run())


def test_two_sets_do_not_wait_for_each_other() -> None:
    async def run() -> None:
        tasks: list[asyncio.Task[None]] = []
        with ThreadPoolExecutor(4) as threads:
            spreading = Spreading(threads, lambda work: tasks.append(asyncio.create_task(work)))
            stuck, quick = Slow(), Slow()
            quick.may_end.release()
            links = [Link(stuck), Link(quick)]
            spreading.tell(links)  # type: ignore[arg-type]
            await until(lambda: links[1].told == [1])
            assert links[0].told == []
            stuck.may_end.release()
            await asyncio.gather(*tasks)
            assert links[0].told == [1]

    asyncio.run(run())


def test_nothing_is_followed_for_links_that_have_all_ended() -> None:
    async def run() -> None:
        tasks: list[asyncio.Task[None]] = []
        with ThreadPoolExecutor(1) as threads:
            spreading = Spreading(threads, lambda work: tasks.append(asyncio.create_task(work)))
            shared = Slow()
            links = [Link(shared), Link(shared)]
            spreading.tell(links)  # type: ignore[arg-type]
            await until(lambda: shared.begun == 1)
            links[0].over.set()
            shared.calls[0].check()  # one of them still waits
            links[1].over.set()
            with pytest.raises(Cancelled):
                shared.calls[0].charge(rows=1)
            shared.may_end.release()
            await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_set_that_is_of_now_is_not_followed_again() -> None:
    """Whoever stored the record has followed it: nobody is to wait for a thread that finds nothing to do."""

    async def run() -> None:
        tasks: list[asyncio.Task[None]] = []
        with ThreadPoolExecutor(1) as threads:
            spreading = Spreading(threads, lambda work: tasks.append(asyncio.create_task(work)))
            followed, other = Slow(), Slow()
            followed.is_current = True
            other.may_end.release()
            links = [Link(followed), Link(other), Link(followed)]
            spreading.tell(links)  # type: ignore[arg-type]
            assert [len(link.told) for link in links] == [1, 0, 1]
            await asyncio.gather(*tasks)
            assert [len(link.told) for link in links] == [1, 1, 1]
            assert (followed.begun, other.begun) == (0, 1)

    asyncio.run(run())
