"""A folder as records: every regular file below it under its relative path.

Rule: a file that cannot be stored is a result with its reason, and the others go on. Symbolic links are not followed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from unicodedata import normalize

from lace.errors import InvalidInput
from lace.intake.batch import Batch
from lace.notation.identifiers import RecordHash
from lace.values import dataclass


@dataclass(frozen=True, slots=True)
class TreeResult:
    """What became of one file: its record, or why it has none."""

    path: Path
    name: str
    hash: RecordHash | None
    refused: str = ""


def put_tree(folder: Path, name: str, batch: Batch, add: Callable[[Path, str], RecordHash]) -> Iterator[TreeResult]:
    """Queue each file and give its result once its records are durable."""
    queued: list[TreeResult] = []
    for path in files_below(folder):
        file_name = record_name(folder, path, name)
        queued.append(_put_file(path, file_name, add))
        if not batch.waiting:
            yield from queued
            queued.clear()
    batch.flush()
    yield from queued


def record_name(folder: Path, path: Path, name: str) -> str:
    """The Name of a file's record: the prefix and the relative path, in NFC as texts of records are."""
    relative = normalize("NFC", path.relative_to(folder).as_posix())
    return f"{name.rstrip('/')}/{relative}" if name else relative


def _put_file(path: Path, name: str, add: Callable[[Path, str], RecordHash]) -> TreeResult:
    if path.is_symlink() or not path.is_file():
        return TreeResult(path, name, None, "not a regular file")
    try:
        return TreeResult(path, name, add(path, name))
    except InvalidInput as error:
        return TreeResult(path, name, None, str(error))
    except OSError as error:
        return TreeResult(path, name, None, error.strerror or str(error))


def files_below(folder: Path) -> Iterator[Path]:
    """Everything below a folder that is no folder, in the order of its path; folders behind links are left alone."""
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(Path(entry.path))
        else:
            yield Path(entry.path)
