"""Folders on file systems that are full, read-only, fold case, or cannot be watched: told, and nothing lost.

Each mounts a file system of its own, so they need root and say so where they cannot run.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import lace
from lace.errors import StoreError
from lace.folder.disk import RealDisk
from lace.folder.engine import Folder, FolderLimits
from lace.folder.lacetree import FolderPlace
from lace.folder.memory import Memory
from lace.folder.planner import Do
from lace.folder.syncing import kind_of, syncs_all
from lace.folder.trees import Item, ShownItem
from lace.porcelain.exchange import interlace
from lace.records.fileform import Attributes, FileKind, read_attributes

PLACE = FolderPlace(group="club", app="files")
MIB = 1 << 20
LIMITS = FolderLimits(min_free_bytes=0)
Mounted = Callable[..., Path]


def why_no_mount() -> str:
    """Why this process cannot mount; empty if it can."""
    if not hasattr(os, "geteuid") or os.geteuid() or not sys.platform.startswith("linux"):
        return "mounting needs root on Linux"
    tried = subprocess.run(["mount", "--version"], capture_output=True, check=False)
    return "there is no mount" if tried.returncode else ""


pytestmark = pytest.mark.skipif(bool(why_no_mount()), reason=why_no_mount())


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Mounted]:
    """Mounts a file system in a folder of the test."""
    with ExitStack() as stack:

        def mount(kind: str, *options: str, source: str = "none") -> Path:
            at = tmp_path / f"mnt-{kind}"
            at.mkdir(exist_ok=True)
            done = subprocess.run(
                ["mount", "-t", kind, *(["-o", ",".join(options)] if options else []), source, str(at)],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                pytest.skip(f"{kind} cannot be mounted here: {done.stderr.strip()}")
            stack.callback(subprocess.run, ["umount", "-l", str(at)], check=False)
            return at

        yield mount


@contextmanager
def folder_at(root: Path, own: Path) -> Iterator[Folder]:
    """A folder whose lace lies elsewhere, so that what is full is the folder alone."""
    (root / ".lace").mkdir(exist_ok=True)
    with (
        lace.open(own / "notes.lace", create=not (own / "notes.lace").exists()) as notes,
        RealDisk(root) as disk,
        Memory(own / "agreed") as memory,
    ):
        yield Folder(notes, PLACE, disk, memory, limits=LIMITS, now_ns=time.time_ns)


def lace_with(path: Path, files: dict[str, bytes]) -> lace.Lace:
    notes = lace.open(path, create=True)
    for name, content in files.items():
        notes.put(content, group="club", app="files", name=name)
    return notes


def files_of(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file() and ".lace" not in path.relative_to(root).parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


def own_of(tmp_path: Path, name: str = "own") -> Path:
    (tmp_path / name).mkdir(exist_ok=True)
    return tmp_path / name


def test_a_full_file_system_takes_what_fits_and_the_rest_once_there_is_room(mounted: Mounted, tmp_path: Path) -> None:
    root, own = mounted("tmpfs", "size=4m"), own_of(tmp_path)
    files = {f"{number:02}": bytes([number]) * 300_000 for number in range(20)}
    with lace_with(tmp_path / "other.lace", files) as other, folder_at(root, own) as folder:
        interlace(folder.lace, other, expose="none", their_expose="all")
        report = folder.rounds()
        there = files_of(root)
        assert 5 < len(there) < 20
        assert all(files[name] == content for name, content in there.items())
        assert {trouble.name for trouble in report.troubles} == files.keys() - there.keys()
        assert all("full" in trouble.why or "No space" in trouble.why for trouble in report.troubles)
        assert not list(root.rglob(".lace-*"))  # nothing half written stays and takes room
        assert folder.lace.store.cursor().record == other.store.cursor().record  # nothing was stored as deleted
        subprocess.run(["mount", "-o", "remount,size=16m", str(root)], check=True)
        assert not folder.rounds().troubles
        assert files_of(root) == files


def test_a_disk_without_any_room_for_what_was_agreed_is_told_with_its_place(mounted: Mounted, tmp_path: Path) -> None:
    root = mounted("tmpfs", "size=64k")
    memory = Memory(root / "agreed")
    (root / "rest").write_bytes(bytes(60 << 10))
    memory.agree("a" * 6_000, ShownItem(Item("B.x"), ("P.1",)), None)
    for told in (memory.flush, memory.close):
        with pytest.raises(StoreError, match=r"agreed: No space left on device; the files are as they should be"):
            told()
    memory.close()  # a second time does nothing


def test_a_read_only_file_system_loses_nothing_and_is_told(mounted: Mounted, tmp_path: Path) -> None:
    root, own = mounted("tmpfs", "size=4m"), own_of(tmp_path)
    (root / "a").write_bytes(b"a")
    with lace_with(tmp_path / "other.lace", {"b": b"b"}) as other, folder_at(root, own) as folder:
        folder.rounds()
        interlace(folder.lace, other, expose="all")
        (root / "mine").write_bytes(b"mine")
        subprocess.run(["mount", "-o", "remount,ro", str(root)], check=True)
        with pytest.raises(OSError, match="Read-only"):  # nobody can tell what time it is there
            folder.rounds()
        subprocess.run(["mount", "-o", "remount,rw", str(root)], check=True)
        folder.rounds()
        assert files_of(root) == {"a": b"a", "b": b"b", "mine": b"mine"}


@pytest.fixture(params=["vfat", "exfat"])
def vfat(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system that folds case and refuses some characters: vfat of the kernel, or exFAT by a program."""
    kind = request.param
    make, mount = (
        f"mkfs.{kind}",
        {"vfat": ["mount", "-t", "vfat", "-o", "iocharset=utf8"], "exfat": ["mount.exfat-fuse"]},
    )
    for program in (make, mount[kind][0], "losetup"):
        if shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    image, at = tmp_path / "disk.img", tmp_path / f"mnt-{kind}"
    at.mkdir()
    with image.open("wb") as file:
        file.truncate(16 * MIB)
    subprocess.run([make, str(image)], check=True, capture_output=True)
    found = subprocess.run(["losetup", "-f", "--show", str(image)], capture_output=True, text=True, check=False)
    if found.returncode:
        pytest.skip(f"no loop device: {found.stderr.strip()}")
    device = found.stdout.strip()
    try:
        done = subprocess.run([*mount[kind], device, str(at)], capture_output=True, text=True, check=False)
        if done.returncode or not os.path.ismount(at):
            pytest.skip(f"{kind} cannot be mounted here: {done.stderr.strip()}")
        yield at
        subprocess.run(["umount", "-l", str(at)], check=False)
    finally:
        subprocess.run(["losetup", "-d", device], check=False)


