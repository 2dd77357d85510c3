"""The table of tips says what a lace says of the same records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import lace
from lace.people.kinds import PolicyKind
from lace.people.root import Root
from lace.porcelain.policy import set_policy
from lace.records.keys import SigningKey
from lace.records.tip import LOOKED_AT, TipPolicy
from lace.records.write import encode_record
from lace.runtime.clock import SystemClock
from lace.spark.jobs.tips import tips
from people.histories import World, counting, defined_tip
from people.histories import tips as history_tips
from people.world import GROUP, Seen, key

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
        withdraw(opened)
        opened.export(folder / "all.bundle")
    return folder / "all.bundle"


def withdraw(opened: lace.Lace) -> None:
    """Coordinates withdrawn as a whole, version by version, taken back, put again, and by one dated too far ahead."""
    here = "//u//a//"
    opened.retract(f"{here}n/1", f"{here}n/2", f"{here}n/3")
    opened.undo(f"{here}n/2")
    opened.put(b"again", group="u", app="a", name="n/3")
    for _ in range(3):
        opened.retract(opened.resolve(f"{here}n/4"))
    opened.undo(f"{here}n/4")
    opened.retract(*(found.version.hash for found in opened.history(f"{here}n/6")))
    opened.retract(f"{here}n/7", tai="9000000009:000000000")
    opened.put(b"not empty", group="u", app="a", name="n/8", headers=[("Retract", "all")])
    opened.put(b"", group="u", app="a", name="n/9", headers=[("Retract", "ALL")])
    newest = opened.resolve(f"{here}n/11")
    opened.put(b"", group="u", app="a", name="n/11", tai="1500000000:000000000",
               headers=[("Retract+Link", f"version {newest}")])  # fmt: skip
    newest = opened.retract(f"{here}n/12")[0]
    opened.put(b"", group="u", app="a", name="n/12", headers=[("Retract+Link", f"request {newest}")])
    opened.retract(opened.resolve(f"{here}n/13"), f"{here}n/13")


@pytest.mark.parametrize("horizon_s", [lace.Lace.__init__.__kwdefaults__["horizon_s"], None])
def test_spark_and_a_lace_give_the_same_tips(
    spark: SparkSession, bundle: Path, tmp_path: Path, horizon_s: int | None
) -> None:
    records = spark.read.format("lace").load(str(bundle)).where("_corrupt_record is null")
    now = SystemClock().tai()
    found = {
        row["name"]: (row["hash"], row["records"], [(one["signed_by"], one["hash"]) for one in row["concurrent"]])
        for row in tips(records, TipPolicy.at(now, horizon_s)).collect()
    }
    with lace.open(tmp_path / "b.lace", create=True, horizon_s=horizon_s) as opened:
        opened.import_(bundle)
        counts: dict[str, int] = {}
        for row in opened.list(withdrawn=True):
            counts[row["Name"]] = counts.get(row["Name"], 0) + 1
        expected = {
            row["Name"]: (row.hash, counts[row["Name"]], [(one.signer, one.hash) for one in row.concurrent])
            for row in opened.list(tips=True)
        }
    assert found == expected
    assert len(found) < len(counts)  # some names have nothing to read
    assert ("n/7" in found) == (horizon_s is not None)  # what is dated too far ahead withdraws nothing
    assert any(others for _, _, others in found.values())
    assert found["long"][2] == []  # its other writer lies further back than is looked at


@pytest.mark.parametrize(
    "rules",
    [
        'writers = "members"\n',
        'retract = "author"\nwriters = "anybody"\n[apps]\na = "admins"\n',
        'writers = "anybody"\nretract = "members"\n',
    ],
)
def test_spark_and_a_lace_give_the_same_tips_under_a_policy(
    spark: SparkSession, bundle: Path, tmp_path: Path, rules: str
) -> None:
    founder, member = KEYS[1], KEYS[2]
    assert founder is not None
    assert member is not None
    with lace.open(tmp_path / "c.lace", create=True) as opened:
        opened.import_(bundle)
        set_policy(opened, {PolicyKind.TIP: rules}, Root("u", founder.verifier), founder)
        said = [("State", "in"), ("Role", "member")]
        opened.put(b"", group="u", app="member", name=member.verifier, sign=founder, headers=said)
        opened.export(tmp_path / "c.bundle")
        policy = opened.tip_policy()
        expected = {
            (row["App"], row["Name"]): (row.hash, [(one.signer, one.hash) for one in row.concurrent])
            for row in opened.list(tips=True)
        }
    records = spark.read.format("lace").load(str(tmp_path / "c.bundle")).where("_corrupt_record is null")
    found = {
        (row["app"], row["name"]): (row["hash"], [(one["signed_by"], one["hash"]) for one in row["concurrent"]])
        for row in tips(records, policy).collect()
    }
    assert found == expected
    assert any(name != "long" for app, name in found if app == "a")


def test_without_a_policy_the_horizon_is_one_day(spark: SparkSession, bundle: Path) -> None:
    records = spark.read.format("lace").load(str(bundle)).where("_corrupt_record is null")
    assert {row["tai"][0] for row in tips(records).collect()} == {"1"}


@pytest.mark.parametrize("seed", [7, 21, 106])
def test_spark_and_a_lace_give_the_same_tips_after_a_history_of_leaving_rotating_and_forging(
    spark: SparkSession, tmp_path: Path, seed: int
) -> None:
    world = World(seed)
    world.go(40)
    world.settle()
    with lace.open(tmp_path / "h.lace", create=True, horizon_s=None) as opened:
        for record in world.held["anna"].values():
            opened.put_stored(encode_record(record))
        root = Root(GROUP, key("anna").verifier)
        set_policy(opened, {PolicyKind.TIP: 'writers = "members"\n'}, root, key("anna"))
        opened.export(tmp_path / "h.bundle")
        policy = opened.tip_policy()
        expected = {row["Name"]: row.hash for row in opened.list("//club//notes//", tips=True)}
    records = spark.read.format("lace").load(str(tmp_path / "h.bundle")).where("_corrupt_record is null")
    found = {row["name"]: row["hash"] for row in tips(records, policy).where("app = 'notes'").collect()}
    assert found == expected
    defined = {}
    for name, versions in history_tips(world.held["anna"].values(), Seen(world.held["anna"].values())).items():
        if tip := defined_tip(world, counting(versions)):
            (defined[name],) = tip
    assert found == defined
    assert len(found) > 3
