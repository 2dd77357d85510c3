"""What lies on the disk is not taken on trust: damage is refused where it is read, or told by the integrity check."""

from __future__ import annotations

import gc
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import lace
from lace.errors import StoreDamaged
from lace.records.model import ValidRecord
from lace.store import open_store
from lace.store.columns.file import openers
from lace.store.columns.tables import schema
from lace.store.columns.tables.checksum import checksum, plain_sum
from store.samples import assortment, plex

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.long
def test_no_flipped_bit_changes_an_answer_unnoticed() -> None:
    command = [sys.executable, str(ROOT / "tools" / "flips.py"), "--flips", "120", "--records", "60", "--seed", "11"]
    environment = {**os.environ, "PYTHONPATH": str(Path(lace.__path__[0]).parent)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "120 flips" in done.stdout
    assert "refused" in done.stdout  # some bits must hit something


def test_sums_taken_at_once_are_the_sums_taken_one_by_one() -> None:
    for parts in ((), (1,), ("é", None, -3), (7, "a\nb", "c", 0)):
        assert plain_sum(parts) == checksum(*parts) or not parts


def retractions() -> list[ValidRecord]:
    """Two records that an older program stores like any other."""
    links = [("Retract+Link", f"version {plex(str(number)).hash}") for number in range(2)]
    return [plex("withdrawn", data=b"", headers=headers) for headers in ([("Retract", "all")], links)]


def old_store(path: Path) -> None:
    """A store as the first schema had it, written by hand from one of today."""
    with open_store(path, create=True) as store:
        store.put([*assortment(), plex("gone"), *retractions()])
        store.delete(plex("gone").hash)
        store.put_setting("some", "key", b"value")
    with sqlite3.connect(path) as connection:
        connection.execute("DROP INDEX segments_in_order")
        for table in schema.SUMMED_FIRST:
            connection.execute(f"ALTER TABLE {table} DROP COLUMN sum")
        for column in ("segments", "segment_sums", "tombstones", "tombstone_sums", "generation", "sum"):
            connection.execute(f"ALTER TABLE state DROP COLUMN {column}")
        connection.execute("ALTER TABLE coordinates DROP COLUMN withdraws")
        for table in ("openers", "symbol_runs", "symbol_pages"):
            connection.execute(f"DROP TABLE {table}")
        connection.execute("CREATE UNIQUE INDEX segments_in_order ON segments(first_record, last_record, records)")
        connection.execute("PRAGMA user_version = 1")
    connection.close()


def test_a_store_without_checksums_gets_them_when_it_is_opened_for_writing(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    old_store(path)
    with open_store(path) as store:
        assert store.check_integrity() == []
        assert [store.get(record.hash) for record in assortment()] == [record.stored for record in assortment()]
        assert store.settings("some") == {"key": b"value"}
        assert [len(entry.withdraws) for entry in store.versions("u", "ding", "withdrawn")] in ([1, 2], [2, 1])
        store.put([plex("more")])
        store.delete(plex("more").hash, assortment()[3].hash)
        assert store.check_integrity() == []


def test_a_store_is_readable_by_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    before = os.umask(0)
    try:
        with open_store(path, create=True) as store:
            store.put(assortment())
            for file in tmp_path.iterdir():
                assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    finally:
        os.umask(before)


def test_a_plain_copy_of_a_lace_in_use_is_told_from_a_whole_one(tmp_path: Path) -> None:
    path, copied = tmp_path / "a.lace", tmp_path / "b.lace"
    with open_store(path, create=True) as store:
        store.put(assortment())
        shutil.copy(path, copied)
        for read_only in (True, False):
            with pytest.raises(StoreDamaged, match="lace backup"):
                open_store(copied, read_only=read_only)
        with open_store(path) as other:  # the file itself is fine meanwhile
            assert other.have(assortment()[0].hash)
    with pytest.raises(StoreDamaged, match="lace backup"):
        open_store(copied)
    shutil.copy(path, copied)  # nobody uses it now
    with open_store(copied) as store:
        assert store.check_integrity() == []
        assert store.have(assortment()[-1].hash)


def test_a_copy_with_its_log_is_whole(tmp_path: Path) -> None:
    path, copied = tmp_path / "a.lace", tmp_path / "b.lace"
    with open_store(path, create=True) as store:
        store.put(assortment())
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copied}{suffix}")
    for _ in range(2):  # the names of processes that are gone do not stay
        with open_store(copied) as store:
            assert [store.have(record.hash) for record in assortment()] == [True] * len(assortment())


def test_a_writer_that_was_killed_leaves_a_store_that_opens_and_closes(tmp_path: Path) -> None:
    program = "import os, sys; from lace.store import open_store; from store.samples import plex\n"
    program += "store = open_store(sys.argv[1], create=True); store.put([plex()]); os._exit(9)"
    paths = os.pathsep.join([str(Path(lace.__path__[0]).parent), str(ROOT / "tests")])
    path = tmp_path / "a.lace"
    done = subprocess.run(
        [sys.executable, "-c", program, str(path)], env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    assert done.returncode == 9
    for _ in range(3):
        with open_store(path) as store:
            assert store.have(plex().hash)
    open_store(path, read_only=True).close()


@pytest.mark.long
def test_many_single_puts_leave_a_short_log(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        for number in range(400):
            store.put([plex(f"n/{number}")])
        assert Path(f"{path}-wal").stat().st_size < 12 << 20


def test_a_wrong_body_under_a_hash_is_refused(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True) as store:
        store.put(assortment())
        first, second = assortment()[:2]
        store.file.connection.execute("UPDATE records SET body = (SELECT body FROM records WHERE id = 1) WHERE id = 2")
        assert store.get(first.hash) == first.stored
        with pytest.raises(StoreDamaged, match="index of records"):
            store.get(second.hash)


def test_a_writer_who_comes_while_a_reader_opens_is_no_sign_of_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log is looked for first; whoever opens the file for writing right then makes one."""
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    with open_store(path) as writer:
        writer.put(assortment())
        monkeypatch.setattr(
            openers, "log_beside", lambda _: openers.LogSign.ABSENT
        )  # as it was a moment before the writer came
        with open_store(path, read_only=True) as reader:
            assert reader.stat() == writer.stat()
        copied = tmp_path / "copy.lace"
        shutil.copy(path, copied)
        with pytest.raises(StoreDamaged, match="copied or moved while its lace was in use"):
            open_store(copied)


LEFT_OPEN = """
import sys
from lace.store import open_store
from store.samples import assortment
store = open_store(sys.argv[1], create=True)
store.put(assortment())
bodies = store.bodies_since()
next(bodies)  # a read that never comes to its end
"""


def run_script(script: str, path: Path) -> int:
    places = [str(Path(lace.__path__[0]).parent), str(ROOT / "tests")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run([sys.executable, "-c", script, str(path)], check=False, env=environment, timeout=60)
    return done.returncode


@pytest.mark.parametrize("ending", ["", "sys.exit(3)", "raise RuntimeError"])
def test_a_store_that_a_program_never_closed_opens_again(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "a.lace"
    run_script(LEFT_OPEN + ending, path)
    with open_store(path) as store:
        assert store.stat().records == len(assortment())
        assert store.check_integrity() == []


def test_a_store_that_was_dropped_without_closing_opens_again(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    store = open_store(path, create=True)
    store.put(assortment())
    del store
    gc.collect()
    assert not Path(f"{path}-wal").exists()
    with open_store(path) as again:
        assert again.stat().records == len(assortment())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_that_ends_leaves_the_store_to_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    script = LEFT_OPEN + "import os\nif os.fork() == 0: sys.exit()\nos.wait()\nstore.put(assortment())"
    assert run_script(script, path) == 0
    with open_store(path) as store:
        assert store.check_integrity() == []
