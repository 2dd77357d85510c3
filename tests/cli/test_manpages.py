"""`lace help --man FOLDER`: a page for each command, which a reader of man pages takes without complaint."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from lace.cli.app import app
from lace.cli.catalogue import CATALOGUE


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("man") / "man1"
    done = CliRunner().invoke(app, ["help", "--man", str(place)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"wrote {len(CATALOGUE) + 1} man pages into ")
    return place


def test_every_command_has_a_page_and_the_first_names_them_all(folder: Path) -> None:
    assert {path.name for path in folder.iterdir()} == {"lace.1"} | {f"lace-{entry.name}.1" for entry in CATALOGUE}
    first = (folder / "lace.1").read_text()
    assert all(f".BR lace\\-{entry.name.replace('-', chr(92) + '-')} (1)" in first for entry in CATALOGUE)


def test_a_page_has_the_words_of_the_help_and_a_group_those_of_its_commands(folder: Path) -> None:
    put = (folder / "lace-put.1").read_text()
    assert '.TH "LACE-PUT" "1"' in put
    assert "lace\\-put \\- Store a file, a directory or standard input under a coordinate\n" in put
    assert ".B \\&\\-s, \\-\\-sign KEY\nSign with this key of the ring, by name or verifier.\n" in put
    key = (folder / "lace-key.1").read_text()
    assert '.SS "lace key rotate"' in key
    completion = (folder / "lace-completion.1").read_text()
    assert ".nf\nbash: echo 'eval \"$(lace completion bash)\"' >> ~/.bashrc\n" in completion


@pytest.mark.skipif(shutil.which("groff") is None, reason="no groff here")
def test_groff_finds_nothing_wrong_with_any_page(folder: Path) -> None:
    pages = sorted(map(str, folder.iterdir()))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z", "-k", *pages], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
