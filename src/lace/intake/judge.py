"""Judging many stored records at once (010).

Rule: each gets the verdict of `validate`. Hashes and structure come first, then all signatures together, because one by
one they cost more than everything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from lace.errors import InvalidInput
from lace.limits import RecordLimits
from lace.records.keys import verify_batch
from lace.records.validate import RecordRule, SignatureTask, ValidRecord, signature_task, validate

Verify = Callable[[Sequence[SignatureTask]], list[str | None]]


class Refusal(NamedTuple):
    """Why some bytes are not a record."""

    rule: str
    reason: str


Verdict = ValidRecord | Refusal


def judge_all(frames: Iterable[bytes], limits: RecordLimits, verify: Verify | None = verify_batch) -> list[Verdict]:
    """A verdict for each; without `verify` the caller owes the signatures."""
    verdicts = [_read(frame, limits) for frame in frames]
    if verify is None:
        return verdicts
    tasks = {
        place: task
        for place, verdict in enumerate(verdicts)
        if isinstance(verdict, ValidRecord) and (task := signature_task(verdict)) is not None
    }
    for place, why in zip(tasks, verify(list(tasks.values())), strict=True):
        if why is not None:
            verdicts[place] = Refusal(str(RecordRule.SEAL_SIGNATURE), f"the signature does not verify: {why}")
    return verdicts


def _read(frame: bytes, limits: RecordLimits) -> Verdict:
    try:
        return validate(frame, limits=limits, verify_signature=False)
    except InvalidInput as error:
        return Refusal(str(error.rule) or type(error).__name__, str(error))
