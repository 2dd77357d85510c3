"""Which bytes an archive has read: their digests in order, in files that are looked into and never read through.

Rule: what it costs to find repeats follows what is new. Digests are even, so where one would stand in a file of any
length is known to within a few blocks: two or three are read, whatever the file holds. A digest is known if it came
more often than it went.

    data/contents/…/part-….digests        texts of 43 bytes, sorted, none twice
    data/contents_gone/…/part-….digests   the same of records that were removed
"""

from __future__ import annotations

import os
import uuid
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from lace.notation import b64a
from lace.spark.archive.versions import BatchRange, DataFile, State

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lace.spark.archive.filesystem import Files

CONTENTS, GONE = "contents", "contents_gone"
WIDTH = 43  # of a digest as text; its order is that of the bytes
_TEXT = np.dtype(f"S{WIDTH}")
Texts = np.ndarray[Any, np.dtype[np.bytes_]]
_BLOCK = 96  # digests that are read at once: 4 kB
_TOGETHER = 4096  # digests that are looked for at a time: a stretch that is read for them has at most 51 MB
_SHORT = 16 * _BLOCK  # digests of a file that is read as a whole
_TASK_ROWS = 1 << 16  # digests that one task looks for
_PROBES = 3  # blocks that a digest takes on average
MERGED_ROWS = 1 << 26  # of files that an addition writes together: 2.9 GB
_HELD_ROWS = 1 << 20  # of them that this process holds at a time
_FILE_ROWS = 1 << 22  # of the files that jobs write
_MOST_FILES = 32  # of digests; a compaction makes fewer of more
_SUFFIX = ".digests"
_WRITTEN = "name string, rows long, low string, high string"


def _filled(state: State) -> list[str]:
    """The batches that brought anything."""
    return [batch.id for batch in state.batches if batch.counts.get("valid", 1) + batch.counts.get("quarantined", 1)]


def covered(state: State) -> list[BatchRange]:
    """The batches whose digests are all here, as ranges of batches in a row."""
    names = _filled(state)
    place = {batch: number for number, batch in enumerate(names)}
    found: list[list[int]] = []
    for first, last in sorted({(place[file.first], place[file.last]) for file in state.table(CONTENTS)}):
        if found and first <= found[-1][1] + 1:
            found[-1][1] = max(found[-1][1], last)
        else:
            found.append([first, last])
    return [BatchRange(names[first - 1] if first else "", names[last]) for first, last in found]


def uncovered_files(state: State) -> list[DataFile]:
    """Files with records or refused bytes whose digests are not all here."""
    ranges = covered(state)
    held = (*state.table("records"), *state.table("quarantine"))
    return [file for file in held if not any(batches.holds(file) for batches in ranges)]


# Looking


class Lookup:
    """What was found of some digests, and how many bytes were read for it."""

    def __init__(self, folder: Path, state: State, contents: Iterable[str]) -> None:
        self.bytes_read = 0
        self._wanted = sorted(set(contents))
        came = Counter(self._met(folder, state.table(CONTENTS)))
        came.subtract(self._met(folder, state.table(GONE)))
        self.known = {content for content, times in came.items() if times > 0}

    def _met(self, folder: Path, held: Sequence[DataFile]) -> Iterator[str]:
        for file in held:
            first = bisect_left(self._wanted, file.low["content"])
            near = self._wanted[first : bisect_left(self._wanted, file.high["content"] + "~")]
            if not near:
                continue
            with (folder / file.path).open("rb", buffering=0) as opened:
                read = partial(self._read, opened.fileno())
                for at in range(0, len(near), _TOGETHER):
                    yield from _met_in(read, file, near[at : at + _TOGETHER])

    def _read(self, descriptor: int, first: int, rows: int) -> bytes:
        data = os.pread(descriptor, rows * WIDTH, first * WIDTH)
        self.bytes_read += len(data)
        return data


