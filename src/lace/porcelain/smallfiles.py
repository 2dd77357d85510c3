"""Many small files as records at once: their stored bytes written out, then judged together.

Rule: a file becomes the very records that `write_content` makes of it with `cut_content`; a test compares them. What is
unusual about any file is found by the judge, so nothing is stored here that `put` would refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import NamedTuple

from lace.errors import InvalidText, excerpt
from lace.limits import MIB
from lace.notation import b64a
from lace.notation.digest import digest, digest_each
from lace.notation.identifiers import RecordHash
from lace.porcelain.cutting import INLINE_BYTES, SMALLEST, cut_content
from lace.records.grammar import MARK
from lace.records.keys import Signer
from lace.records.manifest import CHUNK_LINK, FULL_HASH, TOTAL_LENGTH
from lace.records.model import Blob, Header, sorted_headers

LARGEST = MIB  # of a file that is read whole


class SmallFile(NamedTuple):
    """What a version of a file says, and all of its content."""

    name: str  # the whole Name of its record
    tai: str
    headers: tuple[Header, ...]
    data: bytes


class FileRecords(NamedTuple):
    """The stored bytes of the records of some files."""

    blobs: list[bytes]  # each once
    versions: list[bytes]  # one for each file, in their order
    hashes: list[RecordHash]  # of the versions
    contents: list[str]  # the hash that each content has as a Blob


_EMPTY = b"".join(Blob(b"").stored_chunks())


def records_of(files: Sequence[SmallFile], group: str, app: str, signer: Signer | None) -> FileRecords:
    """The records of some files at one group and app, signed by a signer."""
    contents = _hashes("B", [_blob_payload(file.data) for file in files])
    blobs: dict[str, bytes] = {}
    payloads = []
    for file, content in zip(files, contents, strict=True):
        size = len(file.data)
        if size <= INLINE_BYTES:
            said, stored = file.headers, _stored(content, _blob_payload(file.data))
        else:
            said, stored = (*file.headers, *_manifest(file.data, content, blobs)), _EMPTY
        lines = "".join([f"{name}: {value}\n" for name, value in sorted_headers(said)])
        head = f"Group: {group}\nApp: {app}\nName: {file.name}\nTAI: {file.tai}\n{lines}"
        if head.count("\n") != len(said) + 4:
            raise InvalidText("a header holds no line feed", rule="line-control", found=excerpt(file.name))
        payloads.append(head.encode() + stored)
    hashes, versions = _signed(payloads, signer)
    return FileRecords(list(blobs.values()), versions, hashes, list(contents))


def _manifest(data: bytes, content: RecordHash, blobs: dict[str, bytes]) -> list[Header]:
    """What a version says of content that lies in pieces; the pieces go to `blobs`."""
    pieces = [data] if len(data) <= SMALLEST else list(cut_content(BytesIO(data)))
    payloads = [_blob_payload(piece) for piece in pieces]
    hashes = [content] if len(pieces) == 1 else _hashes("B", payloads)
    found: list[Header] = []
    start = 0
    for piece, payload, name in zip(pieces, payloads, hashes, strict=True):
        if name not in blobs:
            blobs[name] = _stored(name, payload)
        found.append((CHUNK_LINK, f"{start}..{start + len(piece)} {name}"))
        start += len(piece)
    return [*found, (TOTAL_LENGTH, str(len(data))), (FULL_HASH, content)]


def _signed(payloads: Sequence[bytes], signer: Signer | None) -> tuple[list[RecordHash], list[bytes]]:
    """The stored bytes of Plexes by their payloads, or of Seals around them."""
    hashes = _hashes("P", payloads)
    stored = list(map(_stored, hashes, payloads))
    if signer is None:
        return hashes, stored
    sealed = [
        b"Signed-By: %b\nSignature: %b\n%b"
        % (signer.verifier.encode(), b64a.encode(signer.sign(digest(payload))).encode(), plex)
        for payload, plex in zip(payloads, stored, strict=True)
    ]
    hashes = _hashes("S", sealed)
    return hashes, list(map(_stored, hashes, sealed))


def _blob_payload(data: bytes) -> bytes:
    return b"Data-Length: %d\n\n%b" % (len(data), data)


def _hashes(letter: str, payloads: Iterable[bytes]) -> list[RecordHash]:
    return [RecordHash.of(letter, found) for found in digest_each(payloads)]


def _stored(name: str, payload: bytes) -> bytes:
    return b"%b%b\n%b" % (MARK, name.encode(), payload)
