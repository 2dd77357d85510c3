"""Content of any size as records (010): one Plex up to the limit of a record, above it a manifest of chunks.

Rule: reading and writing hold one or two chunks in memory, whatever the content's size. A manifest is believed only
after its ranges, its chunks' lengths and, if it states one, its full hash have been checked. Content is bytes, a file
or anything with `read`; a file is opened and closed here, and what the caller opened stays the caller's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Protocol

from lace.errors import LimitExceeded
from lace.limits import RecordLimits
from lace.notation.digest import Hasher, hasher
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.porcelain.cutting import INLINE_BYTES
from lace.records.manifest import (
    CHUNK_LINK,
    FULL_HASH,
    TOTAL_LENGTH,
    Piece,
    content_length,
    full_hash,
    is_manifest,
    manifest_pieces,
    refuse_manifest,
)
from lace.records.model import Blob, Header, Plex, Record, Seal, sorted_headers
from lace.records.validate import ValidRecord
from lace.values import dataclass

CHUNK_FOLDER = "chunks"  # nested manifests are at NAME/chunks/START..END, beside the content they belong to

Load = Callable[[RecordHash], ValidRecord]
Sign = Callable[[Plex], Plex | Seal]
Cut = Callable[["ByteReader"], Iterator[bytes]]
"""Returns the chunks of a content in their order; together they are all of it."""


class ByteReader(Protocol):
    """Anything that returns up to `size` bytes, and none at its end."""

    def read(self, size: int, /) -> bytes: ...


Content = bytes | bytearray | memoryview | Path | ByteReader
"""What can be stored: bytes, a file by its path, or anything with `read(size)`."""
Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CountedContent:
    """A source that reports how much was read from it."""

    source: ByteReader
    progress: Progress

    def read(self, size: int, /) -> bytes:
        data = self.source.read(size)
        self.progress(len(data))
        return data


@contextmanager
def opened_content(content: Content) -> Iterator[tuple[ByteReader, int | None]]:
    """The content as something to read from, and its size if that is known."""
    if isinstance(content, Path):
        with content.open("rb") as file:
            yield file, content.stat().st_size
    elif isinstance(content, bytes | bytearray | memoryview):
        yield BytesIO(content), memoryview(content).nbytes
    elif not hasattr(content, "read"):
        advice = "; encode text first" if isinstance(content, str) else f", not {type(content).__name__}"
        raise TypeError(f"content must be bytes, a Path or an open file{advice}")
    else:
        yield content, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a Plex says about its content."""

    group: str
    app: str
    name: str
    tai: TAI
    headers: tuple[Header, ...] = ()

    def plex(self, limits: RecordLimits, blob: Blob, more: tuple[Header, ...] = (), name: str = "") -> Plex:
        """The Plex of this heading over a Blob; its headers in canonical order."""
        return Plex(
            group=self.group,
            app=self.app,
            name=name or self.name,
            tai=self.tai,
            headers=sorted_headers([*self.headers, *more]),
            blob=blob,
            limits=limits,
        )


def write_content(
    source: ByteReader,
    heading: Heading,
    *,
    add: Callable[[Record], RecordHash],
    sign: Sign,
    limits: RecordLimits,
    size: int | None = None,
    cut: Cut | None = None,
) -> RecordHash:
    """Hand the records that hold the content to `add`, the one that stands for all of it last; its hash.

    `size`, where the caller knows it, lets a manifest state the full hash. If the source fails half way, chunks already
    added stay: they are valid Blobs, and the next attempt finds them there. With `cut`, content beyond a kilobyte
    becomes the chunks that it returns, so that they can be shared.
    """
    heading.plex(limits, Blob(b""))  # what is wrong with the heading is told before anything is read or added
    if cut is not None and (size is None or size > INLINE_BYTES):
        pieces, whole_hash = _add_chunks(cut(source), add, limits, size)
        if pieces:
            return _add_manifest(pieces, heading, whole_hash, add, sign, limits)
        return add(sign(heading.plex(limits, Blob(b""))))
    first = read_fully(source, limits.max_data_bytes)
    second = read_fully(source, limits.max_data_bytes) if len(first) == limits.max_data_bytes else b""
    if not second:
        return add(sign(heading.plex(limits, Blob(first, limits))))
    held = [second, first]
    del first, second  # so that each chunk is let go as soon as it is stored
    pieces, whole_hash = _add_chunks(_equal_chunks(source, held, limits), add, limits, size)
    return _add_manifest(pieces, heading, whole_hash, add, sign, limits)


