"""Bundles and stores on disk, cut into pieces that tasks can read by themselves.

Rule: a piece begins and ends at a record. Where a bundle has no index the driver looks for the edges first, because
only a record's own frame says where the next one begins.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath, PurePosixPath

from lace.errors import InvalidInput
from lace.notation import b64a
from lace.notation.digest import digest, hasher
from lace.records.frame import claimed_hash
from lace.spark.source.places import Place, PlaceStat, RemoteFile, brought_here, placed, remote_files
from lace.store import StoreRecordId, open_store
from lace.store.bundle import INDEX_SUFFIX, BundleReader, Frame, RejectedBytes
from lace.store.columns.file.openers import is_store_file
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


def content_mark(path: Place, stat: PlaceStat | os.stat_result) -> str:
    """A name for what a file holds: BLAKE3 of its bytes, read in pieces.

    Bytes that are elsewhere are not fetched twice for that: where they are, how many and of when stands for them, and a
    copy under another name is read again and found to be repeats.
    """
    if isinstance(path, RemoteFile):
        return fingerprint({"address": path.address, "size": stat.st_size, "modified": stat.st_mtime_ns})
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


def input_files(paths: Iterable[Place | str]) -> list[Place]:
    """The bundles and stores among files and folders, sorted; hidden files and indexes are none.

    Their paths are absolute: the tasks that read them run in other folders.
    """
    return [path for path, _ in input_stats(paths)]


def input_stats(paths: Iterable[Place | str]) -> list[tuple[Place, PlaceStat]]:
    """The same with how long they are and since when: of other machines a listing says it of all files at once."""
    given = [placed(path) for path in paths]
    here = _local_files(path for path in given if isinstance(path, Path))
    found: dict[str, tuple[Place, PlaceStat]] = {}
    for path in here:
        stat = path.stat()
        found[str(path)] = (path, PlaceStat(stat.st_size, stat.st_mtime_ns))
    for place in given:
        if isinstance(place, RemoteFile):
            found |= {str(path): (path, stat) for path, stat in _remote_inputs(place)}
    return [found[name] for name in sorted(found)]


def _remote_inputs(place: RemoteFile) -> list[tuple[RemoteFile, PlaceStat]]:
    inside = remote_files(place)
    if not inside:
        raise InvalidInput("there is no such file or folder", rule="input-path", place=str(place))
    _refuse_archives(PurePosixPath(path.address) for path, _ in inside)
    root = PurePosixPath(place.address)
    return [(path, stat) for path, stat in inside if path == place or not _is_aside(PurePosixPath(path.address), root)]


def _local_files(paths: Iterable[Path]) -> list[Path]:
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


def _refuse_archives(files: Iterable[PurePosixPath | Path]) -> None:
    """An archive's files are no bundles: every one of them would be told to be a broken record."""
    for file in files:
        if file.parts[-2:] == _FIRST_COMMIT:
            raise InvalidInput(
                "this is an archive and no folder of bundles: format lace reads its tables with the option table "
                "(records, quarantine, …), and `lace archive publish` makes bundles of it",
                rule="input-archive",
                place=str(file.parent.parent),
            )


def _is_aside(file: PurePath, root: PurePath) -> bool:
    hidden = any(part.startswith(_HIDDEN) for part in file.relative_to(root).parts)
    return hidden or file.name.endswith(
        (INDEX_SUFFIX, f"{STORE_SUFFIX}-wal", f"{STORE_SUFFIX}-shm", f"{STORE_SUFFIX}-reserve")
    )


def pieces(path: Place, piece_bytes: int) -> list[FileRange]:
    """A file in pieces of about so many bytes."""
    if _is_store(path):
        return _store_pieces(path, piece_bytes)
    reader = BundleReader(path)
    splits = reader.splits(piece_bytes)
    if len(splits) == 1 and reader.bytes > 2 * piece_bytes:
        splits = _found_splits(reader, piece_bytes)
    return [FileRange(str(path), start, end, end - start) for start, end in splits]


def shares(files: Sequence[Place], split_bytes: int) -> list[list[FileRange]]:
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


def _is_store(path: Place) -> bool:
    if isinstance(path, Path):
        return is_store_file(path)
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"


def _store_pieces(path: Place, piece_bytes: int) -> list[FileRange]:
    with brought_here(path) as here, open_store(here, read_only=True) as store:
        stat = store.stat()
    if not stat.records:
        return []
    if isinstance(path, RemoteFile):  # each piece would bring the whole of it
        return [FileRange(str(path), 0, stat.high_water, stat.stored_bytes)]
    each = max(1, stat.high_water * piece_bytes // max(1, stat.stored_bytes))
    starts = range(0, stat.high_water, each)
    weight = stat.stored_bytes // len(starts)
    return [FileRange(str(path), start, min(start + each, stat.high_water), weight) for start in starts]


def read_piece(piece: FileRange) -> Iterator[RawRecord]:
    """Every record and every damaged stretch of a piece."""
    path = placed(piece.path)
    return _read_store(path, piece) if _is_store(path) else _read_bundle(path, piece)


def _read_bundle(path: Place, piece: FileRange) -> Iterator[RawRecord]:
    for item in BundleReader(path).records(piece.start, piece.end):
        match item:
            case Frame(offset, data):
                yield RawRecord(claimed_hash(data) or None, piece.path, offset, data)
            case RejectedBytes(offset, data, rule, reason):
                yield RawRecord(claimed_hash(data) or None, piece.path, offset, data, rule, reason)


def _read_store(path: Place, piece: FileRange) -> Iterator[RawRecord]:
    with brought_here(path) as here, open_store(here, read_only=True) as store:
        for record_id, stored in store.bodies_since(StoreRecordId(piece.start)):
            if record_id > piece.end:
                return
            yield RawRecord(claimed_hash(stored) or None, piece.path, record_id, stored)
