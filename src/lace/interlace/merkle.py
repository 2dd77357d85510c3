"""Merkle roots of advertisement partitions (050, P16).

Rule: leaves stand in the order of the sorted record digests; the row is padded on the right with `empty`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain, islice

from lace.notation.digest import digest, digest_each, domain_digest

_LEAF = b"lace-advertisement-leaf/v1"
_NODE = b"lace-advertisement-node/v1"
EMPTY = domain_digest("lace-advertisement-empty/v1", b"")  # 050-PART-10


def partition_roots(partitions: Iterable[Iterable[bytes]]) -> list[bytes]:
    """The root over each partition's record digests, in any order given (050-PART-06 to 050-PART-13).

    Level by level through all of them: there may be thousands of small ones.
    """
    rows = [sorted(record_digests) for record_digests in partitions]
    hashed = iter(digest_each([_LEAF + record for row in rows for record in row]))
    rows = [list(islice(hashed, len(row))) for row in rows]
    empty = EMPTY  # the root of as many padding leaves as a place of this level stands for
    while unfinished := [row for row in rows if len(row) > 1]:
        for row in unfinished:
            if len(row) % 2:
                row.append(empty)
        level = list(chain.from_iterable(unfinished))
        hashed = iter(digest_each([_NODE + left + right for left, right in zip(level[::2], level[1::2], strict=True)]))
        for row in unfinished:
            row[:] = islice(hashed, len(row) // 2)
        empty = _doubled(empty)
    return [row[0] if row else EMPTY for row in rows]


def partition_root(record_digests: Iterable[bytes]) -> bytes:
    """The root of one partition."""
    return partition_roots([record_digests])[0]


@lru_cache(maxsize=64)
def _doubled(empty: bytes) -> bytes:
    return digest(_NODE + empty + empty)
