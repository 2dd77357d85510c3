"""A hash tree over a set of ids (070): one root for a set, the same whichever side computes it and for whichever peer.

Rule: the tree has no key, so links share it, and it follows a change by the parts that the change touches. That two
sets have one root is as hard to bring about as a collision of BLAKE3; so nobody who writes records gains by grinding
their hashes, although everything here can be known beforehand. What a peer is told is the root under the link's key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from lace.differences.ids import Ids
from lace.differences.idset import IdSet
from lace.differences.keyed import DifferenceKey
from lace.notation.b64a import ALPHABET
from lace.notation.digest import digest, digest_each, key_deriver
from lace.thresholds import DifferenceThresholds
from lace.values import dataclass

PART_BITS = 12
PARTS: int = 1 << PART_BITS
ROOT_BYTES = 16  # as told: under a key that is not known beforehand, so it need not be longer
_SHIFT = np.uint64(64 - PART_BITS)
_DEFAULT = DifferenceThresholds()
_derive = key_deriver("lace-differences/v1 root")


@dataclass(frozen=True, slots=True, eq=False)
class Tree:
    """The digests of the parts of a set, and which of them are not known any more."""

    digests: npt.NDArray[np.uint8]  # (PARTS, 32)
    stale: npt.NDArray[np.bool_]

    def touched(self, changed: Ids) -> Tree:
        """The tree of a set in which these ids came or went."""
        if not len(changed):
            return self
        stale = self.stale.copy()
        stale[_parts_of(changed)] = True
        return Tree(self.digests, stale)

    def of(self, held: IdSet, thresholds: DifferenceThresholds = _DEFAULT) -> Tree:
        """This tree with every part known; `held` is the set."""
        parts = np.flatnonzero(self.stale)
        if not len(parts):
            return self
        is_walked = len(parts) > thresholds.cut_parts
        pieces = _cut(held.ids(), parts) if is_walked else (_part(held, int(part)) for part in parts)
        digests = self.digests.copy()
        digests[parts] = np.frombuffer(b"".join(digest_each(pieces)), np.uint8).reshape(-1, 32)
        return Tree(digests, np.zeros(PARTS, np.bool_))

    def root(self) -> bytes:
        """32 bytes that only this set has (070-ROOT-01)."""
        return digest(self.digests.tobytes())


def tree_root(digests: Mapping[str, bytes]) -> bytes:
    """The root of a set whose parts were digested elsewhere, by the two symbols that ids of a part begin with; those
    that are not given are empty."""
    empty = digest(b"")
    return digest(b"".join(digests.get(one + other, empty) for one in ALPHABET for other in ALPHABET))


UNKNOWN = Tree(np.zeros((PARTS, 32), np.uint8), np.ones(PARTS, np.bool_))


def told_root(root: bytes, key: DifferenceKey) -> bytes:
    """What a peer is told of a root (070-ROOT-02)."""
    return _derive(key.to_bytes() + root, ROOT_BYTES)


def _parts_of(ids: Ids) -> npt.NDArray[np.int64]:
    parts: npt.NDArray[np.int64] = (ids.words[0] >> _SHIFT).astype(np.int64)
    return parts


def _cut(ids: Ids, parts: npt.NDArray[np.int64]) -> Iterator[bytes]:
    """The ids of some parts, as bytes, one part after the other."""
    rows, bounds = ids.rows(), np.searchsorted(_parts_of(ids), np.arange(PARTS + 1))
    for start, end in zip(bounds[parts].tolist(), bounds[parts + 1].tolist(), strict=True):
        yield rows[start:end].tobytes()


def _part(held: IdSet, part: int) -> bytes:
    base, added, removed = (_within(ids, part) for ids in (held.base, held.added, held.removed))
    return base.without(removed).with_(added).to_bytes()


def _within(ids: Ids, part: int) -> Ids:
    first = ids.words[0]
    start = int(np.searchsorted(first, np.uint64(part << int(_SHIFT))))
    end = len(first) if part + 1 == PARTS else int(np.searchsorted(first, np.uint64((part + 1) << int(_SHIFT))))
    return ids.take(slice(start, end))
