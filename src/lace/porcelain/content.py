"""Content of any size as records (010): one Plex up to what a record may hold, a manifest of chunks above it.

Rule: reading and writing hold one or two chunks in memory, whatever the content's size. A manifest is believed only
after its ranges, its chunks' lengths and, where it states one, its full hash have been checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, Protocol

from lace.errors import InvalidRecord, InvalidText, LimitExceeded
from lace.limits import RecordLimits
from lace.notation.digest import Hasher, hasher
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.records.model import Blob, Header, Plex, Record, Seal, sorted_headers
from lace.records.validate import ValidRecord

CHUNK_LINK = "Chunk+Link"
TOTAL_LENGTH = "Content-Total-Length"
FULL_HASH = "Content-Hash-Full"
CHUNK_FOLDER = "chunks"  # nested manifests stand at NAME/chunks/START..END, beside the content they belong to

Load = Callable[[RecordHash], ValidRecord]
Sign = Callable[[Plex], Plex | Seal]


class Readable(Protocol):
    """Anything that gives up to `size` bytes, and none at its end."""

    def read(self, size: int, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a Plex says beside its content."""

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


class Piece(NamedTuple):
    """A stretch of the content, [start, end), and the record that holds it."""

    start: int
    end: int
    target: str

    def header(self, base: int = 0) -> Header:
        """The piece as a Chunk+Link, counted from `base`."""
        return CHUNK_LINK, f"{self.start - base}..{self.end - base} {self.target}"


def write_content(
    source: Readable,
    heading: Heading,
    *,
    add: Callable[[Record], RecordHash],
    sign: Sign,
    limits: RecordLimits,
    size: int | None = None,
) -> RecordHash:
    """Hand the records that hold the content to `add`, the one that stands for all of it last; its hash.

    `size`, where the caller knows it, lets a manifest state the full hash. If the source fails half way, chunks already
    added stay: they are valid Blobs, and the next attempt finds them there.
    """
    heading.plex(limits, Blob(b""))  # what is wrong with the heading is told before anything is read or added
    first = read_fully(source, limits.max_data_bytes)
    second = read_fully(source, limits.max_data_bytes) if len(first) == limits.max_data_bytes else b""
    if not second:
        return add(sign(heading.plex(limits, Blob(first, limits))))
    held = [second, first]
    del first, second  # so that each chunk is let go as soon as it is stored
    pieces, full_hash = _add_chunks(source, held, add, limits, size)
    return _add_manifest(pieces, heading, full_hash, add, sign, limits)


def read_fully(source: Readable, size: int) -> bytes:
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


def _add_chunks(
    source: Readable, held: list[bytes], add: Callable[[Record], RecordHash], limits: RecordLimits, size: int | None
) -> tuple[list[Piece], str]:
    """Every chunk as a Blob; where each stretch went, and the hash of the whole if its size was known."""
    pieces: list[Piece] = []
    whole = _whole_hasher(size) if size is not None else None
    position = 0
    while data := held.pop() if held else read_fully(source, limits.max_data_bytes):
        if whole is not None:
            whole.update(data)
        pieces.append(Piece(position, position + len(data), add(Blob(data, limits))))
        position += len(data)
    if whole is None or size != position:  # a file that grew meanwhile has no hash to state
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
    full_hash: str,
    add: Callable[[Record], RecordHash],
    sign: Sign,
    limits: RecordLimits,
) -> RecordHash:
    """The manifest of all pieces; where they are too many for one Plex, of nested manifests."""
    more: list[Header] = [(TOTAL_LENGTH, str(pieces[-1].end))]
    if full_hash:
        more.append((FULL_HASH, full_hash))
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
    """A manifest of some of the pieces, counted from its own start."""
    start, end = pieces[0].start, pieces[-1].end
    bare = Heading(group=heading.group, app=heading.app, name=heading.name, tai=heading.tai)
    links = tuple(piece.header(start) for piece in pieces)
    name = f"{heading.name}/{CHUNK_FOLDER}/{start}..{end}"
    plex = bare.plex(limits, Blob(b""), (*links, (TOTAL_LENGTH, str(end - start))), name)
    return Piece(start, end, add(plex))


