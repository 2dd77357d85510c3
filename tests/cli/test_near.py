"""An empty listing says where to look."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import lace
from lace.cli.app import app


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "a.lace"
    with lace.open(path, create=True) as opened:
        for group, of in (("debian", "main/games"), ("debian", "main/net"), ("debian", "contrib"), ("u", "notes")):
            opened.put(b"", group=group, app=of, name="x")
    return path


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("//debian//main", "no records under //debian//main; did you mean //debian//main/ or //debian//main/net//"),
        ("//debain", "no records under //debain; did you mean //debian//?\n"),
        ("//u//note//", "no records under //u//note//; did you mean //u//notes//?\n"),
        ("//u//notes//y", "no records under //u//notes//y; did you mean //u//notes//?\n"),
        ("//zzzzzzzz", "no records under //zzzzzzzz\n"),
    ],
)
def test_an_empty_listing_names_what_is_near(archive: Path, prefix: str, said: str) -> None:
    shown = CliRunner().invoke(app, ["ls", str(archive), prefix])
    assert shown.exit_code == 0
    assert shown.stderr.startswith(said)


def test_a_listing_that_holds_something_and_one_of_an_empty_lace_say_nothing_more(
    archive: Path, tmp_path: Path
) -> None:
    assert CliRunner().invoke(app, ["ls", str(archive), "//debian//main/"]).stderr == ""
    with lace.open(tmp_path / "empty.lace", create=True):
        pass
    shown = CliRunner().invoke(app, ["ls", str(tmp_path / "empty.lace")])
    assert shown.stderr == "no records under //\n"
    assert CliRunner().invoke(app, ["ls", str(tmp_path / "empty.lace"), "--json"]).stdout == ""


@pytest.mark.parametrize("command", ["get", "why", "facts", "cat"])
def test_a_record_that_is_not_there_names_what_is_near(archive: Path, command: str) -> None:
    shown = CliRunner().invoke(app, [command, str(archive), "//u//note//x"])
    assert shown.exit_code == 1
    assert shown.stderr == "error: there is no record at //u//note//x\n  try  did you mean //u//notes//?\n"
