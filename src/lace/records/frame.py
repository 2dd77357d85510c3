"""Finding where a record ends without judging it (010, P21): one frame for streams and for whole bytes.

Rule: what this frame holds can be refused alone, whatever is wrong inside; what it does not hold cannot be delimited,
and that is an error of the stream. Judging is `lace.records.validate`'s business.

The frame: lines of at most 1024 bytes; marklines with the type letters S, P, B in nesting order, ending in B; at most
518 other header lines, none empty; last in the B part a canonical Data-Length of at most 32 MiB; an empty line; that
many bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from lace.errors import InvalidStream, excerpt
from lace.limits import RecordLimits
from lace.notation import decimal
from lace.notation.bytesource import ByteSource, Piece, Reader
from lace.notation.identifiers import RECORD_HASH_LENGTH, RecordHash
from lace.records.grammar import DATA_LENGTH, MARK, PLEX_FIELDS, SEAL_FIELDS
from lace.records.model import DEFAULT_LIMITS

Buffer = bytes | bytearray | memoryview

MARKLINE_BYTES = len(MARK) + RECORD_HASH_LENGTH + 1  # of a record that we understand
MARKLINE = re.compile(re.escape(MARK) + RecordHash.PATTERN.encode() + b"\n")
_MARKLINES = re.compile(b"(?:" + MARKLINE.pattern + b")*+")
FIELD_LINES = len(PLEX_FIELDS) + len(SEAL_FIELDS)
_FRAME_LINES = 5  # three marklines, Data-Length, the blank line
_CLAIM_BYTES = 1024  # of a markline, looked at for what it claims
_LENGTH = f"{DATA_LENGTH}: ".encode()
_LETTERS = b"SPB"
_MOST_REPEATS = 1 << 31  # what a pattern can count to; a higher limit does not bind


def claimed_hash(stored: bytes, start: int = 0) -> str:
    """What the record that begins at `start` calls itself, which it may not be; empty if there is no mark.

    Bytes that are not text cannot name a record, so they are kept visibly wrong.
    """
    if not stored.startswith(MARK, start):
        return ""
    longest = start + _CLAIM_BYTES
    end = stored.find(b"\n", start, longest)
    return stored[start + len(MARK) : end if end >= 0 else longest].decode("utf-8", "backslashreplace")


def claimed_hashes(records: Sequence[bytes]) -> list[str]:
    """`claimed_hash` of many; where all are of the format that we write, none is looked at by itself."""
    heads = b"".join([record[:MARKLINE_BYTES] for record in records])
    if len(heads) != MARKLINE_BYTES * len(records) or _MARKLINES.fullmatch(heads) is None:
        return list(map(claimed_hash, records))
    return heads.replace(MARK, b"").decode("ascii").split("\n")[:-1]


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
        length = _length(text, self._limits)
        if self._length is not None or length is None:
            raise _undelimited(f"one Data-Length of at most {self._limits.max_data_bytes}", text)
        self._length = length

    def _end(self) -> None:
        if self._length is None:
            raise _undelimited("a blank line stands after Data-Length only", b"")
        self.data_length = self._length


def _length(text: bytes, limits: RecordLimits) -> int | None:
    """The length that a Data-Length states, if it is one that a record may have."""
    if len(text) > decimal.MAX_DIGITS or not decimal.is_decimal(text.decode("latin-1")):
        return None
    length = int(text)
    return length if length <= limits.max_data_bytes else None


def blob_length(head: bytes) -> int:
    """How much data a stored Blob has, by the lines before it."""
    _, length, _ = head.split(b"\n", 2)
    return int(length.removeprefix(_LENGTH))


def _undelimited(message: str, found: bytes) -> InvalidStream:
    return InvalidStream(f"the record cannot be delimited: {message}", rule="record-frame", found=excerpt(found))


def read_frame(
    source: ByteSource, limits: RecordLimits = DEFAULT_LIMITS, gate: Callable[[str], None] | None = None
) -> Reader[bytes]:
    """The stored bytes of the record that begins here, delimited and not judged; its data is copied once.

    `gate` hears what the record claims to be before any more of its bytes are waited for.
    """
    scan = FrameScan(limits)
    pieces: list[Piece] = []
    while scan.data_length is None:
        line = yield from source.read_line(limits.max_header_line_bytes)
        if not pieces and gate is not None:
            gate(claimed_hash(line))
        scan.line(line)
        pieces += (line, b"\n")
    pieces += yield from source.read_pieces(scan.data_length)
    return b"".join(pieces)


@lru_cache(maxsize=16)
def _head(limits: RecordLimits) -> re.Pattern[bytes]:
    """One match for what `FrameScan` finds line by line, but for how many header lines there are and how long the data.

    It looks at no more than a frame may have, so that failing is not dearer than succeeding.
    """
    longest = min(limits.max_header_line_bytes, _MOST_REPEATS)
    most = min(limits.max_extra_headers + FIELD_LINES, _MOST_REPEATS)
    mark = re.escape(MARK)
    line = rb"(?!%b)[^\n]{1,%d}+\n" % (mark, longest)

    def markline(letter: bytes) -> bytes:
        return rb"%b%b[^\n]{0,%d}+\n" % (mark, letter, max(0, longest - len(MARK) - 1))

    def part(letter: bytes) -> bytes:
        return rb"(?:%b(?:%b){0,%d}+)?+" % (markline(letter), line, most)

    own = rb"(?:(?!%b)%b){0,%d}+" % (_LENGTH, line, most)
    length = rb"%b(%b)\n\n" % (_LENGTH, decimal.PATTERN.encode())
    return re.compile(part(b"S") + part(b"P") + markline(b"B") + own + length)


def delimit(buffer: Buffer, offset: int = 0, limits: RecordLimits = DEFAULT_LIMITS) -> int | None:
    """Where the record that begins at `offset` ends.

    The end may lie beyond the buffer if data is still missing; None if not even the head is all here. InvalidStream if
    the bytes cannot be delimited.
    """
    end = frame_end(buffer, offset, limits)
    return delimit_by_line(buffer, offset, limits) if end is None else end


def frame_end(buffer: Buffer, offset: int, limits: RecordLimits) -> int | None:
    """`delimit` that only says yes; None where no whole head stands, or one that breaks a limit."""
    match = _head(limits).match(buffer, offset)
    if match is None:
        return None
    length = _length(match[1], limits)
    start = match.end()
    if length is None or (start - offset > _short(limits) and not _has_few_lines(match[0], limits)):
        return None
    return start + length


def _short(limits: RecordLimits) -> int:
    """A head this short cannot have too many lines: each has at least a character and its LF."""
    return 2 * (limits.max_extra_headers + FIELD_LINES)


def _has_few_lines(head: bytes, limits: RecordLimits) -> bool:
    marklines = 1 + head.count(b"\n" + MARK)
    return head.count(b"\n") - marklines - 2 <= limits.max_extra_headers + FIELD_LINES


def max_head_bytes(limits: RecordLimits) -> int:
    """What the head of a frame has at most; what is not delimited by then never will be."""
    return (limits.max_extra_headers + FIELD_LINES + _FRAME_LINES) * (limits.max_header_line_bytes + 1)


def delimit_run(buffer: bytes, offset: int, stop: int, limits: RecordLimits = DEFAULT_LIMITS) -> list[int]:
    """Where the records from `offset` on end, as far as `delimit` has nothing to say against any.

    Each begins before `stop`, lies whole in the buffer and has a mark behind it; what follows the last may be a record
    too.
    """
    ends: list[int] = []
    match_head, short, most = _head(limits).match, _short(limits), limits.max_data_bytes
    while offset < stop:
        match = match_head(buffer, offset)
        if match is None:
            break
        start, text = match.end(), match[1]
        if start - offset > short or len(text) > decimal.MAX_DIGITS or int(text) > most:
            break
        end = start + int(text)
        if not buffer.startswith(MARK, end):
            break
        offset = end
        ends.append(offset)
    return ends


def delimit_by_line(buffer: Buffer, offset: int, limits: RecordLimits) -> int | None:
    """The reason why a head is none, or None if it is not all here."""
    scan = FrameScan(limits)
    head = bytes(memoryview(buffer)[offset : offset + max_head_bytes(limits)])
    position = 0
    while scan.data_length is None:
        end = head.find(b"\n", position, position + limits.max_header_line_bytes + 1)
        if end < 0:
            if len(head) - position > limits.max_header_line_bytes:
                raise _undelimited("a line is too long", head[position:])
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
