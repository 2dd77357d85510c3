"""Chunk manifests (010, conventions): large content as a Plex of links to its chunks.

Rule: pure. Ranges are half-open, in order, without gap or overlap, and cover 0..n; whoever loads records is handed in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NoReturn

from lace.errors import InvalidRecord, InvalidText
from lace.limits import MIB, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.link import parse_link
from lace.records.model import DEFAULT_LIMITS, Header, Plex, sorted_headers

TOTAL_LENGTH = "Content-Total-Length"
CHUNK_LINK = "Chunk+Link"
CONTENT_TYPE = "Content-Type"
CONTENT_HASH = "Content-Hash-Full"
DEFAULT_CHUNK_BYTES = 32 * MIB  # 010-CONV-07
# A manifest also has its total, type and hash, and leaves its author some room for headers of their own.
ROOM_FOR_OTHER_HEADERS = 128

_DECIMAL = r"(0|[1-9][0-9]{0,18})"
_RANGE = re.compile(rf"{_DECIMAL}\.\.{_DECIMAL}")
_TOTAL = re.compile(_DECIMAL)


class ManifestRule(StrEnum):
    """Why a manifest is refused by its reader."""

    TOTAL = "manifest-total"
    DATA = "manifest-data"  # a manifest's own Blob is empty
    LINK = "manifest-link"
    RANGE = "manifest-range"  # gap, overlap, wrong begin or end, empty range
    HASH = "manifest-content-hash"
    NESTED_LENGTH = "manifest-nested-length"
    CHUNK_LENGTH = "manifest-chunk-length"
    DEPTH = "manifest-depth"


def _refuse(rule: ManifestRule, message: str, found: object = "") -> NoReturn:
    raise InvalidRecord(message, rule=rule, place="manifest", found=str(found)[:80])


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes start..end of the content, in the Blob or nested manifest `target`."""

    start: int
    end: int
    target: RecordHash

    @property
    def length(self) -> int:
        """How many bytes it stands for."""
        return self.end - self.start

    @property
    def nested(self) -> bool:
        """Whether the target is a manifest itself (010-CONV-05)."""
        return self.target.type == "P"

    def check_data_length(self, length: int) -> None:
        """Refuse a chunk record whose data is not as long as its range."""
        if length != self.length:
            _refuse(ManifestRule.CHUNK_LENGTH, f"{self.target} stands for {self.length} bytes", length)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a manifest Plex says."""

    total_length: int
    chunks: tuple[Chunk, ...]
    content_type: str | None = None
    content_hash: RecordHash | None = None


def chunk_ranges(total_length: int, chunk_bytes: int = DEFAULT_CHUNK_BYTES) -> Iterator[tuple[int, int]]:
    """The ranges of content cut into chunks of one size, the last one shorter."""
    for start in range(0, total_length, chunk_bytes):
        yield start, min(start + chunk_bytes, total_length)


def manifest_headers(manifest: Manifest) -> tuple[Header, ...]:
    """The extra headers that say a manifest, in canonical order."""
    _check_ranges(manifest.total_length, manifest.chunks)
    headers = [(TOTAL_LENGTH, str(manifest.total_length))]
    headers += ((CHUNK_LINK, f"{chunk.start}..{chunk.end} {chunk.target}") for chunk in manifest.chunks)
    if manifest.content_type is not None:
        headers.append((CONTENT_TYPE, manifest.content_type))
    if manifest.content_hash is not None:
        headers.append((CONTENT_HASH, manifest.content_hash))
    return sorted_headers(headers)


def is_manifest(headers: Iterable[Header]) -> bool:
    """Whether a Plex with these headers means to be a manifest."""
    return any(name == TOTAL_LENGTH for name, _ in headers)


def parse_manifest(headers: Iterable[Header], data_length: int) -> Manifest:
    """The manifest that a Plex's extra headers say, or InvalidRecord with a ManifestRule."""
    headers = tuple(headers)
    if data_length:  # 010-CONV-02
        _refuse(ManifestRule.DATA, "a manifest has no data of its own", data_length)
    totals = [value for name, value in headers if name == TOTAL_LENGTH]
    if len(totals) != 1 or _TOTAL.fullmatch(totals[0]) is None:
        _refuse(ManifestRule.TOTAL, f"a manifest has one decimal {TOTAL_LENGTH}", totals)
    chunks = tuple(_parse_chunk(value) for name, value in headers if name == CHUNK_LINK)
    _check_ranges(int(totals[0]), chunks)
    types = [value for name, value in headers if name == CONTENT_TYPE]
    hashes = [_parse_content_hash(value) for name, value in headers if name == CONTENT_HASH]
    return Manifest(int(totals[0]), chunks, types[0] if types else None, hashes[0] if hashes else None)


