"""Retractions: versions that withdraw other versions of their coordinate (081).

Rule: what a version withdraws is read from its headers and the length of its data alone. Whether that counts is
decided by `lace.records.tip`.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.notation.identifiers import RecordHash
from lace.records.link import LINK_SUFFIX, parse_link
from lace.records.model import Header, ValidRecord

RETRACT = "Retract"
ALL = "all"
VERSION = "version"

Withdraws = tuple[str, ...]
"""`(ALL,)`, the hashes of single versions, or nothing."""


def withdrawn_by(headers: Iterable[Header], data_length: int) -> Withdraws:
    """What a Plex with these headers withdraws; empty if it is an ordinary version."""
    if data_length:  # 081-FORM-01: content is never hidden in a retraction
        return ()
    found: dict[str, None] = {}
    for name, value in headers:
        if name == RETRACT and value == ALL:
            return (ALL,)  # 081-FORM-02: it includes whatever is named beside it
        if name == RETRACT + LINK_SUFFIX:
            words = parse_link(name, value)
            if words is not None and words.data == VERSION and words.target[0] in "PS":
                found[words.target] = None
    return tuple(found)


def withdraws(record: ValidRecord) -> Withdraws:
    """What a record withdraws."""
    return withdrawn_by(record.parts.headers, record.data_length)


def retract_all() -> tuple[Header, ...]:
    """The headers that withdraw every earlier version."""
    return ((RETRACT, ALL),)


def retract_versions(hashes: Iterable[RecordHash]) -> tuple[Header, ...]:
    """The headers that withdraw single versions."""
    return tuple((RETRACT + LINK_SUFFIX, f"{VERSION} {record}") for record in hashes)


def as_text(said: Withdraws) -> str:
    """What a version withdraws as one text, as a store keeps it."""
    return " ".join(said)


def of_text(text: str | None) -> Withdraws:
    """The inverse of `as_text`."""
    return tuple(text.split(" ")) if text else ()
