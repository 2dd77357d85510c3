"""A tree of files as a read-only file system of this machine (FUSE).

Rule: this binds `ondemand` to libfuse and decides nothing. What cannot be read is an input/output error to whoever
reads, and a sentence to whoever mounted.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lace.errors import InvalidInput, LaceError
from lace.folder.disk import FilePath
from lace.folder.ondemand import OnDemand

Tell = Callable[[str], None]
_ENDED = 8  # what libfuse returns when a signal ended what it had mounted
THREADS = 10
KEPT_S = 0.2  # that the kernel believes what it was told of a file


def mount(files: OnDemand, folder: Path, tell: Tell, *, name: str) -> None:
    """Show files in a folder until it is unmounted, or the process is told to end."""
    fuse = binding()
    try:
        fuse.FUSE(
            _Operations(files, tell), str(folder), foreground=True, ro=True, nosuid=True, nodev=True,
            default_permissions=True, fsname=name.replace(",", "_"), subtype="lace",
            attr_timeout=KEPT_S, entry_timeout=KEPT_S, **_threads(fuse),
        )  # fmt: skip
    except RuntimeError as error:
        if error.args == (_ENDED,):
            return
        raise InvalidInput(f"{folder} could not be mounted (libfuse said {error})", rule="mount") from None


def _threads(fuse: Any) -> dict[str, int]:
    """How many requests are answered at a time; a version of libfuse that has no word for it chooses itself."""
    return {"max_threads": THREADS} if (fuse.fuse_version_major, fuse.fuse_version_minor) >= (3, 12) else {}


def binding() -> Any:
    """The module that binds libfuse; an error that says what to install without it."""
    try:
        import mfusepy
    except OSError as error:
        raise InvalidInput(f"mounting needs libfuse (Debian: apt install fuse3): {error}", rule="mount") from None
    return mfusepy


class _Operations:
    """What libfuse asks for, by the names that it has there."""

    use_ns = True

    def __init__(self, files: OnDemand, tell: Tell) -> None:
        self._files = files
        self._tell = tell

    def getattr(self, path: str, fh: int | None = None) -> dict[str, int]:
        with self._errors(path):
            return self._files.placeholder(_parts(path)).stat()

    def readdir(self, path: str, fh: int) -> list[str]:
        with self._errors(path):
            return [".", "..", *map(os.fsdecode, self._files.listed(_parts(path)))]

    def readlink(self, path: str) -> str:
        with self._errors(path):
            return os.fsdecode(self._files.link(_parts(path)))

    def open(self, path: str, flags: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        with self._errors(path):
            return self._files.open(_parts(path))

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:
        with self._errors(path):
            return self._files.read(fh, offset, size)

    def release(self, path: str, fh: int) -> int:
        self._files.release(fh)
        return 0

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        try:
            yield
        except LaceError as error:
            self._tell(f"{path.lstrip('/')}: {error}")
            raise OSError(errno.EIO, os.strerror(errno.EIO)) from None


def _parts(path: str) -> FilePath:
    return tuple(os.fsencode(part) for part in path.split("/") if part)
