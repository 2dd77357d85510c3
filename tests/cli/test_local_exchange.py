"""`lace interlace A.lace B.lace` and `lace follow A.lace B.lace`: two laces on one machine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace
from lace.cli.app import app
from lace.cli.output.failure import ExitCode


def run(*words: str) -> Result:
    return CliRunner().invoke(app, list(words), catch_exceptions=False)


@pytest.fixture
def laces(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "a.lace", tmp_path / "b.lace"
    for path in paths:
        lace.open(path, create=True).close()
    with lace.open(paths[0]) as first:
        first.put(b"one", group="u", app="ding", name="links/1")
        first.put(b"two", group="v", app="ding", name="links/2")
    return paths


def count(path: Path) -> int:
    with lace.open(path, read_only=True) as opened:
        return opened.stat().records


def test_two_laces_exchange_what_is_selected(laces: tuple[Path, Path]) -> None:
    first, second = map(str, laces)
    done = run("interlace", first, second, "--select-coordinate", "//u//ding//links/", "--expose", "all", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["fixed_point"] is True
    assert told["sent"] == 1
    assert count(laces[1]) == 1


def test_without_exposure_a_person_is_told_why_nothing_moved(laces: tuple[Path, Path]) -> None:
    done = run("interlace", *map(str, laces))
    assert done.exit_code == ExitCode.NOTHING, done.output
    assert "nothing was allowed" in done.stderr
    assert "Nothing is exposed" in done.stderr
    assert "--expose" in done.stderr
    assert count(laces[1]) == 0


@pytest.mark.parametrize("options", [[], ["--expose", "all"]])
def test_two_empty_laces_are_equal(tmp_path: Path, options: list[str]) -> None:
    paths = [str(tmp_path / f"{name}.lace") for name in "ab"]
    for path in paths:
        lace.open(path, create=True).close()
    for _ in range(2):
        done = run("interlace", *paths, *options)
        assert done.exit_code == 0, done.output
        assert "both laces are empty" in done.stderr
    with lace.open(paths[1]) as second:
        second.put(b"one", group="u", app="ding", name="1")
    assert run("interlace", *paths).exit_code == ExitCode.NOTHING


def test_the_other_lace_can_have_its_own_choices(laces: tuple[Path, Path]) -> None:
    first, second = map(str, laces)
    done = run("interlace", second, first, "--their-select", "//v//", "--their-expose", "all")
    assert done.exit_code == 0, done.output
    assert count(laces[1]) == 1


def test_connection_options_are_refused_between_laces(laces: tuple[Path, Path]) -> None:
    done = run("interlace", *map(str, laces), "--peer", "V." + "0" * 43 + ".H3")
    assert done.exit_code == 2
    assert "--peer needs an address" in done.stderr


@pytest.mark.long
def test_follow_prints_what_happens_until_it_is_stopped(laces: tuple[Path, Path]) -> None:
    command = [sys.executable, "-m", "lace.cli", "follow", *map(str, laces), "--expose", "all", "--json"]
    source = str(Path(lace.__file__).parent.parent)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": source}
    ) as process:
        assert process.stdout is not None
        lines = []
        deadline = time.monotonic() + 30
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1]["kind"] == "FixedPoint" or time.monotonic() > deadline:
                break
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert {"EpochBegan", "Advertising", "Requested", "Received"} <= {line["kind"] for line in lines}
    assert count(laces[1]) == 2
