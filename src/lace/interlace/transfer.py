"""Requests and what became of them (050, request lists and transfer).

Rule: a hash is requested only if it is requestable, advertised, of an accepted format and not refused since the
peer's advertisement state last changed (P12).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from heapq import nsmallest
from itertools import accumulate

from lace.interlace.advertisement import with_format
from lace.interlace.partitions import AdvertisementSet
from lace.interlace.reasons import AbortReason, ProtocolAbort

_REQUEST_BYTES = len("MayRequest('')\n")


class RequestBook:
    """What we want, what we asked for, what came of it."""

    def __init__(self) -> None:
        self._requestable: dict[str, None] = {}  # in the order in which they came: sorted texts stay nearly so
        self._refused: set[str] = set()
        self.outstanding: set[str] = set()

    def update(self, added: Iterable[str], removed: Collection[str]) -> None:
        """An evaluation's changes to MayRequest(P) and not Have(P)."""
        if len(removed) == len(self._requestable) and set(removed) == self._requestable.keys():
            self._requestable.clear()  # what was asked for has come
        else:
            for record in removed:
                self._requestable.pop(record, None)
        self._requestable.update(dict.fromkeys(added))

    def reset(self) -> None:
        """A new policy: nothing is requestable until it says so."""
        self._requestable.clear()
        self._refused.clear()
        self.outstanding.clear()

    def forgive(self) -> None:
        """The peer's advertisement state changed: what it refused may be asked for again (050-XFER-11)."""
        self._refused.clear()

    def wanted(self, peer: AdvertisementSet, formats: frozenset[str]) -> list[str]:
        """Everything that may be requested now (050-REQ-03 to 050-REQ-06), in no order."""
        refused = self._refused
        allowed = [record for record in self._requestable if record not in refused] if refused else self._requestable
        return with_format(peer.among(allowed), formats)

    def choose(self, peer: AdvertisementSet, formats: frozenset[str], max_count: int, max_bytes: int) -> list[str]:
        """The next request list, sorted, within the bounds; it becomes outstanding (050-REQ-02)."""
        wanted = self.wanted(peer, formats)
        if len(wanted) > max_count:
            wanted = nsmallest(max_count, wanted)
        chosen = sorted(wanted)
        if sum(map(len, chosen)) + _REQUEST_BYTES * len(chosen) > max_bytes:
            ends = accumulate(_REQUEST_BYTES + len(record) for record in chosen)
            chosen = [record for record, end in zip(chosen, ends, strict=True) if end <= max_bytes]
        self.outstanding = set(chosen)
        return chosen

    def arrive_all(self, records: Sequence[str]) -> bool:
        """Many record responses at once; False, and nothing done, unless each answers an outstanding request."""
        distinct = set(records)
        if len(distinct) != len(records) or not distinct <= self.outstanding:
            return False
        self.outstanding -= distinct
        return True

    def arrive(self, record: str, accepted: frozenset[str]) -> None:
        """A record response: it must answer an outstanding request, once (050-XFER-09)."""
        if record in self.outstanding:
            self.outstanding.discard(record)
            return
        suffix = record.split(".", 2)[2:]
        if suffix and suffix[0] not in accepted:  # 050-ERR-04: it could not have been requested
            raise ProtocolAbort(AbortReason.UNSUPPORTED_RECORD_FORMAT, f"record {record[:80]}", "050-ERR-04")
        raise ProtocolAbort(AbortReason.RECORD_NOT_REQUESTED, f"record {record[:80]}", "050-XFER-09")

    def unavailable(self, record: str) -> None:
        """NotAvailable(P): it must answer an outstanding request (050-REQF-10)."""
        if record not in self.outstanding:
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK,
                f"NotAvailable for {record[:80]}, which is not requested",
                "050-REQF-10",
            )
        self.outstanding.discard(record)
        self._refused.add(record)

    def reject(self, records: Iterable[str]) -> None:
        """Bytes that failed validation: not asked for again while the state is unchanged (050-XFER-11)."""
        self._refused.update(records)

    def take_deferred(self) -> list[str]:
        """What got no answer in this phase (050-XFER-04); it stays requestable (050-XFER-05)."""
        deferred = sorted(self.outstanding)
        self.outstanding = set()
        return deferred


def split_service(
    requested: Sequence[str], sendable: AdvertisementSet, max_records: int, *, all_sendable: bool = False
) -> tuple[list[str], list[str]]:
    """What to send of a request list and what to report NotAvailable; the rest is deferred (050-XFER-01 to -03)."""
    answered = requested[:max_records]
    if all_sendable:
        return list(answered), []
    send = sendable.among(answered)
    if len(send) == len(answered):
        return send, []
    found = set(send)
    return send, [record for record in answered if record not in found]
