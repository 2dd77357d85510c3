"""Records on their way into a store, in transactions of a bounded size.

Rule: `add` promises nothing; what `flush` returned is durable.
"""

from __future__ import annotations

from lace.limits import MIB, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.model import Record, ValidRecord
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store.base import RecordStore
from lace.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLimits:
    """How much may wait for one transaction."""

    max_records: int = 500
    max_bytes: int = 8 * MIB


class Batch:
    """Built records, validated and waiting for their transaction."""

    def __init__(self, store: RecordStore, records: RecordLimits, limits: BatchLimits) -> None:
        self._store = store
        self._records = records
        self._limits = limits
        self._waiting: list[ValidRecord] = []
        self._waiting_bytes = 0

    def add(self, record: Record) -> RecordHash:
        """Validate a record and queue it; a full queue is put."""
        return self.add_stored(encode_record(record))

    def add_stored(self, stored: bytes) -> RecordHash:
        """Validate the stored bytes of a record and queue it."""
        valid = validate(stored, limits=self._records)
        self._waiting.append(valid)
        self._waiting_bytes += len(valid.stored)
        if self.full:
            self.flush()
        return valid.hash

    @property
    def full(self) -> bool:
        """Whether what waits should not wait longer."""
        return self._waiting_bytes >= self._limits.max_bytes or len(self._waiting) >= self._limits.max_records

    @property
    def waiting(self) -> int:
        """How many records are not durable yet."""
        return len(self._waiting)

    def flush(self) -> None:
        """Put what waits; durable on return."""
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if waiting:
            self._store.put(waiting)
