"""The content of many small records, read a batch at a time.

Rule: what comes is what `read_content` gives, checked in the same way; what is large, nested, incomplete or wrong is
left to it, so that every error is told where it always was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from lace.errors import InvalidInput, LaceError
from lace.limits import MIB, RecordLimits
from lace.notation.digest import hasher
from lace.notation.identifiers import RecordHash
from lace.records.manifest import Piece, full_hash, is_manifest, manifest_pieces
from lace.records.model import ValidRecord
from lace.records.validate import validate, validate_each
from lace.store.base import RecordStore

RECORDS_AT_ONCE = 512
BYTES_AT_ONCE = 16 * MIB
LARGEST = MIB


class ReadContent(NamedTuple):
    """A record, and its content if that was read with others."""

    record: ValidRecord
    pieces: list[memoryview] | None


def loaded(store: RecordStore, hashes: Sequence[RecordHash], limits: RecordLimits) -> dict[str, ValidRecord]:
    """Those of some records that are here and whole; their digests are checked again, their signatures not."""
    found: dict[str, ValidRecord] = {}
    at = 0
    while at < len(hashes):
        some = hashes[at : at + RECORDS_AT_ONCE]
        try:
            bodies = store.get_first(some, BYTES_AT_ONCE)
            records = validate_each([body for body in bodies if body is not None], limits)
        except LaceError:  # one of them is damaged
            bodies, records = [None for _ in some], _loaded_each(store, some, limits)
        found.update((record.hash, record) for record in records)
        at += len(bodies)
    return found


def _loaded_each(store: RecordStore, hashes: Sequence[RecordHash], limits: RecordLimits) -> list[ValidRecord]:
    found = []
    for name in hashes:
        with suppress(LaceError):
            if (body := store.get(name)) is not None:
                found.append(validate(body, limits=limits, verify_signature=False))
    return found


def contents(store: RecordStore, hashes: Sequence[RecordHash], limits: RecordLimits) -> Iterator[ReadContent | None]:
    """What each record stands for, in their order; None for one that is not here."""
    for start in range(0, len(hashes), RECORDS_AT_ONCE):
        some = hashes[start : start + RECORDS_AT_ONCE]
        records = loaded(store, some, limits)
        batch: list[_Planned | None] = []
        size = 0
        for name in some:
            planned = _plan(records.get(name))
            own = 0 if planned is None or not planned.pieces else planned.pieces[-1].end
            if batch and size + own > BYTES_AT_ONCE:
                yield from _read(store, batch, limits)
                batch, size = [], 0
            batch.append(planned)
            size += own
        yield from _read(store, batch, limits)


class _Planned(NamedTuple):
    """A record and the Blobs to read for it."""

    record: ValidRecord
    pieces: list[Piece] | None  # None: its content is its own; none: it is not read with others


def _plan(record: ValidRecord | None) -> _Planned | None:
    if record is None:
        return None
    if not is_manifest(record):
        return _Planned(record, None)
    try:
        pieces = manifest_pieces(record)
    except InvalidInput:
        return _Planned(record, [])
    is_plain = pieces and pieces[-1].end <= LARGEST and all(piece.target[0] == "B" for piece in pieces)
    return _Planned(record, pieces if is_plain else [])


def _read(store: RecordStore, batch: Sequence[_Planned | None], limits: RecordLimits) -> Iterator[ReadContent | None]:
    wanted = {piece.target: None for planned in batch if planned is not None for piece in planned.pieces or ()}
    blobs = loaded(store, list(wanted), limits)
    for planned in batch:
        if planned is None:
            yield None
        elif planned.pieces is None:
            yield ReadContent(planned.record, [planned.record.data])
        else:
            yield ReadContent(planned.record, _pieces(planned.record, planned.pieces, blobs))


def _pieces(record: ValidRecord, wanted: Sequence[Piece], blobs: Mapping[str, ValidRecord]) -> list[memoryview] | None:
    """The content of a manifest in its Blobs, if they are all here and what it says."""
    found = []
    for piece in wanted:
        blob = blobs.get(piece.target)
        if blob is None or blob.data_length != piece.end - piece.start:
            return None
        found.append(blob.data)
    stated = full_hash(record)
    if not wanted or stated is None or [piece.target for piece in wanted] == [stated]:
        return found or None  # a Blob was hashed as it was loaded
    whole = hasher()
    whole.update(b"Data-Length: %d\n\n" % wanted[-1].end)
    for data in found:
        whole.update(data)
    return found if RecordHash.of("B", whole.digest()) == stated else None
