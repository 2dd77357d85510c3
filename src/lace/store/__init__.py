"""Durable record stores, bundles of records, and the road between them.

`open_store` gives the store in a file (`columns`); `MemoryStore` is its twin without a file. Both keep
`lace.store.base.RecordStore`. Names are found when they are asked for: the workers of an import need few of them.

- *store record id*: the order in which a record was stored; never used twice. *Cursor*: a moment of a store.
- *snapshot*: the facts of one moment. *Changes*: what came and went between two, net.
- *entry*: a stored Plex or Seal as its coordinate lists it.
- *news*: tells listeners in this process that something was stored. *Ledger*: how much each peer has brought.
- *bundle*: a file of records. *Browser*: pages for people who look around. *Search*: an index of words, if it is on.

Never: a record is stored that was not judged; a put returns before its batch is durable.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from lace.limits import StoreLimits
    from lace.store.base import Changes, Entry, PutResult, RecordStore, Snapshot, StoreCursor, StoreRecordId, StoreStat
    from lace.store.columns.store import SQLiteStore
    from lace.store.memory import MemoryStore
    from lace.thresholds import StoreThresholds

__all__ = [
    "Changes",
    "Entry",
    "MemoryStore",
    "PutResult",
    "RecordStore",
    "SQLiteStore",
    "Snapshot",
    "StoreCursor",
    "StoreRecordId",
    "StoreStat",
    "open_store",
]


_HOMES = {"MemoryStore": "lace.store.memory", "SQLiteStore": "lace.store.columns.store"}


def __getattr__(name: str) -> Any:
    """A public name from the module that defines it, kept here afterwards."""
    if name not in __all__:
        raise AttributeError(f"module 'lace.store' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_HOMES.get(name, "lace.store.base")), name)
    return value


def open_store(
    path: str | Path,
    *,
    create: bool = False,
    read_only: bool = False,
    limits: StoreLimits | None = None,
    thresholds: StoreThresholds | None = None,
) -> SQLiteStore:
    """The store in a file; `create` makes one where there is none, `read_only` takes no lock at all."""
    from lace.store.columns.store import SQLiteStore

    return SQLiteStore(path, create=create, read_only=read_only, limits=limits, thresholds=thresholds)
