"""Judging many framed records at once and encoding the good ones: the work that an import gives to its workers.

Rule: pure; what goes in and what comes out are plain bytes and values that may cross a process border. Hashes come
first, signatures last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lace.errors import InvalidInput
from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.keys import verify_batch
from lace.records.validate import RecordRule, ValidRecord, signature_task, validate
from lace.store.encode import SEPARATOR, Coordinates, EncodedBatch, encode_batch
from lace.store.packing import pack, unpack

Refusal = tuple[int, str, str]  # ordinal, rule, reason


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on a chunk of frames: the ordinals of the records to store, each hash once, and their facts."""

    kept: list[int]
    refused: list[Refusal]
    texts: str
    segment: bytes
    coordinates: tuple[bytes, ...]

    def batch(self, frames: Sequence[bytes]) -> EncodedBatch:
        """The batch to store, with the bytes that were judged."""
        columns = (memoryview(column).cast("I") for column in self.coordinates)
        return EncodedBatch(
            bodies=tuple(frames[ordinal] for ordinal in self.kept),
            texts=self.texts.split(SEPARATOR),
            segment=unpack(self.segment),
            coordinates=Coordinates(*columns),
        )


def check_frames(frames: Sequence[bytes], limits: RecordLimits) -> Checked:
    """Validate, verify and encode a chunk of frames."""
    valid, refused = _read_all(frames, limits)
    failed = _failed_signatures(valid)
    refused += [
        (ordinal, str(RecordRule.SEAL_SIGNATURE), f"the signature does not verify: {why}") for ordinal, why in failed
    ]
    for ordinal, _ in failed:
        del valid[ordinal]
    first: dict[RecordHash, int] = {}
    for ordinal, record in valid.items():
        first.setdefault(record.hash, ordinal)
    batch = encode_batch(valid[ordinal] for ordinal in first.values())
    rows = batch.coordinates
    columns = (rows.ordinals, rows.groups, rows.apps, rows.names, rows.tais, rows.signers, rows.data_lengths)
    return Checked(
        kept=list(first.values()),
        refused=sorted(refused),
        texts=SEPARATOR.join(batch.texts),
        segment=pack(batch.segment),
        coordinates=tuple(column.tobytes() for column in columns),
    )


def _read_all(frames: Sequence[bytes], limits: RecordLimits) -> tuple[dict[int, ValidRecord], list[Refusal]]:
    valid: dict[int, ValidRecord] = {}
    refused: list[Refusal] = []
    for ordinal, frame in enumerate(frames):
        try:
            valid[ordinal] = validate(frame, limits=limits, verify_signature=False)
        except InvalidInput as error:
            refused.append((ordinal, str(error.rule) or type(error).__name__, str(error)))
    return valid, refused


def _failed_signatures(valid: dict[int, ValidRecord]) -> list[tuple[int, str]]:
    """The Seals that do not verify, and why."""
    tasks = {ordinal: task for ordinal, record in valid.items() if (task := signature_task(record)) is not None}
    verdicts = zip(tasks, verify_batch(tasks.values()), strict=True)
    return [(ordinal, why) for ordinal, why in verdicts if why is not None]
