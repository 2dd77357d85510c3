"""Reading one whole stored record (010), rule by rule.

Rule: this is the grammar. It checks in one order (outer digest, outer lines, inner digest, inner lines), so each bad
record has one reason. `lace.records.headpattern` answers first for good records of the common shape and must agree.
"""

from __future__ import annotations

from typing import NamedTuple

from lace.errors import InvalidText
from lace.limits import RecordLimits
from lace.notation import b64a
from lace.notation.digest import digest
from lace.notation.identifiers import RECORD_TYPES, RecordHash, Verifier
from lace.records.grammar import (
    DATA_LENGTH,
    MARK,
    PLEX_FIELDS,
    SEAL_FIELDS,
    SIGNATURE_BYTES,
    RecordRule,
    check_extra_name,
    check_extra_order,
    check_path,
    check_tai,
    refuse,
    split_header,
)
from lace.records.model import Header, Parts

_FIRST_NAME = {DATA_LENGTH: "B", PLEX_FIELDS[0]: "P", SEAL_FIELDS[0]: "S"}


def parse_record(stored: bytes, limits: RecordLimits) -> Parts:
    """The parts of a stored record, signature not yet verified; or InvalidRecord."""
    cursor = _Cursor(stored, limits)
    record_hash, _ = cursor.markline(None)
    _check_type_fits(record_hash, stored, cursor.position)
    if record_hash[0] == "B":
        return _blob_parts(cursor, record_hash)
    if record_hash[0] == "P":
        return _plex_parts(cursor, record_hash, record_hash.digest)
    return _seal_parts(cursor, record_hash)


class _Cursor:
    """A place in stored bytes."""

    __slots__ = ("limits", "line_number", "position", "stored")

    def __init__(self, stored: bytes, limits: RecordLimits) -> None:
        self.stored = stored
        self.limits = limits
        self.position = 0
        self.line_number = 0

    @property
    def place(self) -> str:
        return f"line {self.line_number}"

    def line(self) -> bytes:
        """The next line without its LF."""
        self.line_number += 1
        longest = self.limits.max_header_line_bytes
        end = self.stored.find(b"\n", self.position, self.position + longest + 1)
        if end < 0:
            if len(self.stored) - self.position > longest:  # 010-HDR-13
                refuse(RecordRule.LINE_LENGTH, f"a line has at most {longest} bytes", self.place)
            refuse(RecordRule.LINE_UNENDED, "a line ends with LF", self.place, self.stored[self.position :])
        line = self.stored[self.position : end]
        self.position = end + 1
        return line

    def at_mark(self) -> bool:
        return self.stored.startswith(MARK, self.position)

    def markline(self, embedded: str | None) -> tuple[RecordHash, bytes]:
        """A markline, its digest checked against all that follows; `embedded` is the type that must stand here."""
        line = self.line()
        if not line.startswith(MARK) or line.endswith(b"\r") or line[len(MARK) :].strip() != line[len(MARK) :]:
            refuse(RecordRule.MARK_FORM, "a record begins with its mark, one space and its hash", self.place, line)
        try:
            text = line[len(MARK) :].decode("ascii")
            if embedded and text[:1] in RECORD_TYPES and text[:1] != embedded:
                refuse(RecordRule.EMBEDDED_TYPE, f"the embedded record here is of type {embedded}", self.place, text)
            record_hash = RecordHash.parse(text)
        except (InvalidText, UnicodeDecodeError):
            rule = RecordRule.MARK_FORM if b" " in line[len(MARK) :] else RecordRule.MARK_HASH
            refuse(rule, "a markline holds the hash of a B, P or S record", self.place, line)
        found = digest(memoryview(self.stored)[self.position :])
        if found != record_hash.digest:
            rule = RecordRule.INNER_DIGEST if embedded else RecordRule.MARK_DIGEST
            refuse(rule, f"{record_hash} is not the digest of its payload", self.place, b64a.encode(found))
        return record_hash, found

    def headers_before_mark(self, most: int) -> list[Header]:
        """The header lines up to the embedded record; one more than `most` at the utmost."""
        headers: list[Header] = []
        while not self.at_mark():
            if self.position == len(self.stored):
                refuse(RecordRule.EMBEDDED_MISSING, "an embedded record follows the headers", self.place)
            line = self.line()
            if not line:
                refuse(RecordRule.BLANK_LINE, "there is no blank line before an embedded record", self.place)
            headers.append(split_header(line, self.place))
            if len(headers) > most:
                break
        return headers


def _check_type_fits(record_hash: RecordHash, stored: bytes, start: int) -> None:
    """010-MARK-06: a payload that begins like another type's is refused as such."""
    name = stored[start : start + 16].partition(b":")[0].decode("latin-1")
    if _FIRST_NAME.get(name, record_hash[0]) != record_hash[0]:
        refuse(RecordRule.MARK_TYPE, f"type {record_hash[0]} does not fit the payload", "line 2", name)


def _blob_parts(cursor: _Cursor, record_hash: RecordHash) -> Parts:
    start = _data_start(cursor)
    return Parts(record_hash, "", "", "", "", (), record_hash, "", b"", "", "", start)


