"""What peers brought and a lace did not keep: remembered, so that the same bytes do not come again (P37).

Rule: what is remembered is what the record itself told (its size, date, group and signer), never a verdict: whether it
would be kept now is decided each time, so a raised quota, a later clock or a freed disk count immediately. Only
what cannot be decided from that (bytes that were not the record, a limit of our own) is remembered as it was judged:
from whom it came, under which limits, and for a day.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol
from weakref import WeakKeyDictionary, ref

from lace.errors import StoreError
from lace.interlace.ledger import keep_newest
from lace.interlace.loop.refusals import Reason
from lace.store.ledger import Brought

NAMESPACE, KEY = "refused", "records"
MAX_REMEMBERED = 8_192  # records of one lace
FORGOTTEN_AFTER_S = 24 * 3600  # verdicts; the peer may have mended its copy


class RefusedRecord(NamedTuple):
    """One record that came and was not kept."""

    reason: str
    size: int = 0  # of the whole record
    group: str = ""
    signer: str = ""
    tai: str = ""
    peer: str = ""  # who brought it, where the verdict is about that
    limits: str = ""  # our limits on records at that time, the same
    when: int = 0  # seconds

    @property
    def brought(self) -> Brought:
        """What an account would be charged with."""
        return Brought(self.size, self.group, self.signer)


class _Settings(Protocol):
    def get_setting(self, namespace: str, key: str) -> bytes | None: ...
    def put_setting(self, namespace: str, key: str, value: bytes | None) -> None: ...


class _RefusedTable:
    """What is remembered with one lace, once for all of its links: of a hundred links each would hold a copy."""

    def __init__(self, store: _Settings) -> None:
        self._store = ref(store)  # which holds this table as long as it lives
        self.lock = threading.Lock()
        self.rows: dict[str, RefusedRecord] = self.read()

    def read(self) -> dict[str, RefusedRecord]:
        """What is kept; a table that cannot be read costs the bytes of what it held."""
        store = self._store()
        kept = None if store is None else store.get_setting(NAMESPACE, KEY)
        try:
            return {str(record): RefusedRecord(*row) for record, row in json.loads(kept).items()} if kept else {}
        except (ValueError, TypeError, AttributeError):
            return {}


_tables: WeakKeyDictionary[_Settings, _RefusedTable] = WeakKeyDictionary()
_making = threading.Lock()


def _table_of(store: _Settings) -> _RefusedTable:
    with _making:
        found = _tables.get(store)
        if found is None:
            found = _tables[store] = _RefusedTable(store)
        return found


class RefusedBefore:
    """The table of one lace, as one link uses it."""

    def __init__(self, store: _Settings, peer: str, limits: str, now: Callable[[], float] = time.time) -> None:
        self._store = store
        self._peer = peer
        self._limits = limits
        self._now = now
        self._shared: _RefusedTable | None = None  # until it is asked for

    def __len__(self) -> int:
        return len(self._table)

    @property
    def _table(self) -> dict[str, RefusedRecord]:
        if self._shared is None:
            self._shared = _table_of(self._store)
        return self._shared.rows

    def get(self, record: str) -> RefusedRecord | None:
        """What is known of a record."""
        return self._table.get(record)

    def verdict(self, record: str) -> str:
        """Why a record is not asked for, whatever the accounts, the clock and the disk say; empty if it may be."""
        found = self._table.get(record)
        if found is None or found.reason not in (Reason.INVALID, Reason.POLICY) or found.limits != self._limits:
            return ""
        is_old = abs(self._now() - found.when) > FORGOTTEN_AFTER_S
        from_another = found.reason == Reason.INVALID and found.peer != self._peer
        return "" if is_old or from_another else found.reason

    def note(self, refused: Mapping[str, RefusedRecord], kept: Iterable[str] = ()) -> None:
        """Records came: some were not kept, some are here now."""
        gone = [record for record in kept if record in self._table]
        if not refused and not gone:
            return
        when = int(self._now())
        rows = {
            record: one._replace(peer=self._peer, limits=self._limits, when=when) for record, one in refused.items()
        }
        shared = _table_of(self._store)
        with shared.lock:
            table = {**shared.read(), **rows}  # other processes write it too
            for record in gone:
                table.pop(record, None)
            keep_newest(table, MAX_REMEMBERED)
            shared.rows = table
            with contextlib.suppress(StoreError):  # no room for it on a full disk: then only this process knows it
                self._store.put_setting(NAMESPACE, KEY, json.dumps(table).encode() if table else None)


def has_refused(store: _Settings) -> bool:
    """Whether anything is remembered."""
    return store.get_setting(NAMESPACE, KEY) is not None


def forget_refused(store: _Settings, records: Iterable[str]) -> None:
    """Drop what is remembered of some records: their groups and signers."""
    shared = _table_of(store)
    with shared.lock:
        table = shared.read()
        gone = [record for record in records if table.pop(record, None) is not None]
        shared.rows = table
        if gone:
            store.put_setting(NAMESPACE, KEY, json.dumps(table).encode() if table else None)
