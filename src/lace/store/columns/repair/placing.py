"""How upkeep makes files and puts them in their places.

Rule: one at a time does upkeep to a lace; what it makes has a name that nobody else has until it is finished, and what
dead ones left is cleared away by the next. A finished file never takes the place of one that is in use or has a log,
and takes no place that is not free unless that is asked for.
"""

from __future__ import annotations

import errno
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from lace.errors import StoreError
from lace.store.columns.file import openers

try:
    import fcntl
except ImportError:  # where there is none, nobody can rename a file that is open
    fcntl = None  # type: ignore[assignment]

FILES = ("", "-wal", "-shm", "-journal")
SHARED_FIRST, SHARED_BYTES = 0x40000002, 510  # what SQLite locks in a file that it has open
NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS)
NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
TRIES = 100  # to take a lock whose file its holder deletes each time


@contextmanager
def upkeep(path: Path, work: str) -> Iterator[Path]:
    """Be the only one who does upkeep to a lace, with an empty file of one's own beside it that goes in the end."""
    try:
        lock, is_alone = _lock(path, work)
        try:
            if is_alone:
                _clear(path)
            part = path.with_name(f".{path.name}.{os.urandom(8).hex()}.part")
            os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            try:
                yield part
            finally:
                remove(part)
        finally:
            with suppress(OSError):
                _lock_file(path).unlink()
            os.close(lock)
    except OSError as error:
        raise StoreError(f"{path}: {error.strerror or error}: nothing was changed") from error


def _lock_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.upkeep")


def _lock(path: Path, work: str) -> tuple[int, bool]:
    """Take the lock of a lace; its descriptor, and whether this file system has locks at all."""
    file = _lock_file(path)
    for _ in range(TRIES):
        handle = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            is_alone = _try_lock(handle, path)
            if _is_at(handle, file):
                os.ftruncate(handle, 0)
                os.write(handle, f"lace {work} (process {os.getpid()})".encode())
                return handle, is_alone
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # its holder deleted it in the end, and another process may have made a new one
    raise StoreError(f"{path}: others do upkeep to it one after the other: nothing was changed, try again")


def _try_lock(handle: int, path: Path) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        who = os.read(handle, 200).decode(errors="replace") or "another upkeep command"
        raise StoreError(f"{path}: {who} is at work on it: nothing was changed, try again when it is done") from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return False
    return True


def _is_at(handle: int, file: Path) -> bool:
    try:
        there = file.stat()
    except FileNotFoundError:
        return False
    here = os.fstat(handle)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def _clear(path: Path) -> None:
    """Remove what upkeep that was killed has left, of this version and of earlier ones; its caller has the lock."""
    for file in path.parent.iterdir():
        if re.fullmatch(_own(path), file.name):
            file.unlink(missing_ok=True)


def _own(path: Path) -> str:
    """The names of what upkeep makes beside a file."""
    return rf"\.{re.escape(path.name)}\.([0-9a-f]{{16}}\.part|part|compact|repair)(-wal|-shm|-journal|-reserve)?"


def remove(path: Path) -> None:
    """Delete a file of SQLite's and what it keeps beside it."""
    for suffix in FILES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def put_in_place(part: Path, path: Path, *, replace: bool) -> None:
    """Give a finished file its name, durably; its caller does upkeep to `path`."""
    if replace and path.exists():
        fold_log(path)
        with unused(path):
            _require_no_log(path)
            _take_place(part, path)
        return
    _require_finished(part, path)
    _sync(part)
    _require_no_log(path)
    try:
        _link(part, path)
    except FileExistsError:
        raise StoreError(f"{path} exists already; nothing was changed") from None
    _confirm(path)


def _take_place(part: Path, path: Path) -> None:
    """Replace a file that nobody uses and that has no log."""
    _require_finished(part, path)
    _sync(part)
    for suffix in FILES[1:]:  # empty ones, and an index of nothing
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    os.replace(part, path)
    _confirm(path)


def _require_finished(part: Path, path: Path) -> None:
    """A file whose log could not be copied into it when it was closed lacks what is in the log."""
    if _logs(part):
        raise StoreError(f"{path}: the disk did not take all of it: nothing was changed")