def _parse_chunk(value: str) -> Chunk:
    link = parse_link(CHUNK_LINK, value)
    numbers = _RANGE.fullmatch(link.data) if link else None
    if link is None or numbers is None:
        _refuse(ManifestRule.LINK, f"a {CHUNK_LINK} is `<start>..<end> <target>`", value)
    try:
        target = RecordHash.parse(link.target)
    except InvalidText:
        _refuse(ManifestRule.LINK, "a chunk is a record of the supported definition", value)
    if target.type == "S":
        _refuse(ManifestRule.LINK, "a chunk is a Blob or a Plex", value)
    return Chunk(int(numbers[1]), int(numbers[2]), target)


def _parse_content_hash(value: str) -> RecordHash:
    try:
        content_hash = RecordHash.parse(value)
    except InvalidText:
        _refuse(ManifestRule.HASH, f"{CONTENT_HASH} is the hash of a Blob", value)
    if content_hash.type != "B":
        _refuse(ManifestRule.HASH, f"{CONTENT_HASH} is the hash of a Blob", value)
    return content_hash


def _check_ranges(total_length: int, chunks: Sequence[Chunk]) -> None:
    """010-CONV-03, 010-CONV-04."""
    position = 0
    for chunk in chunks:
        if chunk.start != position or chunk.end <= chunk.start:
            _refuse(ManifestRule.RANGE, f"a range begins at {position} and is not empty", f"{chunk.start}..{chunk.end}")
        position = chunk.end
    if position != total_length:
        _refuse(ManifestRule.RANGE, f"the ranges end at {total_length}", position)


def leaf_chunks(
    root: Manifest, load: Callable[[RecordHash], Manifest], limits: RecordLimits = DEFAULT_LIMITS
) -> Iterator[Chunk]:
    """The Blob chunks of a manifest in order, nested manifests loaded one by one; ranges count from the content's 0."""
    return _leaves(root, 0, 1, load, limits.max_manifest_depth)


def _leaves(
    manifest: Manifest, offset: int, depth: int, load: Callable[[RecordHash], Manifest], max_depth: int
) -> Iterator[Chunk]:
    if depth > max_depth:  # 010-CONV-06
        _refuse(ManifestRule.DEPTH, f"manifests nest at most {max_depth} deep")
    for chunk in manifest.chunks:
        if not chunk.nested:
            yield Chunk(offset + chunk.start, offset + chunk.end, chunk.target)
            continue
        nested = load(chunk.target)
        if nested.total_length != chunk.length:
            _refuse(ManifestRule.NESTED_LENGTH, f"{chunk.target} stands for {chunk.length} bytes", nested.total_length)
        yield from _leaves(nested, offset + chunk.start, depth + 1, load, max_depth)


def build_manifests(
    root: Manifest, make_plex: Callable[[tuple[Header, ...]], Plex], limits: RecordLimits = DEFAULT_LIMITS
) -> list[Plex]:
    """Plexes that say `root`, nested where one could not hold all its chunks: children first, the root last."""
    most = limits.max_extra_headers - ROOM_FOR_OTHER_HEADERS
    if most < 2:
        raise ValueError("a manifest needs room for at least two chunks")
    plexes: list[Plex] = []
    chunks = root.chunks
    while len(chunks) > most:
        nested = [_nested_manifest(chunks[first : first + most]) for first in range(0, len(chunks), most)]
        made = [make_plex(manifest_headers(manifest)) for _, manifest in nested]
        plexes += made
        chunks = tuple(
            Chunk(start, start + manifest.total_length, plex.hash)
            for (start, manifest), plex in zip(nested, made, strict=True)
        )
    last = Manifest(root.total_length, chunks, root.content_type, root.content_hash)
    return [*plexes, make_plex(manifest_headers(last))]


def _nested_manifest(chunks: Sequence[Chunk]) -> tuple[int, Manifest]:
    """Where a run of chunks begins, and the manifest of them with ranges from its own 0."""
    start = chunks[0].start
    moved = tuple(Chunk(chunk.start - start, chunk.end - start, chunk.target) for chunk in chunks)
    return start, Manifest(chunks[-1].end - start, moved)
