"""Records that a peer sent, each under the hash it was asked for (050, validation).

Rule: what came under a hash is that record or a reason, never an exception; nothing is stored before it was judged,
and nothing is acknowledged before it is durable.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.errors import InvalidInput
from lace.intake.check import Checked, check
from lace.intake.judge import Verify
from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.keys import verify_batch
from lace.records.validate import validate
from lace.store.base import RecordStore
from lace.store.columns.segments.encode import EncodedBatch
from lace.values import dataclass

_WIDEST = RecordLimits()
Claimed = tuple[str, bytes]  # the hash that was asked for, and what came under its name


@dataclass(frozen=True, slots=True)
class JudgedBatch:
    """A judged batch: the records that are stored by `commit`, and the reasons against the others, by their hash."""

    size: int  # bytes of all that came
    stored: list[RecordHash]
    refused: dict[str, str]
    batch: EncodedBatch
    over_limits: frozenset[str] = frozenset()  # of those refused: records that only limits of our own speak against

    def commit(self, store: RecordStore) -> None:
        """Store what passed, durable on return."""
        if self.stored:
            store.put_encoded(self.batch)


def judge_received(batch: Sequence[Claimed], limits: RecordLimits, verify: Verify = verify_batch) -> JudgedBatch:
    """Judge in this thread; `verify` may spread the signatures over others."""
    claimed, frames = split_claims(batch)
    return received_from(batch, check(frames, limits, verify, claimed), limits)


def received_from(batch: Sequence[Claimed], checked: Checked, limits: RecordLimits | None = None) -> JudgedBatch:
    """What a worker found in a batch that went to it by `split_claims`."""
    encoded = checked.batch([data for _, data in batch])
    refused = {batch[ordinal][0]: reason for ordinal, _, reason in checked.refused}
    narrow = limits is not None and limits != _WIDEST
    over = [batch[ordinal] for ordinal, _, _ in checked.refused if narrow]
    return JudgedBatch(
        sum([len(data) for _, data in batch]),
        list(map(RecordHash, encoded.hashes)),
        refused,
        encoded,
        frozenset(claim for claim, data in over if _is_record(claim, data)),
    )


def _is_record(claimed: str, data: bytes) -> bool:
    """Whether bytes are the record that they should be, under the limits of 010."""
    try:
        return validate(data).hash == claimed
    except InvalidInput:
        return False


def split_claims(batch: Sequence[Claimed]) -> tuple[list[str], list[bytes]]:
    """The hashes and the frames of a batch."""
    return [claim for claim, _ in batch], [data for _, data in batch]
