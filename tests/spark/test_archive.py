"""Archives: batches, versions, lookups that open few files, and results that follow what is new and what goes."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from lace.cli.app import app
from lace.datalog import engine
from lace.datalog.language.parser import parse_program
from lace.datalog.language.validate import check_program
from lace.errors import InvalidInput
from lace.facts.derive import derive_facts
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.policy.select import select_coordinate
from lace.porcelain.keeping import KEEP
from lace.records.frame import split_records
from lace.records.model import ValidRecord
from lace.records.validate import validate
from lace.spark.archive import tables
from lace.spark.archive.archive import Archive, ArchiveLookup
from lace.spark.archive.filesystem import HadoopFiles
from lace.spark.archive.follow import FollowPatience, MicroBatch, follow
from lace.spark.archive.retention import decide
from lace.spark.archive.run import is_up_to_date, run, selected
from lace.spark.archive.versions import ON_SPARK, State
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.session.failure import JobFailed
from lace.spark.session.tags import counted_jobs
from lace.spark.session.watching import JobWatch
from lace.thresholds import ArchiveThresholds
from spark import quickly
from spark.archives import make_records, write_bundle
from spark.test_pipeline import check_partitions, peer

pytestmark = pytest.mark.spark

ALL_BY_SPARK = ArchiveThresholds(in_process_bytes=0)
CLAIMS = "SelectAdvertised(P,S) :- Advertised(P,S).\n"
NEGATION = "SelectHave(P) :- Have(P), not Linked(P).\nLinked(T) :- RecordLink(_,_,_,_,T).\n" + CLAIMS
CLOSURE = (
    "SelectHave(P) :- Have(P), Reached(P).\nReached(P) :- Field(P,'App',_,'ding').\n"
    "Reached(T) :- Reached(P), RecordLink(P,_,_,_,T), Cardinality(RecordLink(_,_,_,_,T),'<','3').\n" + CLAIMS
)
PEERS = [
    peer("adds", select_coordinate("//u//ding//")),
    peer("negates", Module.author(NEGATION)),
    peer("reaches", Module.author(CLOSURE)),
    peer("twin", select_coordinate("//u//ding//")),
]


def hashes(records: list[ValidRecord]) -> set[str]:
    return {str(valid.hash) for valid in records}


def expected(records: list[ValidRecord], one: PeerPolicy) -> set[str]:
    """From scratch, by the embedded engine."""
    facts = {fact for valid in records for fact in derive_facts(valid)}
    return {row[0] for row in engine.evaluate(one.policy.program, facts).rows(one.policy.sendable)}


def check(archive: Archive, records: list[ValidRecord]) -> None:
    """Every table says what evaluation from scratch says."""
    assert sorted(row["hash"] for row in archive.table("records").select("hash").collect()) == sorted(hashes(records))
    assert {row["hash"] for row in archive.table("coordinates").select("hash").collect()} == hashes(records)
    by_hash = {str(valid.hash): valid for valid in records}
    listed = archive.table("advertisements").select("peer", "hash").collect()
    partitions = archive.table("partitions").collect()
    for one in PEERS:
        wanted = expected(records, one)
        assert sorted(row["hash"] for row in selected(archive, one).collect()) == sorted(wanted), one.name
        assert sorted(row["hash"] for row in listed if row["peer"] == one.name) == sorted(wanted)
        rows = [row for row in partitions if row["peer"] == one.name]
        check_partitions(rows, one, [by_hash[text] for text in wanted])


def test_results_follow_what_is_new_and_what_goes_as_if_worked_out_from_scratch(
    spark: SparkSession, tmp_path: Path
) -> None:
    rng = random.Random(11)
    records = make_records(60, seed=21)
    rng.shuffle(records)
    said: list[tuple[str, str]] = []
    archive = Archive(
        str(tmp_path / "root"), lambda: spark, thresholds=ALL_BY_SPARK, progress=lambda *what: said.append(what)
    )
    archive.init()
    incoming = tmp_path / "in"
    incoming.mkdir()
    held: list[ValidRecord] = []
    for number, batch in enumerate((records[:25], records[20:45])):
        write_bundle(incoming / f"{number}.bundle", batch)
        archive.add([incoming])
        held = list({valid.hash: valid for valid in (*held, *batch)}.values())
        run(archive, PEERS)
    check(archive, held)
    how = {step: what for step, what in said if step.startswith("select") and "batches" in what}
    assert how == {  # peers with the same rules are one evaluation, and nothing is worked out from nothing
        "select for adds, twin": "1 new batches, 0 removals",  # there are Blobs, which may be parts of content
        "select for negates": "1 new batches, 0 removals",
        "select for reaches": "1 new batches, 0 removals",
    }
    ways = [way for commit in archive.log.commits() for way in commit.ways.values()]
    assert {way.where for way in ways} == {ON_SPARK}
    assert all(way.jobs for way in ways)

    gone = rng.sample(held, 9)
    archive.remove([str(valid.hash) for valid in gone])
    held = [valid for valid in held if valid not in gone]
    archive.compact()
    write_bundle(incoming / "again.bundle", [*gone[:3], *records[45:]])  # what was removed may come back
    archive.add([incoming])
    held += [*gone[:3], *records[45:]]
    run(archive, PEERS)
    check(archive, held)

    state = archive.log.state()
    assert is_up_to_date(state, PEERS)
    assert run(archive, PEERS) == archive.add([incoming]) == state
    kept = archive.table("records", as_of=3)
    assert {row["hash"] for row in kept.select("hash").collect()} == hashes(records[:25])

    archive.vacuum(1)
    check(archive, held)
    with pytest.raises(InvalidInput, match="were removed"):
        archive.table("records", as_of=3)
    live = {file.path for file in archive.log.state().files}
    assert {listed.name for listed in archive.files.listing("data")} == live


def test_a_removal_from_files_of_equal_names_counts_and_rewrites_what_it_touches(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = make_records(12, seed=8)
    archive = Archive(str(tmp_path / "root"), lambda: spark)
    archive.init()
    for number in range(3):  # without Spark: one file each, all of one name
        write_bundle(tmp_path / f"{number}.bundle", records[number * 4 : number * 4 + 4])
        (tmp_path / f"{number}.bad").write_bytes(b"nonsense %d" % number)
        archive.add([tmp_path / f"{number}.bundle", tmp_path / f"{number}.bad"])
    before = {file.path for file in archive.log.state().files}
    gone = [records[5], records[6]]
    state = archive.remove([str(valid.hash) for valid in gone])
    (commit,) = archive.log.commits([state.version])
    assert commit.counts == {"removed": 2, "files": 2}  # of records and of coordinates, both of the second addition
    assert len(before - {file.path for file in state.files}) == 2
    assert {row["hash"] for row in archive.table("records").collect()} == hashes(records) - hashes(gone)

    state = archive.compact()  # a bad file a day would be a small file a day
    assert [len(state.table(name)) for name in ("records", "coordinates", "quarantine")] == [1, 1, 1]
    bad = archive.table("quarantine").orderBy("bundle").collect()
    assert [bytes(row["stored"]) for row in bad] == [b"nonsense 0", b"nonsense 1", b"nonsense 2"]
    assert archive.add([tmp_path / f"{number}.bad" for number in range(3)]) == state
    (tmp_path / "copy.bad").write_bytes(b"nonsense 1")
    (tmp_path / "more.bundle").write_bytes(records[0].stored + b"nonsense 2")
    counts = archive.add([tmp_path / "copy.bad", tmp_path / "more.bundle"]).batches[-1].counts
    assert (counts["valid"], counts["quarantined"], counts["repeats"]) == (0, 0, 2)


def test_lookups_open_only_files_that_may_hold_the_answer(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(120, seed=3)
    write_bundle(tmp_path / "a.bundle", records)
    archive = Archive(str(tmp_path / "root"), lambda: spark, thresholds=ALL_BY_SPARK)
    archive.init()
    (tmp_path / "b.bundle").write_bytes(b"nonsense" + records[0].stored[:-1])
    archive.add([tmp_path / "a.bundle", tmp_path / "b.bundle"])
    state = archive.compact(small_bytes=1 << 40, file_rows=20)
    assert len(state.table("records")) == 1  # one file is no reason to write anything
    write_bundle(tmp_path / "c.bundle", make_records(1, seed=99))
    archive.add([tmp_path / "c.bundle"])
    state = archive.compact(file_rows=20)
    assert len(state.table("records")) >= 5

    def asked(question: ArchiveLookup) -> tuple[set[str], int]:
        frame, files = archive.lookup(question, state)
        assert set(frame.inputFiles()) == {f"file://{archive.files.uri}/{file.path}" for file in files}
        return {row["hash"] for row in frame.collect()}, len(files)

    found, files = asked(ArchiveLookup(hashes=(str(records[7].hash),)))
    assert (found, files) == ({str(records[7].hash)}, 1)
    wanted = [v for v in records if v.parts.group == "u" and v.parts.app == "ding" and v.parts.name == "links/a/msg"]
    found, files = asked(ArchiveLookup(group="u", app="ding", name="links/a/msg", until="2021-06-01"))
    early = [v for v in wanted if v.parts.tai < "1622505637"]
    assert found == hashes(early) != set()
    assert files < len(state.table("coordinates")) / 2
    assert asked(ArchiveLookup(since="2099-01-01")) == (set(), 0)
    bad = archive.table("quarantine").collect()
    assert all(row["rule"] and row["reason"] and row["stored"] for row in bad)
    assert len(bad) == 1
    named = archive.table("records").where("tai is not null").selectExpr("tai", "unix_micros(ts) as micros").collect()
    assert [row["micros"] for row in named] == [TAI(row["tai"]).to_unix_ns() // 1000 for row in named]
    headers = tables.as_wide(archive.table("records")).select("hash", "headers").collect()
    by_hash = {str(valid.hash): valid for valid in records}
    for row in headers:
        if row["hash"] in by_hash:
            given = [(h["name"], h["value"]) for h in row["headers"]]
            assert sorted(given) == sorted(by_hash[row["hash"]].parts.headers)

    check_other_readers(spark, archive)


def check_other_readers(spark: SparkSession, archive: Archive) -> None:
    """SQL, Delta Lake and DuckDB see the rows of the newest version, and the types that they know."""
    import duckdb  # here: what is loaded while tests are collected stays to the end, of which it prints a complaint

    root, expected = archive.files.uri, sorted(row["hash"] for row in archive.table("records").collect())
    delta = DeltaTable(f"{root}/data/records").to_pyarrow_table(columns=["hash", "ts", "headers"])
    assert sorted(delta["hash"].to_pylist()) == expected
    named = [f"{root}/{file.path}" for file in archive.log.state().table("records")]
    tagged = duckdb.sql(
        "select hash, headers['X-Tag'] as tags, year(ts) as year from read_parquet($files)", params={"files": named}
    )
    rows = {row[0]: row[1:] for row in tagged.fetchall()}
    assert sorted(rows) == expected
    assert {year for _, year in rows.values() if year is not None} <= {2020, 2021, 2022, 2023}
    asked = (
        archive.table("records").where("headers['X-Tag'] is not null").selectExpr("hash", "headers['X-Tag'] as tags")
    )
    for row in asked.collect():
        assert list(row["tags"]) == list(rows[row["hash"]][0])
    try:
        spark.sql(f"create table west using lace options (path '{root}', table 'records')")
        spark.sql(f"create table west_before using lace options (path '{root}', table 'records', asOf '2')")
        assert [row["hash"] for row in spark.sql("select hash from west order by hash").collect()] == expected
        assert spark.table("west_before").count() == len(expected) - 1
        told = {row["col_name"]: row["comment"] for row in spark.sql("describe west").collect()}
        assert "UTC" in told["ts"]
    finally:
        spark.sql("drop table if exists west")
        spark.sql("drop table if exists west_before")
    with pytest.raises(Exception, match="this is an archive and no folder of bundles"):  # not a row of rubbish each
        spark.read.format("lace").load(root).count()
    with pytest.raises(InvalidInput, match="tables of an archive are records, "):
        archive.table("rubbish")
    assert "v_quarantine" in archive.create_views("v_")
    assert spark.sql("select count(*) from v_records").first()[0] == len(expected)


def test_an_inbox_is_followed_exactly_once_through_a_crash(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(30, seed=5)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    archive = Archive(str(tmp_path / "root"), lambda: spark, thresholds=ALL_BY_SPARK)
    archive.init()
    seen: list[MicroBatch] = []
    write_bundle(inbox / "a.bundle", records[:10])
    write_bundle(inbox / "b.bundle", records[5:20])
    follow(archive, inbox, told=seen.append, every_seconds=None, max_files=1)
    assert [(batch.files, batch.records) for batch in seen] == [(1, 10), (1, 10)]
    write_bundle(inbox / "c.bundle", records[20:])

    def crash(_: State) -> None:
        raise RuntimeError("the machine went away after the commit and before the checkpoint")

    with pytest.raises(Exception, match="went away"):
        follow(archive, inbox, after=crash, every_seconds=None)
    version = archive.log.state().version
    follow(archive, inbox, told=seen.append, every_seconds=None)
    assert archive.log.state().version == version
    assert (seen[-1].files, seen[-1].records) == (1, 0)
    assert sorted(row["hash"] for row in archive.table("records").collect()) == sorted(hashes(records))


def test_an_inbox_is_followed_on_after_a_failure_that_passes_and_that_is_said(
    spark: SparkSession, tmp_path: Path
) -> None:
    records = make_records(20, seed=8)
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    told: list[tuple[str, str]] = []
    archive = Archive(
        str(tmp_path / "root"), lambda: spark, thresholds=ALL_BY_SPARK, progress=lambda *said: told.append(said)
    )
    archive.init()
    write_bundle(inbox / "a.bundle", records[:10])
    left = [OSError("the network is down"), OSError("the network is down")]

    def fail(_: State) -> None:
        if left:
            raise left.pop()

    patience = FollowPatience(restarts=2, first_seconds=0.1)
    follow(archive, inbox, after=fail, every_seconds=None, patience=patience)
    again = [what for step, what in told if step == "follow"]
    assert [what.rpartition(": ")[2] for what in again] == ["again in 0.1 s (1 of 2)", "again in 0.2 s (2 of 2)"]
    assert all("the network is down" in what for what in again)
    assert archive.table("records").count() == 10
    write_bundle(inbox / "b.bundle", records[10:])
    left = [OSError("the network is down")] * 4
    with pytest.raises(JobFailed, match="the network is down"):
        follow(archive, inbox, after=fail, every_seconds=None, patience=patience)
    assert len(left) == 1


def test_an_archive_on_another_hadoop_filesystem(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "under").mkdir()
    for key in ("fs.viewfs.mounttable.lace.link./shared",):
        spark.conf.set(key, (tmp_path / "under").as_uri())
        spark.sparkContext._jsc.hadoopConfiguration().set(key, (tmp_path / "under").as_uri())
    records = make_records(20, seed=2)
    write_bundle(tmp_path / "a.bundle", records)
    archive = Archive("viewfs://lace/shared/root", lambda: spark, thresholds=ALL_BY_SPARK)
    archive.init()
    archive.add([tmp_path / "a.bundle"])
    archive.remove([str(records[0].hash)])
    run(archive, PEERS[:1])
    assert {row["hash"] for row in archive.table("records").collect()} == hashes(records[1:])
    assert {row["hash"] for row in selected(archive, PEERS[0]).collect()} == expected(records[1:], PEERS[0])
    assert archive.table("records", as_of=2).count() == 20
    beneath = Archive(str(tmp_path / "under" / "root"), lambda: spark, thresholds=ALL_BY_SPARK)
    assert beneath.log.state() == archive.log.state()  # the same files, by their own name

    files = archive.files
    assert isinstance(files, HadoopFiles)
    assert files.publish_by_rename("x/y", b"first")  # how a filesystem of its own takes names
    assert not files.publish_by_rename("x/y", b"second")
    assert files.read("x/y") == b"first"
    assert files.publish_by_create("z/y", b"first")  # how a store that creates only what is absent gives them
    assert not files.publish_by_create("z/y", b"second")
    assert files.publish_by_create("z/y", b"first")  # sent again since its answer was lost: it is this writer's file
    assert files.read("z/y") == b"first"
    with pytest.raises(FileNotFoundError):
        files.read("x/none")


def test_a_job_on_spark_says_how_far_its_tasks_are(spark: SparkSession) -> None:
    said: list[str] = []

    def slow(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            time.sleep(1.0)
            yield batch

    with counted_jobs(spark, JobWatch(tell=said.append, every_seconds=0.01)) as jobs:
        assert spark.range(0, 4, 1, 2).mapInArrow(slow, "id long").count() == 4
    assert re.match(r"[012] of 2 tasks", said[0])
    assert (jobs() or 0) > 0


def test_what_a_step_on_spark_did_is_told_last(spark: SparkSession, tmp_path: Path) -> None:
    said: list[str] = []
    write_bundle(tmp_path / "a.bundle", make_records(200, seed=13))
    archive = Archive(
        str(tmp_path / "root"), spark, progress=lambda step, what: said.append(f"{step}: {what}"), tell_every_s=0.01
    )
    archive.init()
    archive.add([tmp_path / "a.bundle"])
    assert "add: files 1, read 200" in said[-1]


def test_two_writers_at_once_lose_nothing(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(30, seed=13)
    archive = Archive(str(tmp_path / "root"), lambda: spark, thresholds=ALL_BY_SPARK)
    archive.init()
    for number, part in enumerate((records[:20], records[10:])):
        write_bundle(tmp_path / f"{number}.bundle", part)
    start = threading.Barrier(2)

    def add(number: int) -> None:
        start.wait()
        Archive(archive.uri, lambda: spark, thresholds=ALL_BY_SPARK).add([tmp_path / f"{number}.bundle"])

    writers = [threading.Thread(target=add, args=(number,)) for number in range(2)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(row["hash"] for row in archive.table("records").collect()) == sorted(hashes(records))
    assert [commit.operation for commit in archive.log.commits()] == ["init", "add", "add"]


def test_a_crash_at_the_commit_of_any_change_leaves_the_version_before(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = make_records(12, seed=23)
    write_bundle(tmp_path / "a.bundle", records)
    archive = Archive(str(tmp_path / "root"), lambda: spark, thresholds=ALL_BY_SPARK)
    archive.init()
    changes = [
        lambda: archive.add([tmp_path / "a.bundle"]),
        lambda: run(archive, PEERS[:1], listings=False),
        lambda: archive.remove([str(records[0].hash)]),
    ]

    def crash(name: str, data: bytes) -> bool:
        raise OSError("the machine went away")

    for change in changes:
        before = archive.log.state()
        with monkeypatch.context() as patched:
            patched.setattr(archive.files, "publish", crash)
            with pytest.raises(OSError, match="went away"):
                change()
        assert archive.log.state() == before
        assert change().version == before.version + 1
    assert sorted(row["hash"] for row in archive.table("records").collect()) == sorted(hashes(records[1:]))


def published(folder: Path) -> Iterator[str]:
    """The hashes in the bundles of a folder."""
    for bundle in folder.glob("*.bundle"):
        yield from (validate(stored).hash for stored in split_records(bundle.read_bytes()))


def test_the_command_from_init_to_gc(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    records = make_records(30, seed=17)
    write_bundle(tmp_path / "a.bundle", records)
    (tmp_path / "peer.lace").write_text("SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n" + CLAIMS)
    (tmp_path / "keep.lace").write_text("Keep(P) :- Have(P), Field(P,'Group',_,'u').\n")
    (tmp_path / "kept.lace").write_text("Kept(P) :- Have(P).\n")

    def lace(*arguments: str, code: int = 0) -> list[dict[str, object]]:
        done = CliRunner().invoke(app, ["archive", *arguments])
        assert done.exit_code == code, done.output
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    lace("init", "west")
    lace("init", "west", code=1)
    lace("status", "nowhere", code=3)
    lace("add", "west", "a.bundle")
    bob = ("--peer", "bob=peer.lace", "--expose", "all")
    lace("run", "west", *bob)
    lace("run", "west", *bob)
    lace("publish", "west", *bob, "--to", "out")
    lace("publish", "west", *bob, "--to", "out")  # nothing new
    write_bundle(tmp_path / "b.bundle", more := make_records(6, seed=18))
    lace("add", "west", "b.bundle")
    records += more
    lace("publish", "west", *bob, "--to", "out")
    parts = [set(published(folder)) for folder in sorted((tmp_path / "out" / "bob").iterdir())]
    assert parts == [hashes([v for v in some if v.parts.group == "u"]) for some in (records[:30], more)]
    lace("gc", "west", code=2)
    lace("gc", "west", "--versions", "1", "--all", code=2)
    lace("gc", "west", "--keep", "kept.lace", code=1)
    ours = [valid for valid in records if valid.parts.group == "u"]
    theirs = [valid for valid in records if valid.parts.group != "u"]
    stranger = make_records(1, seed=99)[0]
    asked = [arg for valid in (ours[0], theirs[0], stranger) for arg in ("--why", str(valid.hash))]
    summary, rule, *lines = lace("gc", "west", "--keep", "keep.lace", "--all", *asked, "--json")
    assert (summary["kept"], summary["removed"]) == (len(ours), len(theirs))
    assert rule == {
        "rule": "Keep(P) :- Have(P), Field(P,'Group',_,'u').", "place": "keep.lace:1", "keeps": len(ours)
    }  # fmt: skip
    assert [(line["asked"], line["here"], line["kept_by"]) for line in lines[:3]] == [
        (str(ours[0].hash), True, ["keep.lace:1"]), (str(theirs[0].hash), True, []), (str(stranger.hash), False, [])
    ]  # fmt: skip
    assert {line["hash"] for line in lines[3:]} == hashes(theirs)  # every one, not the oldest alone
    page = CliRunner().invoke(app, ["archive", "gc", "west", "--keep", "keep.lace", *asked]).output
    for wanted in (
        f"{ours[0].hash}  stays: keep.lace:1", f"{theirs[0].hash}  goes: no rule of keep.lace derives Keep for it",
        f"{stranger.hash}  it is not in this archive", "(no coordinate)", "nothing was removed: --apply does it",
    ):  # fmt: skip
        assert wanted in page
    assert page.count("\nB.") + page.count("\nP.") + page.count("\nS.") == 3 + min(20, len(theirs))
    told = {str(line["table"]): line for line in lace("status", "west", "--json") if "table" in line}
    assert (told["records"]["rows"], told["selected"]["rows"]) == (36, len(ours))
    assert lace("gc", "west", "--keep", "keep.lace", "--apply", "--json")[0]["removed"] == 36 - len(ours)
    lace("report", "west", "--archive", "east=b.bundle")
    assert (tmp_path / "west" / "report.html").read_text().count("<section") >= 8
    told_of = json.loads((tmp_path / "west" / "report.json").read_text())
    assert [(row["may_have"], row["given"], row["lacks"]) for row in told_of["peers"]] == [(len(ours), len(ours), 0)]
    lacking = {name: sum(count for _, count in counts) for name, counts in told_of["missing_by_archive"].items()}
    assert lacking == {"here": len(hashes(more) - hashes(ours)), "east": len(hashes(ours) - hashes(more))}
    operations = [line["operation"] for line in lace("log", "west", "--json")]
    assert operations == ["gc", "publish", "run", "add", "publish", "run", "add", "init"]
    held = Archive("west", lambda: spark, thresholds=ALL_BY_SPARK)
    assert {row["hash"] for row in held.table("records").collect()} == hashes(ours)
    with pytest.raises(InvalidInput, match="keep no record"):
        decide(held, "Keep(P) :- Have(P), Field(P,'Group',_,'nobody').")
    with pytest.raises(InvalidInput, match="no rule here derives Keep"):
        decide(held, "Kept(P) :- Have(P).")


def test_each_rule_says_what_it_keeps_also_where_keeping_rests_on_keeping(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(60, seed=4)
    write_bundle(tmp_path / "a.bundle", records)
    archive = Archive(str(tmp_path / "root"), lambda: spark)
    archive.init()
    archive.add([tmp_path / "a.bundle"])
    rules = (
        "Keep(P) :- Have(P), Field(P,'App',_,'ding').\nOld(P) :- Field(P,'Group',_,'nobody').\n"
        "Keep(T) :- Keep(P), RecordLink(P,_,_,_,T).\nKeep(P) :- Old(P).\n"
    )
    found = decide(archive, rules, name="keep.lace")
    facts = {fact for valid in records for fact in derive_facts(valid)}
    kept = {row[0] for row in engine.evaluate(check_program(parse_program(rules)), facts).rows(KEEP)} & hashes(records)
    first = hashes([valid for valid in records if valid.parts.app == "ding"])
    linked = {fact.values[4] for fact in facts if fact.predicate.name == "RecordLink" and fact.values[0] in kept}
    assert first < kept  # something is kept for being linked alone
    assert found.kept == len(kept)
    assert [(rule.place, rule.keeps) for rule in found.rules] == [
        ("keep.lace:1", len(first)), ("keep.lace:3", len(linked & hashes(records))), ("keep.lace:4", 0)
    ]  # fmt: skip
    assert {line[0] for line in found.going()} == hashes(records) - kept
    for fate in found.fates(sorted(hashes(records))):
        by = [rule.place for rule in fate.kept_by]
        assert by == ["keep.lace:1"] * (fate.hash in first) + ["keep.lace:3"] * (fate.hash in linked)
        assert fate.here


@pytest.mark.long
@pytest.mark.parametrize(  # in the middle of a micro-batch, and at its end
    "moment", ["reading", pytest.param("valid 5", marks=pytest.mark.slow)]
)
def test_ctrl_c_ends_whoever_follows_an_inbox_without_a_word_of_sparks(tmp_path: Path, moment: str) -> None:
    archive = Archive(str(tmp_path / "root"))
    archive.init()
    (tmp_path / "in").mkdir()
    write_bundle(tmp_path / "in" / "a.bundle", make_records(5, seed=6))
    environment = {**os.environ, **quickly.IN_ENVIRONMENT, "MASTER": "local[1]"}
    command = [sys.executable, "-m", "lace.cli", "archive", "follow", archive.uri, "--inbox", str(tmp_path / "in")]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if moment in line:
                process.send_signal(signal.SIGINT)
                break
        _, said = process.communicate(timeout=300)  # the JVM has the other end of the pipe: it is gone too
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted"
    assert "Traceback" not in said
    assert "\tat " not in said  # nor of Java
    assert archive.log.state().version in (1, 2)
