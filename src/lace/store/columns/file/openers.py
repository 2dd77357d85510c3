"""Who has a store file open for writing, and what that tells about a copy of it.

Rule: a writer's name is in the main file before any of its writes is in the log alone, and a name leaves the file
before SQLite deletes the log. Where a name cannot be taken out, the log stays: its connection is not closed. So a file
with a name in it and no log beside it is a copy without its log, or lost its log.

A name is not a sign of that in the very file for which it was written: its program has died, and the log was
folded in by the last program that closed the file, ours or any other that speaks SQLite.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from enum import Enum
from pathlib import Path
from threading import Lock, RLock
from typing import NamedTuple
from urllib.parse import quote

from lace.errors import StoreDamaged

_SQLITE = b"SQLite format 3\0"
_live: set[str] = set()  # the names of stores that this process has open
_stranded: dict[tuple[int, int, int], sqlite3.Connection] = {}  # one for each file whose log has to stay
_stranding = Lock()
_open_here: Counter[tuple[int, int, int]] = Counter()  # how many connections this process has to a file
_looking = RLock()  # held while the index of a log is read, and while a connection is announced: also by a finalizer


def _unlocked_in_child() -> None:
    """A thread that looked when the process was forked is not in the child, and would hold the lock for ever."""
    global _looking
    _looking = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlocked_in_child)


class LogSign(Enum):
    """What lies beside a file."""

    PRESENT = "present"
    ABSENT = "absent"
    DELETED = "deleted"  # its index is there and says that not all of it had reached the file


class Opener(NamedTuple):
    """A name in a file."""

    id: str
    place: str
    pid: int
    started: str


def note_open(identity: tuple[int, int] | None) -> None:
    """This process is about to connect to a file (its device and number), or has made it."""
    if identity is not None:
        with _looking:
            _open_here[(os.getpid(), *identity)] += 1


def note_closed(identity: tuple[int, int] | None) -> None:
    """One connection of this process less."""
    if identity is not None:
        key = (os.getpid(), *identity)
        with _looking:
            _open_here[key] -= 1
            if _open_here[key] <= 0:
                del _open_here[key]


def is_open_here(path: Path) -> bool:
    """Whether this process has a file open."""
    key = _key(path)
    return key is not None and _open_here[key] > 0


def is_store_file(path: Path) -> bool:
    """Whether a file is a store, by its first bytes; one that is open here is not read: that would end its locks."""
    with _looking:
        if is_open_here(path):
            return True
        with path.open("rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE


def log_path(path: Path) -> Path:
    """Where SQLite keeps the log of a file: beside the file itself, wherever a link to it stands."""
    return Path(f"{os.path.realpath(path)}-wal")


def log_beside(path: Path) -> LogSign:
    """What lies beside a file; asked before the file is opened, which makes a log.

    A process that closes any descriptor of the index gives up all locks that its connections hold there. The next
    program to come would cut the index off under them, and the first look into it would end this process. So a file
    that is open here is not looked at: its log is there.
    """
    log = log_path(path)
    if _size(log) > 0:
        return LogSign.PRESENT
    with _looking:
        if is_open_here(path):
            return LogSign.PRESENT
        is_deleted = _has_unfolded_frames(Path(f"{str(log)[:-4]}-shm")) and _size(log) <= 0
    return LogSign.DELETED if is_deleted else LogSign.ABSENT


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _has_unfolded_frames(index: Path) -> bool:
    """Whether the shared memory beside a file says that its log held more than had been copied into the file.

    SQLite deletes it together with the log; who deletes the log by hand mostly leaves it.
    """
    try:
        with index.open("rb") as file:
            head = file.read(136)
    except OSError:
        return False
    if len(head) < 136 or not head[12]:
        return False
    frames, folded = (int.from_bytes(head[at : at + 4], sys.byteorder) for at in (16, 96))
    return frames > folded


def require_whole(connection: sqlite3.Connection, path: Path, log: LogSign) -> None:
    """StoreDamaged if a file that had no log beside it lacks what its log held."""
    if log is LogSign.PRESENT:
        return
    rows = _rows(connection)
    here = place_of(path) if rows else ""
    if not all(_is_same(row.place, here) for row in rows):
        raise StoreDamaged(
            f"{path}: this file was copied or moved while its lace was in use, without its log ({path.name}-wal): what"
            " was written last is missing. Copy a lace with `lace backup`; `lace repair` takes this one as it is"
        )


def require_log(path: Path, log: LogSign) -> None:
    """StoreDamaged if the log of a file was deleted by hand; asked before opening, which wipes the traces."""
    if log is not LogSign.DELETED:
        return
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
    try:
        rows = _rows(connection)
    except (sqlite3.Error, UnicodeDecodeError):
        return  # opening it tells what is wrong
    finally:
        connection.close()
    # A program that opened the file after we looked for the log, and is still there, proves nothing.
    if not all(_is_alive(row) for row in rows):
        raise StoreDamaged(
            f"{path}: the log of this lace ({path.name}-wal) was deleted while it held writes that the file does not"
            " have: put it back, or take the file as it is with `lace repair`"
        )


def enter(connection: sqlite3.Connection, path: Path) -> str:
    """Write a name of ours into the file, or its log (`is_in_file` tells)."""
    name, pid = os.urandom(8).hex(), os.getpid()
    row = (name, place_of(path), pid, _started(pid))
    connection.execute("INSERT INTO openers VALUES (?, ?, ?, ?)", row)
    _live.add(name)
    return name


def strike(connection: sqlite3.Connection, names: Collection[str]) -> None:
    """Take names out, in a transaction of the caller's."""
    connection.executemany("DELETE FROM openers WHERE id = ?", [(name,) for name in names])


