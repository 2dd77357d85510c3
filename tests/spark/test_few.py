"""Few new records need no Spark, and the tables say what jobs would have said."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn, cast
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import lace
from interop.harness import CLOCK, PATIENCE_S, serving
from lace.cli.app import app
from lace.datalog import engine
from lace.datalog.language.syntax import Fact
from lace.datalog.source import all_facts
from lace.facts.derive import derive_facts
from lace.facts.predicates import RECORD_PREDICATES
from lace.limits import JudgingLimits, RecordLimits
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.policy.select import select_coordinate
from lace.records.frame import split_records
from lace.records.model import ValidRecord
from lace.records.validate import validate
from lace.spark.archive.archive import Archive
from lace.spark.archive.contents import CONTENTS
from lace.spark.archive.delta import describe
from lace.spark.archive.executors import Need, RunSettings, is_for_process
from lace.spark.archive.follow import MicroBatch, follow
from lace.spark.archive.in_process import FACT_COLUMNS, InProcess, facts_of_rows, scan
from lace.spark.archive.publish import publish
from lace.spark.archive.run import is_up_to_date, rules_mark, run
from lace.spark.archive.tables import facts_table
from lace.spark.archive.versions import HERE, BatchRange, Commit, State
from lace.spark.jobs.evaluate import PeerPolicy
from lace.spark.peer.peer import ArchivePeer
from lace.store.base import RecordStore
from lace.thresholds import ArchiveThresholds
from lace.transports.dial import TransportOptions, dial
from siege.speech import PREFACE
from spark.archives import make_records, write_bundle
from spark.test_pipeline import check_partitions, peer
from tries import tries

ALL_BY_SPARK = ArchiveThresholds(in_process_bytes=0)
BY_GROUPS = JudgingLimits(records_at_once=5, bytes_at_once=1500)  # by twos and fives
TABLES = ("records", "quarantine", "coordinates", "selected", "advertisements", "partitions", "published")
CLAIMS = "SelectAdvertised(P,S) :- Advertised(P,S).\n"
UNTAGGED = "SelectHave(P) :- Have(P), not Field(P,'X-Tag',_,_).\n" + CLAIMS  # negation, said of one record
JOINED = "SelectHave(P) :- Have(P), not Linked(P).\nLinked(T) :- RecordLink(_,_,_,_,T).\n" + CLAIMS
CLOSURE = (
    "SelectHave(P) :- Have(P), Reached(P).\nReached(P) :- Field(P,'App',_,'ding').\n"
    "Reached(T) :- Reached(P), RecordLink(P,_,_,_,T), Cardinality(RecordLink(_,_,_,_,T),'<','3').\n" + CLAIMS
)
PEERS = [
    peer("adds", select_coordinate("//u//ding//")),
    peer("negates", Module.author(UNTAGGED)),
    peer("twin", select_coordinate("//u//ding//")),
]
GROUPED = (
    "SelectHave(P) :- Have(P), Field(P,'Group',_,G), Wanted(G).\n"
    "Wanted(G) :- Field(Q,'App',_,'member'), Field(Q,'Group',_,G).\n" + CLAIMS
)
MANY_EYED = [peer("joins", Module.author(JOINED)), peer("reaches", Module.author(CLOSURE))]


def content_in_parts(length: int, name: str) -> list[ValidRecord]:
    """Content under //u//ding as a manifest and its parts, which a batch may have without each other."""
    with lace.open(":memory:", limits=RecordLimits(max_data_bytes=40)) as made:
        made.put(bytes((number * length) % 251 for number in range(length)), group="u", app="ding", name=name)
        return [validate(stored) for _, stored in made.store.bodies_since()]


RECORDS = [*make_records(40, seed=31), *content_in_parts(100, "large"), *content_in_parts(130, "larger")]


class SparkWasAsked(Exception):
    """A session was wanted."""


def no_spark() -> NoReturn:
    raise SparkWasAsked


