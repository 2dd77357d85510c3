"""`lace interlace ADDRESS ADDRESS`: two servers, and nothing kept between them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from cli.serving import serving
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.policy.exposure import Exposure


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    for name, group, count in (("a", "u", 3), ("b", "v", 2)):
        with api.open(f"{name}.lace", create=True) as opened:
            for number in range(count):
                opened.put(f"{group} {number}".encode(), group=group, app="ding", name=str(number))
    for folder in ("a", "b", "here"):
        (tmp_path / folder).mkdir()
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def hashes(path: str) -> set[str]:
    with api.open(path) as opened:
        return {str(record) for _, record in opened.store.records_since()}


def test_two_servers_get_each_others_records_and_nothing_stays(stage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(stage / "here")
    with serving(str(stage / "a.lace"), stage / "a") as first, serving(str(stage / "b.lace"), stage / "b") as second:
        done = lace("interlace", first, second, "--hold", "1")
        again = lace("interlace", second, first, "--json")
    assert done.exit_code == ExitCode.OK, done.output
    assert "2 records" in done.stdout
    assert "3 records" in done.stdout
    assert hashes(str(stage / "a.lace")) == hashes(str(stage / "b.lace"))
    assert len(hashes(str(stage / "a.lace"))) == 5
    told = json.loads(again.stdout)
    assert told["fixed_point"]
    assert [end["sent"] for end in told["ends"]] == [0, 0]
    assert [end["address"] for end in told["ends"]] == [second, first]
    assert not list((stage / "here").iterdir())


def test_what_a_server_hides_no_relay_brings_to_one_that_wants_it(stage: Path) -> None:
    with api.open("a.lace") as opened:
        for number in range(4):
            opened.put(b"hidden %d" % number, group="secret", app="ding", name=str(number))
    shown = (Exposure.author("AllowQueryRecord(V,P) :- Have(P), not Field(P,'Group',_,'secret')."),)
    with serving("a.lace", stage / "a", exposures=shown) as first, serving("b.lace", stage / "b") as second:
        told = json.loads(lace("interlace", first, second, "--json").stdout)
    assert [end["sent_not_confirmed"] for end in told["ends"]] == [2, 3]
    assert [end["received"] for end in told["ends"]] == [3, 2]
    with api.open("b.lace") as opened:
        assert {row.coordinate.split("//")[1] for row in opened.list("//")} == {"u", "v"}


@pytest.mark.parametrize("option", [("--expose", "all"), ("--dry-run",), ("--their-select", "all"), ("--trace", "t")])
def test_options_about_a_lace_of_ones_own_are_refused(option: tuple[str, ...]) -> None:
    done = lace("interlace", "tcp:127.0.0.1:9", "tcp:127.0.0.1:9", *option)
    assert done.exit_code == ExitCode.USAGE
    assert f"{option[0]} has no meaning between two addresses" in done.stderr


@pytest.mark.parametrize("pair", [("tcp:127.0.0.1:9", "a.lace"), ("tcp:127.0.0.1:9", "stdio"), ("stdio", "a.lace")])
def test_a_lace_comes_first_and_stdio_last(pair: tuple[str, str]) -> None:
    assert lace("interlace", *pair).exit_code == ExitCode.USAGE


@pytest.mark.parametrize("command", ["interlace", "follow"])
@pytest.mark.parametrize("pair", [("a.lace", "b.lace"), ("a.lace", "tcp:127.0.0.1:9")])
@pytest.mark.parametrize("more", ["tcp:127.0.0.1:10", "b.lace"])
def test_a_third_word_is_refused_and_not_passed_over(command: str, pair: tuple[str, str], more: str) -> None:
    """Only behind stdio is it a command to start."""
    done = lace(command, *pair, more)
    assert done.exit_code == ExitCode.USAGE
    assert f"{more!r} after {pair[1]}" in done.stderr
    assert len(hashes("b.lace")) == 2


def test_between_two_addresses_a_third_is_refused() -> None:
    done = lace("interlace", "tcp:127.0.0.1:9", "tcp:127.0.0.1:10", "tcp:127.0.0.1:11")
    assert done.exit_code == ExitCode.USAGE
    assert "'tcp:127.0.0.1:11' after tcp:127.0.0.1:10" in done.stderr


def test_a_peer_that_is_not_there_is_told(stage: Path) -> None:
    with serving("a.lace", stage) as first:
        done = lace("interlace", first, "tcp:127.0.0.1:9")
    assert done.exit_code == ExitCode.CONNECTION
    assert "cannot reach tcp:127.0.0.1:9" in done.stderr
