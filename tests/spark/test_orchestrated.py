"""Archives under an orchestrator: expectations that stop a bad batch, and events of OpenLineage from the log."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.errors import InvalidInput
from lace.spark.archive.archive import Archive
from lace.spark.archive.lineage import run_event
from lace.spark.archive.metrics import prometheus_text
from lace.spark.archive.versions import ArchiveBatch, Commit, DataFile, Input, State, StepResult
from spark.archives import make_records, write_bundle

RULES = "SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\nSelectAdvertised(P,S) :- Advertised(P,S).\n"


def lace(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["archive", *map(str, arguments)])


def damaged(bundle: Path, times: int) -> Path:
    """The same bundle with some bytes of its first records changed."""
    data = bytearray(bundle.read_bytes())
    at = 0
    for _ in range(times):
        at = data.index(b"Group", at + 1)
        data[at] ^= 1
    bundle.write_bytes(data)
    return bundle


def test_an_addition_with_more_bad_records_than_expected_leaves_nothing_behind(tmp_path: Path) -> None:
    root = tmp_path / "west"
    lace("init", root)
    records = make_records(40, seed=2)
    lace("add", root, write_bundle(tmp_path / "a.bundle", records[:20]))
    before = sorted(path for path in root.rglob("*") if path.is_file())
    bad = damaged(write_bundle(tmp_path / "b.bundle", records[20:]), 2)
    refused = lace("add", root, bad, "--max-quarantined", "5%")
    assert refused.exit_code == 1
    assert "at most 5 % of the new records may go to quarantine, so nothing was added" in refused.stderr
    assert "2 of 20" in refused.stderr
    assert "b.bundle" in refused.stderr
    assert sorted(path for path in root.rglob("*") if path.is_file()) == before
    assert lace("add", root, bad, "--max-quarantined", "10%").exit_code == 0
    state = Archive(str(root)).log.state()
    assert (state.rows("records"), state.rows("quarantine")) == (38, 2)
    assert lace("add", root, bad, "--max-quarantined", "0%").exit_code == 0  # nothing new, so nothing bad


def test_a_stream_ends_at_a_batch_that_is_worse_than_expected(tmp_path: Path) -> None:
    root, inbox = tmp_path / "west", tmp_path / "inbox"
    inbox.mkdir()
    lace("init", root)
    damaged(write_bundle(inbox / "b.bundle", make_records(10, seed=2)), 1)
    refused = lace("follow", root, "--inbox", inbox, "--once", "--max-quarantined", "1%")
    assert (refused.exit_code, Archive(str(root)).log.newest()) == (1, 1)
    with pytest.raises(InvalidInput, match=r"at most 0\.1 % of the new records"):
        Archive(str(root), max_quarantined=0.001).add([inbox])


@pytest.mark.parametrize("text", ["5", "x%", "-1%", "101%", "%"])
def test_a_share_that_is_not_a_percentage_is_refused(tmp_path: Path, text: str) -> None:
    lace("init", tmp_path / "west")
    refused = lace("add", tmp_path / "west", tmp_path, "--max-quarantined", text)
    assert refused.exit_code == 2
    assert "is not a percentage from 0% to 100%, such as 0.1%" in refused.stderr


def test_each_commit_is_one_event_that_says_what_it_read_and_wrote(tmp_path: Path) -> None:
    root = tmp_path / "west"
    lace("init", root)
    bundle = damaged(write_bundle(tmp_path / "a.bundle", make_records(20, seed=2)), 1)
    lace("add", root, bundle)
    (tmp_path / "bob.rules").write_text(RULES)
    lace("run", root, "--peer", f"bob={tmp_path / 'bob.rules'}", "--expose", "all", "--no-listings")
    events = [json.loads(line) for line in lace("lineage", root).stdout.splitlines()]
    assert [event["job"]["name"] for event in events] == ["init", "add", "run"]
    assert {event["eventType"] for event in events} == {"COMPLETE"}
    assert len({UUID(event["run"]["runId"]) for event in events}) == 3
    assert all(datetime.fromisoformat(event["eventTime"]).tzinfo for event in events)
    added, ran = events[1:]
    assert added["inputs"] == [{"namespace": "file", "name": str(bundle)}]
    rows = {Path(out["name"]).name: out["outputFacets"]["outputStatistics"]["rowCount"] for out in added["outputs"]}
    assert rows == {"coordinates": 19, "quarantine": 1, "records": 19}
    (read,) = ran["inputs"]
    assert (read["name"], read["facets"]["version"]["datasetVersion"]) == (str(root / "data" / "records"), "2")
    assert [Path(out["name"]).name for out in ran["outputs"]] == ["selected"]
    (again,) = lace("lineage", root, "--since", "2").stdout.splitlines()
    assert json.loads(again) == ran


def test_a_state_is_gauges_that_prometheus_reads() -> None:
    found = StepResult(mark="m", seen="1", removals=0, counts={"selected bob": 3}, seconds=0.25)
    state = State(
        version=7,
        files=(DataFile(table="records", path="x", rows=5, bytes=70),),
        batches=tuple(ArchiveBatch(id=name, inputs={}, counts={}) for name in "123"),
        results={"selected:m": found},
        removals=1,
        time="2026-11-19T00:00:00+00:00",
    )
    lines = prometheus_text('/data/"west"', state).splitlines()
    assert lines[:3] == [
        "# HELP lace_archive_version The newest version.",
        "# TYPE lace_archive_version gauge",
        'lace_archive_version{archive="/data/\\"west\\""} 7',
    ]
    assert {line.partition("} ")[0].partition(",")[2] + "=" + line.rpartition(" ")[2] for line in lines[8:]} >= {
        'table="records"=5',
        'table="records"=70',
        'table="quarantine"=0',
        'step="select for bob"=2',
        'step="select for bob"=1',
        'step="select for bob"=0.250',
    }
    assert sum(line.startswith("# TYPE") for line in lines) == 9


def test_status_prints_the_gauges_of_an_archive(tmp_path: Path) -> None:
    lace("init", tmp_path / "west")
    lace("add", tmp_path / "west", write_bundle(tmp_path / "a.bundle", make_records(20, seed=2)))
    said = lace("status", tmp_path / "west", "--prometheus").stdout
    assert f'lace_archive_rows{{archive="{tmp_path / "west"}",table="records"}} 20\n' in said


@pytest.mark.parametrize("command", ["status", "log", "lineage"])
def test_an_archive_that_is_not_there_is_an_error_of_whoever_asks_for_it(tmp_path: Path, command: str) -> None:
    asked = lace(command, tmp_path)
    assert (asked.exit_code, asked.stdout) == (3, "")
    assert "there is no archive here" in asked.stderr


def test_datasets_elsewhere_are_named_by_their_store() -> None:
    batch = ArchiveBatch(id="1", inputs={"x": Input(address="s3://bucket/day/a.bundle", size=9)}, counts={})
    file = DataFile(table="records", path="data/records/x", rows=7, bytes=70)
    commit = Commit(operation="add", version=2, added=(file,), batch=batch)
    event: Any = run_event("hdfs://head:8020/lace/west", commit, "urn:x")
    assert event["inputs"] == [{"namespace": "s3://bucket", "name": "day/a.bundle"}]
    (out,) = event["outputs"]
    assert (out["namespace"], out["name"]) == ("hdfs://head:8020", "/lace/west/data/records")
    assert out["outputFacets"]["outputStatistics"]["size"] == 70
