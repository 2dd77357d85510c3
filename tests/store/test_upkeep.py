"""Backups, restoring, compacting, repairing: whole copies, nothing left of what was deleted, nothing readable lost."""

from __future__ import annotations

import random
import shutil
import sqlite3
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

from lace.errors import NotFound, StoreDamaged, StoreError, StoreReplaced
from lace.facts.predicates import RECORD_PREDICATES
from lace.limits import RecordLimits, StoreLimits
from lace.store import SQLiteStore, open_store
from lace.store.columns.repair import copies as upkeep
from lace.store.columns.repair.copies import backup, compact, restore
from lace.store.columns.repair.leafpages import LeafPages
from lace.store.columns.repair.rebuild import CURSOR_GAP
from lace.store.columns.repair.salvage import repair
from store.samples import assortment, blob, plex, seal

LIMITS = RecordLimits()


def filled(path: Path, count: int = 60) -> list[str]:
    """A store with a history; the hashes that are left."""
    with open_store(path, create=True) as store:
        store.put(assortment())
        records = [seal(f"n/{number}", headers=(("K", f"v{number % 5}"),), data=bytes(50)) for number in range(count)]
        for at in range(0, count, 7):
            store.put(records[at : at + 7])
        store.put([blob(bytes(range(256)) * 200)])
        store.delete(*(record.hash for record in records[3::9]))
        store.put_setting("some", "key", b"value")
        return [record for _, record in store.records_since()]


def laces_in(folder: Path) -> list[str]:
    """Files, but for the logs that reading leaves."""
    return sorted(file.name for file in folder.iterdir() if not file.name.endswith(("-wal", "-shm", "-reserve")))


def contents(store: SQLiteStore) -> object:
    snapshot = store.snapshot()
    facts = {predicate: sorted(snapshot.iterate(predicate)) for predicate in RECORD_PREDICATES}
    return list(store.records_since()), facts, [entry.hash for entry in store.entries()], store.settings("some")


def contents_of(path: Path) -> object:
    with open_store(path, read_only=True) as store:
        assert store.check_integrity() == []
        return contents(store)


def test_a_backup_is_the_lace_of_one_moment_while_others_write(tmp_path: Path) -> None:
    path, target = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)
    stop = threading.Event()

    def write() -> None:
        with open_store(path) as other:
            number = 0
            while not stop.is_set():
                number += 1
                other.put([plex(f"live/{number}/{side}") for side in "ab"])

    with open_store(path) as store:
        before = contents(store)
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                assert backup(path, target, replace=True) == target.stat().st_size
                with open_store(target, read_only=True) as copied:
                    assert copied.check_integrity() == []
                    live = list(copied.entries("u", "ding", "live/"))
                    assert len(live) % 2 == 0  # no half of a put
        finally:
            stop.set()
            writer.join()
        assert set(dict(before[0]).values()) <= {record for _, record in copied_records(target)}  # type: ignore[index]
    assert laces_in(tmp_path) == ["a.lace", "b.lace"]


def copied_records(path: Path) -> list[tuple[int, str]]:
    with open_store(path, read_only=True) as store:
        return list(store.records_since())


def test_a_restored_lace_is_the_backup_and_old_cursors_start_over(tmp_path: Path) -> None:
    path, kept, again = tmp_path / "a.lace", tmp_path / "kept.lace", tmp_path / "again.lace"
    filled(path)
    backup(path, kept)
    with open_store(path) as store:
        store.put([plex("later")])
        store.delete(assortment()[0].hash)
        cursor = store.cursor()
    assert restore(kept, again) == (len(copied_records(kept)), 0)
    assert contents_of(again)[:1] == contents_of(kept)[:1]  # type: ignore[index]
    with open_store(again) as store:
        store.put([plex("other"), plex("another")])
        assert store.changes(cursor) is None
        assert store.cursor().removal > CURSOR_GAP


def test_compacting_keeps_every_answer_and_nothing_of_what_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    with open_store(path) as store:
        secret = plex(
            "whispered/name", group="hidden-group", headers=(("Confidential", "do not keep"),), data=b"sesame"
        )
        store.put([secret, plex("stays")])
        store.delete(secret.hash)
        before = contents(store)
    words = (b"whispered/name", b"hidden-group", b"Confidential", b"do not keep", b"sesame")
    assert any(word in path.read_bytes() for word in words)
    size, after = compact(path)
    assert after <= size
    data = path.read_bytes()
    assert [word for word in words if word in data] == []
    assert contents_of(path) == before
    assert laces_in(tmp_path) == ["a.lace"]


