"""The table of tips says what a lace says of the same records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lace
from lace.limits import SECOND_NS
from lace.notation.tai import TAI
from lace.records.keys import SigningKey
from lace.records.tip import LOOKED_AT, TipPolicy
from lace.spark.jobs.tips import tips

pytestmark = pytest.mark.spark
KEYS = [None, SigningKey(bytes(31) + b"\x05"), SigningKey(bytes(31) + b"\x07"), SigningKey(bytes(31) + b"\x09")]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Names with one writer, several, ties, versions dated ahead, only such, and more versions than are looked at."""
    folder = tmp_path_factory.mktemp("tips")
    with lace.open(folder / "a.lace", create=True) as opened:
        with opened.batch() as batch:
            for number in range(240):
                seconds = 1_700_000_000 + number * number % 7
                if number % 5 == 0 or number % 24 == 0:
                    seconds = 9_000_000_000 + number % 3
                sign = KEYS[number * number % 11 % len(KEYS)]
                name = f"n/{number % 24}"
                batch.put(b"%d" % number, group="u", app="a", name=name, tai=f"{seconds}:000000000", sign=sign)
            batch.put(b"old", group="u", app="a", name="long", tai="1600000000:000000000", sign=KEYS[1])
            for number in range(LOOKED_AT):
                batch.put(b"%d" % number, group="u", app="a", name="long", tai=f"{1_700_000_000 + number}:000000000")
        opened.export(folder / "all.bundle")
    return folder / "all.bundle"


@pytest.mark.parametrize("horizon_s", [lace.Lace.__init__.__kwdefaults__["horizon_s"], None])
def test_spark_and_a_lace_give_the_same_tips(
    spark: SparkSession, bundle: Path, tmp_path: Path, horizon_s: int | None
) -> None:
    records = spark.read.format("lace").load(str(bundle)).where("_corrupt_record is null")
    now = TAI.of_unix_ns(1_790_000_000 * SECOND_NS)
    found = {
        row["name"]: (row["hash"], row["records"], [(one["signed_by"], one["hash"]) for one in row["concurrent"]])
        for row in tips(records, TipPolicy.at(now, horizon_s)).collect()
    }
    with lace.open(tmp_path / "b.lace", create=True, horizon_s=horizon_s) as opened:
        opened.import_(bundle)
        counts: dict[str, int] = {}
        for row in opened.list():
            counts[row["Name"]] = counts.get(row["Name"], 0) + 1
        expected = {
            row["Name"]: (row.hash, counts[row["Name"]], [(one.signer, one.hash) for one in row.concurrent])
            for row in opened.list(tips=True)
        }
    assert found == expected
    assert (len(found) < len(counts)) == (horizon_s is not None)
    assert any(others for _, _, others in found.values())
    assert found["long"][2] == []  # its other writer lies further back than is looked at


def test_without_a_policy_the_horizon_is_one_day(spark: SparkSession, bundle: Path) -> None:
    records = spark.read.format("lace").load(str(bundle)).where("_corrupt_record is null")
    assert {row["tai"][:2] for row in tips(records).collect()} == {"17"}
