"""Relations on the cluster while a program is evaluated: their frames, their lengths, and how they grow.

Rule: a relation is a set; every frame that enters one was made distinct and had the known rows taken out before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from lace.datalog.source import Row
from lace.spark.pivot import UNIT, relation_columns
from lace.spark.plans import Sized

_MERGE_FACTOR = 2


def relation_schema(arity: int) -> StructType:
    """Text columns c0, c1, …; a relation of arity 0 has one column that is always true."""
    if arity == 0:
        return StructType([StructField(UNIT, BooleanType(), False)])
    return StructType([StructField(name, StringType(), False) for name in relation_columns(arity)])


def local_relation(spark: SparkSession, arity: int, rows: Sequence[Row]) -> Sized:
    """Rows of the driver as a relation."""
    values: list[tuple[object, ...]] = [row or (True,) for row in rows]
    return Sized(spark.createDataFrame(values, relation_schema(arity)), len(rows), rows)


def collect_rows(frame: DataFrame, arity: int) -> Iterator[Row]:
    """A relation's rows on the driver."""
    table = frame.toArrow()
    if arity == 0:
        return iter([()] * min(1, table.num_rows))
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def cut_lineage(frame: DataFrame, *, eager: bool) -> DataFrame:
    """The frame with its history cut: in a checkpoint directory if the session has one, which outlives an executor.

    Without one the rows stay with the executors, which is faster; if an executor is lost the evaluation fails and is
    run again by whoever asked for it.
    """
    if frame.sparkSession.conf.get("spark.checkpoint.dir", None):
        return frame.checkpoint(eager=eager)
    return frame.localCheckpoint(eager=eager)


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Rows of all the frames, repeats included."""
    return reduce(DataFrame.unionByName, frames)


class Growing:
    """A relation that grows by deltas: few chunks, each at least twice as long as the next, all with cut lineage."""

    def __init__(self, arity: int, empty: Sized) -> None:
        self.columns = relation_columns(arity)
        self._empty = empty
        self._chunks: list[Sized] = []

    @property
    def rows(self) -> int:
        return sum(chunk.rows or 0 for chunk in self._chunks)

    def sized(self) -> Sized:
        frames = [chunk.frame for chunk in self._chunks]
        return Sized(union(frames), self.rows) if frames else self._empty

    def add(self, delta: Sized) -> None:
        """Append a delta, merging chunks that have become too short: the plan stays of logarithmic size."""
        chunk = delta
        while self._chunks and (self._chunks[-1].rows or 0) < _MERGE_FACTOR * (chunk.rows or 0):
            last = self._chunks.pop()
            chunk = Sized(union([last.frame, chunk.frame]).coalesce(_partitions(last, chunk)), _sum(last, chunk))
        if chunk is not delta:
            chunk = Sized(cut_lineage(chunk.frame, eager=True), chunk.rows)
        self._chunks.append(chunk)

    def without_known(self, frame: DataFrame) -> DataFrame:
        """The rows of a frame that this relation does not have, each once."""
        fresh = frame.distinct()
        return fresh.join(self.sized().frame, on=self.columns, how="left_anti") if self._chunks else fresh


def _sum(left: Sized, right: Sized) -> int:
    return (left.rows or 0) + (right.rows or 0)


def _partitions(left: Sized, right: Sized) -> int:
    """One task for each 250,000 rows: a union of many small deltas must not become thousands of tasks."""
    return 1 + _sum(left, right) // 250_000
