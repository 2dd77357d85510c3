"""A lace as files: placeholders for what is elsewhere, fetched by a second process when they are opened."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lace
from lace.folder.setup import FolderSettings, opened_folder, parse_place, write_settings
from lace.porcelain.exchange import interlace

LACE = [sys.executable, "-m", "lace.cli"]
LARGE = random.Random(1).randbytes(3_000_000)


def why_no_mount() -> str:
    """Why this machine cannot mount; empty if it can."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return "no /dev/fuse that we may open"
    if shutil.which("fusermount3") is None:
        return "libfuse 3 is not installed"
    pytest.importorskip("mfusepy")
    return ""


pytestmark = pytest.mark.skipif(bool(why_no_mount()), reason=why_no_mount())


def run(*words: str | Path, code: int = 0) -> str:
    done = subprocess.run([*LACE, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


class Mount(subprocess.Popen[str]):
    """`lace mount`, and what it said."""

    said = ""


@contextmanager
def mounted(*words: str | Path, at: Path, verb: str = "mount") -> Iterator[Mount]:
    """`lace mount`, until the block ends."""
    at.mkdir(exist_ok=True)
    process = Mount([*LACE, verb, *map(str, words)], stderr=subprocess.PIPE, text=True)
    try:
        until = time.monotonic() + 60
        while not os.path.ismount(at):
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < until
            time.sleep(0.02)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(30)
        finally:
            subprocess.run(["fusermount3", "-uzq", str(at)], check=False)
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.said = process.stderr.read()
            process.stderr.close()


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """A lace that holds everything."""
    root = tmp_path / "files"
    (root / "deep" / "er").mkdir(parents=True)
    (root / "a").write_bytes(b"short")
    (root / "deep" / "large").write_bytes(LARGE)
    (root / "deep" / "er" / "caf\udce9 {x}").write_bytes(LARGE[:50_000])
    (root / "deep" / "tool").write_bytes(b"#!" + LARGE[:2_000])
    (root / "deep" / "tool").chmod(0o755)
    (root / "hollow").mkdir()
    (root / "to").symlink_to("deep/large")
    os.utime(root / "deep" / "large", ns=(10**18 + 7, 10**18 + 7))
    settings = FolderSettings(lace=str(tmp_path / "office.lace"), place=parse_place("//g//files"))
    write_settings(root, settings)
    with lace.open(tmp_path / "office.lace", create=True) as notes, opened_folder(root, settings, notes) as folder:
        folder.rounds()
    return tmp_path / "office.lace"


def copied(source: Path, path: Path) -> Path:
    """Another lace with all that the place holds."""
    with lace.open(path, create=True) as notes, lace.open(source) as there:
        interlace(notes, there, select="//g//files//", expose="none", their_expose="all", their_select="all")
    return path


def empty(path: Path) -> Path:
    lace.open(path, create=True).close()
    return path


def stored_bytes(path: Path) -> int:
    with lace.open(path, read_only=True) as notes:
        return notes.stat().stored_bytes


def blobs(path: Path) -> int:
    with lace.open(path, read_only=True) as notes:
        return sum(record.type == "B" for _, record in notes.store.records_since())


@pytest.mark.long
def test_what_a_peer_has_is_shown_at_once_and_fetched_when_it_is_opened(office: Path, tmp_path: Path) -> None:
    here, at = empty(tmp_path / "here.lace"), tmp_path / "mnt"
    with mounted(here, at, office, "--at", "//g//files", at=at) as process:
        assert sorted(os.listdir(at)) == ["a", "deep", "hollow", "to"]
        assert os.listdir(at / "hollow") == []
        large = (at / "deep" / "large").stat()
        assert (large.st_size, large.st_mtime_ns, large.st_blocks, large.st_mode & 0o777) == (
            len(LARGE), 10**18 + 7, 0, 0o444)  # fmt: skip
        assert (at / "deep" / "tool").stat().st_mode & 0o777 == 0o555
        assert os.readlink(at / "to") == "deep/large"
        assert blobs(here) == 0
        assert (at / "a").read_bytes() == b"short"
        assert blobs(here) == 0  # what is short comes with its version
        read = subprocess.run(["cat", at / "to"], capture_output=True, check=True).stdout  # another process
        assert read == LARGE
        assert 0 < blobs(here) < blobs(office)
        with (at / "deep" / "large").open("rb") as file:
            file.seek(1_234_567)
            assert file.read(100) == LARGE[1_234_567:1_234_667]
        time.sleep(0.5)  # what the kernel believes
        assert (at / "deep" / "large").stat().st_blocks >= len(LARGE) // 512
        for name in ("a", "new"):
            with pytest.raises(OSError, match="Read-only"):
                (at / name).write_bytes(b"x")
        with lace.open(office) as notes:
            notes.put(LARGE[:9_000], group="g", app="files", name="later")
        until = time.monotonic() + 30
        while "later" not in os.listdir(at):  # what the peer has meanwhile follows
            assert time.monotonic() < until
            time.sleep(0.1)
        assert (at / "later").read_bytes() == LARGE[:9_000]
    assert process.returncode == 0, process.said
    assert not os.path.ismount(at)


@pytest.mark.long
def test_freed_content_stays_in_sight_and_comes_again_or_is_an_error_that_says_why(
    office: Path, tmp_path: Path
) -> None:
    here, at = copied(office, tmp_path / "here.lace"), tmp_path / "mnt"
    assert blobs(here) == blobs(office)
    before = stored_bytes(here)
    keep = tmp_path / "keep.dl"
    keep.write_text("Keep(P) :- Field(P, 'Name', '0', 'deep/tool').\n")
    free = ["free", here, "//g//files", "--from", office, "--keep", keep, "--json"]
    said = json.loads(run(*free))
    assert (said["versions"], said["kept"], said["applied"]) == (2, 1, False)
    assert blobs(here) == blobs(office)  # nothing went
    assert json.loads(run(*free, "--apply"))["bytes"] == said["bytes"] == len(LARGE) + 50_000
    assert blobs(here) == 1
    assert before - stored_bytes(here) >= said["bytes"]
    with mounted(here, at, at=at) as process:  # alone: nobody to fetch from
        assert (at / "deep" / "large").stat().st_size == len(LARGE)
        assert (at / "deep" / "tool").read_bytes() == b"#!" + LARGE[:2_000]
        with pytest.raises(OSError, match="Input/output error"):
            (at / "deep" / "large").read_bytes()
    assert process.returncode == 0, process.said
    with mounted(here, at, office, at=at):
        assert (at / "deep" / "large").read_bytes() == LARGE


@pytest.mark.long
def test_only_what_every_peer_says_it_has_is_freed(office: Path, tmp_path: Path) -> None:
    here, other = copied(office, tmp_path / "here.lace"), copied(office, tmp_path / "other.lace")
    with lace.open(other) as notes:
        part = next(record for _, record in notes.store.records_since() if record.type == "B")
        notes.delete(part)
    with lace.open(here) as notes:
        notes.put(b"mine" * 1000, group="g", app="files", name="mine", cut=lambda source: iter([source.read(9999)]))
    run("free", here, "//g//files", "--from", office, "--from", other, "--apply")
    with lace.open(here, read_only=True) as notes:
        assert notes.store.have(part)
        assert notes.get("//g//files//mine") == b"mine" * 1000
    assert blobs(here) == 2


def test_a_lace_in_the_folder_that_would_hide_it_is_refused(tmp_path: Path) -> None:
    empty(tmp_path / "x.lace")
    assert (
        "would hide"
        in subprocess.run(
            [*LACE, "mount", tmp_path / "x.lace", tmp_path], capture_output=True, text=True, check=False
        ).stderr
    )


@pytest.mark.long
def test_sync_on_demand_shows_a_folder_over_a_new_lace(office: Path, tmp_path: Path) -> None:
    here, at = tmp_path / "new.lace", tmp_path / "mnt"
    words = (at, office, "--on-demand", "--lace", here, "--at", "//g//files")
    with mounted(*words, at=at, verb="sync") as process:
        assert (at / "deep" / "er" / "caf\udce9 {x}").read_bytes() == LARGE[:50_000]
        assert blobs(here) == 1
    assert process.returncode == 0, process.said
    assert os.listdir(at) == []
