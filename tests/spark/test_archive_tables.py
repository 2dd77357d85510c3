"""How an archive's files are cut and chosen: by ranges of hashes, and by what their commit says of them."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet_files
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.notation import b64a
from lace.notation.digest import digest
from lace.spark.archive import tables
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.log import DataFile

VALUES = st.text("abc", max_size=3)


def file_of(low: str | None, high: str | None) -> DataFile:
    ends = [{} if end is None else {"hash": end} for end in (low, high)]
    return DataFile(table="records", path=f"{low}-{high}", rows=1, bytes=1, low=ends[0], high=ends[1])


@given(st.lists(st.tuples(VALUES, VALUES), max_size=6), st.lists(VALUES, max_size=6))
def test_files_that_may_hold_one_of_some_values_are_found_whatever_their_order(
    ends: list[tuple[str, str]], values: list[str]
) -> None:
    files = [file_of(min(pair), max(pair)) for pair in ends]
    wanted = [file for file in files if any(file.low["hash"] <= value <= file.high["hash"] for value in values)]
    assert tables.holding([*files, file_of(None, None)], "hash", values) == wanted


def hashes(count: int, kinds: str = "BPS") -> list[str]:
    rng = random.Random(count)
    return [f"{rng.choice(kinds)}.{b64a.encode(digest(str(n).encode()))}.H3" for n in range(count)]


def frame_of(spark: SparkSession, values: list[str]) -> DataFrame:
    return spark.createDataFrame(pa.table({"hash": pa.array(values, pa.string())}))


@pytest.mark.spark
@pytest.mark.parametrize("values", [hashes(400), [hashes(1)[0]] * 40, []])
def test_rows_that_are_dear_to_move_are_computed_once_and_stay_where_they_are(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: list[str]
) -> None:
    monkeypatch.setattr(tables, "TASK_ROWS", 90)
    files = LocalFiles(tmp_path)
    computed = spark.sparkContext.accumulator(0)

    def dear(batches):  # type: ignore[no-untyped-def]
        for batch in batches:
            computed.add(batch.num_rows)
            yield batch

    keys = frame_of(spark, values).repartition(8)
    rows = keys.mapInArrow(dear, keys.schema).select(
        F.lit("ann").alias("peer"), F.substring("hash", 3, 2).alias("prefix"), "hash"
    )
    made = tables.write(spark, files, "published", rows, by=("hash",), rows=len(values), file_rows=10, move=False)
    assert computed.value == len(values)  # once: a range partitioner looks at them twice
    found = [parquet_files.read_table(tmp_path / file.path)["hash"].to_pylist() for file in made]
    assert sorted(text for part in found for text in part) == sorted(values)
    assert all(part == sorted(part) for part in found)
    assert [(file.low["hash"], file.high["hash"]) for file in made] == [(part[0], part[-1]) for part in found]
    assert len(made) == (1 + len(values) // 90 if values else 0)


@pytest.mark.spark
def test_a_table_of_several_files_is_cut_by_ranges(spark: SparkSession, tmp_path: Path) -> None:
    values = hashes(400)
    rows = frame_of(spark, values).select(F.lit("ann").alias("peer"), F.substring("hash", 3, 2).alias("prefix"), "hash")
    made = tables.write(spark, LocalFiles(tmp_path), "published", rows, by=("hash",), rows=400, file_rows=90)
    made.sort(key=lambda file: file.low["hash"])
    assert len(made) > 2
    assert all(one.high["hash"] < other.low["hash"] for one, other in pairwise(made))


@pytest.mark.spark
@pytest.mark.parametrize("limit", [1000, 99, 0])
def test_rows_are_chosen_by_few_hashes_and_by_many(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(tables, "TASK_ROWS", 30)  # several parts
    values = hashes(300)
    wanted = [*values[::3], "P.unknown.H3"]
    many = frame_of(spark, values).select("hash", F.length("hash").alias("long"))
    found = tables.chosen(many, frame_of(spark, wanted), len(wanted), limit)
    assert sorted(row["hash"] for row in found.collect()) == sorted(values[::3])
    none = tables.chosen(many, frame_of(spark, []), 0, limit)
    assert none.count() == 0
    plan = found._jdf.queryExecution().toString()
    assert ("BroadcastHashJoin" in plan) is (limit == 1000)
    assert ("ShuffledHashJoin" in plan) is (limit != 1000)
    assert "SortMergeJoin" not in plan
    if limit != 1000:
        assert found.rdd.getNumPartitions() == 1 + len(wanted) // 30
