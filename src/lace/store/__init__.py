"""Durable record stores, bundles of records, and the road between them.

`open_store` gives the store in a file; `MemoryStore` is its twin without a file. Both keep
`lace.store.base.RecordStore`.
"""

from __future__ import annotations

from pathlib import Path

from lace.limits import StoreLimits
from lace.store.base import Changes, Entry, PutResult, RecordStore, Snapshot, StoreCursor, StoreRecordId, StoreStat
from lace.store.memory import MemoryStore
from lace.store.sqlite import SQLiteStore

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


def open_store(
    path: str | Path, *, create: bool = False, read_only: bool = False, limits: StoreLimits | None = None
) -> SQLiteStore:
    """The store in a file; `create` makes one where there is none, `read_only` takes no lock at all."""
    return SQLiteStore(Path(path), create=create, read_only=read_only, limits=limits or StoreLimits())
