"""A set of advertisements, split into partitions whose Merkle roots are remembered (050, P16).

Rule: a root is recomputed only where the set changed since it was last asked for; roots are kept per source label,
because the label is inside every digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, islice
from typing import NamedTuple

from lace.interlace.advertisement import Advertisement, canonical_bytes, record_digests
from lace.interlace.merkle import partition_roots
from lace.notation import b64a
from lace.notation.digest import digest

START_LENGTH = 2  # 050-PART-03
_TOP_END = 2 + START_LENGTH
_PAYLOAD = 2  # the payload begins after the type letter and its dot (050-PART-01, 050-PART-02)


@dataclass(frozen=True, slots=True, order=True)
class Partition:
    """A summary: how many records begin with the prefix, and the root over them as B64A text."""

    prefix: str
    count: int
    root: str


class ClaimChanges(NamedTuple):
    """Claims that came and went."""

    added: list[Advertisement]
    removed: list[Advertisement]


Parts = Mapping[str, Sequence[Advertisement]]  # the claims of some partitions by prefix, in no order


def summarise(parts: Parts, source: str, max_line_bytes: int) -> list[Partition]:
    """What a source with this label would say of each of some partitions."""
    digests = iter(record_digests(chain.from_iterable(parts.values()), source, max_line_bytes))
    counts = list(map(len, parts.values()))
    roots = partition_roots([list(islice(digests, count)) for count in counts])
    return [
        Partition(prefix, count, b64a.encode(root)) for prefix, count, root in zip(parts, counts, roots, strict=True)
    ]


def fingerprint_of(summaries: Iterable[Partition]) -> bytes:
    """A digest that two equal listings share, by their sorted starting partitions."""
    return digest("".join(f"{p.prefix}{p.count}{p.root}" for p in summaries).encode())


def payload_begins(record: str, prefix: str) -> bool:
    """Whether a record belongs to a partition."""
    return record.startswith(prefix, _PAYLOAD)


def top_prefix(record: str) -> str:
    """The starting partition of a record."""
    return record[_PAYLOAD : _PAYLOAD + START_LENGTH]


class AdvertisementSet:
    """Claims by record hash."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: dict[str, dict[str, Advertisement]] = {}
        self._roots: dict[str, dict[str, Partition]] = {}
        self._count = 0
        self.version = 0  # grows with every change

    def __len__(self) -> int:
        return self._count

    def __contains__(self, record: str) -> bool:
        part = self._parts.get(top_prefix(record))
        return part is not None and record in part

    def among(self, records: Iterable[str]) -> list[str]:
        """Those of some records that there is a claim about."""
        parts = self._parts
        nothing: dict[str, Advertisement] = {}
        return [record for record in records if record in parts.get(record[_PAYLOAD:_TOP_END], nothing)]

    def __iter__(self) -> Iterator[str]:
        for part in self._parts.values():
            yield from part

    def get(self, record: str) -> Advertisement | None:
        """The claim about a record."""
        return self._parts.get(top_prefix(record), {}).get(record)

    def put_all(self, advertisements: Iterable[Advertisement]) -> ClaimChanges:
        """Hold many claims; what that changed."""
        changes = ClaimChanges([], [])
        # Listings are sorted, so the claims of a partition mostly come together.
        for prefix, group in groupby(advertisements, lambda claim: claim.hash[_PAYLOAD:_TOP_END]):
            claims = {claim.hash: claim for claim in group}
            part = self._parts.setdefault(prefix, {})
            if part:
                claims = {record: claim for record, claim in claims.items() if part.get(record) != claim}
                changes.removed.extend([part[record] for record in claims if record in part])
            if claims:
                held = len(part)
                part.update(claims)
                self._count += len(part) - held
                changes.added.extend(claims.values())
                for roots in self._roots.values():
                    roots.pop(prefix, None)
        self.version += len(changes.added)
        return changes

    def drop(self, record: str) -> Advertisement | None:
        """Forget a claim; the claim, if there was one."""
        prefix = top_prefix(record)
        part = self._parts.get(prefix)
        claim = part.pop(record, None) if part is not None else None
        if part is None or claim is None:
            return None
        if not part:
            del self._parts[prefix]
        self._count -= 1
        self._changed(prefix)
        return claim

    def _changed(self, prefix: str, times: int = 1) -> None:
        self.version += times
        for roots in self._roots.values():
            roots.pop(prefix, None)

    @property
    def partition_count(self) -> int:
        """How many starting partitions are not empty."""
        return len(self._parts)

    def prefixes(self) -> list[str]:
        """The non-empty starting partitions, sorted."""
        return sorted(self._parts)

    def under(self, prefix: str) -> list[Advertisement]:
        """The claims of a partition, sorted by P (050-LIST-05)."""
        part = self._parts.get(prefix[:START_LENGTH], {})
        if len(prefix) == START_LENGTH:
            return sorted(part.values())
        return sorted(claim for record, claim in part.items() if payload_begins(record, prefix))

    def listing(self) -> list[Advertisement]:
        """All claims, sorted by P (P14)."""
        parts = self._parts
        records = sorted(chain.from_iterable(parts.values()))  # code points sort as their UTF-8 bytes do
        return [parts[record[_PAYLOAD:_TOP_END]][record] for record in records]

    def beyond(self, other: AdvertisementSet) -> list[Advertisement]:
        """The claims about records that another set has none about, sorted by P."""
        nothing: dict[str, Advertisement] = {}
        return sorted(
            part[record]
            for prefix, part in self._parts.items()
            for record in part.keys() - other._parts.get(prefix, nothing).keys()
        )

    def size_under(self, source: str, prefix: str = "") -> int:
        """The bytes of a listing, or of one partition of it."""
        claims = self.under(prefix) if prefix else chain.from_iterable(p.values() for p in self._parts.values())
        return sum(len(canonical_bytes(claim, source, self._max_line_bytes)) for claim in claims)

    def count_under(self, prefix: str) -> int:
        """How many claims a partition has."""
        part = self._parts.get(prefix[:START_LENGTH], {})
        if len(prefix) == START_LENGTH:
            return len(part)
        return sum(payload_begins(record, prefix) for record in part)

    def summary(self, prefix: str, source: str) -> Partition:
        """What a source with this label would say of a partition."""
        if len(prefix) > START_LENGTH:
            return self._summarise(prefix, self.under(prefix), source)
        roots = self._roots.setdefault(source, {})
        found = roots.get(prefix)
        if found is None:
            found = roots[prefix] = self._summarise(prefix, list(self._parts.get(prefix, {}).values()), source)
        return found

    def unsummarised(self, source: str, prefixes: Iterable[str]) -> Parts:
        """Those starting partitions whose roots under a label would have to be worked out."""
        roots = self._roots.get(source, {})
        return {
            prefix: list(self._parts[prefix].values())
            for prefix in prefixes
            if prefix in self._parts and prefix not in roots
        }

    def summaries(self, source: str) -> list[Partition]:
        """Every non-empty starting partition, sorted by prefix (050-LIST-09)."""
        return [self.summary(prefix, source) for prefix in self.prefixes()]

    def children(self, prefix: str, source: str) -> list[Partition]:
        """The non-empty child partitions, sorted (050-PART-05, 050-LIST-06)."""
        length = len(prefix) + 1
        groups: dict[str, list[Advertisement]] = {}
        for claim in self.under(prefix):
            child = claim.hash[_PAYLOAD : _PAYLOAD + length]
            if len(child) == length:
                groups.setdefault(child, []).append(claim)
        return summarise(dict(sorted(groups.items())), source, self._max_line_bytes)

    def replace(self, prefix: str, claims: Iterable[Advertisement]) -> ClaimChanges:
        """Hold exactly these claims under a prefix; what changed."""
        new = {claim.hash: claim for claim in claims}
        if new and len(prefix) == START_LENGTH and prefix not in self._parts:  # nothing to compare them with
            self._parts[prefix] = new
            self._count += len(new)
            self._changed(prefix, len(new))
            return ClaimChanges(list(new.values()), [])
        removed = [held for held in self.under(prefix) if new.get(held.hash) != held]
        for held in removed:
            self.drop(held.hash)
        return ClaimChanges(self.put_all(new.values()).added, removed)

    def changed(self, added: Sequence[Advertisement], removed: Sequence[str]) -> AdvertisementSet:
        """Another set with these changes, which shares every partition that did not change."""
        later = AdvertisementSet(self._max_line_bytes)
        later._parts = dict(self._parts)
        later._roots = {source: dict(roots) for source, roots in self._roots.items()}
        later._count, later.version = self._count, self.version
        for prefix in {top_prefix(record) for record in (*(claim.hash for claim in added), *removed)}:
            if prefix in later._parts:
                later._parts[prefix] = dict(later._parts[prefix])
        for record in removed:
            later.drop(record)
        later.put_all(added)
        return later

    def replace_all(self, claims: Iterable[Advertisement]) -> ClaimChanges:
        """Hold exactly these claims (050-RECON-04)."""
        if not self._count:
            return self.put_all(claims)
        by_prefix: dict[str, list[Advertisement]] = {prefix: [] for prefix in self._parts}
        for claim in claims:
            by_prefix.setdefault(top_prefix(claim.hash), []).append(claim)
        whole = ClaimChanges([], [])
        for prefix, part in by_prefix.items():
            changes = self.replace(prefix, part)
            whole.added.extend(changes.added)
            whole.removed.extend(changes.removed)
        return whole

    def remember(self, source: str, partitions: Iterable[Partition]) -> None:
        """Take over roots known for the same content (a cursor's summaries, a listing that was checked)."""
        tops = ((partition.prefix, partition) for partition in partitions if len(partition.prefix) == START_LENGTH)
        self._roots.setdefault(source, {}).update(tops)

    def known_summaries(self, source: str) -> list[Partition]:
        """The roots that are remembered, for a cursor to take along."""
        return sorted(self._roots.get(source, {}).values())

    def fingerprint(self, source: str) -> bytes:
        """A digest that two equal listings share."""
        return fingerprint_of(self.summaries(source))

    def _summarise(self, prefix: str, claims: Sequence[Advertisement], source: str) -> Partition:
        return summarise({prefix: claims}, source, self._max_line_bytes)[0]
