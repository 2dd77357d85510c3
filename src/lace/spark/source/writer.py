"""`df.write.format("lace")` and `df.writeStream.format("lace")`: bundles that any lace imports, here or elsewhere.

Rule: a job's bundles have hidden names until all of them are whole; a row that is no record fails the job. A stream
names its bundles by the number of the micro-batch: one that runs twice leaves the bundles of one.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lace.errors import InvalidInput
from lace.records.validate import validate
from lace.spark.source.places import TargetFolder, folder_at
from lace.spark.source.schemas import WrongSchema
from lace.store.bundle import INDEX_SUFFIX, BundleWriter, index_path
from lace.values import dataclass

BUNDLE_SUFFIX = ".bundle"


@dataclass
class _WrittenBundle(WriterCommitMessage):
    """The hidden name of a finished bundle; None for a task without rows."""

    hidden: str | None
    records: int


class BundleFolder:
    """Where the tasks of a job leave bundles, and how these get their names."""

    def __init__(self, path: str, schema: StructType) -> None:
        if not path:
            raise InvalidInput(
                "format lace needs a path: df.write.format('lace').mode('append').save(path)", rule="lace-path"
            )
        if "stored" not in schema.names:
            raise WrongSchema("a frame written as lace has a column stored", rule="schema", found=str(schema.names))
        self.address: str = folder_at(path).address  # absolute: tasks run in other folders

    @property
    def _folder(self) -> TargetFolder:
        return folder_at(self.address)

    def write(self, batches: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """One bundle of the rows of a task."""
        name, records = f".part-{uuid.uuid4().hex}{BUNDLE_SUFFIX}", 0
        with tempfile.TemporaryDirectory(prefix="lace-") as made_in:
            made = self._folder.path_for(name) or Path(made_in, name)
            with BundleWriter(made) as bundle:
                for batch in batches:
                    for stored in batch["stored"].to_pylist():
                        # What is no record is not written.
                        bundle.write(validate(stored, verify_signature=False).stored)
                        records += 1
            if not records:
                made.unlink(missing_ok=True)
                index_path(made).unlink(missing_ok=True)
                return _WrittenBundle(None, 0)
            for path in (index_path(made), made):
                self._folder.take(path)
        return _WrittenBundle(name, records)

    def publish(self, messages: Sequence[WriterCommitMessage | None], prefix: str, *, anew: bool) -> None:
        """Give bundles and their indexes names that begin so; `anew`: those of such a name before go."""
        folder = self._folder
        before = [name for name in folder.names() if name.startswith(prefix)] if anew else []
        for name in sorted(before, key=lambda name: name.endswith(INDEX_SUFFIX)):  # no bundle loses its index first
            folder.remove(name)
        for hidden in _hidden(messages):
            shown = f"{prefix}{hidden.removeprefix('.part-')}"
            # The index first, so that no reader sees a bundle without one.
            folder.rename(f"{hidden}{INDEX_SUFFIX}", f"{shown}{INDEX_SUFFIX}")
            folder.rename(hidden, shown)

    def forget(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Remove what tasks left."""
        for hidden in _hidden(messages):
            self._folder.remove(hidden)
            self._folder.remove(f"{hidden}{INDEX_SUFFIX}")


def _hidden(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    return [one.hidden for one in messages if isinstance(one, _WrittenBundle) and one.hidden is not None]


class LaceWriter(DataSourceArrowWriter):
    """Writes one bundle a task, under a hidden name until the whole job has succeeded."""

    def __init__(self, path: str, schema: StructType, overwrite: bool) -> None:
        self.bundles = BundleFolder(path, schema)
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self.bundles.write(iterator)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self.bundles.publish(messages, "part-", anew=self.overwrite)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        self.bundles.forget(messages)
