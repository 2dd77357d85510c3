"""A folder that is read and written through open folders only, so that no link leads out of it (082-LINK-03).

Rule: nothing here follows a symbolic link below the folder; a path that leads through one is an OSError.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lace.errors import InvalidInput
from lace.notation.closing import Closing

DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
READ = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | os.O_CLOEXEC
CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | os.O_CLOEXEC
OWN = b".lace"  # at the top of a folder: what it knows of itself
_BESIDE = re.compile(rb"\.lace-[0-9]+(-[0-9]+)?\.part")  # a file that is being written
NAME_OF_OURS = "this name belongs to the folder itself"


def is_ours(path: Sequence[bytes]) -> bool:
    """Whether a path is ours to write and nobody's file.

    >>> is_ours([b".lace", b"x"]), is_ours([b"a", name_beside(7)])
    (True, True)
    >>> is_ours([b"a", b".lace"]), is_ours([b".lace-my.part"])
    (False, False)
    """
    return path[0] == OWN or _BESIDE.fullmatch(path[-1]) is not None


def name_beside(number: int) -> bytes:
    """The name that a file has until all of it is written."""
    return b".lace-%d-%d.part" % (os.getpid(), number)


class OpenFolder(Closing):
    """An open folder and the open folders on the way to the file that is written now.

    Records come in the order of their names, so neighbours share most of the way. At most as many folders are
    open as a path has parts.
    """

    def __init__(self, path: Path) -> None:
        if os.open not in os.supports_dir_fd:
            raise InvalidInput("checking out needs a system that opens files below an open folder", rule="platform")
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._root = os.open(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | os.O_CLOEXEC)
        self._way: list[tuple[bytes, int]] = []

    @property
    def descriptor(self) -> int:
        """The open folder itself."""
        return self._root

    def parent(self, parts: Sequence[bytes], *, make: bool = True) -> int:
        """The descriptor of a folder below this one, made if need be; OSError if a link or a file is in the way."""
        shared = 0
        while shared < min(len(parts), len(self._way)) and self._way[shared][0] == parts[shared]:
            shared += 1
        self.leave(shared)
        for part in parts[shared:]:
            above = self._way[-1][1] if self._way else self._root
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=above)
            self._way.append((part, os.open(part, DIRECTORY, dir_fd=above)))
        return self._way[-1][1] if self._way else self._root

    def leave(self, keep: int = 0) -> None:
        """Let go of the folders on the way: somebody may have moved them."""
        while len(self._way) > keep:
            os.close(self._way.pop()[1])

    def close(self) -> None:
        """Let go of every descriptor; a second time does nothing."""
        self.leave(0)
        if self._root >= 0:
            os.close(self._root)
            self._root = -1


def write_all(descriptor: int, data: bytes | memoryview) -> None:
    """Write all of it, however much the system takes at a time."""
    written = os.write(descriptor, data)
    while written < len(data):
        written += os.write(descriptor, memoryview(data)[written:])


def with_executable(mode: int, *, executable: bool) -> int:
    """The permissions of a file whose owner may execute it or not; who may read it may execute it too, or nobody may.

    >>> oct(with_executable(0o640, executable=True)), oct(with_executable(0o755, executable=False))
    ('0o750', '0o644')
    """
    mode = stat.S_IMODE(mode)
    if bool(mode & stat.S_IXUSR) == executable:
        return mode
    return mode | (mode & 0o444) >> 2 if executable else mode & ~0o111


def in_the_way(error: OSError) -> str:
    """What an error on the way to a file says."""
    if isinstance(error, NotADirectoryError) or error.errno == errno.ELOOP:
        return "a file or a symbolic link is in the way"
    return error.strerror or str(error)
