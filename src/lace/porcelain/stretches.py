"""Any stretch of a content, without reading the rest: what a mounted file needs.

Rule: every part is checked by its own hash and its length; the hash of the whole, which only a whole reading can check,
is not. At most `held_bytes` of parts are kept at hand.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator

from lace.errors import LimitExceeded, NotFound
from lace.limits import MIB, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.porcelain.content import Load
from lace.records.manifest import CHUNK_LINK, Piece, content_length, is_manifest, manifest_pieces, refuse_manifest
from lace.records.model import ValidRecord


class ContentStretches:
    """The content of one record, read where it is asked for."""

    def __init__(self, record: ValidRecord, load: Load, limits: RecordLimits, held_bytes: int = 8 * MIB) -> None:
        self.record = record
        self.size = content_length(record)
        self._load = load
        self._held_bytes = held_bytes
        self._held: OrderedDict[RecordHash, memoryview] = OrderedDict()
        self.pieces = list(_blobs(record, load, limits, 0, 1)) if is_manifest(record) else []
        self._starts = [piece.start for piece in self.pieces]

    def read(self, offset: int, size: int) -> bytes:
        """Up to so many bytes from an offset on; none at the end. NotFound if a part is not here."""
        end = min(offset + size, self.size)
        if offset >= end:
            return b""
        if not self.pieces:
            return bytes(self.record.data[offset:end])
        found = []
        for piece in self.pieces[bisect_right(self._starts, offset) - 1 :]:
            if piece.start >= end:
                break
            data = self._data(piece)
            found.append(data[max(offset - piece.start, 0) : end - piece.start])
        return b"".join(found)

    def _data(self, piece: Piece) -> memoryview:
        held = self._held.get(piece.target)
        if held is not None:
            self._held.move_to_end(piece.target)
            return held
        blob = self._load(piece.target)
        if blob.type != "B" or blob.data_length != piece.end - piece.start:
            message = f"{piece.target} does not hold {piece.end - piece.start} bytes"
            refuse_manifest(message, self.record, CHUNK_LINK, str(blob.data_length))
        self._held[piece.target] = blob.data
        size = sum([len(data) for data in self._held.values()])
        while size > self._held_bytes and len(self._held) > 1:
            size -= len(self._held.popitem(last=False)[1])
        return blob.data


def _blobs(record: ValidRecord, load: Load, limits: RecordLimits, start: int, depth: int) -> Iterator[Piece]:
    """The Blobs of a manifest by their places in the whole; those below a nested manifest that is not here are left
    for `read` to miss."""
    if depth > limits.max_manifest_depth:  # 010-CONV-06
        raise LimitExceeded("max_manifest_depth", limits.max_manifest_depth, f"manifest {record.hash}")
    for piece in manifest_pieces(record):
        at = Piece(start + piece.start, start + piece.end, piece.target)
        if piece.target[0] == "B":
            yield at
            continue
        try:
            inner = load(piece.target)
        except NotFound:
            yield at
            continue
        if not is_manifest(inner) or content_length(inner) != piece.end - piece.start:
            refuse_manifest(f"{piece.target} is not its manifest", record, CHUNK_LINK, str(piece.target))
        yield from _blobs(inner, load, limits, at.start, depth + 1)
