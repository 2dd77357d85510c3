"""The facts of a valid record (020): Have, Field, RecordLink, BlobHash, PlexHash.

Rule: facts come from a ValidRecord and from nothing else; they hold wherever that record is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from lace.facts import predicates as names
from lace.facts.predicates import BLOB_HASH, FIELD, HAVE, PLEX_HASH, RECORD_LINK
from lace.notation.fact import Fact
from lace.notation.identifiers import RECORD_TYPES
from lace.records.link import LINK_SUFFIX, parse_link
from lace.records.model import Header, Parts, ValidRecord

# What holds one value for each record of some types: the field or predicate, the types, the part with the value. Every
# record has a Type and a Data-Length beside these (020-FIELD-01 to 020-FIELD-12).
SINGLE_FIELDS = (
    (names.GROUP, "PS", "group"),
    (names.APP, "PS", "app"),
    (names.NAME, "PS", "name"),
    (names.TAI, "PS", "tai"),
    (names.SIGNED_BY, "S", "signed_by"),
    (names.SIGNATURE, "S", "signature"),
)
INNER_HASHES = (
    (BLOB_HASH, "PS", "blob_hash"),  # 020-FIELD-21: of a Seal, the Blob in its Plex
    (PLEX_HASH, "S", "plex_hash"),
)
_SINGLES = {
    kind: tuple((name, Parts._fields.index(part)) for name, types, part in SINGLE_FIELDS if kind in types)
    for kind in RECORD_TYPES
}

FieldOccurrence = tuple[str, int, str]  # name, index, value
LinkOccurrence = tuple[str, int, str, str]  # name, index, data, target


def field_occurrences(valid: ValidRecord) -> list[FieldOccurrence]:
    """Every field of a record with its occurrence index (020-FIELD-13 to 020-FIELD-16)."""
    parts, kind = valid.parts, valid.type
    fields: list[FieldOccurrence] = [(names.TYPE, 0, kind), (names.DATA_LENGTH, 0, str(valid.data_length))]
    fields += [(name, 0, parts[at]) for name, at in _SINGLES[kind]]  # type: ignore[misc]  # these parts are texts
    return fields + extra_occurrences(parts.headers) if parts.headers else fields


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
    for predicate, types, part in INNER_HASHES:
        if valid.type in types:
            yield Fact(predicate, (record, getattr(valid.parts, part)))
