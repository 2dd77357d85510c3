"""The tables of a store file, as numbered migrations; docs/store.md tells what they are for.

Rule: a migration that was ever released never changes; a new one is appended. `PRAGMA user_version` counts them.

- `records`: bodies by StoreRecordId, and by the code of their hash text. Scans use segments instead.
- `symbol_blocks`: block b holds the texts of codes 256·b … 256·b+255, joined by LF.
- `symbol_index`: 44-bit keyed hash of a text → code; a taken key moves on to key + 1.
- `symbol_pages`: keys and codes of texts that came in bulk, in runs of ascending keys. `symbol_runs`: keys in each.
- `segments`: packed columns of runs of records. `tombstones`: records that are deleted but still in a segment.
- `removals`: packed facts of deleted records, so that a follower can take them out of what it derived.
- `spaces`, `coordinates`: Plexes and Seals in the order group, app | name, TAI.
- `state`: the counters that every write transaction moves.
- `openers`: who has the file open for writing; in a copy without its log they are what gives it away.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable

from lace.errors import InvalidRecord, StoreDamaged, StoreError
from lace.records.link import LINK_SUFFIX
from lace.records.retraction import RETRACT, as_text, withdraws
from lace.records.validate import reread
from lace.store.columns.dictionary.symbols import SymbolTable, keyed_hash, new_secret
from lace.store.columns.tables.checksum import checksum
from lace.store.columns.tables.state import read_unchecked, save, secret
from lace.store.search import CREATE as CREATE_SEARCH
from lace.store.search import SHADOWS as SEARCH_SHADOWS
from lace.store.search import TABLE as SEARCH_TABLE

APPLICATION_ID = 0x4C616365  # "Lace"
PAGE_BYTES = 16 * 1024  # long blobs and large batches: a quarter of the writes of 4 KiB pages

_FIRST = """
CREATE TABLE state(
  one INTEGER PRIMARY KEY CHECK (one = 1), last_record INTEGER NOT NULL, next_code INTEGER NOT NULL,
  last_removal INTEGER NOT NULL, records INTEGER NOT NULL, stored_bytes INTEGER NOT NULL, index_key BLOB NOT NULL);
CREATE TABLE records(id INTEGER PRIMARY KEY, code INTEGER NOT NULL, body BLOB NOT NULL);
CREATE UNIQUE INDEX records_by_code ON records(code);
CREATE TABLE symbol_blocks(block INTEGER PRIMARY KEY, texts BLOB NOT NULL);
CREATE TABLE symbol_index(key INTEGER PRIMARY KEY, code INTEGER NOT NULL);
CREATE TABLE segments(
  id INTEGER PRIMARY KEY AUTOINCREMENT, first_record INTEGER NOT NULL, last_record INTEGER NOT NULL,
  records INTEGER NOT NULL, columns BLOB NOT NULL);
CREATE UNIQUE INDEX segments_in_order ON segments(first_record, last_record, records);
CREATE TABLE tombstones(record INTEGER PRIMARY KEY, code INTEGER NOT NULL);
CREATE TABLE removals(seq INTEGER PRIMARY KEY, columns BLOB NOT NULL);
CREATE TABLE spaces(id INTEGER PRIMARY KEY, group_code INTEGER NOT NULL, app_code INTEGER NOT NULL);
CREATE UNIQUE INDEX spaces_by_codes ON spaces(group_code, app_code);
CREATE TABLE coordinates(
  space INTEGER NOT NULL, name TEXT NOT NULL, tai TEXT NOT NULL, record INTEGER NOT NULL, code INTEGER NOT NULL,
  signer INTEGER, data_length INTEGER NOT NULL, PRIMARY KEY (space, name, tai, record)) WITHOUT ROWID;
CREATE TABLE settings(
  namespace TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL, PRIMARY KEY (namespace, key)) WITHOUT ROWID;
