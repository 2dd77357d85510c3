"""Merkle roots of advertisement partitions (050, P16).

Rule: leaves stand in the order of the sorted record digests; the row is padded on the right with `empty`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from lace.notation.digest import digest, digest_each, domain_digest

_LEAF = b"lace-advertisement-leaf/v1"
_NODE = b"lace-advertisement-node/v1"
EMPTY = domain_digest("lace-advertisement-empty/v1", b"")  # 050-PART-10


def partition_root(record_digests: Iterable[bytes]) -> bytes:
    """The root over record digests, in any order given (050-PART-06 to 050-PART-13)."""
    row = digest_each([_LEAF + record for record in sorted(record_digests)])
    if not row:
        return EMPTY
    empty = EMPTY  # the root of as many padding leaves as a place of this row stands for
    for _ in range((len(row) - 1).bit_length()):
        if len(row) % 2:
            row.append(empty)
        row = digest_each([_NODE + left + right for left, right in zip(row[::2], row[1::2], strict=True)])
        empty = _doubled(empty)
    return row[0]


@lru_cache(maxsize=64)
def _doubled(empty: bytes) -> bytes:
    return digest(_NODE + empty + empty)
