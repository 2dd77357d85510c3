"""Making many files durable with one call of the system.

Rule: it counts only on file systems that are known to write out everything, what was renamed included, and to report
what they could not write; anywhere else each file is synced by itself.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
_KNOWN = frozenset({"ext2", "ext3", "ext4", "xfs", "f2fs", "tmpfs", "overlay"})


def syncs_all(descriptor: int, mounts: Path = MOUNTS) -> bool:
    """Whether `sync_files_of` may be relied on for the file system that something open lies on."""
    device = os.fstat(descriptor).st_dev
    return _call() is not None and kind_of(os.major(device), os.minor(device), mounts) in _KNOWN


def kind_of(major: int, minor: int, mounts: Path = MOUNTS) -> str:
    """The kind of the file system of a device, by what is mounted; empty if nobody says."""
    try:
        lines = mounts.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) > 2 and fields[2] == f"{major}:{minor}" and "-" in fields:
            return fields[fields.index("-") + 1]
    return ""


@lru_cache(maxsize=1)
def _call() -> Callable[[int], int] | None:
    function: Callable[[int], int] | None = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    return function


def sync_files_of(descriptor: int) -> None:
    """Make durable whatever was written to the file system that something open lies on."""
    call = _call()
    if call is None or call(descriptor):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
