"""File operations that fail (tools/faults.py; `make nightly` lets every one fail)."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lace.errors import StoreError
from lace.store import open_store
from lace.store.columns.file import openers
from store.samples import plex
from store.test_openers import require_at_rest

ROOT = Path(__file__).resolve().parents[2]
CANNOT = 77


@pytest.mark.long
def test_a_failing_disk_locks_no_lace_out_and_loses_nothing() -> None:
    command = [sys.executable, str(ROOT / "tools" / "faults.py"), "--most", "3", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode == CANNOT:
        pytest.skip("FAILING FILE OPERATIONS WERE NOT TRIED, only errors of SQLite's: they need Linux and cc")
    found = json.loads(done.stdout)
    assert [(row["command"], row["kind"], row["problems"]) for row in found["rows"] if row["problems"]] == []
    assert done.returncode == 0, done.stderr
    assert len(found["rows"]) == 24
    assert all(row["faults"] == 3 for row in found["rows"])


@pytest.mark.long
def test_every_operation_of_removing_may_fail() -> None:
    """Those that take the name out are three of some fifty: a sample misses them."""
    command = [sys.executable, str(ROOT / "tools" / "faults.py"), "--command", "rm", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode == CANNOT:
        pytest.skip("FAILING FILE OPERATIONS WERE NOT TRIED, only errors of SQLite's: they need Linux and cc")
    found = json.loads(done.stdout)
    assert [row["problems"] for row in found["rows"]] == [[], []]
    assert all(row["faults"] > 40 for row in found["rows"])


class Failing:
    """A connection that refuses what begins in one way, as SQLite does where the disk fails."""

    def __init__(self, connection: sqlite3.Connection, beginning: str) -> None:
        self._connection = connection
        self._beginning = beginning

    def __getattr__(self, name: str) -> object:
        return getattr(self._connection, name)

    def execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        self._refuse(statement)
        return self._connection.execute(statement, *values)  # type: ignore[arg-type]

    def executemany(self, statement: str, *values: object) -> sqlite3.Cursor:
        self._refuse(statement)
        return self._connection.executemany(statement, *values)  # type: ignore[arg-type]

    def _refuse(self, statement: str) -> None:
        if statement.startswith(self._beginning):
            error = sqlite3.OperationalError("disk I/O error")
            error.sqlite_errorname = "SQLITE_IOERR_FSYNC"
            raise error


@pytest.mark.parametrize("beginning", ["INSERT INTO openers", "PRAGMA wal_checkpoint"])
def test_who_cannot_be_entered_has_written_nothing_and_locks_nobody_out(tmp_path: Path, beginning: str) -> None:
    path = tmp_path / "a.lace"
    open_store(path, create=True).close()
    store = open_store(path)
    whole = store.file.connection
    store.file.connection = Failing(whole, beginning)  # type: ignore[assignment]
    with pytest.raises(StoreError, match="the disk refused"):
        store.put([plex("refused")])
    store.file.connection = whole
    store.close()
    assert openers.log_beside(path) is openers.LogSign.ABSENT
    require_at_rest(path)


@pytest.mark.parametrize("beginning", ["SELECT id, place", "BEGIN IMMEDIATE", "DELETE FROM openers", "COMMIT"])
def test_who_cannot_be_taken_out_leaves_the_log(tmp_path: Path, beginning: str) -> None:
    path = tmp_path / "a.lace"
    store = open_store(path, create=True)
    store.put([plex("kept")])
    own = store.file.connection
    names = list(store.file.names)
    openers.release(Failing(own, beginning), path, names)  # type: ignore[arg-type]
    assert openers.log_beside(path) is openers.LogSign.PRESENT
    require_at_rest(path, plex("kept").hash)
