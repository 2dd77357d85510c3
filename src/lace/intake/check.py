"""Judging many framed records and encoding the good ones.

Rule: pure; what goes in and what comes out are plain bytes and values that may cross a process border. A worker
imports this before its first job, so nothing of the near side of a pool belongs here: `bundles` has that.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import eq
from typing import IO

from lace.intake.judge import Verify, judge_all
from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.keys import verify_batch
from lace.records.model import ValidRecord
from lace.records.partcolumns import PartColumns, parse_alike
from lace.records.validate import signature_tasks, validate
from lace.store.columns.segments.encode import EncodedBatch, PackedColumns, encode_batch, encode_columns
from lace.values import dataclass
from lace.workers.process import PIPE_BYTES

Refused = tuple[int, str, str]  # ordinal, rule, reason
OTHER_RECORD = "other-record"  # the rule against a record that came under the hash of another


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on a chunk of frames: the ordinals of the records to store, each hash once, and their facts."""

    kept: list[int]
    refused: list[Refused]
    columns: PackedColumns

    def batch(self, frames: Sequence[bytes]) -> EncodedBatch:
        """The batch to store, with the bytes that were judged."""
        return self.columns.batch([frames[ordinal] for ordinal in self.kept])


def check(
    frames: Sequence[bytes],
    limits: RecordLimits,
    verify: Verify = verify_batch,
    claimed: Sequence[str] | None = None,
) -> Checked:
    """Validate, verify and encode a chunk of frames; each must be the record `claimed` for it, where that is given."""
    columns = parse_alike(frames, limits)
    if columns is not None:
        reasons = verify(signature_tasks(columns))
        if _leaves_no_question(columns, reasons, claimed):
            return Checked(list(range(len(frames))), [], encode_columns(columns, frames).pack())
        return check_each(frames, limits, lambda _: reasons, claimed)
    return check_each(frames, limits, verify, claimed)


def encoded(frames: Sequence[bytes], limits: RecordLimits) -> EncodedBatch:
    """Distinct frames that were made here as a batch to store; InvalidRecord if one is no record."""
    columns = parse_alike(frames, limits)
    if columns is not None:
        reasons = verify_batch(signature_tasks(columns))
        if _leaves_no_question(columns, reasons, None):
            return encode_columns(columns, frames)
    return encode_batch([validate(frame, limits=limits) for frame in frames])


def _leaves_no_question(columns: PartColumns, reasons: list[str | None], claimed: Sequence[str] | None) -> bool:
    """Whether all are good, asked for, and none is here twice."""
    hashes = columns.hash
    return (
        all(reason is None for reason in reasons)
        and len(set(hashes)) == len(hashes)
        and (claimed is None or all(map(eq, hashes, claimed)))
    )


def check_each(frames: Sequence[bytes], limits: RecordLimits, verify: Verify, claimed: Sequence[str] | None) -> Checked:
    """`check` record by record."""
    valid: dict[RecordHash, ValidRecord] = {}
    kept: list[int] = []
    refused: list[Refused] = []
    for ordinal, verdict in enumerate(judge_all(frames, limits, verify)):
        if not isinstance(verdict, ValidRecord):
            refused.append((ordinal, *verdict))
        elif claimed is not None and verdict.hash != claimed[ordinal]:
            refused.append((ordinal, OTHER_RECORD, f"the record is {verdict.hash}"))
        elif verdict.hash not in valid:
            valid[verdict.hash] = verdict
            kept.append(ordinal)
    return Checked(kept, refused, encode_batch(valid.values()).pack())


@dataclass(frozen=True, slots=True)
class CheckJob:
    """`check` for another process; the frames are sent along."""

    limits: RecordLimits
    lengths: list[int]
    claimed: Sequence[str] | None

    def run(self, more: IO[bytes]) -> Checked:
        """In the worker."""
        return check(_frames(more, self.lengths), self.limits, claimed=self.claimed)


def _frames(pipe: IO[bytes], lengths: list[int]) -> list[bytes]:
    """The frames of a chunk, taken from the pipe at once; long ones each by itself, so that none is here twice."""
    if max(lengths, default=0) > PIPE_BYTES:
        return [pipe.read(length) for length in lengths]
    chunk = memoryview(pipe.read(sum(lengths)))
    ends = accumulate(lengths)
    return [bytes(chunk[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def check_job(frames: Sequence[bytes], limits: RecordLimits, claimed: Sequence[str] | None = None) -> CheckJob:
    """The job of checking frames, which go along with it."""
    return CheckJob(limits, [len(frame) for frame in frames], claimed)
