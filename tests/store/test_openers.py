"""A lace that was closed opens again, whatever went wrong meanwhile; a copy without its log is still noticed."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import pytest

import lace
from lace.errors import StoreDamaged, StoreError
from lace.limits import StoreLimits
from lace.store import open_store
from lace.store.browsing import Browser
from lace.store.columns.file import openers
from lace.store.columns.file.openers import is_store_file
from store.samples import assortment, plex

IMPATIENT = StoreLimits(busy_timeout_ms=20)
TESTS = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(lace.__path__[0]).parent), str(TESTS)])}

KILLED = """
import os, sys
from lace.store import open_store
from lace.store.browsing import Browser
from store.samples import plex
store = open_store(sys.argv[1], create=True)
for number in range(3):
    store.put([plex(f"killed/{number}")])
os._exit(9)
"""


def names_in(path: Path) -> list[str]:
    """The names in a file as it lies there, without its log."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    try:
        return [row[0] for row in connection.execute("SELECT id FROM openers")]
    finally:
        connection.close()


def has_log(path: Path) -> bool:
    log = openers.log_path(path)
    return log.exists() and log.stat().st_size > 0


def kill_a_writer(path: Path) -> None:
    words = [sys.executable, "-c", KILLED, str(path)]
    assert subprocess.run(words, env=ENVIRONMENT, check=False, timeout=60).returncode == 9
    assert has_log(path)
    assert names_in(path)


def require_at_rest(path: Path, *hashes: str) -> None:
    """It opens, nothing is lost, and once it is closed a plain copy of it is whole."""
    with open_store(path) as store:
        assert [text for text in hashes if not store.have(lace.RecordHash(text))] == []
        assert store.check_integrity() == []
    assert names_in(path) == []
    assert not has_log(path)
    copied = path.with_name("at-rest.lace")
    shutil.copy(path, copied)
    with open_store(copied) as store:
        assert [text for text in hashes if not store.have(lace.RecordHash(text))] == []


@contextmanager
def no_place_for_more(path: Path) -> Iterator[None]:
    """Another program holds the only place for a writer."""
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        holder.rollback()
        holder.close()


