"""What an archive would list itself, while a peer's summaries are compared with it (P16).

Rule: counts and roots of starting partitions come from one job each; advertisements are read for those partitions only
that one call names, all in one pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lace.interlace.claims.advertisement import Advertisement
from lace.interlace.claims.partitions import START_LENGTH, AdvertisementSet, Partition, Parts
from lace.interlace.effects import Reconcile
from lace.interlace.host import Call
from lace.spark.peer.sets import ArchiveSet


class ArchiveListing:
    """A set's partitions, for one call."""

    def __init__(self, own: ArchiveSet, source: str, call: Call) -> None:
        self.own = own
        self._call = call
        self._source = source
        self._roots: dict[str, Partition] | None = None
        self._loaded = AdvertisementSet(own.max_line_bytes)
        self._has: set[str] = set()

    def counts(self) -> dict[str, int]:
        """How many records each starting partition has."""
        return self.own.counts(self._call)

    def same(self, offered: Sequence[Partition]) -> list[Partition]:
        """The starting partitions of a peer that are ours."""
        counts = self.counts()
        likely = [one for one in offered if counts.get(one.prefix) == one.count]
        return [one for one in likely if self.summary(one.prefix, self._source) == one]

    def read_for(self, wanted: Reconcile) -> None:
        """Read at once what will be compared: partitions that are ours but for one record, and children."""
        if wanted.parents is not None:
            self._load(wanted.parents)
            return
        counts = self.counts()
        self._load([one.prefix for one in wanted.offered if counts.get(one.prefix) == one.count + 1])

    def hashes_under(self, prefixes: Sequence[str]) -> list[str]:
        """The records of some partitions."""
        return self.own.hashes_under(prefixes, self._call)

    def under_all(self, prefixes: Sequence[str]) -> list[Advertisement]:
        """The claims of some partitions, sorted."""
        return list(self.own.claims(self._call, prefixes))

    def _load(self, prefixes: Sequence[str]) -> None:
        if not prefixes:
            return
        claims = list(self.own.claims(self._call, prefixes))
        self._call.charge(rows=len(claims))
        self._loaded.put_all(claims)
        self._has.update(prefixes)

    def count_under(self, prefix: str) -> int:
        """How many records a partition has."""
        if len(prefix) == START_LENGTH:
            return self.own.counts(self._call).get(prefix, 0)
        return self._part(prefix).count_under(prefix)

    def summary(self, prefix: str, source: str) -> Partition:
        """What a source with this label would say of a partition."""
        if len(prefix) > START_LENGTH or source != self._source:
            return self._part(prefix).summary(prefix, source)
        if self._roots is None:
            self._roots = {found.prefix: found for found in self.own.roots(source, self._call)}
        return self._roots.get(prefix) or AdvertisementSet(0).summary(prefix, source)

    def part(self, prefix: str) -> Sequence[Advertisement]:
        """The claims of a partition."""
        return self._part(prefix).part(prefix)

    def family(self, prefix: str) -> Mapping[str, Sequence[Advertisement]]:
        """The claims of a partition by child."""
        return self._part(prefix).family(prefix)

    def _part(self, prefix: str) -> AdvertisementSet:
        if not any(prefix[:length] in self._has for length in range(START_LENGTH, len(prefix) + 1)):
            self._load([prefix])
        return self._loaded

    def unsummarised(self, source: str, prefixes: Iterable[str]) -> Parts:
        """None: roots are worked out on the cluster."""
        return {}

    def remember(self, source: str, partitions: Iterable[Partition]) -> None:
        """Nothing: the set remembers its roots."""