def is_manifest(record: ValidRecord) -> bool:
    """Whether a record stands for content that lies in chunks."""
    return record.type != "B" and not record.data_length and any(n == TOTAL_LENGTH for n, _ in record.parts.headers)


def content_length(record: ValidRecord) -> int:
    """How many bytes of content a record stands for."""
    return _total_length(record) if is_manifest(record) else record.data_length


def read_content(record: ValidRecord, *, load: Load, limits: RecordLimits) -> Iterator[memoryview]:
    """The content that a record stands for, chunk by chunk; InvalidRecord where a manifest does not hold."""
    if not is_manifest(record):
        yield record.data
        return
    stated = [value for name, value in record.parts.headers if name == FULL_HASH]
    whole = _whole_hasher(_total_length(record)) if stated else None
    for data in _read_manifest(record, load, limits, 1):
        if whole is not None:
            whole.update(data)
        yield data
    if whole is not None and (found := RecordHash.of("B", whole.digest())) != stated[0]:
        _refuse("the content is not what its full hash says", record, FULL_HASH, found)


def _read_manifest(record: ValidRecord, load: Load, limits: RecordLimits, depth: int) -> Iterator[memoryview]:
    if depth > limits.max_manifest_depth:  # 010-CONV-06
        raise LimitExceeded("max_manifest_depth", limits.max_manifest_depth, f"manifest {record.hash}")
    for piece in manifest_pieces(record):
        inner = load(RecordHash.parse(piece.target))
        length = piece.end - piece.start
        if content_length(inner) != length:
            _refuse(f"{piece.target} does not hold {length} bytes", record, CHUNK_LINK, str(content_length(inner)))
        if inner.type == "B":
            yield inner.data
        elif is_manifest(inner):  # 010-CONV-05: a Plex is named as a manifest and read as nothing else
            yield from _read_manifest(inner, load, limits, depth + 1)
        else:
            _refuse(f"{piece.target} is no manifest", record, CHUNK_LINK, piece.target)


def manifest_pieces(record: ValidRecord) -> list[Piece]:
    """The pieces of a manifest, which cover its content without gap or overlap; or InvalidRecord."""
    pieces: list[Piece] = []
    position = 0
    for name, value in record.parts.headers:
        if name != CHUNK_LINK:
            continue
        piece = _parse_piece(record, value)
        if piece.start != position or piece.end <= piece.start:  # 010-CONV-03, 010-CONV-04
            _refuse("the ranges of a manifest follow each other without a gap", record, CHUNK_LINK, value)
        pieces.append(piece)
        position = piece.end
    if position != _total_length(record):
        _refuse("the ranges of a manifest cover its content", record, TOTAL_LENGTH, f"{position} bytes covered")
    return pieces


def _parse_piece(record: ValidRecord, value: str) -> Piece:
    """`<start>..<end> <target>`."""
    span, _, target = value.rpartition(" ")
    start, dots, end = span.partition("..")
    try:
        if not dots or target[:1] not in ("B", "P"):
            raise ValueError
        return Piece(_decimal(start), _decimal(end), RecordHash.parse(target))
    except (ValueError, InvalidText):
        _refuse("a chunk link is START..END and the hash of a Blob or a manifest", record, CHUNK_LINK, value)


def _total_length(record: ValidRecord) -> int:
    text = next(value for name, value in record.parts.headers if name == TOTAL_LENGTH)
    try:
        return _decimal(text)
    except ValueError:
        _refuse("a content length is a decimal", record, TOTAL_LENGTH, text)


def _decimal(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 19 or (len(text) > 1 and text[0] == "0"):
        raise ValueError(text)
    return int(text)


def _refuse(message: str, record: ValidRecord, header: str, found: str) -> NoReturn:
    raise InvalidRecord(message, rule="manifest", place=f"{record.hash}, {header}", found=found)