def read_fully(source: ByteReader, size: int) -> bytes:
    """Exactly `size` bytes, or all that is left."""
    data = source.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]
    missing = size - len(data)
    while missing and (data := source.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def _equal_chunks(source: ByteReader, held: list[bytes], limits: RecordLimits) -> Iterator[bytes]:
    """What was read already, and the rest in pieces as large as a record may hold."""
    while data := held.pop() if held else read_fully(source, limits.max_data_bytes):
        yield data


def _add_chunks(
    chunks: Iterator[bytes], add: Callable[[Record], RecordHash], limits: RecordLimits, size: int | None
) -> tuple[list[Piece], str]:
    """Every chunk as a Blob; where each stretch went, and the hash of the whole if its size was known."""
    pieces: list[Piece] = []
    whole = _whole_hasher(size) if size is not None else None
    position = 0
    for data in chunks:
        if whole is not None:
            whole.update(data)
        pieces.append(Piece(position, position + len(data), add(Blob(data, limits))))
        position += len(data)
    if whole is None or size != position:  # a file that changed its size meanwhile has no hash to state
        return pieces, ""
    return pieces, RecordHash.of("B", whole.digest())


def _whole_hasher(size: int) -> Hasher:
    """A hasher for the Blob that the whole content would be."""
    whole = hasher()
    whole.update(b"Data-Length: %d\n\n" % size)
    return whole


def _add_manifest(
    pieces: list[Piece],
    heading: Heading,
    whole_hash: str,
    add: Callable[[Record], RecordHash],
    sign: Sign,
    limits: RecordLimits,
) -> RecordHash:
    """Add the manifest of all pieces; if they are too many for one Plex, a manifest of nested manifests."""
    more: list[Header] = [(TOTAL_LENGTH, str(pieces[-1].end))]
    if whole_hash:
        more.append((FULL_HASH, whole_hash))
    room = limits.max_extra_headers - len(heading.headers) - len(more)
    depth = 1
    while len(pieces) > room:
        depth += 1
        if depth > limits.max_manifest_depth or room < 1:
            raise LimitExceeded("max_manifest_depth", limits.max_manifest_depth, f"{heading.name} has too many chunks")
        fan_out = limits.max_extra_headers - 1
        groups = [pieces[i : i + fan_out] for i in range(0, len(pieces), fan_out)]
        pieces = [_add_nested(group, heading, add, limits) for group in groups]
    links = tuple(piece.header() for piece in pieces)
    return add(sign(heading.plex(limits, Blob(b""), (*links, *more))))


def _add_nested(
    pieces: list[Piece], heading: Heading, add: Callable[[Record], RecordHash], limits: RecordLimits
) -> Piece:
    """Add a manifest of some of the pieces, with positions relative to its own start."""
    start, end = pieces[0].start, pieces[-1].end
    bare = Heading(group=heading.group, app=heading.app, name=heading.name, tai=heading.tai)
    links = tuple(piece.header(start) for piece in pieces)
    name = f"{heading.name}/{CHUNK_FOLDER}/{start}..{end}"
    plex = bare.plex(limits, Blob(b""), (*links, (TOTAL_LENGTH, str(end - start))), name)
    return Piece(start, end, add(plex))


def read_content(record: ValidRecord, *, load: Load, limits: RecordLimits) -> Iterator[memoryview]:
    """The content of a record, chunk by chunk; InvalidRecord if a manifest is wrong."""
    if not is_manifest(record):
        yield record.data
        return
    stated = full_hash(record)
    whole = None if stated is None else _whole_hasher(content_length(record))
    for data in _read_manifest(record, load, limits, 1):
        if whole is not None:
            whole.update(data)
        yield data
    if whole is not None and (found := RecordHash.of("B", whole.digest())) != stated:
        refuse_manifest("the content does not match its full hash", record, FULL_HASH, found)


def is_same_content(record: ValidRecord, file: BinaryIO, *, load: Load, limits: RecordLimits) -> bool:
    """Whether a file holds exactly the content of a record: never a guess, every byte is compared.

    Lengths come first, then the record's data, the full hash that a manifest states, or its chunks one by one.
    """
    size = content_length(record)
    if file.seek(0, os.SEEK_END) != size:
        return False
    file.seek(0)
    if not is_manifest(record) or (stated := full_hash(record)) is None:
        return all(read_fully(file, len(piece)) == piece for piece in read_content(record, load=load, limits=limits))
    whole = _whole_hasher(size)
    while data := file.read(limits.max_data_bytes):
        whole.update(data)
    return RecordHash.of("B", whole.digest()) == stated


def _read_manifest(record: ValidRecord, load: Load, limits: RecordLimits, depth: int) -> Iterator[memoryview]:
    if depth > limits.max_manifest_depth:  # 010-CONV-06
        raise LimitExceeded("max_manifest_depth", limits.max_manifest_depth, f"manifest {record.hash}")
    for piece in manifest_pieces(record):
        inner = load(piece.target)
        length, found = piece.end - piece.start, content_length(inner)
        if found != length:
            refuse_manifest(f"{piece.target} does not hold {length} bytes", record, CHUNK_LINK, str(found))
        if inner.type == "B":
            yield inner.data
        elif is_manifest(inner):  # 010-CONV-05: a Plex among the pieces is a nested manifest, never content
            yield from _read_manifest(inner, load, limits, depth + 1)
        else:
            refuse_manifest(f"{piece.target} is not a manifest", record, CHUNK_LINK, piece.target)
