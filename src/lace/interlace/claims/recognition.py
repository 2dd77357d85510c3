"""How a peer's summaries are settled against what we know (050, P16).

Rule: a partition whose count and root are those of claims that we can already name is not transferred: either what
we hold from before, or what we would list ourselves under the peer's label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from lace.interlace.claims.advertisement import Advertisement, record_digests
from lace.interlace.claims.merkle import roots_without_one
from lace.interlace.claims.partclaims import PackedClaims, by_hash
from lace.interlace.claims.partitions import START_LENGTH, AdvertisementSet, Partition, Parts
from lace.interlace.claims.relative import as_theirs
from lace.interlace.effects import Reconcile
from lace.interlace.host import Call
from lace.notation import b64a
from lace.thresholds import ClaimThresholds


class OwnListing(Protocol):
    """What we would list ourselves, as far as partitions are compared with it."""

    def count_under(self, prefix: str) -> int: ...
    def summary(self, prefix: str, source: str) -> Partition: ...
    def part(self, prefix: str) -> Sequence[Advertisement]: ...
    def family(self, prefix: str) -> Mapping[str, Sequence[Advertisement]]: ...
    def unsummarised(self, source: str, prefixes: Iterable[str]) -> Parts: ...
    def remember(self, source: str, partitions: Iterable[Partition]) -> None: ...


WorkOut = Callable[[Parts, str, int], Sequence[Partition]]
"""Works out what a source with a label says of some partitions, as `partitions.summarise` does."""


class _KnownClaims:
    """Claims that we can name, and the children of those partitions that the peer was asked to narrow."""

    def __init__(self, listing: OwnListing) -> None:
        self._listing = listing
        self._below: dict[str, Sequence[Advertisement]] = {}
        self._summaries: set[Partition] = set()  # of children

    def split(self, parents: Iterable[str]) -> None:
        """Some partitions are narrowed; each is gone through once, however many children it has."""
        for parent in parents:
            self._below.update(self._listing.family(parent))

    def count(self, prefix: str) -> int:
        """How many claims there are under a prefix."""
        return self._listing.count_under(prefix) if len(prefix) == START_LENGTH else len(self._below.get(prefix, ()))

    def claims(self, prefix: str) -> Sequence[Advertisement]:
        """The claims under a prefix."""
        return self._listing.part(prefix) if len(prefix) == START_LENGTH else self._below.get(prefix, ())

    def unsummarised(self, partitions: Iterable[Partition], source: str) -> Parts:
        """Those of some partitions whose roots decide, for the counts agree, and have to be worked out."""
        likely = [one.prefix for one in partitions if self.count(one.prefix) == one.count]
        tops = self._listing.unsummarised(source, [prefix for prefix in likely if len(prefix) == START_LENGTH])
        return {**tops, **{prefix: self._below[prefix] for prefix in likely if len(prefix) > START_LENGTH}}

    def remember(self, source: str, partitions: Sequence[Partition]) -> None:
        """The roots were worked out."""
        self._listing.remember(source, partitions)
        self._summaries.update(one for one in partitions if len(one.prefix) > START_LENGTH)

    def is_(self, partition: Partition, source: str) -> bool:
        """Whether a partition is what we know; roots are worked out only where the counts agree."""
        if len(partition.prefix) > START_LENGTH:
            return partition in self._summaries
        return self.count(partition.prefix) == partition.count and (
            self._listing.summary(partition.prefix, source) == partition
        )


class Recognition:
    """Which partitions of a peer are claims that we can name: one call's worth of comparing."""

    def __init__(
        self,
        held: AdvertisementSet,
        own: OwnListing,
        source: str,
        max_line_bytes: int,
        call: Call,
        thresholds: ClaimThresholds,
    ) -> None:
        self._held = _KnownClaims(held)
        self._own = _KnownClaims(own)
        self._source = source
        self._max_line_bytes = max_line_bytes
        self._call = call
        self._guesses = thresholds.guessed_roots
        self._guessed_rows = thresholds.guessed_rows

    def know_roots(self, wanted: Reconcile, work_out: WorkOut) -> None:
        """Work out together the roots of all partitions that will be compared: first those of what is held."""
        self._work_out(self._held, wanted, wanted.offered, work_out)
        self._work_out(self._own, wanted, [one for one in wanted.offered if not self.is_held(one)], work_out)

    def _work_out(
        self, known: _KnownClaims, wanted: Reconcile, partitions: Sequence[Partition], work_out: WorkOut
    ) -> None:
        known.split(wanted.parents or ())
        parts = known.unsummarised(partitions, self._source)
        if parts:
            self._call.charge(rows=sum(map(len, parts.values())))
            known.remember(self._source, work_out(parts, self._source, self._max_line_bytes))

    def is_held(self, partition: Partition) -> bool:
        """Whether it is what we hold already."""
        return self._held.is_(partition, self._source)

    def known_count(self, partition: Partition) -> int:
        """How many claims we know under its prefix."""
        return max(self._held.count(partition.prefix), self._own.count(partition.prefix))

    def name(self, partition: Partition) -> Sequence[Advertisement] | None:
        """Its claims, if we can name them."""
        if self._own.is_(partition, self._source):  # a virtual root: same set, their label
            return self._theirs(self._own, partition.prefix)
        return self._all_but_one(partition, self._held) or self._all_but_one(partition, self._own)

    def _theirs(self, known: _KnownClaims, prefix: str) -> Sequence[Advertisement]:
        """What we know as the peer would say it."""
        claims = known.claims(prefix)
        if isinstance(claims, PackedClaims):  # nothing of them hangs on a label
            return claims
        return as_theirs(claims, self._source, self._max_line_bytes)

    def _all_but_one(self, partition: Partition, known: _KnownClaims) -> list[Advertisement] | None:
        """The claims we can name but for one, if that is what the root says: the peer lacks one record of ours."""
        count = known.count(partition.prefix)
        if count != partition.count + 1:
            return None
        if count > self._guesses or count * count > self._guessed_rows:  # a hostile peer could make us try in vain
            return None
        claims = sorted(self._theirs(known, partition.prefix), key=by_hash)
        digests = record_digests(claims, self._source, self._max_line_bytes)
        for left_out, root in enumerate(roots_without_one(digests)):
            self._guesses -= 1
            self._guessed_rows -= count
            self._call.charge(rows=count)
            if b64a.encode(root) == partition.root:
                return claims[:left_out] + claims[left_out + 1 :]
        return None
