"""Who waits for a place among the links of a node, and who gets it."""

from __future__ import annotations

import asyncio

from lace.runtime.waitingroom import WaitingLimits, WaitingRoom

QUICK = WaitingLimits(max_waiting=4, max_waiting_per_peer=2, patience_s=0.3, look_s=0.005)


def test_whoever_has_fewest_links_goes_first_and_then_who_came_first() -> None:
    async def run() -> list[str]:
        room, places, order = WaitingRoom(QUICK), [0], list[str]()
        links = {"crowd": 9, "lone": 0}

        def take() -> bool:
            places[0] -= 1
            return places[0] >= 0

        async def come(name: str, peer: str) -> None:
            if await room.wait(peer, take, lambda: links[peer]):
                order.append(name)

        coming = [asyncio.create_task(come(*who)) for who in (("c1", "crowd"), ("c2", "crowd"), ("l1", "lone"))]
        await asyncio.sleep(0.02)
        places[0] = 3
        await asyncio.gather(*coming)
        assert len(room) == 0
        return order

    assert asyncio.run(run()) == ["l1", "c1", "c2"]


def test_patience_ends_and_few_may_wait_at_all() -> None:
    async def run() -> list[bool]:
        room = WaitingRoom(QUICK)
        peers = ["a", "a", "a", "b", "b", "c"]  # the third of a is one too many, and then c
        waits = [asyncio.create_task(room.wait(peer, lambda: False, lambda: 0)) for peer in peers]
        await asyncio.sleep(0.02)
        assert [wait.done() for wait in waits] == [False, False, True, False, False, True]
        return await asyncio.gather(*waits)

    assert asyncio.run(run()) == [False] * 6


def test_whoever_stops_waiting_leaves_no_trace() -> None:
    async def run() -> None:
        room = WaitingRoom(QUICK)
        waiting = asyncio.create_task(room.wait("a", lambda: False, lambda: 0))
        await asyncio.sleep(0.02)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        assert len(room) == 0
        assert await room.wait("a", lambda: True, lambda: 0)

    asyncio.run(run())
