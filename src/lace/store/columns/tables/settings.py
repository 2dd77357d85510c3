"""What other parts keep in a store file: values under a namespace and a key, each with its checksum.

Rule: its caller holds the connection's lock and transaction.
"""

from __future__ import annotations

import sqlite3
from contextlib import nullcontext

from lace.limits import MIB
from lace.store.columns.tables.checksum import checksum, require_sum
from lace.store.columns.tables.smallcache import small_cache

_LONG_BYTES = MIB


class SettingTable:
    """Reads and writes settings."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get(self, namespace: str, key: str) -> bytes | None:
        """One value."""
        return self._read("namespace = ? AND key = ?", namespace, key).get(key)

    def all(self, namespace: str) -> dict[str, bytes]:
        """Everything of one namespace, in order."""
        return self._read("namespace = ? ORDER BY key", namespace)

    def last(self, namespace: str, up_to: str) -> tuple[str, bytes] | None:
        """The highest key up to this one, and its value."""
        found = self._read("namespace = ? AND key <= ? ORDER BY key DESC LIMIT 1", namespace, up_to)
        return next(iter(found.items()), None)

    def put(self, namespace: str, key: str, value: bytes | None) -> None:
        """Keep a value; None removes it."""
        if value is None:
            self._connection.execute("DELETE FROM settings WHERE namespace = ? AND key = ?", (namespace, key))
        else:
            row = (namespace, key, value)
            with small_cache(self._connection) if len(value) > _LONG_BYTES else nullcontext():
                self._connection.execute("INSERT OR REPLACE INTO settings VALUES (?, ?, ?, ?)", (*row, checksum(*row)))

    def _read(self, where: str, *values: str) -> dict[str, bytes]:
        rows = self._connection.execute(f"SELECT namespace, key, value, sum FROM settings WHERE {where}", values)
        found = {}
        for namespace, key, value, said in rows:
            require_sum(f"the setting {key} of {namespace}", said, namespace, key, value)
            found[key] = bytes(value)
        return found
