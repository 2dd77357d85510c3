"""Records as values (010): Blob, Plex, Seal, and the ValidRecord that only `lace.records.validate` makes.

Rule: a Blob, Plex or Seal that exists can be written; its checks run when it is built (P27 lengths included).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import InitVar, field
from typing import ClassVar, NamedTuple, TypeVar

from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.digest import hasher
from lace.notation.identifiers import RecordHash, Verifier
from lace.notation.tai import TAI
from lace.records.grammar import (
    MARK,
    PLEX_FIELDS,
    SIGNATURE_BYTES,
    RecordRule,
    check_extra_name,
    check_extra_order,
    check_path,
    check_segment_lengths,
    check_tai,
    refuse,
    split_header,
)
from lace.values import dataclass

Header = tuple[str, str]
DEFAULT_LIMITS = RecordLimits()
_ANY = 1 << 40
NO_LIMITS = RecordLimits(max_header_line_bytes=_ANY, max_data_bytes=_ANY, max_extra_headers=_ANY)
"""For records that are here already: a limit that was lowered since must not make them unreadable."""


class _Hashed(ABC):
    """What the three share: the hash, computed once, and the markline."""

    __slots__ = ("_hash",)
    _hash: RecordHash
    type: ClassVar[str]

    @abstractmethod
    def payload_chunks(self) -> list[bytes]:
        """The canonical payload in pieces; large data is its own piece."""

    @property
    def hash(self) -> RecordHash:
        """`T.<b64a>.H3` of the canonical payload."""
        try:
            return self._hash
        except AttributeError:
            running = hasher()
            for chunk in self.payload_chunks():
                running.update(chunk)
            object.__setattr__(self, "_hash", RecordHash.of(self.type, running.digest()))  # 010-MARK-04
            return self._hash

    def stored_chunks(self) -> list[bytes]:
        """Markline and payload, in pieces (010-MARK-01)."""
        return [MARK + self.hash.encode() + b"\n", *self.payload_chunks()]


@dataclass(frozen=True, slots=True)
class Blob(_Hashed):
    """Opaque bytes."""

    type: ClassVar[str] = "B"
    data: bytes
    limits: InitVar[RecordLimits] = DEFAULT_LIMITS

    def __post_init__(self, limits: RecordLimits) -> None:
        if len(self.data) > limits.max_data_bytes:  # 010-BLOB-08
            message = f"a Blob has at most {limits.max_data_bytes} bytes"
            refuse(RecordRule.LENGTH_LIMIT, message, found=len(self.data))

    def payload_chunks(self) -> list[bytes]:
        return [b"Data-Length: %d\n\n" % len(self.data), self.data]  # 010-BLOB-01


@dataclass(frozen=True, slots=True, kw_only=True)
class Plex(_Hashed):
    """A Blob with a coordinate, an instant and headers."""

    type: ClassVar[str] = "P"
    group: str
    app: str
    name: str
    tai: TAI
    headers: tuple[Header, ...] = ()
    blob: Blob = field(default=Blob(b""))
    limits: InitVar[RecordLimits] = DEFAULT_LIMITS

    def __post_init__(self, limits: RecordLimits) -> None:
        fields = zip(PLEX_FIELDS, (self.group, self.app, self.name, self.tai), strict=True)
        for header_name, value in fields:
            _check_line(header_name, value, limits)
        for header_name, path in (("Group", self.group), ("App", self.app), ("Name", self.name)):
            check_path(header_name, path)
            longest = limits.max_name_segment_bytes if header_name == "Name" else limits.max_group_segment_bytes
            check_segment_lengths(header_name, path, longest)
        check_tai(self.tai)
        _check_extras(self.headers, limits)

    def payload_chunks(self) -> list[bytes]:
        head = f"Group: {self.group}\nApp: {self.app}\nName: {self.name}\nTAI: {self.tai}\n"
        extras = "".join([f"{name}: {value}\n" for name, value in self.headers])
        return [(head + extras).encode(), *self.blob.stored_chunks()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal(_Hashed):
    """A Plex under a signature of its digest; `lace.records.keys` makes them."""

    type: ClassVar[str] = "S"
    signed_by: Verifier
    signature: str
    plex: Plex

    def __post_init__(self) -> None:
        Verifier.parse(self.signed_by)
        if not b64a.is_canonical(self.signature, SIGNATURE_BYTES):  # 009-TEXT-07
            refuse(RecordRule.SEAL_SIGNATURE_TEXT, "a signature is 86 B64A characters", "Signature", self.signature)

    def payload_chunks(self) -> list[bytes]:
        head = f"Signed-By: {self.signed_by}\nSignature: {self.signature}\n"
        return [head.encode(), *self.plex.stored_chunks()]


Record = Blob | Plex | Seal


def sorted_headers(headers: Iterable[Header]) -> tuple[Header, ...]:
    """Headers in canonical order: by name, those of one name as they came (P26)."""
    return tuple(sorted(headers, key=lambda header: header[0]))


def _check_line(name: str, value: str, limits: RecordLimits) -> None:
    try:
        line = f"{name}: {value}".encode()
    except UnicodeEncodeError:
        refuse(RecordRule.LINE_UTF8, "a header is encodable text", name)
    if b"\n" in line:
        refuse(RecordRule.LINE_CONTROL, "a header holds no LF", name)
    if len(line) > limits.max_header_line_bytes:  # 010-HDR-13
        message = f"a header line has at most {limits.max_header_line_bytes} bytes"
        refuse(RecordRule.LINE_LENGTH, message, name, len(line))
    if split_header(line, name) != (name, value):
        refuse(RecordRule.NAME_COLON, "a header name holds no colon", name)


def _check_extras(headers: tuple[Header, ...], limits: RecordLimits) -> None:
    if len(headers) > limits.max_extra_headers:  # 010-EXTRA-04
        refuse(RecordRule.EXTRA_COUNT, f"a Plex has at most {limits.max_extra_headers} extra headers", "", len(headers))
    before = ""
    for name, value in headers:
        _check_line(name, value, limits)
        check_extra_name(name)
        check_extra_order(before, name)
        before = name


class Parts(NamedTuple):
    """What reading found in one stored record, a Seal's Plex and Blob included; what a type lacks is empty."""

    hash: str
    group: str
    app: str
    name: str
    tai: str
    headers: tuple[Header, ...]
    blob_hash: str
    plex_hash: str
    plex_digest: bytes  # what a Seal signs
    signed_by: str
    signature: str
    data_start: int


