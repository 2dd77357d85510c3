"""Names of keys wherever a verifier is taken: `lace name`, `--trust`, `key know`, `why`, `@bob` in rules."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.people.root import Root, pin_root

BOB = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"
SELECT = """SelectHave(P) :- Field(P,'Signed-By',_,@robert).
SelectAdvertised(P,S) :- AdvertisedField(P,S,'Signed-By',_,@robert).
"""


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    api.open("a.lace", create=True).close()
    lace("key", "new", "me")
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def shown(*arguments: str) -> list[dict[str, Any]]:
    done = lace(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_name_is_taken_wherever_a_verifier_is() -> None:
    assert lace("name", "add", "a.lace", "robert", BOB).exit_code == 0
    assert shown("key", "know", "a.lace", "robert") == [{"verifier": BOB}]
    lace("remote", "add", "a.lace", "server", "tcp:x", "--trust", "robert")
    assert shown("remote", "list", "a.lace")[0]["trust"] == [BOB]
    assert "robert" in lace("remote", "list", "a.lace").stdout
    assert lace("view", "a.lace", "--viewer", "robert", "--expose", "all").exit_code == 0
    assert lace("view", "a.lace", "--viewer", "robret", "--expose", "all").exit_code == ExitCode.USAGE
    assert "did you mean robert?" in " ".join(lace("key", "know", "a.lace", "robret").output.split())


def test_whole_verifiers_are_shown_with_full_and_to_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    lace("name", "add", "a.lace", "robert", BOB)
    assert BOB in lace("name", "list", "a.lace").stdout  # a pipe
    monkeypatch.setattr("lace.cli.output.words.for_people", lambda **_: True)
    assert BOB not in lace("name", "list", "a.lace").stdout
    assert BOB in lace("name", "list", "a.lace", "--full").stdout
    assert BOB in [one["verifier"] for one in shown("name", "list", "a.lace")]


def test_a_name_in_rules_is_the_verifier_before_the_rules_get_their_identifier() -> None:
    lace("name", "add", "a.lace", "robert", BOB)
    Path("named.lace").write_text(SELECT)
    Path("spelled.lace").write_text(SELECT.replace("@robert", f"'{BOB}'"))
    assert lace("query", "a.lace", "Of(P) :- Field(P,'Signed-By',_,@robert).").exit_code == 0
    lace("remote", "add", "a.lace", "here", "b.lace")
    api.open("b.lace", create=True).close()
    with api.open("b.lace") as other:
        other.put(b"x", group="u", app="a", name="x")
    plans = {
        json.loads(lace("interlace", "a.lace", "here", "--select", file, "--expose", "all", "--json").stdout)["plan"]
        for file in ("named.lace", "spelled.lace")
    }
    assert len(plans) == 1
    Path("named.lace").write_text(SELECT.replace("@robert", "@robret"))
    refused = lace("interlace", "a.lace", "here", "--select", "named.lace")
    assert refused.exit_code == ExitCode.BAD
    assert "did you mean robert?" in refused.stderr
    assert "named.lace:1:40" in refused.stderr


def test_a_key_of_the_ring_may_be_named_in_rules_without_a_lace() -> None:
    mine = shown("key", "show", "me")[0]["verifier"]
    rule = "Mine(P) :- Field(P,'Signed-By',_,{})."
    assert lace("id", rule.format("@me")).stdout == lace("id", rule.format(f"'{mine}'")).stdout


def test_a_name_is_published_only_by_its_owner_and_alone(stage: Path) -> None:
    lace("name", "add", "a.lace", "robert", BOB)
    lace("name", "add", "a.lace", "secret", shown("key", "show", "me")[0]["verifier"])
    assert lace("name", "publish", "a.lace", "robert", "--sign", "me").exit_code == ExitCode.BAD  # no group
    with api.open("a.lace") as opened:
        pin_root(opened.store, Root("club", api.SigningKey.generate().verifier))
        assert opened.stat().records == 0
    assert lace("name", "publish", "a.lace", "robert", "--sign", "me").exit_code == 0
    with api.open("a.lace") as opened:
        (row,) = opened.list("//", columns=["Group", "App", "Name", "Called"])
        assert (row.coordinate, row["Called"]) == (f"//club//name//{BOB}", "robert")


def test_a_key_that_cannot_be_used_says_so_rather_than_that_it_is_unknown(stage: Path) -> None:
    (stage / "home" / "keys" / "me.key").chmod(0o644)
    assert "can be reached by other users" in " ".join(lace("key", "know", "a.lace", "me").output.split())
