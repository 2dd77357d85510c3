"""Finding where a record ends without judging it (010, P21): one frame for streams and for whole bytes.

Rule: what this frame holds can be refused alone, whatever is wrong inside; what it does not hold cannot be delimited,
and that is an error of the stream. Judging is `lace.records.validate`'s business.

The frame: lines of at most 1024 bytes; marklines with the type letters S, P, B in nesting order, ending in B; at most
518 other header lines, none empty; last in the B part a canonical Data-Length of at most 32 MiB; an empty line; that
many bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lace.errors import InvalidStream
from lace.limits import RecordLimits
from lace.notation.bytesource import ByteSource, Piece, Reader
from lace.records.grammar import MARK
from lace.records.model import DEFAULT_LIMITS

_LENGTH = b"Data-Length: "
_CANONICAL = re.compile(rb"0|[1-9][0-9]{0,18}")
_LETTERS = b"SPB"
Buffer = bytes | bytearray | memoryview
FIELD_LINES = 6  # of a Seal and its Plex


class FrameScan:
    """The head of a frame, line by line; `data_length` is set when the empty line has been seen."""

    __slots__ = ("_length", "_letter", "_limits", "_lines", "data_length")

    def __init__(self, limits: RecordLimits) -> None:
        self._limits = limits
        self._letter = -1  # index into _LETTERS of the last markline
        self._lines = 0
        self._length: int | None = None
        self.data_length: int | None = None

    def line(self, line: bytes) -> None:
        """Take the next line (without LF) into the frame."""
        if line.startswith(MARK):
            self._markline(line)
        elif self._letter < 0:
            raise _undelimited("a record begins with its mark", line)
        elif not line:
            self._end()
        elif self._letter == 2 and line.startswith(_LENGTH):
            self._data_length(line[len(_LENGTH) :])
        elif self._length is not None:  # 060-REC-10
            raise _undelimited("an empty line follows Data-Length", line)
        else:
            self._lines += 1
            if self._lines > self._limits.max_extra_headers + FIELD_LINES:
                raise _undelimited("a record has too many header lines", line)

    def _markline(self, line: bytes) -> None:
        letter = _LETTERS.find(line[len(MARK) : len(MARK) + 1]) if len(line) > len(MARK) else -1
        if letter <= self._letter or self._length is not None:
            raise _undelimited("record types nest in the order S, P, B", line)
        self._letter = letter

    def _data_length(self, text: bytes) -> None:
        if self._length is not None or _CANONICAL.fullmatch(text) is None or int(text) > self._limits.max_data_bytes:
            raise _undelimited(f"one Data-Length of at most {self._limits.max_data_bytes}", text)
        self._length = int(text)

    def _end(self) -> None:
        if self._length is None:
            raise _undelimited("a blank line stands after Data-Length only", b"")
        self.data_length = self._length


def _undelimited(message: str, found: bytes) -> InvalidStream:
    return InvalidStream(f"the record cannot be delimited: {message}", rule="record-frame", found=repr(found[:60]))


def frame_record(source: ByteSource, limits: RecordLimits = DEFAULT_LIMITS) -> Reader[bytes]:
    """The stored bytes of the record that begins here, delimited and not judged; its data is copied once."""
    scan = FrameScan(limits)
    pieces: list[Piece] = []
    while scan.data_length is None:
        line = yield from source.read_line(limits.max_header_line_bytes)
        scan.line(line)
        pieces += (line, b"\n")
    pieces += yield from source.read_pieces(scan.data_length)
    return b"".join(pieces)


_LINE = rb"(?!\xf0\x9f\x96\xa7: )[^\n]++\n"
_MARKLINE = rb"\xf0\x9f\x96\xa7: %b[^\n]*+\n"
# The common frame, in which Data-Length and the blank line follow the Blob's markline directly.
_PART = rb"(?:" + _MARKLINE + rb"(?:" + _LINE + rb")*+)?+"
_COMMON_HEAD = re.compile(
    _PART % b"S" + _PART % b"P" + _MARKLINE % b"B" + rb"Data-Length: (0|[1-9][0-9]{0,18})\n\n",
)


def delimit(buffer: Buffer, offset: int = 0, limits: RecordLimits = DEFAULT_LIMITS) -> int | None:
    """Where the record that begins at `offset` ends.

    The end may lie beyond the buffer if data is still missing; None if not even the head is all here. InvalidStream if
    the bytes cannot be delimited.
    """
    match = _COMMON_HEAD.match(buffer, offset)
    if match is not None and match.end() - offset <= _short(limits) and int(match[1]) <= limits.max_data_bytes:
        return match.end() + int(match[1])
    return _delimit_by_line(buffer, offset, limits)


def _short(limits: RecordLimits) -> int:
    """A head so short breaks no limit but that of the data: a header line has at least a character and its LF."""
    return min(limits.max_header_line_bytes, 2 * (limits.max_extra_headers + FIELD_LINES))


def delimit_run(buffer: bytes, offset: int, stop: int, limits: RecordLimits = DEFAULT_LIMITS) -> list[int]:
    """Where the records from `offset` on end, as far as `delimit` has nothing to say against any.

    Each begins before `stop`, is of the common shape, lies whole in the buffer and has a mark behind it; what follows
    the last may be a record too.
    """
    ends: list[int] = []
    match_head, longest, most = _COMMON_HEAD.match, _short(limits), limits.max_data_bytes
    while offset < stop:
        match = match_head(buffer, offset)
        if match is None:
            break
        start, length = match.end(), int(match[1])
        if start - offset > longest or length > most or not buffer.startswith(MARK, start + length):
            break
        offset = start + length
        ends.append(offset)
    return ends


def _delimit_by_line(buffer: Buffer, offset: int, limits: RecordLimits) -> int | None:
    scan = FrameScan(limits)
    most_lines = limits.max_extra_headers + FIELD_LINES + 5  # three marklines, Data-Length, the blank line
    view = memoryview(buffer)
    head = bytes(view[offset : offset + most_lines * (limits.max_header_line_bytes + 1)])
    position = 0
    while scan.data_length is None:
        end = head.find(b"\n", position, position + limits.max_header_line_bytes + 1)
        if end < 0:
            if len(head) - position > limits.max_header_line_bytes:
                raise _undelimited("a line is too long", head[position : position + 60])
            return None
        scan.line(head[position:end])
        position = end + 1
    return offset + position + scan.data_length


def split_records(buffer: bytes, limits: RecordLimits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """The stored records of a buffer that holds whole records back to back."""
    offset = 0
    while offset < len(buffer):
        end = delimit(buffer, offset, limits)
        if end is None or end > len(buffer):
            raise InvalidStream("the bytes end inside a record", rule="stream-cut", place=f"byte {offset}")
        yield buffer[offset:end]
        offset = end
