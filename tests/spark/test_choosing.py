"""Listing and publishing by the rules themselves come to what listing and publishing by the stored selection do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from lace.policy.operand import Module
from lace.policy.select import select_coordinate
from lace.records.frame import split_records
from lace.records.model import ValidRecord
from lace.records.validate import validate
from lace.spark.archive import tables
from lace.spark.archive.archive import Archive
from lace.spark.archive.peer_records import WantedRecords, ends_of, records_for
from lace.spark.archive.publish import publish
from lace.spark.archive.run import rules_mark, run
from lace.spark.jobs.evaluate import PeerPolicy
from lace.thresholds import ArchiveThresholds
from spark.archives import make_records, write_bundle
from spark.test_few import CLAIMS, JOINED, check, rows_of
from spark.test_pipeline import peer

pytestmark = pytest.mark.spark

TAGGED = (
    "SelectHave(P) :- Have(P), Field(P,'X-Tag',_,T), Wanted(T), not Hidden(P).\n"
    "Wanted('a') :- true.\nWanted('é') :- true.\n"
    "Hidden(P) :- Field(P,'App',_,'blocked').\nHidden(P) :- Field(P,'Type',_,'B').\n" + CLAIMS
)
TAGS = peer("tags", Module.author(TAGGED))
TWIN = peer("twin", Module.author(TAGGED))
NOTHING = peer("nothing", select_coordinate("//nobody//"))
JOINS = peer("joins", Module.author(JOINED.replace("Have(P),", "Have(P), Field(P,'Group',_,'u'),")))
PEERS = [TAGS, NOTHING, JOINS]
RECORDS = make_records(60, seed=17)
MANY = ArchiveThresholds(in_process_bytes=0, broadcast_rows=2)  # nearly nothing is few
KEPT = ("selected", "advertisements", "partitions", "published")


def stored(archive: Archive, table: str) -> list[str]:
    """The rows of a table, without the names of batches."""
    return sorted(str({name: row[name] for name in row if name != "batch"}) for row in rows_of(archive, table))


def bundled(folder: Path) -> dict[str, list[str]]:
    """What each peer was given, by version."""
    found: dict[str, list[str]] = {}
    for place in sorted(folder.glob("*/*")):
        parts = [split_records(path.read_bytes()) for path in place.glob("*.bundle")]
        found[str(place.relative_to(folder))] = sorted(str(validate(one).hash) for part in parts for one in part)
    return found


def lived(archive: Archive, folder: Path, out: Path, batches: Sequence[Sequence[ValidRecord]]) -> list[ValidRecord]:
    """A life of an archive: what it holds in the end."""

    def add(number: int, records: Sequence[ValidRecord]) -> None:
        archive.add([write_bundle(folder / f"{number}.bundle", list(records))])

    archive.init()
    run(archive, PEERS)
    publish(archive, PEERS, out)  # nothing yet
    add(0, batches[0])
    run(archive, PEERS)
    publish(archive, PEERS, out)
    add(1, batches[1])
    add(2, batches[2])
    run(archive, PEERS)
    add(3, batches[3])
    publish(archive, PEERS, out)  # before the last batch was looked at
    gone = [*batches[0][:4], *batches[2][:4]]
    archive.remove([str(valid.hash) for valid in gone])
    publish(archive, PEERS, out)
    archive.compact()
    add(4, gone[2:6])  # what was given already, and went, comes again
    run(archive, PEERS)
    publish(archive, [*PEERS], out)
    run(archive, [TWIN])
    publish(archive, [TWIN], out)
    held = {valid.hash: valid for batch in batches for valid in batch}
    return [valid for valid in held.values() if valid not in gone or valid in gone[2:6]]


BOTH = ("rules", "joins")


@pytest.mark.parametrize(
    ("roads", "limits"),
    [
        (BOTH[:1], MANY),  # by day, beside an evaluation from scratch alone
        pytest.param(BOTH, MANY, marks=pytest.mark.slow),
        pytest.param(BOTH, ArchiveThresholds(in_process_bytes=0), marks=pytest.mark.slow),
    ],
    ids=["rules alone", "many", "few"],
)
def test_rules_and_joins_list_and_publish_the_same_whatever_came_and_went(
    spark: SparkSession, tmp_path: Path, roads: Sequence[str], limits: ArchiveThresholds
) -> None:
    batches = [RECORDS[:20], RECORDS[15:32], RECORDS[30:45], RECORDS[45:]]
    found: list[dict[str, Any]] = []
    for road in roads:
        folder, out = tmp_path / road, tmp_path / f"{road}-out"
        folder.mkdir()
        way = limits if road == "rules" else replace(limits, row_tests=0)
        archive = Archive(str(folder / "root"), lambda: spark, thresholds=way)
        held = lived(archive, folder, out, batches)
        check(archive, held, [*PEERS, TWIN])
        found.append({table: stored(archive, table) for table in KEPT} | {"bundles": bundled(out)})
    assert all(one == found[0] for one in found)
    given = found[0]["bundles"]
    counts = {name.split("/")[0]: 0 for name in given}
    for name, hashes in given.items():
        counts[name.split("/")[0]] += len(hashes)
        assert len(set(hashes)) == len(hashes)
    assert counts["tags"] > counts["twin"] > 4  # it was given what went meanwhile too, and nothing twice
    assert "nothing" not in counts


@pytest.mark.slow  # by day the life of an archive above has several batches, each compared with all from scratch
def test_the_order_of_batches_does_not_matter(spark: SparkSession, tmp_path: Path) -> None:
    parts = [RECORDS[:20], RECORDS[20:23], RECORDS[23:]]
    found = []
    for order in (parts, parts[::-1], [RECORDS]):
        folder = tmp_path / str(len(found))
        folder.mkdir()
        archive = Archive(str(folder / "root"), lambda: spark, thresholds=MANY)
        archive.init()
        for number, part in enumerate(order):
            archive.add([write_bundle(folder / f"{number}.bundle", part)])
            run(archive, [TAGS])
            publish(archive, [TAGS], folder / "out")
        check(archive, RECORDS, [TAGS])
        given = sorted(text for hashes in bundled(folder / "out").values() for text in hashes)
        found.append([stored(archive, table) for table in KEPT] + [given])
    assert found[0] == found[1] == found[2]


def wanted(archive: Archive, one: PeerPolicy) -> WantedRecords:
    state = archive.log.state()
    files = [file for file in state.table("selected") if file.low["rules"] == rules_mark(one)]
    hashes = tables.read(archive.spark, archive.files, "selected", files).select("hash")
    return WantedRecords(hashes, ends_of(files), state.every_batch)


def test_rules_of_one_record_move_no_row_and_others_only_rows_that_may_be_wanted(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = Archive(str(tmp_path / "root"), lambda: spark, thresholds=MANY)
    archive.init()
    archive.add([write_bundle(tmp_path / "a.bundle", RECORDS)])
    run(archive, PEERS, listings=False)
    state = archive.log.state()
    plans = {
        one.name: records_for(archive, state, one, wanted(archive, one))._jdf.queryExecution().executedPlan().toString()
        for one in (TAGS, JOINS)
    }
    assert "Exchange" not in plans["tags"]
    assert "Join" not in plans["tags"]
    assert "ShuffledHashJoin" in plans["joins"]
    assert "(group" in plans["joins"].split("Exchange")[1]  # rows are tested before they move
