"""Copies of a store file that are whole, and a file without what was deleted.

Rule: a copy shows one moment, even if others write meanwhile, and takes its name only when it is finished. Compacting
prepares a second file beside the writers, catches up with them, and holds them up only while its pages are copied over.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from lace.errors import StoreError
from lace.limits import StoreLimits
from lace.notation.identifiers import RecordHash
from lace.records.validate import reread
from lace.store.columns.file.connect import connect, store_errors
from lace.store.columns.repair.placing import put_in_place, real, upkeep
from lace.store.columns.repair.rebuild import SCRATCH, Kept, adopt_all, expire_cursors, new_generation, rebuild
from lace.store.columns.segments.segment import as_codes
from lace.store.columns.store import SQLiteStore
from lace.store.columns.tables import state
from lace.thresholds import StoreThresholds

PAGES_PER_STEP = 1024
SWAPPED_PAGES = 8  # in the first step: fewer than the emptiest store has, so that there is a second one
CATCH_UPS = 8  # rounds beside the writers; what is missing then comes while they wait
PATIENCE = 6  # times the busy timeout, until the writers let us in
_CHECKPOINT_PAUSE_S = 0.01
Progress = Callable[[int, int], None]  # pages done, of so many
COPIED = ("settings", "openers")  # what is taken over as it stands


def backup(path: Path, target: Path, progress: Progress = lambda done, of: None, *, replace: bool = False) -> int:
    """A whole copy of a store that may be in use; its size in bytes."""
    target = real(target)
    if target.exists() and target.samefile(path):
        raise StoreError(f"{target} is the lace itself; nothing was changed")
    with upkeep(target, "backup") as part:
        _copy(path, part, progress)
        size = part.stat().st_size
        put_in_place(part, target, replace=replace)
    return size


def restore(
    backup_path: Path, path: Path, progress: Progress = lambda done, of: None, *, forgotten: Collection[str] = ()
) -> tuple[int, int]:
    """A store from a backup; cursors of followers expire, for it may have gone further before.

    Returns how many records it has, and how many of the backup's are left out because they were forgotten since.
    """
    path = real(path)
    with upkeep(path, "restore") as part:
        with SQLiteStore(backup_path, create=False, read_only=True) as source:
            if source.present([RecordHash(record) for record in forgotten]):
                found = _remake(source, part, progress, forgotten)
                put_in_place(part, path, replace=False)
                return found
        _copy(backup_path, part, progress)
        with SQLiteStore(part, create=False, read_only=False, limits=SCRATCH, is_scratch=True) as store:
            expire_cursors(store, 0)
            count = store.stat().records
        put_in_place(part, path, replace=False)
    return count, 0


def _remake(source: SQLiteStore, part: Path, progress: Progress, forgotten: Collection[str]) -> tuple[int, int]:
    """A store record by record, so that no page of what is left out is copied."""
    with source.file.reading() as connection:  # one moment
        total = source.stat().records
        settings = connection.execute("SELECT namespace, key, value FROM settings").fetchall()

        def records() -> Iterator[Kept]:
            for done, (number, body) in enumerate(source.bodies_since(), 1):
                progress(done, total)
                yield number, reread(body)

        before = source.file.state()
        return rebuild(part, records(), settings, before, forgotten=forgotten, is_searched=source.is_searched)


def _copy(source_path: Path, part: Path, progress: Progress) -> None:
    with SQLiteStore(source_path, create=False, read_only=True), store_errors(str(source_path)):
        source = connect(source_path, create=False, read_only=True, limits=StoreLimits())
        target = sqlite3.connect(part, isolation_level=None)
        try:
            source.execute("BEGIN")
            state.read(source)  # from here on it is one moment, whatever others write
            source.backup(target, pages=PAGES_PER_STEP, progress=lambda _, left, of: progress(of - left, of))
            target.execute("DELETE FROM openers")
        finally:
            target.close()
            source.close()


def compact(
    path: Path, progress: Callable[[int], None] = lambda _: None, *, thresholds: StoreThresholds | None = None
) -> tuple[int, int]:
    """Rewrite a store without what was deleted from it, its names and values included; bytes before and after.

    Others may read and write meanwhile; they must open it again afterwards. It needs room for two more copies.
    """
    path = real(path)
    with upkeep(path, "compact") as part, SQLiteStore(path, create=False, read_only=False) as store:
        size = store.stat().file_bytes
        store.file.reserve.release()  # kept again when the store is closed
        with SQLiteStore(part, create=True, read_only=False, limits=SCRATCH, is_scratch=True) as fresh:
            Compaction(store, fresh, progress, (thresholds or StoreThresholds()).caught_up_records).run()
    return size, path.stat().st_size


class Compaction:
    """A store, and a fresh one that follows it until it takes its place."""

    def __init__(
        self, store: SQLiteStore, fresh: SQLiteStore, progress: Callable[[int], None], caught_up_records: int
    ) -> None:
        self._caught_up_records = caught_up_records
        self._store = store
        self._fresh = fresh
        self._progress = progress
        self._reached = 0  # the last record that was taken over
        self._removal = 0  # the last removal that was looked at
        self._is_prepared = False
        self._deadline = 0.0

    def run(self) -> None:
        if self._store.is_searched:
            self._fresh.index_words(lambda _: None)
        self._removal = self._store.file.state().last_removal
        self._follow()
        for _ in range(CATCH_UPS):
            if self._store.file.state().last_record - self._reached <= self._caught_up_records:
                break
            self._follow()
        self._swap()

    def _follow(self) -> None:
        """Take over what came since, and let go of what went."""
        now = self._store.file.state()
        adopt_all(self._fresh, self._new())
        if now.last_removal != self._removal:
            gone = _ids(self._fresh) - _ids(self._store)
            self._fresh.delete(*_hashes(self._fresh, gone))
            self._removal = now.last_removal

    def _new(self) -> Iterator[Kept]:
        for number, body in self._store.bodies_since(self._reached):  # type: ignore[arg-type]  # ids are numbers
            self._progress(1)
            yield number, reread(body)
            self._reached = number

    def _swap(self) -> None:
        """Copy the pages of the fresh file over those of the store in one transaction, then give back the room."""
        file = self._store.file
        with file.errors():
            file.register()
            target = connect(file.path, create=False, read_only=False, limits=file.limits)
            try:
                self._deadline = time.monotonic() + PATIENCE * file.limits.busy_timeout_ms / 1000
                self._fresh.file.connection.backup(target, pages=SWAPPED_PAGES, progress=self._step)
                # The log has the new pages until it is copied, and the file the old ones.
                while True:
                    (is_busy, *_) = target.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                    if not is_busy or time.monotonic() > self._deadline:
                        break
                    time.sleep(_CHECKPOINT_PAUSE_S)  # another one's checkpoint is told at once, without the busy time
            finally:
                target.close()
        if is_busy:
            raise StoreError(
                f"{file.path}: it was rewritten, but another program is reading it: what was removed stays in the"
                " file until that one closes it; compact it again then"
            )

    def _step(self, status: int, left: int, of: int) -> None:
        """After each step. From the first that went well on nobody else can write; what was copied is renewed."""
        if self._is_prepared:
            return
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            self._progress(0)  # whoever waits with us may stop us
            if time.monotonic() > self._deadline:
                raise StoreError(f"{self._store.path}: others write without a pause: nothing was changed, try again")
            return
        if status == sqlite3.SQLITE_DONE:
            raise StoreError(f"{self._store.path}: it was copied before it was compared: nothing was changed")
        self._finish()
        self._is_prepared = True

    def _finish(self) -> None:
        store, fresh = self._store, self._fresh
        with store.file.reading() as source, fresh.file.writing() as target:
            before = state.read(source)
            self._follow()
            if _count(source) != _count(target) or before.stored_bytes != state.read(target).stored_bytes:
                raise StoreError(f"{store.path}: the copy does not have its records: nothing was changed")
            for table in COPIED:
                target.execute(f"DELETE FROM {table}")
                rows = source.execute(f"SELECT * FROM {table}")
                marks = ", ".join("?" * len(rows.description))
                target.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            # Our name goes with the swap: after it the log is empty, and a full disk would not let it be taken out.
            store.file.leave(target)
            expire_cursors(fresh, before.last_removal)
            now = state.read(target)
            last = max(now.last_record, before.last_record)
            state.save(target, now._replace(last_record=last, generation=new_generation(before)))


def _ids(store: SQLiteStore) -> set[int]:
    with store.file.reading() as connection:
        return {row[0] for row in connection.execute("SELECT id FROM records")}


def _hashes(store: SQLiteStore, ids: set[int]) -> list[RecordHash]:
    with store.file.reading() as connection:
        find = "SELECT code FROM records WHERE id = ?"
        codes = as_codes([connection.execute(find, (one,)).fetchone()[0] for one in sorted(ids)])
        return [RecordHash(text) for text in store.texts(codes)]


def _count(connection: sqlite3.Connection) -> tuple[int, int]:
    """How many records there are, and which, as far as one number tells."""
    count, ids = connection.execute("SELECT count(*), coalesce(sum(id), 0) FROM records").fetchone()
    return int(count), int(ids)
