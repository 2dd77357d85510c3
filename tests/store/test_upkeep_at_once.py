"""Upkeep beside others: writers, other upkeep, files that appear meanwhile, and what dead ones left."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import lace
from lace.errors import StoreError, StoreReplaced
from lace.limits import RecordLimits
from lace.store import SQLiteStore, open_store
from lace.store.columns.repair import copies as upkeep
from lace.store.columns.repair import placing
from lace.store.columns.repair.copies import backup, compact, restore
from lace.store.columns.repair.salvage import repair
from lace.thresholds import StoreThresholds
from store.samples import assortment, plex
from store.test_openers import kill_a_writer
from store.test_upkeep import contents_of, filled, laces_in

TESTS = Path(__file__).parent.parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(lace.__path__[0]).parent), str(TESTS)])}
LEFT_BY_EARLIER = (
    ".a.lace.part",
    ".a.lace.part-journal",
    ".a.lace.compact",
    ".a.lace.compact-wal",
    ".a.lace.repair-shm",
)
LEFT = (".a.lace.0123456789abcdef.part", ".a.lace.0123456789abcdef.part-journal", ".a.lace.upkeep")
OF_OTHERS = (".a.lace.mine", ".b.lace.part", "a.lace.part", ".a.lace.0123.part")


def at_work(path: Path, then: Callable[[], object]) -> None:
    """Do something while another upkeep command is at work on a lace."""
    with placing.upkeep(path, "something else"):
        then()


def everything(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


@pytest.mark.parametrize("work", ["backup", "restore", "compact", "repair"])
def test_one_at_a_time_does_upkeep_to_a_lace(tmp_path: Path, work: str) -> None:
    path, other = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)
    before = contents_of(path)
    works: dict[str, tuple[Path, Callable[[], object]]] = {
        "backup": (other, lambda: backup(path, other)),
        "restore": (other, lambda: restore(path, other)),
        "compact": (path, lambda: compact(path)),
        "repair": (path, lambda: repair(path, RecordLimits())),
    }
    held, do = works[work]

    def refused() -> None:
        with pytest.raises(
            StoreError, match=r"lace something else \(process \d+\) is at work on it: nothing was changed"
        ):
            do()

    at_work(held, refused)
    assert contents_of(path) == before
    do()
    assert [name for name in everything(tmp_path) if name.startswith(".")] == []


def test_two_laces_are_looked_after_at_once(tmp_path: Path) -> None:
    path, other = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)
    at_work(other, lambda: compact(path))


@pytest.mark.parametrize(
    "state", ["killed", "open elsewhere", "open here", "at rest", "no lace", "no lace, with a log"]
)
def test_a_backup_never_becomes_a_mixture_with_what_it_replaces(tmp_path: Path, state: str) -> None:
    path, target = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)
    before = contents_of(path)
    if state == "killed":
        kill_a_writer(target)
    elif state.startswith("no lace"):
        target.write_bytes(b"some text" * 1000)
        if "log" in state:
            Path(f"{target}-wal").write_bytes(b"some log" * 1000)
    else:
        with open_store(target, create=True) as store:
            store.put([plex("old")])
    if state == "open elsewhere":
        holder = (
            "import sys; from lace.store import open_store; store = open_store(sys.argv[1]); print(flush=True); input()"
        )
        words = [sys.executable, "-c", holder, str(target)]
        with subprocess.Popen(words, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout is not None
            other.stdout.readline()
            with pytest.raises(StoreError, match="another program has it open"):
                backup(path, target, replace=True)
            other.communicate(b"\n")
    elif state == "open here":
        with open_store(target) as store:
            store.put([plex("newer")])
            with pytest.raises(StoreError, match="another program has it open"):
                backup(path, target, replace=True)
            with open_store(target) as second:  # our own locks still hold
                assert second.put([plex("newest")])[0].new
    backup(path, target, replace=True)
    assert contents_of(target) == before
    assert [name for name in everything(tmp_path) if name.startswith(".")] == []


def test_a_lace_is_not_its_own_backup(tmp_path: Path) -> None:
    path, link = tmp_path / "a.lace", tmp_path / "link.lace"
    filled(path)
    link.symlink_to(path)
    for target in (path, link):
        with pytest.raises(StoreError, match="is the lace itself; nothing was changed"):
            backup(path, target, replace=True)


@pytest.mark.parametrize("appears", ["file", "log"])
@pytest.mark.parametrize("do", [restore, backup])
def test_what_appears_meanwhile_is_not_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, do: Callable[[Path, Path], object], appears: str
) -> None:
    path, target = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)
    appeared = Path(f"{target}-wal") if appears == "log" else target
    copied = upkeep._copy

    def copy_and_wait(*arguments: object) -> None:
        copied(*arguments)  # type: ignore[arg-type]
        appeared.write_bytes(b"somebody's")

    monkeypatch.setattr(upkeep, "_copy", copy_and_wait)
    with pytest.raises(StoreError, match="nothing was changed"):
        do(path, target)
    assert appeared.read_bytes() == b"somebody's"
    assert everything(tmp_path) == {"a.lace", "a.lace-reserve", appeared.name} | (
        everything(tmp_path) & {"a.lace-shm", "a.lace-wal"}
    )


@pytest.mark.parametrize("work", ["backup", "restore", "compact", "repair"])
def test_what_dead_ones_left_is_cleared_away_and_nothing_else(tmp_path: Path, work: str) -> None:
    source, path = tmp_path / "source.lace", tmp_path / "a.lace"
    filled(source)
    if work in ("compact", "repair"):
        filled(path)
    for name in (*LEFT_BY_EARLIER, *LEFT, *OF_OTHERS):
        (tmp_path / name).write_bytes(b"left")
    {
        "backup": lambda: backup(source, path),
        "restore": lambda: restore(source, path),
        "compact": lambda: compact(path),
        "repair": lambda: repair(path, RecordLimits()),
    }[work]()  # type: ignore[no-untyped-call]
    assert {name for name in everything(tmp_path) if name.startswith(".") or name.endswith("part")} == set(OF_OTHERS)


def test_a_file_system_without_links_still_gets_its_lace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, target = tmp_path / "a.lace", tmp_path / "b.lace"
    filled(path)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    backup(path, target)
    assert contents_of(target) == contents_of(path)
    with pytest.raises(StoreError, match="exists already"):
        restore(path, target)


def test_compacting_frees_the_values_of_what_came_and_went(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_store(path, create=True) as store:
        for turn in range(5):
            records = [plex(f"n/{turn}/{at}", headers=(("K", f"{turn} {at}"),)) for at in range(500)]
            store.put(records)
            store.delete(*(record.hash for record in records))
        assert store.stat().values > 7000
    open_store(tmp_path / "empty.lace", create=True).close()
    assert compact(path)[1] <= (tmp_path / "empty.lace").stat().st_size
    with open_store(path) as store:
        assert store.stat().records == 0
        assert store.stat().values <= 11  # what every dictionary begins with
        assert store.check_integrity() == []


def test_records_that_come_and_go_while_a_lace_is_compacted_are_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each point where others can come in between: while records are read, between the rounds, before the swap."""
    path = tmp_path / "a.lace"
    filled(path, 40)
    with open_store(path) as other:
        kept = {record for _, record in other.records_since()}
        other.index_words(lambda _: None)
        number = 0

        def interfere() -> None:
            nonlocal number
            number += 1
            kept.update(one.hash for one in other.put([plex(f"came/{number}/{at}") for at in range(3)]))
            gone = {sorted(kept)[number % len(kept)], plex(f"came/{number}/1").hash}
            assert other.delete(*gone) == len(gone)  # type: ignore[arg-type]
            kept.difference_update(gone)
            other.put_setting("some", f"key {number}", b"value")

        follow = upkeep.Compaction._follow
        swap = upkeep.Compaction._swap

        def interfered_follow(self: upkeep.Compaction) -> None:
            if not self._is_swapping:
                interfere()
            follow(self)
            if not self._is_swapping:
                interfere()

        def interfered_swap(self: upkeep.Compaction) -> None:
            interfere()
            self._is_swapping = True
            swap(self)

        monkeypatch.setattr(upkeep.Compaction, "_is_swapping", False, raising=False)
        monkeypatch.setattr(upkeep.Compaction, "_follow", interfered_follow)
        monkeypatch.setattr(upkeep.Compaction, "_swap", interfered_swap)
        never = StoreThresholds(caught_up_records=-1)
        compact(path, lambda _: interfere() if number < 6 else None, thresholds=never)
    assert number > 20
    with open_store(path) as store:
        assert {record for _, record in store.records_since()} == kept
        assert store.check_integrity() == []
        assert len(store.settings("some")) == number + 1
        assert store.is_searched


