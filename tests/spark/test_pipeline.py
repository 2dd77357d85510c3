"""The pipeline: counts add up, nothing is lost, reruns change nothing, crashes are gone through."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from lace.datalog import engine
from lace.datalog.language.syntax import Fact
from lace.facts.derive import derive_facts
from lace.facts.predicates import RECORD_PREDICATES
from lace.interlace.claims.advertisement import Advertisement, FieldClaim, canonical_fields
from lace.interlace.claims.partitions import AdvertisementSet
from lace.limits import StreamLimits
from lace.policy.compile import agree
from lace.policy.exposure import expose_all
from lace.policy.lower import lower
from lace.policy.operand import Module
from lace.policy.origin import Viewer
from lace.policy.select import select_all, select_coordinate
from lace.records.model import ValidRecord
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.manifest import Manifest
from lace.spark.pipeline import STEPS, Pipeline, PipelineSettings
from lace.store import open_store
from spark.archives import make_records, write_bundle

pytestmark = pytest.mark.spark

Say = Callable[[str, str], None]


def peer(name: str, module: Module) -> PeerPolicy:
    plan = agree(select_all(), module)
    lowered = lower(plan, local_index=0, viewer=Viewer(plan.operands[1].origin), exposures=[expose_all()])
    return PeerPolicy(name=name, policy=lowered)


PEERS = [peer("ann", select_coordinate("//u//ding//")), peer("bob", select_coordinate("//u//"))]


def silent(step: str, what: str) -> None:
    pass


def pipeline(spark: SparkSession, tmp_path: Path, say: Say = silent, **more: object) -> Pipeline:
    settings = PipelineSettings(output=tmp_path / "out", inputs=[tmp_path / "in"], peers=PEERS, **more)  # type: ignore[arg-type]
    return Pipeline(spark, settings, say)


def archive(tmp_path: Path) -> list[ValidRecord]:
    """Two bundles that overlap and one with a flipped bit, bytes that are no record, and a cut end."""
    records = make_records(60, seed=7)
    incoming = tmp_path / "in"
    incoming.mkdir()
    write_bundle(incoming / "a.bundle", records[:40])
    write_bundle(incoming / "b.bundle", records[30:])
    flipped = bytearray(max(records, key=lambda valid: valid.data_length).stored)
    flipped[-1] ^= 1
    (incoming / "c.bundle").write_bytes(bytes(flipped) + b"nonsense\n" + records[0].stored + records[1].stored[:-1])
    (incoming / "empty.bundle").write_bytes(b"")
    return records


def tables(spark: SparkSession, output: Path) -> dict[str, list[str]]:
    """Every table of an output directory, rows as sorted text."""
    found = {}
    for path in sorted({p.parent for p in (output / "tables").rglob("*.parquet")}):
        name = str(path.relative_to(output))
        rows = spark.read.parquet(str(path)).collect()
        found[name] = sorted(repr(row) for row in rows)
    return found


def test_a_run_validates_selects_advertises_and_publishes(spark: SparkSession, tmp_path: Path) -> None:
    records = archive(tmp_path)
    done = pipeline(spark, tmp_path).run()
    output = tmp_path / "out"
    by_hash = {str(valid.hash): valid for valid in records}

    ingested = next(step.counts for name, step in done.steps.items() if name.startswith("ingest"))
    judged = next(step.counts for name, step in done.steps.items() if name.startswith("validate"))
    assert ingested["read"] == ingested["kept"] + ingested["repeats"]
    assert ingested["kept"] == judged["valid"] + judged["quarantined"]
    assert judged["valid"] == len(records)

    table = pipeline(spark, tmp_path).table
    assert {row["hash"] for row in table("records").collect()} == set(by_hash)
    quarantined = table("quarantine").collect()
    damaged = (tmp_path / "in" / "c.bundle").read_bytes()
    for row in quarantined:
        assert row["rule"]
        assert row["reason"]
        assert damaged[row["offset"] :].startswith(bytes(row["stored"]))

    facts = {fact for valid in records for fact in derive_facts(valid)}
    for predicate in RECORD_PREDICATES:
        rows = {Fact(predicate, tuple(row)) for row in table(f"facts/{predicate.name}").collect()}
        assert rows == {fact for fact in facts if fact.predicate == predicate}

    for one in PEERS:
        expected = {row[0] for row in engine.evaluate(one.policy.program, facts).rows(one.policy.sendable)}
        assert expected
        selected = {row["hash"] for row in table("selected").where(f"peer = '{one.name}'").collect()}
        assert selected == expected
        check_advertisements(spark, output, one, [by_hash[text] for text in expected])
        with open_store(output / "published" / one.name / "store.lace") as store:
            assert {str(record) for _, record in store.records_since()} == expected
    page = (output / "report.html").read_text(encoding="utf-8")
    summary = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert summary["records"] == len(records)
    assert "Records by type" in page
    assert "<script" not in page
    require_nothing_new(spark, tmp_path)


def require_nothing_new(spark: SparkSession, tmp_path: Path, steps: Sequence[str] = STEPS) -> Manifest:
    """A rerun does nothing and says so."""
    manifest = (tmp_path / "out" / "manifest.json").read_text()
    said: list[tuple[str, str]] = []
    done = pipeline(spark, tmp_path, lambda *what: said.append(what)).run(steps)
    assert {what for _, what in said} == {"nothing new"}
    assert (tmp_path / "out" / "manifest.json").read_text() == manifest
    return done


def check_advertisements(spark: SparkSession, output: Path, one: PeerPolicy, chosen: list[ValidRecord]) -> None:
    """Counts and roots are those of the machine's own advertisement set."""
    rows = spark.read.parquet(str(output / "tables" / "partitions" / f"peer={one.name}")).collect()
    check_partitions(rows, one, chosen)


