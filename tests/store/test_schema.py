"""A file from elsewhere: SQLite obeys what stands in it, so only the tables of a lace may stand there."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from lace.errors import StoreDamaged
from lace.limits import RecordLimits
from lace.store import open_store
from lace.store.columns.repair.salvage import repair
from lace.store.columns.tables import schema
from store.samples import assortment, plex
from store.test_integrity import old_store

SWALLOW = "CREATE TRIGGER swallow BEFORE INSERT ON records BEGIN SELECT raise(IGNORE); END"

HOSTILE = {
    SWALLOW: "trigger swallow is not a lace's",
    "CREATE TRIGGER late AFTER INSERT ON segments BEGIN DELETE FROM records; END": "trigger late is not a lace's",
    "CREATE VIEW more AS SELECT * FROM records": "view more is not a lace's",
    "CREATE TABLE mine(x)": "table mine is not a lace's",
    "CREATE VIRTUAL TABLE words USING fts5(x)": "table words is not a lace's",
    "CREATE VIRTUAL TABLE search USING fts5(name, headers, content)": "table search is not a lace's",
    "CREATE TABLE search(name, headers, content)": "table search is not a lace's",
    "CREATE TABLE search_data(id INTEGER PRIMARY KEY, block BLOB)": "table search_data is not a lace's",
    "CREATE INDEX slow ON records(length(body))": "index slow is not a lace's",
    "DROP INDEX records_by_code": "index records_by_code is missing",
    "DROP TABLE spaces": "table spaces is missing",
    "ALTER TABLE records ADD COLUMN more": "table records is defined differently",
    "DROP TABLE records; CREATE VIEW records AS SELECT 1 AS id, 1 AS code, x'00' AS body": "view records is not",
    "DROP TABLE tombstones;"
    "CREATE TABLE tombstones(record INTEGER PRIMARY KEY ON CONFLICT IGNORE, code INTEGER NOT NULL)":
        "tombstones is defined differently: CREATE TABLE tombstones(record INTEGER PRIMARY KEY ON CONFLICT IGNORE",
}  # fmt: skip


def filled(path: Path) -> None:
    with open_store(path, create=True) as store:
        store.put(assortment())


def change(path: Path, statements: str) -> None:
    connection = sqlite3.connect(path)
    connection.executescript(statements)
    connection.close()


@pytest.mark.parametrize("statements", HOSTILE)
@pytest.mark.parametrize("read_only", [False, True])
def test_what_is_not_a_lace_s_is_refused_and_named(tmp_path: Path, statements: str, read_only: bool) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    change(path, statements)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged, match="lace repair") as refused:
        open_store(path, read_only=read_only)
    assert HOSTILE[statements] in str(refused.value)
    assert path.read_bytes() == before


def test_a_trigger_that_swallows_what_is_put_acknowledges_nothing_and_repairing_is_the_way_out(tmp_path: Path) -> None:
    path, note = tmp_path / "a.lace", tmp_path / "note"
    filled(path)
    change(path, SWALLOW)
    note.write_text("kept or refused")
    words = ["put", str(path), str(note), "--group", "u", "--app", "a", "--name", "n"]
    lace = [sys.executable, "-m", "lace.cli"]
    refused = subprocess.run([*lace, *words], capture_output=True, text=True, timeout=60, check=False)
    assert refused.returncode != 0
    assert "trigger swallow" in refused.stderr
    mended = subprocess.run([*lace, "repair", str(path)], capture_output=True, text=True, timeout=60, check=False)
    assert mended.returncode == 0, mended.stderr
    stored = subprocess.run([*lace, *words], capture_output=True, text=True, timeout=60, check=False)
    assert stored.returncode == 0, stored.stderr
    with open_store(path) as store:
        assert store.stat().records > len(assortment())
        assert all(store.have(record.hash) for record in assortment())
        assert store.check_integrity() == []


ENDLESS = """
ALTER TABLE {table} RENAME TO hidden;
CREATE VIEW {table} AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)
SELECT id, id AS code, x'00' AS body, 1 AS last_record, 1 AS last_removal, 1 AS generation,
'a' AS namespace, id AS key, x'00' AS value, 0 AS sum FROM n;
"""


@pytest.mark.parametrize("table", ["records", "state", "settings"])
def test_a_view_without_an_end_does_not_hold_up_repairing(tmp_path: Path, table: str) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    change(path, ENDLESS.format(table=table))
    report = repair(path, RecordLimits())
    with open_store(path) as store:
        assert store.stat().records == report.kept
        assert store.check_integrity() == []
        assert all(store.have(record.hash) for record in assortment())


@pytest.mark.parametrize("version", range(1, len(schema.MIGRATIONS) + 1))
def test_the_schemas_of_all_versions_open(tmp_path: Path, version: int) -> None:
    path = tmp_path / "a.lace"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(f"PRAGMA page_size = {schema.PAGE_BYTES}")
    for statements, step in schema.MIGRATIONS[:version]:
        connection.executescript(statements)
        step(connection)
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.execute("ANALYZE")
    connection.close()
    again = tmp_path / "b.lace"
    shutil.copy(path, again)
    change(again, SWALLOW)
    with pytest.raises(StoreDamaged, match=f"schema {version}: trigger swallow"):
        open_store(again)
    with open_store(path) as store:
        store.put(assortment())
        assert store.check_integrity() == []
    open_store(path, read_only=True).close()


def test_a_file_of_the_first_schema_with_a_history_opens(tmp_path: Path) -> None:
    old_store(tmp_path / "a.lace")
    with open_store(tmp_path / "a.lace") as store:
        assert store.check_integrity() == []


def test_words_may_be_kept(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    with open_store(path) as store:
        store.index_words(lambda _: None)
    with open_store(path) as store:
        store.put([plex("one more")])
        assert store.is_searched
        assert store.check_integrity() == []
        store.forget_words()
    open_store(path).close()
