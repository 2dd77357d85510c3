"""The peer's side of partitions in one loop (050, P16): which to list, which to narrow, and what it still owes us.

Rule: the host says which of the peer's partitions it cannot name; here it is decided how to learn them, within the
limits of both sides. Nothing of an answer counts before the host has checked it against its summary.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NoReturn

from lace.errors import excerpt
from lace.interlace.claims.advertisement import Claims
from lace.interlace.claims.partitions import START_LENGTH, Partition
from lace.interlace.effects import Reconcile, SetHandle
from lace.interlace.loop.advertise import RECORD_BYTES, SUMMARY_BYTES
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.setup.hello import FieldSchema, is_canonical_decimal
from lace.interlace.vocabulary import LIST_PARTITION, NARROW_PARTITION
from lace.limits import ExchangeLimits
from lace.notation import b64a
from lace.notation.fact import Fact
from lace.notation.identifiers import DIGEST_PATTERN

_CHILDREN = 64
_SYMBOLS = frozenset(b64a.ALPHABET)
_FIELD_BYTES = 1025  # the longest line
_ALL_FIELDS_GUESS = 16  # lines of a record when every field is advertised


# Of one line: prefix, count, root. A block may hold thousands, and is read while others wait.
_LINE = rf"[{re.escape(b64a.ALPHABET)}]%s [1-9][0-9]{{0,39}}+ {DIGEST_PATTERN}\n"


def read_summaries(facts: Sequence[Fact], length: int | None) -> list[Partition]:
    """Summary lines, of prefixes of this length if given; an identical repeat is one fact (P18)."""
    found = list(dict.fromkeys(facts))
    if not _are_canonical(found, length):
        return [_read_summary(fact, length) for fact in found]
    return [Partition(prefix, int(count), root) for _, (prefix, count, root) in found]


def _are_canonical(facts: Sequence[Fact], length: int | None) -> bool:
    """Whether nothing is to be said against any of them; no text holds a line end, for there is one for each."""
    text = "".join([" ".join(fact.values) + "\n" for fact in facts])
    times = f"{{{START_LENGTH},}}+" if length is None else f"{{{length}}}"
    return text.count("\n") == len(facts) and re.fullmatch(f"(?:{_LINE % times})*+", text) is not None


def _read_summary(fact: Fact, length: int | None) -> Partition:
    """One summary line (050-LIST-07, 050-PART-04)."""
    prefix, count, root = fact.values
    is_prefix = len(prefix) >= START_LENGTH and _SYMBOLS.issuperset(prefix)
    if not is_prefix or (length is not None and len(prefix) != length):
        _malformed(f"prefix {excerpt(prefix)}", "050-PART-04")
    if not is_canonical_decimal(count) or count == "0":
        _malformed(f"count {excerpt(count)} of {prefix}", "050-LIST-07")
    if not b64a.is_canonical(root, 32):
        _malformed(f"root {excerpt(root)} of {prefix}", "050-LIST-07")
    return Partition(prefix, int(count), root)


class Reconciliation:
    """One loop's partitions of the peer, from its summaries until none is left to learn."""

    def __init__(self, own: SetHandle, source: str, schema: FieldSchema, limits: ExchangeLimits) -> None:
        self._own = own
        self._source = source
        self._limits = limits
        self._pending: dict[str, tuple[Partition, int]] = {}  # with how many claims we know there
        self._listing: list[Partition] = []
        self._narrowing: list[Partition] = []
        self._summaries = 0
        lines = _ALL_FIELDS_GUESS if schema.names is None else len(schema.names)
        self._record_bytes = RECORD_BYTES + len(source.encode()) + lines * _FIELD_BYTES

    def offer(self, partitions: Sequence[Partition]) -> Reconcile:
        """The peer's starting partitions: every non-empty one, so an absent prefix means count 0 (050-LIST-09)."""
        self._count_summaries(len(partitions))
        if len({partition.prefix for partition in partitions}) != len(partitions):
            _malformed("two summaries of one prefix", "050-LIST-09")
        return Reconcile(own=self._own, offered=partitions)

    def settle(self, unknown: Mapping[Partition, int]) -> None:
        """What the host cannot name is left to selection."""
        self._pending.update((partition.prefix, (partition, known)) for partition, known in unknown.items())

    def select(self) -> list[Fact]:
        """The next selection block; empty when all partitions are settled (050-LIST-11)."""
        room_records = self._limits.max_advertisement_records_listed
        room_bytes = self._limits.max_fact_block_size
        facts: list[Fact] = []
        reserved = self._summaries
        for prefix, (partition, known) in sorted(self._pending.items()):
            children = min(_CHILDREN, partition.count)
            may_narrow = (
                len(prefix) - START_LENGTH < self._limits.max_narrowing_depth
                and reserved + children <= self._limits.max_partition_summaries
                and room_bytes >= children * (SUMMARY_BYTES + len(prefix))
            )
            fits = partition.count <= self._limits.max_advertisement_records_listed and (
                partition.count == 1 or partition.count * self._record_bytes <= self._limits.max_fact_block_size
            )
            if may_narrow and (not fits or self._narrowing_is_cheaper(partition, known)):
                facts.append(Fact(NARROW_PARTITION, (prefix,)))
                self._narrowing.append(partition)
                reserved += children
                room_bytes -= children * (SUMMARY_BYTES + len(prefix))
            elif (
                fits
                and partition.count <= room_records
                and (not facts or partition.count * self._record_bytes <= room_bytes)
            ):
                facts.append(Fact(LIST_PARTITION, (prefix,)))
                self._listing.append(partition)
                room_records -= partition.count
                room_bytes -= partition.count * self._record_bytes
        for chosen in (*self._listing, *self._narrowing):
            del self._pending[chosen.prefix]
        self._require_progress(facts)
        return facts

    def _require_progress(self, facts: Sequence[Fact]) -> None:
        if self._pending and not facts:
            prefix = min(self._pending)
            raise ProtocolAbort(
                AbortReason.LOCAL_FAILURE,
                f"partition {prefix} has {self._pending[prefix][0].count} records, more than any answer may hold",
                "050-LIST-11",
                "max_advertisement_records_listed",
            )

    def _narrowing_is_cheaper(self, partition: Partition, known: int) -> bool:
        """Compare a listing with child summaries and the listing of the children that probably differ."""
        if not known:
            return False
        children = min(_CHILDREN, partition.count)
        differing = min(children, max(1, abs(partition.count - known)))
        record = RECORD_BYTES + len(self._source)
        narrow = children * (SUMMARY_BYTES + len(partition.prefix)) + differing * record * partition.count / children
        return narrow < partition.count * record

    def answer(self, claims: Claims, children: Sequence[Partition]) -> Reconcile:
        """The answer block: every selected partition, listed or as its children (050-PART-14, 050-PART-18)."""
        self._count_summaries(len(children))
        listed, self._listing = self._listing, []
        narrowed, self._narrowing = self._narrowing, []
        _require_families(narrowed, children)
        return Reconcile(
            own=self._own,
            offered=children,
            parents=[parent.prefix for parent in narrowed],
            listed=listed,
            claims=claims,
        )

    def _count_summaries(self, count: int) -> None:
        self._summaries += count
        if self._summaries > self._limits.max_partition_summaries:  # 050-LIM-04
            _malformed(f"more than {self._limits.max_partition_summaries} summaries in a loop", "050-LIM-04")


def _require_families(parents: Sequence[Partition], children: Sequence[Partition]) -> None:
    """Each narrowed partition has been answered by its children, and they add up to it (050-PART-18)."""
    families: dict[str, dict[str, int]] = {parent.prefix: {} for parent in parents}
    for child in children:
        family = families.get(child.prefix[:-1])
        if family is None:
            _malformed(f"{child.prefix} was not asked for", "050-PART-18")
        if child.prefix in family:
            _malformed(f"two summaries of one child of {child.prefix[:-1]}", "050-PART-18")
        family[child.prefix] = child.count
    for parent in parents:
        if sum(families[parent.prefix].values()) != parent.count:
            _malformed(f"the children of {parent.prefix} do not add up to {parent.count}", "050-PART-18")


def _malformed(detail: str, clause: str) -> NoReturn:
    raise ProtocolAbort(AbortReason.MALFORMED_PARTITION_SUMMARY, detail, clause)
