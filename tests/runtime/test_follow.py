"""An open exchange in one process wakes when a store says so, and not by looking all the time (050, open exchange)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from interlace.pair import ALL, EXPOSE_ALL, hash_of, plex
from lace.interlace.events import FixedPoint, Received
from lace.records.validate import validate
from lace.runtime.local.follow import LocalFollow
from lace.runtime.local.party import Party, local_terms
from lace.store import open_store
from lace.store.base import RecordStore
from lace.store.memory import MemoryStore

PATIENCE_S = 30.0
NEVER_S = 3600.0


@pytest.fixture(params=["memory", "file"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], RecordStore]:
    def make(name: str) -> RecordStore:
        return MemoryStore() if request.param == "memory" else open_store(tmp_path / f"{name}.lace", create=True)

    return make


@pytest.mark.clause("050-OPEN-03")
@pytest.mark.parametrize("writer", [0, 1])
def test_a_record_put_by_this_process_arrives_without_looking(
    new_store: Callable[[str], RecordStore], writer: int
) -> None:
    stores = new_store("a"), new_store("b")
    late = plex("late")

    async def run() -> None:
        parties = [Party(store=store, terms=local_terms(ALL, EXPOSE_ALL, is_open=True)) for store in stores]
        async with LocalFollow(*parties, poll_s=NEVER_S) as events:
            rested = 0
            async for side, event in events:
                if isinstance(event, FixedPoint):
                    rested += 1
                    if rested == 2:  # both: nothing moves any more unless somebody says so
                        asyncio.get_running_loop().call_later(0.05, lambda: stores[writer].put([validate(late)]))
                if isinstance(event, Received) and side == 1 - writer:
                    assert list(event.hashes) == [hash_of(late)]
                    return

    asyncio.run(asyncio.wait_for(run(), PATIENCE_S))
    assert all(store.get(hash_of(late)) == late for store in stores)
    for store in stores:
        store.close()


def test_a_store_tells_of_what_was_put_and_removed_until_nobody_listens(
    new_store: Callable[[str], RecordStore],
) -> None:
    store = new_store("a")
    heard: list[object] = []
    unlisten = store.news.listen(lambda: heard.append(store.cursor()))
    store.put([validate(plex("x"))])
    store.delete(hash_of(plex("x")))
    assert len(heard) == 2
    assert heard[0] != heard[1] == store.cursor(), "told after the commit, not before"
    unlisten()
    store.put([validate(plex("y"))])
    assert len(heard) == 2
    store.close()
