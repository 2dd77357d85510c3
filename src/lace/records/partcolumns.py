"""Many records as columns of their parts, and the fast way from bytes to them for records that are all alike (010).

Rule: as `headpattern`: it may decline anything (None), but what it accepts, `validate` accepts record by record with
equal parts; a property test holds it. An import brings records that are alike by the thousand, and one object for each
record and each check costs more than reading it: checking a chunk is 1.4 times as fast, signatures included (decision
200, bench/store.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from lace.limits import RecordLimits
from lace.notation.digest import digest_tails
from lace.records.frame import MARKLINE_BYTES
from lace.records.headpattern import (
    ASCII_HEADS,
    LENGTH_BYTES,
    LETTER,
    SEALED_PLEX_START,
    SHORT_HEAD_BYTES,
    extra_headers,
    spell,
)
from lace.records.model import Header, Parts, ValidRecord

_BEFORE_BLOB: dict[bytes, tuple[int, ...]] = {  # where payloads begin
    b"S": (MARKLINE_BYTES, SEALED_PLEX_START), b"P": (MARKLINE_BYTES,), b"B": (),
}  # fmt: skip
_PLEX_GROUPS = 8  # of the pattern for the head of a Plex; that of a Seal has three more in front


class PartColumns(NamedTuple):
    """The `Parts` of some records, a column for each."""

    hash: Sequence[str]
    group: Sequence[str]
    app: Sequence[str]
    name: Sequence[str]
    tai: Sequence[str]
    headers: Sequence[tuple[Header, ...]]
    blob_hash: Sequence[str]
    plex_hash: Sequence[str]
    plex_digest: Sequence[bytes]
    signed_by: Sequence[str]
    signature: Sequence[str]
    data_start: Sequence[int]


def columns_of(valids: Iterable[ValidRecord]) -> PartColumns:
    """The parts of records that were read one by one."""
    rows = [valid.parts for valid in valids]
    return PartColumns._make(zip(*rows, strict=True) if rows else [()] * len(Parts._fields))


def parse_alike(frames: Sequence[bytes], limits: RecordLimits) -> PartColumns | None:
    """The parts of Seals, Plexes or Blobs of the common shape, signatures not yet verified.

    None where `validate` has to look at each: when they are not all of one type, or anything is unusual about any.
    Heads come first, so that little is done twice where some records are declined.
    """
    letter = frames[0][LETTER] if frames else b""
    starts = _BEFORE_BLOB.get(letter)
    heads = _heads(frames, letter, limits) if starts is not None else None
    if starts is None or heads is None:
        return None
    columns = list(zip(*heads.groups, strict=True))
    nothing = ("",) * len(frames)
    if letter == b"B":
        (hashes, lengths), none = columns, ((),) * len(frames)
        if not all(map(spell, _digests(frames, starts, heads.data_starts, lengths), [hashes])):
            return None
        without = (nothing, nothing, nothing, nothing, none, hashes, nothing, (b"",) * len(frames), nothing, nothing)
        return PartColumns(hashes, *without, heads.data_starts)
    *_, group, app, name, tai, extras, blob_hash, lengths = columns
    headers = _headers(extras, limits)
    if headers is None:
        return None
    digests = _digests(frames, starts, heads.data_starts, lengths)
    hashes = (*columns[: len(columns) - _PLEX_GROUPS + 1 : 3], blob_hash)  # in front of a Plex's stand three of a Seal
    if not all(map(spell, digests, hashes)):
        return None
    signed_by, signature = columns[1:3] if letter == b"S" else (nothing, nothing)
    return PartColumns(
        hashes[0], group, app, name, tai, headers, blob_hash, hashes[-2], digests[-2], signed_by, signature,
        heads.data_starts,
    )  # fmt: skip


class _Heads(NamedTuple):
    """What the pattern found in each head, and where the data behind it begins."""

    groups: list[tuple[str, ...]]
    data_starts: list[int]


def _heads(frames: Sequence[bytes], letter: bytes, limits: RecordLimits) -> _Heads | None:
    longest = min(limits.max_header_line_bytes, SHORT_HEAD_BYTES)  # as in `parse_common`
    most, match_head = limits.max_data_bytes, ASCII_HEADS[letter].match
    found = _Heads([], [])
    for frame in frames:
        match = match_head(str(frame[:longest], "latin-1"))
        if match is None:
            return None
        groups, start = match.groups(), match.end()
        length = int(groups[-1])
        if length != len(frame) - start or length > most:
            return None
        found.groups.append(groups)
        found.data_starts.append(start)
    return found


def _headers(extras: Sequence[str], limits: RecordLimits) -> list[tuple[Header, ...]] | None:
    """The extra headers of each record; those that say the same share one value."""
    known = {text: extra_headers(text, limits) for text in set(extras)}
    found = [headers for text in extras if (headers := known[text]) is not None]
    return found if len(found) == len(extras) else None


def _digests(
    frames: Sequence[bytes], starts: tuple[int, ...], data_starts: Sequence[int], lengths: Sequence[str]
) -> list[list[bytes]]:
    """A column of digests for each payload of the records, the Blob's last; a record is hashed while it is at hand."""
    places = [
        (*starts, data_start - LENGTH_BYTES - len(length))
        for data_start, length in zip(data_starts, lengths, strict=True)
    ]
    found = digest_tails(frames, places)
    step = len(starts) + 1
    return [found[at::step] for at in range(step)]
