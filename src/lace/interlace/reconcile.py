"""The peer's side of reconciliation (050, P16): which of its partitions to list, which to narrow, and whether what
it answers is what it promised.

Rule: a partition whose count and root are those of claims that we can already name is not transferred: either what
we hold from before, or what we would list ourselves under the peer's label. Everything else is checked before use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NoReturn

from lace.interlace.advertise import RECORD_BYTES, SUMMARY_BYTES
from lace.interlace.advertisement import Advertisement, record_digests, sendable_fields
from lace.interlace.merkle import partition_root
from lace.interlace.negotiate import FieldSchema, is_canonical_decimal
from lace.interlace.partitions import START_LENGTH, AdvertisementSet, Changes, Partition, Parts
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import LIST_PARTITION, NARROW_PARTITION
from lace.limits import ExchangeLimits
from lace.notation import b64a
from lace.notation.fact import Fact

_CHILDREN = 64
_MOST_GUESSES = 8_192  # roots tried in a loop for partitions that lack one record
_SYMBOLS = frozenset(b64a.ALPHABET)
_FIELD_BYTES = 1025  # the longest line
_ALL_FIELDS_GUESS = 16  # lines of a record when every field is advertised


def read_partition(fact: Fact, length: int | None) -> Partition:
    """One summary line, of a prefix of this length if given (050-LIST-07, 050-PART-04)."""
    prefix, count, root = fact.values
    is_prefix = len(prefix) >= START_LENGTH and _SYMBOLS.issuperset(prefix)
    if not is_prefix or (length is not None and len(prefix) != length):
        _malformed(f"prefix {prefix[:40]!r}", "050-PART-04")
    if not is_canonical_decimal(count) or count == "0":
        _malformed(f"count {count[:40]!r} of {prefix}", "050-LIST-07")
    if not b64a.is_canonical(root, 32):
        _malformed(f"root {root[:60]!r} of {prefix}", "050-LIST-07")
    return Partition(prefix, int(count), root)


class Reconciliation:
    """One loop's reconciliation of the peer's summaries into the claims we hold."""

    def __init__(
        self,
        *,
        held: AdvertisementSet,
        own: AdvertisementSet,
        source: str,
        schema: FieldSchema,
        limits: ExchangeLimits,
        max_line_bytes: int,
    ) -> None:
        self._held = held
        self._own = own
        self._source = source
        self._limits = limits
        self._max_line_bytes = max_line_bytes
        self._pending: dict[str, Partition] = {}
        self._listing: dict[str, Partition] = {}
        self._narrowing: dict[str, Partition] = {}
        self._summaries = 0
        self._guesses = _MOST_GUESSES
        lines = _ALL_FIELDS_GUESS if schema.names is None else len(schema.names)
        self._record_bytes = RECORD_BYTES + len(source.encode()) + lines * _FIELD_BYTES
        self.changes = Changes([], [])

    def offer(self, partitions: Sequence[Partition]) -> None:
        """The peer's starting partitions: every non-empty one, so an absent prefix means count 0 (050-LIST-09)."""
        self._count_summaries(len(partitions))
        offered = {partition.prefix: partition for partition in partitions}
        if len(offered) != len(partitions):
            _malformed("two summaries of one prefix", "050-LIST-09")
        for prefix in self._held.prefixes():
            if prefix not in offered:
                self._record(self._held.replace(prefix, ()))
        for partition in partitions:
            self._settle(partition)

    def select(self) -> list[Fact]:
        """The next selection block; empty when all partitions are settled (050-LIST-11)."""
        room_records = self._limits.max_advertisement_records_listed
        room_bytes = self._limits.max_fact_block_size
        facts: list[Fact] = []
        reserved = self._summaries
        for prefix, partition in sorted(self._pending.items()):
            children = min(_CHILDREN, partition.count)
            may_narrow = (
                len(prefix) - START_LENGTH < self._limits.max_narrowing_depth
                and reserved + children <= self._limits.max_partition_summaries
                and room_bytes >= children * (SUMMARY_BYTES + len(prefix))
            )
            fits = partition.count <= self._limits.max_advertisement_records_listed and (
                partition.count == 1 or partition.count * self._record_bytes <= self._limits.max_fact_block_size
            )
            if may_narrow and (not fits or self._narrowing_is_cheaper(partition)):
                facts.append(Fact(NARROW_PARTITION, (prefix,)))
                self._narrowing[prefix] = self._pending.pop(prefix)
                reserved += children
                room_bytes -= children * (SUMMARY_BYTES + len(prefix))
            elif (
                fits
                and partition.count <= room_records
                and (not facts or partition.count * self._record_bytes <= room_bytes)
            ):
                facts.append(Fact(LIST_PARTITION, (prefix,)))
                self._listing[prefix] = self._pending.pop(prefix)
                room_records -= partition.count
                room_bytes -= partition.count * self._record_bytes
        if self._pending and not facts:
            prefix = min(self._pending)
            raise ProtocolAbort(
                AbortReason.LOCAL_FAILURE,
                f"partition {prefix} has {self._pending[prefix].count} records, more than any answer may hold",
                "050-LIST-11",
            )
        return facts

    def likely_ours(self, partitions: Iterable[Partition]) -> list[str]:
        """The starting partitions that will be compared with our own claims: as many as those, and not what we hold."""
        return [
            partition.prefix
            for partition in partitions
            if self._own.count_under(partition.prefix) == partition.count and not self._is(partition, self._held)
        ]

    def receive(self, listed: Parts, summaries: Sequence[Partition], children: Sequence[Partition]) -> None:
        """The answer block, sorted out and summarised: every selected partition (050-PART-14, 050-PART-18)."""
        self._count_summaries(len(children))
        for found in summaries:
            promised = self._listing.pop(found.prefix)
            if found != promised:  # 050-PART-15
                raise ProtocolAbort(
                    AbortReason.LIST_ROOT_MISMATCH,
                    f"partition {found.prefix} is not what its summary says",
                    "050-PART-15",
                )
            self._take_over(promised, listed[found.prefix])
        self._accept_children(children)

    def sort_out(self, listed: Sequence[Advertisement]) -> Parts:
        """The listed claims by the partition that was selected; each belongs to one."""
        by_prefix: dict[str, list[Advertisement]] = {prefix: [] for prefix in self._listing}
        shortest, *longer = sorted({len(prefix) for prefix in self._listing}) or [START_LENGTH]
        ends = 2 + shortest
        for claim in listed:
            home = by_prefix.get(claim[0][2:ends])
            if home is None:
                home = next((by_prefix[p] for n in longer if (p := claim.hash[2 : 2 + n]) in by_prefix), None)
            if home is None:  # 050-PART-16
                raise ProtocolAbort(
                    AbortReason.LIST_ROOT_MISMATCH, f"{claim.hash} belongs to no listed partition", "050-PART-16"
                )
            home.append(claim)
        return by_prefix

    def _accept_children(self, children: Sequence[Partition]) -> None:
        families: dict[str, list[Partition]] = {prefix: [] for prefix in self._narrowing}
        for child in dict.fromkeys(children):
            family = families.get(child.prefix[:-1])
            if family is None:
                _malformed(f"{child.prefix} was not asked for", "050-PART-18")
            family.append(child)
        for prefix, family in families.items():
            parent = self._narrowing.pop(prefix)
            if len({child.prefix for child in family}) != len(family):
                _malformed(f"two summaries of one child of {prefix}", "050-PART-18")
            if sum(child.count for child in family) != parent.count:
                _malformed(f"the children of {prefix} do not add up to {parent.count}", "050-PART-18")
            self._drop_absent_children(prefix, {child.prefix for child in family})
            for child in family:
                self._settle(child)

    def _drop_absent_children(self, prefix: str, present: set[str]) -> None:
        length = len(prefix) + 1
        for held in self._held.under(prefix):
            if held.hash[2 : 2 + length] not in present:
                self._held.drop(held.hash)
                self.changes.removed.append(held)

    def _settle(self, partition: Partition) -> None:
        """Take a partition over if we can name its claims, else leave it to selection."""
        if self._is(partition, self._held):
            return
        if self._is(partition, self._own):  # a virtual root: same set, their label
            self._take_over(partition, self._as_theirs(self._own.under(partition.prefix)))
            return
        guessed = self._all_but_one(partition, self._held) or self._all_but_one(partition, self._own)
        if guessed is not None:
            self._take_over(partition, guessed)
            return
        self._pending[partition.prefix] = partition

    def _as_theirs(self, claims: Iterable[Advertisement]) -> list[Advertisement]:
        """Our claims as the peer would make them: under its label a longer line may pass the limit (P14)."""
        return [
            Advertisement(claim.hash, sendable_fields(claim, self._source, self._max_line_bytes))
            if claim.fields
            else claim
            for claim in claims
        ]

    def _is(self, partition: Partition, known: AdvertisementSet) -> bool:
        """Whether a partition is what we know; roots are worked out only where the counts agree."""
        prefix = partition.prefix
        return known.count_under(prefix) == partition.count and known.summary(prefix, self._source) == partition

    def _take_over(self, partition: Partition, claims: Iterable[Advertisement]) -> None:
        """Hold the claims of a partition; they were checked against its root, which need not be worked out again."""
        self._record(self._held.replace(partition.prefix, claims))
        self._held.remember(self._source, (partition,))

    def _all_but_one(self, partition: Partition, known: AdvertisementSet) -> list[Advertisement] | None:
        """The claims we can name but for one, if that is what the root says: the peer lacks one record of ours."""
        if known.count_under(partition.prefix) != partition.count + 1:
            return None
        claims = self._as_theirs(known.under(partition.prefix))
        if len(claims) > self._guesses:  # bounded, for a hostile peer could make us try in vain
            return None
        digests = record_digests(claims, self._source, self._max_line_bytes)
        for left_out in range(len(claims)):
            self._guesses -= 1
            if b64a.encode(partition_root(digests[:left_out] + digests[left_out + 1 :])) == partition.root:
                return claims[:left_out] + claims[left_out + 1 :]
        return None

    def _narrowing_is_cheaper(self, partition: Partition) -> bool:
        """Compare a listing with child summaries and the listing of the children that probably differ."""
        known = max(
            self._held.count_under(partition.prefix),
            self._own.count_under(partition.prefix),
        )
        if not known:
            return False
        children = min(_CHILDREN, partition.count)
        differing = min(children, max(1, abs(partition.count - known)))
        record = RECORD_BYTES + len(self._source)
        narrow = children * (SUMMARY_BYTES + len(partition.prefix)) + differing * record * partition.count / children
        return narrow < partition.count * record

    def _count_summaries(self, count: int) -> None:
        self._summaries += count
        if self._summaries > self._limits.max_partition_summaries:  # 050-LIM-04
            _malformed(f"more than {self._limits.max_partition_summaries} summaries in a loop", "050-LIM-04")

    def _record(self, changes: Changes) -> None:
        self.changes.added.extend(changes.added)
        self.changes.removed.extend(changes.removed)


def _malformed(detail: str, clause: str) -> NoReturn:
    raise ProtocolAbort(AbortReason.MALFORMED_PARTITION_SUMMARY, detail, clause)
