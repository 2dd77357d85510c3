"""Sail, an engine without a JVM behind the same API: the tests of the executor once more, on it.

Sail runs the PySpark of its own Python, and refuses one that is newer than it: `make sail` gives it an environment of
its own and names that here. What Sail cannot do yet stands in docs/pipeline.md.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark.test_cluster import JOB_SECONDS, SOURCE, kill, wait_for

SAIL_PYTHON = os.environ.get("LACE_SAIL_PYTHON", "")
SERVE = """
import sys
from pysail.spark import SparkConnectServer
SparkConnectServer(ip="127.0.0.1", port=int(sys.argv[1])).start(background=False)
"""
ABLE = ("test_executor.py", "test_ingest.py", "test_aggregates.py")
UNABLE = {
    "test_what_one_record_decides_is_one_pass_without_a_shuffle": "plans of Spark's own are looked at",
    "test_few_rows_choose_among_many_before_these_are_brought_together": "rows shuffled are asked of Spark's own plans",
    "test_a_round_that_finds_few_rows_is_one_job_of_one_stage": "jobs of Spark's own are counted",
    "test_several_lookups_are_one_scan_of_the_records": "plans of Spark's own are looked at",
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SAIL_PYTHON, reason="LACE_SAIL_PYTHON names no Python with pysail (`make sail`)"),
]


@pytest.fixture
def sail(tmp_path: Path) -> Iterator[str]:
    """The address of a server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = tmp_path / "sail.log"
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),  # for the functions that its workers run
        "SAIL_EXECUTION__CHECKPOINT__PATH": (tmp_path / "checkpoints").as_uri(),
    }
    with log.open("wb") as out:
        command = [SAIL_PYTHON, "-c", SERVE, str(port)]
        process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True)
    try:
        yield f"sc://{wait_for(r'Starting the Spark Connect server on (127.0.0.1:[0-9]+)', log)}"
    finally:
        kill(process)


def test_the_executor_gives_on_sail_what_it_gives_on_spark(sail: str) -> None:
    tests = [str(Path(__file__).parent / name) for name in ABLE]
    skip = " and ".join(f"not {name}" for name in UNABLE)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-k", skip, *tests]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=JOB_SECONDS, env={**os.environ, "LACE_SPARK_REMOTE": sail}
    )
    assert done.returncode == 0, done.stdout[-4000:]
    told = done.stdout.splitlines()[-1]
    passed = re.search(r"(\d+) passed", told)
    assert passed is not None
    assert "skipped" not in told  # what is left out stands above, each with its reason
    assert int(passed[1]) > 50
