"""Maintenance of laces: back up, restore, compact, repair.

Rule: nothing is overwritten unless that is asked for, and a file gets its name only once it is finished. All take
`deadline_s` and `interrupt` (asked between steps): one that is stopped raises `CallStopped` and changed nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lace.errors import StoreError
from lace.limits import RecordLimits
from lace.notation.stopping import Interrupt, between_steps, until
from lace.porcelain.misuse import require_path

if TYPE_CHECKING:
    from lace.store.columns.repair.salvage import RepairReport

Steps = Callable[[int, int], None]
"""Called with how much is done, and of how much."""
Counts = Callable[[int], None]
"""Called with how many more records are done."""


class Restored(NamedTuple):
    """How many records a restored lace holds, and how many were left out because they were forgotten."""

    records: int
    forgotten: int


class Compacted(NamedTuple):
    """The size of a lace before and after compacting."""

    bytes_before: int
    bytes: int


def backup(
    path: str | Path,
    target: str | Path,
    *,
    replace: bool = False,
    progress: Steps | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> int:
    """Copy a whole lace, even while it is in use; returns the size of the copy, which is a lace itself.

    Copying the file alone is not enough: the latest writes are in a log beside it.
    """
    from lace.store.columns.repair.copies import backup as copy

    require_path(path)
    if Path(target).exists() and not replace:
        advice = "--replace, in Python replace=True, overwrites it"
        raise StoreError(f"{target} already exists; nothing was changed ({advice})")
    step = between_steps(until(deadline_s, interrupt), "a lace was copied", progress)
    return copy(Path(path), Path(target), step, replace=replace)


def restore(
    backup_path: str | Path,
    path: str | Path,
    *,
    forgotten: Collection[str] = (),
    progress: Steps | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Restored:
    """Create a lace from a backup, at a path that does not exist; `forgotten` names records that stay out.

    Peers and followers that knew a later state of it start over and compare everything.
    """
    from lace.store.columns.repair.copies import restore as remake

    for suffix in ("", "-wal"):
        if Path(f"{path}{suffix}").exists():
            raise StoreError(f"{path}{suffix} already exists; nothing was changed")
    step = between_steps(until(deadline_s, interrupt), "a lace was restored", progress)
    return Restored(*remake(Path(backup_path), Path(path), step, forgotten=forgotten))


def compact(
    path: str | Path,
    *,
    progress: Counts | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> Compacted:
    """Rewrite a lace without what was removed from it: bytes, and names and values that nothing else has.

    Others may read and write meanwhile, and must reopen it afterwards. It needs disk space for two more copies.
    """
    from lace.store.columns.repair.copies import compact as rewrite

    require_path(path)
    step = between_steps(until(deadline_s, interrupt), "a lace was compacted", progress)
    return Compacted(*rewrite(Path(path), step))


def repair(
    path: str | Path,
    *,
    limits: RecordLimits | None = None,
    forgotten: Collection[str] = (),
    progress: Counts | None = None,
    deadline_s: float | None = None,
    interrupt: Interrupt | None = None,
) -> RepairReport:
    """Replace a damaged lace by all that can be read of it; the damaged file stays beside it as `PATH.damaged`.

    What was forgotten in it, or is named by `forgotten`, stays out.

    Without `limits` a record may be as large as the file: it was within the limits of its lace when it was stored, and
    those are not saved anywhere.
    """
    from lace.store.columns.repair.salvage import repair as save

    require_path(path)
    step = between_steps(until(deadline_s, interrupt), "a lace was repaired", progress)
    return save(Path(path), limits or _as_large_as(Path(path)), step, forgotten)


def _as_large_as(path: Path) -> RecordLimits:
    size = sum(file.stat().st_size for file in (path, path.with_name(f"{path.name}-wal")) if file.exists())
    return RecordLimits(max_header_line_bytes=size, max_data_bytes=size, max_extra_headers=size)
