"""Packed fact lines (070, compression): a run of lines as one deflated item of a stream.

Rule: what is packed is fact lines and nothing else, so nothing that a reader checks is hidden from it; how long they
are is told before the bytes, and a reader never inflates more than that.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

from lace.errors import InvalidStream, excerpt
from lace.iltp.markers import PACKED
from lace.thresholds import StreamThresholds

MAX_PACKED_BYTES = 1 << 20  # of one item, before and after
MAX_HEAD_BYTES = 20
_WORTH_BYTES = 512  # shorter runs gain nothing
_LEVEL = 1  # hashes shrink by a quarter at any level, and the rest of a listing is the same line over and over
_HEAD = re.compile(rb"([1-9][0-9]{0,6}) ([1-9][0-9]{0,6})")


def encode_packed(lines: bytes, run_bytes: int = StreamThresholds().packed_bytes) -> Iterator[bytes]:
    """Fact lines as items, packed where that is shorter."""
    for chunk in runs_of(lines, run_bytes):
        packed = zlib.compress(chunk, _LEVEL) if len(chunk) >= _WORTH_BYTES else chunk
        head = b"%s%d %d\n" % (PACKED, len(chunk), len(packed))
        yield head + packed if len(head) + len(packed) < len(chunk) else chunk


def runs_of(lines: bytes, most: int) -> Iterator[bytes]:
    """Fact lines, each with its LF, in runs of whole ones: of so many bytes at most, or one line."""
    start = 0
    while start < len(lines):
        end = (lines.rfind(b"\n", start, start + most) + 1) or lines.index(b"\n", start) + 1
        yield lines[start:end]
        start = end


def parse_head(line: bytes) -> tuple[int, int]:
    """How many bytes of lines, and how many packed bytes follow."""
    found = _HEAD.fullmatch(line)
    if found is None or not int(found[2]) < int(found[1]) <= MAX_PACKED_BYTES:  # longer than its lines it has no place
        raise InvalidStream("a packed item is shorter than its lines", rule="packed-head", found=excerpt(line))
    return int(found[1]), int(found[2])


def unpack(data: bytes, whole: int) -> bytes:
    """Exactly so many bytes of lines."""
    reader = zlib.decompressobj()
    try:
        lines = reader.decompress(data, whole + 1)
    except zlib.error:
        raise InvalidStream("a packed item does not inflate", rule="packed-data") from None
    if len(lines) != whole or not reader.eof or reader.unused_data:
        raise InvalidStream("a packed item is not as long as it says", rule="packed-data", found=f"{len(lines)} bytes")
    return lines
