"""What a shell completes, asked as bash asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import lace
from lace.cli.app import app


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with lace.open("club.lace", create=True) as opened:
        for app_name, name in (("notes", "boat"), ("notes", "in/one"), ("notes", "in/two"), ("photos", "x")):
            opened.put(b"", group="club", app=app_name, name=name)
    for words in (["key", "new", "anna"], ["key", "new", "bob"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    for words in (["name", "add", "club.lace", "berta", "bob"], ["remote", "add", "club.lace", "home", "tcp:h"]):
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, done.output
    return tmp_path


def completed(line: str) -> list[str]:
    """What bash gets for a line whose last word is being typed; through the command's own protocol."""
    words = ["lace", *line.split(" ")]
    asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1), "_LACE_COMPLETE": "bash_complete"}
    done = CliRunner().invoke(app, [], env=asked, prog_name="lace", complete_var="_LACE_COMPLETE")
    assert done.exit_code == 0, done.output
    return [entry.partition(",")[2] for entry in done.stdout.split("\n") if entry.startswith("plain,")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("put club.lace --sign ", ["anna", "bob"]),
        ("key show a", ["anna"]),
        ("interlace club.lace ho", ["home"]),
        ("remote rm club.lace ", ["home"]),
        ("name rm club.lace be", ["berta"]),
        ("view club.lace --viewer b", ["berta", "bob"]),
        ("get club.lace ", ["//club//"]),
        ("ls club.lace //club//", ["//club//notes//", "//club//photos//"]),
        ("get club.lace //club//notes//", ["//club//notes//boat", "//club//notes//in/"]),
        ("get club.lace //club//notes//in/t", ["//club//notes//in/two"]),
        ("log club.lace //klub//", []),
        ("get nothing.lace //", []),
        ("to", ["top"]),
    ],
)
def test_a_shell_completes_keys_remotes_names_and_coordinates(line: str, said: list[str]) -> None:
    assert completed(line) == said


def test_a_lace_that_cannot_be_read_completes_to_nothing(stage: Path) -> None:
    (stage / "broken.lace").write_bytes(b"no lace" * 100)
    assert completed("get broken.lace //") == []
    assert completed("interlace broken.lace ho") == []


@pytest.mark.long
def test_bash_gets_the_answers_of_the_installed_script(stage: Path) -> None:
    bin_folder = stage / "bin"
    bin_folder.mkdir()
    (bin_folder / "lace").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lace.cli "$@"\n')
    (bin_folder / "lace").chmod(0o755)
    script = (
        'eval "$(lace completion bash 2>/dev/null)"; COMP_WORDS=(lace get club.lace //club//notes//in/); COMP_CWORD=3; '
        '_lace_completion lace; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{bin_folder}:{os.environ['PATH']}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PATH": path})
    assert done.stdout.split() == ["//club//notes//in/one", "//club//notes//in/two"], done.stderr
