"""The pipeline: counts add up, nothing is lost, reruns change nothing, crashes are gone through."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import pyarrow.parquet as parquet_files
import pytest
from pyspark.sql import Row, SparkSession

from lace.datalog import engine
from lace.datalog.language.syntax import Fact
from lace.errors import InvalidInput, StoreError
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
from lace.spark.archive.in_process import select
from lace.spark.archive.run import rules_mark
from lace.spark.archive.tables import SCHEMAS
from lace.spark.archive.versions import HERE, ON_SPARK
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.pipeline import STEPS, Manifest, Pipeline, PipelineSettings
from lace.store import open_store
from spark.archives import make_records, write_bundle

Say = Callable[[str, str], None]


def peer(name: str, module: Module) -> PeerPolicy:
    plan = agree(select_all(), module)
    lowered = lower(plan, local_index=0, viewer=Viewer(plan.operands[1].origin), exposures=[expose_all()])
    return PeerPolicy(name=name, policy=lowered)


PEERS = [peer("ann", select_coordinate("//u//ding//")), peer("bob", select_coordinate("//u//"))]


def silent(step: str, what: str) -> None:
    pass


def pipeline(spark: SparkSession | None, tmp_path: Path, say: Say = silent, **more: object) -> Pipeline:
    """By jobs if a session is given, else by this process."""
    settings = PipelineSettings(output=tmp_path / "out", inputs=[tmp_path / "in"], peers=PEERS, **more)  # type: ignore[arg-type]
    return Pipeline(no_spark if spark is None else spark, settings, say)


def no_spark() -> NoReturn:
    raise AssertionError("Spark was asked for")


@pytest.fixture(params=["here", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Both executors: this process, and jobs."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


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


def rows(output: Path, table: str) -> list[dict[str, Any]]:
    """A table as anything that reads Parquet sees it."""
    found = Pipeline(no_spark, PipelineSettings(output=output)).archive
    read: list[dict[str, Any]] = select(found.files, found.log.state().table(table), SCHEMAS[table].names).to_pylist()
    return read


def tables(output: Path) -> dict[str, list[str]]:
    """Every table of an output directory, rows as sorted text, without the names of batches."""
    return {
        name: sorted(repr({key: row[key] for key in row if key != "batch"}) for row in rows(output, name))
        for name in SCHEMAS
    }


def test_a_run_validates_selects_advertises_and_publishes(session: SparkSession | None, tmp_path: Path) -> None:
    records = archive(tmp_path)
    done = pipeline(session, tmp_path).run()
    output = tmp_path / "out"
    by_hash = {str(valid.hash): valid for valid in records}

    ingested = next(step.counts for name, step in done.steps.items() if name.startswith("ingest"))
    judged = next(step.counts for name, step in done.steps.items() if name.startswith("validate"))
    assert ingested["read"] == ingested["kept"] + ingested["repeats"]
    assert ingested["kept"] == judged["valid"] + judged["quarantined"]
    assert judged["valid"] == len(records)
    where = ON_SPARK if session is not None else HERE
    assert {step.way.where for step in done.steps.values() if step.way is not None} == {where}
    assert all((step.way is not None and bool(step.way.jobs)) is (session is not None) for step in done.steps.values())

    assert {row["hash"] for row in rows(output, "records")} == set(by_hash)
    damaged = (tmp_path / "in" / "c.bundle").read_bytes()
    for row in rows(output, "quarantine"):
        assert row["rule"]
        assert row["reason"]
        assert damaged[row["offset"] :].startswith(bytes(row["stored"]))

    facts = {fact for valid in records for fact in derive_facts(valid)}
    for predicate in RECORD_PREDICATES:
        found = {Fact(predicate, tuple(row.values())) for row in rows(output, f"facts/{predicate.name}")}
        assert found == {fact for fact in facts if fact.predicate == predicate}

    for one in PEERS:
        expected = {row[0] for row in engine.evaluate(one.policy.program, facts).rows(one.policy.sendable)}
        assert expected
        assert {row["hash"] for row in rows(output, "selected") if row["rules"] == rules_mark(one)} == expected
        assert done.steps["evaluate"].counts[one.name] == len(expected)
        if session is not None:
            named = pipeline(session, tmp_path).table("selected").where(f"peer = '{one.name}'")
            assert {row["hash"] for row in named.collect()} == expected
        parts: Any = [row for row in rows(output, "partitions") if row["peer"] == one.name]
        check_partitions(parts, one, [by_hash[text] for text in expected])
        with open_store(output / "published" / one.name / "store.lace") as store:
            assert {str(record) for _, record in store.records_since()} == expected
    page = (output / "report.html").read_text(encoding="utf-8")
    summary = json.loads((output / "report.json").read_text(encoding="utf-8"))
    assert summary["records"] == len(records)
    assert "Records by type" in page
    assert "<script" not in page
    require_nothing_new(tmp_path)


@pytest.mark.spark
def test_this_process_and_jobs_write_the_same_tables_and_the_same_parquet(spark: SparkSession, tmp_path: Path) -> None:
    archive(tmp_path)
    write_bundle(tmp_path / "east.bundle", make_records(9, seed=12))
    found = {}
    for name, session in (("here", None), ("jobs", spark)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "in").symlink_to(tmp_path / "in")
        pipeline(session, tmp_path / name, archives={"east": tmp_path / "east.bundle"}).run()
        output = tmp_path / name / "out"
        held = {
            table: [text.replace(str(tmp_path / name), "") for text in said]
            for table, said in tables(output).items()
            if table != "relations"  # what jobs keep so that they can follow: this process looks at everything again
        }
        forms = set()
        for file in pipeline(None, tmp_path / name).archive.log.state().files:
            if not file.path.endswith(".parquet"):
                continue  # digests are not a table
            footer = parquet_files.ParquetFile(output / file.path).metadata
            for place in range(footer.num_columns):
                column = footer.row_group(0).column(place)
                root, has_filter = column.path_in_schema.partition(".")[0], bool(column.bloom_filter_length)
                if root in SCHEMAS[file.table].names and file.table != "relations":
                    forms.add((file.table, root, column.compression, has_filter))
        report = json.loads((output / "report.json").read_text(encoding="utf-8"))
        kept = {key: value for key, value in report.items() if key not in ("inputs", "steps", "tables", "facts")}
        rows_by_file = [row.pop("file") for row in kept["quarantine_rows"]]
        assert rows_by_file
        found[name] = held, sorted(forms), kept
    assert found["here"][0] == found["jobs"][0]
    assert found["here"][1] == found["jobs"][1]
    assert found["here"][2] == found["jobs"][2]


def require_nothing_new(tmp_path: Path, steps: Sequence[str] = STEPS) -> Manifest:
    """A rerun does nothing and says so; it needs no Spark for that."""
    manifest = (tmp_path / "out" / "manifest.json").read_text()
    said: list[tuple[str, str]] = []
    done = pipeline(None, tmp_path, lambda *what: said.append(what)).run(steps)
    assert {what for _, what in said} == {"nothing new"}
    assert (tmp_path / "out" / "manifest.json").read_text() == manifest
    return done


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


def test_a_rerun_does_nothing_twice_and_new_input_is_added(tmp_path: Path) -> None:
    records = archive(tmp_path)
    steps = ["ingest", "validate", "facts", "evaluate"]
    pipeline(None, tmp_path).run(steps)
    require_nothing_new(tmp_path, steps)
    more = make_records(70, seed=8)
    write_bundle(tmp_path / "in" / "d.bundle", [*more, *records[:5]])
    done = pipeline(None, tmp_path).run(steps)
    assert len(done.batches) == 2
    every = {str(valid.hash) for valid in (*records, *more)}
    assert sorted(row["hash"] for row in rows(tmp_path / "out", "records")) == sorted(every)
    assert sorted(row["hash"] for row in rows(tmp_path / "out", "facts/Have")) == sorted(every)
    require_nothing_new(tmp_path, steps)


def test_a_peer_is_given_exactly_what_it_may_have_when_that_changes(tmp_path: Path) -> None:
    records = archive(tmp_path)
    pipeline(None, tmp_path).run()
    for rules in ("//u//ding//", "//keys//"):
        one = peer("ann", select_coordinate(rules))
        settings = PipelineSettings(output=tmp_path / "out", inputs=[tmp_path / "in"], peers=[one])
        Pipeline(no_spark, settings).run()
        facts = {fact for valid in records for fact in derive_facts(valid)}
        expected = {row[0] for row in engine.evaluate(one.policy.program, facts).rows(one.policy.sendable)}
        with open_store(tmp_path / "out" / "published" / "ann" / "store.lace") as store:
            assert {str(record) for _, record in store.records_since()} == expected
        assert {row["hash"] for row in rows(tmp_path / "out", "published") if row["peer"] == "ann"} == expected


class Crash(Exception):
    """The machine went away."""


def test_after_a_crash_in_any_step_a_rerun_gives_the_same_tables(tmp_path: Path) -> None:
    archive(tmp_path)
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    (crashed / "in").symlink_to(tmp_path / "in")
    for crash_at in ("add", "facts", "select", "list", "publish", "report"):

        def say(step: str, what: str, crash_at: str = crash_at) -> None:
            if step.startswith(crash_at) and what.endswith("(in this process)"):  # written, and not committed
                raise Crash

        with pytest.raises(Crash):
            pipeline(None, crashed, say).run()
    pipeline(None, crashed).run()
    pipeline(None, tmp_path).run()
    whole, resumed = tables(tmp_path / "out"), tables(crashed / "out")
    for name, said in whole.items():
        assert [text.replace(str(tmp_path / "in"), "") for text in said] == [
            text.replace(str(crashed / "in"), "") for text in resumed[name]
        ]
    with open_store(crashed / "out" / "published" / "ann" / "store.lace") as store:
        assert list(store.records_since())


def test_reconciling_a_fleet_names_what_each_lacks_by_partition(session: SparkSession | None, tmp_path: Path) -> None:
    records = make_records(30, seed=9)
    (tmp_path / "in").mkdir()
    write_bundle(tmp_path / "in" / "here.bundle", records[:20])
    write_bundle(tmp_path / "east.bundle", records[10:])
    write_bundle(tmp_path / "same.bundle", records[:20])
    others = {"east": tmp_path / "east.bundle", "same": tmp_path / "same.bundle"}
    done = pipeline(session, tmp_path, archives=others).run(["ingest", "validate", "reconcile"])
    assert done.steps["reconcile"].counts == {"east": 10, "here": 10, "same": 10}
    missing = rows(tmp_path / "out", "missing")
    lacking = {(row["archive"], row["hash"]) for row in missing}
    assert lacking == {(name, str(v.hash)) for name in ("here", "same") for v in records[20:]} | {
        ("east", str(v.hash)) for v in records[:10]
    }
    assert all(row["prefix"] == row["hash"][2:4] for row in missing)
    assert all(row["held_by"] == sorted(row["held_by"]) for row in missing)
    assert sum(row["records"] for row in rows(tmp_path / "out", "missing_by_partition")) == len(missing)


def test_a_step_without_its_ground_says_which_step_to_run(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with pytest.raises(InvalidInput, match="run the step ingest first"):
        pipeline(None, tmp_path).run(["report"])
    write_bundle(tmp_path / "in" / "a.bundle", make_records(3))
    with pytest.raises(InvalidInput, match="run the step evaluate first"):
        pipeline(None, tmp_path).run(["ingest", "publish"])


def test_a_directory_of_the_older_pipeline_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "out" / "tables" / "records").mkdir(parents=True)
    with pytest.raises(StoreError, match="written by an older version"):
        pipeline(None, tmp_path)
    assert not (tmp_path / "out" / "log").exists()


def test_every_step_has_a_command_of_its_own() -> None:
    from lace.cli.commands.pipeline import STEP_HELP

    assert tuple(STEP_HELP) == STEPS