def rows_of(archive: Archive, table: str) -> list[dict[str, Any]]:
    """A table as anything that reads Parquet sees it."""
    paths = [f"{archive.files.uri}/{file.path}" for file in archive.log.state().table(table)]
    return ds.dataset(paths, format="parquet").to_table().to_pylist() if paths else []


def check(archive: Archive, held: Sequence[ValidRecord], peers: Sequence[PeerPolicy] = PEERS) -> None:
    """Every table says what evaluation from scratch says."""
    by_hash = {str(valid.hash): valid for valid in held}
    records = {row["hash"]: row for row in rows_of(archive, "records")}
    assert sorted(records) == sorted(by_hash)
    assert sorted(row["hash"] for row in rows_of(archive, "coordinates")) == sorted(by_hash)
    for text, row in records.items():
        valid = by_hash[text]
        assert row["stored"] == valid.stored
        headers = [(name, value) for name, values in row["headers"] for value in values]
        assert sorted(headers) == sorted(valid.parts.headers)
        assert (row["ts"] is None) == (not valid.parts.tai)
        if row["ts"] is not None:
            assert round(row["ts"].timestamp() * 1e6) == TAI(row["tai"]).to_unix_ns() // 1000
    facts = {fact for valid in held for fact in derive_facts(valid)}
    for one in peers:
        wanted = {row[0] for row in engine.evaluate(one.policy.program, facts).rows(one.policy.sendable)}
        selected = [row["hash"] for row in rows_of(archive, "selected") if row["rules"] == rules_mark(one)]
        assert sorted(selected) == sorted(wanted), one.name
        listed = [row["hash"] for row in rows_of(archive, "advertisements") if row["peer"] == one.name]
        assert sorted(listed) == sorted(wanted)
        rows: Any = [row for row in rows_of(archive, "partitions") if row["peer"] == one.name]
        check_partitions(rows, one, [by_hash[text] for text in wanted])


@pytest.mark.long
@given(
    st.lists(st.lists(st.integers(0, len(RECORDS) - 1) | st.integers(40, len(RECORDS) - 1), max_size=12), max_size=4),
    st.sampled_from([JudgingLimits(), BY_GROUPS]),
)
@tries(12)
def test_whatever_the_batches_few_records_end_as_an_evaluation_from_scratch_does(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], judging: JudgingLimits
) -> None:
    folder = tmp_path_factory.mktemp("few")
    one_by_one = ArchiveThresholds(held_rows=0) if judging is BY_GROUPS else None  # roots, one partition at a time
    archive = Archive(str(folder / "root"), no_spark, judging=judging, thresholds=one_by_one)
    archive.init()
    held: dict[int, ValidRecord] = {}
    # Parts that a later batch lets go are published from older files, which is for Spark.
    is_split = sum(any(at >= 40 for at in batch) for batch in batches) > 1
    for number, batch in enumerate(batches):
        write_bundle(folder / f"{number}.bundle", [RECORDS[at] for at in batch])  # repeats in it, and of others
        archive.add([folder / f"{number}.bundle"])
        held |= {at: RECORDS[at] for at in batch}
        run(archive, [*PEERS, *MANY_EYED])
        check(archive, list(held.values()), [*PEERS, *MANY_EYED])
        if not is_split:
            publish(archive, PEERS, folder / "out")
            check_published(archive, folder / "out")
        assert is_up_to_date(archive.log.state(), [*PEERS, *MANY_EYED])
    state = archive.log.state()
    assert sum(batch.counts["valid"] for batch in state.batches) == len(held)


def check_published(archive: Archive, out: Path) -> None:
    """Every peer was given each record that it may have once, in a bundle, and the archive knows it."""
    for one in PEERS:
        wanted = sorted(row["hash"] for row in rows_of(archive, "selected") if row["rules"] == rules_mark(one))
        bundles = sorted((out / one.name).rglob("*.bundle"))
        given = [str(validate(stored).hash) for bundle in bundles for stored in split_records(bundle.read_bytes())]
        assert sorted(given) == wanted
        assert sorted(row["hash"] for row in rows_of(archive, "published") if row["peer"] == one.name) == wanted


