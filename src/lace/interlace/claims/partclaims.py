"""The claims of one partition as a value: by record, or packed (050, P16).

Rule: a part is never changed once it is in a set, so any number of sets hold the same one, and whether two are the same
is mostly seen without looking into them. What packs claims stands elsewhere (`columns`): a process that only works out
roots of others' claims needs none of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Sequence
from operator import itemgetter
from typing import Final

from lace.interlace.claims.advertisement import Advertisement


class PackedClaims(Sequence[Advertisement]):
    """Claims without fields, in some order; an `Advertisement` is made of one when it is looked at."""

    __slots__ = ()

    @abstractmethod
    def hashes(self) -> list[str]:
        """The records that they are about."""

    @abstractmethod
    def among(self, records: Sequence[str]) -> list[str]:
        """Those of some records of this partition that there is a claim about, in any order."""

    @abstractmethod
    def record_digests(self, source: str) -> list[bytes]:
        """The record digest of each claim under a label."""

    @abstractmethod
    def is_same(self, other: PackedClaims) -> bool:
        """Whether these are the same claims."""

    @abstractmethod
    def with_records(self, records: Collection[str]) -> PackedClaims | None:
        """Claims about these records, packed as these are; None if they cannot be."""


by_hash: Final = itemgetter(0)  # a set has one claim about a record
ByRecord = dict[str, Advertisement]
Part = PackedClaims | ByRecord
Pack = Callable[[Part, ByRecord], Part]
"""Packs claims that stand where others stood, if that is worth it and can be."""


def by_record(part: Part) -> ByRecord:
    """The claims by what they are about; not to be changed."""
    return part if isinstance(part, dict) else {claim[0]: claim for claim in part}


def in_order(part: Part) -> list[Advertisement]:
    """The claims sorted by P."""
    return sorted(part.values() if isinstance(part, dict) else part, key=by_hash)


def records_of(part: Part) -> Collection[str]:
    """What the claims are about."""
    return part.keys() if isinstance(part, dict) else part.hashes()


def those_of(part: Part, records: Sequence[str]) -> Iterable[str]:
    """Those of some records that there is a claim about."""
    return part.keys() & set(records) if isinstance(part, dict) else part.among(records)


def are_same(one: Part, other: Part) -> bool:
    """Whether two parts hold the same claims."""
    if one is other:
        return True
    if len(one) != len(other):
        return False
    if isinstance(one, PackedClaims) and isinstance(other, PackedClaims):
        return one.is_same(other)
    return by_record(one) == by_record(other)


def packed_as(before: Part, claims: ByRecord) -> Part:
    """The claims packed if those before were and these can be."""
    if not isinstance(before, PackedClaims) or not claims or any(claim.fields for claim in claims.values()):
        return claims
    return before.with_records(claims.keys()) or claims
