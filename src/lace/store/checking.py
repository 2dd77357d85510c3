"""Judging many framed records at once and encoding the good ones: the work that an import gives to its workers.

Rule: pure; what goes in and what comes out are plain bytes and values that may cross a process border.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.judge import judge_all
from lace.records.model import ValidRecord
from lace.store.encode import SEPARATOR, Coordinates, EncodedBatch, encode_batch
from lace.store.packing import pack, unpack

Refused = tuple[int, str, str]  # ordinal, rule, reason


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict on a chunk of frames: the ordinals of the records to store, each hash once, and their facts."""

    kept: list[int]
    refused: list[Refused]
    texts: str
    segment: bytes
    coordinates: tuple[bytes, ...]

    def batch(self, frames: Sequence[bytes]) -> EncodedBatch:
        """The batch to store, with the bytes that were judged."""
        columns = (memoryview(column).cast("I") for column in self.coordinates)
        return EncodedBatch(
            bodies=tuple([frames[ordinal] for ordinal in self.kept]),
            texts=self.texts.split(SEPARATOR),
            segment=unpack(self.segment),
            coordinates=Coordinates(*columns),
        )


def check_frames(frames: Sequence[bytes], limits: RecordLimits) -> Checked:
    """Validate, verify and encode a chunk of frames."""
    valid: dict[int, ValidRecord] = {}
    refused: list[Refused] = []
    for ordinal, verdict in enumerate(judge_all(frames, limits)):
        if isinstance(verdict, ValidRecord):
            valid[ordinal] = verdict
        else:
            refused.append((ordinal, *verdict))
    first: dict[RecordHash, int] = {}
    for ordinal, record in valid.items():
        first.setdefault(record.hash, ordinal)
    batch = encode_batch(valid[ordinal] for ordinal in first.values())
    rows = batch.coordinates
    columns = (rows.ordinals, rows.groups, rows.apps, rows.names, rows.tais, rows.signers, rows.data_lengths)
    return Checked(
        kept=list(first.values()),
        refused=refused,
        texts=SEPARATOR.join(batch.texts),
        segment=pack(batch.segment),
        coordinates=tuple(column.tobytes() for column in columns),
    )
