"""The lines and texts that records are made of (010), and the name of every rule that can refuse one.

Rule: each rejection has its own member of RecordRule; building and reading call the same checks.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NoReturn
from unicodedata import is_normalized

from lace.errors import InvalidRecord

MARK = b"\xf0\x9f\x96\xa7: "  # 010-MARK-02
MARK_TEXT = "\U0001f5a7"
TRAILER_TEXT = "\u22ef\U0001f5a7"
PLEX_FIELDS = ("Group", "App", "Name", "TAI")
SEAL_FIELDS = ("Signed-By", "Signature")
DATA_LENGTH = "Data-Length"
SIGNATURE_BYTES = 64
RESERVED_NAMES = frozenset((*PLEX_FIELDS, *SEAL_FIELDS, DATA_LENGTH, "Type"))  # 010-EXTRA-05

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TAI = re.compile(r"[0-9]{10}:[0-9]{9}")
_PATH_CHARACTER = re.compile(r"[{}|]")


class RecordRule(StrEnum):
    """Why bytes are not a record, or values cannot become one."""

    MARK_FORM = "mark-form"  # not `🖧: <text>` LF
    MARK_HASH = "mark-hash"  # the hash text does not have the supported form
    MARK_DIGEST = "mark-digest"  # not the digest of the payload
    MARK_TYPE = "mark-type"  # the type letter does not fit the payload
    INNER_DIGEST = "inner-digest"  # an embedded record's own digest is wrong
    LINE_UNENDED = "line-unended"
    LINE_LENGTH = "line-length"
    LINE_CR = "line-cr"
    LINE_CONTROL = "line-control"
    LINE_UTF8 = "line-utf8"
    LINE_NFC = "line-nfc"
    NAME_EMPTY = "name-empty"
    NAME_COLON = "name-colon"
    NAME_SPACE = "name-space"
    NAME_TAB = "name-tab"
    SEPARATOR = "separator"  # no colon, or no space after it
    VALUE_EMPTY = "value-empty"
    LENGTH_MISSING = "length-missing"
    LENGTH_DECIMAL = "length-decimal"
    LENGTH_LEADING_ZERO = "length-leading-zero"
    LENGTH_LIMIT = "length-limit"
    BLANK_LINE_MISSING = "blank-line-missing"
    DATA_SHORT = "data-short"
    TRAILING_BYTES = "trailing-bytes"
    FIELD_MISSING = "field-missing"
    FIELD_REPEATED = "field-repeated"
    FIELD_ORDER = "field-order"
    EXTRA_EARLY = "extra-early"  # an extra header before TAI
    BLANK_LINE = "blank-line"  # before an embedded record
    EMBEDDED_MISSING = "embedded-missing"
    EMBEDDED_TYPE = "embedded-type"
    TAI_FORM = "tai-form"
    EXTRA_ORDER = "extra-order"
    EXTRA_COUNT = "extra-count"
    EXTRA_RESERVED = "extra-reserved"
    EXTRA_MARK = "extra-mark"
    PATH_EMPTY_SEGMENT = "path-empty-segment"
    PATH_DOT_SEGMENT = "path-dot-segment"
    PATH_CHARACTER = "path-character"
    PATH_NUMBER_SIGN = "path-number-sign"
    PATH_SEGMENT_LENGTH = "path-segment-length"  # building only (P27)
    SEAL_EXTRA = "seal-extra"
    SEAL_VERIFIER = "seal-verifier"
    SEAL_SIGNATURE_TEXT = "seal-signature-text"
    SEAL_SIGNATURE = "seal-signature"  # it does not verify


def refuse(rule: RecordRule, message: str, place: str = "", found: object = None) -> NoReturn:
    """Raise InvalidRecord under `rule`."""
    shown = "" if found is None else repr(found)[:80]
    raise InvalidRecord(message, rule=rule, place=place, found=shown)


def split_header(line: bytes, place: str) -> tuple[str, str]:
    """Name and value of a header line (without LF), every rule of 010-HDR checked but the length."""
    text = decode_line(line, place)
    name, colon, rest = text.partition(":")
    if "\t" in name:  # 010-HDR-05
        refuse(RecordRule.NAME_TAB, "a header name holds no tab", place, name)
    check_controls(text, place)
    if not colon:
        refuse(RecordRule.SEPARATOR, "a header line is `<Name>: <value>`", place, text)
    if not name:  # 010-HDR-02
        refuse(RecordRule.NAME_EMPTY, "a header name is not empty", place, text)
    if " " in name:  # 010-HDR-04
        refuse(RecordRule.NAME_SPACE, "a header name holds no space", place, name)
    if not rest.startswith(" "):  # 010-HDR-03, 010-HDR-06
        rule = RecordRule.NAME_COLON if ": " in rest else RecordRule.SEPARATOR
        refuse(rule, "one space follows the first colon of a header line", place, text)
    if len(rest) == 1:  # 010-HDR-08
        refuse(RecordRule.VALUE_EMPTY, "a header value is not empty", place, text)
    return name, rest[1:]  # P29, 010-HDR-07, 010-HDR-14: whatever follows the one space is data


def decode_line(line: bytes, place: str) -> str:
    """A line as NFC text (010-HDR-09, 010-HDR-10)."""
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(RecordRule.LINE_UTF8, "a line is valid UTF-8", place, line[error.start : error.start + 4])
    if not text.isascii() and not is_normalized("NFC", text):
        refuse(RecordRule.LINE_NFC, "a line is in Unicode normal form NFC", place, text)
    return text


def check_controls(text: str, place: str) -> None:
    """Refuse CR and the control characters (010-HDR-11, 010-HDR-12)."""
    control = _CONTROL.search(text)
    if control is None:
        return
    if control[0] == "\r":
        refuse(RecordRule.LINE_CR, "lines end with LF and hold no CR", place)
    refuse(RecordRule.LINE_CONTROL, "a line holds no control character", place, control[0])


def check_path(field: str, path: str) -> None:
    """The path rules of Group, App and Name that hold for reading too (010-PATH-02 to 010-PATH-05)."""
    for segment in path.split("/"):
        if not segment:
            refuse(RecordRule.PATH_EMPTY_SEGMENT, "a path has no empty segment", field, path)
        if segment in (".", ".."):
            refuse(RecordRule.PATH_DOT_SEGMENT, "a path has no segment `.` or `..`", field, path)
    if _PATH_CHARACTER.search(path):
        refuse(RecordRule.PATH_CHARACTER, "a path holds none of { } |", field, path)
    if field != "Name" and "#" in path:
        refuse(RecordRule.PATH_NUMBER_SIGN, "Group and App hold no #", field, path)


def check_segment_lengths(field: str, path: str, max_bytes: int) -> None:
    """P27: how long a segment may be in a record that we build."""
    for segment in path.split("/"):
        if len(segment.encode()) > max_bytes:
            message = f"a segment of {field} that we write has at most {max_bytes} bytes"
            refuse(RecordRule.PATH_SEGMENT_LENGTH, message, field, segment)


def check_tai(text: str) -> None:
    """010-TAI-01, 010-TAI-02."""
    if _TAI.fullmatch(text) is None:
        refuse(RecordRule.TAI_FORM, "TAI is 10 digits, a colon and 9 digits", "TAI", text)


def check_extra_name(name: str) -> None:
    """A name that an extra header may have (010-EXTRA-05 to 010-EXTRA-08)."""
    if name in RESERVED_NAMES:
        refuse(RecordRule.EXTRA_RESERVED, "this header name is reserved", "extra header", name)
    if name.startswith((MARK_TEXT, TRAILER_TEXT)):
        refuse(RecordRule.EXTRA_MARK, "an extra header does not begin like a record mark", "extra header", name)


def check_extra_order(before: str, name: str) -> None:
    """P26: names bytewise non-decreasing (code point order is UTF-8 byte order)."""
    if name < before:
        refuse(RecordRule.EXTRA_ORDER, f"extra headers are sorted by name, so {name!r} stands before {before!r}")
