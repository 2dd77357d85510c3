"""Tables of an archive by `spark.read.format("lace")` and `USING lace`: option `table`, and `asOf` for an old version.

Rule: which files belong to a version is asked when a query is planned; a frame stays with the version it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet_files
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from lace.errors import InvalidInput
from lace.spark.archive.filesystem import open_files
from lace.spark.archive.log import Log
from lace.spark.archive.tables import columns_of
from lace.spark.source.schemas import arrow_schema
from lace.values import dataclass

_BATCH_ROWS = 4096


def table_schema(options: Mapping[str, str]) -> StructType:
    """The columns of the table that some options name."""
    return columns_of(options["table"])


@dataclass
class _FilePartition(InputPartition):
    """One file of the table, wherever workers run."""

    path: str


class ArchiveReader(DataSourceReader):
    """Reads the files that a version names; it holds options only."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        table_schema(options)
        if not options.get("path"):
            raise InvalidInput("format lace needs the path of an archive", rule="lace-path")
        self.path: str = options["path"]
        self.table: str = options["table"]
        self.as_of: str | None = options.get("asOf")
        self.schema: Any = arrow_schema(schema)

    def partitions(self) -> Sequence[InputPartition]:
        files = open_files(self.path)
        state = Log(files).state(self.as_of)
        return [_FilePartition(f"{files.uri}/{file.path}") for file in state.table(self.table)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _FilePartition)
        file = parquet_files.ParquetFile(partition.path)
        for batch in file.iter_batches(_BATCH_ROWS, columns=self.schema.names):
            found = [batch[field.name].cast(field.type) for field in self.schema]
            yield pa.record_batch(found, schema=self.schema)
