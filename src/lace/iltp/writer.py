"""One direction of an ILTP stream, items to bytes (060).

Rule: what is written here reads back as the same items; what a reader would refuse is a LocalProtocolError before a
byte of it exists.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lace.errors import LaceError, LocalProtocolError
from lace.iltp.markers import BLANK, COMMENT, MARKERS, PIECE, PREFACE, RECORD
from lace.iltp.resources import parse_marker_line
from lace.limits import StreamLimits
from lace.notation.fact import Fact
from lace.notation.factline import format_facts
from lace.notation.text import decode_text

DEFAULT_LIMITS = StreamLimits()


def encode_preface() -> bytes:
    """The knot line."""
    return PREFACE


def encode_facts(facts: Iterable[Fact], limits: StreamLimits = DEFAULT_LIMITS) -> bytes:
    """Fact lines, each with its LF; the block is ended by `encode_blank`."""
    given = facts if isinstance(facts, Sequence) else list(facts)
    data = format_facts(given).encode("utf-8")
    longest = limits.max_fact_line_bytes
    if len(data) > longest and max(map(len, data.split(b"\n"))) > longest:
        raise LocalProtocolError(f"a fact line has at most {longest} bytes")
    if b"\r" in data or data.count(b"\n") != len(given):
        raise LocalProtocolError("a fact line holds no line end")
    return data


def encode_blank() -> bytes:
    """The end of a block or batch."""
    return BLANK


def encode_record(data: bytes) -> bytes:
    """A stored record is its own item (060-STREAM-02: nothing is put around it)."""
    if not data.startswith(RECORD):
        raise LocalProtocolError("a stored record begins with its markline")
    return data


def encode_records(stored: Sequence[bytes]) -> Sequence[bytes]:
    """Many stored records as items, checked together: a first copy has very many."""
    if sum([data.startswith(RECORD) for data in stored]) < len(stored):
        raise LocalProtocolError("a stored record begins with its markline")
    return stored


def encode_resource(identifier: str, kind: str, text: bytes, limits: StreamLimits = DEFAULT_LIMITS) -> bytes:
    """A resource block with its terminating blank line."""
    marker = f"{identifier} {kind}".encode()
    try:
        parse_marker_line(marker)
        decode_text(text, "resource")
    except LaceError as error:
        raise LocalProtocolError(f"no such resource can be sent: {error}") from error
    lines = text.split(b"\n")
    if len(text) > limits.max_resource_bytes or len(lines) > limits.max_resource_lines:
        raise LocalProtocolError(f"resource {identifier} is larger than a stream may carry")
    if b"\r" in text or any(not line or line.startswith((COMMENT, *MARKERS)) for line in lines):
        raise LocalProtocolError(f"resource {identifier} holds a line that a stream cannot carry")
    return b"".join((PIECE, marker, b"\n", text, b"\n", BLANK))
