"""Whether a set is listed or summarised (050, P14), by how long its listing is.

Rule: both are measured before a byte of either is sent, against the limits that both sides agreed on (050-LIST-10).
"""

from __future__ import annotations

from lace.interlace.claims.partitions import START_LENGTH
from lace.interlace.inputs import Evaluated
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.limits import ExchangeLimits

# AdvertisementPartition('ab','1234567','<43>') and its LF.
SUMMARY_BYTES = 85
_MOST_STARTING_PARTITIONS = 64**START_LENGTH
RECORD_BYTES = 74  # Advertised('<48>','<label>') and its LF, without the label


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
