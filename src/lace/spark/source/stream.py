"""`spark.readStream.format("lace")`: a folder that bundles are moved into, read as a stream; and streams of bundles.

Rule: a file is read once, oldest first, as much of them at a time as was admitted. What an offset says is enough to go
on after any stop. Only streams need this module, and PySpark 4.3 with it: reads and writes do with an older one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, count
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from lace.spark.source.files import FileRange, input_files, input_stats, shares
from lace.spark.source.places import Place, PlaceStat, placed
from lace.spark.source.source import PiecePartition, ReadOptions, read_batches
from lace.spark.source.writer import BundleFolder
from lace.store.bundle import index_path

Offset = dict[str, str]  # path -> length and time of the file that was read


class LaceStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Picks up new files, oldest first; an offset names the files there that were read, so a restart reads none twice.

    Move finished bundles into the directory: a file is read once, as it is when it is first seen. A name that is gone
    from the directory leaves the offset too, so a stream that cleans up after itself has short offsets for ever.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.target: frozenset[str] | None = None  # of a query that ends when it has read what is there now

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        if self.options.max_files is not None:
            return ReadMaxFiles(self.options.max_files)
        return ReadAllAvailable() if self.options.max_bytes is None else ReadMaxBytes(self.options.max_bytes)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self.target = frozenset(map(str, self._files()))

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802 - Spark's name
        there = {str(file): stat for file, stat in input_stats(self.options.paths)}
        held = {path: start[path] for path, stat in there.items() if self._was_read(path, stat, start)}
        new = {path: stat for path, stat in there.items() if path not in held}
        if self.target is not None:
            new = {path: stat for path, stat in new.items() if path in self.target}
        oldest_first = sorted(new, key=lambda path: (new[path].st_mtime_ns, path))
        admitted = {path: _stamp(new[path]) for path in _admitted(oldest_first, new, limit)}
        return {**held, **admitted} if admitted else start  # a name less is no reason for a micro-batch

    def _was_read(self, path: str, stat: PlaceStat, start: Offset) -> bool:
        """By name; where files are cleaned away, another file may come under a name that was read."""
        return path in start and (self.options.cleaning == "off" or start[path] == _stamp(stat))

    def commit(self, end: Offset) -> None:
        """Spark will not ask for these files again: their records stand where the query writes."""
        if self.options.cleaning == "off":
            return
        for path, stamp in end.items():
            bundle = Path(path)
            if not bundle.exists() or _stamp(_stat(bundle)) != stamp:
                continue  # cleaned before, or another file of that name, which was not read yet
            if self.options.cleaning == "delete":
                index_path(bundle).unlink(missing_ok=True)  # first: without its bundle it would never be cleaned
                bundle.unlink()
            else:
                move_apart(bundle, Path(self.options.done_folder))

    def _files(self) -> list[Place]:
        return input_files(self.options.paths)

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        names = sorted(path for path in end if start.get(path) != end[path])
        if self.options.by_files:
            return [PiecePartition([FileRange(path, 0, 0, 0) for path in names])] if names else []
        new = [placed(path) for path in names]
        return [PiecePartition(share) for share in shares(new, self.options.split_bytes)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, PiecePartition)
        if self.options.by_files:
            return iter([pa.record_batch({"bundle": pa.array([piece.path for piece in partition.share], pa.string())})])
        return read_batches(partition.share, self.options)


class LaceStreamWriter(DataSourceStreamArrowWriter):
    """Writes one bundle for each task of a micro-batch, named by its number."""

    def __init__(self, path: str, schema: StructType) -> None:
        self.bundles = BundleFolder(path, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.bundles.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.bundles.publish(messages, f"batch-{batchId:08d}-", anew=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803 - Spark's name
        self.bundles.forget(messages)


def _stamp(stat: PlaceStat) -> str:
    return f"{stat.st_size}:{stat.st_mtime_ns}"


def _stat(bundle: Path) -> PlaceStat:
    stat = bundle.stat()
    return PlaceStat(stat.st_size, stat.st_mtime_ns)


def move_apart(bundle: Path, folder: Path) -> None:
    """Move a bundle and its index into a folder, beside others that had its name."""
    folder.mkdir(parents=True, exist_ok=True)
    names = (f"{bundle.stem}~{number}{bundle.suffix}" if number else bundle.name for number in count())
    target = next(place for name in names if not (place := folder / name).exists())
    if index_path(bundle).exists():
        shutil.move(index_path(bundle), index_path(target))
    shutil.move(bundle, target)


def _admitted(paths: Sequence[str], stats: Mapping[str, PlaceStat], limit: ReadLimit) -> Sequence[str]:
    """The files of one micro-batch: at least one, so that a large file does not stop a stream."""
    match limit:
        case ReadMaxFiles(max_files=most):
            return paths[:most]
        case ReadMaxBytes(max_bytes=most):
            sizes = accumulate(stats[path].st_size for path in paths)
            return paths[: max(1, sum(size <= most for size in sizes))]
        case _:
            return paths
