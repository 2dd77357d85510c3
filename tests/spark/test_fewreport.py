"""A small archive is reported on without Spark, and the numbers are those that jobs come to."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lace.errors import InvalidInput
from lace.policy.select import select_coordinate
from lace.records.model import Blob, ValidRecord
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.spark.archive.archive import Archive
from lace.spark.archive.publish import publish
from lace.spark.archive.report import report, write_report
from lace.spark.archive.run import run
from lace.thresholds import ArchiveThresholds
from spark.archives import make_records, write_bundle
from spark.test_few import SparkWasAsked, no_spark
from spark.test_pipeline import peer

RECORDS = make_records(60, seed=11)
PEERS = [peer("ann", select_coordinate("//u//ding//")), peer("bob", select_coordinate("//keys//"))]


def bare_blob(data: bytes) -> ValidRecord:
    """A record without a coordinate, a time or a signer."""
    return validate(encode_record(Blob(data)))


def made(folder: Path, *, given: bool = True) -> Archive:
    """An archive with damage, of which one peer was given a part."""
    archive = Archive(str(folder / "west"), no_spark)
    archive.init()
    first = write_bundle(folder / "1.bundle", [*RECORDS[:30], bare_blob(b"")])
    first.write_bytes(b"nonsense \xff" + first.read_bytes() + b"more of it")
    archive.add([first])
    run(archive, PEERS)
    if given:
        publish(archive, PEERS[:1], folder / "out")
    archive.add([write_bundle(folder / "2.bundle", RECORDS[20:45])])
    run(archive, PEERS)
    return archive


def test_what_is_counted_is_what_is_there(tmp_path: Path) -> None:
    archive = made(tmp_path)
    write_bundle(tmp_path / "east.bundle", RECORDS[40:])
    found = write_report(archive, {"east": tmp_path / "east.bundle"})
    here = [*RECORDS[:45], bare_blob(b"")]
    assert found.records == len(here) == 46
    assert found.data_bytes == sum(valid.data_length for valid in here)
    assert dict(found.by_type) == {kind: sum(valid.type == kind for valid in here) for kind in "BPS"}
    assert sum(rows for _, rows in found.by_partition) == 46
    assert all(len(prefix) == 2 for prefix, _ in found.by_partition)
    timed = [valid for valid in here if valid.parts.tai]
    assert sum(rows for _, rows in found.growth_by_month) == len(timed)
    assert dict(found.by_coordinate)["//u//ding//"] == sum(
        (valid.parts.group, valid.parts.app) == ("u", "ding") for valid in here
    )
    assert [row.rule for row in found.quarantine_rows]
    assert found.quarantined == len(found.quarantine_rows) == 2
    assert found.quarantine_rows[0].begins.startswith("nonsense �")
    ann = next(row for row in found.peers if row.name == "ann")
    assert ann.may_have == ann.given + ann.lacks
    assert min(ann.given, ann.lacks) > 0
    lacks = {name: sum(rows for _, rows in counts) for name, counts in found.missing_by_archive.items()}
    assert (lacks["here"], lacks["east"]) == (15, 41)
    assert (tmp_path / "west" / "report.html").exists()


def test_a_report_says_what_changed_since_the_last_one_or_since_a_version(tmp_path: Path) -> None:
    archive = made(tmp_path)
    first = write_report(archive)
    assert (first.since, first.changes) == ("", [])  # nothing to compare with
    assert first.verdict.startswith(f"46 records, {first.quarantined} refused, ")
    same = write_report(archive)
    assert (same.since, same.changes) == ("", [])  # nothing happened
    archive.add([write_bundle(tmp_path / "3.bundle", RECORDS[40:])])
    later = write_report(archive)
    assert later.since.startswith(f"version {first.facts['version']}, ")
    assert [(row.name, row.before, row.now) for row in later.changes] == [("records", 46, 61), ("batches", 2, 3)]
    assert "steps to run again" in later.verdict
    run(archive, PEERS)
    whole = report(archive, since=1)
    rows = {row.name: (row.before, row.now) for row in whole.changes}
    assert rows["records"] == (0, 61)
    assert rows["ann may have"][0] == 0 < rows["ann may have"][1]
    with pytest.raises(InvalidInput, match="versions are 1 to"):
        report(archive, since=999)
    (tmp_path / "west" / "report.json").write_text("[]")  # something else has its name
    assert report(archive).since == ""


def test_who_is_behind_is_in_the_verdict(tmp_path: Path) -> None:
    archive = made(tmp_path)
    behind = {row.name: row.behind for row in report(archive).peers}
    publish(archive, PEERS, tmp_path / "out")
    assert behind["ann"] > 0
    assert f"ann is {behind['ann']:,} behind" in report(archive).verdict or behind["ann"] < behind["bob"]
    assert report(archive).verdict.endswith("every peer has what it may have")


def test_an_empty_archive_has_a_report(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "west"), no_spark)
    archive.init()
    (tmp_path / "nothing").mkdir()
    found = report(archive, {"east": tmp_path / "nothing"})
    assert (found.records, found.by_type, found.missing_by_archive) == (0, [], {})


def test_what_is_too_much_is_for_spark(tmp_path: Path) -> None:
    archive = made(tmp_path)
    rows = sum(archive.log.state().rows(name) for name in ("records", "quarantine", "advertisements", "published"))
    for limits in (ArchiveThresholds(held_rows=rows - 1), ArchiveThresholds(in_process_bytes=0)):
        with pytest.raises(SparkWasAsked):
            report(Archive(archive.uri, no_spark, thresholds=limits))
    exactly = Archive(archive.uri, no_spark, thresholds=ArchiveThresholds(held_rows=rows))
    assert report(exactly).records == 46
    with pytest.raises(SparkWasAsked):  # what is elsewhere counts too
        report(exactly, {"east": tmp_path / "2.bundle"})
    with pytest.raises(SparkWasAsked):
        report(
            Archive(archive.uri, no_spark, thresholds=ArchiveThresholds(in_process_bytes=10)),
            {"east": tmp_path / "2.bundle"},
        )


@pytest.mark.spark
@pytest.mark.parametrize("given", [True, False])
def test_jobs_come_to_the_same_numbers(spark: SparkSession, tmp_path: Path, given: bool) -> None:
    archive = made(tmp_path, given=given)
    write_bundle(tmp_path / "east.bundle", RECORDS[40:])
    other = Archive(str(tmp_path / "south"), no_spark)
    other.init()
    other.add([tmp_path / "east.bundle"])
    places = {"bundle": tmp_path / "east.bundle", "archive": tmp_path / "south", "self": tmp_path / "west"}
    few = report(archive, places)
    by_jobs = Archive(archive.uri, lambda: spark, thresholds=ArchiveThresholds(in_process_bytes=0))
    jobs = report(by_jobs, places)
    assert few.as_json() == jobs.as_json()
