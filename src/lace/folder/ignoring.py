"""Which paths of a folder are left alone: patterns as git's ignore files have them, in `.laceignore`.

Rule: what is ignored is neither stored nor written nor removed. The file itself is kept like any other; a change to it
counts from the next round on.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from lace.folder.disk import FilePath

IGNORE_FILE = ".laceignore"


def ignoring(path: Path) -> Callable[[FilePath, bool], bool]:
    """Whether a path is ignored by the patterns of a file, which need not exist."""
    from pathspec import GitIgnoreSpec

    read: tuple[int, int] | None = None
    spec: GitIgnoreSpec | None = None

    def ignored(at: FilePath, is_folder: bool) -> bool:
        nonlocal read, spec
        if len(at) == 1 or read is None:
            there = _looked(path)
            if there != read or read is None:
                read = there
                lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if there != (0, 0) else []
                spec = GitIgnoreSpec.from_lines(lines) if any(map(str.strip, lines)) else None
        if spec is None:
            return False
        name = "/".join(map(os.fsdecode, at))
        return spec.match_file(f"{name}/" if is_folder else name)

    return ignored


def _looked(path: Path) -> tuple[int, int]:
    try:
        there = path.stat()
    except OSError:
        return 0, 0
    return there.st_mtime_ns, there.st_size