def _data_start(cursor: _Cursor) -> int:
    """Read a Blob's header and find where its data begins, which goes to the end of the bytes."""
    line = cursor.line()
    if not line:
        refuse(RecordRule.LENGTH_MISSING, "a Blob begins with Data-Length", cursor.place)
    name, value = split_header(line, cursor.place)
    if name != DATA_LENGTH:
        refuse(RecordRule.LENGTH_MISSING, "a Blob begins with Data-Length", cursor.place, name)
    length = parse_length(value, cursor.limits.max_data_bytes)
    if cursor.line():  # 010-BLOB-05
        refuse(RecordRule.BLANK_LINE_MISSING, "a blank line follows Data-Length", cursor.place)
    here = len(cursor.stored) - cursor.position
    if here < length:  # 010-BLOB-06
        refuse(RecordRule.DATA_SHORT, f"{length} bytes of data are announced", "data", here)
    if here > length:  # 010-BLOB-07, 010-PLEX-11
        refuse(RecordRule.TRAILING_BYTES, "nothing follows the data", "data", here - length)
    return cursor.position


def parse_length(text: str, most: int) -> int:
    """A canonical decimal of at most `most` (010-BLOB-02 to 010-BLOB-04, 010-BLOB-08)."""
    if not (text.isascii() and text.isdigit()):
        refuse(RecordRule.LENGTH_DECIMAL, "Data-Length is decimal", DATA_LENGTH, text)
    if len(text) > 1 and text[0] == "0":
        refuse(RecordRule.LENGTH_LEADING_ZERO, "Data-Length has no leading zero", DATA_LENGTH, text)
    if len(text) > len(str(most)) or int(text) > most:  # the length test bounds what int() is given
        refuse(RecordRule.LENGTH_LIMIT, f"a Blob has at most {most} bytes", DATA_LENGTH, text)
    return int(text)


class _PlexHead(NamedTuple):
    fields: list[str]
    extras: tuple[Header, ...]


def _plex_parts(cursor: _Cursor, plex_hash: RecordHash, plex_digest: bytes) -> Parts:
    fields, extras = _plex_head(cursor)
    blob_hash, _ = cursor.markline("B")
    start = _data_start(cursor)
    group, app, name, tai = fields
    return Parts(plex_hash, group, app, name, tai, extras, blob_hash, plex_hash, plex_digest, "", "", start)


def _plex_head(cursor: _Cursor) -> _PlexHead:
    most = cursor.limits.max_extra_headers
    headers = cursor.headers_before_mark(len(PLEX_FIELDS) + most)
    _check_field_names([name for name, _ in headers], PLEX_FIELDS)
    if len(headers) > len(PLEX_FIELDS) + most:  # 010-EXTRA-04
        refuse(RecordRule.EXTRA_COUNT, f"a Plex has at most {most} extra headers", cursor.place)
    for name, path in headers[:3]:
        check_path(name, path)
    check_tai(headers[3][1])
    before = ""
    for name, _ in headers[4:]:
        check_extra_name(name)
        check_extra_order(before, name)
        before = name
    return _PlexHead([value for _, value in headers[:4]], tuple(headers[4:]))


def _check_field_names(names: list[str], fields: tuple[str, ...]) -> None:
    """Every field once, first, in order; anything else among them is an early extra."""
    for field in fields:
        count = names.count(field)
        if count == 0:
            refuse(RecordRule.FIELD_MISSING, f"{field} is missing", "headers")
        if count > 1:
            refuse(RecordRule.FIELD_REPEATED, f"{field} stands once", "headers")
    first = names[: len(fields)]
    if any(name not in fields for name in first):
        refuse(RecordRule.EXTRA_EARLY, f"extra headers stand after {fields[-1]}", "headers")
    if first != list(fields):
        refuse(RecordRule.FIELD_ORDER, f"the order is {', '.join(fields)}", "headers", first)


def _seal_parts(cursor: _Cursor, seal_hash: RecordHash) -> Parts:
    headers = cursor.headers_before_mark(2 * len(SEAL_FIELDS))
    _check_field_names([name for name, _ in headers], SEAL_FIELDS)
    if len(headers) > len(SEAL_FIELDS):  # 010-SEAL-04
        refuse(RecordRule.SEAL_EXTRA, "a Seal has two headers", "headers", headers[2][0])
    signed_by, signature = (value for _, value in headers)
    try:
        Verifier.parse(signed_by)
    except InvalidText:
        refuse(RecordRule.SEAL_VERIFIER, "Signed-By is a verifier", "Signed-By", signed_by)
    if not b64a.is_canonical(signature, SIGNATURE_BYTES):
        refuse(RecordRule.SEAL_SIGNATURE_TEXT, "a signature is 86 B64A characters", "Signature", signature)
    plex_hash, plex_digest = cursor.markline("P")
    inner = _plex_parts(cursor, plex_hash, plex_digest)
    return inner._replace(hash=seal_hash, signed_by=signed_by, signature=signature)
