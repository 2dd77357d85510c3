"""What an exchange has moved so far (050, result object and limits).

Rule: the ledger counts stored-record bytes, markline included, and nothing else (050-RESULT-08).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

from lace.notation.identifiers import RecordHash
from lace.values import dataclass


@dataclass(slots=True)
class Ledger:
    """Counts of the whole exchange and of the current round; of hashes the newest, for an exchange may stay open."""

    max_hashes: int = 1_000_000
    received: dict[RecordHash, None] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    not_available: dict[str, None] = field(default_factory=dict)
    sent: dict[str, None] = field(default_factory=dict)  # and taken (P37)
    unconfirmed: dict[str, None] = field(default_factory=dict)  # sent; the peer did not say yet what it kept of them
    refused: dict[str, str] = field(default_factory=dict)  # sent and not kept
    bytes_received: int = 0
    bytes_sent: int = 0
    round_received: int = 0
    round_sent: int = 0
    loops: int = 0
    round_loops: int = 0
    limit_reached: str = ""

    def begin_round(self) -> None:
        """A fixed point was reached: limits of a round count from here."""
        self.round_received = self.round_sent = self.round_loops = 0
        for hashes in (
            self.received, self.rejected, self.not_available, self.sent, self.unconfirmed, self.refused,
        ):  # fmt: skip
            keep_newest(hashes, self.max_hashes)

    def count_loop(self) -> None:
        """One more loop begins."""
        self.loops += 1
        self.round_loops += 1

    def count_received(self, size: int) -> None:
        """Bytes came in, whatever becomes of them (P21)."""
        self.bytes_received += size
        self.round_received += size

    def count_sent(self, records: Sequence[tuple[str, int]]) -> None:
        """Records were written."""
        names = [record for record, _ in records]
        self.unconfirmed.update(dict.fromkeys(names))
        if self.sent:
            for record in names:
                self.sent.pop(record, None)
        size = sum([size for _, size in records])
        self.bytes_sent += size
        self.round_sent += size

    def has_sent(self, record: str) -> bool:
        """Whether a record was written to the peer, and not refused since."""
        return record in self.unconfirmed or record in self.sent

    def refuse(self, reasons: Mapping[str, str]) -> None:
        """The peer did not keep records that were sent."""
        for record, reason in reasons.items():
            self.unconfirmed.pop(record, None)
            self.sent.pop(record, None)
            self.refused[record] = reason

    def confirm(self) -> list[str]:
        """The peer had its chance to refuse what was sent: the rest it took."""
        taken = list(self.unconfirmed)
        self.sent.update(self.unconfirmed)
        self.unconfirmed.clear()
        return taken

    def store(self, hashes: Sequence[RecordHash]) -> None:
        """Records are validated and durable."""
        self.received.update(dict.fromkeys(hashes))
        if self.rejected or self.not_available:
            for record in hashes:
                self.rejected.pop(record, None)
                self.not_available.pop(record, None)

    def reject(self, reasons: Mapping[str, str]) -> None:
        """Records failed validation."""
        for record, reason in reasons.items():
            if record not in self.received:
                self.rejected[record] = reason
                self.not_available.pop(record, None)

    def miss(self, record: str) -> None:
        """The peer can no longer send a record."""
        if record not in self.received and record not in self.rejected:
            self.not_available[record] = None


def keep_newest(named: dict[Any, Any], most: int) -> None:
    """Forget the oldest entries above a bound."""
    for name in list(islice(named, max(0, len(named) - most))):
        del named[name]
