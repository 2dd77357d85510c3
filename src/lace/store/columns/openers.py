"""Who has a store file open for writing, and what that tells about a copy of it.

Rule: a writer is entered in the main file before any of its writes is in the log alone. So a file with a name in
it and no log beside it was copied while it was in use, or its log was deleted: what was written last is missing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection
from pathlib import Path

from lace.errors import StoreDamaged


def has_log(path: Path) -> bool:
    """Whether a log with something in it lies beside a file; asked before the file is opened, which makes one."""
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def require_whole(connection: sqlite3.Connection, path: Path) -> None:
    """StoreDamaged if a file that had no log beside it is a copy that lacks its log.

    Somebody who opened this very file for writing since the log was looked for, and is still there, is no sign of that.
    """
    rows = connection.execute("SELECT place, pid, started FROM openers").fetchall()
    here = _place(path) if rows else ""
    if not all(place == here and _is_alive(pid, started) for place, pid, started in rows):
        raise StoreDamaged(
            f"{path}: this file was copied while its lace was in use, without its log ({path.name}-wal): what was"
            " written last is missing. Copy a lace with `lace backup`; `lace repair` takes this one as it is"
        )


def enter(connection: sqlite3.Connection, path: Path) -> str:
    """Write a name of ours into the main file."""
    name, pid = os.urandom(8).hex(), os.getpid()
    row = (name, _place(path), pid, _started(pid))
    connection.execute("INSERT INTO openers VALUES (?, ?, ?, ?)", row)
    connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
    return name


def leave(connection: sqlite3.Connection, path: Path, names: Collection[str]) -> None:
    """Take names out again, and those of processes that were killed: the last to close copies the log into the file.

    A name from another machine or of another file is an old one, or came with a copy.
    """
    here = _place(path)
    rows = connection.execute("SELECT id, place, pid, started FROM openers").fetchall()
    gone = [(own,) for own, place, pid, started in rows if own in names or place != here or not _is_alive(pid, started)]
    if gone:
        connection.executemany("DELETE FROM openers WHERE id = ?", gone)


def _place(path: Path) -> str:
    """This machine and this very file."""
    import socket  # imported late: reading a file at rest does not need it

    status = path.stat()
    return f"{socket.gethostname()} {status.st_dev}:{status.st_ino}"


def _is_alive(pid: int, started: str) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return _started(pid) == started


def _started(pid: int) -> str:
    """When a process started, where the system tells: process numbers come again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
