"""Bundles and stores on disk, cut into pieces that tasks can read by themselves.

Rule: a piece begins and ends at a record. Where a bundle has no index the driver looks for the edges first, because
only a record's own frame says where the next one begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from lace.errors import InvalidInput
from lace.notation import b64a
from lace.notation.digest import digest, hasher
from lace.records.frame import claimed_hash
from lace.store import StoreRecordId, open_store
from lace.store.bundle import INDEX_SUFFIX, BundleReader, Frame, RejectedBytes
from lace.values import dataclass

STORE_SUFFIX = ".lace"
_FIRST_COMMIT = ("log", "00000001.json")  # of an archive
_HIDDEN = (".", "_")
_READ_BYTES = 1 << 20
_TASKS = 16  # tasks that an input of middling size is cut into, so that every core has work
_LEAST_SHARE_BYTES = 4 << 20  # less than this is not worth a task, nor a batch of signatures
_OPEN_COST_BYTES = 64 << 10  # what opening a file costs, in bytes that could be read instead


@dataclass(frozen=True, slots=True)
class FileRange:
    """A range of one file: bytes of a bundle, or record ids of a store."""

    path: str
    start: int
    end: int
    weight: int  # bytes to read


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One stored record as it was found, judged only if it could not even be delimited."""

    hash: str | None  # as claimed
    bundle: str
    offset: int
    stored: bytes
    rule: str | None = None
    reason: str | None = None

    @property
    def content(self) -> str:
        """The digest of the whole stored bytes: what makes two copies the same copy."""
        return b64a.encode(digest(self.stored))


def local_path(name: str | Path) -> Path:
    """The path that a text or a `file:` address names."""
    text = str(name)
    if not text.startswith("file:"):
        return Path(text)
    return Path(unquote(urlsplit(text).path))


def file_digest(path: Path) -> str:
    """BLAKE3 of a file, read in pieces."""
    running = hasher()
    with path.open("rb") as file:
        while piece := file.read(_READ_BYTES):
            running.update(piece)
    return b64a.encode(running.digest())


def fingerprint(parts: Mapping[str, object]) -> str:
    """A short name for everything that a result depends on."""
    return b64a.encode(digest(json.dumps(parts, sort_keys=True).encode()))[:22]


def place_mark(path: Path) -> str:
    """A name for what lies at a place, without opening it: an archive's commits, else the sizes and times of files."""
    folder = path / _FIRST_COMMIT[0] if (path.joinpath(*_FIRST_COMMIT)).exists() else path
    files = sorted(p for p in ([folder] if folder.is_file() else folder.rglob("*")) if p.is_file())
    return fingerprint({str(p): [p.stat().st_size, p.stat().st_mtime_ns] for p in files})


def input_files(paths: Iterable[Path]) -> list[Path]:
    """The bundles and stores among files and directories, sorted; hidden files and indexes are none.

    Their paths are absolute: the tasks that read them run in other folders.
    """
    found: set[Path] = set()
    for path in (given.absolute() for given in paths):
        if path.is_dir():
            inside = {file for file in path.rglob("*") if file.is_file() and not _is_aside(file, path)}
            _refuse_archives(inside)
            found |= inside
        elif path.is_file():
            found.add(path)
        else:
            raise InvalidInput("there is no such file or directory", rule="input-path", place=str(path))
    return sorted(found)


def _refuse_archives(files: Iterable[Path]) -> None:
    """An archive's files are no bundles: every one of them would be told to be a broken record."""
    for file in files:
        if file.parts[-2:] == _FIRST_COMMIT:
            raise InvalidInput(
                "this is an archive and no folder of bundles: format lace reads its tables with the option table "
                "(records, quarantine, …), and `lace archive publish` makes bundles of it",
                rule="input-archive",
                place=str(file.parent.parent),
            )


def _is_aside(file: Path, root: Path) -> bool:
    hidden = any(part.startswith(_HIDDEN) for part in file.relative_to(root).parts)
    return hidden or file.name.endswith(
        (INDEX_SUFFIX, f"{STORE_SUFFIX}-wal", f"{STORE_SUFFIX}-shm", f"{STORE_SUFFIX}-reserve")
    )


def pieces(path: Path, piece_bytes: int) -> list[FileRange]:
    """A file in pieces of about so many bytes."""
    if _is_store(path):
        return _store_pieces(path, piece_bytes)
    reader = BundleReader(path)
    splits = reader.splits(piece_bytes)
    if len(splits) == 1 and reader.bytes > 2 * piece_bytes:
        splits = _found_splits(reader, piece_bytes)
    return [FileRange(str(path), start, end, end - start) for start, end in splits]


def shares(files: Sequence[Path], split_bytes: int) -> list[list[FileRange]]:
    """All that some files hold, one list of pieces a task: large files are cut, small ones are read together."""
    total = sum(path.stat().st_size for path in files)
    piece_bytes = min(split_bytes, max(_LEAST_SHARE_BYTES, total // _TASKS))
    packed: list[list[FileRange]] = []
    room = 0
    for piece in (piece for path in files for piece in pieces(path, piece_bytes)):
        weight = _OPEN_COST_BYTES + piece.weight
        if weight > room:
            packed.append([])
            room = max(piece_bytes, weight)
        packed[-1].append(piece)
        room -= weight
    return packed


def _found_splits(reader: BundleReader, piece_bytes: int) -> list[tuple[int, int]]:
    """The edges of a bundle without an index, found by reading its frames once."""
    edges = [0]
    for item in reader.records():
        if isinstance(item, Frame) and item.offset - edges[-1] >= piece_bytes:
            edges.append(item.offset)
    return list(zip(edges, [*edges[1:], reader.bytes], strict=True))


def _is_store(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _store_pieces(path: Path, piece_bytes: int) -> list[FileRange]:
    with open_store(path, read_only=True) as store:
        stat = store.stat()
    if not stat.records:
        return []
    each = max(1, stat.high_water * piece_bytes // max(1, stat.stored_bytes))
    starts = range(0, stat.high_water, each)
    weight = stat.stored_bytes // len(starts)
    return [FileRange(str(path), start, min(start + each, stat.high_water), weight) for start in starts]


def read_piece(piece: FileRange) -> Iterator[RawRecord]:
    """Every record and every damaged stretch of a piece."""
    path = Path(piece.path)
    return _read_store(path, piece) if _is_store(path) else _read_bundle(path, piece)


def _read_bundle(path: Path, piece: FileRange) -> Iterator[RawRecord]:
    for item in BundleReader(path).records(piece.start, piece.end):
        match item:
            case Frame(offset, data):
                yield RawRecord(claimed_hash(data) or None, piece.path, offset, data)
            case RejectedBytes(offset, data, rule, reason):
                yield RawRecord(claimed_hash(data) or None, piece.path, offset, data, rule, reason)


def _read_store(path: Path, piece: FileRange) -> Iterator[RawRecord]:
    with open_store(path, read_only=True) as store:
        for record_id, stored in store.bodies_since(StoreRecordId(piece.start)):
            if record_id > piece.end:
                return
            yield RawRecord(claimed_hash(stored) or None, piece.path, record_id, stored)
