"""A real cluster: a standalone master and three workers as processes with folders of their own, some of them killed."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
import pytest

from spark.archives import make_records, write_bundle

pytestmark = pytest.mark.spark

START_SECONDS = 180
JOB_SECONDS = 420
SOURCE = Path(__file__).parent.parent.parent / "src"
SPARK_HOME = Path(pyspark.__file__).parent


@dataclass
class Cluster:
    """The processes and where they write what they say."""

    url: str
    environment: dict[str, str]
    folder: Path
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    started: int = 0

    def start_worker(self) -> None:
        """One worker more, with a working folder of its own."""
        own = self.folder / f"worker{self.started}"
        self.started += 1
        own.mkdir()
        worker = ["org.apache.spark.deploy.worker.Worker", "--cores", "1", "--memory", "1g", "--webui-port", "0"]
        environment = {**self.environment, "SPARK_WORKER_DIR": str(own / "work")}
        self.workers.append(spawn([*worker, self.url], own / "log", environment, cwd=own))
        wait_for(r"(Successfully registered with master)", own / "log")

    def executors(self) -> list[int]:
        """The processes that run tasks: each belongs to the process group of its worker."""
        groups = {worker.pid for worker in self.workers}
        return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if _is_executor(pid, groups)]


def _is_executor(pid: int, groups: set[int]) -> bool:
    try:
        return (
            os.getpgid(pid) in groups and b"CoarseGrainedExecutorBackend" in Path(f"/proc/{pid}/cmdline").read_bytes()
        )
    except OSError:  # it ended meanwhile
        return False


def spawn(
    arguments: list[str], log: Path, environment: dict[str, str], cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    command = [str(SPARK_HOME / "bin" / "spark-class"), *arguments]
    with log.open("wb") as out:
        return subprocess.Popen(command, stdout=out, stderr=out, env=environment, start_new_session=True, cwd=cwd)


def wait_for(pattern: str, log: Path) -> str:
    """The first match in a log, or a failure that shows the log."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        found = re.search(pattern, log.read_text(errors="replace"))
        if found:
            return found[1]
        time.sleep(0.2)
    pytest.fail(f"{pattern} never appeared:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    from lace.spark.session.java import java_home

    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(java_home()),
    }
    log = tmp_path / "master.log"
    arguments = ["org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    master = spawn(arguments, log, environment)
    running = Cluster("", environment, tmp_path)
    try:
        running.url = wait_for(r"Starting Spark master at (spark://\S+)", log)
        for _ in range(3):
            running.start_worker()
        yield running
    finally:
        for process in (*running.workers, master):
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """The process and its executors, at once."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(timeout=30)


def run_pipeline(tmp_path: Path, output: str, master: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    rules = tmp_path / "peer.lace"
    rules.write_text(
        "SelectHave(P) :- Have(P), Field(P,'Group',_,'u').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u').\n"
    )
    command = [
        sys.executable,
        "-m",
        "lace.cli",
        "pipeline",
        "run",
        "-i",
        str(tmp_path / "in"),
        "-o",
        str(tmp_path / output),
    ]
    command += ["--peer", f"bob={rules}", "--expose", "all", "--master", master]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)


@pytest.mark.slow  # a minute of starting JVMs; nightly
def test_the_pipeline_survives_a_worker_killed_in_the_middle(cluster: Cluster, tmp_path: Path) -> None:
    from spark.test_pipeline import tables

    (tmp_path / "in").mkdir()
    write_bundle(tmp_path / "in" / "a.bundle", make_records(300, seed=11))
    said = []
    with run_pipeline(tmp_path, "out", cluster.url, cluster.environment) as job:
        assert job.stderr is not None
        for line in job.stderr:
            said.append(line)
            if "] add " in line and "reading" in line:
                time.sleep(1)
                kill(cluster.workers[0])
        assert job.wait(timeout=JOB_SECONDS) == 0, "".join(said)
    alone = run_pipeline(tmp_path, "alone", "local[1]", cluster.environment)
    _, errors = alone.communicate(timeout=JOB_SECONDS)
    assert alone.returncode == 0, errors
    assert tables(tmp_path / "out") == tables(tmp_path / "alone")
