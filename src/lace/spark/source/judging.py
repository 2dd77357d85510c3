"""What one task judges at a time (010).

Rule: every record that was found gets a verdict, a ValidRecord or the rule it broke, in groups that are worth a batch
of signatures and small enough to hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from lace.intake.judge import Refusal, judge_all
from lace.limits import JudgingLimits
from lace.records.keys import verify_batch
from lace.records.model import ValidRecord
from lace.spark.source.files import RawRecord


class JudgedRecord(NamedTuple):
    """The record that some bytes are, or why they are none."""

    record: ValidRecord | None
    rule: str | None = None
    reason: str | None = None


def judge(
    found: Iterable[tuple[bytes, str | None, str | None]], limits: JudgingLimits, *, verify_signatures: bool = True
) -> list[JudgedRecord]:
    """The verdicts on (stored, rule, reason); what was refused while reading stays refused."""
    given = list(found)
    verify = verify_batch if verify_signatures else None
    judged = iter(judge_all([stored for stored, rule, _ in given if rule is None], limits, verify))
    return [_verdict(next(judged)) if rule is None else JudgedRecord(None, rule, reason) for _, rule, reason in given]


def _verdict(judged: ValidRecord | Refusal) -> JudgedRecord:
    return JudgedRecord(judged) if isinstance(judged, ValidRecord) else JudgedRecord(None, *judged)


def batches(found: Iterable[RawRecord], limits: JudgingLimits) -> Iterator[list[RawRecord]]:
    """Records in groups that are worth a batch and small enough to hold."""
    group: list[RawRecord] = []
    held = 0
    for raw in found:
        group.append(raw)
        held += len(raw.stored)
        if len(group) == limits.records_at_once or held >= limits.bytes_at_once:
            yield group
            group, held = [], 0
    if group:
        yield group
