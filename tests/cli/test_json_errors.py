"""Under --json a failure is one line of JSON on stderr, with the number that the process returns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(app, ["init", "a.lace"])


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("stat", "missing.lace"), "STORE"),
        (("rm", "a.lace", "P." + "0" * 43 + ".H3"), "BAD"),
        (("key", "show", "nobody"), "KEY"),
        (("interlace", "a.lace", "unix:/nowhere"), "CONNECTION"),
        (("interlace", "a.lace", "nobody"), "USAGE"),
        (("ls", "a.lace", "--no-such-option"), "USAGE"),
        (("ls", "a.lace", "not a prefix"), "USAGE"),
        (("ls",), "USAGE"),
        (("query", "a.lace", "Wrong(X) :-"), "BAD"),
    ],
)
@pytest.mark.parametrize("first", [False, True])
def test_a_failure_is_one_object_with_its_exit_code(words: tuple[str, ...], name: str, first: bool) -> None:
    command, *rest = words
    at = 1 + (command == "key")
    given = [*words[:at], "--json", *words[at:]] if first else [command, *rest, "--json"]
    done = lace(*given)
    assert done.stdout == ""
    error = json.loads(done.stderr)["error"]
    assert error["code"] == done.exit_code != 0
    assert error["name"] == name
    assert error["message"]


def test_without_json_a_failure_is_for_people() -> None:
    assert lace("stat", "missing.lace").stderr.startswith("error: ")
    assert lace("ls").stderr.startswith("Usage: ")