@pytest.mark.clause("082-NAME-08", "082-ATTR-03")
def test_vfat_keeps_what_it_can_hold_and_says_what_it_cannot(vfat: Path, tmp_path: Path) -> None:
    tool = Attributes(executable=True).headers()
    held = {"letter": b"1", "Deep/File": b"2" * 5000, "caf\u00e9": b"3"}
    refused = {"LETTER": b"4", "what?": b"5", "a:b": b"6", 'q"': b"7"}
    with lace_with(tmp_path / "other.lace", held | refused) as other, folder_at(vfat, own_of(tmp_path)) as folder:
        other.put(b"#!", group="club", app="files", name="tool", headers=tool)
        held["tool"] = b"#!"
        interlace(folder.lace, other, expose="none", their_expose="all")
        before = other.store.cursor().record
        report = folder.rounds()
        there = files_of(vfat)
        told = {trouble.name for trouble in report.troubles}
        assert len({name for name in ("letter", "LETTER") if name in told}) == 1  # one of the two is there
        assert there.keys() | told == held.keys() | refused.keys()
        assert {"what?", "a:b", 'q"'} <= told
        assert all((held | refused)[name] == content for name, content in there.items())
        again = folder.rounds()
        assert {trouble.name for trouble in again.troubles} == told
        assert not again.done  # what could not be written is not taken for deleted, now or later
        assert folder.lace.store.cursor().record == before
        (vfat / "Deep" / "File").write_bytes(b"changed")
        assert folder.rounds().done == {Do.TAKE: 1}
        assert folder.lace.get("//club//files//Deep/File") == b"changed"
        (vfat / "new").write_bytes(b"new")  # which of them may be executed this file system cannot tell
        assert folder.rounds().done == {Do.TAKE: 1}
        headers = folder.lace.record("//club//files//new").parts.headers
        assert not read_attributes(headers).executable


