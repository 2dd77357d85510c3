"""One direction of an ILTP stream, bytes to items (060).

Rule: fed one byte at a time or a megabyte at once, the same items come out; nothing is held beyond the item that is
being read and what the caller fed and has not yet asked for. The reader knows no phases: it stops after every blank
line, so that its session can say what is legal next before the following block is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NoReturn, cast

from lace.errors import InvalidInput, InvalidStream, InvalidText, excerpt
from lace.iltp.items import (
    BLANK_LINE,
    PREFACE_ITEM,
    EndOfStream,
    FactLines,
    Item,
    RecordItem,
    Resource,
)
from lace.iltp.markers import KNOT, MARKERS, PACKED, PIECE, PREFACE, RECORD
from lace.iltp.packed import MAX_HEAD_BYTES, parse_head, runs_of, unpack
from lace.iltp.resources import parse_marker_line
from lace.limits import ExchangeLimits, RecordLimits, StreamLimits
from lace.notation.bytesource import ByteSource, Reader
from lace.notation.fact import Fact, FactColumn
from lace.notation.factline import parse_fact, parse_plain_run
from lace.notation.text import decode_text
from lace.records.frame import claimed_hash, claimed_hashes, delimit, delimit_run, read_frame
from lace.thresholds import StreamThresholds

RecordGate = Callable[[str], None]

_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_LF, _HASH = 0x0A, 0x23
_LONGEST_MARKER = max(map(len, MARKERS))
FACT_ITEM_BYTES = 1 << 12  # what an item of fact lines counts for beside them: many short ones cost most
SHORT_RECORD_BYTES = 1 << 16  # bytes; a longer one is not put together before it is read
# What `RecordItem._make` does, without a Python frame for each of very many.
_make = cast("Callable[[tuple[str, bytes]], RecordItem]", partial(tuple.__new__, RecordItem))

# What a port of another kind says first, as far as one byte tells.
_OTHER_KINDS = {
    b"H": "; this begins as HTTP does: if the port speaks ws or wss, dial that",
    b"\x15": "; this begins as TLS does: if the port speaks wss, dial that",
    b"\x16": "; this begins as TLS does: if the port speaks wss, dial that",
}


class StreamReader:
    """Bytes in by `receive`, items out by `read_block`."""

    def __init__(
        self,
        limits: StreamLimits | None = None,
        records: RecordLimits | None = None,
        *,
        max_block_bytes: int = ExchangeLimits().max_fact_block_size,
        fact_bytes_at_once: int = StreamThresholds().read_fact_bytes,
    ) -> None:
        self._limits = limits or StreamLimits()
        self._record_limits = records or RecordLimits()
        self.max_block_bytes = max_block_bytes
        self._at_once = fact_bytes_at_once
        # Possessive, so that a long run is matched in one pass without a backtracking stack.
        self._fact_run = re.compile(rb"(?:[A-Za-z][^\n]{0,%d}+\n)++" % (self._limits.max_fact_line_bytes - 1))
        self._source = ByteSource()
        self._out: list[Item] = []
        self._out_bytes = 0  # of fact lines in it
        self._steps = self._read_stream()
        self._error: InvalidInput | None = None
        self._finished = False
        self._block_bytes = 0  # of fact lines in the block being read
        self._holds_records = False  # the block being read, which is a batch then
        self._resources = 0
        self._comment_allowed = True
        self.accepts_packed = False  # 070-ZIP-01: unknown until it was agreed
        self.on_comment: Callable[[int, bytes], None] | None = None  # where it begins; comments mean nothing here
        self.record_gate: RecordGate | None = None  # may refuse a record by its name, before its bytes have come

    @property
    def buffered(self) -> int:
        """Bytes received and not yet read into items."""
        return self._source.buffered

    @property
    def offset(self) -> int:
        """How many bytes of the direction have been read."""
        return self._source.consumed

    def receive(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the direction."""
        if data and not self._finished:
            self._source.feed(data)

    def receive_eof(self) -> None:
        """Say that the peer sends no more."""
        self._source.feed_eof()

    def read_block(self) -> list[Item]:
        """The items up to and with the next blank line, as far as they are here; empty if bytes are missing.

        Of many fact lines some at a time: parsing them takes time, and the caller may have other things to do.

        Raises InvalidStream at the first fault, after everything before it has been handed out; the reader is then
        at its end.
        """
        if self._error is None and not self._finished:
            self._advance()
        if self._out:
            items, self._out, self._out_bytes = self._out, [], 0
            return items
        if self._error is not None:
            raise self._error
        return []

    def feed(self, data: bytes | bytearray | memoryview) -> list[Item]:
        """Receive bytes and read every item that they complete."""
        self.receive(data)
        return self.read_all()

    def read_all(self) -> list[Item]:
        """Every item that is here; a fault is raised once nothing is left before it."""
        items: list[Item] = []
        while True:
            try:
                block = self.read_block()
            except InvalidInput:
                if items:  # hand these out first; the next call raises again
                    return items
                raise
            if not block:
                return items
            items += block

    def _advance(self) -> None:
        try:
            next(self._steps)
        except StopIteration:
            self._finished = True
        except InvalidStream as error:
            self._error = error
        except InvalidInput as error:  # a rule of a lower layer, broken at this place of the stream
            place = f"byte {self._source.consumed}"
            self._error = InvalidStream(error.message, rule=error.rule, place=place, found=error.found)
        if self._error is not None:
            self._finished = True
            self._source = ByteSource()  # nothing after a fault is kept

    # The generators below yield where they need bytes and after each blank line.

    def _read_stream(self) -> Reader[None]:
        yield from self._read_preface()
        while True:
            lead = yield from self._source.peek(1)
            if not lead:
                self._out.append(EndOfStream(block_open=bool(self._block_bytes) or self._holds_records))
                return
            byte = lead[0]
            if self._out_bytes >= self._at_once:
                yield
            if byte in _LETTERS:
                yield from self._read_facts()
            elif byte == _LF:
                self._source.skip(1)
                self._end_block()
                yield
            elif byte == _HASH:
                yield from self._read_comment()
            else:
                yield from self._read_marked()

    def _read_preface(self) -> Reader[None]:
        seen = 0
        while seen < len(PREFACE):
            seen += 1
            head = yield from self._source.peek(seen)
            if not head:
                self._refuse("the stream ended before its preface", "stream-cut")
            if len(head) < seen:
                self._refuse("the stream ended inside its preface", "stream-cut")
            if head != PREFACE[:seen]:  # 060-PREF-11: at the first byte that differs
                other = _OTHER_KINDS.get(head, "")
                self._refuse(f"a direction begins with the line 🪢: iltp/1{other}", "preface", head)
        yield from self._source.read_exact(len(PREFACE))
        self._out.append(PREFACE_ITEM)
        if (yield from self._source.peek(1)) == b"\n":
            self._refuse("no blank line follows the preface", "preface-blank")  # 060-PREF-07

    def _end_block(self) -> None:
        self._out.append(BLANK_LINE)
        self._block_bytes, self._holds_records = 0, False
        self._comment_allowed = True

    def _read_facts(self) -> Reader[None]:
        """The fact lines from here on that lie in one chunk, or one line that lies across several."""
        if self._holds_records:
            self._refuse("a record batch holds no fact lines", "block-mixed")
        start = self._source.consumed
        chunk, position = self._source.head
        match = self._fact_run.match(chunk, position, position + self._at_once)
        if match is not None:
            run = match[0]
            self._source.skip(len(run))
        else:
            run = (yield from self._source.read_line(self._limits.max_fact_line_bytes)) + b"\n"
        self._add_run(run, start)

    def _read_packed(self) -> Reader[None]:
        """Fact lines as one deflated item; they are checked as if they stood here (070-ZIP-03)."""
        if self._holds_records:
            self._refuse("a record batch holds no fact lines", "block-mixed")
        start = self._source.consumed
        yield from self._source.read_exact(len(PACKED))
        whole, size = parse_head((yield from self._source.read_line(MAX_HEAD_BYTES)))
        lines = unpack((yield from self._source.read_exact(size)), whole)
        if self._fact_run.fullmatch(lines) is None:
            self._refuse("a packed item holds fact lines only", "packed-lines")
        packed = self._source.consumed - start
        for run in runs_of(lines, self._at_once):  # a few bytes may hold many lines
            self._add_run(run, start)
            if isinstance(last := self._out[-1], FactLines):
                self._out[-1], packed = replace(last, packed=packed), 0
            if self._out_bytes >= self._at_once:
                yield

    def _add_run(self, run: bytes, start: int) -> None:
        self._comment_allowed = True
        room = self.max_block_bytes - self._block_bytes
        if len(run) <= room:
            self._add_facts(run, start)
            return
        self._add_facts(run[: run.rfind(b"\n", 0, room) + 1], start)
        self._refuse(f"a fact block has at most {self.max_block_bytes} bytes", "block-size")

    def _add_facts(self, run: bytes, start: int) -> None:
        """Whole fact lines; those before a faulty one count."""
        plain = parse_plain_run(run)
        if plain is not None:
            self._hand_out(plain if isinstance(plain, FactColumn) else tuple(plain), len(run))
            return
        max_bytes = self._limits.max_fact_line_bytes
        lines = run.split(b"\n")[:-1]
        facts: list[Fact] = []
        size = len(run)
        try:
            facts.extend(parse_fact(line, max_bytes) for line in lines)  # keeps those before a fault
        except InvalidText as error:
            size = sum(map(len, lines[: len(facts)])) + len(facts)
            place = f"byte {start + size}"
            raise InvalidStream(error.message, rule=error.rule, place=place, found=error.found) from None
        finally:
            if facts:
                self._hand_out(tuple(facts), size)

    def _hand_out(self, facts: Sequence[Fact], size: int) -> None:
        self._block_bytes += size
        self._out_bytes += size + FACT_ITEM_BYTES
        self._out.append(FactLines(facts, size))

    def _read_comment(self) -> Reader[None]:
        if not self._comment_allowed:  # 060-CMT-07
            self._refuse("two comment lines follow each other", "comment-repeated")
        line = yield from self._source.read_line(self._limits.max_comment_line_bytes - 1)
        if b"\r" in line:
            self._refuse("a comment holds no CR", "comment-cr", line)
        try:
            line.decode("utf-8")  # 060-CMT-12: NFC is not asked for
        except UnicodeDecodeError:
            self._refuse("a comment is UTF-8 text", "comment-utf8", line)
        self._comment_allowed = False
        if self.on_comment is not None:
            self.on_comment(self._source.consumed - len(line) - 1, line)

    def _read_marked(self) -> Reader[None]:
        marker = yield from self._read_marker()
        if marker == RECORD:
            yield from self._read_record()
        elif marker == PIECE:
            yield from self._read_resource()
        elif marker == PACKED:
            yield from self._read_packed()
        elif marker == KNOT:
            self._refuse("the knot line stands only at the beginning", "preface-repeated")  # 060-PREF-09
        else:
            self._refuse("the trailer-hash form is not supported", "trailer")  # 060-WSF-09

    def _read_marker(self) -> Reader[bytes]:
        """The marker that stands here, matched whole (060-DISP-08) but refused at its first wrong byte."""
        chunk, start = self._source.head
        if chunk.startswith(RECORD, start):
            return RECORD
        known = (*MARKERS, PACKED) if self.accepts_packed else MARKERS
        for size in range(1, _LONGEST_MARKER + 1):
            head = yield from self._source.peek(size)
            if not any(marker.startswith(head) for marker in known):
                self._refuse("no stream item begins with these bytes", "dispatch", head)
            if len(head) < size:
                self._refuse("the stream ended inside a marker", "stream-cut")
            if head in known:
                return head
        raise AssertionError("the longest marker was matched whole")

    def _read_record(self) -> Reader[None]:
        if self._block_bytes:
            self._refuse("a fact block holds no records", "block-mixed")
        self._holds_records = True
        self._comment_allowed = True
        if self._take_whole_records():
            return
        if self._is_cut_short():
            yield  # most likely the next chunk holds the rest, and then this is a whole record like the others
            self._source.join()
            if self._take_whole_records():
                return
        data = yield from read_frame(self._source, self._record_limits, self.record_gate)
        self._out.append(RecordItem(claimed_hash(data), data))

    def _is_cut_short(self) -> bool:
        """Whether a short record begins here that the chunk ends in, with nothing to say against it so far."""
        chunk, start = self._source.head
        line_end = chunk.find(b"\n", start)
        if line_end == -1 or len(chunk) - start > SHORT_RECORD_BYTES:
            return False
        if self.record_gate is not None:
            self.record_gate(claimed_hash(chunk[start:line_end]))
        try:
            end = delimit(chunk, start, self._record_limits)
        except InvalidStream:
            return False
        return end is None or end - start <= SHORT_RECORD_BYTES

    def _take_whole_records(self) -> bool:
        """Records that lie whole in the first chunk, each found by one match; False if the first needs the long way."""
        chunk, start = self._source.head
        position = start
        # The gate is for records that would have to be waited for; these are here already.
        ends = delimit_run(chunk, position, len(chunk), self._record_limits)
        if ends:
            records = [chunk[begin:end] for begin, end in zip([start, *ends], ends, strict=False)]
            self._out += map(_make, zip(claimed_hashes(records), records, strict=True))
            position = ends[-1]
        while chunk.startswith(RECORD, position):
            try:
                end = delimit(chunk, position, self._record_limits)
            except InvalidStream:
                break  # read by line it fails at the same place, whatever the chunks were
            if end is None or end > len(chunk):
                break
            self._out.append(RecordItem(claimed_hash(chunk, position), chunk[position:end]))
            position = end
        if position > start:
            self._source.skip(position - start)
        return position > start

    def _read_resource(self) -> Reader[None]:
        limits = self._limits
        if self._block_bytes:  # 060-RES-20 (P22)
            self._refuse("a resource stands before a block, not inside one", "resource-place")
        self._resources += 1
        if self._resources > limits.max_resources:  # 060-RES-39: per direction, duplicates included
            self._refuse(f"a direction has at most {limits.max_resources} resources", "resource-count")
        yield from self._source.read_exact(len(PIECE))
        marker = yield from self._source.read_line(limits.max_resource_marker_bytes - len(PIECE))
        name = parse_marker_line(marker)
        lines: list[bytes] = []
        room = limits.max_resource_bytes
        while line := (yield from self._read_body_line(room)):
            lines.append(line)
            if len(lines) > limits.max_resource_lines:
                self._refuse(f"a resource has at most {limits.max_resource_lines} lines", "resource-lines")
            room -= len(line) + 1  # 060-LIM-04: the recovered bytes, with the LF before each further line
        if not lines:
            self._refuse("a resource has at least one line", "resource-empty")  # 060-RES-11
        self._comment_allowed = True
        self._out.append(Resource(name.id, name.kind, b"\n".join(lines)))

    def _read_body_line(self, room: int) -> Reader[bytes]:
        """The next body line, empty at the end of the block."""
        try:
            line = yield from self._source.read_line(max(room, 0))
        except InvalidStream as error:
            if error.rule != "line-length":
                raise
            self._refuse(f"a resource has at most {self._limits.max_resource_bytes} bytes", "resource-size")
        if not line:
            return line
        if line.startswith((b"#", *MARKERS)):  # 060-RES-16, 060-RES-17
            self._refuse("a resource line begins with no marker and is no comment", "resource-marker", line)
        if b"\r" in line:  # 060-RES-14
            self._refuse("a resource holds no CR", "resource-cr", line)
        decode_text(line, "resource")
        return line

    def _refuse(self, message: str, rule: str, found: bytes = b"") -> NoReturn:
        place = f"byte {self._source.consumed}"
        raise InvalidStream(message, rule=rule, place=place, found=excerpt(found) if found else "")
