"""Records on their way into a store, in transactions of a bounded size.

Rule: `add` promises nothing; what `flush` returned is durable.
"""

from __future__ import annotations

from collections.abc import Sequence

from lace.errors import InvalidInput
from lace.limits import MIB, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.records.model import Record, ValidRecord
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.store.base import RecordStore
from lace.store.forgotten import RULE, WHY, forgotten_among, has_forgotten, take_again
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
        self._forgets: bool | None = None  # whether this lace ever forgot a record; asked once for each transaction

    def add(self, record: Record) -> RecordHash:
        """Validate a record that was made here and queue it; it may have been forgotten, and is taken again."""
        return self._queue(encode_record(record), is_made_here=True)

    def add_stored(self, stored: bytes) -> RecordHash:
        """Validate the stored bytes of a record and queue it; InvalidInput if it was forgotten here."""
        return self._queue(stored, is_made_here=False)

    def _queue(self, stored: bytes, *, is_made_here: bool) -> RecordHash:
        valid = validate(stored, limits=self._records)
        if self._forgets is None:
            self._forgets = has_forgotten(self._store)
        if self._forgets and forgotten_among(self._store, (valid.hash,)):
            if not is_made_here:
                raise InvalidInput(f"{valid.hash} is not stored: {WHY}", rule=RULE)
            take_again(self._store, (valid.hash,))
        self._waiting.append(valid)
        self._waiting_bytes += len(valid.stored)
        if self.full:
            self.flush()
        return valid.hash

    def store_alike(self, *kinds: Sequence[bytes]) -> None:
        """Judge and store records that were made here, given by type, in one transaction; durable on return."""
        from lace.intake.check import encoded  # it loads what judges in columns

        self.flush()
        batches = [encoded(frames, self._records) for frames in kinds if frames]
        with self._store.together():
            if has_forgotten(self._store):
                for batch in batches:
                    take_again(self._store, forgotten_among(self._store, batch.hashes))
            for batch in batches:
                self._store.put_encoded(batch)

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
        self._forgets = None
        if waiting:
            self._store.put(waiting)