@pytest.mark.clause("082-NAME-08")
def test_a_name_whose_case_changes_on_vfat_is_renamed_and_not_lost(vfat: Path, tmp_path: Path) -> None:
    with folder_at(vfat, own_of(tmp_path)) as folder:
        (vfat / "long name of it").write_bytes(b"1")
        folder.rounds()
        (vfat / "long name of it").rename(vfat / "Long Name Of It")
        folder.rounds()
        assert folder.lace.get("//club//files//Long Name Of It") == b"1"
        assert files_of(vfat) == {"Long Name Of It": b"1"}


@pytest.mark.clause("082-NAME-08")
def test_of_two_empty_folders_whose_names_fold_into_one_the_first_stays_and_the_other_is_told(
    vfat: Path, tmp_path: Path
) -> None:
    with (
        lace_with(tmp_path / "other.lace", {}) as other,
        folder_at(vfat, own_of(tmp_path)) as folder,
    ):
        for name in ("d", "D"):
            other.put(b"", group="club", app="files", name=name, headers=Attributes(FileKind.FOLDER).headers())
        interlace(folder.lace, other, expose="none", their_expose="all")
        before = folder.lace.store.cursor().record
        first, again = folder.rounds(), folder.rounds()
        assert [path.name for path in vfat.iterdir() if path.name != ".lace"] == ["D"]
        assert [trouble.name for trouble in first.troubles] == [trouble.name for trouble in again.troubles] == ["d"]
        assert folder.lace.store.cursor().record == before  # neither is taken for deleted


def test_files_are_synced_together_only_where_that_counts(mounted: Mounted, vfat: Path, tmp_path: Path) -> None:
    for path, together in ((mounted("tmpfs"), True), (vfat, False)):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            assert syncs_all(descriptor) is together
        finally:
            os.close(descriptor)
    mounts = tmp_path / "mountinfo"
    mounts.write_text("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw\nbroken\n")
    assert [kind_of(98, 0, mounts), kind_of(98, 1, mounts), kind_of(98, 0, tmp_path / "none")] == ["ext3", "", ""]


@contextmanager
def setting_of(path: str, value: str) -> Iterator[None]:
    """A limit of the kernel, until the block ends."""
    file = Path(path)
    try:
        before = file.read_text()
        file.write_text(value)
    except OSError as error:
        pytest.skip(f"{path} cannot be set here: {error}")
    try:
        yield
    finally:
        file.write_text(before)


def test_without_watches_a_folder_is_looked_at_every_few_seconds_and_says_so(tmp_path: Path) -> None:
    """The limit is one of this user, so nobody else on the machine must need a watch meanwhile: it is left at once."""
    from lace.folder.watching import watched

    (tmp_path / "deep" / "er").mkdir(parents=True)
    with (
        lace.open(tmp_path / "notes.lace", create=True) as notes,
        setting_of("/proc/sys/fs/inotify/max_user_watches", "0"),
        watched(tmp_path, notes) as news,
    ):
        until = time.monotonic() + 20
        while not news.trouble and time.monotonic() < until:
            time.sleep(0.01)
        said = news.trouble
    assert "limit" in said