INSERT INTO symbol_blocks VALUES (0, CAST('0' AS BLOB));
"""

# Checksums. Those of segments are in their index, so that reading one does not walk through a blob to its end.
_SUMS = """
ALTER TABLE state ADD COLUMN segments INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN segment_sums INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN tombstones INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN tombstone_sums INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN generation INTEGER NOT NULL DEFAULT 0;
ALTER TABLE state ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE symbol_blocks ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE segments ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE removals ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE spaces ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE coordinates ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE settings ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
DROP INDEX segments_in_order;
CREATE UNIQUE INDEX segments_in_order ON segments(first_record, last_record, records, sum);
CREATE TABLE openers(
  id TEXT PRIMARY KEY, place TEXT NOT NULL, pid INTEGER NOT NULL, started TEXT NOT NULL) WITHOUT ROWID;
"""

# The index of what comes in bulk. The id of a page is its run above its first key.
_RUNS = """
CREATE TABLE symbol_runs(run INTEGER PRIMARY KEY, keys INTEGER NOT NULL, sum INTEGER NOT NULL);
CREATE TABLE symbol_pages(id INTEGER PRIMARY KEY, entries BLOB NOT NULL, sum INTEGER NOT NULL);
"""

# What a retraction withdraws, so that tips are chosen without reading bodies; null for every other record.
_WITHDRAWS = """
ALTER TABLE coordinates ADD COLUMN withdraws TEXT;
"""

# What is summed: for each table its key and its other columns, in the order in which they are summed. A null
# `withdraws` is left out, so that sums of rows without one are what they were before it came.
SUMMED_FIRST: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "symbol_blocks": (("block",), ("texts",)),
    "segments": (("id",), ("first_record", "last_record", "records", "columns")),
    "removals": (("seq",), ("columns",)),
    "spaces": (("id",), ("group_code", "app_code")),
    "coordinates": (("space", "name", "tai", "record"), ("code", "signer", "data_length")),
    "settings": (("namespace", "key"), ("value",)),
}
SUMMED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **SUMMED_FIRST,
    "coordinates": (SUMMED_FIRST["coordinates"][0], (*SUMMED_FIRST["coordinates"][1], "withdraws")),
    "symbol_runs": (("run",), ("keys",)),
    "symbol_pages": (("id",), ("entries",)),
}


def _start(connection: sqlite3.Connection) -> None:
    """The counters, the secret of the symbol index, and code 0 = '0'."""
    drawn = new_secret()
    connection.execute("INSERT INTO state VALUES (1, 0, 1, 0, 0, 0, ?)", (drawn,))
    connection.execute("INSERT INTO symbol_index VALUES (?, 0)", (keyed_hash(drawn)(["0"])[0],))


def _sum_everything(connection: sqlite3.Connection) -> None:
    """Sums for what an older program wrote; it is believed as it stands."""
    for table, (key, others) in SUMMED_FIRST.items():
        where = " AND ".join(f"{column} = ?" for column in key)
        for row in connection.execute(f"SELECT {', '.join(key)} FROM {table}").fetchall():
            values = connection.execute(f"SELECT {', '.join(others)} FROM {table} WHERE {where}", row).fetchone()
            parts = (*(row if table != "segments" else ()), *values)
            connection.execute(f"UPDATE {table} SET sum = ? WHERE {where}", (checksum(*parts), *row))
    segments = connection.execute("SELECT count(*), coalesce(sum(sum), 0) FROM segments").fetchone()
    dead: Iterable[tuple[int, int]] = connection.execute("SELECT record, code FROM tombstones").fetchall()
    sums = [checksum(*row) for row in dead]
    state = read_unchecked(connection)._replace(segments=segments[0], segment_sums=segments[1], generation=1)
    save(connection, state._replace(tombstones=len(sums), tombstone_sums=sum(sums)))


def _find_retractions(connection: sqlite3.Connection) -> None:
    """What the retractions withdraw that an older program stored without knowing what they mean."""
    symbols = SymbolTable(connection, keyed_hash(secret(connection)))
    if set(symbols.codes([RETRACT, RETRACT + LINK_SUFFIX])) == {-1}:  # no record has such a header
        return
    query = """SELECT c.space, c.name, c.tai, c.record, c.code, c.signer, c.data_length, r.body
        FROM coordinates c JOIN records r ON r.id = c.record WHERE c.data_length = 0"""
    update = "UPDATE coordinates SET withdraws = ?, sum = ? WHERE space = ? AND name = ? AND tai = ? AND record = ?"
    found = []
    for *row, body in connection.execute(query):
        try:
            said = as_text(withdraws(reread(body)))
        except InvalidRecord:  # damaged, which `lace verify` reports
            continue
        if said:
            found.append((said, checksum(*row, said), *row[:4]))
    connection.executemany(update, found)


_Step = Callable[[sqlite3.Connection], None]
MIGRATIONS: tuple[tuple[str, _Step], ...] = (
    (_FIRST, _start), (_SUMS, _sum_everything), (_RUNS, lambda connection: None), (_WITHDRAWS, _find_retractions),
)  # fmt: skip


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a store file; StoreError if the file is something else."""
    application, version = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")
    )
    if application != APPLICATION_ID:
        raise StoreError("the file is an SQLite database, but not a lace store")
    if version > len(MIGRATIONS):
        raise StoreError(f"the store has schema {version}, this program knows {len(MIGRATIONS)}: use a newer program")
    return int(version)