def test_damage_goes_to_quarantine_once_and_other_readers_see_the_rows(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    bad = b"nonsense" + RECORDS[0].stored[:-1]
    (tmp_path / "a.bundle").write_bytes(bad + RECORDS[1].stored)
    (tmp_path / "empty.bundle").write_bytes(b"")
    archive.add([tmp_path / "a.bundle", tmp_path / "empty.bundle"])
    found = rows_of(archive, "quarantine")
    assert all(row["rule"] and row["reason"] and row["stored"] for row in found)
    again = archive.log.state().batches[-1].counts["quarantined"]
    assert again == len(found) >= 1
    (tmp_path / "b.bundle").write_bytes(bad)
    archive.add([tmp_path / "b.bundle"])
    assert len(rows_of(archive, "quarantine")) == again
    assert archive.log.state().batches[-1].counts["repeats"] >= 1
    delta = DeltaTable(f"{archive.files.uri}/data/records").to_pyarrow_table(columns=["hash"])
    assert delta["hash"].to_pylist() == [row["hash"] for row in rows_of(archive, "records")]


def test_other_engines_skip_files_by_what_commits_say_of_them(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    for number, some in enumerate((RECORDS[:20], RECORDS[20:40])):
        archive.add([write_bundle(tmp_path / f"{number}.bundle", some)])
    table = DeltaTable(f"{archive.files.uri}/data/coordinates")
    said = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert len(said) == 2
    rows = ds.dataset(table.file_uris()).to_table().to_pylist()
    assert min(one["min.hash"] for one in said) == min(row["hash"] for row in rows)
    assert max(one["max.name"] for one in said) == max(row["name"] for row in rows if row["name"])
    latest = max(row["ts"] for row in rows if row["ts"])
    assert table.to_pyarrow_dataset().count_rows(ds.field("ts") == latest) == sum(row["ts"] == latest for row in rows)
    assert table.to_pyarrow_dataset().count_rows(ds.field("name") == "no such name") == 0


@pytest.mark.parametrize("name", ["with a space", "records", "50%", "é"])
def test_an_archive_may_have_any_name_and_is_described_to_other_readers_after_each_change(
    tmp_path: Path, name: str
) -> None:
    archive = Archive(str(tmp_path / name / "records"), no_spark)
    archive.init()
    for number, (start, end) in enumerate(pairwise((0, 5, 9, 12))):
        archive.add([write_bundle(tmp_path / f"{number}.bundle", RECORDS[start:end])])
        run(archive, PEERS)
        named = DeltaTable(f"{archive.files.uri}/data/records").get_add_actions(flatten=True)
        paths = [f"data/records/{path}" for path in pa.table(named)["path"].to_pylist()]
        assert sorted(paths) == sorted(file.path for file in archive.log.state().table("records"))
    check(archive, RECORDS[:12])


def named_by_delta(archive: Archive, table: str) -> list[str]:
    folder = f"{archive.uri}/data/{table}"
    return sorted(uri.rpartition(f"/{table}/")[2] for uri in DeltaTable(folder).file_uris())


def named_by_log(archive: Archive, table: str) -> list[str]:
    return sorted(file.path.removeprefix(f"data/{table}/") for file in archive.log.state().table(table))


def test_a_writer_that_comes_late_leaves_the_newest_version_to_other_readers(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    write_bundle(tmp_path / "a.bundle", RECORDS[:5])
    write_bundle(tmp_path / "b.bundle", RECORDS[5:9])
    late = archive.add([tmp_path / "a.bundle"])
    archive.add([tmp_path / "b.bundle"])
    describe(archive.files, archive.log, late)  # as if it had slept between its commit and this
    assert named_by_delta(archive, "records") == named_by_log(archive, "records")
    assert len(named_by_log(archive, "records")) == 2


def test_writers_that_describe_an_archive_at_once_all_succeed_and_leave_the_newest_version(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    states = []
    for number in range(4):
        write_bundle(tmp_path / f"{number}.bundle", RECORDS[number * 3 : number * 3 + 3])
        states.append(archive.add([tmp_path / f"{number}.bundle"]))
    for turn in range(8):
        if turn % 2:  # tables to be made, and tables to be changed
            shutil.rmtree(tmp_path / "root" / "data" / "records" / "_delta_log")
        start = threading.Barrier(len(states))

        def write(state: State, start: threading.Barrier = start) -> None:
            start.wait()
            describe(archive.files, archive.log, state)

        with ThreadPoolExecutor(len(states)) as pool:
            list(pool.map(write, states))
        for table in ("records", "coordinates"):
            assert named_by_delta(archive, table) == named_by_log(archive, table)
    assert DeltaTable(f"{archive.uri}/data/records").to_pyarrow_table().num_rows == 12


def test_an_inbox_with_little_is_emptied_once_without_spark_in_order_and_through_a_crash(tmp_path: Path) -> None:
    inbox, done = tmp_path / "inbox", tmp_path / "done"
    inbox.mkdir()
    for name, at, records in (("z", 1, RECORDS[:10]), ("a", 2, RECORDS[5:20]), ("k", 3, RECORDS[20:24])):
        write_bundle(inbox / f"{name}.bundle", records)
        os.utime(inbox / f"{name}.bundle", (at, at))
    (inbox / "empty.bundle").touch()
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    seen: list[MicroBatch] = []
    once = partial(follow, archive, inbox, told=seen.append, every_seconds=None)

    def crash(_: State) -> None:
        raise RuntimeError("after the commit")

    with pytest.raises(RuntimeError, match="after the commit"):
        once(after=crash, max_files=1)
    assert (archive.log.state().version, seen) == (2, [])
    once(max_files=1)
    assert [(batch.number, batch.files, batch.records, batch.version) for batch in seen] == [
        (0, 1, 10, 3),
        (1, 1, 4, 4),
    ]
    assert all(batch.lag_seconds > 1e9 for batch in seen)  # they are from 1970
    once()
    assert (archive.log.state().version, len(seen)) == (4, 2)

    write_bundle(inbox / "late.bundle", RECORDS[24:30])  # files that are read already are moved away with it
    once(done=done)
    assert (seen[-1].files, seen[-1].records, archive.log.state().version) == (5, 6, 5)
    assert sorted(path.name for path in done.glob("*.bundle")) == [
        "a.bundle", "empty.bundle", "k.bundle", "late.bundle", "z.bundle"
    ]  # fmt: skip
    assert list(inbox.iterdir()) == []  # indexes go with their bundles

    write_bundle(inbox / "much.bundle", RECORDS[30:])
    bounded = Archive(archive.uri, no_spark, thresholds=ArchiveThresholds(in_process_bytes=100))
    with pytest.raises(SparkWasAsked):
        follow(bounded, inbox, every_seconds=None)


def test_commands_that_cannot_begin_say_so_without_starting_spark(tmp_path: Path) -> None:
    root = str(tmp_path / "west")
    Archive(root, no_spark).init()
    write_bundle(tmp_path / "a.bundle", RECORDS[:3])

    def lace(*arguments: str) -> str:
        done = CliRunner().invoke(app, ["archive", *arguments])
        assert "starting" not in done.output
        return done.output

    assert "a record hash is B, P or S" in lace("remove", root, "nohash")
    assert "a record hash is B, P or S" in lace("gc", root, "--keep", str(tmp_path / "a.bundle"), "--why", "nohash")
    assert "there is no archive here" in lace("follow", str(tmp_path / "none"), "--inbox", str(tmp_path))
    assert "this is an archive and no folder of bundles" in lace("add", root, root)
    assert f"where  {root}\n" in lace("add", root, str(tmp_path))  # wherever it is among what was named
    lace("add", root, str(tmp_path / "a.bundle"))
    (records,) = [line.split() for line in lace("status", root).splitlines() if line.startswith("records")]
    assert records[1:3] == ["3", "1"]
    assert (float(records[3]) > 1, records[4]) == (True, "KiB")  # no table that holds something is 0.0 of anything


@pytest.mark.parametrize("name", ["%41", "A/a%20b", "%ff"])
def test_an_archive_whose_name_reads_as_another_is_not_described_and_leaves_the_other_alone(
    tmp_path: Path, name: str
) -> None:
    named = {}
    for number, archive in enumerate(Archive(str(tmp_path / place), no_spark) for place in (unquote(name), name)):
        archive.init()
        for start in (0, 5, 9):
            archive.add([write_bundle(tmp_path / f"{start}.bundle", RECORDS[start : start + 5])])
            run(archive, PEERS)
            if number:  # as one was left that was described at its first version
                (tmp_path / name / "data" / "records" / "_delta_log").mkdir(exist_ok=True)
        check(archive, RECORDS[:14])
        other = DeltaTable(str(tmp_path / unquote(name) / "data" / "records"))
        named[number] = other.version(), sorted(other.file_uris())
    assert named[0] == named[1]
    archive.add([write_bundle(tmp_path / "last.bundle", RECORDS[14:15])])
    assert not list((tmp_path / name).rglob("_delta_log"))


@pytest.mark.parametrize(
    "limits", [ALL_BY_SPARK, ArchiveThresholds(in_process_bytes=10), ArchiveThresholds(scanned_rows=3)]
)
def test_what_is_more_than_few_is_for_spark(tmp_path: Path, limits: ArchiveThresholds) -> None:
    made = Archive(str(tmp_path / "root"), no_spark)
    made.init()
    made.add([write_bundle(tmp_path / "a.bundle", RECORDS[:9])])
    run(made, PEERS)
    if limits.scanned_rows < 9:  # as a lace left it that wrote no digests: their column is gone through
        digests = tuple(file.path for file in made.log.state().table(CONTENTS))
        made.commit(lambda _: Commit(operation="older", dropped=digests))
    state = made.log.state()
    bounded = Archive(made.uri, no_spark, thresholds=limits)
    with pytest.raises(SparkWasAsked):
        bounded.add([write_bundle(tmp_path / "b.bundle", RECORDS[9:12])])
    assert made.log.state() == state  # nothing is lost, and nothing half done
    made.add([tmp_path / "b.bundle"])
    if limits.in_process_bytes < 100:
        with pytest.raises(SparkWasAsked):
            run(bounded, PEERS)
    run(made, PEERS)
    check(made, RECORDS[:12])


def test_rules_that_look_at_several_records_are_for_spark_once_all_records_are_more_than_few(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    archive.add([write_bundle(tmp_path / "a.bundle", RECORDS)])
    archive.add([write_bundle(tmp_path / "b.bundle", make_records(2, seed=77))])
    newest = max(file.bytes for file in archive.log.state().table("records") if file.rows == 2)
    bounded = Archive(archive.uri, no_spark, thresholds=ArchiveThresholds(in_process_bytes=newest))
    with pytest.raises(SparkWasAsked):
        run(bounded, MANY_EYED)
    run(archive, MANY_EYED)
    check(archive, [*RECORDS, *make_records(2, seed=77)], MANY_EYED)


def test_groups_of_rows_have_the_facts_of_their_records_and_are_no_larger_than_asked(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    archive.add([write_bundle(tmp_path / "a.bundle", RECORDS[:30])])
    state = archive.add([write_bundle(tmp_path / "b.bundle", RECORDS[30:])])
    bounded = Archive(archive.uri, no_spark, judging=BY_GROUPS)
    for batch, held in zip(state.batch_ids, (RECORDS[:30], RECORDS[30:]), strict=True):
        (file,) = [file for file in state.table("records") if file.first <= batch <= file.last]
        groups = list(scan(bounded.files, file, FACT_COLUMNS, BY_GROUPS))
        assert len(groups) > len(held) // 20
        facts = list(all_facts(facts_of_rows(groups)))
        assert sorted(facts) == sorted(fact for valid in held for fact in derive_facts(valid))
        stored = [
            len(b"".join(rows["stored"].to_pylist())) for rows in scan(bounded.files, file, ["stored"], BY_GROUPS)
        ]
        assert max(stored) <= 2 * BY_GROUPS.bytes_at_once + max(len(valid.stored) for valid in RECORDS)


def test_facts_are_those_of_the_records_of_some_batches(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    archive.add([write_bundle(tmp_path / "a.bundle", RECORDS[:30])])
    state = archive.add([write_bundle(tmp_path / "b.bundle", RECORDS[30:])])
    for batches, held in (
        (state.every_batch, RECORDS),
        (BatchRange(state.batch_ids[0], state.last_batch), RECORDS[30:]),
    ):
        made = InProcess(archive, state, RunSettings()).facts(batches)
        found = [
            Fact(predicate, tuple(row.values()))
            for predicate in RECORD_PREDICATES
            for file in made
            if file.table == facts_table(predicate)
            for row in ds.dataset(f"{archive.uri}/{file.path}", format="parquet").to_table().to_pylist()
        ]
        assert sorted(found) == sorted(fact for valid in held for fact in derive_facts(valid))


@pytest.mark.parametrize(
    ("need", "limits"),
    [
        (Need(bytes=10), ArchiveThresholds(in_process_bytes=9)),
        (Need(whole_bytes=10), ArchiveThresholds(whole_bytes=9)),
        (Need(whole_bytes=10), ArchiveThresholds(in_process_bytes=9)),
        (Need(scanned_rows=10), ArchiveThresholds(scanned_rows=9)),
        (Need(held_rows=10), ArchiveThresholds(held_rows=9)),
        (Need(), ArchiveThresholds(in_process_bytes=0)),
    ],
)
def test_each_bound_sends_a_step_to_spark_by_itself(tmp_path: Path, need: Need, limits: ArchiveThresholds) -> None:
    assert is_for_process(Archive(str(tmp_path)), need)
    assert not is_for_process(Archive(str(tmp_path), thresholds=limits), need)
    assert not is_for_process(Archive(str(tmp_path), wants_spark=True), need)
    assert not is_for_process(Archive(str(tmp_path), cast("SparkSession", object())), need)  # a session is handed in
    assert is_for_process(Archive(str(tmp_path), no_spark), need)  # one that could be started


def test_a_master_that_is_named_is_asked_however_few_the_records_are(tmp_path: Path) -> None:
    Archive(str(tmp_path / "west")).init()
    write_bundle(tmp_path / "a.bundle", RECORDS[:3])
    asked = ["add", str(tmp_path / "west"), str(tmp_path / "a.bundle"), "--master", "spark://127.0.0.1:1"]
    done = CliRunner().invoke(app, ["archive", *asked])
    assert done.exit_code != 0
    assert "no Spark answers at spark://127.0.0.1:1" in done.output


def test_the_commit_and_the_command_say_who_carried_a_step_out(tmp_path: Path) -> None:
    said: list[tuple[str, str]] = []
    archive = Archive(str(tmp_path / "root"), no_spark, progress=lambda *what: said.append(what))
    archive.init()
    archive.add([write_bundle(tmp_path / "a.bundle", RECORDS[:20])])
    run(archive, PEERS)
    publish(archive, PEERS, tmp_path / "out")
    _, added, ran, published = archive.log.commits()
    assert [way.where for way in added.ways.values()] == [HERE]
    assert set(ran.ways) == {"select for adds, twin", "select for negates", *(f"list for {p.name}" for p in PEERS)}
    assert {way.where for way in (*ran.ways.values(), *published.ways.values())} == {HERE}
    assert all(result.way is not None for result in archive.log.state().results.values())
    assert all(what.endswith("(in this process)") for what in dict(said).values())
    told = CliRunner().invoke(app, ["archive", "status", archive.uri, "--json"]).stdout.splitlines()
    assert all(line["where"] == HERE for line in map(json.loads, told) if "step" in line)
    logged = CliRunner().invoke(app, ["archive", "log", archive.uri, "--json"]).stdout.splitlines()
    assert json.loads(logged[-2])["ways"] == {"add": {"where": HERE}}


def test_selectors_follow_parts_and_need_no_spark_for_batches_that_have_none(tmp_path: Path) -> None:
    plain = [valid for valid in make_records(40, seed=31) if valid.type != "B"]
    manifest, *_ = [valid for valid in content_in_parts(100, "large") if valid.type != "B"]
    archive = Archive(str(tmp_path / "root"), no_spark, thresholds=ArchiveThresholds(whole_bytes=0))
    archive.init()
    held: list[ValidRecord] = []
    for number, batch in enumerate((plain[:10], plain[10:])):
        write_bundle(tmp_path / f"{number}.bundle", batch)
        archive.add([tmp_path / f"{number}.bundle"])
        held += batch
        run(archive, PEERS[:1])
        check(archive, held, PEERS[:1])
    write_bundle(tmp_path / "manifest.bundle", [manifest])
    archive.add([tmp_path / "manifest.bundle"])
    with pytest.raises(SparkWasAsked):  # its parts may be in any batch
        run(archive, PEERS[:1])


def test_rules_that_look_at_several_records_have_a_bound_of_their_own(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    plain = [valid for valid in RECORDS if valid.type != "B" and "Chunk+Link" not in dict(valid.parts.headers)]
    archive.add([write_bundle(tmp_path / "a.bundle", plain)])
    held = sum(file.bytes for file in archive.log.state().table("records"))
    bounded = Archive(archive.uri, no_spark, thresholds=ArchiveThresholds(whole_bytes=held - 1))
    run(bounded, PEERS)
    with pytest.raises(SparkWasAsked):
        run(bounded, MANY_EYED)
    run(Archive(archive.uri, no_spark, thresholds=ArchiveThresholds(whole_bytes=held)), MANY_EYED)
    check(archive, plain, [*PEERS, *MANY_EYED])


def test_another_peer_with_known_rules_is_listed_without_spark(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    archive.add([write_bundle(tmp_path / "a.bundle", RECORDS)])
    run(archive, PEERS[:1])
    run(archive, PEERS)
    check(archive, RECORDS)


def test_the_command_adds_and_lists_five_records_without_a_word_of_spark(tmp_path: Path) -> None:
    write_bundle(tmp_path / "a.bundle", RECORDS[:20])
    write_bundle(tmp_path / "b.bundle", RECORDS[20:25])
    (tmp_path / "ann.rules").write_text("SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n" + CLAIMS)
    root = str(tmp_path / "west")
    ann = ["--peer", f"ann={tmp_path / 'ann.rules'}", "--expose", "all"]
    said = ""
    for arguments in (
        ["init", root],
        *(["add", root, str(tmp_path / name), *ann] for name in ("a.bundle", "b.bundle")),
    ):
        done = CliRunner().invoke(app, ["archive", *arguments])
        assert done.exit_code == 0, done.output
        said += done.stderr
    assert "starting" not in said
    told = CliRunner().invoke(app, ["archive", "status", root, "--json"]).stdout.splitlines()
    tables = {line["table"]: line["rows"] for line in map(json.loads, told) if "table" in line}
    ours = [valid for valid in RECORDS[:25] if valid.parts.group == "u"]
    assert (tables["records"], tables["advertisements"]) == (25, len(ours))


FEW, JOBS = True, False
# By day each way goes on where the other one stopped; that jobs alone come to the same takes twice as many of them.
BY_DAY = {"few": (FEW, FEW, FEW), "turns": (JOBS, FEW, JOBS)}
BY_NIGHT = {"few": (FEW,) * 4, "jobs": (JOBS,) * 4, "turns": (JOBS, FEW, JOBS, FEW)}


@pytest.mark.spark
@pytest.mark.parametrize("ways", [BY_DAY, pytest.param(BY_NIGHT, marks=pytest.mark.slow)], ids=["by day", "by night"])
def test_both_ways_write_the_same_rows_and_follow_each_other(
    spark: SparkSession, tmp_path: Path, ways: dict[str, tuple[bool, ...]]
) -> None:
    parts = [RECORDS[:15], RECORDS[10:25], RECORDS[25:32], RECORDS[30:]]
    peers = [*PEERS, *MANY_EYED]
    if ways is BY_DAY:
        parts[2:], peers[-1:] = [RECORDS[25:]], []  # a recursion by jobs has a test of its own
    for number, part in enumerate(parts):
        write_bundle(tmp_path / f"{number}.bundle", part)
    last = tmp_path / f"{len(parts) - 1}.bundle"
    last.write_bytes(b"nonsense" + last.read_bytes())
    found: dict[str, Any] = {}
    for way, by_hand in ways.items():
        root = str(tmp_path / way)
        Archive(root).init()
        for number, alone in enumerate(by_hand):
            archive = Archive(root, no_spark) if alone else Archive(root, lambda: spark, thresholds=ALL_BY_SPARK)
            archive.add([tmp_path / f"{number}.bundle"])
            run(archive, peers)
            publish(archive, PEERS, tmp_path / f"{way}-out")
        check_published(archive, tmp_path / f"{way}-out")
        read = Archive(root, lambda: spark)
        check(read, RECORDS, peers)
        found[way] = {name: contents(read, name) for name in TABLES}
        assert [batch.counts for batch in read.log.state().batches] == [
            batch.counts for batch in Archive(str(tmp_path / "few")).log.state().batches
        ]
    assert all(tables == found["few"] for tables in found.values())


@pytest.mark.spark
def test_a_small_batch_beside_many_records_is_listed_without_a_job(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "root"), lambda: spark)
    archive.init()
    peers = [MANY_EYED[0], peer("grouped", Module.author(GROUPED))]  # one loses records by new ones, the other does not
    for number, (start, end) in enumerate(pairwise((0, 25, 32, 40))):
        archive.thresholds = ArchiveThresholds()
        write_bundle(tmp_path / f"{number}.bundle", RECORDS[start:end])
        *_, newest = archive.add([tmp_path / f"{number}.bundle"]).table("records")
        archive.thresholds = (
            ArchiveThresholds(in_process_bytes=newest.bytes) if number else ALL_BY_SPARK
        )  # the batch is few, all is not
        run(archive, peers)
        check(archive, RECORDS[:end], peers)
    listed = [file for file in archive.log.state().table("advertisements") if file.low["peer"] == "grouped"]
    assert sum(file.path.endswith("/part-00000.parquet") for file in listed) == 2  # what a job writes has a longer name


def contents(archive: Archive, table: str) -> list[str]:
    """What Spark reads of a table, without the names of batches."""
    frame = archive.table(table).drop("batch")
    return sorted(json.dumps(row.asDict(recursive=True), default=str, sort_keys=True) for row in frame.collect())


def test_every_change_of_a_served_archive_is_news_to_whoever_is_linked_to_it(tmp_path: Path) -> None:
    """A first batch and a second one: the watch over it goes on after each. The link asks for no job."""
    archive = Archive(str(tmp_path / "root"), no_spark)
    archive.init()
    served = ArchivePeer(archive)
    changes: list[Callable[[], object]] = [
        lambda: archive.add([write_bundle(tmp_path / "a.bundle", RECORDS[:2])]),
        lambda: archive.add([write_bundle(tmp_path / "b.bundle", RECORDS[2:3])]),
    ]

    async def run() -> list[int]:
        heard = []
        async with serving(cast("RecordStore", served), tmp_path, make_host=served.host) as there:
            stream = await dial(there.address, TransportOptions(clock=CLOCK.tai))
            await stream.send(PREFACE.encode())
            async with asyncio.timeout(PATIENCE_S):
                while not there.node.metrics.get("connections_active"):
                    await asyncio.sleep(0.01)
                for change in changes:
                    before = served.news.count
                    await asyncio.to_thread(change)
                    while served.news.count == before:
                        await asyncio.sleep(0.01)
                    heard.append(served.news.count - before)
            stream.abort()
        return heard

    assert asyncio.run(run()) == [1] * len(changes)
    served.close()
