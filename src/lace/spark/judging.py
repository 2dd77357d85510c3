"""Judging stored records many at a time: the work of one task (010).

Rule: every record gets a verdict, a ValidRecord or the rule it broke. Signatures are proven together, because one by
one they cost more than everything else.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from lace.errors import InvalidInput
from lace.records.keys import verify_batch
from lace.records.model import ValidRecord
from lace.records.validate import RecordRule, signature_task, validate
from lace.spark.files import RawRecord

RECORDS_AT_ONCE = 4096  # what one sum of signatures takes
BYTES_AT_ONCE = 64 << 20  # records may be large: this bounds what a task holds


class Verdict(NamedTuple):
    """The record that some bytes are, or why they are none."""

    record: ValidRecord | None
    rule: str | None = None
    reason: str | None = None


def judge(found: Iterable[tuple[bytes, str | None, str | None]], *, verify_signatures: bool = True) -> list[Verdict]:
    """The verdicts on (stored, rule, reason); what was refused while reading stays refused."""
    verdicts = [_read(stored) if rule is None else Verdict(None, rule, reason) for stored, rule, reason in found]
    if verify_signatures:
        for place, reason in _failed_signatures(verdicts):
            verdicts[place] = Verdict(None, RecordRule.SEAL_SIGNATURE, reason)
    return verdicts


@contextmanager
def no_cycle_search() -> Iterator[None]:
    """For the work on one batch: many objects and no cycles, and looking for some costs a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read(stored: bytes) -> Verdict:
    try:
        return Verdict(validate(stored, verify_signature=False))
    except InvalidInput as error:
        return Verdict(None, error.rule or type(error).__name__, str(error))


def _failed_signatures(verdicts: Sequence[Verdict]) -> Iterator[tuple[int, str]]:
    tasks = {
        place: task
        for place, (record, _, _) in enumerate(verdicts)
        if record is not None and (task := signature_task(record)) is not None
    }
    for place, why in zip(tasks, verify_batch(tasks.values()), strict=True):
        if why is not None:
            yield place, f"the signature does not verify: {why}"


def batches(found: Iterable[RawRecord]) -> Iterator[list[RawRecord]]:
    """Records in groups that are worth a batch and small enough to hold."""
    group: list[RawRecord] = []
    held = 0
    for raw in found:
        group.append(raw)
        held += len(raw.stored)
        if len(group) == RECORDS_AT_ONCE or held >= BYTES_AT_ONCE:
            yield group
            group, held = [], 0
    if group:
        yield group
