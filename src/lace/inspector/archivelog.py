"""Which files an archive holds now: its log of commits, replayed.

Rule: it reads what `lace.spark.archive.log` writes, which this package may not import; a test holds the two together. A
file that a commit dropped is no part of the archive, whether or not it still lies there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lace.errors import StoreError
from lace.notation.jsontext import read_json
from lace.values import dataclass

FOLDER = "log"


@dataclass(frozen=True, slots=True)
class TableFile:
    """One Parquet file of a table."""

    table: str
    path: Path
    rows: int
    bytes: int


def has_log(root: Path) -> bool:
    """Whether a directory is an archive with a log."""
    return (root / FOLDER).is_dir() and bool(_versions(root))


def live_files(root: Path) -> list[TableFile]:
    """The files of every table at the newest version."""
    versions = _versions(root)
    tail: list[dict[str, Any]] = []
    files: dict[str, dict[str, Any]] = {}
    for version in reversed(versions):
        commit = _read(root, version)
        if commit.get("whole") is not None:  # every few commits carry all that there is
            files = {item["path"]: item for item in commit["whole"]["files"]}
            break
        tail.append(commit)
    for commit in reversed(tail):
        for path in commit["dropped"]:
            files.pop(path, None)
        files |= {item["path"]: item for item in commit["added"]}
    return [TableFile(item["table"], root / item["path"], item["rows"], item["bytes"]) for item in files.values()]


def history(root: Path, limit: int) -> list[dict[str, Any]]:
    """The newest commits, newest first: version, time, what was done, what it counted."""
    found = [_read(root, version) for version in _versions(root)[-limit:][::-1]]
    return [{key: commit[key] for key in ("version", "time", "operation", "counts")} for commit in found]


def _versions(root: Path) -> list[int]:
    names = (path.stem for path in (root / FOLDER).glob("*.json"))
    return sorted(int(name) for name in names if name.isdecimal())


def _read(root: Path, version: int) -> dict[str, Any]:
    path = root / FOLDER / f"{version:08d}.json"
    try:
        found = read_json(path.read_text(encoding="utf-8"))
        return {**found, "added": list(found["added"]), "dropped": list(found["dropped"])}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{path}: not a commit of an archive ({error})") from error
