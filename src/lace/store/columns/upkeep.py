"""Copies of a store file that are whole, and a file without what was deleted.

Rule: a copy shows one moment, even if others write meanwhile, and takes its name only when it is finished.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from lace.errors import StoreError
from lace.limits import StoreLimits
from lace.records.validate import reread
from lace.store.columns import state
from lace.store.columns.connect import connect, store_errors
from lace.store.columns.rebuild import SCRATCH, Kept, expire_cursors, rebuild
from lace.store.columns.state import StoreState
from lace.store.columns.store import SQLiteStore
from lace.store.search import SearchIndex

PAGES_PER_STEP = 1024
Progress = Callable[[int, int], None]  # pages done, of so many
REPLACED = (
    "records", "symbol_blocks", "symbol_index", "symbol_runs", "symbol_pages", "segments", "tombstones", "removals",
    "spaces", "coordinates", "state",
)  # fmt: skip


def backup(path: Path, target: Path, progress: Progress = lambda done, of: None) -> int:
    """A whole copy of a store that may be in use; its size in bytes."""
    part = target.with_name(f".{target.name}.part")
    _copy(path, part, progress)
    os.replace(part, target)
    return target.stat().st_size


def restore(backup_path: Path, path: Path, progress: Progress = lambda done, of: None) -> int:
    """A store from a backup; cursors of followers expire, for it may have gone further before. How many records."""
    part = path.with_name(f".{path.name}.part")
    _copy(backup_path, part, progress)
    with SQLiteStore(part, create=False, read_only=False, limits=SCRATCH) as store:
        expire_cursors(store, 0)
        count = store.stat().records
    os.replace(part, path)
    return count


def _copy(source_path: Path, part: Path, progress: Progress) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{part}{suffix}").unlink(missing_ok=True)
    os.close(os.open(part, os.O_CREAT | os.O_RDWR, 0o600))
    with SQLiteStore(source_path, create=False, read_only=True), store_errors(str(source_path)):
        source = connect(source_path, create=False, read_only=True, limits=StoreLimits())
        target = sqlite3.connect(part, isolation_level=None)
        try:
            source.execute("BEGIN")
            state.read(source)  # from here on it is one moment, whatever others write
            source.backup(target, pages=PAGES_PER_STEP, progress=lambda _, left, of: progress(of - left, of))
            target.execute("DELETE FROM openers")
        except BaseException:
            target.close()
            part.unlink(missing_ok=True)
            raise
        finally:
            source.close()
        target.close()


def compact(path: Path, progress: Callable[[int], None] = lambda _: None) -> tuple[int, int]:
    """Write a store anew without what was deleted from it, its names and values included; bytes before and after.

    Programs that have it open must open it again. It needs room for a second copy while it works.
    """
    part = path.with_name(f".{path.name}.compact")
    _remove(part)
    with SQLiteStore(path, create=False, read_only=False) as store:
        size = store.stat().file_bytes
        before = store._file.state()
        store._file.reserve.release()  # kept again when the store is closed
        try:
            rebuild(part, _records(store, progress), (), before)
            _replace(store, part, before)
        finally:
            _remove(part)
    return size, path.stat().st_size


def _records(store: SQLiteStore, progress: Callable[[int], None]) -> Iterator[Kept]:
    for number, body in store.bodies_since():
        progress(1)
        yield number, reread(body)


def _replace(store: SQLiteStore, part: Path, before: StoreState) -> None:
    """Take over the tables of another file in one transaction, then give back the room."""
    connection = store._file.connection
    searched = store.is_searched
    with store._file.errors():
        connection.execute("ATTACH DATABASE ? AS fresh", (str(part),))
        try:
            with store._file.writing():
                if store._file.state() != before:
                    raise StoreError(f"{store.path}: somebody wrote to it meanwhile: nothing was changed, try again")
                for table in REPLACED:
                    connection.execute(f"DELETE FROM main.{table}")
                    connection.execute(f"INSERT INTO main.{table} SELECT * FROM fresh.{table}")
                if searched:  # an index of words keeps traces of what was taken out of it
                    SearchIndex(connection).create(lambda _: None)
        finally:
            connection.execute("DETACH DATABASE fresh")
        connection.execute("VACUUM")
        # The log has the new pages until it is copied, and the file the old ones.
        (is_busy, *_) = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if is_busy:
            raise StoreError(
                f"{store.path}: it was written anew, but another program is reading it: what was removed stays in the"
                " file until that one closes it; compact it again then"
            )


def _remove(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
