"""Spark Connect: a server that runs in a folder of its own, and clients that have no JVM."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from lace.cli.app import app
from spark import quickly
from spark.archives import make_records, write_bundle
from spark.test_cluster import JOB_SECONDS, SOURCE, SPARK_HOME, kill, run_pipeline, wait_for
from spark.test_killed import commands, contents, ended, prepared, started, undisturbed

pytestmark = pytest.mark.spark

ASKED = """
import json, sys
import lace.spark
from lace.spark import SparkSettings, spark_session

spark = spark_session(sys.argv[1])
records = spark.read.format("lace").load(sys.argv[2])
edges = spark.createDataFrame([(f"n{number}", f"n{number + 1}") for number in range(8)], "near string, far string")
found = lace.spark.evaluate(
    "Reach(X,Y) :- Edge(X,Y).\\nReach(X,Z) :- Reach(X,Y), Edge(Y,Z).\\nLast(X) :- Reach(_,X), not Edge(X,_).\\n",
    {"Edge": edges},
    settings=SparkSettings(small_rows=0),
)
chosen = lace.spark.evaluate("Chosen(P) :- Have(P), Field(P,'Group',_,'u').", records=records)
told = {name: sorted(map(list, frame.collect())) for name, frame in (found | chosen).items()}
a, others = records.where("app = 'ding'"), records.where("app != 'ding'")
records.createOrReplaceTempView("r")
told["reused"] = [a.count() > 0, a.union(others).count()]
others_in_sql = spark.sql("select count(*) from r where hash not in (select hash from r where app = 'ding')")
told["anti"] = others_in_sql.first()[0] + a.count()
told["all"], told["named"] = records.count(), records.where("app is not null").count()
print(json.dumps({**told, "columns": found["Reach"].columns, "u": records.where("group = 'u'").count()}))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Connect server."""
    from lace.spark.session.java import java_home

    folder = tmp_path_factory.mktemp("connect")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        **quickly.IN_ENVIRONMENT,
        "PYTHONPATH": str(SOURCE),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home()),
    }
    settings = {
        "spark.connect.grpc.binding.port": port,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.ui.enabled": "false",
        **quickly.SETTINGS,
    }
    command = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", "local[2]"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*command, "spark-internal"], cwd=folder, stdout=out, stderr=out, env=environment, start_new_session=True
        )
    try:
        yield f"sc://{wait_for(r'Spark Connect server started at: (127.0.0.1:[0-9]+)', log)}"
    finally:
        kill(process)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an archive, which we are in and the server is not."""
    (tmp_path / "in").mkdir()
    write_bundle(tmp_path / "in" / "a.bundle", make_records(60, seed=5))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow  # a minute of starting JVMs; nightly
def test_the_pipeline_gives_the_same_tables(server: str, stage: Path) -> None:
    from spark.test_pipeline import tables

    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    job = run_pipeline(Path(), "remote", server, environment)  # paths as people type them, from where they are
    _, errors = job.communicate(timeout=JOB_SECONDS)
    assert job.returncode == 0, errors
    alone = ["pipeline", "run", "-i", "in", "-o", "alone", "--peer", "bob=peer.lace", "--expose", "all"]
    done = CliRunner().invoke(app, alone)  # in this process
    assert done.exit_code == 0, done.output
    assert tables(stage / "remote") == tables(stage / "alone")


@pytest.mark.slow
def test_an_archive_goes_through_every_change_with_the_same_tables(spark: object, server: str, tmp_path: Path) -> None:
    from pyspark.sql import SparkSession

    assert isinstance(spark, SparkSession)
    prepared(tmp_path)
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "MASTER": server}
    for there, here in zip(*(commands(tmp_path, str(tmp_path / name)) for name in ("there", "here")), strict=True):
        assert ended(started(there, environment, [])) == 0
        undisturbed(here)
    assert contents(spark, tmp_path / "there") == contents(spark, tmp_path / "here")


def test_rules_and_records_from_a_notebook(server: str, stage: Path) -> None:
    """A session of the user's own kind reads records by their absolute path and evaluates rules over frames."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", ASKED, server, str(stage / "in")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=JOB_SECONDS)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["columns"] == ["X", "Y"]
    assert len(told["Reach"]) == 8 * 9 // 2
    assert told["Last"] == [["n8"]]
    assert len(told["Chosen"]) == told["u"] > 0
    assert told["reused"] == [True, told["named"]]
    assert told["anti"] == told["all"] == 60
