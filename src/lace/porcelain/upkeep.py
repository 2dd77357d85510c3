"""Copies of laces, and laces made anew: what their owner does now and then.

Rule: nothing that exists is overwritten unless that is asked for, and a file takes its name when it is finished.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lace.errors import StoreError
from lace.limits import RecordLimits

if TYPE_CHECKING:
    from lace.store.columns.repair.salvage import RepairReport

Steps = Callable[[int, int], None]
"""Told how much is done, of how much."""
Counts = Callable[[int], None]
"""Told how many more records are done."""


class Compacted(NamedTuple):
    """What writing a lace anew has brought."""

    bytes_before: int
    bytes: int


def backup(path: str | Path, target: str | Path, *, replace: bool = False, progress: Steps | None = None) -> int:
    """Copy a lace whole, also while it is in use; the size of the copy, which is a lace itself.

    A plain copy of the file is not enough: what was written last stands in a log beside it.
    """
    from lace.store.columns.repair.copies import backup as copy

    if Path(target).exists() and not replace:
        advice = "--replace, in Python replace=True, overwrites it"
        raise StoreError(f"{target} exists already; nothing was changed ({advice})")
    return copy(Path(path), Path(target), progress or _nobody, replace=replace)


def restore(backup_path: str | Path, path: str | Path, *, progress: Steps | None = None) -> int:
    """Make a lace from a backup, where there is none yet; how many records it holds.

    Peers and followers that knew a later state of it compare everything anew.
    """
    from lace.store.columns.repair.copies import restore as remake

    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise StoreError(f"{path}{suffix} exists already; nothing was changed")
    return remake(Path(backup_path), Path(path), progress or _nobody)


def compact(path: str | Path, *, progress: Counts | None = None) -> Compacted:
    """Write a lace anew without what was removed from it: bytes, names and values that nothing else has.

    Others may read and write meanwhile, and must open it again then. It needs room for two more copies while it works.
    """
    from lace.store.columns.repair.copies import compact as rewrite

    return Compacted(*rewrite(Path(path), progress or _nobody))


def repair(path: str | Path, *, limits: RecordLimits | None = None, progress: Counts | None = None) -> RepairReport:
    """Put all that can be read of a damaged lace in its place; the damaged file stays beside it as `PATH.damaged`.

    Without `limits` a record may be as large as the file: it was within those of its lace when it came, and these are
    written nowhere.
    """
    from lace.store.columns.repair.salvage import repair as save

    return save(Path(path), limits or _as_large_as(Path(path)), progress or _nobody)


def _as_large_as(path: Path) -> RecordLimits:
    size = sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")) if file.exists())
    return RecordLimits(max_header_line_bytes=size, max_data_bytes=size, max_extra_headers=size)


def _nobody(*_: int) -> None:
    """Told and forgotten."""
