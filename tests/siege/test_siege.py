"""The short form of `make siege`: one link of every play at once against a real server, and a good peer among them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from siege.fortress import MIB, Fortress
from siege.scenes import SCHEMES, Scene, repertoire
from siege.soldiers import gate_of, soldier

pytestmark = pytest.mark.long

GROWTH = 512 * MIB  # of all plays together; `make siege` holds each of them to half of it


@pytest.fixture
def fortress(tmp_path: Path) -> Iterator[Fortress]:
    found = Fortress(tmp_path)
    found.start()
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait()


def test_there_are_enough_plays_and_every_transport_has_them() -> None:
    assert len(repertoire()) >= 40
    for scheme in SCHEMES:
        assert sum(scene.runs_over(scheme) for scene in repertoire().values()) >= 40


def all_at_once(scheme: str) -> list[Scene]:
    return [scene for scene in repertoire().values() if scene.runs_over(scheme)]


# Over wss there is all that there is over ws, and TLS: by day the server is besieged with and without both.
@pytest.mark.parametrize(
    "scheme", [pytest.param(scheme, marks=pytest.mark.slow if scheme == "ws" else ()) for scheme in SCHEMES]
)
def test_a_good_peer_is_served_among_all_plays_at_once(scheme: str, fortress: Fortress) -> None:
    """And the server stays within its memory, says whom it limited, and ends when it is told to."""

    async def run() -> list[bool]:
        scenes = all_at_once(scheme)
        tried = [asyncio.Event() for _ in scenes]
        tasks = []
        for number, scene in enumerate(scenes):
            gate = gate_of(scene, scheme, fortress.ports[scheme])
            tasks.append(asyncio.create_task(soldier(scene, gate, number, 7, tried[number])))
        await asyncio.gather(*(event.wait() for event in tried))
        served = []
        for _ in range(3):
            outcome, _ = await asyncio.to_thread(fortress.good_exchange, scheme)
            served.append(outcome.is_complete and outcome.result.fixed_point)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return served

    assert asyncio.run(run()) == [True] * 3
    assert fortress.memory() <= fortress.start_bytes + GROWTH
    metrics = fortress.metrics()
    assert metrics["lace_loop_busy_seconds"] > 0
    code, _ = fortress.stop()
    assert code == 0, fortress.log()[-2000:]
