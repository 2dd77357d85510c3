"""`df.write.format("lace")`: bundles that any lace imports.

Rule: a job's bundles have hidden names until all of them are whole; a row that is no record fails the job.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from lace.errors import InvalidInput
from lace.records.validate import validate
from lace.spark.source.places import local_path
from lace.spark.source.schemas import WrongSchema
from lace.store.bundle import BundleWriter, index_path
from lace.values import dataclass

BUNDLE_SUFFIX = ".bundle"


@dataclass
class _WrittenBundle(WriterCommitMessage):
    """A finished bundle under its temporary name; None for a task without rows."""

    temporary: str | None
    records: int


class LaceWriter(DataSourceArrowWriter):
    """Writes one bundle a task, under a hidden name until the whole job has succeeded."""

    def __init__(self, path: str, schema: StructType, overwrite: bool) -> None:
        if not path:
            raise InvalidInput(
                "format lace needs a path: df.write.format('lace').mode('append').save(path)", rule="lace-path"
            )
        if "stored" not in schema.names:
            raise WrongSchema("a frame written as lace has a column stored", rule="schema", found=str(schema.names))
        self.directory: str = str(local_path(path).absolute())  # tasks run in other folders
        self.overwrite = overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        target = directory / f".part-{uuid.uuid4().hex}{BUNDLE_SUFFIX}"
        records = 0
        with BundleWriter(target) as bundle:
            for batch in iterator:
                for stored in batch["stored"].to_pylist():
                    bundle.write(validate(stored, verify_signature=False).stored)  # what is no record is not written
                    records += 1
        if not records:
            _remove(target)
        return _WrittenBundle(str(target) if records else None, records)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        directory = Path(self.directory)
        directory.mkdir(parents=True, exist_ok=True)
        if self.overwrite:
            for old in directory.glob(f"part-*{BUNDLE_SUFFIX}"):
                _remove(old)
        for message in messages:
            if isinstance(message, _WrittenBundle) and message.temporary is not None:
                _publish(Path(message.temporary))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        for message in messages:
            if isinstance(message, _WrittenBundle) and message.temporary is not None:
                _remove(Path(message.temporary))


def _publish(hidden: Path) -> None:
    """Give a bundle and its index their names; the index first, so that no reader sees a bundle without one."""
    shown = hidden.with_name(hidden.name[1:])
    index_path(hidden).rename(index_path(shown))
    hidden.rename(shown)


def _remove(bundle: Path) -> None:
    bundle.unlink(missing_ok=True)
    index_path(bundle).unlink(missing_ok=True)
