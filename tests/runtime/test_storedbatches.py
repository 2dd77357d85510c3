"""Records for sending: each once, in bounded batches, whichever way they are read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.interlace.effects import SendRecords, SetHandle
from lace.records.model import Blob
from lace.records.validate import ValidRecord, validate
from lace.records.write import encode_record
from lace.runtime.host.storedbatches import stored_batches
from lace.runtime.link.stepper import Fitting
from lace.store import MemoryStore
from lace.thresholds import LoadThresholds
from tries import tries

RECORDS = [validate(encode_record(Blob(b"%d" % number * (number % 7 + 1)))) for number in range(60)]


def store_with(records: list[ValidRecord]) -> MemoryStore:
    store = MemoryStore()
    store.put(records)
    return store


@pytest.mark.clause("050-XFER-01", "050-XFER-03")
@pytest.mark.parametrize(("long", "share"), [(0, 1_000), (0, 0), (1_000, 0)], ids=["sweep", "in order", "as asked"])
@tries(40)
@given(
    stored=st.sets(st.integers(0, 59)),
    asked=st.lists(st.integers(0, 59), unique=True),
    max_records=st.integers(1, 9),
    max_bytes=st.integers(1, 600),
)
def test_each_hash_comes_once_with_its_bytes_or_as_missing(
    long: int, share: int, stored: set[int], asked: list[int], max_records: int, max_bytes: int
) -> None:
    store = store_with([RECORDS[number] for number in sorted(stored)])
    hashes = [str(RECORDS[number].hash) for number in asked]
    ways = LoadThresholds(long_request=long, sweep_share=share)
    batches = list(stored_batches(store, hashes, max_records, max_bytes, ways))
    pairs = [pair for batch in batches for pair in batch]
    assert len(pairs) == len(asked)
    assert dict(pairs) == {
        str(RECORDS[number].hash): RECORDS[number].stored if number in stored else None for number in asked
    }
    order = sorted(stored) if not long else asked
    assert [record for record, data in pairs if data is not None] == [
        RECORDS[number].hash for number in order if number in stored and number in asked
    ]
    for batch in batches:
        present = [data for _, data in batch if data is not None]
        assert len(present) <= max_records
        assert sum(map(len, present[:-1])) < max_bytes, "only the last record of a batch may pass the bound"


@given(
    batches=st.lists(st.lists(st.one_of(st.none(), st.binary(min_size=1, max_size=9)), max_size=5), max_size=5),
    budget=st.integers(0, 40),
    limit=st.integers(0, 40),
)
def test_what_is_served_does_not_depend_on_how_it_is_batched(
    batches: list[list[bytes | None]], budget: int, limit: int
) -> None:
    request = SendRecords(own=SetHandle(0, 0), hashes=[], budget_bytes=budget, limit_bytes=limit)
    batched, single = Fitting(request), Fitting(request)
    for number, bodies in enumerate(batches):
        batch = [(f"{number}.{place}", body) for place, body in enumerate(bodies)]
        sent = [taken for item in batch for taken in single.take_all([item])]
        assert batched.take_all(batch) == sent
        assert (batched.sent, batched.missing, batched.is_full) == (single.sent, single.missing, single.is_full)
    sizes = [size for _, size in batched.sent]
    assert sum(sizes) <= limit
    assert sum(sizes) <= budget or len(sizes) == 1
