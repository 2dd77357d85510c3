"""Our side of reconciliation (050, P14, P16): what we list or summarise, and the answers to what the peer selects.

Rule: everything said here is computed from the effective send set alone (050-SEND-10), which does not change between
a loop's advertisement and its last answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from lace.errors import excerpt
from lace.interlace.claims.partitions import START_LENGTH, Partition
from lace.interlace.inputs import Evaluated
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import ADVERTISEMENT_PARTITION, LIST_PARTITION
from lace.limits import ExchangeLimits
from lace.notation.fact import Fact
from lace.values import dataclass

# AdvertisementPartition('ab','1234567','<43>') and its LF.
SUMMARY_BYTES = 85
_MOST_STARTING_PARTITIONS = 64**START_LENGTH
RECORD_BYTES = 74  # Advertised('<48>','<label>') and its LF, without the label


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    """What one selection block asks of us."""

    listed: list[str]  # prefixes
    narrowed: list[str]


@lru_cache(maxsize=1 << 14)  # in an open exchange nearly all summaries are those of the loop before
def summary_fact(partition: Partition) -> Fact:
    """A summary as its fact (050-LIST-04)."""
    return Fact(ADVERTISEMENT_PARTITION, (partition.prefix, str(partition.count), partition.root))


class Offers:
    """What we offered in this loop; each prefix can be chosen once (050-PART-19)."""

    def __init__(self, limits: ExchangeLimits) -> None:
        self._limits = limits
        self._open: dict[str, int] = {}  # how many records each prefix on offer has
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
        self._open.update((partition.prefix, partition.count) for partition in partitions)

    def answer(self, selection: Sequence[Fact]) -> PartitionAnswer:
        """What a selection block asks for; vocabulary was checked."""
        answer = PartitionAnswer([], [])
        count = 0
        for predicate, (prefix,) in dict.fromkeys(selection):  # P18: an identical repeat is one fact
            if prefix not in self._open:
                raise ProtocolAbort(
                    AbortReason.MALFORMED_FACT_BLOCK, f"partition {excerpt(prefix)} is not on offer", "050-PART-19"
                )
            records = self._open.pop(prefix)
            if predicate == LIST_PARTITION:
                answer.listed.append(prefix)
                count += records
            else:
                self._require_depth(prefix)
                answer.narrowed.append(prefix)
        if count > self._limits.max_advertisement_records_listed:  # 050-LIST-11: the selecting side paces
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"the peer selected {count} records at once", "050-LIM-03"
            )
        return answer

    def _require_depth(self, prefix: str) -> None:
        if len(prefix) - START_LENGTH >= self._limits.max_narrowing_depth:  # 050-LIM-05
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK, f"partition {excerpt(prefix)} is as narrow as agreed", "050-LIM-05"
            )


def measured_bytes(limits: ExchangeLimits, *, agreed: bool, threshold_bytes: int) -> int:
    """Up to where `uses_partitions` has to know the length of our listing exactly."""
    always_fit = _summaries_fit(_MOST_STARTING_PARTITIONS, limits)
    return threshold_bytes if agreed and always_fit else max(threshold_bytes, limits.max_fact_block_size)


def uses_partitions(own: Evaluated, limits: ExchangeLimits, *, agreed: bool, threshold_bytes: int) -> bool:
    """Whether this loop's advertisement is summaries: when a listing is costly or not allowed (P14, 050-LIST-10)."""
    count, size = own.own.count, own.listing_bytes
    is_agreed, agreed = agreed, agreed and _summaries_fit(own.partitions, limits)
    if agreed and size > threshold_bytes:
        return True
    fits_records = count <= limits.max_advertisement_records_listed
    if fits_records and size <= limits.max_fact_block_size:
        return False
    if agreed:
        return True
    limit = "max_fact_block_size" if fits_records else "max_advertisement_records_listed"
    found = f"{size} bytes" if fits_records else f"{count} records"
    instead = f"its {own.partitions} partitions are too many" if is_agreed else "no partitions are agreed"
    raise ProtocolAbort(  # 050-LIST-10: told before a byte of it is sent
        AbortReason.LOCAL_FAILURE, f"our listing of {found} passes {limit}, and {instead}", "050-LIST-10", limit
    )


def _summaries_fit(count: int, limits: ExchangeLimits) -> bool:
    return count <= limits.max_partition_summaries and count * SUMMARY_BYTES <= limits.max_fact_block_size
