"""Which manifests of a store name which parts, both ways (010, conventions).

Rule: this follows the store and is read off its facts; it says nothing about whether a manifest holds as content. All
who look at one store share one of these, and where it would grow beyond its limit it says that it does not know.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from weakref import WeakKeyDictionary

from lace.datalog.source import FactSource
from lace.facts.predicates import RECORD_LINK
from lace.notation.identifiers import RecordHash, is_record_hash
from lace.records.manifest import CHUNK_LINK
from lace.store.base import RecordStore, StoreCursor

MAX_LINKS = 1_000_000  # held in memory; at 32 MiB a part that is 32 TiB of content


class PartLinks:
    """The links from manifests to parts of one store; any thread may ask."""

    def __init__(self, store: RecordStore, max_links: int = MAX_LINKS) -> None:
        self._store = store
        self._max_links = max_links
        self._lock = threading.Lock()
        self._at: StoreCursor | None = None
        self._parts: dict[str, dict[str, None]] = {}
        self._wholes: dict[str, dict[str, None]] = {}
        self._count = 0
        self._is_over = False  # more links than may be held: none is, until records go

    def follow(self) -> bool:
        """Take in what the store has by now; False if there are more links than may be held."""
        with self._lock:
            now = self._store.cursor()
            if now == self._at:
                return not self._is_over
            changes = None if self._at is None else self._store.changes(self._at)
            if changes is not None and self._is_over and not changes.removed_records:
                self._at = changes.cursor  # what came makes it no less: all links are not read again for it
                return False
            if changes is None or self._is_over:
                self._parts, self._wholes, self._count, self._is_over = {}, {}, 0, False
                snapshot = self._store.snapshot()
                self._at = snapshot.cursor
                return self._add(snapshot)
            self._at = changes.cursor
            for whole in changes.removed_records:
                for part in self._parts.pop(whole, ()):
                    self._count -= 1
                    left = self._wholes[part]
                    del left[whole]
                    if not left:
                        del self._wholes[part]
            return self._add(changes.added)

    def _add(self, facts: FactSource) -> bool:
        for whole, _, _, _, part in facts.query(RECORD_LINK, None, CHUNK_LINK):
            known = self._parts.setdefault(whole, {})
            if part not in known and is_record_hash(part):
                self._count += 1
                known[part] = None
                self._wholes.setdefault(part, {})[whole] = None
            if self._count > self._max_links:
                self._parts, self._wholes, self._count, self._is_over = {}, {}, 0, True
                return False
        return True

    @property
    def is_empty(self) -> bool:
        """Whether the store holds no manifest."""
        return not self._parts

    def above(self, records: Iterable[str]) -> set[RecordHash]:
        """The manifests that name one of these as a part, and those above them."""
        return self._reached(records, self._wholes)

    def below(self, records: Iterable[str]) -> set[RecordHash]:
        """What these name as parts, and what is below that; whether it is stored or not."""
        return self._reached(records, self._parts)

    def _reached(self, records: Iterable[str], links: dict[str, dict[str, None]]) -> set[RecordHash]:
        found: set[RecordHash] = set()
        if not links:
            return found
        with self._lock:
            waiting = [other for record in records for other in links.get(record, ())]
            while waiting:
                record = RecordHash(waiting.pop())
                if record not in found:
                    found.add(record)
                    waiting += links.get(record, ())
        return found


_known: WeakKeyDictionary[RecordStore, PartLinks] = WeakKeyDictionary()
_making = threading.Lock()


def part_links(store: RecordStore) -> PartLinks:
    """The part links of a store, the same for all who ask."""
    with _making:
        found = _known.get(store)
        if found is None:
            found = _known[store] = PartLinks(store)
        return found
