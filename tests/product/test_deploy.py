"""The unit file runs as written: its key reaches the node, and its words are ones that systemd knows."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import lace as api
from lace.records.keys import SigningSecret
from lace.runtime.identity.keyring import KeyRing

UNIT = Path(__file__).parents[2] / "deploy" / "lace.service"
SECONDS = 60  # only a node that hangs takes so long


def values(name: str) -> list[str]:
    """What the unit file says under a name, in order."""
    lines = (line.partition("=") for line in UNIT.read_text().splitlines())
    return [value for key, _, value in lines if key == name]


def in_folder(command: str, folder: Path) -> list[str]:
    """A command of the unit, with its places under a folder and its programs those of this machine."""
    command = command.replace("%t", str(folder / "run")).replace(
        "${CREDENTIALS_DIRECTORY}", str(folder / "credentials")
    )
    program, *words = shlex.split(command.replace("/etc/lace", str(folder / "etc")))
    return [sys.executable, "-m", "lace.cli", *words] if program.endswith("/lace") else [program, *words]


@pytest.mark.long
def test_the_unit_runs_a_node_with_its_key(tmp_path: Path) -> None:
    for name in ("run/lace", "credentials", "etc", "state"):
        (tmp_path / name).mkdir(parents=True)
    KeyRing(tmp_path / "mine").add("server", SigningSecret.generate())
    shutil.copy(tmp_path / "mine" / "keys" / "server.key", tmp_path / "credentials" / "server.key")
    (tmp_path / "credentials" / "server.key").chmod(0o440)  # as systemd may hand it over
    api.open(tmp_path / "state" / "club.lace", create=True).close()
    (tmp_path / "etc" / "lace.toml").write_text(
        f'store = "{tmp_path}/state/club.lace"\nlisten = ["unix:{tmp_path}/s"]\nkey = "server"\nexpose = ["all"]\n'
    )
    environment = {**os.environ, **dict([in_folder(values("Environment")[0], tmp_path)[0].split("=", 1)])}
    for _ in range(2):  # it starts again after a crash
        for command in values("ExecStartPre"):
            subprocess.run(in_folder(command, tmp_path), check=True, env=environment)
        node = subprocess.Popen(
            in_folder(values("ExecStart")[0], tmp_path), env=environment, stderr=subprocess.PIPE, text=True
        )
        deadline = threading.Timer(SECONDS, node.kill)
        deadline.start()
        assert node.stderr is not None
        said = next((line for line in node.stderr if "listening" in line or "error" in line), "")
        deadline.cancel()
        node.terminate()
        node.communicate(timeout=30)
        assert node.returncode == 0
        assert "listening on unix:" in said


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_knows_every_word_of_the_unit(tmp_path: Path) -> None:
    copy = tmp_path / "lace.service"
    copy.write_text(UNIT.read_text().replace("/usr/bin/lace", "/bin/true"))
    done = subprocess.run(["systemd-analyze", "verify", copy], capture_output=True, text=True, timeout=60)
    assert "lace.service" not in done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_finds_little_that_the_unit_leaves_open(tmp_path: Path) -> None:
    copy = tmp_path / "lace.service"
    copy.write_text(UNIT.read_text().replace("/usr/bin/lace", "/bin/true"))
    words = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(copy)]  # of 100, the most exposed
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_what_the_unit_promises_is_in_it() -> None:
    assert values("LoadCredential") == ["server.key:/etc/lace/server.key"]
    assert values("MemoryMax")
    assert values("SystemCallFilter")[0] == "@system-service"
    assert values("DynamicUser") == ["yes"]
