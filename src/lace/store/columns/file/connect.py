"""Opening store files, and SQLite's errors as ours.

Rule: every error of SQLite leaves this package as a StoreError that says what to do about it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from lace.errors import NotFound, StoreDamaged, StoreError, StoreFull
from lace.limits import StoreLimits
from lace.store.columns.file import openers
from lace.store.columns.file.openers import LogSign
from lace.store.columns.tables import schema

_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR")  # the second also where the log or its index cannot grow
_KEPT = "nothing of this write was kept, everything acknowledged before is safe"
_MEANINGS = {
    "SQLITE_FULL": f"the disk is full: {_KEPT}",
    "SQLITE_BUSY": f"another process is writing to the store: {_KEPT}",
    "SQLITE_READONLY": "the store is read-only",
    "SQLITE_CANTOPEN": "the file cannot be opened",
    "SQLITE_NOTADB": "the file is not a lace store, or its beginning is damaged: `lace repair` looks for records in it",
    "SQLITE_CORRUPT": "the store file is damaged: `lace repair` saves all that can be read",
    "SQLITE_IOERR": f"the disk refused (full, over quota, or failing): {_KEPT}",
    "SQLITE_PERM": "the file's permissions forbid it",
}


@contextmanager
def store_errors(path: str) -> Iterator[None]:
    """SQLite's errors inside as StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        raise as_ours(error, path) from error
    except UnicodeDecodeError as error:  # SQLite complains, and quotes the bytes it found
        raise StoreDamaged(f"{path}: {_MEANINGS['SQLITE_CORRUPT']} ({error})") from error


def as_ours(error: sqlite3.Error, path: str) -> StoreError:
    """What an error of SQLite means to us."""
    # A text that cannot be decoded was written as a blob, or was damaged later.
    is_damage = _primary(error) in ("SQLITE_CORRUPT", "SQLITE_NOTADB") or "decode" in str(error)
    kind = StoreDamaged if is_damage else StoreFull if _primary(error) in _NO_ROOM else StoreError
    return kind(f"{path}: {_meaning(error)}")


def _meaning(error: sqlite3.Error) -> str:
    meaning = _MEANINGS.get(_primary(error))
    return f"{meaning} ({error})" if meaning else str(error)


def _primary(error: sqlite3.Error) -> str:
    """The name of SQLite's error without its refinement."""
    return "_".join(getattr(error, "sqlite_errorname", "").split("_")[:2])


class OldSchema(StoreError):
    """The store was made by an earlier version and is read as it is."""


def connect(
    path: Path, *, create: bool, read_only: bool, limits: StoreLimits, log: LogSign | None = None
) -> sqlite3.Connection:
    """A connection to a store file with the present schema; `log` is what lies beside it, if somebody has looked."""
    if not path.exists() and (read_only or not create):
        raise NotFound(f"{path}: there is no store")
    if path.is_dir():
        raise StoreError(f"{path}: the file is not a lace store (it is a directory)")
    try:
        return _connect(path, create, read_only, limits, log or openers.log_beside(path))
    except OldSchema:
        # A lace of an earlier version, opened for reading: somebody who may write has to bring it up to date first.
        if not os.access(path, os.W_OK):
            raise
        log = log or openers.log_beside(path)
        openers.close_unused(_connect(path, False, False, limits, log), path, log)
        return _connect(path, False, True, limits, log)


def _connect(path: Path, create: bool, read_only: bool, limits: StoreLimits, log: LogSign) -> sqlite3.Connection:
    with store_errors(str(path)):
        connection = _open(path, read_only, limits)
        try:
            _prepare(connection, create, read_only, limits)
        except BaseException as error:
            if read_only:
                connection.close()
            else:
                openers.close_unused(connection, path, log)
            if isinstance(error, StoreError):
                raise type(error)(f"{path}: {error}") from None
            raise
    return connection


def _open(path: Path, read_only: bool, limits: StoreLimits) -> sqlite3.Connection:
    if not read_only and not path.exists():
        # For its owner only; SQLite gives the log beside it the same permissions.
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise StoreError(f"{path}: the file cannot be opened: {error.strerror}") from None
    mode = "ro" if read_only else "rwc"
    options = f"mode={mode}"
    if read_only and not os.access(path.parent, os.W_OK) and not Path(f"{path}-wal").exists():
        options += "&immutable=1"  # SQLite cannot put its shared memory beside the file, and nobody writes
    return sqlite3.connect(
        f"file:{quote(str(path))}?{options}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=limits.busy_timeout_ms / 1000,
    )


def _prepare(connection: sqlite3.Connection, create: bool, read_only: bool, limits: StoreLimits) -> None:
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("BEGIN")  # one moment: another process may be bringing the file up to date
    try:
        blank = schema.is_blank(connection)
        if blank and not create:
            raise StoreError("the file is not a lace store (it is empty)")
        version = 0 if blank else schema.version_of(connection)
        if not blank:
            schema.require_ours(connection, version)
    finally:
        connection.rollback()
    if read_only and version < len(schema.MIGRATIONS):
        raise OldSchema(
            f"the store has the old schema {version}, and without write access it cannot be brought up to date"
        )
    if not read_only:
        if blank:
            connection.execute(f"PRAGMA page_size = {schema.PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # commit, then acknowledge
        connection.execute(f"PRAGMA wal_autocheckpoint = {limits.checkpoint_bytes // schema.PAGE_BYTES}")
        connection.execute(f"PRAGMA journal_size_limit = {limits.small_checkpoint_bytes}")
        if version < len(schema.MIGRATIONS):
            schema.migrate(connection)
    connection.execute(f"PRAGMA cache_size = -{limits.page_cache_bytes // 1024}")
