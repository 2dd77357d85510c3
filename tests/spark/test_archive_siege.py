"""A real `lace serve` of an archive, and links with bombs: a good peer with something new is served meanwhile, and
afterwards, and the serving process stays within its memory."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from siege.fortress import MIB, ArchiveFortress
from siege.scenes import repertoire
from siege.soldiers import gate_of, soldier

pytestmark = [pytest.mark.spark, pytest.mark.long]

MEMORY = 1024 * MIB  # of the serving process and those of peers' rules; Spark's heap is beside it
BOMBS = (
    "rules: joins of 10^8 rows filtered to nothing",
    "rules: cross products that are kept",
    "rules: a hundred predicates that grow",
    "rules: that cost, of a link that does not wait",
)


@pytest.fixture
def fortress(tmp_path: Path) -> Iterator[ArchiveFortress]:
    found = ArchiveFortress(tmp_path)
    found.start()
    try:
        yield found
    finally:
        if found.process.poll() is None:
            found.process.kill()
            found.process.wait()


def test_a_good_peer_with_something_new_is_served_among_bombs_and_after_them(fortress: ArchiveFortress) -> None:
    said = fortress.log()
    assert said.index("spark") < said.index("listening"), "Spark is there before anybody is asked in"
    most = 0

    async def run() -> list[bool]:
        nonlocal most
        scenes = [repertoire()[name] for name in BOMBS]
        tried = [asyncio.Event() for _ in scenes]
        tasks = []
        for number, scene in enumerate(scenes):
            gate = gate_of(scene, "tcp", fortress.ports["tcp"])
            tasks.append(asyncio.create_task(soldier(scene, gate, number, 7, tried[number])))
        await asyncio.gather(*(event.wait() for event in tried))
        served = []
        for number in range(4):
            if number == 3:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            outcome, _ = await asyncio.to_thread(fortress.good_exchange, "tcp")
            served.append(outcome.is_complete and len(outcome.result.sent_hashes) == 1)
            most = max(most, fortress.memory())
        return served

    assert asyncio.run(run()) == [True] * 4
    assert most <= MEMORY
    code, _ = fortress.stop()
    assert code == 0, fortress.log()[-2000:]
