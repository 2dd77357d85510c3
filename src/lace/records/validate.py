"""The one door from bytes to a ValidRecord (010).

Rule: nobody else builds a ValidRecord. Hashes come first, the signature last: it is nine tenths of the cost, so callers
may leave it out here and run `signature_task` of many records in threads before they trust any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from lace.errors import InvalidSignature
from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.identifiers import PAYLOAD, RecordHash
from lace.records.grammar import SIGNATURE_BYTES, RecordRule, refuse
from lace.records.headpattern import LETTER, parse_common
from lace.records.keys import verify
from lace.records.model import DEFAULT_LIMITS, NO_LIMITS, Parts, ValidRecord
from lace.records.parse import parse_record
from lace.records.partcolumns import PartColumns, parse_alike

__all__ = [
    "RecordRule", "SignatureTask", "ValidRecord", "reread", "signature_task", "signature_tasks", "validate",
    "validate_each", "verify_seal",
]  # fmt: skip


class SignatureTask(NamedTuple):
    """What a Seal asks to be verified."""

    verifier_x: bytes
    msg32: bytes
    sig64: bytes


def validate(
    stored: bytes | memoryview, *, limits: RecordLimits = DEFAULT_LIMITS, verify_signature: bool = True
) -> ValidRecord:
    """The record that `stored` is, or InvalidRecord with its RecordRule.

    With `verify_signature=False` a Seal comes back unproven: the caller owes `verify_seal`, or a batch verification of
    its `signature_task`, before it stores or believes it.
    """
    whole = stored if isinstance(stored, bytes) else bytes(stored)
    parts = parse_common(whole, limits) or parse_record(whole, limits)
    valid = ValidRecord(RecordHash(parts.hash), whole, parts)
    if verify_signature:
        verify_seal(valid)
    return valid


def validate_each(frames: Sequence[bytes], limits: RecordLimits) -> list[ValidRecord]:
    """What `validate` makes of each, signatures not verified; those that are alike are read together."""
    found: list[ValidRecord | None] = [None] * len(frames)
    by_type: dict[bytes, list[int]] = {}
    for place, frame in enumerate(frames):
        by_type.setdefault(frame[LETTER], []).append(place)
    for places in by_type.values():
        columns = parse_alike([frames[place] for place in places], limits)
        for place, parts in zip(places, zip(*columns, strict=True) if columns is not None else (), strict=False):
            found[place] = ValidRecord(RecordHash(parts[0]), frames[place], Parts._make(parts))
    return [
        validate(frame, limits=limits, verify_signature=False) if valid is None else valid
        for frame, valid in zip(frames, found, strict=True)
    ]


def reread(stored: bytes) -> ValidRecord:
    """A record that was judged before, whatever limits held then: its digests are checked again, its signature not."""
    return validate(stored, limits=NO_LIMITS, verify_signature=False)


def signature_task(valid: ValidRecord) -> SignatureTask | None:
    """What has to be verified, or None for a Blob or Plex (009-SEAL-01: the message is the Plex digest)."""
    parts = valid.parts
    if not parts.signature:
        return None
    return SignatureTask(_verifier_x(parts.signed_by), parts.plex_digest, b64a.decode_canonical(parts.signature))


def signature_tasks(columns: PartColumns) -> list[SignatureTask]:
    """What has to be verified of many records, in their order; those without a signature ask for nothing."""
    rows = [row for row in zip(columns.signed_by, columns.plex_digest, columns.signature, strict=True) if row[2]]
    verifiers, messages, signatures = zip(*rows, strict=True) if rows else ((), (), ())
    decoded = b64a.decode_canonical_each(signatures, SIGNATURE_BYTES)
    return list(map(SignatureTask, map(_verifier_x, verifiers), messages, decoded))


@lru_cache(maxsize=1024)  # few sign much
def _verifier_x(signed_by: str) -> bytes:
    return b64a.decode_canonical(signed_by[PAYLOAD])


def verify_seal(valid: ValidRecord) -> None:
    """Raise InvalidRecord if the record is a Seal whose signature does not verify."""
    task = signature_task(valid)
    if task is None:
        return
    try:
        verify(*task)
    except InvalidSignature as error:
        refuse(RecordRule.SEAL_SIGNATURE, f"the signature does not verify: {error}", "Signature")
