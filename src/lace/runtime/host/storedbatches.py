"""Stored records for sending, in batches of bounded size (050-XFER-01).

Rule: each requested hash comes once, with its bytes or with None if it is no longer there. A long request is answered
in the order in which the store keeps its records, which is many times faster for much of a store. The order follows
from the request and the records it names alone, for the peer sees it and must learn nothing of other records from it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lace.notation.identifiers import RecordHash
from lace.records.frame import claimed_hashes
from lace.store.base import RecordStore
from lace.thresholds import LoadThresholds

Loaded = list[tuple[str, bytes | None]]


def stored_batches(
    store: RecordStore, hashes: Sequence[str], max_records: int, max_bytes: int, thresholds: LoadThresholds
) -> Iterator[Loaded]:
    """The records of some hashes; a batch ends with the record that reaches a bound."""
    # A generator: a driver takes every step of it in a thread, finding the order too.
    if len(hashes) < thresholds.long_request:
        yield from _one_by_one(store, hashes, max_records, max_bytes)
    elif len(hashes) * thresholds.sweep_share < store.stat().records:
        yield from _one_by_one(store, _in_store_order(store, hashes), max_records, max_bytes)
    else:
        yield from _sweep(store, hashes, max_records, max_bytes)


def _in_store_order(store: RecordStore, hashes: Sequence[str]) -> list[str]:
    """Those that are there as the store keeps them, then the others."""
    wanted = dict.fromkeys(hashes)
    present = [record for _, record in store.records_since() if record in wanted]
    for record in present:
        del wanted[record]
    return [*present, *wanted]


def _one_by_one(store: RecordStore, hashes: Sequence[str], max_records: int, max_bytes: int) -> Iterator[Loaded]:
    position = 0
    while position < len(hashes):
        chunk = hashes[position : position + max_records]
        bodies = store.get_first([RecordHash(record) for record in chunk], max_bytes)
        position += len(bodies)
        yield list(zip(chunk, bodies, strict=False))


def _sweep(store: RecordStore, hashes: Sequence[str], max_records: int, max_bytes: int) -> Iterator[Loaded]:
    wanted = set(hashes)
    bodies: list[bytes] = []
    size = 0
    for _, data in store.bodies_since():
        bodies.append(data)
        size += len(data)
        if size >= max_bytes or len(bodies) >= max_records:
            if batch := _take_wanted(bodies, wanted):
                yield batch
            bodies, size = [], 0
            if not wanted:
                return
    yield _take_wanted(bodies, wanted) + [(record, None) for record in hashes if record in wanted]


def _take_wanted(bodies: Sequence[bytes], wanted: set[str]) -> Loaded:
    """Those of some records that are wanted, each once; they are not wanted any more then."""
    names = claimed_hashes(bodies)
    chosen = wanted.intersection(names)
    wanted -= chosen
    if len(chosen) == len(names):
        return list(zip(names, bodies, strict=True))
    found = dict(zip(names, bodies, strict=True))
    return [(record, data) for record, data in found.items() if record in chosen]