Definitions = dict[tuple[str, str], str]  # (table or index, its name) → its SQL without needless spaces
_known: dict[tuple[str, ...], Definitions] = {}


def require_ours(connection: sqlite3.Connection, version: int) -> None:
    """StoreDamaged unless a file has the tables and indexes of a version and nothing else.

    SQLite obeys triggers, views and clauses such as ON CONFLICT IGNORE in a file: in one from elsewhere they
    could swallow what is stored, and acknowledge it. The words that FTS5 keeps, and what ANALYZE knows, may be there.
    """
    expected = _definitions_of(version)
    found = _definitions_in(connection)
    if found.get(("table", SEARCH_TABLE)) == _plain(CREATE_SEARCH):
        for name in (SEARCH_TABLE, *SEARCH_SHADOWS):  # what FTS5 keeps behind them differs between its versions
            found.pop(("table", name), None)
    wrong = [f"{kind} {name} is not a lace's" for kind, name in found.keys() - expected.keys()]
    wrong += [f"{kind} {name} is missing" for kind, name in expected.keys() - found.keys()]
    wrong += [
        f"{kind} {name} is defined differently: {found[kind, name][:200]}"
        for kind, name in expected.keys() & found.keys()
        if found[kind, name] != expected[kind, name]
    ]
    if wrong:
        raise StoreDamaged(
            f"the file does not have the tables of a lace, schema {version}: {'; '.join(sorted(wrong)[:_TOLD])}."
            " Nothing was read from it or written to it; `lace repair` makes a lace of the records in it"
        )


_TOLD = 5  # of what is wrong


def _definitions_of(version: int) -> Definitions:
    """What the statements of the migrations make in an empty file."""
    statements = tuple(statements for statements, _ in MIGRATIONS[:version])
    if statements not in _known:
        empty = sqlite3.connect(":memory:")
        try:
            for text in statements:
                empty.executescript(text)
            _known[statements] = _definitions_in(empty)
        finally:
            empty.close()
    return _known[statements]


def _definitions_in(connection: sqlite3.Connection) -> Definitions:
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {(str(kind), str(name)): _plain(str(sql or "")) for kind, name, sql in rows if not _is_of_sqlite(kind, name)}


def _is_of_sqlite(kind: object, name: object) -> bool:
    """What SQLite makes by itself, under names that it gives to nobody: implied indexes, the planner's statistics."""
    return (kind, str(name)[:12]) in (("index", "sqlite_autoi"), ("table", "sqlite_stat1"), ("table", "sqlite_stat4"))


def _plain(sql: str) -> str:
    """A definition without the spaces that mean nothing; altering a table leaves them as they come."""
    return re.sub(r"\s*([(),])\s*", r"\1", re.sub(r"\s+", " ", sql)).strip()


def is_blank(connection: sqlite3.Connection) -> bool:
    """Whether the file holds nothing at all yet."""
    return connection.execute("SELECT 1 FROM sqlite_master").fetchone() is None


def migrate(connection: sqlite3.Connection) -> None:
    """Bring a store up to date in one transaction; what another process did meanwhile is left alone."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        current = 0 if is_blank(connection) else version_of(connection)
        for statements, step in MIGRATIONS[current:]:
            for statement in statements.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            step(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
