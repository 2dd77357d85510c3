"""What a side does not keep, and how it tells the other (P37, docs/spec/071-refusals.md).

Rule: a record that was written counts as taken only when the peer had its chance to refuse it: with its next request
list, or where two sets are equal and hold everything that crossed. What is refused is not sent again in an exchange.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum

from lace.errors import excerpt
from lace.interlace.claims.advertisement import require_record_ids
from lace.interlace.reasons import AbortReason, ProtocolAbort
from lace.interlace.vocabulary import DECLINED, DECLINED_COUNT, REFUSED
from lace.notation.decimal import natural
from lace.notation.fact import Fact
from lace.values import dataclass

TELLS_DECLINED = 2  # the version from which on it is told what is not asked for
MAX_DECLINED_NAMED = 1_000  # records of one block
LINE_BYTES = 76  # Refused('<48>','withdrawn') and its LF, and some to spare
DECLINED_ROOM = 512  # bytes that the counts of a block need
_REQUEST_ROOM = 64 * 1024  # bytes of a block that stay free for requests, however much is refused


class Reason(StrEnum):
    """Why a record is not kept (071-REASON-01)."""

    QUOTA = "quota"  # its peer, signer or group brought as much as it may
    HORIZON = "horizon"  # it is dated later than is taken now
    FULL = "full"  # there is no room on the disk
    INVALID = "invalid"  # what came is not that record
    POLICY = "policy"  # a limit or rule of the receiver's own
    WITHDRAWN = "withdrawn"  # it is not wanted any more: it is here by now, or the rules do not take it


REASONS = frozenset(map(str, Reason))


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Records that a side's rules want and that it does not ask for, because it would not keep them."""

    counts: Mapping[str, int] = field(default_factory=dict)  # by reason
    records: Mapping[str, str] = field(default_factory=dict)  # some of them, with the reason

    def __bool__(self) -> bool:
        return bool(self.counts)

    @classmethod
    def of(cls, reasons: Mapping[str, str], most: int = MAX_DECLINED_NAMED) -> HeldBack:
        """All of some records; the first of them are named."""
        if not reasons:
            return NOTHING_HELD_BACK
        counts = Counter(reasons.values())
        return cls(dict(sorted(counts.items())), dict(sorted(reasons.items())[:most]))

    def facts(self, room_bytes: int) -> list[Fact]:
        """The lines of a request list, with as many names as there is room for."""
        told = [Fact(DECLINED_COUNT, (reason, str(count))) for reason, count in self.counts.items()]
        named = max(0, room_bytes - DECLINED_ROOM) // LINE_BYTES
        return [*told, *(Fact(DECLINED, pair) for pair in list(self.records.items())[:named])]


NOTHING_HELD_BACK = HeldBack()


class RefusalBook:
    """What one side refuses, what crossed and may still be refused, and what both hold back."""

    def __init__(self) -> None:
        self.version: int = 0  # of 071, in this epoch
        self._pending: dict[str, Reason] = {}  # came and are not kept, and the peer was not told
        self._told = 0  # so many of them stand in our request list; it may still be forgotten (070-BASE-04)
        self.crossed: set[str] = set()  # records that went either way since the last request lists
        self.held_back: HeldBack = NOTHING_HELD_BACK
        self.held_back_by_peer: HeldBack = NOTHING_HELD_BACK
        self._reported = (NOTHING_HELD_BACK, NOTHING_HELD_BACK)

    def begin(self, version: int) -> None:
        """A new epoch."""
        self.version = version
        self.held_back = self.held_back_by_peer = NOTHING_HELD_BACK
        if not version:
            self._pending.clear()
            self.crossed.clear()

    @property
    def pending_bytes(self) -> int:
        """How long the lines are at most that our next block has to hold."""
        return len(self._pending) * LINE_BYTES

    def note_crossed(self, records: Iterable[str]) -> None:
        """Record bytes went from one side to the other."""
        if self.version:
            self.crossed.update(records)

    def refuse(self, reasons: Mapping[str, Reason]) -> None:
        """These came and are not kept."""
        if self.version:
            self._pending.update(reasons)

    def not_wanted(self, records: Iterable[str]) -> None:
        """These came unasked, as agreed (070-TAKE-05), and are not wanted."""
        known = self.held_back.records
        self.refuse({record: Reason(known.get(record, Reason.WITHDRAWN)) for record in records})

    def facts(self) -> list[Fact]:
        """Our refusals, for the block that is sent now (071-RIDE-01)."""
        self._told = len(self._pending)
        return [Fact(REFUSED, (record, str(reason))) for record, reason in self._pending.items()]

    def were_told(self) -> None:
        """The block with our refusals counts."""
        for record in list(self._pending)[: self._told]:
            del self._pending[record]
        self._told = 0

    def conclude(self) -> None:
        """Both request lists count, or both sides know that there are none: what crosses now is for the next ones."""
        self.were_told()
        self.crossed.clear()

    def news(self) -> tuple[HeldBack, HeldBack] | None:
        """What both hold back, if that is another than was last asked here."""
        now = (self.held_back, self.held_back_by_peer)
        if now == self._reported:
            return None
        self._reported = now
        return now


def most_requests(max_fact_block_size: int) -> int:
    """How many records may be asked for at once, so that one block can refuse all of them and still ask for more."""
    room = max_fact_block_size - min(_REQUEST_ROOM, max_fact_block_size // 2)
    return max(1, room // LINE_BYTES)


def read_refused(facts: Iterable[Fact]) -> dict[str, str]:
    """What a block says was not kept; anything malformed aborts (071-FACT-02)."""
    found: dict[str, str] = {}
    for _, (record, reason) in _of(facts, REFUSED):
        _require_reason(reason)
        if found.setdefault(record, reason) != reason:
            raise _malformed(f"two reasons for {excerpt(record)}")
    require_record_ids(list(found))
    return found


def read_held_back(facts: Sequence[Fact]) -> HeldBack:
    """What a request list says is not asked for (071-HELD-02)."""
    counts: dict[str, int] = {}
    for _, (reason, text) in dict.fromkeys(_of(facts, DECLINED_COUNT)):
        _require_reason(reason)
        count = natural(text)
        if not count or reason in counts:
            raise _malformed(f"{excerpt(reason)} counted as {excerpt(text)}")
        counts[reason] = count
    records: dict[str, str] = {}
    for _, (record, reason) in _of(facts, DECLINED):
        if records.setdefault(record, reason) != reason:
            raise _malformed(f"two reasons for {excerpt(record)}")
    require_record_ids(list(records))
    if len(records) > MAX_DECLINED_NAMED:
        raise _malformed(f"{len(records)} records are named as declined")
    for reason, named in Counter(records.values()).items():
        if named > counts.get(reason, 0):
            raise _malformed(f"{named} records are declined for {excerpt(reason)}, and {counts.get(reason, 0)} counted")
    return HeldBack(counts, records) if counts else NOTHING_HELD_BACK


def _of(facts: Iterable[Fact], predicate: object) -> list[Fact]:
    return [fact for fact in facts if fact.predicate == predicate]


def _require_reason(reason: str) -> None:
    if reason not in REASONS:
        raise _malformed(f"{excerpt(reason)} is no reason")


def _malformed(detail: str) -> ProtocolAbort:
    return ProtocolAbort(AbortReason.MALFORMED_FACT_BLOCK, detail, "071-FACT-02")
