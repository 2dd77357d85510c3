"""One match for the whole head of a good record, instead of `lace.records.parse`: 4.1 times as fast (bench/records.py).

Rule: it may decline anything (None), but what it accepts, `parse` accepts with equal parts; a property test holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from lace.limits import RecordLimits
from lace.notation.b64a import encode, pattern_of, text_length
from lace.notation.decimal import MAX_DIGITS
from lace.notation.digest import digest
from lace.notation.identifiers import H3, PAYLOAD, RECORD_HASH_LENGTH, Verifier
from lace.notation.text import is_nfc
from lace.records.frame import MARKLINE_BYTES
from lace.records.grammar import MARK, MARK_TEXT, RESERVED_NAMES, SIGNATURE_BYTES, TRAILER_TEXT
from lace.records.model import Parts

_ANY_HASH = f"[^\\n]{{{len(range(RECORD_HASH_LENGTH)[PAYLOAD])}}}\\.{H3}"  # compared with what the digests spell
_SIGNATURE = pattern_of(SIGNATURE_BYTES)
_LENGTH = f"0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}}"


def _heads(mark: str, forbidden: str) -> dict[bytes, re.Pattern[str]]:
    """A pattern for the head of each type; no value holds `forbidden` characters."""

    def path(excluded: str) -> str:
        segment = rf"(?!\.\.?[/\n])[^/{excluded}{forbidden}]++"
        return f"{segment}(?:/{segment})*+"

    extra = rf"(?!{MARK_TEXT}|{TRAILER_TEXT})[^: {forbidden}]++: [^{forbidden}]++\n"
    seal = rf"{mark}: (S\.{_ANY_HASH})\nSigned-By: ({Verifier.PATTERN})\nSignature: ({_SIGNATURE})\n"
    plex = (
        rf"{mark}: (P\.{_ANY_HASH})\nGroup: ({path('{}|#')})\nApp: ({path('{}|#')})\nName: ({path('{}|')})\n"
        rf"TAI: ([0-9]{{10}}:[0-9]{{9}})\n((?:{extra})*+)"
    )
    blob = rf"{mark}: (B\.{_ANY_HASH})\nData-Length: ({_LENGTH})\n\n"
    return {b"B": re.compile(blob), b"P": re.compile(plex + blob), b"S": re.compile(seal + plex + blob)}


# Nearly every head is ASCII but for its marks. Read as Latin-1 it takes a byte a character, and ASCII is NFC.
ASCII_HEADS = _heads(MARK[:4].decode("latin-1"), r"\x00-\x1f\x7f-\xff")
_HEADS = _heads(MARK_TEXT, r"\x00-\x1f\x7f")
SHORT_HEAD_BYTES = 1024
_SEAL_LINES = f"Signed-By: \nSignature: {'-' * text_length(SIGNATURE_BYTES)}\n"
SEALED_PLEX_START = 2 * MARKLINE_BYTES + len(_SEAL_LINES) + RECORD_HASH_LENGTH  # a verifier is as long as a hash
LENGTH_BYTES = len("Data-Length: \n\n")
LETTER = slice(len(MARK), len(MARK) + 1)


def parse_common(stored: bytes, limits: RecordLimits) -> Parts | None:
    """The parts of a record of the common shape, signature not yet verified; None where `parse` has to look."""
    shape = ASCII_HEADS.get(stored[LETTER])
    if shape is None:
        return None
    # A head that ends within the longest line has no line that is too long; few heads are longer than this.
    match = shape.match(str(stored[: min(limits.max_header_line_bytes, SHORT_HEAD_BYTES)], "latin-1"))
    if match is not None:
        groups, data_start = match.groups(), match.end()
    else:
        data_start = stored.find(b"\n\n") + 2
        found = _wide_head(stored[:data_start], _HEADS[stored[LETTER]], limits)
        if found is None:
            return None
        groups = found
    length = groups[-1]
    if int(length) != len(stored) - data_start or int(length) > limits.max_data_bytes:
        return None
    view = memoryview(stored)
    blob_hash = groups[-2]
    blob_digest = digest(view[data_start - LENGTH_BYTES - len(length) :])
    if len(groups) == 2:
        if encode(blob_digest) != blob_hash[PAYLOAD]:
            return None
        return Parts(blob_hash, "", "", "", "", (), blob_hash, "", b"", "", "", data_start)
    plex_hash, group, app, name, tai, extras = groups[-8:-2]
    headers = extra_headers(extras, limits)
    if headers is None:
        return None
    if len(groups) == 8:
        plex_digest = digest(view[MARKLINE_BYTES:])
        if not spell((plex_digest, blob_digest), (plex_hash, blob_hash)):
            return None
        return Parts(plex_hash, group, app, name, tai, headers, blob_hash, plex_hash, plex_digest, "", "", data_start)
    seal_hash, signed_by, signature = groups[:3]
    plex_digest = digest(view[SEALED_PLEX_START:])
    if not spell((digest(view[MARKLINE_BYTES:]), plex_digest, blob_digest), (seal_hash, plex_hash, blob_hash)):
        return None
    return Parts(
        seal_hash, group, app, name, tai, headers, blob_hash, plex_hash, plex_digest, signed_by, signature, data_start
    )


def spell(digests: Sequence[bytes], hashes: Iterable[str]) -> bool:
    """Whether hashes spell digests: 33 bytes are 44 symbols, so all are compared at once, a zero between two."""
    return encode(b"\0".join(digests)) == "0".join([text[PAYLOAD] for text in hashes])


def _wide_head(head: bytes, shape: re.Pattern[str], limits: RecordLimits) -> tuple[str, ...] | None:
    """What is in a head of any characters or length, if it is NFC and no line is too long."""
    if any(len(line) > limits.max_header_line_bytes for line in head.split(b"\n")):
        return None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        return None
    match = shape.fullmatch(text)
    return match.groups() if match is not None and is_nfc(text) else None


def extra_headers(text: str, limits: RecordLimits) -> tuple[tuple[str, str], ...] | None:
    """The extra headers in their lines, if they are sorted, unreserved and not too many."""
    if not text:
        return ()
    headers = []
    before = ""
    for line in text[:-1].split("\n"):
        name, _, value = line.partition(": ")
        if name < before or name in RESERVED_NAMES:
            return None
        before = name
        headers.append((name, value))
    return tuple(headers) if len(headers) <= limits.max_extra_headers else None
