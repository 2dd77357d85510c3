"""An empty listing says where to look."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import lace
from lace.cli.app import app
from lace.porcelain.search import index


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "a.lace"
    with lace.open(path, create=True) as opened:
        for group, of in (("debian", "main/games"), ("debian", "main/net"), ("debian", "contrib"), ("u", "notes")):
            opened.put(b"", group=group, app=of, name="x")
        for name in ("boat", "in/traps"):
            opened.put(b"", group="club", app="notes", name=name)
    return path


@pytest.mark.parametrize(
    ("prefix", "said"),
    [
        ("//debian//main", "no records under //debian//main; did you mean //debian//main/ or //debian//main/net//"),
        ("//debain", "no records under //debain; did you mean //debian//?\n"),
        ("//u//note//", "no records under //u//note//; did you mean //u//notes//?\n"),
        ("//u//notes//y", "no records under //u//notes//y; did you mean //u//notes//?\n"),
        ("//zzzzzzzz", "no records under //zzzzzzzz\n"),
        ("//club//boot", "no records under //club//boot; did you mean //club//notes//boat?\n"),
        ("//club//notes//bo", "no records under //club//notes//bo; did you mean //club//notes//boat?\n"),
        ("//club//notes//boot", "no records under //club//notes//boot; did you mean //club//notes//boat?\n"),
        ("//club//note//boot", "no records under //club//note//boot; did you mean //club//notes//boat?\n"),
        ("//club//notes//in/trap", "no records under //club//notes//in/trap; did you mean //club//notes//in/traps?\n"),
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
    shown = CliRunner().invoke(app, [command, str(archive), "//club//boot"])
    assert shown.exit_code in (1, 2)
    shown = CliRunner().invoke(app, [command, str(archive), "//club//note//boot"])
    assert shown.exit_code == 1
    assert shown.stderr == "error: there is no record at //club//note//boot\n  try  did you mean //club//notes//boat?\n"


def test_a_hash_a_word_and_a_file_that_are_not_there_name_what_is_near(archive: Path, tmp_path: Path) -> None:
    def said(*words: object) -> str:
        return CliRunner().invoke(app, [str(word) for word in words]).stderr

    with lace.open(archive) as opened:
        record = opened.put(b"x", group="club", app="notes", name="boat")
        index(opened)
    assert f"did you mean {record}?" in said("rm", archive, f"{record[:20]}{'x' * 8}")
    assert f"//club//notes//boat is {record} now." in said("rm", archive, "//club//notes//boat")
    assert "did you mean //club//notes//boat?" in said("rm", archive, "//club//notes//boot")
    assert "did you mean //club//notes//boat?" in said("log", archive, "//club//notes//boot")
    assert said("find", archive, "boot") == (
        "no record contains all of these words; did you mean //club//notes//boat?\n"
    )
    assert f"did you mean {archive}?" in said("stat", tmp_path / "aa.lace")


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ("S(P) :- Field(P,'Nmae',_,'boat').", "did you mean Name?"),
        ("S(P) :- Field(P,'Colour',_,'red').", "no record here has a field 'Colour'"),
        ("S(P) :- Field(P,'Name',_,'boot').", "no record here has Name 'boot'; did you mean 'boat'?"),
        ("S(P) :- Field(P,'Group',_,'club'), Field(P,'App',_,'note').", "App 'note'; did you mean 'notes'?"),
    ],
)
def test_an_empty_answer_of_rules_names_what_no_record_has(archive: Path, rule: str, said: str) -> None:
    shown = CliRunner().invoke(app, ["query", str(archive), rule])
    assert (shown.exit_code, shown.stdout) == (0, "P\n")
    assert shown.stderr.startswith("no rows\n")
    assert said in " ".join(shown.stderr.split())
    for_programs = CliRunner().invoke(app, ["query", str(archive), rule, "--json"])
    assert for_programs.stdout == ""
    assert "no record here" not in for_programs.stderr
