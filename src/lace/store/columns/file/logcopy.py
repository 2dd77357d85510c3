"""The write-ahead log, copied into the file beside the writes of a bulk import.

Rule: it only saves time. SQLite still copies the log by itself when it is `checkpoint_bytes` long, which is also what
begins it anew; by then little is left to copy, and the writer, for whom everybody waits, waits for the disk no longer.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from threading import Thread, current_thread
from urllib.parse import quote

from lace.limits import StoreLimits
from lace.store.columns.file.openers import log_path


class LogCopier:
    """Copies the log of one open store, a piece at a time; its caller takes turns."""

    def __init__(self, path: Path, limits: StoreLimits) -> None:
        self._path = path
        self._step = limits.copied_log_bytes
        self._longest = limits.checkpoint_bytes  # from there on SQLite does it
        self._seen = 0  # how long the log was when the last copy began
        self._copying: Thread | None = None

    def after_write(self) -> None:
        """Begin a copy if the last one is done and enough has come since it began."""
        if self._copying is not None and self._copying.is_alive():
            return
        try:
            size = log_path(self._path).stat().st_size
        except OSError:
            return
        if size < self._seen:  # it was begun anew
            self._seen = 0
        if self._step <= size - self._seen and size < self._longest:
            self._seen = size
            self._copying = Thread(target=_copy, args=(self._path,), name="lace-log")
            self._copying.start()

    def finish(self) -> None:
        """Wait until nothing is being copied: the connection of a copy must not be the last one of its store."""
        if self._copying is not None and self._copying is not current_thread():  # where a store is let go of
            self._copying.join()


def _copy(path: Path) -> None:
    """What is in the log now, by a connection of its own; writers and readers go on meanwhile."""
    with (
        suppress(sqlite3.Error, OSError),  # of a full disk the writer hears, and the log still has everything
        closing(sqlite3.connect(f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None, timeout=0)) as own,
    ):
        own.execute("PRAGMA synchronous = FULL")
        own.execute("SELECT generation FROM state").fetchone()  # opens the log
        own.execute("PRAGMA wal_checkpoint(PASSIVE)")
