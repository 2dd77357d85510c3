"""Advertisement records (050): claims about records, their canonical bytes and digests, and the reading of listings.

Rule: an advertisement is what a peer says, never a record fact (050-INVAR-03). One (P,S) pair has one canonical text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from operator import itemgetter
from typing import NamedTuple, cast, overload

from lace.errors import excerpt
from lace.facts.predicates import ADVERTISED, ADVERTISED_FIELD
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.notation import b64a
from lace.notation.decimal import is_decimal
from lace.notation.digest import digest_each, domain_digest
from lace.notation.fact import Fact
from lace.notation.identifiers import H3, PAYLOAD, RecordHash, is_record_hash
from lace.notation.text import quote

_RECORD_DOMAIN = "lace-advertisement-record/v1"
_H3_LENGTH = 48  # of `P.<43 symbols>.H3`


class FieldClaim(NamedTuple):
    """One claimed field occurrence; `position` is the Index of 020 `Field`, decimal text."""

    name: str
    position: str
    value: str


Fields = tuple[FieldClaim, ...]


class Advertisement(NamedTuple):
    """What a source claims about one record, fields in canonical order."""

    hash: str
    fields: Fields = ()


Claims = Sequence[Advertisement]
# What `Advertisement._make` does, without a Python frame for each of very many.
_make = cast("Callable[[tuple[str, Fields]], Advertisement]", partial(tuple.__new__, Advertisement))


def bare_claims(records: Iterable[str]) -> list[Advertisement]:
    """A claim without fields about each record."""
    return list(map(_make, zip(records, repeat(()))))


def canonical_fields(fields: Iterable[FieldClaim]) -> Fields:
    """Fields by name bytes, then by numeric index (050-ADVREC-05)."""
    found = tuple(fields)
    if len(found) < 2:
        return found
    return tuple(sorted(found, key=lambda field: (field.name.encode(), int(field.position))))


def canonical_bytes(advertisement: Advertisement, source: str, max_line_bytes: int) -> bytes:
    """The canonical advertisement record, every line with its LF (050-ADVREC-03 to 050-ADVREC-06).

    P14: a field fact longer than the line limit is left out, never cut; the record is still advertised.
    """
    return _canonical(advertisement.hash, advertisement.fields, quote(source), max_line_bytes).encode()


def _canonical(record: str, fields: Fields, source: str, max_line_bytes: int) -> str:
    """The same as text, of a source that is quoted: a server says the same of a record to each of its links."""
    pair = f"'{record}',{source}"
    text = f"Advertised({pair})\n"
    for name, index, value in fields:
        line = f"AdvertisedField({pair},{quote(name)},'{index}',{quote(value)})\n"
        # A character is four bytes at most: nearly all lines are so short that they need not be counted.
        if 4 * len(line) <= max_line_bytes or len(line.encode()) <= max_line_bytes + 1:
            text += line
    return text


def canonical_listing(advertisements: Claims, source: str, max_line_bytes: int) -> bytes:
    """Canonical advertisement records one after the other; where none has fields only the hashes differ."""
    if not advertisements or any(map(itemgetter(1), advertisements)):
        return b"".join(_canonical_each(advertisements, source, max_line_bytes))
    before, after = _bare_line(source, "")
    between = after + before
    return (before + between.join([record for record, _ in advertisements]) + after).encode()


def _canonical_each(claims: Iterable[Advertisement], source: str, max_line_bytes: int, domain: str = "") -> list[bytes]:
    """The canonical record of each claim behind a domain; nearly all lines of bare claims, of which there may be very
    many, are the same."""
    before, after = _bare_line(source, domain)
    quoted = quote(source)
    return [
        (
            f"{domain}{_canonical(record, fields, quoted, max_line_bytes)}" if fields else f"{before}{record}{after}"
        ).encode()
        for record, fields in claims
    ]


def _bare_line(source: str, domain: str) -> tuple[str, str]:
    """What stands before and after a record in the canonical record of a claim without fields."""
    return f"{domain}Advertised('", f"',{quote(source)})\n"


def bare_frame(source: str) -> tuple[bytes, bytes]:
    """What is hashed before and after a record for the digest of a claim without fields (050-ADVREC-07)."""
    before, after = _bare_line(source, _RECORD_DOMAIN)
    return before.encode(), after.encode()


def bare_size(source: str) -> int:
    """The bytes of a claim without fields about an H3 record."""
    return sum(map(len, bare_frame(source))) - len(_RECORD_DOMAIN) + _H3_LENGTH


def sendable_fields(advertisement: Advertisement, source: str, max_line_bytes: int) -> Fields:
    """The fields that the canonical record of this advertisement really holds (P14)."""
    if not advertisement.fields:
        return ()
    pair = f"'{advertisement.hash}',{quote(source)}"
    frame = len(f"AdvertisedField({pair},,,)".encode()) + 2  # and the quotes of the index
    return tuple(
        field
        for field in advertisement.fields
        if frame + len(quote(field.name).encode()) + len(field.position) + len(quote(field.value).encode())
        <= max_line_bytes
    )


def advertisement_facts(advertisement: Advertisement, source: str) -> Iterator[Fact]:
    """The claim as facts (050-ADVF-01, 050-ADVF-02)."""
    record = advertisement.hash
    yield Fact(ADVERTISED, (record, source))
    for name, index, value in advertisement.fields:
        yield Fact(ADVERTISED_FIELD, (record, source, name, index, value))


def record_digest(canonical: bytes) -> bytes:
    """The digest of a canonical advertisement record (050-ADVREC-07)."""
    return domain_digest(_RECORD_DOMAIN, canonical)


def record_digests(claims: Iterable[Advertisement], source: str, max_line_bytes: int) -> list[bytes]:
    """The record digest of each claim."""
    return digest_each(_canonical_each(claims, source, max_line_bytes, _RECORD_DOMAIN))


_H3_RECORDS = re.compile(rf"{RecordHash.PATTERN}(?:\n{RecordHash.PATTERN})*+")
_H3_LENGTH = PAYLOAD.stop + len(f".{H3}")


def _are_h3(texts: Sequence[str]) -> bool:
    """Whether every text is the hash of a record that we know; all are checked together.

    The length tells two hashes from one text that has a line feed between them.
    """
    joined = "\n".join(texts)
    return len(joined) == len(texts) * (_H3_LENGTH + 1) - 1 and _H3_RECORDS.fullmatch(joined) is not None


def is_record_id(text: str) -> bool:
    """Whether a text may stand as P (050-ADVF-15, P14): exact for H3, a looser shape for formats we do not know."""
    if is_record_hash(text):
        return True
    letter, _, rest = text.partition(".")
    payload, dot, suffix = rest.partition(".")
    return (
        len(letter) == 1
        and letter.isascii()
        and letter.isalpha()
        and len(payload) >= 2
        and b64a.is_canonical(payload)
        and bool(dot and suffix)
        and suffix != H3
        and "\n" not in suffix  # a fact is a line, so no peer can have said this
    )


def with_format(records: Iterable[str], formats: frozenset[str]) -> list[str]:
    """The record ids whose hash suffix is one of these."""
    given = list(records)
    if H3 in formats and _are_h3(given):
        return given
    return [record for record in given if record[record.index(".", 2) + 1 :] in formats]


def require_record_id(text: str) -> str:
    """The text, if it may stand as P; else the block is malformed."""
    if not is_record_id(text):
        raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"not a record id: {excerpt(text)}", "050-ADVF-15")
    return text


def require_record_ids(texts: Sequence[str]) -> None:
    """Abort unless every text may stand as P."""
    if not _are_h3(texts):
        for text in texts:
            require_record_id(text)


def is_index(text: str) -> bool:
    """Whether a text is the index of a field occurrence: canonical decimal (050-ADVF-08)."""
    return is_decimal(text)


def _foreign(source: str) -> ProtocolAbort:
    """050-ADVF-06: no peer speaks as another source."""
    return ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"source {excerpt(source)}", "050-ADVF-06")


class Listed(Sequence[Advertisement]):
    """The claims of a listing, sorted by P when they are first looked at: sorting many takes long, and the thread that
    reads blocks must not wait for it."""

    def __init__(self, count: int, put_in_order: Callable[[], list[Advertisement]]) -> None:
        self._count = count
        self._put_in_order: Callable[[], list[Advertisement]] | None = put_in_order
        self._claims: list[Advertisement] = []

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, place: int) -> Advertisement: ...
    @overload
    def __getitem__(self, place: slice) -> list[Advertisement]: ...
    def __getitem__(self, place: int | slice) -> Advertisement | list[Advertisement]:
        return self._ordered()[place]

    def __iter__(self) -> Iterator[Advertisement]:
        return iter(self._ordered())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._ordered() == list(other)

    def _ordered(self) -> list[Advertisement]:
        if self._put_in_order is not None:
            self._claims, self._put_in_order = self._put_in_order(), None
        return self._claims


class ListingReader:
    """Collects the lines of a listing, in any order, into claims (P14)."""

    def __init__(self, source: str, allowed_names: frozenset[str] | None, max_records: int) -> None:
        self._source = source
        self._names = allowed_names  # None: all names
        self._max_records = max_records
        self._fields: dict[str, dict[tuple[str, str], str] | None] = {}
        self._orphans: dict[str, dict[tuple[str, str], str]] = {}

    def __len__(self) -> int:
        return len(self._fields)

    @property
    def is_empty(self) -> bool:
        """Whether no line came."""
        return not self._fields and not self._orphans

    def add_records(self, records: Sequence[str], source: str) -> None:
        """`Advertised` lines of one source."""
        if source != self._source:
            raise _foreign(source)
        if not self._add_fresh(records):
            for record in records:
                self._add_record(record)

    def add_record(self, values: Sequence[str]) -> None:
        """One `Advertised` line; its arity was checked."""
        record, source = values
        if source != self._source:
            raise _foreign(source)
        self._add_record(record)

    def add_field(self, values: Sequence[str]) -> None:
        """One `AdvertisedField` line; its arity was checked."""
        record, source, name, index, value = values
        if source != self._source:
            raise _foreign(source)
        self._add_field(record, name, index, value)

    def add_claim(self, advertisement: Advertisement) -> None:
        """A whole record, from a binding that carries values."""
        self._add_record(advertisement.hash)
        for name, index, value in advertisement.fields:
            self._add_field(advertisement.hash, name, index, value)

    def _add_fresh(self, records: Sequence[str]) -> bool:
        """Take many records at once; False, and nothing done, if there is anything to say about one of them."""
        fresh: dict[str, dict[tuple[str, str], str] | None] = dict.fromkeys(records)
        if self._orphans or len(self._fields) + len(fresh) > self._max_records:
            return False
        if not _H3_RECORDS.fullmatch("\n".join(fresh)) or not self._fields.keys().isdisjoint(fresh):
            return False
        self._fields.update(fresh)
        return True

    def _add_record(self, record: str) -> None:
        if record not in self._fields:
            if len(self._fields) >= self._max_records:  # 050-LIM-03
                raise ProtocolAbort(
                    AbortReason.OVERSIZED_FACT_BLOCK, f"more than {self._max_records} records listed", "050-LIM-03"
                )
            require_record_id(record)
            self._fields[record] = self._orphans.pop(record, None) if self._orphans else None

    def _add_field(self, record: str, name: str, index: str, value: str) -> None:
        if self._names is not None and name not in self._names:  # 050-ADVF-14
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"field {excerpt(name)} is outside the agreed schema", "050-ADVF-14"
            )
        if index != "0" and not is_index(index):  # nearly every field stands once
            raise ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, f"field index {excerpt(index)}", "050-ADVF-08")
        if record in self._fields:
            fields = self._fields[record]
            if fields is None:
                fields = self._fields[record] = {}
        else:
            fields = self._orphans.setdefault(record, {})
        if fields.setdefault((name, index), value) != value:  # P14: two different records for one P
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"two values for {excerpt(name)} {index} of {record}", "050-ADVREC-08"
            )

    def finish(self) -> Listed:
        """The claims; whatever is to be said against them has been said."""
        if self._orphans:  # 050-ADVF-13
            orphan = next(iter(self._orphans))
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"a field of {excerpt(orphan)}, which is not listed", "050-ADVF-13"
            )
        return Listed(len(self._fields), self._sorted)

    def _sorted(self) -> list[Advertisement]:
        if not any(self._fields.values()):
            return bare_claims(sorted(self._fields))
        return [
            Advertisement(
                record,
                canonical_fields(FieldClaim(name, index, value) for (name, index), value in fields.items())
                if fields
                else (),
            )
            for record, fields in sorted(self._fields.items(), key=itemgetter(0))
        ]