@pytest.mark.long
def test_compacting_ends_beside_writers_who_never_pause(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    filled(path, 300)
    over = threading.Event()
    stored: list[str] = []
    told: list[Exception] = []

    def write(worker: int) -> None:
        number = 0
        while not over.is_set():
            try:
                with open_store(path) as store:
                    while not over.is_set():
                        number += 1
                        stored.extend(one.hash for one in store.put([plex(f"w/{worker}/{number}")]))
            except StoreReplaced:
                continue  # compacted: opened again
            except StoreError as error:
                told.append(error)

    writers = [threading.Thread(target=write, args=(worker,)) for worker in range(2)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(6):
            compact(path)
    finally:
        over.set()
        for writer in writers:
            writer.join()
    assert told == []
    with open_store(path) as store:
        assert [text for text in stored if not store.have(lace.RecordHash(text))] == []
        assert store.check_integrity() == []


def test_a_fresh_file_that_lacks_records_does_not_take_the_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    before = contents_of(path)
    adopt = SQLiteStore.adopt
    monkeypatch.setattr(
        SQLiteStore,
        "adopt",
        lambda self, batch, ids: adopt(self, batch, ids) and self.delete(batch.hashes[0]) and _rows(),
    )
    with pytest.raises(StoreError, match="the copy does not have its records: nothing was changed"):
        compact(path)
    monkeypatch.undo()
    assert contents_of(path) == before


def _rows() -> object:
    from lace.store.columns.store import WrittenRows

    return WrittenRows([], [])


@pytest.mark.parametrize("moved", [("",), ("", "-wal")])
def test_a_repair_that_was_killed_between_two_names_is_begun_again(tmp_path: Path, moved: tuple[str, ...]) -> None:
    path = tmp_path / "a.lace"
    kill_a_writer(path)
    for suffix in moved:
        os.rename(f"{path}{suffix}", f"{path}.damaged{suffix}")
    (tmp_path / ".a.lace.0123456789abcdef.part").write_bytes(b"unfinished")
    assert repair(path, RecordLimits()).kept == 3
    with open_store(path) as store:
        assert store.have(plex("killed/2").hash)


def test_what_is_written_while_a_lace_is_repaired_is_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    filled(path)
    script = "import sys; from lace.store import open_store; from store.samples import plex\n"
    script += "with open_store(sys.argv[1]) as store: store.put([plex('meanwhile')])"

    def write(_: int) -> None:
        with open_store(path, read_only=True) as store:
            if not store.have(plex("meanwhile").hash):
                subprocess.run([sys.executable, "-c", script, str(path)], env=ENVIRONMENT, check=True)

    with pytest.raises(StoreError, match="somebody wrote to it meanwhile: nothing was changed"):
        repair(path, RecordLimits(), write)
    assert laces_in(tmp_path) == ["a.lace"]
    repair(path, RecordLimits())
    with open_store(path) as store:
        assert store.have(plex("meanwhile").hash)


def test_two_compacts_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    filled(path, 200)
    before = contents_of(path)
    script = "import sys; from lace import compact; compact(sys.argv[1])"
    words = [sys.executable, "-c", script, str(path)]
    both = [subprocess.Popen(words, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    ends = [one.communicate()[1] for one in both]
    assert all(not end or "is at work on it" in end for end in ends)
    assert "" in ends
    assert contents_of(path) == before
    assert laces_in(tmp_path) == ["a.lace"]


def test_whoever_opens_a_file_that_is_replaced_right_then_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, other = tmp_path / "a.lace", tmp_path / "b.lace"
    for file in (path, other):
        with open_store(file, create=True) as store:
            store.put(assortment())
    from lace.store.columns.file import storefile as opening

    connect = opening.connect

    def connect_late(*arguments: object, **options: object) -> sqlite3.Connection:
        connection = connect(*arguments, **options)  # type: ignore[arg-type]
        if other.exists():
            shutil.move(other, path)
        return connection

    monkeypatch.setattr(opening, "connect", connect_late)
    with pytest.raises(StoreReplaced, match="another file took its place"):
        open_store(path)
    open_store(path).close()
