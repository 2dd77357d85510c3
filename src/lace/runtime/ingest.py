"""Received bytes into the store: validate many records at once, then commit them in one transaction (050, 010).

Rule: nothing enters the store unvalidated, and what fails is a value with its reason, never an exception. Signatures
are nine tenths of the cost, so they are verified in slices that a driver may run side by side.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.judge import Verify, judge_all
from lace.records.keys import verify_batch
from lace.records.model import ValidRecord
from lace.store.base import RecordStore

Claimed = tuple[str, bytes]  # the hash that was asked for, and what came under its name


@dataclass(slots=True)
class Judged:
    """What became of a batch: valid records in order, reasons for the others."""

    valid: list[ValidRecord] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    size: int = 0  # bytes of all that came


def judge(records: Iterable[Claimed], limits: RecordLimits | None = None, verify: Verify = verify_batch) -> Judged:
    """Validate a batch: hashes and structure first, then every signature."""
    judged = Judged()
    given = list(records)
    verdicts = judge_all([stored for _, stored in given], limits or RecordLimits(), verify)
    for (claimed, stored), verdict in zip(given, verdicts, strict=True):
        judged.size += len(stored)
        if not isinstance(verdict, ValidRecord):
            judged.reasons[claimed] = verdict.reason
        elif verdict.hash != claimed:  # a markline that is spelled otherwise than its hash
            judged.reasons[claimed] = f"the record is {verdict.hash}"
        else:
            judged.valid.append(verdict)
    return judged


def commit(store: RecordStore, judged: Judged) -> list[RecordHash]:
    """Store what is valid, durable on return."""
    if not judged.valid:
        return []
    return [result.hash for result in store.put(judged.valid)]
