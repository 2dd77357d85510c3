"""Long reads and writes that leave nothing in SQLite's cache of pages.

Rule: only for pages that are met once. To keep them takes longer than to read them, and pushes out those that are met
again: without this, 48 MB of a process that evaluated a million records were pages that nobody asked for a second time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

_KIB = 2048


@contextmanager
def small_cache(connection: sqlite3.Connection) -> Iterator[None]:
    """What is read or written here goes through a small cache."""
    usual = connection.execute("PRAGMA cache_size").fetchone()[0]
    connection.execute(f"PRAGMA cache_size = -{_KIB}")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA cache_size = {usual}")
