"""A set of advertisements, split into partitions whose Merkle roots are remembered (050, P16).

Rule: a root is recomputed only where the set changed since it was last asked for; roots are kept per source label,
because the label is inside every digest. A part is a value (`partclaims`): a change puts another one in its place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NamedTuple

from lace.interlace.claims.advertisement import Advertisement, bare_size, canonical_bytes, record_digests
from lace.interlace.claims.merkle import partition_roots
from lace.interlace.claims.partclaims import (
    ByRecord,
    Pack,
    PackedClaims,
    Part,
    are_same,
    by_hash,
    by_record,
    in_order,
    packed_as,
    records_of,
    those_of,
)
from lace.notation import b64a
from lace.notation.digest import digest
from lace.values import dataclass

START_LENGTH = 2  # 050-PART-03
_TOP_END = 2 + START_LENGTH
_ROWS_AT_ONCE = 1 << 15
_MOST_LABELS = 32  # that roots are remembered under: of a million claims they take about a megabyte each
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


def summarise(parts: Parts, source: str, max_line_bytes: int, rows_at_once: int = _ROWS_AT_ONCE) -> list[Partition]:
    """What a source with this label would say of each of some partitions: some thousand claims at a time, for all
    digests of a million would take more room than the million."""
    found: list[Partition] = []
    share: dict[str, Sequence[Advertisement]] = {}
    rows = 0
    for prefix, claims in parts.items():
        share[prefix] = claims
        rows += len(claims)
        if rows >= rows_at_once:
            found += _summarised(share, source, max_line_bytes)
            share, rows = {}, 0
    return found + _summarised(share, source, max_line_bytes)


def _summarised(parts: Parts, source: str, max_line_bytes: int) -> list[Partition]:
    spelled = (part for part in parts.values() if not isinstance(part, PackedClaims))
    digests = iter(record_digests(chain.from_iterable(spelled), source, max_line_bytes))
    roots = partition_roots(
        [
            part.record_digests(source) if isinstance(part, PackedClaims) else list(islice(digests, len(part)))
            for part in parts.values()
        ]
    )
    return [
        Partition(prefix, len(part), b64a.encode(root))
        for (prefix, part), root in zip(parts.items(), roots, strict=True)
    ]


def fingerprint_of(summaries: Iterable[Partition]) -> bytes:
    """A digest that two equal listings share, by their sorted starting partitions."""
    return digest("".join(f"{p.prefix}{p.count}{p.root}" for p in summaries).encode())


def payload_begins(record: str, prefix: str) -> bool:
    """Whether a record belongs to a partition."""
    return record.startswith(prefix, _PAYLOAD)


def _by_prefix(records: Iterable[str]) -> dict[str, list[str]]:
    """Records by their starting partitions."""
    found: dict[str, list[str]] = {}
    for record in records:
        found.setdefault(record[_PAYLOAD:_TOP_END], []).append(record)
    return found


def top_prefix(record: str) -> str:
    """The starting partition of a record."""
    return record[_PAYLOAD : _PAYLOAD + START_LENGTH]


class AdvertisementSet:
    """Claims by record hash."""

    def __init__(self, max_line_bytes: int, parts: Mapping[str, Part] | None = None) -> None:
        self._max_line_bytes = max_line_bytes
        self._parts: dict[str, Part] = dict(parts) if parts is not None else {}
        self._roots: dict[str, dict[str, Partition]] = {}  # by label
        self._count = sum(map(len, self._parts.values()))
        self.version: int = 0  # grows with every change

    def __len__(self) -> int:
        return self._count

    def __contains__(self, record: str) -> bool:
        return self.get(record) is not None

    def among(self, records: Iterable[str]) -> list[str]:
        """Those of some records that there is a claim about."""
        given = list(records)
        parts = self._parts
        found: set[str] = set()
        for prefix, wanted in _by_prefix(given).items():
            if prefix in parts:
                found.update(those_of(parts[prefix], wanted))
        return [record for record in given if record in found] if found else []

    def __iter__(self) -> Iterator[str]:
        for part in self._parts.values():
            yield from records_of(part)

    def get(self, record: str) -> Advertisement | None:
        """The claim about a record."""
        part = self._parts.get(top_prefix(record), {})
        if isinstance(part, dict):
            return part.get(record)
        return Advertisement(record) if part.among([record]) else None

    # --- changes -----------------------------------------------------------------------------------------------

    def put_all(self, advertisements: Iterable[Advertisement]) -> ClaimChanges:
        """Hold many claims; what that changed."""
        changes = ClaimChanges([], [])
        groups: dict[str, ByRecord] = {}
        for claim in advertisements:
            record = claim[0]
            groups.setdefault(record[_PAYLOAD:_TOP_END], {})[record] = claim
        for prefix, claims in groups.items():
            part = self._parts.get(prefix)
            if part is not None:
                held = by_record(part)
                fresh = {record: claim for record, claim in claims.items() if held.get(record) != claim}
                changes.removed.extend([held[record] for record in fresh if record in held])
                changes.added.extend(fresh.values())
                if fresh:
                    self._place(prefix, packed_as(part, held | fresh))
            else:
                changes.added.extend(claims.values())
                self._place(prefix, claims)
        return changes

    def drop(self, record: str) -> Advertisement | None:
        """Forget a claim; the claim, if there was one."""
        return next(iter(self.drop_all([record])), None)

    def drop_all(self, records: Iterable[str]) -> list[Advertisement]:
        """Forget the claims about some records; those that there were."""
        dropped: list[Advertisement] = []
        for prefix, going in _by_prefix(records).items():
            part = self._parts.get(prefix)
            gone = set(those_of(part, going)) if part is not None else ()
            if part is not None and gone:
                held = by_record(part)
                dropped += [held[record] for record in dict.fromkeys(going) if record in gone]
                left = {record: claim for record, claim in held.items() if record not in gone}
                self._place(prefix, packed_as(part, left))
        return dropped

    def _place(self, prefix: str, part: Part) -> None:
        """Every change comes down to this: another part where one stood."""
        self._count += len(part) - len(self._parts.get(prefix, ()))
        if len(part):
            self._parts[prefix] = part
        else:
            self._parts.pop(prefix, None)
        self.version += 1
        for roots in self._roots.values():
            roots.pop(prefix, None)

    def replace_under(self, parts: Parts, pack: Pack = packed_as) -> None:
        """Hold exactly these claims under some prefixes, of which none begins with another."""
        below: dict[str, dict[str, Sequence[Advertisement]]] = {}
        for prefix, claims in parts.items():
            if len(prefix) > START_LENGTH:
                below.setdefault(prefix[:START_LENGTH], {})[prefix] = claims
                continue
            part = claims if isinstance(claims, PackedClaims) else {claim.hash: claim for claim in claims}
            if not are_same(part, self._parts.get(prefix, {})):
                self._place(prefix, part)
        for top, families in below.items():
            before = self._parts.get(top, {})
            lengths = {_PAYLOAD + len(prefix) for prefix in families}
            part = {
                record: claim
                for record, claim in by_record(before).items()
                if not any(record[_PAYLOAD:end] in families for end in lengths)
            }
            part.update((claim.hash, claim) for claims in families.values() for claim in claims)
            if not are_same(part, before):
                self._place(top, pack(before, part))

    def replace_all(self, claims: Iterable[Advertisement]) -> None:
        """Hold exactly these claims (050-RECON-04)."""
        by_prefix: dict[str, list[Advertisement]] = {prefix: [] for prefix in self._parts}
        for claim in claims:
            by_prefix.setdefault(top_prefix(claim.hash), []).append(claim)
        self.replace_under(by_prefix)

    def changed(self, added: Sequence[Advertisement], removed: Sequence[str]) -> AdvertisementSet:
        """Another set with these changes, which shares every partition that did not change."""
        later = AdvertisementSet(self._max_line_bytes)
        later._parts, later._count, later.version = dict(self._parts), self._count, self.version
        later._roots = {source: dict(roots) for source, roots in list(self._roots.items())}  # links ask meanwhile
        later.drop_all(removed)
        later.put_all(added)
        return later

    def share(self, other: AdvertisementSet, source: str) -> None:
        """Where another set holds the same claims, hold its own, and let it know their roots under a label: so the same
        are the same at a glance."""
        roots, known = self._roots.get(source, {}), []
        for prefix, part in self._parts.items():
            theirs = other._parts.get(prefix)
            if theirs is not None and theirs is not part and are_same(part, theirs):
                self._parts[prefix] = theirs
                known += [roots[prefix]] if prefix in roots else []
        if known:
            other.remember(source, known)

    def parts(self) -> dict[str, Part]:
        """This moment of the set."""
        return dict(self._parts)

    def changes_since(self, parts: Mapping[str, Part]) -> ClaimChanges:
        """What came and went since an earlier moment, sorted."""
        changes = ClaimChanges([], [])
        for prefix in self._parts.keys() | parts.keys():
            then, now = parts.get(prefix, {}), self._parts.get(prefix, {})
            if then is now:
                continue
            before, after = by_record(then), by_record(now)
            changes.added.extend([claim for record, claim in after.items() if before.get(record) != claim])
            changes.removed.extend([claim for record, claim in before.items() if after.get(record) != claim])
        changes.added.sort()
        changes.removed.sort()
        return changes

    # --- partitions --------------------------------------------------------------------------------------------

    @property
    def partition_count(self) -> int:
        """How many starting partitions are not empty."""
        return len(self._parts)

    def prefixes(self) -> list[str]:
        """The non-empty starting partitions, sorted."""
        return sorted(self._parts)

    def part(self, prefix: str) -> Sequence[Advertisement]:
        """The claims of a partition in any order, as they are held if they are packed."""
        part = self._parts.get(prefix[:START_LENGTH], {})
        if len(prefix) > START_LENGTH:
            return [claim for record, claim in by_record(part).items() if payload_begins(record, prefix)]
        return list(part.values()) if isinstance(part, dict) else part

    def under(self, prefix: str) -> list[Advertisement]:
        """The claims of a partition, sorted by P (050-LIST-05)."""
        return sorted(self.part(prefix), key=by_hash)

    def family(self, prefix: str) -> dict[str, list[Advertisement]]:
        """The claims of a partition by the child that they belong to, sorted."""
        end = _PAYLOAD + len(prefix) + 1
        groups: dict[str, list[Advertisement]] = {}
        for claim in self.under(prefix):
            groups.setdefault(claim.hash[_PAYLOAD:end], []).append(claim)
        return dict(sorted(groups.items()))

    def listing(self) -> list[Advertisement]:
        """All claims, sorted by P (P14)."""
        return sorted(chain.from_iterable(map(in_order, self._parts.values())), key=by_hash)

    def beyond(self, other: AdvertisementSet) -> list[Advertisement]:
        """The claims about records that another set has none about, sorted by P."""
        found: list[Advertisement] = []
        for prefix, part in self._parts.items():
            theirs = other._parts.get(prefix)
            if theirs is None:
                found += in_order(part)
            elif theirs is not part and not are_same(part, theirs):
                held, known = by_record(part), set(records_of(theirs))
                found += [claim for record, claim in held.items() if record not in known]
        return sorted(found, key=by_hash)

    def size_under(self, source: str, prefix: str = "") -> int:
        """The bytes of a listing, or of one partition of it."""
        parts: Iterable[Part | Sequence[Advertisement]] = [self.part(prefix)] if prefix else self._parts.values()
        return sum(self._size(part, source) for part in parts)

    def _size(self, part: Part | Sequence[Advertisement], source: str) -> int:
        if isinstance(part, PackedClaims):
            return len(part) * bare_size(source)
        claims = part.values() if isinstance(part, dict) else part
        return sum(len(canonical_bytes(claim, source, self._max_line_bytes)) for claim in claims)

    def count_under(self, prefix: str) -> int:
        """How many claims a partition has."""
        part = self._parts.get(prefix[:START_LENGTH], {})
        if len(prefix) == START_LENGTH:
            return len(part)
        return sum(payload_begins(record, prefix) for record in records_of(part))

    # --- roots -------------------------------------------------------------------------------------------------

    def _known(self, source: str) -> dict[str, Partition]:
        """The roots under a label; beyond the limit, the oldest label's roots are forgotten."""
        if source not in self._roots and len(self._roots) >= _MOST_LABELS:
            self._roots.pop(next(iter(list(self._roots))), None)
        return self._roots.setdefault(source, {})

    def summary(self, prefix: str, source: str) -> Partition:
        """What a source with this label would say of a partition."""
        if len(prefix) > START_LENGTH:
            return self._summarise(prefix, source)
        roots = self._known(source)
        found = roots.get(prefix)
        if found is None:
            found = roots[prefix] = self._summarise(prefix, source)
        return found

    def unsummarised(self, source: str, prefixes: Iterable[str]) -> Parts:
        """Those starting partitions whose roots under a label would have to be worked out."""
        roots = self._roots.get(source, {})
        return {prefix: self.part(prefix) for prefix in prefixes if prefix in self._parts and prefix not in roots}

    def summaries(self, source: str) -> list[Partition]:
        """Every non-empty starting partition, sorted by prefix (050-LIST-09)."""
        return [self.summary(prefix, source) for prefix in self.prefixes()]

    def children(self, prefixes: Iterable[str], source: str) -> list[Partition]:
        """The non-empty child partitions of some, sorted (050-PART-05, 050-LIST-06)."""
        families = {
            child: claims
            for prefix in prefixes
            for child, claims in self.family(prefix).items()
            if len(child) == len(prefix) + 1
        }
        return summarise(dict(sorted(families.items())), source, self._max_line_bytes)

    def remember(self, source: str, partitions: Iterable[Partition]) -> None:
        """Take over roots known for the same content (a cursor's summaries, a listing that was checked)."""
        tops = ((partition.prefix, partition) for partition in partitions if len(partition.prefix) == START_LENGTH)
        self._known(source).update(tops)

    def known_summaries(self, source: str) -> list[Partition]:
        """The roots that are remembered, for a cursor to take along."""
        return sorted(self._roots.get(source, {}).values())

    def known_labels(self) -> list[str]:
        """The labels under which all roots are remembered."""
        return [source for source, roots in self._roots.items() if self._parts.keys() <= roots.keys()]

    def fingerprint(self, source: str) -> bytes:
        """A digest that two equal listings share."""
        return fingerprint_of(self.summaries(source))

    def _summarise(self, prefix: str, source: str) -> Partition:
        return summarise({prefix: self.part(prefix)}, source, self._max_line_bytes)[0]
