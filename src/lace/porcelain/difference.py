"""What changed between two records, as lines: headers first, then content that is text.

Rule: as much content is read as is shown; bytes that are not text are named by their length and hash.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from lace.errors import LaceError
from lace.limits import MIB

if TYPE_CHECKING:
    from lace.porcelain.lace import Lace
    from lace.records.model import ValidRecord

_CONTEXT = 3


def difference(lace: Lace, older: ValidRecord, newer: ValidRecord, *, shown_bytes: int = MIB) -> Iterator[str]:
    """A unified difference, without its first two lines; nothing if headers and content are the same."""
    before, after = (_lines(lace, record, shown_bytes) for record in (older, newer))
    found = difflib.unified_diff(before, after, lineterm="", n=_CONTEXT)
    for number, line in enumerate(found):
        if number > 1:
            yield line


def _lines(lace: Lace, record: ValidRecord, shown_bytes: int) -> list[str]:
    parts = record.parts
    head = [f"Signed-By: {parts.signed_by}"] if parts.signed_by else []
    head += [f"TAI: {parts.tai}", *(f"{name}: {value}" for name, value in parts.headers), ""]
    try:
        length = lace.content_length(record.hash)
        content = _beginning(lace, record, shown_bytes)
    except LaceError as error:
        return [*head, f"({error})"]
    text = as_text(content, is_whole=len(content) == length)
    if text is None:
        return [*head, f"({length:,} bytes, {parts.blob_hash})"]
    return [*head, *text.splitlines(), *([] if len(content) == length else ["(cut here)"])]


def _beginning(lace: Lace, record: ValidRecord, shown_bytes: int) -> bytes:
    found = bytearray()
    for piece in lace.content(record.hash):
        found += piece[: shown_bytes - len(found)]
        if len(found) >= shown_bytes:
            break
    return bytes(found)


def as_text(content: bytes, *, is_whole: bool) -> str | None:
    """The beginning of content as text, if it is text."""
    try:
        found = content.decode("utf-8")
    except UnicodeDecodeError as error:
        if is_whole or error.start < len(content) - 3:
            return None
        found = content[: error.start].decode("utf-8")  # a character that the cut went through
    return None if any(one < " " and one not in "\t\n\r\f" for one in found) else found
