"""Workers that are started before the node that will use them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import lace
from lace.intake.check import check_job
from lace.limits import RecordLimits
from lace.runtime.ahead import workers_ahead
from lace.runtime.clock import SystemClock
from lace.runtime.node import Node
from lace.store import MemoryStore
from lace.transports.dial import TransportOptions
from lace.workers.pool import WorkerDied, WorkerPool


def _is_dead(pool: WorkerPool) -> bool:
    return all(worker._process.poll() is not None for worker in pool._workers)


def test_who_holds_nothing_gets_workers_that_end_with_the_block() -> None:
    with workers_ahead(MemoryStore()) as pool:
        assert pool is not None
        assert pool.ask(check_job([], RecordLimits())).result().kept == []
    assert _is_dead(pool)


def test_who_holds_a_record_starts_nobody(tmp_path: Path) -> None:
    with lace.open(tmp_path / "a.lace", create=True) as held:
        held.put(b"x", group="g", app="a", name="n")
        with workers_ahead(held.store) as pool:
            assert pool is None


def test_a_node_takes_workers_over_and_ends_them() -> None:
    async def run(pool: WorkerPool) -> bool:
        node = Node(MemoryStore(), TransportOptions(clock=SystemClock()), SystemClock(), workers=pool)
        has_workers = node.has_workers
        assert await node.shutdown()
        return has_workers

    with workers_ahead(MemoryStore()) as pool:
        assert pool is not None
        assert asyncio.run(run(pool))
        assert _is_dead(pool)


def test_workers_that_nobody_took_over_end_when_something_fails() -> None:
    with pytest.raises(ValueError, match="no such key"), workers_ahead(MemoryStore()) as pool:
        raise ValueError("no such key")
    assert pool is not None
    assert _is_dead(pool)
    with pytest.raises((WorkerDied, RuntimeError)):
        pool.ask(check_job([], RecordLimits())).result()
