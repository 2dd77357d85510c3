"""The bytes of records that were sent a moment ago: what is new to one link is new to the others too.

Rule: they are of this moment of the store as this process knows it. Once anything is removed here, or another process
was seen to have changed something, they are forgotten; and there are few of them. What comes to the store changes no
body that is there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence

from lace.limits import MIB
from lace.store.base import RecordStore

MOST_RECORDS = 2_048
MOST_BYTES = 2 * MIB


class RecentBodies:
    """Shared by all links over a store."""

    def __init__(self, store: RecordStore, max_records: int = MOST_RECORDS, max_bytes: int = MOST_BYTES) -> None:
        self._news = store.news
        self._max_records = max_records
        self._max_bytes = max_bytes
        self._heard = -1
        self._held: dict[str, bytes] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def moment(self) -> int:
        """To be read before the bytes that are noted are."""
        return self._news.removals

    def note(self, moment: int, records: Iterable[tuple[str, bytes | None]]) -> None:
        """Records that were read since a moment."""
        with self._lock:
            if moment != self._heard:
                self._heard, self._held, self._bytes = moment, {}, 0
            for record, data in records:
                if data is None or record in self._held or len(data) > self._max_bytes:
                    continue
                self._held[record] = data
                self._bytes += len(data)
                while len(self._held) > self._max_records or self._bytes > self._max_bytes:
                    self._bytes -= len(self._held.pop(next(iter(self._held))))  # the one that came first

    def get(self, records: Sequence[str]) -> list[bytes] | None:
        """All of some records; None if one is not here, or something has changed."""
        held = self._held
        if self._heard != self._news.removals:
            return None
        found = [data for record in records if (data := held.get(record)) is not None]  # another thread may forget some
        return found if len(found) == len(records) else None
