"""Captured streams: written as they pass, read back, and told item by item.

Rule: a capture holds the exact bytes of both directions and when they passed; what they mean is worked out when it is
read. A capture file is JSON Lines: `{"ns": …, "way": "in"|"out", "data": "<base64>"}`; a file that begins with the
knot line is one direction, raw.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import Lock
from typing import BinaryIO, Literal

from lace.errors import InvalidStream
from lace.iltp.items import BlankLine, EndOfStream, FactLines, Item, Preface, RecordItem, Resource
from lace.iltp.markers import KNOT
from lace.iltp.reader import StreamReader
from lace.notation.factline import format_fact
from lace.notation.jsontext import read_json
from lace.runtime.clock import Clock
from lace.values import dataclass

Way = Literal["in", "out"]
READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Passed:
    """Some bytes of one direction at one moment (nanoseconds since the capture began)."""

    ns: int
    way: Way
    data: bytes


class Capture:
    """A tap that writes what passes to a file."""

    def __init__(self, file: BinaryIO, clock: Clock) -> None:
        self._file = file
        self._clock = clock
        self._start_ns = clock.monotonic_ns()
        self._lock = Lock()

    def received(self, data: bytes) -> None:
        """Bytes of the peer."""
        self._write("in", data)

    def sent(self, data: bytes) -> None:
        """Our bytes."""
        self._write("out", data)

    def _write(self, way: Way, data: bytes) -> None:
        row = {
            "ns": self._clock.monotonic_ns() - self._start_ns,
            "way": way,
            "data": base64.b64encode(data).decode("ascii"),
        }
        with self._lock:
            self._file.write(json.dumps(row).encode() + b"\n")


def read_capture(path: Path) -> Iterator[Passed]:
    """What a capture file holds, in order."""
    with path.open("rb") as file:
        head = file.read(len(KNOT))
        file.seek(0)
        if head == KNOT:
            while data := file.read(READ_BYTES):
                yield Passed(0, "in", data)
            return
        for number, line in enumerate(file, start=1):
            yield _row(line, f"{path}:{number}")


def _row(line: bytes, place: str) -> Passed:
    try:
        row = read_json(line)
        way: Way = "out" if row["way"] == "out" else "in"
        return Passed(int(row["ns"]), way, base64.b64decode(row["data"], validate=True))
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise InvalidStream("not a line of a captured stream", rule="capture", place=place) from error


@dataclass(frozen=True, slots=True)
class Told:
    """One line of a decoded stream: when, which way, how many bytes, what kind of item, and what it says."""

    ns: int
    way: Way
    offset: int
    size: int
    kind: str
    text: str
    facts: tuple[str, ...] = ()


def _keep_comment(comments: deque[tuple[int, bytes]], offset: int, line: bytes) -> None:
    comments.append((offset, line))


class TraceReader:
    """Turns the bytes of both directions into lines; a direction that breaks the rules is told once, then ignored."""

    def __init__(self) -> None:
        self._readers: dict[Way, StreamReader] = {"in": StreamReader(), "out": StreamReader()}
        self._comments: dict[Way, deque[tuple[int, bytes]]] = {"in": deque(), "out": deque()}
        for way, reader in self._readers.items():
            reader.accepts_packed = True  # whether it was agreed is not this reader's business
            reader.on_comment = partial(_keep_comment, self._comments[way])
        self._offsets: dict[Way, int] = {"in": 0, "out": 0}
        self._blocks: dict[Way, int] = {"in": 0, "out": 0}
        self._broken: set[Way] = set()

    def feed(self, passed: Passed) -> Iterator[Told]:
        """The items that these bytes complete."""
        if passed.way in self._broken:
            return
        self._readers[passed.way].receive(passed.data)
        yield from self._read(passed.ns, passed.way)

    def end(self, ns: int, way: Way) -> Iterator[Told]:
        """The direction is closed."""
        if way not in self._broken:
            self._readers[way].receive_eof()
            yield from self._read(ns, way)

    def _read(self, ns: int, way: Way) -> Iterator[Told]:
        reader = self._readers[way]
        while True:
            try:
                items = reader.read_block()
            except InvalidStream as error:
                self._broken.add(way)
                yield Told(ns, way, self._offsets[way], 0, "fault", f"{error} [{error.rule}]")
                return
            if not items:
                return
            for item in items:
                yield from self._tell_comments(ns, way)
                yield self._tell(ns, way, item)

    def _tell_comments(self, ns: int, way: Way) -> Iterator[Told]:
        """Comments are not items, but they take up room: what follows one begins after it."""
        waiting = self._comments[way]
        while waiting and waiting[0][0] <= self._offsets[way]:
            offset, line = waiting.popleft()
            self._offsets[way] += len(line) + 1
            yield Told(ns, way, offset, len(line) + 1, "comment", line.decode())

    def _tell(self, ns: int, way: Way, item: Item) -> Told:
        kind, text, size, facts = self._describe(way, item)
        offset = self._offsets[way]
        self._offsets[way] += size
        return Told(ns, way, offset, size, kind, text, facts)

    def _describe(self, way: Way, item: Item) -> tuple[str, str, int, tuple[str, ...]]:
        match item:
            case Preface():
                return "preface", "iltp/1", 13, ()
            case FactLines(facts, size, packed):
                lines = tuple(format_fact(fact) for fact in facts)
                names = dict.fromkeys(fact.predicate.name for fact in facts)
                counts = (f"{sum(fact.predicate.name == name for fact in facts)} {name}" for name in names)
                return "facts", ", ".join(counts), size if packed is None else packed, lines
            case Resource():
                size = len(item.id) + len(item.kind) + len(item.text) + 10
                return "resource", f"{item.id} {item.kind}", size, tuple(item.text.decode().split("\n"))
            case RecordItem(claimed, data):
                return "record", claimed, len(data), ()
            case BlankLine():
                self._blocks[way] += 1
                return "end", f"of block {self._blocks[way]}", 1, ()
            case EndOfStream(block_open):
                return "close", "inside a block" if block_open else "at the end of a block", 0, ()
