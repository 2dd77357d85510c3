"""The roots of many partitions in shares, for several processes (050, P16).

Rule: the same roots, however the work is shared. What is imported here a worker process imports too: little.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import IO

from lace.interlace.claims.advertisement import Advertisement, Fields, bare_claims
from lace.interlace.claims.partclaims import PackedClaims
from lace.interlace.claims.partitions import Partition, Parts, summarise
from lace.values import dataclass

_MIN_SHARED_CLAIMS = 4096  # fewer are worked out sooner than they are handed over


@dataclass(frozen=True, slots=True)
class RootJob:
    """A share of the work, packed to cross a process border quickly: nearly all claims are bare hashes."""

    source: str
    max_line_bytes: int
    prefixes: Sequence[str]
    counts: Sequence[int]
    hashes: str  # of all claims, one a line
    fields: Mapping[str, Fields]  # of the claims that have any

    def run(self, _: IO[bytes]) -> list[tuple[str, int, str]]:
        """In a worker process: the fields of each partition."""
        claims: Iterator[Advertisement] = iter(bare_claims(self.hashes.split("\n")))
        fields = self.fields
        if fields:
            claims = (Advertisement(record, fields.get(record, ())) for record, _ in claims)
        parts = {prefix: list(islice(claims, count)) for prefix, count in zip(self.prefixes, self.counts, strict=True)}
        return [(part.prefix, part.count, part.root) for part in summarise(parts, self.source, self.max_line_bytes)]


def pack(parts: Parts, source: str, max_line_bytes: int) -> RootJob:
    """Parts as work for another process."""
    hashes: list[str] = []
    fields: dict[str, Fields] = {}
    for part in parts.values():
        if isinstance(part, PackedClaims):
            hashes += part.hashes()
        else:
            hashes += [record for record, _ in part]
            fields.update((record, found) for record, found in part if found)
    return RootJob(
        source=source,
        max_line_bytes=max_line_bytes,
        prefixes=list(parts),
        counts=[len(part) for part in parts.values()],
        hashes="\n".join(hashes),
        fields=fields,
    )


def unpack(found: Sequence[tuple[str, int, str]]) -> list[Partition]:
    """What a worker answered."""
    return [Partition(*part) for part in found]


def is_worth_sharing(parts: Parts) -> bool:
    """Whether there is more to do than handing it over costs."""
    return sum(map(len, parts.values())) > _MIN_SHARED_CLAIMS


def split(parts: Parts, count: int) -> list[Parts]:
    """At most so many shares, of about as many claims each."""
    size = -(-sum(map(len, parts.values())) // count)
    shares: list[dict[str, Sequence[Advertisement]]] = [{}]
    room = size
    for prefix, claims in parts.items():
        if room <= 0:
            shares.append({})
            room = size
        shares[-1][prefix] = claims
        room -= len(claims)
    return list(shares)
