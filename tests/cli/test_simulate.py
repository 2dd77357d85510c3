"""`lace simulate`: scenes out of files and links, played as tests."""

from __future__ import annotations

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.errors import InvalidText
from lace.testing.simulator import SceneLimits, scene_in_link

CLUB = """SelectHave(P) :- Have(P), Field(P,'Group',_,'club').
SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'club').
"""
SOUP = {"group": "club", "app": "recipes", "name": "soup", "text": "Leeks.", "signer": "Ada", "minute": 480}
HAS_SOUP = [{"lace": "Ben", "record": "//club//recipes//soup"}]


def scene(**changes: Any) -> dict[str, Any]:
    return {"laces": [{"records": [SOUP], "select": CLUB}, {"select": CLUB}], **changes}


def linked(data: object) -> str:
    squeezing = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = squeezing.compress(json.dumps(data).encode()) + squeezing.flush()
    return "https://lace.example/playground/#" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["simulate", *arguments])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(scene(expect=HAS_SOUP)), encoding="utf-8")
    return path


def test_a_scene_in_a_file_passes_and_says_who_has_what(file: Path) -> None:
    played = run(str(file))
    assert played.exit_code == 0
    assert played.output.splitlines() == [
        "✓ passed: 2 laces, 2 exchanges (2 calm), 1 record moved",
        "Ada has 1 record",
        "  //club//recipes//soup",
        "Ben has 1 record",
        "  //club//recipes//soup",
    ]


def test_the_link_that_holds_a_scene_is_played_without_fetching_it() -> None:
    assert run(linked(scene(runs=[{"seed": 3, "cut": True}]))).output.startswith(
        "✓ passed: 2 laces, 3 exchanges (2 calm)"
    )


def test_what_a_scene_expects_and_does_not_get_fails(tmp_path: Path) -> None:
    path = tmp_path / "scene.json"
    path.write_text(json.dumps(scene(links=[], expect=HAS_SOUP)), encoding="utf-8")
    played = run(str(path))
    assert played.exit_code == 1
    assert played.output.splitlines()[:2] == [
        "✗ failed: 1 finding, 2 laces, 1 exchange (1 calm), 0 records moved",
        "  expected: Ben does not have //club//recipes//soup",
    ]


@pytest.mark.long
def test_seeds_choose_other_trouble_and_each_is_named(file: Path) -> None:
    lines = run(str(file), "--seed", "5", "--seeds", "3").output.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"✓ seed {seed} passed" for seed in (5, 6, 7)]
    told = json.loads(run(str(file), "--seed", "5", "--json").output)
    assert (told["seed"], told["passed"], told["holds"]["Ben"]) == (5, True, ["//club//recipes//soup"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "this is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ('{"laces": [{}]}', "laces should be two of them at least"),
        ('{"laces": [{}, {}], "links": [[0, 9]]}', "links should be pairs of numbers of laces"),
        (json.dumps(scene())[:-1] + ', "runs": [{"seed": -1}]}', "runs, seed should be a number"),
        (json.dumps({"laces": [{"select": "SelectHave(P) :- Have(P)"}, {}]}), "a rule ends with a period"),
        (" " * (1 << 20) + "{}", "more than 1048576 characters"),
    ],
)
def test_what_is_not_a_scene_is_an_error_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "scene.json"
    path.write_text(text, encoding="utf-8")
    played = run(str(path))
    assert played.exit_code == 1
    assert words in played.output


@pytest.mark.parametrize("text", ["", "nonsense", "AAAA", "é", linked("x").partition("#")[2], linked(scene())[34:-9]])
def test_a_link_that_holds_no_scene_is_an_error(text: str) -> None:
    played = run(f"https://lace.example/#{text}")
    assert played.exit_code == 1
    assert played.output.startswith("error: ")


def test_a_link_that_unfolds_to_more_than_a_scene_is_refused_before_it_is_read() -> None:
    with pytest.raises(InvalidText, match="1000 bytes at most"):
        scene_in_link(linked([0] * 100_000), SceneLimits(link=1000))