class ValidRecord:
    """Stored bytes that passed every rule of records (010). Only `lace.validate` builds one (a test holds it)."""

    __slots__ = ("hash", "parts", "stored")

    def __init__(self, record_hash: RecordHash, stored: bytes, parts: Parts) -> None:
        self.hash: RecordHash = record_hash
        self.stored: bytes = stored
        self.parts: Parts = parts

    def __repr__(self) -> str:
        return f"ValidRecord({str(self.hash)!r}, {len(self.stored)} bytes)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValidRecord) and self.hash == other.hash

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def type(self) -> str:
        """B, P or S."""
        return self.hash[0]

    @property
    def data(self) -> memoryview:
        """The Blob's bytes, not copied."""
        return memoryview(self.stored)[self.parts.data_start :]

    @property
    def data_length(self) -> int:
        """How many bytes the Blob holds."""
        return len(self.stored) - self.parts.data_start

    @property
    def record(self) -> Record:
        """The record as a value; what was read is not held to the lengths of building (P27)."""
        parts = self.parts
        blob = _restored(Blob, parts.blob_hash, data=bytes(self.data))
        if self.type == "B":
            return blob
        plex = _restored(
            Plex, parts.plex_hash, group=parts.group, app=parts.app, name=parts.name, tai=TAI(parts.tai),
            headers=parts.headers, blob=blob,
        )  # fmt: skip
        if self.type == "P":
            return plex
        return _restored(Seal, parts.hash, signed_by=Verifier(parts.signed_by), signature=parts.signature, plex=plex)


R = TypeVar("R", Blob, Plex, Seal)


def _restored(kind: type[R], record_hash: str, **fields: object) -> R:
    """A record value whose parts were checked when they were read."""
    record = kind.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(record, name, value)
    object.__setattr__(record, "_hash", RecordHash(record_hash))
    return record
