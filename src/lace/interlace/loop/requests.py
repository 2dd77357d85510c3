"""Requests and what became of them (050, request lists and transfer).

Rule: a hash is requested only if it is requestable, advertised, of an accepted format and not refused since the
peer's advertisement state last changed (P12).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from heapq import nsmallest
from itertools import accumulate

from lace.errors import excerpt
from lace.facts.predicates import MAY_REQUEST
from lace.interlace.claims.advertisement import Claims, with_format
from lace.interlace.effects import Evaluate
from lace.interlace.ledger import keep_newest
from lace.interlace.loop.blocks import BlockReader
from lace.interlace.loop.differencefacts import malformed
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import DIFFERENCE_ALL
from lace.notation.fact import Fact, FactColumn

_REQUEST_BYTES = len("MayRequest('')\n")
_MAX_FOR_GOOD = 1_000_000  # records that came, were refused, and are remembered for as long as an epoch lasts


def choose_requests(
    requestable: Collection[str],
    claimed: Callable[[Iterable[str]], list[str]],
    formats: frozenset[str],
    wanted: Evaluate,
) -> list[str]:
    """The next request list, sorted, within the bounds (050-REQ-02 to 050-REQ-06): a host's part of Evaluate."""
    if not wanted.max_requests:
        return []
    refused = wanted.refused
    allowed = [record for record in requestable if record not in refused] if refused else requestable
    found = with_format(claimed(allowed), formats)
    if len(found) > wanted.max_requests:
        found = nsmallest(wanted.max_requests, found)
    chosen = sorted(found)
    if request_bytes(chosen) <= wanted.max_request_bytes:
        return chosen
    ends = accumulate(_REQUEST_BYTES + len(record) for record in chosen)
    return [record for record, end in zip(chosen, ends, strict=True) if end <= wanted.max_request_bytes]


def request_bytes(records: Sequence[str]) -> int:
    """How long the lines are that ask for some records."""
    return sum(map(len, records)) + _REQUEST_BYTES * len(records)


class OneLine:
    """What each side listed of what differs; the other may ask for all of it in one line (070-ALL-01)."""

    def __init__(self, least: int) -> None:
        self._least = least
        self.by_us: Sequence[str] = ()
        self.is_whole_set = False  # what we listed is our whole set
        self.is_asked_for_all: bool = False  # of that
        self.by_peer: Sequence[str] = ()
        self.whole_listing: Claims = ()  # the peer's, where all of it differs

    def request_facts(self, requested: list[str]) -> Sequence[Fact]:
        """What we ask for: one line for many records, if they are all that the peer listed."""
        count = len(self.by_peer) or len(self.whole_listing)
        if len(requested) >= self._least and len(requested) == count:
            listed = self.by_peer or [claim.hash for claim in self.whole_listing]
            if requested == listed or set(requested) == set(listed):
                return [Fact(DIFFERENCE_ALL, (str(count),))]
        return FactColumn(MAY_REQUEST, requested)

    def requested_of_us(self, block: BlockReader) -> list[str]:
        """What the peer asks for."""
        counts = [values[0] for predicate, values in block.facts if predicate == DIFFERENCE_ALL]
        if not counts:
            return list(block.requested)
        if len(counts) > 1 or block.requested or not self.by_us:
            raise malformed("all that was listed, asked for twice, beside other requests, or where nothing was")
        if counts[0] != str(len(self.by_us)):
            raise malformed(f"all of {excerpt(counts[0])} records asked for, and {len(self.by_us)} were listed")
        self.is_asked_for_all = self.is_whole_set
        return list(self.by_us)


class RequestBook:
    """What we asked for and what came of it."""

    def __init__(self) -> None:
        self._refused: set[str] = set()
        self._refused_for_good: dict[str, None] = {}  # that the peer was told of (P37), the newest of them
        self.outstanding: set[str] = set()  # whatever may come
        self._spare: frozenset[str] = frozenset()  # what of it we would not have named (070-TAKE-05)

    @property
    def refused(self) -> frozenset[str]:
        """What is not asked for again while the peer's claims stay as they are."""
        return frozenset(self._refused).union(self._refused_for_good)

    def reset(self) -> None:
        """A new policy: nothing was asked for or refused under it."""
        self._refused.clear()
        self._refused_for_good.clear()
        self.outstanding.clear()
        self._spare = frozenset()

    def ask(self, wanted: Sequence[str], also: Sequence[str] = ()) -> None:
        """These may come now; `also` is what comes unasked, of which we take what we want."""
        self.outstanding = {*wanted, *also}
        self._spare = frozenset(also).difference(wanted) if also else frozenset()

    def wanted(self, records: Sequence[str]) -> Sequence[str]:
        """Those of some records that came which we would have named."""
        return [record for record in records if record not in self._spare] if self._spare else records

    def forgive(self) -> None:
        """The peer's advertisement state changed: what it refused may be asked for again (050-XFER-11)."""
        self._refused.clear()

    def arrive(self, records: Sequence[str]) -> int:
        """Record responses: how many of them, from the first on, answer a request, each once (050-XFER-09)."""
        for place, record in enumerate(records):
            if record not in self.outstanding:
                return place
            self.outstanding.discard(record)
        return len(records)

    @staticmethod
    def unasked(record: str, accepted: frozenset[str]) -> ProtocolAbort:
        """Why a record response that answers no request ends the exchange."""
        suffix = record.split(".", 2)[2:]
        if suffix and suffix[0] not in accepted:  # 050-ERR-04: it could not have been requested
            return ProtocolAbort(AbortReason.UNSUPPORTED_RECORD_FORMAT, f"record {excerpt(record)}", "050-ERR-04")
        return ProtocolAbort(AbortReason.RECORD_NOT_REQUESTED, f"record {excerpt(record)}", "050-XFER-09")

    def unavailable(self, record: str) -> None:
        """NotAvailable(P): it must answer an outstanding request (050-REQF-10)."""
        if record not in self.outstanding:
            raise ProtocolAbort(
                AbortReason.MALFORMED_FACT_BLOCK,
                f"NotAvailable for {excerpt(record)}, which is not requested",
                "050-REQF-10",
            )
        self.outstanding.discard(record)
        self._refused.update(self.wanted([record]))

    def reject(self, records: Iterable[str], *, for_good: bool = False) -> None:
        """Bytes that are not kept: not asked for again while the state is unchanged (050-XFER-11), or, `for_good`,
        under this policy: a peer that was told does not send them again (071-AGAIN-01)."""
        if for_good:
            self._refused_for_good.update(dict.fromkeys(records))
            keep_newest(self._refused_for_good, _MAX_FOR_GOOD)
        else:
            self._refused.update(records)

    def take_deferred(self) -> list[str]:
        """What got no answer in this phase (050-XFER-04); it stays requestable (050-XFER-05)."""
        deferred = sorted(self.wanted(list(self.outstanding)))
        self.ask(())
        return deferred
