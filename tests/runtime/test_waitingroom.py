"""Who waits for a place among the links of a node, and who gets it."""

from __future__ import annotations

import asyncio

from lace.runtime.node.waitingroom import WaitingLimits, WaitingRoom

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
        peers = ["a", "a", "a", "b", "b", "c"]  # the third of a is one too many; the second of b leaves for c
        waits = [asyncio.create_task(room.wait(peer, lambda: False, lambda: 0)) for peer in peers]
        await asyncio.sleep(0.02)
        assert [wait.done() for wait in waits] == [False, False, True, False, True, False]
        return await asyncio.gather(*waits)

    assert asyncio.run(run()) == [False] * 6


def test_in_a_full_room_the_last_of_the_largest_crowd_leaves_for_one_who_is_alone() -> None:
    async def run() -> None:
        room = WaitingRoom(WaitingLimits(max_waiting=3, max_waiting_per_peer=3, patience_s=0.3, look_s=0.005))
        crowd = [asyncio.create_task(room.wait("crowd", lambda: False, lambda: 0)) for _ in range(3)]
        await asyncio.sleep(0.02)
        assert not room.is_passed_by(None)
        assert room.is_passed_by("V.x.H3")
        lone = asyncio.create_task(room.wait("lone", lambda: False, lambda: 0))
        await asyncio.sleep(0.02)
        assert [wait.done() for wait in (*crowd, lone)] == [False, False, True, False]
        assert not await room.wait("crowd", lambda: False, lambda: 0)
        await asyncio.gather(*crowd, lone)
        assert room.is_passed_by(None)

    asyncio.run(run())


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


def test_who_left_while_it_waited_takes_no_place() -> None:
    async def run() -> tuple[list[bool], int]:
        room, taken, left = WaitingRoom(QUICK), list[str](), set[str]()
        free = asyncio.Event()

        def come(name: str) -> asyncio.Task[bool]:
            def take() -> bool:
                if free.is_set():
                    taken.append(name)
                return free.is_set()

            return asyncio.create_task(room.wait(name, take, lambda: 0, lambda: name in left))

        waits = [come("gone"), come("here")]
        await asyncio.sleep(0.02)
        left.add("gone")
        free.set()
        found = await asyncio.gather(*waits)
        assert taken == ["here"]
        return found, len(room)

    assert asyncio.run(run()) == ([False, True], 0)


def test_a_crowd_that_has_left_is_told_one_by_one() -> None:
    """Each of them is refused and told of: many at once would hold up everybody else."""

    async def run() -> list[int]:
        room = WaitingRoom(WaitingLimits(max_waiting=50, max_waiting_per_peer=50, look_s=0.005))
        are_gone, rounds = list[bool](), list[int]()
        waits = [
            asyncio.create_task(room.wait("crowd", lambda: False, lambda: 0, lambda: bool(are_gone))) for _ in range(50)
        ]
        await asyncio.sleep(0.02)
        are_gone.append(True)
        while not all(wait.done() for wait in waits):
            before = len(room)
            await asyncio.sleep(0)
            rounds.append(before - len(room))
        assert not any([await wait for wait in waits])
        return rounds

    rounds = asyncio.run(run())
    assert sum(rounds) == 50
    assert max(rounds) == 1
