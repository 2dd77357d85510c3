"""What came under a hash is that record or a reason, in this process and in a worker."""

from __future__ import annotations

import pickle
from io import BytesIO

import pytest

from lace.intake.check import check_job
from lace.intake.received import Claimed, JudgedBatch, judge_received, received_from, split_claims
from lace.limits import RecordLimits
from lace.store import MemoryStore
from store.samples import blob, plex, seal

X, Y, Z = plex("x"), seal("y"), blob(b"z")
FORGED = Y.stored.replace(b"Signature: ", b"Signature: 0", 1)


def by_worker(batch: list[Claimed], limits: RecordLimits) -> JudgedBatch:
    """As a worker does it, the process border included."""
    claimed, frames = split_claims(batch)
    job = pickle.loads(pickle.dumps(check_job(frames, limits, claimed)))
    return received_from(batch, pickle.loads(pickle.dumps(job.run(BytesIO(b"".join(frames))))))


@pytest.mark.clause("050-XFER-08")
@pytest.mark.parametrize("judge", [judge_received, by_worker])
def test_a_batch_is_stored_record_by_record(judge: type[JudgedBatch]) -> None:
    batch = [(X.hash, X.stored), (Y.hash, FORGED), (Z.hash, X.stored), (X.hash, X.stored), ("B.no", Z.stored)]
    received = judge(batch, RecordLimits())
    assert received.stored == [X.hash]
    assert set(received.refused) == {Y.hash, Z.hash, "B.no"}
    assert received.refused[Z.hash] == f"the record is {X.hash}"
    assert received.size == sum(len(data) for _, data in batch)
    with MemoryStore() as store:
        received.commit(store)
        assert [record for _, record in store.records_since()] == [X.hash]


@pytest.mark.parametrize("judge", [judge_received, by_worker])
def test_nothing_and_nothing_good_are_answered_too(judge: type[JudgedBatch]) -> None:
    with MemoryStore() as store:
        for batch in ([], [(X.hash, b"")]):
            received = judge(batch, RecordLimits())
            received.commit(store)
            assert received.stored == []
            assert len(received.refused) == len(batch)
        assert store.high_water() == 0


@pytest.mark.parametrize("judge", [judge_received, by_worker])
def test_the_limits_are_those_that_were_handed_in(judge: type[JudgedBatch]) -> None:
    long = blob(b"0123456789")
    assert judge([(long.hash, long.stored)], RecordLimits(max_data_bytes=9)).refused
    assert judge([(long.hash, long.stored)], RecordLimits(max_data_bytes=10)).stored == [long.hash]
