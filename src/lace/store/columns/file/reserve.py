"""Room on the disk that is kept so that records can be removed when there is none left.

Rule: nothing is stored while less than a limit is free, and a file beside the store holds some blocks that are given up
only for opening, removing and compacting. Without it a full disk could not even be told what to let go: removing
writes too.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from lace.errors import StoreFull
from lace.limits import StoreLimits

SUFFIX = "-reserve"
_SHARE = 16  # the reserve is this part of the store, within its bounds: removing rewrites a piece of it
_WRITES = 2  # a stored byte is written to the log first


class Reserve:
    """The reserve of one store file."""

    def __init__(self, path: Path, limits: StoreLimits) -> None:
        self._path = path
        self._file = Path(f"{path}{SUFFIX}")
        self._limits = limits

    def require_room(self, size: int) -> None:
        """StoreFull if storing so many bytes would leave less than has to stay free."""
        least = self._limits.min_free_bytes
        if not least:
            return
        free = shutil.disk_usage(self._path.parent).free
        if free < least + _WRITES * size:
            raise StoreFull(
                f"{self._path}: the disk is full: {free:,} bytes are free, {least:,} of them are kept so that records"
                f" can still be removed, and this write needs some {_WRITES * size:,}. Nothing of it was kept,"
                " everything acknowledged before is safe"
            )

    def room(self) -> int:
        """How many bytes of records there is room for."""
        free = shutil.disk_usage(self._path.parent).free
        return max(0, (free - self._limits.min_free_bytes) // _WRITES)

    def keep(self) -> None:
        """Hold the reserve, if there is room for it."""
        size = self._size()
        try:
            if not size or self._file.stat().st_size >= size:
                return
        except OSError:
            pass
        try:
            handle = os.open(self._file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        except OSError:
            return  # a folder that is not ours: then there is none
        try:
            os.posix_fallocate(handle, 0, size)
        except OSError:
            self.release()
        finally:
            os.close(handle)

    def _size(self) -> int:
        limits = self._limits
        try:
            share = self._path.stat().st_size // _SHARE
        except OSError:
            share = 0
        return min(max(limits.min_reserve_bytes, share), limits.max_reserve_bytes)

    def release(self) -> bool:
        """Give the blocks up; whether there were any."""
        try:
            self._file.unlink()
        except OSError:
            return False
        return True
