"""How an archive's files are cut and chosen: by ranges of hashes, and by what their commit says of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as parquet_files
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name every Spark user reads

from lace.errors import InvalidInput
from lace.notation import b64a
from lace.notation.digest import digest
from lace.spark.archive import find, tables
from lace.spark.archive.archive import ArchiveLookup
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.moments import micros, parse_moment, second, second_at
from lace.spark.archive.versions import DataFile, State
from lace.spark.engine.joins import JoinChoice
from lace.spark.source.schemas import arrow_schema

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
    spark: SparkSession, tmp_path: Path, values: list[str]
) -> None:
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
    made = tables.write(
        spark, files, "published", rows, by=("hash",), rows=len(values), file_rows=10, move=False, task_rows=90
    )
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
def test_rows_are_chosen_by_few_hashes_and_by_many(spark: SparkSession, limit: int) -> None:
    joins = JoinChoice(broadcast_rows=limit, task_rows=30)  # several parts
    values = hashes(300)
    wanted = [*values[::3], "P.unknown.H3"]
    many = frame_of(spark, values).select("hash", F.length("hash").alias("long"))
    found = joins.chosen(many, frame_of(spark, wanted), len(wanted))
    assert sorted(row["hash"] for row in found.collect()) == sorted(values[::3])
    none = joins.chosen(many, frame_of(spark, []), 0)
    assert none.count() == 0
    plan = found._jdf.queryExecution().toString()
    assert ("BroadcastHashJoin" in plan) is (limit == 1000)
    assert ("ShuffledHashJoin" in plan) is (limit != 1000)
    assert "SortMergeJoin" not in plan
    if limit != 1000:
        assert found.rdd.getNumPartitions() == 1 + len(wanted) // 30


# Times

MOMENTS = st.datetimes(datetime(1970, 1, 1), datetime(2286, 11, 20), timezones=st.just(UTC))
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(MOMENTS, ZONES)
def test_a_time_is_the_same_however_it_is_written(moment: datetime, zone: timezone) -> None:
    local = moment.astimezone(zone)
    texts = (moment.isoformat(), moment.replace(tzinfo=None).isoformat(" "), local.isoformat(), local.isoformat(" "))
    assert {parse_moment(text, "time") for text in texts} == {moment}
    assert datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros(moment)) == moment
    assert second(local) == second_at(micros(moment) // 1_000_000)


@given(MOMENTS, MOMENTS)
def test_seconds_order_like_times(one: datetime, other: datetime) -> None:
    assert second(min(one, other)) <= second(max(one, other))


@pytest.mark.parametrize("text", ["", "yesterday", "2026-13-01", "0001-01-01T00:00+14:00"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="a time: 2026-11-16, 2026-11-16T12:00 or") as caught:
        parse_moment(text, "lookup-time")
    assert (caught.value.rule, caught.value.found) == ("lookup-time", text)


@contextmanager
def in_zone(spark: SparkSession, zone: str) -> Iterator[None]:
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def coordinates_at(folder: Path, times: list[datetime]) -> list[DataFile]:
    """One file for each time."""
    schema = arrow_schema(tables.SCHEMAS["coordinates"])
    for number, time in enumerate(times):
        row = dict.fromkeys(schema.names) | {"hash": f"P.{number}.H3", "group": "u", "ts": time}
        place = folder / "data" / "coordinates" / str(number)
        place.mkdir(parents=True)
        parquet_files.write_table(pa.Table.from_pylist([row], schema), place / "part-00000.parquet")
    return tables.by_footers(folder, "coordinates", LocalFiles(folder).listing("data"))


@pytest.mark.spark
def test_lookups_by_time_miss_no_file_whatever_form_and_zone_the_times_are_in(
    spark: SparkSession, tmp_path: Path
) -> None:
    noon = datetime(2026, 3, 1, 12, 0, 5, 500_000, tzinfo=UTC)
    midnight = datetime(2026, 3, 2, tzinfo=UTC)
    files = tuple(coordinates_at(tmp_path, [noon, midnight]))
    state, here = State(files=files), LocalFiles(tmp_path)

    def asked(question: ArchiveLookup) -> tuple[list[str], int]:
        rows, read = find.lookup(
            lambda _, table, chosen: tables.read(spark, here, table, list(chosen)), state, question
        )
        return sorted(row["hash"] for row in rows.collect()), len(read)

    first, last = "P.0.H3", "P.1.H3"
    for zone in ("UTC", "Asia/Tokyo", "America/New_York"):
        with in_zone(spark, zone):
            assert asked(ArchiveLookup(since="2026-03-01T12:00:05.25", until="2026-03-01")) == ([], 0)
            assert asked(ArchiveLookup(since="2026-03-01T12:00:05.25", until="2026-03-01T13:00")) == ([first], 1)
            assert asked(ArchiveLookup(since="2026-03-01 12:00:05.75", until="2026-03-01 12:00:06")) == ([], 1)
            assert asked(ArchiveLookup(since="2026-03-01T21:00:05.5+09:00")) == ([first, last], 2)
            assert asked(ArchiveLookup(since="2026-03-02", until="2026-03-02")) == ([last], 1)
            assert asked(ArchiveLookup(group="u", until="2026-03-01T12:00:05.500000")) == ([first], 1)
    with pytest.raises(InvalidInput, match="found last week"):
        asked(ArchiveLookup(since="last week"))


@pytest.mark.spark
def test_a_file_is_described_alike_by_its_footer_and_by_a_job_in_any_zone(spark: SparkSession, tmp_path: Path) -> None:
    summer = datetime(2026, 3, 29, 1, 30, 0, 999_999, tzinfo=UTC)  # when the clocks of Berlin leap
    files = coordinates_at(tmp_path, [summer, datetime(1970, 1, 1, tzinfo=UTC)])
    here = LocalFiles(tmp_path)
    for zone in ("UTC", "Europe/Berlin"):
        with in_zone(spark, zone):
            assert tables._by_reading(spark, here, "coordinates", here.listing("data")) == files
    assert files[0].low["ts"] == files[0].high["ts"] == "2026-03-29 01:30:00"
