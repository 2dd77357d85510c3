"""Merkle roots of advertisement partitions (050, P16).

Rule: leaves stand in the order of the sorted record digests; the row is padded on the right with `empty`.
"""

from __future__ import annotations

from collections.abc import Iterable

from lace.notation.digest import digest_each, domain_digest

_LEAF = b"lace-advertisement-leaf/v1"
_NODE = b"lace-advertisement-node/v1"
EMPTY = domain_digest("lace-advertisement-empty/v1", b"")  # 050-PART-10


def partition_root(record_digests: Iterable[bytes]) -> bytes:
    """The root over record digests, in any order given (050-PART-06 to 050-PART-13)."""
    row = digest_each([_LEAF + record for record in sorted(record_digests)])
    if not row:
        return EMPTY
    row += [EMPTY] * ((1 << (len(row) - 1).bit_length()) - len(row))
    while len(row) > 1:
        row = digest_each([_NODE + left + right for left, right in zip(row[::2], row[1::2], strict=True)])
    return row[0]
