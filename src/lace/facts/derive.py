"""The facts of a valid record (020): Have, Field, RecordLink, BlobHash, PlexHash.

Rule: facts come from a ValidRecord and from nothing else; whoever stores it makes them true.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lace.facts import predicates as names
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.notation.fact import Fact
from lace.records.link import LINK_SUFFIX, parse_link
from lace.records.model import Header, ValidRecord

FieldOccurrence = tuple[str, int, str]  # name, index, value
LinkOccurrence = tuple[str, int, str, str]  # name, index, data, target


def field_occurrences(valid: ValidRecord) -> list[FieldOccurrence]:
    """Every field of a record with its occurrence index (020-FIELD-13 to 020-FIELD-16)."""
    parts = valid.parts
    kind = valid.type
    fields: list[FieldOccurrence] = [(names.TYPE, 0, kind), (names.DATA_LENGTH, 0, str(valid.data_length))]
    if kind == "B":
        return fields
    fields += ((names.GROUP, 0, parts.group), (names.APP, 0, parts.app))
    fields += ((names.NAME, 0, parts.name), (names.TAI, 0, parts.tai))
    if kind == "S":
        fields += ((names.SIGNED_BY, 0, parts.signed_by), (names.SIGNATURE, 0, parts.signature))
    return fields + extra_occurrences(parts.headers)


def extra_occurrences(headers: Iterable[Header]) -> list[FieldOccurrence]:
    """The extra headers of a record with their occurrence indexes."""
    fields: list[FieldOccurrence] = []
    before, index = "", 0
    for name, value in headers:  # sorted by name, so occurrences of one name stand together (P26)
        index = index + 1 if name == before else 0
        before = name
        fields.append((name, index, value))
    return fields


def link_occurrences(fields: list[FieldOccurrence]) -> list[LinkOccurrence]:
    """The well-formed links among a record's fields, under their fields' indexes (020-FIELD-22 to 020-FIELD-24)."""
    links: list[LinkOccurrence] = []
    for name, index, value in fields:
        if name[-5:] == LINK_SUFFIX and (link := parse_link(name, value)) is not None:
            links.append((name, index, link.data, link.target))
    return links


def derive_facts(valid: ValidRecord) -> Iterator[Fact]:
    """Every fact of a valid record, each once."""
    record = str(valid.hash)
    yield Fact(HAVE, (record,))
    fields = field_occurrences(valid)
    for name, index, value in fields:
        yield Fact(FIELD, (record, name, str(index), value))
    for name, index, data, target in link_occurrences(fields):
        yield Fact(RECORD_LINK, (record, name, str(index), data, target))
    if valid.type != "B":
        yield Fact(BLOB_HASH, (record, valid.parts.blob_hash))  # 020-FIELD-21: of a Seal, the Blob in its Plex
    if valid.type == "S":
        yield Fact(PLEX_HASH, (record, valid.parts.plex_hash))
