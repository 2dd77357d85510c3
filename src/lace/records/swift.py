"""One match for the whole head of a good record: the fast way to what `lace.records.parse` finds slowly.

Rule: it may decline anything (None), but what it accepts, `parse` accepts with equal parts; a property test holds it.
"""

from __future__ import annotations

import re

from lace.limits import RecordLimits
from lace.notation.b64a import encode
from lace.notation.digest import digest
from lace.notation.text import is_nfc
from lace.records.grammar import MARK_TEXT, RESERVED_NAMES, TRAILER_TEXT
from lace.records.model import Parts

_SYMBOL = "[0-9A-Z_a-z~]"
_DIGEST = f"{_SYMBOL}{{42}}[048CGKOSW_dhlptx]"
_SIGNATURE = f"{_SYMBOL}{{85}}[0GWl]"
_MARK = f"{MARK_TEXT}: "


def _path(excluded: str) -> str:
    segment = rf"(?!\.\.?[/\n])[^/{excluded}\x00-\x1f\x7f]++"
    return f"{segment}(?:/{segment})*+"


_EXTRA = rf"(?!{MARK_TEXT}|{TRAILER_TEXT})[^:\x00-\x20\x7f]++: [^\x00-\x1f\x7f]++\n"
_SEAL_HEAD = rf"{_MARK}(S\.{_DIGEST}\.H3)\nSigned-By: (V\.{_DIGEST}\.H3)\nSignature: ({_SIGNATURE})\n"
_PLEX_HEAD = (
    rf"{_MARK}(P\.{_DIGEST}\.H3)\nGroup: ({_path('{}|#')})\nApp: ({_path('{}|#')})\nName: ({_path('{}|')})\n"
    rf"TAI: ([0-9]{{10}}:[0-9]{{9}})\n((?:{_EXTRA})*+)"
)
_BLOB_HEAD = rf"{_MARK}(B\.{_DIGEST}\.H3)\nData-Length: (0|[1-9][0-9]{{0,11}})"
# Per type letter: the head, and by how many bytes its marks (one character of four bytes each) exceed its characters.
_HEADS = {
    b"B": (re.compile(_BLOB_HEAD), 3),
    b"P": (re.compile(_PLEX_HEAD + _BLOB_HEAD), 6),
    b"S": (re.compile(_SEAL_HEAD + _PLEX_HEAD + _BLOB_HEAD), 9),
}
_MARKLINE_BYTES = 55
_SEAL_BYTES = 158  # the two header lines of a Seal
_LENGTH_BYTES = len("Data-Length: \n\n")
_LETTER = slice(6, 7)
_DIGEST_TEXT = slice(2, 45)


def parse_swiftly(stored: bytes, limits: RecordLimits) -> Parts | None:
    """The parts of a record of the common shape, signature not yet verified; None where `parse` has to look."""
    head_end = stored.find(b"\n\n")
    shape = _HEADS.get(stored[_LETTER])
    if head_end < 0 or shape is None:
        return None
    pattern, mark_excess = shape
    head = _head_text(stored, head_end, mark_excess, limits)
    match = pattern.fullmatch(head) if head is not None else None
    if match is None:
        return None
    groups = match.groups()
    data_start = head_end + 2
    length = groups[-1]
    if int(length) != len(stored) - data_start or int(length) > limits.max_data_bytes:
        return None
    blob_payload = data_start - _LENGTH_BYTES - len(length)
    view = memoryview(stored)
    blob_hash = groups[-2]
    if encode(digest(view[blob_payload:])) != blob_hash[_DIGEST_TEXT]:
        return None
    if len(groups) == 2:
        return Parts(blob_hash, "", "", "", "", (), blob_hash, "", b"", "", "", data_start)
    headers = _extras(groups[-3], limits)
    if headers is None:
        return None
    plex_hash, group, app, name, tai = groups[-8:-3]
    sealed = len(groups) == 11
    plex_digest = digest(view[_MARKLINE_BYTES + (_MARKLINE_BYTES + _SEAL_BYTES if sealed else 0) :])
    if encode(plex_digest) != plex_hash[_DIGEST_TEXT]:
        return None
    if not sealed:
        return Parts(plex_hash, group, app, name, tai, headers, blob_hash, plex_hash, plex_digest, "", "", data_start)
    seal_hash, signed_by, signature = groups[:3]
    if encode(digest(view[_MARKLINE_BYTES:])) != seal_hash[_DIGEST_TEXT]:
        return None
    return Parts(
        seal_hash, group, app, name, tai, headers, blob_hash, plex_hash, plex_digest, signed_by, signature, data_start
    )


def _head_text(stored: bytes, head_end: int, mark_excess: int, limits: RecordLimits) -> str | None:
    """The head as text if it is NFC and no line is too long."""
    head = stored[:head_end]
    longest = limits.max_header_line_bytes
    if head_end > longest and any(len(line) > longest for line in head.split(b"\n")):
        return None
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError:
        return None
    # If the marks are all the difference, the rest is ASCII and so NFC (the match makes sure that the marks are there).
    if head_end - len(text) != mark_excess and not is_nfc(text):
        return None
    return text


def _extras(text: str, limits: RecordLimits) -> tuple[tuple[str, str], ...] | None:
    """Sorted, unreserved extra headers."""
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
