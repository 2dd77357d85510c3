"""Chunk manifests (010, conventions): large content as a Plex of links to its chunks.

Rule: pure. Ranges are half-open, in order, without gap or overlap, and cover 0..n. A manifest that breaks this is still
a valid record; only reading it as content refuses it.
"""

from __future__ import annotations

from typing import NamedTuple, NoReturn

from lace.errors import InvalidRecord, excerpt
from lace.notation import decimal
from lace.notation.identifiers import RecordHash, is_record_hash
from lace.records.link import parse_link
from lace.records.model import Header, ValidRecord

CHUNK_LINK = "Chunk+Link"
TOTAL_LENGTH = "Content-Total-Length"
FULL_HASH = "Content-Hash-Full"


class Piece(NamedTuple):
    """A stretch of the content, [start, end), and the Blob or nested manifest that holds it."""

    start: int
    end: int
    target: RecordHash

    def header(self, base: int = 0) -> Header:
        """The piece as a Chunk+Link, counted from `base`."""
        return CHUNK_LINK, f"{self.start - base}..{self.end - base} {self.target}"


def is_manifest(record: ValidRecord) -> bool:
    """Whether a record stands for content that lies in chunks; it has no data of its own (010-CONV-02)."""
    return record.type != "B" and not record.data_length and any(n == TOTAL_LENGTH for n, _ in record.parts.headers)


def content_length(record: ValidRecord) -> int:
    """How many bytes of content a record stands for."""
    return _total_length(record) if is_manifest(record) else record.data_length


def full_hash(record: ValidRecord) -> str | None:
    """The hash of the whole content as one Blob, if a manifest states it (010-CONV-08)."""
    return next((value for name, value in record.parts.headers if name == FULL_HASH), None)


def manifest_pieces(record: ValidRecord) -> list[Piece]:
    """The pieces of a manifest, which cover its content without gap or overlap; or InvalidRecord."""
    pieces: list[Piece] = []
    position = 0
    for name, value in record.parts.headers:
        if name != CHUNK_LINK:
            continue
        piece = _parse_piece(record, value)
        if piece.start != position or piece.end <= piece.start:  # 010-CONV-03, 010-CONV-04
            refuse_manifest("the ranges of a manifest follow each other without a gap", record, CHUNK_LINK, value)
        pieces.append(piece)
        position = piece.end
    if position != _total_length(record):
        refuse_manifest("the ranges of a manifest cover its content", record, TOTAL_LENGTH, f"{position} bytes covered")
    return pieces


def _parse_piece(record: ValidRecord, value: str) -> Piece:
    """`<start>..<end> <target>`; a target is named as a Blob or as a manifest and read as nothing else."""
    data, target = parse_link(CHUNK_LINK, value) or ("", "")
    start, _, end = data.partition("..")
    if not (_is_length(start) and _is_length(end) and is_record_hash(target) and target[0] != "S"):
        refuse_manifest("a chunk link is START..END and the hash of a Blob or a manifest", record, CHUNK_LINK, value)
    return Piece(int(start), int(end), RecordHash(target))


def _total_length(record: ValidRecord) -> int:
    totals = [value for name, value in record.parts.headers if name == TOTAL_LENGTH]
    if len(totals) != 1 or not _is_length(totals[0]):
        refuse_manifest("a manifest has one decimal content length", record, TOTAL_LENGTH, ", ".join(totals))
    return int(totals[0])


def _is_length(text: str) -> bool:
    return len(text) <= decimal.MAX_DIGITS and decimal.is_decimal(text)


def refuse_manifest(message: str, record: ValidRecord, header: str, found: str) -> NoReturn:
    """Refuse a manifest as content."""
    raise InvalidRecord(message, rule="manifest", place=f"{record.hash}, {header}", found=excerpt(found))
