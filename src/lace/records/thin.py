"""The thin form (010): a record kept without the bytes of the record inside it. For storage only, never on a stream.

Rule: a thin record proves nothing; `thicken` puts the inner bytes back and `validate` judges the whole (010-THIN-02).
"""

from __future__ import annotations

from collections.abc import Callable

from lace.errors import NotFound
from lace.limits import RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.frame import MARKLINE_BYTES
from lace.records.grammar import MARK
from lace.records.model import DEFAULT_LIMITS, ValidRecord
from lace.records.validate import validate


def thin_form(valid: ValidRecord) -> bytes:
    """A Plex up to its Blob's markline, a Seal up to its Plex's; a Blob holds no other record and stays whole."""
    if valid.type == "B":
        return valid.stored
    inner = valid.parts.blob_hash if valid.type == "P" else valid.parts.plex_hash
    markline = MARK + inner.encode() + b"\n"
    return valid.stored[: valid.stored.index(markline) + len(markline)]


def thicken(
    thin: bytes, load: Callable[[RecordHash], bytes | None], limits: RecordLimits = DEFAULT_LIMITS
) -> ValidRecord:
    """The whole record; `load` gives an inner record's stored bytes. NotFound or InvalidRecord if they are wrong."""
    if not thin.startswith(MARK + b"B"):
        inner = RecordHash.parse(thin[-MARKLINE_BYTES + len(MARK) : -1].decode("utf-8", "replace"))
        stored = load(inner)
        if stored is None:
            raise NotFound(f"{inner} is not here, so the thin record cannot be made whole")
        thin += stored[MARKLINE_BYTES:]
    return validate(thin, limits=limits)
