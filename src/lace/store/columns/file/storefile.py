"""A store file that is open: its connection, its lock, its transactions and its write-ahead log.

Rule: every write is one IMMEDIATE transaction that moves `state`; every read of more than one row is one transaction
or is paged by id. Any number of processes read while one writes.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import TypeVar
from weakref import finalize

from lace.errors import StoreError, StoreFull, StoreReplaced
from lace.limits import StoreLimits
from lace.store.columns.file import openers
from lace.store.columns.file.connect import connect, store_errors
from lace.store.columns.file.reserve import Reserve
from lace.store.columns.tables import state
from lace.store.columns.tables.state import StoreState

T = TypeVar("T")


class StoreFile:
    """One connection, which threads share by taking turns."""

    def __init__(
        self, path: Path, *, create: bool, read_only: bool, limits: StoreLimits, is_scratch: bool = False
    ) -> None:
        self.path = path
        self._is_scratch = is_scratch  # nobody else knows of it, and it gets its name only when it is closed
        self.limits = limits
        self._lock = RLock()
        self._closed = False
        self.names: list[str] = []  # ours in the file, once we have written
        self._is_in_file = False  # whether it has reached the main file
        self._read_only = read_only
        self._place = os.path.abspath(path)
        log = openers.log_beside(path)
        openers.require_log(path, log)
        self.reserve: Reserve = Reserve(path, limits)
        self._identity = identity_of(self._place)
        openers.note_open(self._identity)
        try:
            self.connection: sqlite3.Connection = self.with_reserve(
                lambda: connect(path, create=create, read_only=read_only, limits=limits, log=log)
            )
        except BaseException:
            openers.note_closed(self._identity)
            raise
        self.forget: Callable[[], None] = lambda: None  # drops what is cached of the file
        now = identity_of(self._place)
        if self._identity is None and create:  # it was made just now
            self._identity = now
            openers.note_open(now)
        try:
            with self.errors():
                if now != self._identity:
                    raise StoreReplaced(f"{path}: another file took its place while it was opened: open it again")
                openers.require_whole(self.connection, path, log)
                self.secret: bytes = state.secret(self.connection)
                self._generation = state.read(self.connection).generation
        except BaseException:
            if read_only:
                self.connection.close()
            else:
                openers.close_unused(self.connection, path, log)
            openers.note_closed(self._identity)
            raise
        # Also when nobody calls `close`: SQLite ends the log with its connection, and a file without a log that still
        # has our name in it would be taken for a copy.
        own = (self.connection, path, self._identity, self.names, read_only, os.getpid())
        self._release = finalize(self, _release, *own)

    def with_reserve(self, work: Callable[[], T]) -> T:
        """Work that may take what is kept for a full disk: opening, and what makes room."""
        try:
            return work()
        except StoreFull:
            if not self.reserve.release():
                raise
            return work()

    def _require_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.path}: the store is closed")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        self._require_open()
        with store_errors(str(self.path)):
            yield

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One moment of the store."""
        with self._transaction("DEFERRED") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """All or nothing, durable when it ends."""
        with self._lock:
            self._require_open()
            self.register()
            with self._transaction("IMMEDIATE") as connection:
                yield connection

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        with self._lock, self.errors():
            if self.connection.in_transaction:  # a read inside our own transaction
                yield self.connection
                return
            self.connection.execute(f"BEGIN {kind}")
            try:
                self._require_same_file()
                yield self.connection
                self.connection.execute("COMMIT")
            except BaseException:
                self.forget()
                if self.connection.in_transaction:
                    self.connection.execute("ROLLBACK")
                raise

    def _require_same_file(self) -> None:
        """StoreReplaced if it is no longer what was opened: another file, or one whose codes have other meanings.

        What is written to a file that was moved or deleted would never be found.
        """
        if identity_of(self._place) != self._identity:
            raise StoreReplaced(f"{self.path}: the file was moved, deleted or replaced: open it again")
        now = self.connection.execute("SELECT generation FROM state").fetchone()
        if now != (self._generation,):
            raise StoreReplaced(f"{self.path}: the store was compacted or repaired meanwhile: open it again")

    def state(self) -> StoreState:
        """The counters of this moment."""
        return state.read(self.connection)

    def save(self, now: StoreState) -> None:
        """Move the counters."""
        state.save(self.connection, now)

    def register(self) -> None:
        """Before the first write: a copy of the file without its log must not look whole."""
        if self._is_in_file or self._read_only or self._is_scratch or self.connection.in_transaction:
            return
        with self.errors():
            if not self.names:
                self.names.append(openers.enter(self.connection, self.path))
                self.reserve.keep()
            self._is_in_file = openers.is_in_file(self.connection)

    def keep_log_short(self) -> None:
        """After small writes: a bulk import has its log copied when it is long, single puts much sooner."""
        with self._lock, self.errors(), suppress(FileNotFoundError):
            log = openers.log_path(self.path)
            if log.stat().st_size > self.limits.small_checkpoint_bytes and not self.connection.in_transaction:
                self.connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def file_bytes(self) -> int:
        """What the file and its log take on the disk."""
        files = (self.path, openers.log_path(self.path))
        return sum(os.stat(file).st_size for file in files if file.exists())

    def leave(self, copy: sqlite3.Connection) -> None:
        """Take the name of this store out of a copy that takes the place of the file; it writes nothing any more."""
        openers.strike(copy, self.names)

    def close(self) -> None:
        """Release the file; what was committed stays."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._release()
            if self.names:
                self.reserve.keep()  # if it was given up, or the store has grown


def identity_of(place: str) -> tuple[int, int] | None:
    """Which file is at a path; None if there is none."""
    try:
        status = os.stat(place)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _release(
    connection: sqlite3.Connection,
    path: Path,
    identity: tuple[int, int] | None,
    names: list[str],
    read_only: bool,
    pid: int,
) -> None:
    if os.getpid() != pid:  # a child of the process that opened it: the file is not the child's to close
        return
    try:
        if read_only:  # such a connection cannot delete the log
            connection.close()
        else:
            openers.release(connection, path, names)
    finally:
        openers.note_closed(identity)  # not before: until it is closed it has locks