def is_in_file(connection: sqlite3.Connection) -> bool:
    """Copy the log into the file as far as readers allow; whether all of it is there now."""
    is_busy, frames, copied = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return not is_busy and frames == copied


def close_unused(connection: sqlite3.Connection, path: Path, log: LogSign) -> None:
    """Close a connection that could write and did not come to be a store; `log` is what lay beside the file before.

    If there was none, the names in the file stay: they may be the only sign of a copy.
    """
    if log is LogSign.PRESENT:
        release(connection, path)
    else:
        connection.close()


def release(connection: sqlite3.Connection, path: Path, names: Collection[str] = ()) -> None:
    """Close a connection that could write, and take its names out of the file.

    The last connection to be closed deletes the log. If the names cannot be taken out (the disk refuses, a writer does
    not come to its end), one connection stays open until the process ends or somebody here takes them out after all.
    """
    key = _key(path)
    _live.difference_update(names)
    try:
        connection.rollback()  # of a reader or a writer that never came to its end
        is_clean = _take_out(connection, path, names)
    except (sqlite3.Error, OSError, UnicodeDecodeError):
        is_clean = not names and _size(log_path(path)) <= 0  # a file without a log loses nothing
    with _stranding:
        if is_clean or key is None:  # SQLite leaves the log of a file alone that is no longer in its place
            kept = _stranded.pop(key, None) if key else None
            for one in (connection, kept):
                if one is not None:
                    one.close()
        elif key in _stranded:
            connection.close()  # not the last one
        else:
            _keep_for_ever(connection)
            _stranded[key] = connection


def _keep_for_ever(connection: sqlite3.Connection) -> None:
    """See that not even the end of the interpreter closes a connection: then the log stays, as after a kill."""
    with suppress(ImportError, AttributeError):  # another Python: then its end may close it
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def _take_out(connection: sqlite3.Connection, path: Path, names: Collection[str]) -> bool:
    """Take names out, and those of stores that are gone; whether only names of others who have it open are left.

    A name from another machine or of another file is an old one, or came with a copy.
    """
    try:
        rows = _rows(connection)
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname == "SQLITE_ERROR":  # there is no such table: then nobody is entered
            return True
        raise
    here = place_of(path) if rows else ""
    gone = [(row.id,) for row in rows if row.id in names or not (_is_same(row.place, here) and _is_alive(row))]
    if gone:
        connection.execute("BEGIN IMMEDIATE")
        try:
            connection.executemany("DELETE FROM openers WHERE id = ?", gone)
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.rollback()
    return True


def _rows(connection: sqlite3.Connection) -> list[Opener]:
    return [Opener(*row) for row in connection.execute("SELECT id, place, pid, started FROM openers")]


def _key(path: Path) -> tuple[int, int, int] | None:
    """This process and this very file; None if there is none any more."""
    try:
        status = path.stat()
    except OSError:
        return None
    return os.getpid(), status.st_dev, status.st_ino


def place_of(path: Path) -> str:
    """This machine, this very file, and its path: moved by itself, it has left its log behind."""
    import socket  # imported late: reading a file at rest does not need it

    status = path.stat()
    return f"{socket.gethostname()} {status.st_dev}:{status.st_ino} {os.path.realpath(path)}"


def _is_same(place: str, here: str) -> bool:
    """Whether a name was written for the file that is here; earlier versions did not write its path."""
    return place == here or (place.count(" ") == 1 and here.startswith(f"{place} "))


def _is_alive(row: Opener) -> bool:
    """Whether the store that was entered is still open somewhere."""
    if row.pid == os.getpid():
        return row.id in _live
    try:
        os.kill(row.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    now = _started(row.pid)
    return now == row.started or now.rpartition(" ")[2] == row.started


def _started(pid: int) -> str:
    """The boot, the space of process numbers, and when in it a process started: numbers come again."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        space = os.readlink("/proc/self/ns/pid")
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):  # a system that does not tell
        return ""
    return f"{boot} {space} {ticks}"
