"""A disk that is really full: removing still works, storing says why not, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import lace
from lace.errors import StoreFull
from lace.limits import MIB, StoreLimits
from lace.notation.identifiers import RecordHash
from lace.store import open_store
from lace.store.columns.file.reserve import SUFFIX, Reserve
from store.samples import blob, plex
from store.test_durability import require_whole

SMALL = StoreLimits(min_free_bytes=2 * MIB)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(lace.__path__[0]).parent)}


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 24 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "none", str(place)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("A FULL DISK WAS NOT TRIED: mounting a small tmpfs needs root")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], capture_output=True, check=True)


def fill(place: Path) -> Path:
    """What another program does: every last block."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (MIB, 4096, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    assert os.statvfs(place).f_bavail == 0
    return filler


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lace.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT, check=False)


@pytest.mark.long
def test_removing_works_when_another_program_took_the_last_block(small_disk: Path) -> None:
    path = small_disk / "a.lace"
    records = [plex(f"n/{number}", data=bytes(20_000)) for number in range(100)]
    with open_store(path, create=True, limits=SMALL) as store:
        store.put(records)
    filler = fill(small_disk)
    refused = run("put", str(path), str(Path(__file__)), "--group", "u", "--app", "a", "--name", "n")
    assert refused.returncode != 0
    shown = run("ls", str(path))
    assert shown.returncode == 0, shown.stderr
    removed = run("rm", str(path), records[0].hash, records[1].hash)
    assert removed.returncode == 0, removed.stderr
    with open_store(path, limits=SMALL) as store:
        assert not store.have(records[0].hash)
        require_whole(store, [record.hash for record in records[2:]])
    filler.unlink()
    with open_store(path, limits=SMALL) as store:
        assert store.put([plex("there is room again")])[0].new
    assert Path(f"{path}{SUFFIX}").stat().st_blocks * 512 >= SMALL.min_reserve_bytes


def test_removing_works_in_a_store_that_was_open_when_the_disk_got_full(small_disk: Path) -> None:
    path = small_disk / "a.lace"
    records = [blob(b"%d" % number * 5000) for number in range(50)]
    with open_store(path, create=True, limits=SMALL) as store:
        store.put(records)
        fill(small_disk)
        with pytest.raises(StoreFull):
            store.put([blob(b"one more")])
        assert store.delete(*(record.hash for record in records[:40])) == 40
        require_whole(store, [record.hash for record in records[40:]])


def test_storing_stops_while_there_is_room_to_remove(small_disk: Path) -> None:
    stored: list[RecordHash] = []
    with open_store(small_disk / "a.lace", create=True, limits=SMALL) as store:

        def put_for_ever() -> None:
            for number in range(10_000):
                stored.extend(one.hash for one in store.put([blob(b"%09d" % number * 20_000)]))

        with pytest.raises(StoreFull, match="kept so that records can still be removed") as refusal:
            put_for_ever()
        assert "everything acknowledged before is safe" in str(refusal.value)
        assert os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize > MIB
        assert len(stored) > 20
        assert store.delete(*stored[:10]) == 10
        require_whole(store, stored[10:])


def test_a_reserve_is_really_on_the_disk_and_grows_with_the_store(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    path.write_bytes(bytes(1000))
    reserve, file = Reserve(path, StoreLimits()), Path(f"{path}{SUFFIX}")
    reserve.keep()
    if file.stat().st_blocks == 0:
        warnings.warn("this file system does not say what a file takes", stacklevel=1)
    assert file.stat().st_size == MIB
    assert file.stat().st_mode & 0o777 == 0o600
    os.truncate(path, 64 * MIB)
    reserve.keep()
    assert file.stat().st_size == 4 * MIB
    os.truncate(path, 1 << 40)
    reserve.keep()
    assert file.stat().st_size == 32 * MIB
    assert reserve.release()
    assert not reserve.release()


def test_whoever_wants_none_has_none(tmp_path: Path) -> None:
    limits = StoreLimits(min_free_bytes=0, max_reserve_bytes=0)
    with open_store(tmp_path / "a.lace", create=True, limits=limits) as store:
        store.put([blob(b"x")])
    assert not Path(f"{tmp_path / 'a.lace'}{SUFFIX}").exists()


def test_more_than_the_disk_has_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with open_store(tmp_path / "a.lace", create=True, limits=StoreLimits(min_free_bytes=1 << 60)) as store:
        with pytest.raises(StoreFull, match="the disk is full"):
            store.put([blob(b"x")])
        assert store.stat().records == 0


def test_whoever_opens_a_lace_says_what_its_file_may_use_and_a_server_over_it_goes_by_that(tmp_path: Path) -> None:
    limits = lace.StoreLimits(min_free_bytes=1 << 60)
    with lace.open(tmp_path / "full.lace", create=True, store_limits=limits) as full, lace.open(":memory:") as notes:
        with pytest.raises(lace.StoreFull, match="the disk is full"):
            full.put(b"x", group="u", app="a", name="n")
        notes.put(b"x", group="u", app="a", name="n")
        address = f"unix:{tmp_path / 'full.sock'}"
        with lace.serve(full, address):
            outcome = lace.connect(notes, address, expose="all")
        assert not outcome.is_converged
        assert full.stat().records == 0
