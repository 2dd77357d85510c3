"""Received bytes into the store: validate many records at once, then commit them in one transaction (050, 010).

Rule: nothing enters the store unvalidated, and what fails is a value with its reason, never an exception. Signatures
are nine tenths of the cost, so they are verified in slices that a driver may run side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from lace.errors import InvalidRecord
from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.keys import verify_batch
from lace.records.validate import SignatureTask, ValidRecord, signature_task, validate
from lace.store.base import RecordStore

Claimed = tuple[str, bytes]  # the hash that was asked for, and what came under its name
Verify = Callable[[Sequence[SignatureTask]], list[str | None]]


@dataclass(slots=True)
class Judged:
    """What became of a batch: valid records in order, reasons for the others."""

    valid: list[ValidRecord] = field(default_factory=list)
    reasons: dict[str, str] = field(default_factory=dict)
    size: int = 0  # bytes of all that came


def judge(records: Iterable[Claimed], limits: RecordLimits | None = None, verify: Verify = verify_batch) -> Judged:
    """Validate a batch: hashes and structure first, then every signature."""
    judged = Judged()
    unsigned: list[tuple[str, ValidRecord, SignatureTask]] = []
    for claimed, stored in records:
        judged.size += len(stored)
        try:
            valid = validate(stored, limits=limits or RecordLimits(), verify_signature=False)
        except InvalidRecord as error:
            judged.reasons[claimed] = str(error)
            continue
        if valid.hash != claimed:  # a markline that is spelled otherwise than its hash
            judged.reasons[claimed] = f"the record is {valid.hash}"
            continue
        task = signature_task(valid)
        if task is None:
            judged.valid.append(valid)
        else:
            unsigned.append((claimed, valid, task))
    for (claimed, valid, _), reason in zip(unsigned, verify([task for *_, task in unsigned]), strict=True):
        if reason is None:
            judged.valid.append(valid)
        else:
            judged.reasons[claimed] = f"the signature does not verify: {reason}"
    return judged


def commit(store: RecordStore, judged: Judged) -> list[RecordHash]:
    """Store what is valid, durable on return."""
    if not judged.valid:
        return []
    return [result.hash for result in store.put(judged.valid)]
