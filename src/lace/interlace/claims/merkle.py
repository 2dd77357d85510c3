"""Merkle roots of advertisement partitions (050, P16).

Rule: leaves stand in the order of the sorted record digests; the row is padded on the right with `empty`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def roots_without_one(record_digests: Sequence[bytes]) -> Iterator[bytes]:
    """The root of a partition without its first record, without its second, and so on.

    What stands before the one left out is as in the tree without the last, what stands behind it as in the tree without
    the first: a root takes one path of nodes instead of all of them.
    """
    order = sorted(range(len(record_digests)), key=record_digests.__getitem__)
    leaves = digest_each([_LEAF + record_digests[at] for at in order])
    before, behind = _levels(leaves[:-1]), _levels(leaves[1:])
    places = {at: place for place, at in enumerate(order)}
    for at in range(len(order)):
        yield _root_without(places[at], before, behind)


def _levels(leaves: list[bytes]) -> list[list[bytes]]:
    """Every level of a tree from its leaves up; all but the last are padded to whole pairs."""
    levels, empty = [leaves or [EMPTY]], EMPTY
    while len(row := levels[-1]) > 1:
        if len(row) % 2:
            row.append(empty)
        levels.append(digest_each([_NODE + left + right for left, right in zip(row[::2], row[1::2], strict=True)]))
        empty = _doubled(empty)
    return levels


def _root_without(place: int, before: list[list[bytes]], behind: list[list[bytes]]) -> bytes:
    """The root of the leaves of one tree up to a place and of the other from there on."""
    top = len(before) - 1
    node = b""  # the one that holds leaves of both
    for level in range(top):
        left = place >> level + 1 << 1
        middle = left + 1 << level
        if place == left << level:  # nothing is mixed yet
            continue
        first = node if place < middle else before[level][left]
        second = node if place > middle else behind[level][left + 1]
        node = digest(_NODE + first + second)
    return node or (before if place else behind)[top][0]


@lru_cache(maxsize=64)
def _doubled(empty: bytes) -> bytes:
    return digest(_NODE + empty + empty)