def check_partitions(rows: list[Row], one: PeerPolicy, chosen: list[ValidRecord]) -> None:
    plan = one.policy.plan
    held = AdvertisementSet(StreamLimits().max_fact_line_bytes)
    for valid in chosen:
        claims = [
            FieldClaim(fact.values[1], fact.values[2], fact.values[3])
            for fact in derive_facts(valid)
            if fact.predicate.name == "Field" and fact.values[1] in plan.requirements.names
        ]
        held.put_all([Advertisement(str(valid.hash), canonical_fields(claims))])
    found = sorted((row["prefix"], row["records"], row["root"]) for row in rows)
    assert found == [(part.prefix, part.count, part.root) for part in held.summaries(plan.operands[0].origin)]


def test_a_rerun_does_nothing_twice_and_new_input_is_added(spark: SparkSession, tmp_path: Path) -> None:
    records = archive(tmp_path)
    pipeline(spark, tmp_path).run(["ingest", "validate"])
    require_nothing_new(spark, tmp_path, ["ingest", "validate"])
    more = make_records(70, seed=8)
    write_bundle(tmp_path / "in" / "d.bundle", [*more, *records[:5]])
    done = pipeline(spark, tmp_path).run(["ingest", "validate"])
    assert len(done.batches) == 2
    hashes = [row["hash"] for row in pipeline(spark, tmp_path).table("records").collect()]
    assert sorted(hashes) == sorted({str(valid.hash) for valid in (*records, *more)})


@pytest.mark.parametrize(
    "steps", [["ingest", "validate", "evaluate"], pytest.param(list(STEPS), marks=pytest.mark.slow)], ids=["few", "all"]
)
def test_a_rerun_with_nothing_new_does_nothing_however_many_batches_there_are(
    spark: SparkSession, tmp_path: Path, steps: list[str]
) -> None:
    records = make_records(40, seed=3)
    (tmp_path / "in").mkdir()
    for number in range(3):  # batches are named by content, and these three names do not sort as they came
        write_bundle(tmp_path / "in" / f"{number}.bundle", records[10 * number : 10 * number + 10])
        batches = pipeline(spark, tmp_path).run(["ingest"]).batches
    assert batches != sorted(batches)
    pipeline(spark, tmp_path).run(steps)
    assert require_nothing_new(spark, tmp_path, steps).batches == batches


class Crash(Exception):
    """The machine went away."""


def test_after_a_crash_between_any_two_steps_a_rerun_gives_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    archive(tmp_path)
    steps = ["ingest", "validate", "evaluate", "advertise"]
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    (crashed / "in").symlink_to(tmp_path / "in")
    for crash_at in steps:

        def say(step: str, what: str, crash_at: str = crash_at) -> None:
            if step.startswith(crash_at) and what == "running":
                raise Crash

        with pytest.raises(Crash):
            pipeline(spark, crashed, say).run(steps)
    # Half of a table was written when the machine went away: it is written anew.
    half_written = crashed / "out" / "tables" / "advertisements" / "peer=ann"
    half_written.mkdir(parents=True)
    (half_written / "part-00000.parquet").write_bytes(b"half a file")
    pipeline(spark, crashed).run(steps)
    pipeline(spark, tmp_path).run(steps)
    whole, resumed = tables(spark, tmp_path / "out"), tables(spark, crashed / "out")
    assert list(whole) == list(resumed)
    for name, rows in whole.items():
        without_place = [row.replace(str(tmp_path / "in"), "").replace(str(crashed / "in"), "") for row in rows]
        assert without_place == [
            r.replace(str(tmp_path / "in"), "").replace(str(crashed / "in"), "") for r in resumed[name]
        ]


def test_reconciling_a_fleet_names_what_each_lacks_by_partition(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(30, seed=9)
    (tmp_path / "in").mkdir()
    write_bundle(tmp_path / "in" / "here.bundle", records[:20])
    write_bundle(tmp_path / "east.bundle", records[10:])
    write_bundle(tmp_path / "same.bundle", records[:20])
    others = {"east": tmp_path / "east.bundle", "same": tmp_path / "same.bundle"}
    done = pipeline(spark, tmp_path, archives=others).run(["ingest", "validate", "reconcile"])
    assert done.steps["reconcile"].counts == {"east": 10, "here": 10, "same": 10}
    missing = pipeline(spark, tmp_path).table("missing").collect()
    lacking = {(row["archive"], row["hash"]) for row in missing}
    assert lacking == {(name, str(v.hash)) for name in ("here", "same") for v in records[20:]} | {
        ("east", str(v.hash)) for v in records[:10]
    }
    assert all(row["prefix"] == row["hash"][2:4] for row in missing)
    by_part = pipeline(spark, tmp_path).table("missing_by_partition").collect()
    assert sum(row["records"] for row in by_part) == len(missing)


def test_a_step_without_its_ground_says_which_step_to_run(spark: SparkSession, tmp_path: Path) -> None:
    from lace.errors import InvalidInput

    (tmp_path / "in").mkdir()
    with pytest.raises(InvalidInput, match="run the step validate first"):
        pipeline(spark, tmp_path).run(["report"])


def test_every_step_has_a_command_of_its_own() -> None:
    from lace.cli.commands.pipeline import STEP_HELP

    assert tuple(STEP_HELP) == STEPS
