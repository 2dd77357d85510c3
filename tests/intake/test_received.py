"""What came under a hash is that record or a reason, in this process and in a worker."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.intake.check import check, check_each, check_job
from lace.intake.received import Claimed, JudgedBatch, judge_received, received_from, split_claims
from lace.limits import RecordLimits
from lace.notation.digest import digest
from lace.notation.identifiers import RecordHash
from lace.records.frame import claimed_hash
from lace.records.grammar import MARK
from lace.records.keys import verify_batch
from lace.records.validate import SignatureTask
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


SEALS = [seal(f"s{number}") for number in range(6)]
WRONG_SIGNER = SEALS[1].stored.replace(str(SEALS[1].parts.signature).encode(), SEALS[0].parts.signature.encode())


def renamed(stored: bytes) -> bytes:
    """A Seal under its right digest whose signature is that of another record."""
    payload = stored.split(b"\n", 1)[1]
    return MARK + RecordHash.of("S", digest(payload)).encode() + b"\n" + payload


FRAMES = st.sampled_from(
    [*(one.stored for one in SEALS), renamed(WRONG_SIGNER), WRONG_SIGNER, SEALS[2].stored[:-1], X.stored, Z.stored]
)


@pytest.mark.clause("050-XFER-08")
@given(st.one_of(st.lists(FRAMES, max_size=6), st.permutations([one.stored for one in SEALS])), st.data())
def test_a_chunk_that_is_all_alike_gets_the_verdicts_of_each_alone(frames: list[bytes], data: st.DataObject) -> None:
    """By columns or one by one: bad signatures, repeats, other types and wrong claims among them."""
    claimed = [claimed_hash(frame) for frame in frames]
    if frames and data.draw(st.booleans()):
        claimed[data.draw(st.integers(0, len(frames) - 1))] = "S.other"
    for claims in (claimed, None):
        found = check(frames, RecordLimits(), claimed=claims)
        one_by_one = check_each(frames, RecordLimits(), verify_batch, claims)
        assert found == one_by_one
        assert found.batch(frames) == one_by_one.batch(frames)


def test_signatures_of_a_chunk_are_verified_once() -> None:
    asked: list[int] = []

    def counting(tasks: Sequence[SignatureTask]) -> list[str | None]:
        asked.append(len(tasks))
        return verify_batch(tasks)

    good = [one.stored for one in SEALS]
    for frames in (good, [*good, good[0]], [*good, renamed(WRONG_SIGNER)]):
        check(frames, RecordLimits(), counting)
    assert asked == [6, 7, 7]
