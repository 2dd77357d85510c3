"""`lace peers` and `lace reload`: what nodes in processes of their own answer beside their lace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.runtime.node.control import answering, control_path

SECONDS = 60  # only a process that hangs takes so long


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for path in ("server.lace", "friend.lace"):
        with api.open(path, create=True) as opened:
            opened.put(path.encode(), group="u", app="a", name=path)
    lace("key", "new", "friend")
    lace("key", "new", "server")
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def top(*options: str) -> list[str]:
    """What `lace top` measures within a fifth of a second."""
    return lace("top", "server.lace", "--once", "--every", "0.2", *options).stdout.splitlines()


@contextmanager
def process(*words: str, until: str) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on, after it wrote a word."""
    command = [sys.executable, "-m", "lace.cli", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as started:
        assert started.stdout is not None
        deadline = threading.Timer(SECONDS, started.kill)
        deadline.start()
        said = []
        for line in started.stdout:
            said.append(line)
            if until in line:
                break
        else:
            pytest.fail(f"{words} ended: {''.join(said)}")
        deadline.cancel()
        yield started
        started.terminate()
        started.communicate(timeout=30)


@pytest.mark.long
def test_the_peers_of_a_node_are_told_by_name_and_a_node_that_was_killed_is_not_asked(stage: Path) -> None:
    assert lace("peers", "server.lace").exit_code == ExitCode.BAD
    friend = json.loads(lace("key", "show", "friend", "--json").stdout)["verifier"]
    lace("name", "add", "server.lace", "fred", friend)
    address = f"unix:{stage}/s"
    uid = f"{os.getuid()}={friend}"
    with process("serve", "server.lace", address, "--expose", "all", "--uid", uid, until="listening") as server:
        (socket,) = answering(stage / "server.lace")
        assert socket.stat().st_mode & 0o077 == 0
        assert lace("peers", "server.lace").exit_code == 0
        with process("follow", "friend.lace", address, "--expose", "all", until="fixed point"):
            (link,) = [json.loads(line) for line in lace("peers", "server.lace", "--json").stdout.splitlines()]
            assert link["peer"] == friend
            assert link["name"] in ("fred", "friend")
            assert link["process"] == server.pid
            told = lace("peers", "server.lace").stdout
            assert "at a fixed point" in told
            (watched,) = [json.loads(line) for line in top("--json")]
            assert (watched["peer"], watched["process"], watched["bytes_in_s"]) == (friend, server.pid, 0.0)
            assert watched["bytes_in"] > 500
            assert watched["bytes_out"] > 500
            assert top()[0].startswith("✓ server.lace: 1 link, 1 at rest, 0 B/s in")
            assert friend not in told
            assert friend in lace("peers", "server.lace", "--full").stdout
        done = lace("reload", "server.lace", "--json")
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["process"] == server.pid
        server.send_signal(signal.SIGKILL)
        server.wait(30)
        assert socket.exists()
        assert lace("peers", "server.lace").exit_code == ExitCode.BAD
        assert not socket.exists()
    assert lace("reload", "server.lace").exit_code == ExitCode.BAD


def test_a_node_whose_folder_takes_no_socket_does_without(tmp_path: Path) -> None:
    assert control_path(tmp_path / ("x" * 120)) is None
    assert control_path("hdfs://host/archive") is None
    assert list(answering(tmp_path / "nowhere" / "a.lace")) == []
