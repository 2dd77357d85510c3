"""A project for Spark Declarative Pipelines: written once, and it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lace.errors import InvalidInput
from lace.spark.declarative import SPEC, TRANSFORMATIONS, write_project
from spark.archives import make_records, write_bundle
from spark.test_cluster import SOURCE, SPARK_HOME

RUN_SECONDS = 900


def test_a_project_is_written_once_and_names_its_inbox(tmp_path: Path) -> None:
    inbox = tmp_path / 'it\'s an "inbox"'
    made = write_project(tmp_path / "project", inbox)
    assert [path.relative_to(tmp_path / "project").as_posix() for path in made] == [SPEC, TRANSFORMATIONS]
    names: dict[str, object] = {}
    lines = [line for line in made[1].read_text().splitlines() if line.startswith("INBOX")]
    exec("\n".join(lines), names)
    assert names["INBOX"] == str(inbox)
    compile(made[1].read_text(), "lace_tables.py", "exec")
    with pytest.raises(InvalidInput, match="already"):
        write_project(tmp_path / "project", inbox)


@pytest.mark.spark
@pytest.mark.slow
def test_spark_pipelines_runs_it(spark: SparkSession, tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    from lace.spark.session.java import java_home

    records = make_records(30, seed=41)
    inbox, project = tmp_path / "inbox", tmp_path / "project"
    inbox.mkdir()
    write_bundle(inbox / "a.bundle", records)
    (inbox / "bad.bundle").write_bytes(b"nonsense")
    write_project(project, inbox)
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home()),
    }
    environment.pop("SPARK_HOME", None)
    command = [str(SPARK_HOME / "bin" / "spark-pipelines"), "run"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, timeout=RUN_SECONDS)
    assert done.returncode == 0, done.stderr[-3000:]
    tables = project / "spark-warehouse"
    found = {name: spark.read.parquet(str(tables / name)) for name in ("records", "quarantine", "tips")}
    assert {row["hash"] for row in found["records"].collect()} == {str(valid.hash) for valid in records}
    assert found["quarantine"].count() == 1
    named = {(v.parts.group, v.parts.app, v.parts.name) for v in records if v.parts.name}
    assert {(row["group"], row["app"], row["name"]) for row in found["tips"].collect()} == named
