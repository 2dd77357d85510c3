"""A frame used twice: no query sees what another one over the same frame asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from lace.notation.tai import TAI
from lace.records.model import Blob, Plex
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.spark.engine.relations import held_apart
from spark.archives import write_bundle

pytestmark = pytest.mark.spark

Counts = dict[str, int]


def ten_records() -> list:
    """Three of app a, seven of app b."""
    made = [
        Plex(group="u", app="a" if n < 3 else "b", name=str(n), tai=TAI(f"160000000{n}:000000000"), blob=Blob(b""))
        for n in range(10)
    ]
    return [validate(encode_record(plex)) for plex in made]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ten")
    write_bundle(made / "ten.bundle", ten_records())
    return made


@pytest.fixture
def frame(spark: SparkSession, folder: Path) -> Iterator[DataFrame]:
    yield spark.read.format("lace").option("mode", "DROPMALFORMED").load(str(folder))
    spark.catalog.clearCache()


def apps(frame: DataFrame) -> Counts:
    return {row["app"]: row["count"] for row in frame.groupBy("app").count().collect()}


def test_a_filter_is_gone_when_the_frame_is_used_again(frame: DataFrame) -> None:
    assert frame.where("app = 'a'").count() == 3
    assert frame.count() == 10
    assert frame.where("app = 'b' and name like '9%'").count() == 1
    assert frame.where("app in ('a', 'b')").count() == 10
    assert frame.where("app is null").count() == 0
    assert apps(frame) == {"a": 3, "b": 7}


@pytest.mark.parametrize(
    ("combined", "count"),
    [
        (lambda a, b: a.union(b), 10),
        (lambda a, b: a.intersect(b), 0),
        (lambda a, b: b.join(a, on="hash", how="left_anti"), 7),
        (lambda a, b: a.join(b, on="group"), 21),
        (lambda a, b: a.join(b, on="hash", how="full"), 10),
    ],
)
def test_two_filters_of_one_frame_in_one_query(
    frame: DataFrame, combined: Callable[[DataFrame, DataFrame], DataFrame], count: int
) -> None:
    a = frame.where("app = 'a'").select("hash", "group")
    b = frame.where("app = 'b'").select("hash", "group")
    assert combined(a, b).count() == count
    assert frame.count() == 10


def test_a_cached_part_and_the_whole(frame: DataFrame) -> None:
    part = frame.where("app = 'a'").cache()
    assert (part.count(), frame.count(), part.count()) == (3, 10, 3)
    whole = frame.cache()
    assert (whole.where("app = 'b'").count(), whole.count()) == (7, 10)
    part.unpersist()
    whole.unpersist()
    assert (part.count(), frame.count()) == (3, 10)


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("select count(*) from r where hash not in (select hash from r where app = 'a')", 7),
        ("select count(*) from r x left anti join (select * from r where app = 'a') y on x.hash = y.hash", 7),
        ("select count(*) from (select * from r where app = 'a' union all select * from r where app = 'b')", 10),
        ("with a as (select * from r where app = 'a') select count(*) from r, a", 30),
        ("select count(*) from r where name > (select max(name) from r where app = 'a')", 7),
    ],
)
def test_views_in_sql(spark: SparkSession, frame: DataFrame, query: str, count: int) -> None:
    frame.createOrReplaceTempView("r")
    assert spark.sql(query).first()[0] == count


def test_the_users_own_settings_are_left_alone(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.python.filterPushdown.enabled") == "false"


def test_a_table_of_the_catalog_remembers_its_options_and_explains_its_columns(
    spark: SparkSession, folder: Path
) -> None:
    try:
        spark.sql(f"create table ten using lace options (path '{folder}', mode 'DROPMALFORMED')")
        assert spark.sql("select count(*) from ten where app = 'a'").first()[0] == 3
        assert spark.table("ten").count() == 10
        assert "_corrupt_record" not in spark.table("ten").columns
        told = {row["col_name"]: row["comment"] for row in spark.sql("describe ten").collect()}
        assert "signed" in told["signed_by"]
    finally:
        spark.sql("drop table if exists ten")
    spark.sql(f"create or replace temporary view few using lace options (path '{folder.as_uri()}')")
    assert spark.sql("select count(*) from few").first()[0] == 10


def test_what_two_evaluations_hold_of_the_same_rows_is_let_go_by_each_for_itself(spark: SparkSession) -> None:
    rows = spark.range(10)
    one, other = held_apart(rows), held_apart(rows)
    try:
        assert one.count() == other.count() == 10
        one.unpersist()
        assert other.storageLevel.useMemory
    finally:
        other.unpersist()