def secret_removed(store: SQLiteStore) -> list[bytes]:
    """Put a record and delete it; what nothing else says."""
    headers = (("Confidential", "do not keep"),)
    secret = plex("whispered/name", group="hidden-group", headers=headers, data=b"sesame")
    store.put([secret, plex("stays")])
    store.delete(secret.hash)
    return [b"whispered/name", b"hidden-group", b"Confidential", b"do not keep", b"sesame"]


def left_of(path: Path, words: list[bytes]) -> list[tuple[str, bytes]]:
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    return [(file.name, word) for file in files for word in words if word in file.read_bytes()]


def test_what_was_removed_leaves_a_file_that_others_have_open(tmp_path: Path) -> None:
    """Whoever compacts is not the last to close it then, and only the last copies the log into the file."""
    path = tmp_path / "a.lace"
    filled(path)
    with open_store(path) as other:
        words = secret_removed(other)
        other.snapshot()
        compact(path)
        assert left_of(path, words) == []
    assert left_of(path, words) == []


def test_whoever_reads_while_a_lace_is_compacted_keeps_what_was_removed_and_that_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    with open_store(path) as store:
        words = secret_removed(store)
    monkeypatch.setattr(upkeep, "SQLiteStore", partial(SQLiteStore, limits=StoreLimits(busy_timeout_ms=50)))
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM state").fetchone()
    with pytest.raises(StoreError, match="another program is reading it: what was removed stays"):
        compact(path)
    assert left_of(path, words)
    reader.close()
    compact(path)
    assert left_of(path, words) == []


def test_whoever_has_a_compacted_lace_open_is_told_to_open_it_again(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    with open_store(path) as store:
        cursor = store.cursor()
        compact(path)
        for question in (store.snapshot, store.cursor, lambda: store.get(plex().hash), lambda: store.put([plex("x")])):
            with pytest.raises(StoreReplaced, match="open it again"):
                question()
    with open_store(path) as store:
        assert store.changes(cursor) is None
        store.put([plex("after")])
        assert store.check_integrity() == []


@pytest.mark.parametrize("read_only", [False, True])
def test_whoever_has_a_lace_open_that_was_moved_or_restored_is_told(tmp_path: Path, read_only: bool) -> None:
    """What it stored would be in a file that nobody finds again."""
    path, kept = tmp_path / "a.lace", tmp_path / "kept.lace"
    filled(path)
    backup(path, kept)
    with open_store(path, read_only=read_only) as store:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
        with pytest.raises(StoreReplaced, match="the file was moved, deleted or replaced"):
            store.cursor()
        restore(kept, path)
        with pytest.raises(StoreReplaced, match="the file was moved, deleted or replaced"):
            store.snapshot() if read_only else store.put([plex("lost")])
        with open_store(path) as again:
            again.put([plex("found")])
            store.close()  # takes nothing away from the file that has its name now
            with open_store(path, read_only=True) as third:
                assert third.have(plex("found").hash)
                assert not third.have(plex("lost").hash)


def test_repairing_a_whole_lace_changes_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    left = filled(path)
    before = contents_of(path)
    report = repair(path, LIMITS)
    assert (report.kept, report.lost, report.carved, report.settings) == (len(left), [], 0, 1)
    assert contents_of(path) == before
    assert report.damaged_file is not None
    assert contents_of(report.damaged_file) == before


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM segments", "DELETE FROM symbol_index", "UPDATE symbol_blocks SET texts = x'00'",
        "UPDATE state SET next_code = 3", "DELETE FROM coordinates", "DROP TABLE spaces", "DROP TABLE state",
        "UPDATE tombstones SET code = 1", "DROP TABLE settings", "DELETE FROM removals",
    ],
)  # fmt: skip
def test_facts_and_indexes_are_made_anew_from_the_records(tmp_path: Path, statement: str) -> None:
    path = tmp_path / "a.lace"
    left = filled(path)
    before = contents_of(path)
    with sqlite3.connect(path) as connection:
        connection.execute(statement)
    connection.close()
    report = repair(path, LIMITS)
    assert (report.kept, report.lost) == (len(left), [])
    assert contents_of(path)[:3] == before[:3]  # type: ignore[index]


