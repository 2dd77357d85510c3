"""`lace remote`: peers by name, wherever a command takes an address."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from cli.serving import serving
from lace.cli.app import app
from lace.cli.output.failure import ExitCode

VERIFIER = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"
PIN = "0" * 64


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lace with two records, an empty one, and a ring with one key."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with api.open("far.lace", create=True) as opened:
        for name in ("1", "2"):
            opened.put(f"content of {name}".encode(), group="u", app="ding", name=name)
    api.open("near.lace", create=True).close()
    lace("key", "new", "me")
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def shown(*arguments: str) -> list[dict[str, object]]:
    done = lace(*arguments, "--json")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def count(path: str) -> int:
    with api.open(path) as opened:
        return opened.stat().records


def test_every_command_that_dials_takes_the_name_of_a_remote(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("remote", "add", "near.lace", "server", address)
        assert "content of 1" in lace("get", "near.lace", "//u//ding//1", "--from", "server").stdout
        assert count("near.lace") == 1
        assert lace("ls", "near.lace", "//u//ding//2", "--from", "server").exit_code == 0
        assert len(shown("browse", "server", "--lace", "near.lace")) == 2
        with api.open("near.lace") as near:
            near.put(b"mine", group="u", app="a", name="mine")
        sent = lace("store", "near.lace", "//u//a//mine", "--to", "server")
        assert "sent 1 of 1 record" in sent.stdout, sent.output
        done = lace("interlace", "near.lace", "server", "--expose", "all")
        assert done.exit_code == 0, done.output
        assert lace("why", "near.lace", "//u//a//mine", "--address", "server", "--expose", "all").exit_code == 1
    assert count("near.lace") == count("far.lace") == 3


def test_a_lace_on_this_machine_may_be_a_remote_from_whichever_folder_it_is_named(
    stage: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lace("remote", "add", "near.lace", "stick", "far.lace")
    (stage / "elsewhere").mkdir()
    monkeypatch.chdir(stage / "elsewhere")
    done = lace("interlace", "../near.lace", "stick", "--expose", "all")
    assert done.exit_code == 0, done.output
    assert count("../near.lace") == 2
    refused = lace("ls", "../near.lace", "--from", "stick")
    assert refused.exit_code == ExitCode.USAGE
    assert "`lace interlace` exchanges with it" in refused.output


def test_what_checks_and_proves_a_connection_is_kept_without_a_secret(stage: Path) -> None:
    mine = shown("key", "show", "me")[0]["verifier"]
    words = ("--key", "me", "--trust", VERIFIER, "--pin", PIN)
    assert lace("remote", "add", "near.lace", "anna", "wss:anna.example", *words).exit_code == 0
    (kept,) = shown("remote", "list", "near.lace")
    assert kept["key"] == mine
    assert kept["trust"] == [VERIFIER]
    assert kept["pin"] == "0" * 43
    assert "me" in lace("remote", "list", "near.lace").stdout
    secret = str(shown("key", "show", "me", "--secret")[0]["secret"])
    assert secret.encode() not in Path("near.lace").read_bytes()


def test_a_remote_that_is_trusted_by_its_key_is_refused_if_it_proves_none(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("remote", "add", "near.lace", "server", address, "--trust", VERIFIER)
        done = lace("interlace", "near.lace", "server")
    assert done.exit_code != 0
    assert count("near.lace") == 0


def test_an_unknown_name_says_what_is_near_and_dials_nothing(stage: Path) -> None:
    lace("remote", "add", "near.lace", "server", "unix:/nowhere")
    for words in (
        ("interlace", "near.lace", "sever"),
        ("follow", "near.lace", "sever"),
        ("get", "near.lace", "//u//ding//1", "--from", "sever"),
        ("store", "near.lace", "//u", "--to", "sever"),
        ("browse", "sever", "--lace", "near.lace"),
    ):
        done = lace(*words)
        assert done.exit_code == ExitCode.USAGE, done.output
        assert "did you mean server?" in " ".join(done.output.split())


@pytest.mark.parametrize(
    ("name", "address"),
    [("stdio", "tcp:a"), ("a b", "tcp:a"), ("a:b", "tcp:a"), ("x.lace", "tcp:a"), ("", "tcp:a"), ("x", "stdio")],
)
def test_a_name_that_would_look_like_an_address_is_refused(name: str, address: str) -> None:
    assert lace("remote", "add", "near.lace", name, address).exit_code != 0
    assert shown("remote", "list", "near.lace") == []


def test_a_remote_is_replaced_only_on_request_and_forgotten_with_what_was_known(stage: Path) -> None:
    lace("remote", "add", "near.lace", "server", "tcp:one")
    again = lace("remote", "add", "near.lace", "server", "tcp:two")
    assert again.exit_code == ExitCode.STORE
    assert shown("remote", "list", "near.lace")[0]["address"] == "tcp:one"
    lace("remote", "add", "near.lace", "server", "tcp:two", "--replace")
    assert shown("remote", "list", "near.lace")[0]["address"] == "tcp:two"
    assert lace("remote", "rm", "near.lace", "server").exit_code == 0
    assert lace("remote", "rm", "near.lace", "server").exit_code == ExitCode.BAD
    assert shown("remote", "list", "near.lace") == []


def test_remotes_are_in_a_backup_and_in_no_exchange(stage: Path) -> None:
    lace("remote", "add", "near.lace", "server", "tcp:one")
    lace("backup", "near.lace", "copy.lace")
    assert [one["name"] for one in shown("remote", "list", "copy.lace")] == ["server"]
    lace("interlace", "near.lace", "far.lace", "--expose", "all")
    assert shown("remote", "list", "far.lace") == []


def test_a_remote_named_as_a_file_in_the_folder_means_the_remote(stage: Path) -> None:
    Path("server").write_bytes(b"not a lace")
    with serving("far.lace", stage) as address:
        lace("remote", "add", "near.lace", "server", address)
        done = lace("interlace", "near.lace", "server")
    assert done.exit_code == 0, done.output
    assert count("near.lace") == 2
