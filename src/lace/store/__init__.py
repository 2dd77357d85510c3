"""Durable record stores, bundles of records, and the road between them.

`open_store` gives the store in a file; `MemoryStore` is its twin without a file. Both keep
`lace.store.base.RecordStore`. Names are found when they are asked for: the workers of an import need few of them.
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
    path: str | Path, *, create: bool = False, read_only: bool = False, limits: StoreLimits | None = None
) -> SQLiteStore:
    """The store in a file; `create` makes one where there is none, `read_only` takes no lock at all."""
    from lace.store.columns.store import SQLiteStore

    return SQLiteStore(path, create=create, read_only=read_only, limits=limits)
