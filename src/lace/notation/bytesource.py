"""A byte buffer for readers that wait: feed it any split of a stream and the same items come out.

Rule: it knows lines, counts and the end of the stream, nothing of what they mean. A reader is a generator:

    line = yield from source.read_line(1024)

where each bare `yield` says "feed me". The reader asks only for what a limit allows, and the source takes no more
out of its chunks than was asked for; so what it holds is what its feeder handed in and the reader has not taken yet.
Chunks are kept as they came: a large run of bytes is joined once, where the reader wants it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from typing import TypeVar

from lace.errors import InvalidStream

T = TypeVar("T")
Reader = Generator[None, None, T]
Piece = bytes | memoryview


class ByteSource:
    """Chunks in, lines and runs of bytes out."""

    __slots__ = ("_chunks", "_ended", "_head", "_position", "_waiting", "consumed")

    def __init__(self, data: bytes = b"", *, ended: bool = False) -> None:
        self._head = data
        self._position = 0
        self._chunks: deque[bytes] = deque()
        self._waiting = 0  # bytes in _chunks
        self._ended = ended
        self.consumed: int = 0  # bytes handed out since the beginning

    def feed(self, data: bytes | bytearray | memoryview) -> None:
        """Add the next bytes of the stream."""
        if self._ended:
            raise ValueError("the stream has ended")
        if not data:
            return
        chunk = data if isinstance(data, bytes) else bytes(data)
        if self._position == len(self._head):
            self._head, self._position = chunk, 0
        else:
            self._chunks.append(chunk)
            self._waiting += len(chunk)

    def feed_eof(self) -> None:
        """Say that no byte follows."""
        self._ended = True

    @property
    def buffered(self) -> int:
        """How many bytes wait to be read."""
        return len(self._head) - self._position + self._waiting

    @property
    def ended(self) -> bool:
        """Whether every byte of an ended stream has been read."""
        return self._ended and not self.buffered

    @property
    def head(self) -> tuple[bytes, int]:
        """The first chunk and the place in it: for loops that match many items at once and then `skip` them."""
        return self._head, self._position

    def skip(self, count: int) -> None:
        """Leave behind so many bytes of the first chunk."""
        self._position += count
        self.consumed += count
        if self._position == len(self._head):
            self._advance()

    def join(self) -> None:
        """Make one chunk of the rest of the first and the next, for loops that match within a chunk."""
        if self._chunks:
            rest = self._head[self._position :]
            self._advance()
            self._head = rest + self._head

    def take_line(self, max_bytes: int) -> bytes | None:
        """The next line without its LF; None if it is not all here yet. For loops that cannot afford a generator."""
        start = self._position
        end = self._head.find(b"\n", start, start + max_bytes + 1)
        if end < 0:
            return self._take_line_across(max_bytes)
        self._position = end + 1
        self.consumed += end + 1 - start
        line = self._head[start:end]
        if end + 1 == len(self._head):
            self._advance()
        return line

    def _take_line_across(self, max_bytes: int) -> bytes | None:
        """A line that is not in the first chunk: gather small pieces, never copy the chunk that holds its end."""
        room = max_bytes + 1
        while True:
            left = len(self._head) - self._position
            if left >= room:
                raise self._too_long(max_bytes)
            if not self._chunks:
                if self._ended and left:
                    raise self._cut("a line")
                return None
            following = self._chunks[0]
            end = following.find(b"\n", 0, room - left)
            tail = self._head[self._position :]
            if end >= 0:
                self._advance()
                self._position = end + 1
                self.consumed += left + end + 1
                line = tail + following[:end]
                if end + 1 == len(following):
                    self._advance()
                return line
            self._advance()
            self._head = tail + following

    def _advance(self) -> None:
        """Go to the next chunk."""
        self._position = 0
        if self._chunks:
            self._head = self._chunks.popleft()
            self._waiting -= len(self._head)
        else:
            self._head = b""

    def _cut(self, what: str) -> InvalidStream:
        return InvalidStream(f"the stream ended inside {what}", rule="stream-cut", place=f"byte {self.consumed}")

    def _too_long(self, max_bytes: int) -> InvalidStream:
        return InvalidStream(f"a line has at most {max_bytes} bytes", rule="line-length", place=f"byte {self.consumed}")

    def read_line(self, max_bytes: int) -> Reader[bytes]:
        """The next line without its LF; InvalidStream if it is longer than `max_bytes` or the stream ends in it."""
        while (line := self.take_line(max_bytes)) is None:
            if self._ended:
                raise self._cut("a line")
            yield
        return line

    def read_pieces(self, count: int) -> Reader[list[Piece]]:
        """The next `count` bytes as the pieces they came in, not copied."""
        pieces: list[Piece] = []
        missing = count
        while missing:
            here = len(self._head) - self._position
            if not here:
                if self._ended:
                    raise self._cut(f"a run of {count} bytes")
                yield
                continue
            size = min(here, missing)
            whole = size == len(self._head)
            pieces.append(self._head if whole else memoryview(self._head)[self._position : self._position + size])
            missing -= size
            self.consumed += size
            self._position += size
            if self._position == len(self._head):
                self._advance()
        return pieces

    def read_exact(self, count: int) -> Reader[bytes]:
        """The next `count` bytes, joined once."""
        pieces = yield from self.read_pieces(count)
        return b"".join(pieces)

    def peek(self, count: int) -> Reader[bytes]:
        """Up to `count` bytes from here on without taking them; fewer only at the stream's end. For small counts."""
        while self.buffered < count and not self._ended:
            yield
        seen = self._head[self._position : self._position + count]
        for chunk in self._chunks:
            if len(seen) >= count:
                break
            seen += chunk[: count - len(seen)]
        return seen