def test_a_record_with_a_damaged_body_is_lost_alone_and_named(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    left = filled(path)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET body = CAST(replace(body, 'Group', 'grouP') AS BLOB) WHERE id = 4")
    connection.close()
    report = repair(path, LIMITS)
    (lost,) = report.lost
    assert (lost.id, lost.hash) == (4, dict(copied_records(report.damaged_file or path))[4])
    assert report.kept == len(left) - 1
    with open_store(path) as store:
        assert store.check_integrity() == []
        assert not store.have(lost.hash)  # type: ignore[arg-type]


def test_pages_that_cannot_be_read_cost_what_stands_on_them(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    left = filled(path, 200)
    whole = path.read_bytes()
    chance = random.Random(4)
    for _ in range(4):
        data = bytearray(whole)
        page = chance.randrange(2, len(data) // 16384) * 16384  # the first two hold the schema and the counters
        data[page : page + 16384] = chance.randbytes(16384)
        path.write_bytes(data)
        report = repair(path, LIMITS)
        with open_store(path) as store:
            assert store.check_integrity() == []
            assert {record for _, record in store.records_since()} <= set(left) | {seal_hash(n) for n in range(200)}
        assert report.kept >= len(left) * 2 // 3


@pytest.mark.parametrize("overwritten", [16, 100, 512, 4096, 16384], ids=lambda size: f"first {size} bytes")
@pytest.mark.parametrize("content", [b"\x00", b"\xff", b"SQLite format 3\x00"])
def test_a_file_without_its_beginning_keeps_every_record_and_its_id(
    tmp_path: Path, overwritten: int, content: bytes
) -> None:
    """The header says what the file is, and the rest of the first page where its tables begin."""
    path = tmp_path / "a.lace"
    filled(path)
    with open_store(path) as store:
        store.put(
            [blob(bytes(range(256)) * length) for length in (4, 63, 64, 65, 600, 9000)]
        )  # on one page and on many
        before = list(store.records_since())
    data = path.read_bytes()
    path.write_bytes((content * overwritten)[:overwritten] + data[overwritten:])
    report = repair(path, LIMITS)
    assert report.lost == []
    with open_store(path) as store:
        assert store.check_integrity() == []
        assert set(before) <= set(store.records_since())
        assert store.stat().records == report.kept
    assert report.damaged_file is not None
    assert report.damaged_file.read_bytes()[overwritten:] == data[overwritten:]


@pytest.mark.parametrize("log_header", ["whole", "overwritten"])
def test_what_stands_in_the_log_of_a_file_without_its_beginning_is_kept(tmp_path: Path, log_header: str) -> None:
    path, copied = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)
    with open_store(path) as store:
        for number in range(3):
            store.put([plex(f"late/{number}", data=bytes(20))])
        before = dict(store.records_since())
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{copied}{suffix}")
    copied.write_bytes(bytes(16384) + copied.read_bytes()[16384:])
    if log_header == "overwritten":
        log = Path(f"{copied}-wal")
        log.write_bytes(bytes(32) + log.read_bytes()[32:])
    report = repair(copied, LIMITS)
    assert report.lost == []
    with open_store(copied) as store:
        assert set(before.items()) <= set(store.records_since())


def test_a_long_body_on_pages_that_nothing_leads_to_is_kept(tmp_path: Path) -> None:
    """The root of the tree of records is gone; the leaves and the pages that go on from them are not."""
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        store.put([blob(bytes([number]) * 60_000) for number in range(40)])
        left = {record for _, record in store.records_since()}
    root = root_page(path, "records")
    data = bytearray(path.read_bytes())
    assert data[root] == 0x05  # no leaf
    data[root : root + 16384] = bytes(16384)
    path.write_bytes(data)
    report = repair(path, LIMITS)
    assert (report.kept, report.lost) == (40, [])
    assert {record for _, record in copied_records(path)} == left


def root_page(path: Path, table: str) -> int:
    """Where the tree of a table begins in the file."""
    connection = sqlite3.connect(path)
    (number,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    connection.close()
    return int((number - 1) * 16384)


def test_half_a_file_keeps_the_records_that_are_in_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        store.put([blob(bytes([number]) * 60_000) for number in range(40)])
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2 + 77])
    report = repair(path, LIMITS)
    assert report.kept >= 15
    assert report.kept + len(report.lost) <= 40
    assert all("pages of it are missing" in lost.reason or "cannot be read" in lost.reason for lost in report.lost)
    with open_store(path) as store:
        assert store.check_integrity() == []


def varint(number: int) -> bytes:
    """A number as SQLite writes it."""
    parts = [number & 0x7F]
    while number := number >> 7:
        parts.insert(0, number & 0x7F | 0x80)
    return bytes(parts)


def test_rows_that_all_go_on_over_the_whole_file_are_not_read_to_their_end(tmp_path: Path) -> None:
    """One leaf of many rows, each as long as the file allows, and a page behind them that leads back to itself."""
    page, pages, rows = 16384, 50, 60
    size = (pages - 2) * page
    payload_header = b"\x00\x09" + varint(2 * size + 12)  # an id, the number 1, so many bytes
    payload_header = varint(len(payload_header) + 1) + payload_header
    payload = len(payload_header) + size
    least = (page - 12) * 32 // 255 - 23
    some = least + (payload - least) % (page - 4)
    local = some if some <= page - 35 else least
    start = blob(b"any").stored
    leaf = bytearray(page)
    cell = varint(payload) + b"\x01" + payload_header + start
    at = page - local - 100
    leaf[at : at + len(cell)] = cell
    end = at + len(varint(payload)) + 1 + local
    leaf[end : end + 4] = (3).to_bytes(4)
    leaf[0:8] = bytes([0x0D, 0, 0]) + rows.to_bytes(2) + at.to_bytes(2) + b"\x00"
    for number in range(rows):  # the same row many times
        leaf[8 + 2 * number : 10 + 2 * number] = at.to_bytes(2)
    path = tmp_path / "a.lace"
    path.write_bytes(bytes(page) + leaf + (3).to_bytes(4) + bytes((pages - 2) * page - 4))
    with LeafPages(path, page) as found:
        assert len(found) == rows
        read = sum(len(row.body) for row in found.rows())
    assert pages * page < read <= 9 * pages * page  # without an end to it: 60 times


def test_a_log_that_speaks_of_the_last_page_there_can_be_costs_no_more_than_its_own_length(tmp_path: Path) -> None:
    page, path = 16384, tmp_path / "a.lace"
    path.write_bytes(bytes(page))
    leaf = bytearray(page)
    row = blob(b"any").stored
    header = b"\x00\x09" + varint(2 * len(row) + 12)
    cell = bytes([len(header) + 1]) + header + row
    cell = varint(len(cell)) + b"\x01" + cell
    at = page - len(cell)
    leaf[at:] = cell
    leaf[0:10] = bytes([0x0D, 0, 0, 0, 1]) + at.to_bytes(2) + b"\x00" + at.to_bytes(2)
    last = (2**32 - 1).to_bytes(4)
    Path(f"{path}-wal").write_bytes(bytes(32) + last + last + b"12345678" + bytes(8) + leaf)
    with LeafPages(path, page) as found:
        assert [tuple(one) for one in found.rows()] == [(1, row, True)]


def seal_hash(number: int) -> str:
    return seal(f"n/{number}", headers=(("K", f"v{number % 5}"),), data=bytes(50)).hash


def test_a_plain_copy_is_taken_as_it_is_by_repairing(tmp_path: Path) -> None:
    path, copied = tmp_path / "a.lace", tmp_path / "b.lace"
    with open_store(path, create=True) as store:
        store.put(assortment())
        shutil.copy(path, copied)
    with pytest.raises(StoreDamaged):
        open_store(copied)
    repair(copied, LIMITS)
    with open_store(copied) as store:
        assert store.check_integrity() == []


HOLDING = """
import sys
from lace.store import open_store
with open_store(sys.argv[1], read_only=sys.argv[2] == "reads") as store:
    print(store.stat().records, flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("way", ["reads", "writes"])
def test_a_lace_that_another_program_has_open_is_not_put_aside(tmp_path: Path, way: str) -> None:
    """It would store what comes in the damaged file, and end by deleting the log of the new one."""
    path = tmp_path / "a.lace"
    left = filled(path)
    words = [sys.executable, "-c", HOLDING, str(path), way]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == f"{len(left)}\n"
        with pytest.raises(StoreError, match="another program has it open"):
            repair(path, LIMITS)
        assert laces_in(tmp_path) == ["a.lace"]
        other.communicate()
    assert repair(path, LIMITS).kept == len(left)


def test_what_is_not_there_or_no_lace_cannot_be_repaired(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        repair(tmp_path / "none.lace", LIMITS)
    (tmp_path / "text.lace").write_bytes(b"hello" * 1000)
    with pytest.raises(StoreError, match="nothing of it can be read"):
        repair(tmp_path / "text.lace", LIMITS)
    assert [file.name for file in tmp_path.iterdir()] == ["text.lace"]
