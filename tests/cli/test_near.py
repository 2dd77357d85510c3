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
        ("//debian//main", "nothing stands at //debian//main; there is //debian//main/, //debian//main/net//"),
        ("//debain", "nothing stands at //debain; there is //debian//\n"),
        ("//u//note//", "nothing stands at //u//note//; there is //u//notes//\n"),
        ("//u//notes//y", "nothing stands at //u//notes//y; there is //u//notes//\n"),
        ("//zzzzzzzz", "nothing stands at //zzzzzzzz\n"),
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
    assert shown.stderr == "nothing stands at //\n"
    assert CliRunner().invoke(app, ["ls", str(tmp_path / "empty.lace"), "--json"]).stdout == ""


@pytest.mark.parametrize("command", ["get", "why", "facts", "cat"])
def test_a_record_that_is_not_there_names_what_is_near(archive: Path, command: str) -> None:
    shown = CliRunner().invoke(app, [command, str(archive), "//u//note//x"])
    assert shown.exit_code == 1
    assert shown.stderr == "error: nothing is stored at //u//note//x\n  try  there is //u//notes//\n"
