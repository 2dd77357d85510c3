"""Verify everything in a store again: digests, form, signatures, and the store's own structures.

Rule: nothing the store says is trusted; whatever is wrong is a finding, and the check goes on.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from lace.errors import InvalidRecord
from lace.limits import MIB, RecordLimits
from lace.notation.stopping import Interrupt, go_on, never
from lace.records.frame import claimed_hash
from lace.records.validate import validate
from lace.store.base import RecordStore, StoreRecordId
from lace.values import dataclass

MAX_GROUP_RECORDS = 256
MAX_GROUP_BYTES = 4 * MIB
MAX_WORKERS = 8
MAX_RUNNING_BYTES = 64 * MIB
_DOING = "records were verified"

Group = list[tuple[StoreRecordId, bytes]]


@dataclass(frozen=True, slots=True)
class Damage:
    """One thing that is wrong; `id` is 0 if it is in the store's own structure."""

    id: StoreRecordId
    hash: str
    finding: str


def verify_store(
    store: RecordStore,
    *,
    limits: RecordLimits,
    workers: int,
    progress: Callable[[int], None],
    stop: Interrupt = never,
) -> Iterator[Damage]:
    """Validate every record again in `workers` threads, with a bounded number of records in memory."""
    for problem in store.check_integrity(stop):
        yield Damage(StoreRecordId(0), "", problem)
    with ThreadPoolExecutor(max_workers=min(workers, MAX_WORKERS)) as pool:
        running: deque[_Running] = deque()
        running_bytes = 0
        for group in _groups(store.bodies_since()):
            size = sum(len(stored) for _, stored in group)
            running.append(_Running(len(group), size, pool.submit(_verify_group, group, limits)))
            running_bytes += size
            go_on(stop, _DOING)
            while running and (running_bytes > MAX_RUNNING_BYTES or running[0].found.done()):
                oldest = running.popleft()
                running_bytes -= oldest.size
                yield from _finished(oldest, progress)
        for oldest in running:
            go_on(stop, _DOING)
            yield from _finished(oldest, progress)


class _Running(NamedTuple):
    """A group of records that a thread is checking."""

    records: int
    size: int
    found: Future[list[Damage]]


def _finished(group: _Running, progress: Callable[[int], None]) -> list[Damage]:
    found = group.found.result()
    progress(group.records)
    return found


def _groups(bodies: Iterator[tuple[StoreRecordId, bytes]]) -> Iterator[Group]:
    group: Group = []
    size = 0
    for record_id, stored in bodies:
        group.append((record_id, stored))
        size += len(stored)
        if size >= MAX_GROUP_BYTES or len(group) >= MAX_GROUP_RECORDS:
            yield group
            group, size = [], 0
    if group:
        yield group


def _verify_group(group: Group, limits: RecordLimits) -> list[Damage]:
    found = []
    for record_id, stored in group:
        try:
            validate(stored, limits=limits)
        except InvalidRecord as error:
            found.append(Damage(record_id, claimed_hash(stored), str(error)))
    return found