def _confirm(path: Path) -> None:
    try:
        _sync(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path}: it is in its place and whole, but the disk did not confirm it ({error.strerror}): a power cut may"
            " undo that"
        ) from error


def put_in_place_of(part: Path, path: Path, aside: Path) -> None:
    """Give a finished file the name of another, which gets a new one; its caller keeps that from being used.

    At no moment is there no file, unless the other one has a log: then that moves too, before anything can be taken for
    a log of ours, and `resume_move` goes back if we are killed right then.
    """
    if not _logs(path):
        _link(path, aside)
        if path.exists():
            _take_place(part, path)
            return
    moved: list[str] = []
    try:
        for suffix in FILES:
            if Path(f"{path}{suffix}").exists():
                os.rename(f"{path}{suffix}", f"{aside}{suffix}")
                moved.append(suffix)
    except OSError:
        for suffix in reversed(moved):
            os.rename(f"{aside}{suffix}", f"{path}{suffix}")
        raise
    put_in_place(part, path, replace=False)


def resume_move(path: Path, aside: str) -> None:
    """Give a file its name back if the process that moved it aside was killed before another file took its place."""
    if path.exists() or not any(re.fullmatch(_own(path), file.name) for file in path.parent.iterdir()):
        return
    moved = [file for file in path.parent.iterdir() if re.fullmatch(rf"{re.escape(aside)}\d*", file.name)]
    if not moved:
        return
    latest = max(moved, key=lambda file: file.stat().st_ctime_ns)
    with upkeep(path, "repair"):
        for suffix in reversed(FILES):  # the file last: from then on it has all of its log
            if Path(f"{latest}{suffix}").exists():
                _link(Path(f"{latest}{suffix}"), Path(f"{path}{suffix}"))
        for suffix in FILES:
            Path(f"{latest}{suffix}").unlink(missing_ok=True)


def _link(part: Path, path: Path) -> None:
    """A second name for a file, unless it is taken."""
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(path) from None
        os.rename(part, path)  # a file system without links: here somebody could come in between


def fold_log(path: Path) -> None:
    """Copy the log of a file into it and delete it, if nobody has the file open; what cannot be read stays as it is."""
    if openers.is_open_here(path) or not _logs(path):
        return
    with suppress(sqlite3.Error):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        finally:
            connection.close()  # the last one copies the log into the file


def signs_of(path: Path, file: BinaryIO) -> tuple[object, ...]:
    """What differs when somebody has written to a file: its header, and length and time of it and of its log.

    Read by the descriptor that keeps it from being used: to close another one would end that.
    """
    stats = [one.stat() for one in (path, *_logs(path))]
    file.seek(0)
    return (file.read(100), *((status.st_size, status.st_mtime_ns) for status in stats))


def _logs(path: Path) -> list[Path]:
    files = (Path(f"{path}-wal"), Path(f"{path}-journal"))
    return [file for file in files if file.exists() and file.stat().st_size > 0]


def _require_no_log(path: Path) -> None:
    if logs := _logs(path):
        names = " and ".join(file.name for file in logs)
        raise StoreError(
            f"{path}: {names} beside it would be taken for its log: nothing was changed; move it away, or choose"
            " another name"
        )


@contextmanager
def unused(path: Path) -> Iterator[BinaryIO]:
    """Keep a file from being used; StoreError if a program has it open, which would go on writing to the old one.

    SQLite has a lock on some bytes far behind the end of every file that it has open, damaged or not.
    """
    refusal = f"{path}: another program has it open: end that one first; nothing was changed"
    if openers.is_open_here(path):  # a process's own locks do not stop it, and to look for them would end them
        raise StoreError(refusal)
    is_ours = os.access(path, os.W_OK)
    with path.open("rb+" if is_ours else "rb", buffering=0) as file:
        if fcntl is not None and is_ours:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_BYTES, SHARED_FIRST)
            except BlockingIOError:
                raise StoreError(refusal) from None
        yield cast(BinaryIO, file)


def _sync(path: Path) -> None:
    """See that a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a folder that cannot be synced
            raise
    finally:
        os.close(handle)


def real(path: Path) -> Path:
    """The file itself, wherever a link to it stands: there its log is too."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path
