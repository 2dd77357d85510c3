"""Relations on the cluster while a program is evaluated: their frames, their lengths, and how they grow.

Rule: a relation is a set; every frame that enters one was made distinct and had the known rows taken out before.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import reduce

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.errors import UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from lace.datalog.source import Row
from lace.spark.engine.pivot import UNIT, relation_columns
from lace.spark.engine.plans import Sized
from lace.spark.source.schemas import arrow_schema

_MERGE_FACTOR = 2


def relation_schema(arity: int) -> StructType:
    """Text columns c0, c1, …; a relation of arity 0 has one column that is always true."""
    if arity == 0:
        return StructType([StructField(UNIT, BooleanType(), False)])
    return StructType([StructField(name, StringType(), False) for name in relation_columns(arity)])


def local_relation(spark: SparkSession, arity: int, rows: Sequence[Row]) -> Sized:
    """Rows of the driver as a relation; by way of Arrow, so that they are part of a plan and no job of their own."""
    schema = relation_schema(arity)
    kinds = arrow_schema(schema)
    values: Iterable[Row | tuple[bool, ...]] = rows if arity else [(True,)] * len(rows)
    columns = zip(*values, strict=True) if rows else ((),) * len(kinds)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, kinds, strict=True)]
    return Sized(spark.createDataFrame(pa.table(arrays, schema=kinds), schema), len(rows), rows)


def local_columns(spark: SparkSession, columns: Sequence[Sequence[str]], rows: int, kept: int) -> Sized:
    """Columns of the driver as a relation; its rows stay here too if they are no more than `kept`."""
    if rows <= kept or not columns:
        return local_relation(spark, len(columns), list(zip(*columns, strict=True)) if columns else [()] * rows)
    schema = relation_schema(len(columns))
    kinds = arrow_schema(schema)
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, kinds, strict=True)]
    return Sized(spark.createDataFrame(pa.table(arrays, schema=kinds), schema), rows)


def collect_rows(frame: DataFrame, arity: int) -> Iterator[Row]:
    """A relation's rows on the driver."""
    table = frame.toArrow()
    if arity == 0:
        return iter([()] * min(1, table.num_rows))
    return zip(*(column.to_pylist() for column in table.columns), strict=True)


def cut_lineage(frame: DataFrame, *, eager: bool) -> DataFrame:
    """The frame with its history cut: in a checkpoint directory if the session has one, which outlives an executor.

    Without one the rows stay with the executors, which is faster; if an executor is lost the evaluation fails and is
    run again by the caller that asked for it. An engine that has no lazy checkpoints makes them at once.
    """
    cut = frame.checkpoint if frame.sparkSession.conf.get("spark.checkpoint.dir", None) else frame.localCheckpoint
    try:
        return cut(eager=eager)
    except UnsupportedOperationException:
        return cut(eager=True)


def held_apart(frame: DataFrame) -> DataFrame:
    """The frame, computed once and kept until `unpersist`, for one evaluation alone.

    Spark recognises what it keeps by its plan. Without the test that is always true, two evaluations that read the same
    would share one copy: the first to let go takes it from the other, and one that is interrupted fails both.
    """
    return frame.where(F.lit(uuid.uuid4().hex).isNotNull()).persist(StorageLevel.MEMORY_AND_DISK)


def union(frames: Iterable[DataFrame]) -> DataFrame:
    """Rows of all the frames, repeats included."""
    return reduce(DataFrame.unionByName, frames)


class Growing:
    """A relation that grows by deltas.

    While it has few rows the driver holds them, and a round is one job without a shuffle. Then it is few chunks on the
    cluster, each at least twice as long as the next, all with cut lineage.
    """

    def __init__(self, spark: SparkSession, arity: int, few: int) -> None:
        self.columns: list[str] = relation_columns(arity)
        self.few = few
        self._arity = arity
        self._spark = spark
        self._known: dict[Row, None] | None = {} if few else None
        self._chunks: list[Sized] = []

    @property
    def rows(self) -> int:
        return sum(chunk.rows or 0 for chunk in self._chunks) if self._known is None else len(self._known)

    def sized(self) -> Sized:
        if self._known is not None:
            return local_relation(self._spark, self._arity, list(self._known))
        frames = [chunk.frame for chunk in self._chunks]
        return Sized(union(frames), self.rows) if frames else local_relation(self._spark, self._arity, [])

    def fresh(self, frame: DataFrame) -> Sized:
        """The rows of a frame that this relation does not have, each once, with their number."""
        if self._known is not None:
            rows = frame.limit(self.few + 1).collect()
            if len(rows) <= self.few:
                found = dict.fromkeys(tuple(row) if self._arity else () for row in rows)
                new = [row for row in found if row not in self._known]
                return local_relation(self._spark, self._arity, new)
            self._move_to_cluster()
        apart = frame.distinct()
        if self._chunks:
            apart = apart.join(self.sized().frame, on=self.columns, how="left_anti")
        apart = cut_lineage(apart, eager=False)
        return Sized(apart, apart.count())

    def add(self, delta: Sized) -> None:
        """Append a delta, merging chunks that have become too short: the plan stays of logarithmic size."""
        if self._known is not None and delta.values is not None:
            self._known |= dict.fromkeys(delta.values)
            if len(self._known) > self.few:
                self._move_to_cluster()
            return
        chunk = delta
        while self._chunks and (self._chunks[-1].rows or 0) < _MERGE_FACTOR * (chunk.rows or 0):
            last = self._chunks.pop()
            chunk = Sized(union([last.frame, chunk.frame]).coalesce(_partitions(last, chunk)), _sum(last, chunk))
        if chunk is not delta:
            chunk = Sized(cut_lineage(chunk.frame, eager=True), chunk.rows)
        self._chunks.append(chunk)

    def _move_to_cluster(self) -> None:
        if self._known:
            self._chunks.append(local_relation(self._spark, self._arity, list(self._known)))
        self._known = None


def _sum(left: Sized, right: Sized) -> int:
    return (left.rows or 0) + (right.rows or 0)


def _partitions(left: Sized, right: Sized) -> int:
    """One task for each 250,000 rows: a union of many small deltas must not become thousands of tasks."""
    return 1 + _sum(left, right) // 250_000
