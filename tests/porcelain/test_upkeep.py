"""Backup, restore, compact and repair from Python."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

import lace


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.lace"
    with lace.open(path, create=True) as opened:
        opened.put(b"kept", group="u", app="ding", name="kept")
        opened.delete(opened.put(b"a secret of its own", group="u", app="ding", name="gone"))
    return path


def names(path: Path) -> list[str]:
    with lace.open(path, read_only=True) as opened:
        return [row["Name"] for row in opened.list()]


def test_a_backup_of_a_lace_in_use_is_a_lace_and_overwrites_nothing(notes: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.lace"
    told: list[tuple[int, int]] = []
    with lace.open(notes) as opened:
        opened.put(b"new", group="u", app="ding", name="new")
        assert lace.backup(notes, copy, progress=lambda done, of: told.append((done, of))) == copy.stat().st_size
    assert names(copy) == ["kept", "new"]
    assert told[-1][0] == told[-1][1] > 0
    with pytest.raises(lace.StoreError, match="already exists"):
        lace.backup(notes, copy)
    lace.backup(notes, copy, replace=True)


def test_a_backup_is_restored_where_there_is_no_lace(notes: Path, tmp_path: Path) -> None:
    lace.backup(notes, tmp_path / "copy.lace")
    assert lace.restore(tmp_path / "copy.lace", tmp_path / "again.lace") == (1, 0)
    assert names(tmp_path / "again.lace") == ["kept"]
    with pytest.raises(lace.StoreError, match="already exists"):
        lace.restore(tmp_path / "copy.lace", notes)
    (tmp_path / "other.lace-wal").touch()  # of a lace whose file somebody moved away
    with pytest.raises(lace.StoreError, match=r"other\.lace-wal already exists"):
        lace.restore(tmp_path / "copy.lace", tmp_path / "other.lace")


def test_what_was_removed_leaves_the_file(notes: Path) -> None:
    size = notes.stat().st_size
    counted: list[int] = []
    compacted = lace.compact(notes, progress=counted.append)
    assert (compacted.bytes_before, compacted.bytes) == (size, notes.stat().st_size)
    assert sum(counted) == 1
    assert b"a secret of its own" not in notes.read_bytes()
    assert names(notes) == ["kept"]


def test_a_damaged_lace_is_repaired_and_kept_beside(notes: Path) -> None:
    with lace.open(notes) as opened:
        opened.put(b"spoiled", group="u", app="ding", name="spoiled")
    connection = sqlite3.connect(notes)
    connection.execute("UPDATE records SET body = ? WHERE id = (SELECT max(id) FROM records)", (b"hello",))
    connection.commit()
    connection.close()
    report = lace.repair(notes)
    assert (report.kept, len(report.lost)) == (1, 1)
    assert report.damaged_file == notes.with_name("notes.lace.damaged")
    assert names(notes) == ["kept"]


def test_repairing_loses_no_record_that_only_the_limits_of_its_lace_allowed(tmp_path: Path) -> None:
    path = tmp_path / "wide.lace"
    headers = [(f"X-{number}", "y" * 2000) for number in range(600)]
    wide = lace.RecordLimits(max_header_line_bytes=4096, max_extra_headers=1000)
    with lace.open(path, create=True, limits=wide) as opened:
        opened.put(b"many headers", group="u", app="ding", name="wide", headers=headers)
    report = lace.repair(path)
    assert (report.kept, report.lost) == (1, [])
    assert lace.repair(path, limits=lace.RecordLimits()).lost[0].reason