def _met_in(read: Callable[[int, int], bytes], file: DataFile, near: Sequence[str]) -> Iterator[str]:
    """Which of some sorted digests are in a file: the stretch from the first to the last of them is read where that is
    less than looking for each."""
    most, first, last = len(near) * _PROBES * _BLOCK, 0, file.rows
    if last > _SHORT and len(near) > 1:
        first, last = _place(read, file, near[0])[0], min(last, _place(read, file, near[-1])[0] + 1)
    if last - first > most:
        yield from (content for content in near if _place(read, file, content)[1])
    elif last > first:
        texts = np.frombuffer(read(first, last - first), _TEXT)
        wanted = np.array([content.encode() for content in near], _TEXT)
        places = np.minimum(np.searchsorted(texts, wanted), len(texts) - 1)
        yield from (near[at] for at in np.flatnonzero(texts[places] == wanted).tolist())


def _place(read: Callable[[int, int], bytes], file: DataFile, content: str) -> tuple[int, bool]:
    """Where a digest is in a sorted file, or would be, and whether it is: a block is read where it would stand between
    two that are known."""
    wanted, low, high = content.encode(), 0, file.rows  # it is at `low` or later, and before `high`
    least, most = _number(file.low["content"].encode()), _number(file.high["content"].encode()) + 1
    number = _number(wanted)
    while low < high:
        guess = low + (high - low) * (number - least) // max(1, most - least)
        start = max(low, min(guess - _BLOCK // 2, high - _BLOCK))
        rows = min(_BLOCK, high - start)
        block = read(start, rows)
        if wanted < block[:WIDTH]:
            high, most = start, _number(block[:WIDTH])
        elif wanted > block[-WIDTH:]:
            low, least = start + rows, _number(block[-WIDTH:])
        else:
            texts = np.frombuffer(block, _TEXT)
            at = int(np.searchsorted(texts, np.array(wanted, _TEXT)))
            return start + at, bool(texts[at] == wanted)
    return low, False


def _number(text: bytes) -> int:
    """Where a digest stands among all, in 48 bits."""
    return int.from_bytes(b64a.decode(text[:8].decode()), "big")


def known_by_job(files: Files, state: State, wanted: DataFrame, rows: int) -> DataFrame:
    """Those of some digests that are here, as tasks find them; `rows` says how many are looked for.

    Each task looks for a range of them, so that it reads that range of a file at most. Workers see the archive's folder
    as this process does.
    """
    assert files.folder is not None
    held = State(files=(*state.table(CONTENTS), *state.table(GONE)))
    apart = wanted.select("content").repartitionByRange(1 + rows // _TASK_ROWS, "content")
    task = partial(_look_task, str(files.folder), held)
    return apart.sortWithinPartitions("content").mapInArrow(task, "content string")


def _look_task(folder: str, held: State, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        known = Lookup(Path(folder), held, batch["content"].to_pylist()).known
        yield pa.record_batch({"content": pa.array(known, pa.string())})


# Writing


def write(files: Files, state: State, contents: pa.ChunkedArray, batch: str) -> tuple[list[DataFile], list[str]]:
    """The digests of a new batch as a file, and the paths of the files that it stands for.

    Files of the batches right before it that are not much longer are written with it: there are few of them at any
    time, and each digest is written again as often as its file doubles.
    """
    new = np.unique(np.array(contents.to_pylist(), _TEXT))
    if files.folder is None or not len(new):
        return [], []
    parts, rows = [new], len(new)
    earlier = _filled(state)
    first = batch
    dropped: list[str] = []
    for before in sorted(state.table(CONTENTS), key=lambda file: file.last, reverse=True):
        is_next = bool(earlier) and before.last == earlier[-1]
        if not is_next or before.rows > 2 * rows or before.rows + rows > MERGED_ROWS:
            break
        parts.append(np.memmap(files.folder / before.path, _TEXT, "r"))
        rows += before.rows
        first = before.first
        earlier = earlier[: earlier.index(first)]
        dropped.append(before.path)
    folder = f"data/{CONTENTS}/{uuid.uuid4().hex}"
    (files.folder / folder).mkdir(parents=True)
    name, rows, ends = _written(files.folder / folder, _together(parts, rows))
    return [_file(CONTENTS, f"{folder}/{name}", rows, ends, (first, batch))], dropped


def write_gone(files: Files, contents: Sequence[str]) -> list[DataFile]:
    """That some digests are no longer here, as a file; none for none."""
    if not contents or files.folder is None:
        return []
    folder = f"data/{GONE}/{uuid.uuid4().hex}"
    (files.folder / folder).mkdir(parents=True)
    name, rows, ends = _written(files.folder / folder, [np.unique(np.array(contents, _TEXT))])
    return [_file(GONE, f"{folder}/{name}", rows, ends, ("", ""))]


def _together(parts: Sequence[Texts], rows: int) -> Iterator[Texts]:
    """Sorted digests in one order, a slice at a time: digests are even, so equal ranges hold about as many."""
    slices = 1 + rows // _HELD_ROWS
    edges = [b64a.encode((number * (1 << 48) // slices).to_bytes(6, "big")).encode() for number in range(1, slices)]
    places = [[0, *np.searchsorted(part, np.array(edges, _TEXT)), len(part)] for part in parts]
    for at in range(slices):
        yield np.unique(np.concatenate([part[p[at] : p[at + 1]] for part, p in zip(parts, places, strict=True)]))


def _written(folder: Path, parts: Iterable[Texts]) -> tuple[str, int, tuple[str, str]]:
    """A file of sorted digests under a name that nobody else has, how many there are, the least and the greatest."""
    name = f"part-{uuid.uuid4().hex}{_SUFFIX}"
    hidden = folder / f".{name}"
    rows, low, high = 0, b"", b""
    with hidden.open("wb") as out:
        for part in parts:
            if len(part):
                low, high, rows = low or bytes(part[0]), bytes(part[-1]), rows + len(part)
                out.write(part.tobytes())
        out.flush()
        os.fsync(out.fileno())
    if rows:
        hidden.rename(folder / name)
    else:
        hidden.unlink()
    return name, rows, (low.decode(), high.decode())


def _file(table: str, name: str, rows: int, ends: tuple[str, str], batches: tuple[str, str]) -> DataFile:
    """A file of digests: the least and the greatest of them, and the first and the last batch."""
    return DataFile(
        table=table,
        path=name,
        rows=rows,
        bytes=rows * WIDTH,
        first=batches[0],
        last=batches[1],
        low={"content": ends[0]},
        high={"content": ends[1]},
    )


def write_by_job(
    files: Files, table: str, contents: DataFrame, rows: int, batches: tuple[str, str] = ("", "")
) -> list[DataFile]:
    """Digests as files that tasks write, apart by what they begin with; `rows` says about how many there are.

    Workers see the archive's folder as this process does.
    """
    assert files.folder is not None
    folder = f"data/{table}/{uuid.uuid4().hex}"
    (files.folder / folder).mkdir(parents=True)
    apart = contents.select("content").distinct().repartitionByRange(1 + rows // _FILE_ROWS, "content")
    task = partial(_write_task, str(files.folder / folder))
    found = apart.sortWithinPartitions("content").mapInArrow(task, _WRITTEN).collect()
    return [_file(table, f"{folder}/{row['name']}", row["rows"], (row["low"], row["high"]), batches) for row in found]


def is_worth_rebuilding(state: State) -> bool:
    """Whether lookups would have less to look at."""
    return bool(state.table(GONE) or uncovered_files(state)) or len(state.table(CONTENTS)) > _MOST_FILES


def rebuilt(files: Files, state: State, contents: DataFrame) -> tuple[list[DataFile], list[str]]:
    """The digests of everything that is here as files that lie side by side, and the paths of those before."""
    names, rows = _filled(state), state.rows("records") + state.rows("quarantine")
    made = write_by_job(files, CONTENTS, contents, rows, (names[0], names[-1]))
    return made, [file.path for table in (CONTENTS, GONE) for file in state.table(table)]


def _write_task(folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One sorted part; a task that runs twice leaves a file that no commit names."""
    parts = (np.array(batch["content"].to_pylist(), _TEXT) for batch in batches)
    name, rows, (low, high) = _written(Path(folder), parts)
    if rows:
        yield pa.record_batch({"name": [name], "rows": [rows], "low": [low], "high": [high]})
