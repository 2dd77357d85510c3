"""Bundles: stored records back to back in a file, the form that streams carry (010, 060).

Rule: no byte of a bundle is lost. What is not a record comes out as Rejected, with its place and reason, and reading
goes on at the next record that can be delimited.

The index of a bundle is the file beside it with `.idx` at the end: one JSON object that names the bundle's length and
the offset of every Nth record, so that a reader can start in the middle. A bundle without one, or with one of another
length, is read from its start: only a record's own frame says where the next begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, Protocol, Self, TypeVar

from lace.errors import InvalidInput, InvalidStream, StoreError
from lace.limits import RecordLimits
from lace.notation.closing import Closing
from lace.notation.jsontext import read_json
from lace.records.frame import MARKLINE, MARKLINE_BYTES, delimit, delimit_run, frame_end, max_head_bytes
from lace.records.grammar import MARK
from lace.records.validate import validate
from lace.thresholds import BundleThresholds
from lace.values import dataclass

INDEX_SUFFIX = ".idx"
INDEX_EVERY = 256
INDEX_HEAD_BYTES = 1 << 10  # of an index, beside its offsets
_USUAL = BundleThresholds()
HASHED_PER_BYTE = 8  # while looking for records among damage


class Frame(NamedTuple):
    """The bytes of one delimited record, not validated, and where they stood."""

    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class RejectedBytes:
    """Bytes that are not a valid record, where they were, and which rule they break."""

    offset: int
    data: bytes
    rule: str
    reason: str

    @classmethod
    def because(cls, frame: Frame, error: InvalidInput) -> Self:
        """A frame refused by an error."""
        return cls(frame.offset, frame.data, error.rule or type(error).__name__, str(error))


class BundlePlace(Protocol):
    """Where a bundle lies: a path, or whatever else has a name, a length and bytes."""

    @property
    def name(self) -> str: ...
    def with_name(self, name: str) -> Self: ...
    def stat(self) -> Any: ...
    def open(self, mode: Literal["rb"]) -> BinaryIO: ...


Located = TypeVar("Located", bound=BundlePlace)


class BundleWriter(Closing):
    """Writes records to a bundle and its index; memory stays small."""

    def __init__(self, path: Path, *, index_every: int = INDEX_EVERY) -> None:
        self._path = path
        self._every = index_every
        self._offsets: list[int] = []
        self.records: int = 0
        self.bytes: int = 0
        self._file: BinaryIO = path.open("wb", buffering=_USUAL.read_bytes)

    def write(self, stored: bytes) -> None:
        """Append one stored record."""
        if self.records % self._every == 0:
            self._offsets.append(self.bytes)
        self._file.write(stored)
        self.records += 1
        self.bytes += len(stored)

    def close(self) -> None:
        """Finish the bundle, then its index."""
        if self._file.closed:
            return
        self._file.close()
        index = {"lace-bundle-index": 1, "bytes": self.bytes, "records": self.records, "every": self._every}
        index_path(self._path).write_text(json.dumps({**index, "offsets": self._offsets}) + "\n")


def index_path(path: Located) -> Located:
    """Where the index of a bundle is."""
    return path.with_name(path.name + INDEX_SUFFIX)


class BundleReader:
    """Reads a bundle from any record boundary, a bounded part of it in memory."""

    def __init__(
        self, path: BundlePlace, *, limits: RecordLimits | None = None, thresholds: BundleThresholds = _USUAL
    ) -> None:
        self._path = path
        self._thresholds = thresholds
        self._limits = limits or RecordLimits()
        try:
            self.bytes: int = path.stat().st_size
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from error
        self._offsets = self._read_index()

    def _read_index(self) -> list[int]:
        try:
            with index_path(self._path).open("rb") as file:  # one of ours is shorter than its bundle
                index = read_json(file.read(self.bytes + INDEX_HEAD_BYTES))
        except (OSError, ValueError):
            return []
        if not isinstance(index, dict) or index.get("lace-bundle-index") != 1 or index.get("bytes") != self.bytes:
            return []
        offsets = index.get("offsets")
        if not isinstance(offsets, list):
            return []
        inside = all(isinstance(offset, int) and 0 <= offset < self.bytes for offset in offsets)
        return offsets if inside else []

    def splits(self, wanted_bytes: int) -> list[tuple[int, int]]:
        """Ranges of about so many bytes that begin and end at records; one range if there is no index."""
        edges = [0]
        for offset in self._offsets:
            if offset - edges[-1] >= wanted_bytes:
                edges.append(offset)
        return list(zip(edges, [*edges[1:], self.bytes], strict=True)) if self.bytes else []

    def records(self, start: int = 0, end: int | None = None) -> Iterator[Frame | RejectedBytes]:
        """What begins in [start, end), in order; `start` is a record boundary."""
        stop = self.bytes if end is None else end
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                yield from read_frames(file, start, stop, self._limits, self._thresholds)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}") from error


class _Window:
    """The part of a file around the reading position."""

    def __init__(self, file: BinaryIO, offset: int, read_bytes: int) -> None:
        self._file = file
        self._read_bytes = read_bytes
        self.buffer = b""
        self.at = 0  # position in the buffer
        self._base = offset  # of the buffer in the file
        self.ended = False

    @property
    def offset(self) -> int:
        return self._base + self.at

    @property
    def ahead(self) -> int:
        return len(self.buffer) - self.at

    def more(self, at_least: int = 0) -> bool:
        """Read on; whether there was anything. A longer rest takes more at once, so that it is not copied often."""
        if self.ended:
            return False
        piece = self._file.read(max(self._read_bytes, at_least, self.ahead // 2))
        self.ended = not piece
        self._forget(piece)
        return not self.ended

    def _forget(self, piece: bytes = b"") -> None:
        self.buffer = self.buffer[self.at :] + piece
        self._base += self.at
        self.at = 0

    def has(self, end: int) -> bool:
        """Whether the buffer reaches to `end` bytes from the position on, after reading as much as that needs."""
        while self.ahead < end:
            if not self.more(end - self.ahead):
                return False
        return True

    def take(self, length: int) -> Frame:
        frame = Frame(self.offset, self.buffer[self.at : self.at + length])
        self.at += length
        if length > self._read_bytes:  # do not hold its bytes twice
            self._forget()
        return frame

    def take_run(self, stop: int, limits: RecordLimits) -> list[Frame]:
        """The frames before `stop` that are here whole and leave no question."""
        base, buffer = self._base, self.buffer
        places = list(pairwise([self.at, *delimit_run(buffer, self.at, stop - base, limits)]))
        if len(buffer) > self._read_bytes:  # `take` does not hold the bytes of a long one twice
            places = list(takewhile(lambda place: place[1] - place[0] <= self._read_bytes, places))
        if places:
            self.at = places[-1][1]
        return [Frame(base + start, buffer[start:end]) for start, end in places]


class _Damage:
    """A stretch that is not a record, while it grows."""

    def __init__(self, first: Frame, error: InvalidInput) -> None:
        self._first = RejectedBytes.because(first, error)
        self._pieces = [first.data]
        self.size = len(first.data)

    def add(self, piece: Frame) -> None:
        self._pieces.append(piece.data)
        self.size += len(piece.data)

    def rejected(self) -> RejectedBytes:
        return replace(self._first, data=b"".join(self._pieces))


def read_frames(
    file: BinaryIO, start: int, stop: int, limits: RecordLimits, thresholds: BundleThresholds = _USUAL
) -> Iterator[Frame | RejectedBytes]:
    """The frames and the damage of a file from its present position on, up to what begins before `stop`."""
    finder = _FrameFinder(_Window(file, start, thresholds.read_bytes), limits)
    window = finder.window
    damage: _Damage | None = None
    while window.offset < stop and window.has(1):
        if damage is None:
            yield from window.take_run(stop, limits)
            if window.offset >= stop:
                break
        try:
            length = finder.length() if damage is None else finder.length_after_damage()
        except InvalidInput as error:
            piece = finder.skip()
            if damage is None:
                damage = _Damage(piece, error)
            else:
                damage.add(piece)
            if damage.size < thresholds.rejected_piece_bytes:
                continue
        if damage is not None:
            yield damage.rejected()
            damage = None
        else:
            yield window.take(length)
    if damage is not None:
        yield damage.rejected()


class _FrameFinder:
    """Where the frame at the reading position ends, and where the next may begin if there is none.

    Any markline may begin a record, also in the middle of a line: data before it need not end with LF. So that whoever
    writes many of them cannot have everything looked at many times, a try looks at one head at most and hashes no more
    than HASHED_PER_BYTE allows, over the whole file.
    """

    def __init__(self, window: _Window, limits: RecordLimits) -> None:
        self.window = window
        self._limits = limits
        self._start = window.offset
        self._hashed = 0

    def length(self) -> int:
        """The length of the frame at the position, all of it in the buffer; InvalidInput if there is none."""
        window = self.window
        while (end := delimit(window.buffer, window.at, self._limits)) is None:
            if not window.more():
                raise _cut()
        return self._whole(end - window.at)

    def length_after_damage(self) -> int:
        """The same without a reason: the one for the damage is known."""
        window = self.window
        window.has(max_head_bytes(self._limits))
        end = frame_end(window.buffer, window.at, self._limits)
        if end is None:
            raise _cut()
        return self._whole(end - window.at)

    def _whole(self, length: int) -> int:
        window = self.window
        if not window.has(length):
            raise _cut()
        if not window.buffer.startswith(MARK, window.at + length):
            window.has(length + len(MARK))
            behind = window.buffer[window.at + length : window.at + length + len(MARK)]
            if behind and behind != MARK:
                self._require_valid(length)
        return length

    def _require_valid(self, length: int) -> None:
        """No record follows: either garbage does, or this frame's own length is damaged. Its hash knows."""
        window = self.window
        allowed = 2 * self._limits.max_data_bytes + HASHED_PER_BYTE * (window.offset - self._start)
        if self._hashed + length > allowed:
            raise InvalidStream("neither a record nor the end follows", rule="bundle-gap")
        self._hashed += length
        validate(window.buffer[window.at : window.at + length], limits=self._limits, verify_signature=False)

    def skip(self) -> Frame:
        """At least one byte, up to the next place where a record may begin or as far as the buffer reaches."""
        window = self.window
        found = MARKLINE.search(window.buffer, window.at + 1)
        if found is None:
            window.more()
            found = MARKLINE.search(window.buffer, window.at + 1)
        if found is not None:
            return window.take(found.start() - window.at)
        tail = 0 if window.ended else MARKLINE_BYTES - 1  # a markline may begin in the last bytes
        return window.take(max(1, window.ahead - tail))


def _cut() -> InvalidStream:
    return InvalidStream("the bundle ends inside a record", rule="bundle-cut")
