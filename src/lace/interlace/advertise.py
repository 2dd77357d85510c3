"""Our side of reconciliation (050, P14, P16): what we list or summarise, and the answers to what the peer selects.

Rule: everything said here is computed from the effective send set alone (050-SEND-10), which does not change between
a loop's advertisement and its last answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from lace.interlace.advertisement import Advertisement
from lace.interlace.partitions import START_LENGTH, AdvertisementSet, Partition
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import ADVERTISEMENT_PARTITION, LIST_PARTITION
from lace.limits import ExchangeLimits
from lace.notation.fact import Fact

# AdvertisementPartition('ab','1234567','<43>') and its LF.
SUMMARY_BYTES = 85
RECORD_BYTES = 74  # Advertised('<48>','<label>') and its LF, without the label


@dataclass(frozen=True, slots=True)
class Answer:
    """What one selection block gets back."""

    listed: list[Advertisement]
    children: list[Partition]


@lru_cache(maxsize=1 << 14)  # in an open exchange nearly all summaries are those of the loop before
def summary_fact(partition: Partition) -> Fact:
    """A summary as its fact (050-LIST-04)."""
    return Fact(ADVERTISEMENT_PARTITION, (partition.prefix, str(partition.count), partition.root))


class Offers:
    """What we offered in this loop; each prefix can be chosen once (050-PART-19)."""

    def __init__(self, own: AdvertisementSet, source: str, limits: ExchangeLimits) -> None:
        self._own = own
        self._source = source
        self._limits = limits
        self._open: set[str] = set()
        self._offered = 0

    def offer(self, partitions: Sequence[Partition]) -> None:
        """Summaries that we send now."""
        self._offered += len(partitions)
        if self._offered > self._limits.max_partition_summaries:
            raise ProtocolAbort(
                AbortReason.MALFORMED_PARTITION_SUMMARY,
                f"the peer's narrowing would need more than {self._limits.max_partition_summaries} summaries",
                "050-LIM-04",
            )
        self._open.update(partition.prefix for partition in partitions)

    def answer(self, selection: Sequence[Fact]) -> Answer:
        """The answer to a selection block; vocabulary was checked."""
        chosen = list(dict.fromkeys(selection))  # P18: an identical repeat is one fact
        listed: list[Advertisement] = []
        children: list[Partition] = []
        for predicate, (prefix,) in chosen:
            if prefix not in self._open:
                raise ProtocolAbort(
                    AbortReason.MALFORMED_FACT_BLOCK, f"partition {prefix[:40]!r} is not on offer", "050-PART-19"
                )
            self._open.discard(prefix)
            if predicate == LIST_PARTITION:
                listed += self._own.under(prefix)
            else:
                children += self._narrow(prefix)
        listed.sort()
        children.sort()
        self.offer(children)
        self._require_room(listed)
        return Answer(listed, children)

    def _narrow(self, prefix: str) -> list[Partition]:
        if len(prefix) - START_LENGTH >= self._limits.max_narrowing_depth:  # 050-LIM-05
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"partition {prefix[:40]!r} is as narrow as agreed", "050-LIM-05"
            )
        return self._own.children(prefix, self._source)

    def _require_room(self, listed: Sequence[Advertisement]) -> None:
        if len(listed) > self._limits.max_advertisement_records_listed:  # 050-LIST-11: the selecting side paces
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"the peer selected {len(listed)} records at once", "050-LIM-03"
            )


def uses_partitions(
    own: AdvertisementSet, source: str, limits: ExchangeLimits, *, agreed: bool, threshold_bytes: int
) -> bool:
    """Whether this loop's advertisement is summaries: when a listing is costly or not allowed (P14, 050-LIST-10)."""
    bare = len(own) * (RECORD_BYTES + len(source))
    agreed = agreed and _summaries_fit(own, limits)
    if agreed and bare > threshold_bytes:
        return True
    fits_records = len(own) <= limits.max_advertisement_records_listed
    size = own.size_under(source) if fits_records else 0
    if agreed and size > threshold_bytes:
        return True
    if fits_records and size <= limits.max_fact_block_size:
        return False
    if agreed:
        return True
    found = f"{len(own)} records" if not fits_records else f"{size} bytes"
    raise ProtocolAbort(  # 050-LIST-10: told before a byte of it is sent
        AbortReason.LOCAL_FAILURE,
        f"our listing of {found} passes the limit and no partitions are agreed",
        "050-LIST-10",
    )


def _summaries_fit(own: AdvertisementSet, limits: ExchangeLimits) -> bool:
    count = own.partition_count
    return count <= limits.max_partition_summaries and count * SUMMARY_BYTES <= limits.max_fact_block_size
