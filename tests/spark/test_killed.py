"""Writers that are killed: at every file operation of a commit, drivers and workers in every step. Always SIGKILL."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from lace.cli.app import app
from lace.spark.archive.archive import Archive
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.log import Log
from lace.spark.archive.versions import Commit, DataFile, State
from spark import quickly
from spark.archives import make_records, write_bundle
from spark.test_cluster import JOB_SECONDS, SOURCE, Cluster, cluster, kill

__all__ = ["cluster"]

# Ends itself before the operation of a given number that touches files under a folder.
FALL = """
import os, signal, sys
root, left = sys.argv.pop(1), int(sys.argv.pop(1))
def step(event, arguments):
    global left
    touches = any(str(value).startswith(root) for value in arguments[:2])
    if touches and (event in ("os.link", "os.rename", "os.remove", "os.mkdir") or event == "open"):
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)
"""
COMMIT = """
from pathlib import Path
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.log import Log
from lace.spark.archive.versions import Commit, DataFile
log = Log(LocalFiles(Path(root)))
state = log.state()
new = DataFile(table="records", path="data/records/new", rows=3, bytes=9)
sys.addaudithook(step)
log.commit(state, Commit(operation="add", added=(new,), counts={"valid": 3}))
"""


@pytest.mark.parametrize("versions", [1, 15])  # the sixteenth carries the whole state
def test_a_writer_killed_at_any_file_operation_of_a_commit_leaves_one_version_or_the_next(
    tmp_path: Path, versions: int
) -> None:
    killed = 0
    while True:
        root = tmp_path / str(killed)
        log, state = Log(LocalFiles(root)), State()
        for number in range(versions):
            state = log.commit(state, Commit(operation="add", counts={"n": number}))
        command = [sys.executable, "-c", FALL + COMMIT, str(root), str(killed)]
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(SOURCE)}, timeout=60)
        found = log.state()
        assert found.version in (versions, versions + 1)
        assert found.files == (
            (DataFile(table="records", path="data/records/new", rows=3, bytes=9),) * (found != state)
        )
        assert log.commit(found, Commit(operation="after")).version == found.version + 1  # nobody is in its way
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
        killed += 1
    assert killed >= 3  # before the file is there, before it has its name, before the hidden one is gone
    assert found.version == versions + 1


RULES = (
    "SelectHave(P) :- Have(P), not Linked(P).\nLinked(T) :- RecordLink(P,_,_,_,T), Field(P,'Group',_,'u').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S).\n"
)


def commands(folder: Path, root: str) -> list[list[str]]:
    """Every change that an archive knows, one after another."""
    by_spark = ["--few-mib", "0"]  # so little would be done without it
    peer = ["--peer", f"bob={folder / 'bob.rules'}", "--expose", "all", *by_spark]
    gone = [str(valid.hash) for valid in make_records(40, seed=3)[:5]]
    name = root.rpartition("/")[2]
    return [
        ["init", root],
        ["add", root, str(folder / "a.bundle"), *by_spark],
        ["run", root, *peer],
        ["add", root, str(folder / "b.bundle")],
        ["run", root, *peer],
        ["remove", root, *gone],
        ["publish", root, *peer, "--to", str(folder / f"{name}-out")],
        ["compact", root],
        ["gc", root, "--versions", "1", "--apply"],
    ]


def prepared(folder: Path) -> None:
    records = make_records(40, seed=3)
    write_bundle(folder / "a.bundle", records[:30])
    write_bundle(folder / "b.bundle", records[25:])
    (folder / "bob.rules").write_text(RULES)


def started(arguments: list[str], environment: dict[str, str], prelude: list[str]) -> subprocess.Popen[str]:
    run = ["-c", FALL + "sys.addaudithook(step)\nfrom lace.cli.app import app\napp()", *prelude] if prelude else []
    command = [sys.executable, *(run or ["-m", "lace.cli"]), "archive", *arguments]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


def undisturbed(arguments: list[str]) -> None:
    """The same command in the session that this process has."""
    done = CliRunner().invoke(app, ["archive", *arguments])
    assert done.exit_code == 0, done.output


def ended(process: subprocess.Popen[str]) -> int:
    _, said = process.communicate(timeout=JOB_SECONDS)
    assert process.returncode in (0, -signal.SIGKILL), said
    return process.returncode


def contents(spark: SparkSession, root: Path) -> dict[str, list[str]]:
    """What every table says, without what differs from run to run."""
    archive = Archive(str(root), lambda: spark)
    found = {}
    for name in ("records", "quarantine", "selected", "relations", "advertisements", "partitions", "published"):
        frame = archive.table(name).drop("batch", "bundle", "offset", "rules")
        found[name] = sorted(json.dumps(row.asDict(recursive=True), default=str) for row in frame.collect())
    return found


@pytest.mark.slow
@pytest.mark.spark
def test_a_driver_killed_in_the_middle_and_at_the_commit_of_every_change_leaves_the_same_tables(
    spark: SparkSession, tmp_path: Path
) -> None:
    prepared(tmp_path)
    environment = {**os.environ, **quickly.IN_ENVIRONMENT, "PYTHONPATH": str(SOURCE), "MASTER": "local[2]"}
    killed = 0
    for calm, hurt in zip(
        commands(tmp_path, str(tmp_path / "calm")), commands(tmp_path, str(tmp_path / "hurt")), strict=True
    ):
        undisturbed(calm)
        with started(hurt, environment, []) as process:  # in the middle: when a step has said that it begins
            assert process.stderr is not None
            for line in process.stderr:
                if any(step in line for step in ("reading", "select for", "list for", "new records")):
                    process.kill()
                    killed += 1
        if hurt[0] == "init":
            continue
        # A commit reads every version, makes a hidden file and gives it its name: before the file, before the name.
        reads = len(list((tmp_path / "hurt" / "log").glob("*.json"))) + 1
        for point in (reads, reads + 1):
            killed += ended(started(hurt, environment, [str(tmp_path / "hurt" / "log"), str(point)])) != 0
        assert ended(started(hurt, environment, [])) == 0
    assert killed >= 10
    assert contents(spark, tmp_path / "hurt") == contents(spark, tmp_path / "calm")


@pytest.mark.slow
@pytest.mark.spark
def test_workers_and_executors_killed_in_every_step_leave_the_same_tables(
    spark: SparkSession,
    cluster: Cluster,
    tmp_path: Path,
) -> None:
    """The archive has an address of Hadoop's; by turns a worker with its executor and an executor are killed."""
    prepared(tmp_path)
    link = f"spark.hadoop.fs.viewfs.mounttable.lace.link./hurt={(tmp_path / 'hurt').as_uri()}"
    together = {**cluster.environment, **quickly.IN_ENVIRONMENT, "MASTER": cluster.url}
    (tmp_path / "hurt").mkdir()
    killed = {"worker": 0, "executor": 0}
    for calm, hurt in zip(
        commands(tmp_path, str(tmp_path / "calm")), commands(tmp_path, "viewfs://lace/hurt"), strict=True
    ):
        undisturbed(calm)
        said: list[str] = []
        with started([*hurt, "--conf", link], together, []) as process:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if " tasks" not in line and any(step in line for step in ("reading", "select for", "list for")):
                    time.sleep(1)  # once as a step begins and once as it ends, not whenever it says how far it is
                    found = cluster.executors()
                    if killed["executor"] < killed["worker"] and found:
                        os.kill(found[0], signal.SIGKILL)
                        killed["executor"] += 1
                    else:
                        kill(cluster.workers.pop(0))
                        killed["worker"] += 1
                        cluster.start_worker()
        assert process.wait(timeout=JOB_SECONDS) == 0, "".join(said)
    assert killed["worker"] >= 2
    assert killed["executor"] >= 2
    assert contents(spark, tmp_path / "hurt") == contents(spark, tmp_path / "calm")
