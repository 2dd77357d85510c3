"""Kill -9, full disks, read-only files, other processes and files that are no stores."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

import lace
from lace.datalog.language.syntax import Fact
from lace.errors import NotFound, StoreDamaged, StoreError
from lace.facts.derive import derive_facts
from lace.facts.predicates import HAVE, RECORD_PREDICATES
from lace.limits import StoreLimits
from lace.notation.identifiers import RecordHash
from lace.records.validate import validate
from lace.store import SQLiteStore, open_store
from lace.store.columns.tables import schema
from store.samples import assortment, blob, plex
from store.test_integrity import old_store

TESTS = Path(__file__).parent.parent
PROGRAM = str(Path(__file__).parent / "processes.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(lace.__path__[0]).parent), str(TESTS)])}


def start(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


def told(*arguments: object) -> list[str]:
    command = [sys.executable, PROGRAM, *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=True)
    return list(run.stdout.splitlines())


def require_whole(store: SQLiteStore, acknowledged: list[str]) -> None:
    assert [text for text in acknowledged if not store.have(RecordHash(text))] == []
    assert store.check_integrity() == []
    snapshot = store.snapshot()
    facts = Counter(Fact(predicate, row) for predicate in RECORD_PREDICATES for row in snapshot.iterate(predicate))
    bodies = [validate(body) for _, body in store.bodies_since()]
    assert facts == Counter(fact for record in bodies for fact in derive_facts(record))


@pytest.mark.long
@pytest.mark.parametrize("batch", [1, 40])
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path, batch: int) -> None:
    path = tmp_path / "a.lace"
    acknowledged: list[str] = []
    chance = random.Random(batch)
    for attempt in range(3):
        with start("write", path, attempt * 100_000, batch) as writer:
            assert writer.stdout is not None
            acknowledged.append(writer.stdout.readline().strip())
            time.sleep(chance.random() * 0.15)
            writer.kill()
            lines = writer.stdout.read().split("\n")
            acknowledged += lines[:-1]  # the last line may be cut
        with open_store(path) as store:
            require_whole(store, acknowledged)
    assert len(acknowledged) > 3


def test_a_commit_is_on_disk_before_it_is_acknowledged(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:  # what a process that is killed cannot show
        asked = {
            name: store.file.connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous")
        }
    assert asked == {"journal_mode": "wal", "synchronous": 2}


def test_a_full_disk_is_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    *acknowledged, error = told("limited", path, 700_000)
    assert error.startswith("error")
    assert "full" in error
    assert "is safe" in error
    assert len(acknowledged) > 10
    with open_store(path) as store:
        require_whole(store, acknowledged)
        assert store.put([plex("there is room again")])[0].new
        require_whole(store, acknowledged)


def test_a_store_at_its_page_limit_goes_on_after_the_error(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:
        store.put(assortment())
        pages = store.file.connection.execute("PRAGMA page_count").fetchone()[0]
        store.file.connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(StoreError, match="disk is full"):
            store.put([blob(bytes(100_000))])
        assert not store.have(blob(bytes(100_000)).hash)
        store.file.connection.execute("PRAGMA max_page_count = 1000000")
        assert store.put([blob(bytes(100_000))])[0].new
        require_whole(store, [record.hash for record in assortment()])


def test_a_second_writer_waits_then_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True, limits=StoreLimits(busy_timeout_ms=50)) as store:
        store.put(assortment()[:3])
        with start("hold", path) as holder:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "holding\n"
            with pytest.raises(StoreError, match="another process is writing"):
                store.put(assortment())
            assert store.have(assortment()[0].hash)  # reading goes on meanwhile
            assert store.snapshot().count(HAVE) == 3
            holder.communicate("")
        assert store.put(assortment())[-1].new


def test_readers_follow_a_writing_process(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    with open_store(path, read_only=True) as reader, start("write", path, 0, 5) as writer:
        assert writer.stdout is not None
        seen: set[str] = set()
        cursor = reader.cursor()
        for _ in range(12):
            acknowledged = writer.stdout.readline().strip()
            changes = reader.changes(cursor)
            assert changes is not None
            seen |= set(changes.added_records)
            seen -= set(changes.removed_records)
            cursor = changes.cursor
            assert acknowledged in seen
        writer.kill()
        writer.stdout.read()
        changes = reader.changes(cursor)
        assert changes is not None
        seen = (seen | set(changes.added_records)) - set(changes.removed_records)
        assert seen == {row[0] for row in reader.snapshot().iterate(HAVE)}


def test_two_writers_take_turns(tmp_path: Path) -> None:
    records = [plex(f"n/{number}", headers=(("K", str(number % 5)),)) for number in range(120)]
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as first, open_store(path) as second:
        for at in range(0, len(records), 6):
            first.put(records[at : at + 3])
            second.snapshot()
            second.put(records[at + 2 : at + 6])
            first.delete(records[at].hash)
        kept = [record.hash for at, record in enumerate(records) if at % 6]
        for store in (first, second):
            require_whole(store, [*kept])
            assert {row[0] for row in store.snapshot().iterate(HAVE)} == set(kept)


def test_threads_share_one_store(tmp_path: Path) -> None:
    records = [plex(f"n/{number}", data=bytes([number])) for number in range(60)]
    with open_store(tmp_path / "a.lace", create=True) as store, ThreadPoolExecutor(6) as threads:

        def put_and_read(at: int) -> int:
            store.put([records[at]])
            snapshot = store.snapshot()
            assert (records[at].hash,) in set(snapshot.iterate(HAVE))
            return snapshot.record_count

        counts = list(threads.map(put_and_read, range(len(records))))
        assert max(counts) == len(records)
        require_whole(store, [record.hash for record in records])


def test_a_store_opened_for_reading_takes_no_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        store.put(assortment())
    with open_store(path, read_only=True) as store:
        with pytest.raises(StoreError, match="read-only"):
            store.put([plex("more")])
        require_whole(store, [record.hash for record in assortment()])


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_file_without_write_permission_is_a_clear_error(open_folder: Path) -> None:
    path = open_folder / "a.lace"
    with open_store(path, create=True) as store:
        store.put(assortment())
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    open_folder.chmod(0o555)
    (line,) = told("put_one", path)
    assert line.startswith("error")
    assert "read-only" in line or "cannot be opened" in line
    with open_store(path, read_only=True) as store:
        require_whole(store, [record.hash for record in assortment()])


@pytest.mark.parametrize("content", [b"hello, this is not a database at all" * 40, b"\x00" * 5000, b"short"])
def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.lace"
    path.write_bytes(content)
    for options in ({}, {"create": True}, {"read_only": True}):
        with pytest.raises(StoreError, match="not a lace store"):
            open_store(path, **options)  # type: ignore[arg-type]
    assert path.read_bytes() == content


def test_another_programs_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE mine(x)")
    connection.close()
    for options in ({}, {"create": True}, {"read_only": True}):
        with pytest.raises(StoreError, match="not a lace store"):
            open_store(path, **options)  # type: ignore[arg-type]


def test_missing_empty_and_folder(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is no store"):
        open_store(tmp_path / "none.lace")
    (tmp_path / "empty.lace").touch()
    with pytest.raises(StoreError, match="empty"):
        open_store(tmp_path / "empty.lace")
    with pytest.raises(StoreError, match="directory"):
        open_store(tmp_path, create=True)
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(tmp_path / "no" / "such" / "folder.lace", create=True)


def test_a_newer_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        store.file.connection.execute(f"PRAGMA user_version = {len(schema.MIGRATIONS) + 1}")
    with pytest.raises(StoreError, match="newer program"):
        open_store(path)


def test_an_older_store_is_brought_up_to_date_by_whoever_may_write_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lace"
    old_store(path)
    with monkeypatch.context() as forbidden:
        forbidden.setattr(os, "access", lambda *_: False)  # the tests may run as a user who may write everything
        with pytest.raises(StoreError, match="old schema 1"):
            open_store(path, read_only=True)
    with open_store(path, read_only=True) as store:
        assert schema.version_of(store.file.connection) == len(schema.MIGRATIONS)
        require_whole(store, [record.hash for record in assortment()])
    open_store(path, read_only=True).close()


def test_a_migration_that_fails_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    old_store(path)
    before = everything_in(path)
    with closing(sqlite3.connect(path)) as connection:
        state = connection.execute("SELECT * FROM state").fetchall()
        connection.execute("DELETE FROM state")  # which sums cannot be written into
        connection.commit()
    with pytest.raises(StoreDamaged, match="a lace has one row of counters"):
        open_store(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(f"INSERT INTO state VALUES ({', '.join('?' * len(state[0]))})", state)
        connection.commit()
    assert everything_in(path) == before
    with open_store(path) as store:
        require_whole(store, [record.hash for record in assortment()])


def everything_in(path: Path) -> list[str]:
    """The file as statements, with its version."""
    with closing(sqlite3.connect(path)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()
        return [f"version {version[0]}", *connection.iterdump()]


DAMAGE = {
    "DELETE FROM records WHERE id = 3": "differ",
    "UPDATE records SET body = CAST(body || x'00' AS BLOB) WHERE id = 3": "counters",
    "DELETE FROM coordinates WHERE record = 4; UPDATE coordinates SET record = 4 WHERE record = 5": "coordinate",
    "UPDATE coordinates SET signer = 3 WHERE record = 4": "coordinate",
    "DELETE FROM symbol_index WHERE code = 7": "symbol index",
    "UPDATE symbol_index SET code = 8 WHERE code = 7": "under their codes",
    "UPDATE symbol_blocks SET texts = CAST(texts || char(10) || 'x' AS BLOB)": "block 0 of the dictionary",
    "DELETE FROM segments": "list of segments",
    "UPDATE segments SET columns = CAST(columns || x'00' AS BLOB)": "segment",
    "UPDATE state SET next_code = 5": "counters",
    "UPDATE removals SET seq = 7": "removals 7",
    "UPDATE settings SET value = x'00'": "settings one, key",
    "INSERT INTO tombstones SELECT id, code FROM records WHERE id = 2": "deleted records",
}


@pytest.mark.parametrize("statements", DAMAGE)
def test_the_integrity_check_finds_damage(tmp_path: Path, statements: str) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:
        store.put([*assortment(), plex("gone")])
        store.delete(plex("gone").hash)
        store.put_setting("one", "key", b"value")
        assert store.check_integrity() == []
        for statement in statements.split(";"):
            store.file.connection.execute(statement)
        store.file.forget()
        assert any(DAMAGE[statements] in problem for problem in store.check_integrity())


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_without_its_row_of_counters_is_damaged(tmp_path: Path, read_only: bool) -> None:
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM state")
        connection.commit()
    with pytest.raises(StoreDamaged, match="a lace has one row of counters, and this file has none"):
        open_store(path, read_only=read_only)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path / "a.lace", create=True)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.high_water()
