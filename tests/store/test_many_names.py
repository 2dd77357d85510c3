"""Records that bring hundreds of header names of their own: memory is bounded by what arrives, and no fact is lost."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lace.facts.derive import derive_facts
from lace.facts.predicates import FIELD, RECORD_PREDICATES
from lace.records.validate import ValidRecord
from lace.store import open_store
from lace.store.columns.segments.encode import MAX_OPEN_NAMES, encode_batch
from lace.store.columns.segments.segment import MAX_FIELD_GROUPS, Kind
from store.samples import plex

NAMES = 512  # the most that a record may have
BYTES_FOR_A_BYTE = 24  # Python holds a short text and its place in a dictionary in about 150 bytes; before: 190


def hostile(count: int, names: int = NAMES) -> list[ValidRecord]:
    """Records whose header names nobody else uses, beside one that all of them have."""
    return [
        plex(
            f"n/{record}", headers=(*((f"X{record:x}-{at:x}", "v") for at in range(names - 1)), ("Kind", f"k{record}"))
        )
        for record in range(count)
    ]


@contextmanager
def held_at_most(factor: int, arrived: int) -> Iterator[None]:
    gc.collect()
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < factor * arrived, f"{peak:,} bytes held for {arrived:,} that came"


def test_encoding_holds_a_bounded_multiple_of_what_arrives() -> None:
    records = hostile(60)
    with held_at_most(BYTES_FOR_A_BYTE, sum(len(record.stored) for record in records)):
        batch = encode_batch(records)
    assert len(batch.segment.groups) <= MAX_FIELD_GROUPS + len(Kind)
    kinds = Counter(group.kind for group in batch.segment.groups)
    assert kinds[Kind.RARE] == 1


@pytest.mark.parametrize(
    "asked", [lambda view: view.columns(FIELD)[3], lambda view: list(view.query(FIELD, None, "Kind", None, None))]
)
def test_reading_makes_no_object_for_each_name(tmp_path: Path, asked: Callable[[object], object]) -> None:
    records = hostile(60)
    with open_store(tmp_path / "a.lace", create=True) as store:
        for at in range(0, 60, 7):
            store.put(records[at : at + 7])
    arrived = sum(len(record.stored) for record in records)
    with open_store(tmp_path / "a.lace", read_only=True) as store, held_at_most(3, arrived):
        asked(store.snapshot())


@pytest.mark.parametrize("names", [1, MAX_FIELD_GROUPS + 1, MAX_OPEN_NAMES + 1, NAMES])
@pytest.mark.parametrize("batch", [1, 5, 40])
def test_every_fact_is_kept_on_each_side_of_the_bounds(tmp_path: Path, names: int, batch: int) -> None:
    records = [*hostile(12, names), plex("r", headers=(("R", "1"), ("R", "2"), ("S.Link", "x"), ("Kind", "k0")))]
    with open_store(tmp_path / "a.lace", create=True) as store:
        for at in range(0, len(records), batch):
            store.put(records[at : at + batch])
        store.delete(records[3].hash)
        kept = [record for record in records if record is not records[3]]
        snapshot = store.snapshot()
        found = Counter((predicate, row) for predicate in RECORD_PREDICATES for row in snapshot.iterate(predicate))
        assert found == Counter((fact.predicate, fact.values) for record in kept for fact in derive_facts(record))
        assert store.check_integrity() == []
        slices = snapshot.slices(FIELD, 1)
        assert slices is not None
        assert sum(len(slices[name][0]) for name in slices) == snapshot.count(FIELD)
        rare = set(snapshot.query(FIELD, None, "X5-0", None, None))
        assert rare == ({(records[5].hash, "X5-0", "0", "v")} if names > 1 else set())
        assert len(list(snapshot.query(FIELD, None, "Kind", None, None))) == len(kept)