def test_who_closes_while_another_writes_leaves_no_name_when_that_one_has_closed(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    long, short = open_store(path, create=True), open_store(path, limits=IMPATIENT)
    short.put([plex("short")])
    with long.together():
        long.put([plex("long")])
        short.close()
    long.close()
    assert names_in(path) == []
    require_at_rest(path, plex("short").hash, plex("long").hash)


@pytest.mark.long
def test_many_open_put_and_close_beside_an_import(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    importing = open_store(path, create=True)
    over = threading.Event()
    stored: list[str] = []

    def open_put_close(worker: int) -> None:
        number = 0
        while not over.is_set() or not number:
            with open_store(path, limits=IMPATIENT) as store:
                number += 1
                with suppress(StoreError):  # another one writes
                    stored.extend(one.hash for one in store.put([plex(f"w/{worker}/{number}")]))

    workers = [threading.Thread(target=open_put_close, args=(worker,)) for worker in range(4)]
    for worker in workers:
        worker.start()
    for batch in range(6):
        records = [plex(f"i/{batch}/{number}", data=bytes(100)) for number in range(1000)]
        stored.extend(one.hash for one in importing.put(records))
    over.set()
    importing.close()
    for worker in workers:
        worker.join()
    require_at_rest(path, *stored)


def open_files(path: Path) -> int:
    links = []
    for entry in os.listdir("/proc/self/fd"):
        try:
            links.append(os.readlink(f"/proc/self/fd/{entry}"))
        except OSError:
            continue
    return links.count(str(path))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="WHAT STAYS OPEN WAS NOT COUNTED: no /proc")
def test_names_that_cannot_be_taken_out_keep_the_log_and_not_one_connection_each(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    open_at_most = set()
    hashes: list[str] = []
    for turn in range(4):
        stores = [open_store(path, limits=IMPATIENT) for _ in range(3)]
        hashes += [store.put([plex(f"n/{turn}/{at}")])[0].hash for at, store in enumerate(stores)]
        with no_place_for_more(path):
            for store in stores:
                store.close()
        open_at_most.add(open_files(path))
        assert has_log(path)
        assert names_in(path)
    assert max(open_at_most) < 8  # of 12: SQLite keeps descriptors for the next ones as long as one is in use
    require_at_rest(path, *hashes)
    assert open_files(path) == 0


STRANDED = """
import sqlite3, sys
from lace.limits import StoreLimits
from lace.store import open_store
from lace.store.browsing import Browser
from store.samples import plex
store = open_store(sys.argv[1], create=True, limits=StoreLimits(busy_timeout_ms=20))
store.put([plex("stranded")])
holder = sqlite3.connect(sys.argv[1], isolation_level=None)
holder.execute("BEGIN IMMEDIATE")
store.close()
holder.rollback()
holder.close()
"""


def test_the_end_of_the_interpreter_keeps_a_log_whose_names_are_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    subprocess.run([sys.executable, "-c", STRANDED, str(path)], env=ENVIRONMENT, check=True, timeout=60)
    assert names_in(path)
    assert has_log(path)
    require_at_rest(path, plex("stranded").hash)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_killed_writer_s_lace_opens_by_a_link_to_it(tmp_path: Path, read_only: bool) -> None:
    """SQLite keeps the log beside the file, not beside the link."""
    path, link = tmp_path / "real" / "a.lace", tmp_path / "link.lace"
    path.parent.mkdir()
    link.symlink_to(path)
    kill_a_writer(path)
    with open_store(link, read_only=read_only) as store:
        assert store.have(plex("killed/2").hash)
    require_at_rest(path, plex("killed/2").hash)


def test_a_killed_writer_s_lace_opens_after_another_program_folded_its_log_in(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    kill_a_writer(path)
    shell = sqlite3.connect(path)
    shell.execute("SELECT count(*) FROM records").fetchone()
    shell.close()
    assert not has_log(path)
    assert names_in(path)
    require_at_rest(path, plex("killed/2").hash)


def test_a_lace_that_an_earlier_version_left_a_name_in_opens(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        store.put(assortment())
    machine, file, *_ = openers.place_of(path).split(" ")
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO openers VALUES ('x', ?, 99999999, '123')", (f"{machine} {file}",))
    connection.close()
    require_at_rest(path, *(record.hash for record in assortment()))


def test_a_log_that_was_deleted_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    kill_a_writer(path)
    Path(f"{path}-wal").unlink()
    for read_only in (True, False):
        with pytest.raises(StoreDamaged, match="was deleted while it held writes"):
            open_store(path, read_only=read_only)


def test_a_file_that_was_moved_away_from_its_log_misses_it(tmp_path: Path) -> None:
    path, moved = tmp_path / "a.lace", tmp_path / "elsewhere.lace"
    kill_a_writer(path)
    path.rename(moved)
    for read_only in (True, False, True):
        with pytest.raises(StoreDamaged, match="copied or moved while its lace was in use"):
            open_store(moved, read_only=read_only)
    moved.rename(path)
    require_at_rest(path, plex("killed/2").hash)


def test_a_copy_that_is_refused_stays_refused(tmp_path: Path) -> None:
    path, copied = tmp_path / "a.lace", tmp_path / "b.lace"
    kill_a_writer(path)
    shutil.copy(path, copied)
    for read_only in (False, True, False):
        with pytest.raises(StoreDamaged, match="lace backup"):
            open_store(copied, read_only=read_only)


def test_a_name_reaches_the_file_as_soon_as_readers_let_it(tmp_path: Path) -> None:
    """A reader of an earlier moment keeps the log from being copied; the next write tries again."""
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        store.put([plex("first")])
    with open_store(path) as other:
        other.put([plex("second")])
        name = names_in(path)
        with open_store(path, read_only=True) as reader, open_store(path) as store:
            with reader.file.reading():
                reader.stat()
                store.put([plex("third")])
                assert names_in(path) == name
            store.put([plex("fourth")])
            assert len(names_in(path)) == 2


IS_LOCKED = """
import fcntl, sys
with open(sys.argv[1], "rb+") as index:
    try:
        fcntl.lockf(index, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 128)  # how SQLite sees that others are there
    except BlockingIOError:
        sys.exit(0)
sys.exit("nobody has the index of the log: the next program would cut it off under whoever reads it")
"""


@pytest.mark.parametrize("second", [lace.open, Browser], ids=["a lace", "a browser"])
def test_a_second_handle_of_a_process_does_not_end_the_locks_of_the_first(
    second: Callable[[Path], AbstractContextManager[object]], tmp_path: Path
) -> None:
    path = tmp_path / "a.lace"
    lace.open(path, create=True).close()
    for first in (lace.open, Browser):
        with first(path) as held:
            assert list(held.list("//") if isinstance(held, lace.Lace) else held.spaces(limit=9)) == []
            for _ in range(2):
                with second(path):
                    pass
                assert is_store_file(path)
                subprocess.run([sys.executable, "-c", IS_LOCKED, f"{path}-shm"], check=True, timeout=60)


@pytest.mark.parametrize("opened", [lace.open, Browser], ids=["a lace", "a browser"])
def test_who_cannot_open_a_file_has_it_open_no_longer(opened: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    lace.open(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM state")
        connection.commit()
    with pytest.raises(StoreError):
        opened(path)
    assert not openers.is_open_here(path)
