"""A folder on a real file system, as the engine sees it.

Rule: every path is walked without following a link. A file is written beside its place, synced and renamed; before
anything is replaced or removed, whoever asked says how it looked, and it must look like that still.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from lace.errors import InvalidText, LaceError
from lace.folder.memory import Signature
from lace.folder.syncing import sync_files_of, syncs_all
from lace.notation.closing import Closing
from lace.porcelain.openfolder import CREATE, OWN, READ, OpenFolder, is_ours, name_beside, with_executable, write_all
from lace.records.fileform import FileKind

FilePath = tuple[bytes, ...]

WRITTEN_AT_ONCE = 512  # files under names of ours before the first takes its own
SYNCED_TOGETHER = 16  # from here on one sync of the file system costs less than one for each file
NOT_KEPT = "neither a file nor a link nor a folder"
SAME_NAME = "this file system takes its name for that of another file here"


class Found(NamedTuple):
    """What a scan found at a path."""

    kind: FileKind
    executable: bool
    looked: Signature


class ChangedMeanwhile(LaceError):
    """A file is not as it was a moment ago; it is looked at again in the next round."""


class DiskScan(NamedTuple):
    """What a scan found, and where it could not look."""

    found: dict[FilePath, Found]
    closed: dict[FilePath, str]  # files and folders that cannot be kept or read, with the reason


NoteFound = Callable[[FilePath, Found], None]


class FileWrite(NamedTuple):
    """A file to put at a path that looks as expected."""

    path: FilePath
    content: Iterable[bytes | memoryview]
    expected: Found | None
    executable: bool
    time_ns: int | None


class Disk(Protocol):
    """What the engine needs of a file system; the simulator has another one."""

    @property
    def keeps_executable(self) -> bool: ...
    def scan(self, ignored: Callable[[FilePath, bool], bool]) -> DiskScan: ...
    def walk(self, ignored: Callable[[FilePath, bool], bool], note: NoteFound) -> dict[FilePath, str]: ...
    def opened(self, path: FilePath) -> AbstractContextManager[StableFile]: ...
    def read(self, path: FilePath, expected: Found) -> bytes: ...
    def link_target(self, path: FilePath) -> bytes: ...
    def look(self, path: FilePath) -> Found | None: ...
    def write_each(self, writes: Iterable[FileWrite]) -> Iterator[Found | Exception]: ...
    def make_link(self, path: FilePath, target: bytes, expected: Found | None) -> Found: ...
    def make_folder(self, path: FilePath) -> Found: ...
    def remove(self, path: FilePath, expected: Found) -> None: ...
    def set_executable(self, path: FilePath, expected: Found, *, executable: bool) -> Found: ...
    def prune(self, path: FilePath) -> None: ...
    def free_bytes(self) -> int: ...
    def now_ns(self) -> int: ...
    def is_there(self) -> bool: ...


class StableFile:
    """An open file that must not change while it is read."""

    def __init__(self, file: BinaryIO, look: Callable[[], Found]) -> None:
        self._file = file
        self._look = look
        self.found = look()

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self.found.looked.size

    def read(self, size: int) -> bytes:
        """The next bytes; Changed if the file is not as it was when it was opened."""
        data = self._file.read(size)
        if self._look() != self.found:
            raise ChangedMeanwhile("the file changed while it was read")
        return data


class RealDisk(Closing):
    """The file system of this machine."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._below = OpenFolder(root)
        self._identity = self._identify()
        self._syncs_together = syncs_all(self._below.descriptor)

    def _identify(self) -> tuple[int, int] | None:
        try:
            there = os.stat(self.root)
        except OSError:
            return None
        return there.st_dev, there.st_ino

    @cached_property
    def keeps_executable(self) -> bool:
        """Whether a file here is executable or not as it was told; vfat and exFAT say one of the two of every file."""
        own = self.root / os.fsdecode(OWN) / "clock"
        own.touch()
        found = set()
        for mode in (0o700, 0o600):
            with suppress(OSError):
                own.chmod(mode)
                found.add((mode, bool(own.stat().st_mode & stat.S_IXUSR)))
        return found == {(0o700, True), (0o600, False)}

    def is_there(self) -> bool:
        """Whether the folder is the one that was opened, and knows itself."""
        return self._identify() == self._identity and (self.root / os.fsdecode(OWN)).is_dir()

    def now_ns(self) -> int:
        """The time by the clock of the file system, which may be that of another machine."""
        own = self.root / os.fsdecode(OWN) / "clock"
        own.touch()
        return own.stat().st_mtime_ns

    def free_bytes(self) -> int:
        """How much may be written."""
        return (there := os.statvfs(self.root)).f_bavail * there.f_frsize

    def scan(self, ignored: Callable[[FilePath, bool], bool]) -> DiskScan:
        """Everything below the folder but what is ignored."""
        found: dict[FilePath, Found] = {}
        return DiskScan(found, self.walk(ignored, found.__setitem__))

    def walk(self, ignored: Callable[[FilePath, bool], bool], note: NoteFound) -> dict[FilePath, str]:
        """Note all that `scan` finds, one after the other; where it could not look."""
        self._below.leave()
        closed: dict[FilePath, str] = {}
        self._walk(os.fsencode(self.root), (), closed, ignored, note)
        return closed

    def _walk(
        self,
        place: bytes,
        above: FilePath,
        closed: dict[FilePath, str],
        ignored: Callable[[FilePath, bool], bool],
        note: NoteFound,
    ) -> bool:
        """Whether something is in this folder."""
        try:
            with os.scandir(place) as entries:
                listed = list(entries)
        except FileNotFoundError:
            return False
        except OSError as error:
            closed[above] = error.strerror or str(error)
            return True
        is_full = False
        for entry in listed:
            path = (*above, entry.name)
            if is_ours(path):
                if path[0] != OWN:
                    with suppress(OSError):
                        os.unlink(entry.path)  # a process that was killed left it; only one works here at a time
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            if ignored(path, is_folder):
                is_full = True
            elif is_folder:
                is_full = True
                if not self._walk(entry.path, path, closed, ignored, note):
                    note(path, Found(FileKind.FOLDER, False, _NO_LOOK))
            else:
                is_full = True
                try:
                    found = _found(entry.stat(follow_symlinks=False))
                except FileNotFoundError:
                    continue
                if found is None:
                    closed[path] = NOT_KEPT
                else:
                    note(path, found)
        return is_full

    def look(self, path: FilePath) -> Found | None:
        """What is at a path now."""
        try:
            there = os.stat(path[-1], dir_fd=self._parent(path), follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        found = _found(there)
        if found is None:
            raise ChangedMeanwhile("something that is not a regular file has this path")
        return found

    def _parent(self, path: FilePath, *, make: bool = False) -> int:
        return self._below.parent(path[:-1], make=make)

    @contextmanager
    def opened(self, path: FilePath) -> Iterator[StableFile]:
        """A file to read."""
        descriptor = os.open(path[-1], READ, dir_fd=self._parent(path))
        with os.fdopen(descriptor, "rb", buffering=0) as file:

            def look() -> Found:
                found = _found(os.fstat(descriptor))
                if found is None or found.kind is not FileKind.FILE:
                    raise ChangedMeanwhile("something that is not a regular file has this path")
                return found

            yield StableFile(file, look)

    def read(self, path: FilePath, expected: Found) -> bytes:
        """All of a file that looks as expected, before and after."""
        size = expected.looked.size
        descriptor = os.open(path[-1], READ, dir_fd=self._parent(path))
        try:
            is_same = _found(os.fstat(descriptor)) == expected
            data = os.read(descriptor, size + 1) if is_same else b""
            if not is_same or len(data) != size or _found(os.fstat(descriptor)) != expected:
                raise ChangedMeanwhile("the file changed while it was read")
        finally:
            os.close(descriptor)
        return data

    def link_target(self, path: FilePath) -> bytes:
        """Where a link leads."""
        return os.readlink(path[-1], dir_fd=self._parent(path))

    def _require(self, path: FilePath, expected: Found | None) -> None:
        found = self.look(path)
        if found == expected:
            return
        if expected is None:
            self._require_own_name(path)
        raise ChangedMeanwhile("the file changed meanwhile")

    def _require_own_name(self, path: FilePath) -> None:
        """What is at a path is there under this very name, not under one that the file system takes for the same."""
        if path[-1] not in map(os.fsencode, os.listdir(self._parent(path))):
            raise InvalidText(SAME_NAME, rule="file-name-folds")  # 082-NAME-08

    def write_each(self, writes: Iterable[FileWrite]) -> Iterator[Found | Exception]:
        """Put files at their paths; for each in turn how it looks then, or why it is not there.

        What many files are made of is synced together before the first of them takes its name.
        """
        coming = iter(writes)
        while some := list(islice(coming, WRITTEN_AT_ONCE)):
            is_together = len(some) >= SYNCED_TOGETHER and self._syncs_together
            beside = [self._write_beside(write, at, sync=not is_together) for at, write in enumerate(some)]
            if is_together:
                sync_files_of(self._below.descriptor)
            for write, name in zip(some, beside, strict=True):
                yield name if isinstance(name, Exception) else self._put_in_place(write, name)

    def _write_beside(self, write: FileWrite, number: int, *, sync: bool) -> bytes | Exception:
        """Write a file under a name of ours in the folder it belongs to; that name."""
        beside = name_beside(number)
        try:
            parent = self._parent(write.path, make=True)
            mode = 0o777 if write.executable else 0o666
            try:
                descriptor = os.open(beside, CREATE, mode, dir_fd=parent)
            except FileExistsError:  # a process that was killed left it, perhaps under a second name
                os.unlink(beside, dir_fd=parent)
                descriptor = os.open(beside, CREATE, mode, dir_fd=parent)
            try:
                for piece in write.content:
                    write_all(descriptor, piece)
                if write.expected is not None and write.expected.kind is FileKind.FILE:
                    mode = os.stat(write.path[-1], dir_fd=parent, follow_symlinks=False).st_mode
                    os.fchmod(descriptor, with_executable(mode, executable=write.executable))
                if write.time_ns is not None:
                    os.utime(descriptor, ns=(write.time_ns, write.time_ns))
                if sync:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except (OSError, LaceError) as error:
            self._drop(write.path, beside)
            return error
        return beside

    def _put_in_place(self, write: FileWrite, beside: bytes) -> Found | Exception:
        """Give a file that was written the name that it is for."""
        try:
            parent = self._parent(write.path)
            self._require(write.path, write.expected)
            if write.expected is None:
                self._place(beside, write.path[-1], parent)
            else:
                os.rename(beside, write.path[-1], src_dir_fd=parent, dst_dir_fd=parent)
            return self._now(write.path)
        except (OSError, LaceError) as error:
            self._drop(write.path, beside)
            return error

    def _drop(self, path: FilePath, beside: bytes) -> None:
        with suppress(OSError):
            os.unlink(beside, dir_fd=self._parent(path))

    def _place(self, beside: bytes, name: bytes, parent: int) -> None:
        """Give a file its name, never over one that came meanwhile, where the file system can tell."""
        try:
            os.link(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK):
                raise
            os.rename(beside, name, src_dir_fd=parent, dst_dir_fd=parent)
        else:
            os.unlink(beside, dir_fd=parent)

    def _now(self, path: FilePath) -> Found:
        found = self.look(path)
        if found is None:
            raise ChangedMeanwhile("the file is gone")
        return found

    def make_link(self, path: FilePath, target: bytes, expected: Found | None) -> Found:
        """Put a link at a path that looks as expected."""
        parent = self._parent(path, make=True)
        self._require(path, expected)
        if expected is None:
            os.symlink(target, path[-1], dir_fd=parent)
        else:
            beside = name_beside(0)
            os.symlink(target, beside, dir_fd=parent)
            os.rename(beside, path[-1], src_dir_fd=parent, dst_dir_fd=parent)
        return self._now(path)

    def make_folder(self, path: FilePath) -> Found:
        """Make an empty folder; one that is there stays."""
        self._below.parent(path)
        self._require_own_name(path)
        return Found(FileKind.FOLDER, False, _NO_LOOK)

    def remove(self, path: FilePath, expected: Found) -> None:
        """Remove what looks as expected."""
        parent = self._parent(path)
        if expected.kind is FileKind.FOLDER:
            os.rmdir(path[-1], dir_fd=parent)
        else:
            self._require(path, expected)
            os.unlink(path[-1], dir_fd=parent)

    def set_executable(self, path: FilePath, expected: Found, *, executable: bool) -> Found:
        """Let the owner execute a file, or no longer."""
        descriptor = os.open(path[-1], READ, dir_fd=self._parent(path))
        try:
            self._require(path, expected)
            os.fchmod(descriptor, with_executable(os.fstat(descriptor).st_mode, executable=executable))
        finally:
            os.close(descriptor)
        return self._now(path)

    def prune(self, path: FilePath) -> None:
        """Remove the empty folders that a path leads through."""
        self._below.leave()
        for depth in range(len(path) - 1, 0, -1):
            try:
                os.rmdir(path[depth - 1], dir_fd=self._parent(path[:depth]))
            except OSError:
                return

    def close(self) -> None:
        """Let go of the folder; a second time does nothing."""
        self._below.close()


_NO_LOOK = Signature(0, 0, 0, 0)


def _found(there: os.stat_result) -> Found | None:
    looked = Signature(there.st_size, there.st_mtime_ns, there.st_ctime_ns, there.st_ino)
    if stat.S_ISREG(there.st_mode):
        return Found(FileKind.FILE, bool(there.st_mode & stat.S_IXUSR), looked)
    if stat.S_ISLNK(there.st_mode):
        return Found(FileKind.LINK, False, looked)
    return Found(FileKind.FOLDER, False, _NO_LOOK) if stat.S_ISDIR(there.st_mode) else None
