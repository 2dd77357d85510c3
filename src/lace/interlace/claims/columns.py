"""Claims without fields as columns of record ids (050, P16): what a set of a million has of most partitions.

Rule: a part is a stretch of a sorted column and holds all of it that begins with its prefix, so that it is cut out by
two places and made into texts or digests as a whole. Twelve bits of an id are the two symbols of a starting partition,
and the symbols stand in the order of their bits.

What it gained stands in docs/decisions/260 (`bench/differences.py --laces 1000000`, the standard rows).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from itertools import accumulate, pairwise
from typing import overload

from lace.differences.ids import Ids, columnar, framed, ids_of_texts, partition_sizes, same_ids
from lace.errors import InvalidText
from lace.interlace.claims.advertisement import Advertisement, bare_claims, bare_frame
from lace.interlace.claims.partclaims import ByRecord, PackedClaims, Part, in_order
from lace.notation import b64a
from lace.notation.digest import digest_each
from lace.thresholds import ClaimThresholds

_DEFAULT = ClaimThresholds()


class ColumnClaims(PackedClaims):
    """A stretch of sorted ids."""

    __slots__ = ("_ids", "_start", "_stop")

    def __init__(self, ids: Ids, start: int, stop: int) -> None:
        self._ids = ids
        self._start = start
        self._stop = stop

    def ids(self) -> Ids:
        """These alone, as columns."""
        return self._ids.take(slice(self._start, self._stop))

    def __len__(self) -> int:
        return self._stop - self._start

    def hashes(self) -> list[str]:
        """The records that they are about."""
        return self.ids().texts()

    @overload
    def __getitem__(self, place: int) -> Advertisement: ...
    @overload
    def __getitem__(self, place: slice) -> list[Advertisement]: ...
    def __getitem__(self, place: int | slice) -> Advertisement | list[Advertisement]:
        return bare_claims(self.hashes())[place]

    def __iter__(self) -> Iterator[Advertisement]:
        return iter(bare_claims(self.hashes()))

    def among(self, records: Collection[str]) -> list[str]:
        """Those of some records of this partition; what begins with its prefix stands in this stretch or nowhere."""
        wanted = ids_of_texts(columnar(records))
        return wanted.take(self._ids.among(wanted)).texts() if len(wanted) else []

    def record_digests(self, source: str) -> list[bytes]:
        """The record digest of each claim under a label."""
        return digest_each(framed(self.ids(), *bare_frame(source)))

    def is_same(self, other: PackedClaims) -> bool:
        """Whether these are the same ids."""
        return isinstance(other, ColumnClaims) and same_ids(self.ids(), other.ids())

    def with_records(self, records: Collection[str]) -> PackedClaims | None:
        """Claims about other records, as columns of their own."""
        return _columns(records)


def column_parts(ids: Ids) -> dict[str, PackedClaims]:
    """The starting partitions of many claims without fields."""
    if not len(ids):
        return {}
    places = accumulate(partition_sizes(ids).tolist(), initial=0)
    return {
        prefix: ColumnClaims(ids, start, stop)
        for prefix, (start, stop) in zip(_prefixes(), pairwise(places), strict=True)
        if stop > start
    }


def pack_columns(before: Part, claims: ByRecord, thresholds: ClaimThresholds = _DEFAULT) -> Part:
    """The claims of a partition as columns, if there are enough of them and none needs more than its id."""
    if len(claims) < thresholds.column_claims or any(claim.fields for claim in claims.values()):
        return claims
    return _columns(claims.keys()) or claims


def _columns(records: Collection[str]) -> PackedClaims | None:
    try:
        ids = ids_of_texts(records)
    except InvalidText:  # of a format that columns do not hold
        return None
    return ColumnClaims(ids, 0, len(ids))


def apart(parts: Mapping[str, Part]) -> tuple[list[Ids], list[Advertisement]]:
    """The claims of some partitions: those in columns, one after the other, and all others."""
    columns: list[Ids] = []
    others: list[Advertisement] = []
    for _, part in sorted(parts.items()):
        if isinstance(part, ColumnClaims):
            columns.append(part.ids())
        else:
            others += in_order(part)
    return columns, others


@cache
def _prefixes() -> list[str]:
    """All starting partitions, in the order of their bits."""
    return [first + second for first in b64a.ALPHABET for second in b64a.ALPHABET]
