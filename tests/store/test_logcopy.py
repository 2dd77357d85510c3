"""The log of a bulk import reaches the file beside its writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from lace.limits import KIB, MIB, StoreLimits
from lace.records.validate import ValidRecord
from lace.store import SQLiteStore, open_store
from lace.store.columns.file.logcopy import LogCopier
from store.samples import blob, plex

SOON = StoreLimits(copied_log_bytes=64 * KIB)
NEVER = StoreLimits(copied_log_bytes=1024 * MIB)


def batches(count: int) -> Iterator[list[ValidRecord]]:
    """Batches long enough to count as bulk, the last of them short."""
    for number in range(count):
        yield [blob(bytes([number, part]) * 300_000) for part in range(2)]
    yield [plex(f"n/{number}") for number in range(20)]


def copying() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "lace-log"]


def filled(path: Path, limits: StoreLimits) -> SQLiteStore:
    store = open_store(path, create=True, limits=limits)
    for batch in batches(4):
        store.put(batch)
        for thread in copying():
            thread.join()
    return store


def test_long_writes_reach_the_file_before_its_log_is_full(tmp_path: Path) -> None:
    sizes = {}
    for name, limits in {"soon": SOON, "never": NEVER}.items():
        path = tmp_path / f"{name}.lace"
        store = filled(path, limits)
        sizes[name] = path.stat().st_size, Path(f"{path}-wal").stat().st_size
        store.close()
    assert sizes["soon"][0] > 3 * MIB > sizes["never"][0]
    assert sizes["soon"][1] < sizes["never"][1]  # a writer who finds all of it copied begins it anew


def test_a_store_whose_log_was_copied_holds_what_any_other_holds(tmp_path: Path) -> None:
    found = []
    for name, limits in {"soon": SOON, "never": NEVER}.items():
        filled(tmp_path / name, limits).close()
        assert not Path(f"{tmp_path / name}-wal").exists()
        with open_store(tmp_path / name, read_only=True) as store:
            assert store.check_integrity() == []
            found.append([*store.bodies_since()])
    assert found[0] == found[1]


def test_a_reader_of_an_earlier_moment_keeps_it_while_the_log_is_copied(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True, limits=SOON) as store, open_store(path, read_only=True) as other:
        store.put([plex("first")])
        with other._file.reading():
            before = other.stat().records
            for batch in batches(3):
                store.put(batch)
            for thread in copying():
                thread.join()
            assert other.stat().records == before == 1
        assert other.stat().records == store.stat().records == 27


def test_closing_waits_for_a_copy_and_leaves_no_log(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    store = open_store(path, create=True, limits=SOON)
    for batch in batches(6):
        store.put(batch)
    store.close()
    assert copying() == []
    assert not Path(f"{path}-wal").exists()


def test_short_writes_and_short_logs_are_not_copied_beside(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True, limits=SOON) as store:
        for number in range(40):
            store.put([plex(f"n/{number}")])
        assert copying() == []
    with open_store(tmp_path / "b.lace", create=True, limits=NEVER) as store:
        for batch in batches(2):
            store.put(batch)
        assert copying() == []


@pytest.mark.parametrize("content", [None, b"", b"no store at all" * 100])
def test_a_copy_of_what_is_no_store_says_nothing(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "a.lace"
    Path(f"{path}-wal").write_bytes(b"x" * MIB)
    if content is not None:
        path.write_bytes(content)
    copier = LogCopier(path, SOON)
    copier.after_write()
    copier.finish()
    assert (path.read_bytes() if path.exists() else None) == content


def test_a_log_that_sqlite_copies_by_itself_is_left_to_it(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    copier = LogCopier(path, StoreLimits(copied_log_bytes=KIB, checkpoint_bytes=64 * KIB))
    Path(f"{path}-wal").write_bytes(bytes(64 * KIB))
    copier.after_write()
    assert copying() == []
