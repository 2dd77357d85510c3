"""`lace status`: 0 only if a lace and its remotes really hold the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import lace as api
from cli.serving import serving
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.limits import RecordLimits
from lace.records.manifest import manifest_pieces

SMALL = RecordLimits(max_data_bytes=100, max_extra_headers=6)


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lace with a record, and a remote with another one."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    put("far.lace", "theirs")
    put("near.lace", "ours")
    lace("remote", "add", "near.lace", "far", "far.lace")
    return tmp_path


def put(path: str, name: str, content: bytes = b"content") -> None:
    with api.open(path, create=not Path(path).exists()) as opened:
        opened.put(content, group="u", app="ding", name=name)


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def status(*arguments: str, exits: int) -> list[dict[str, Any]]:
    done = lace("status", "near.lace", *arguments, "--json")
    assert done.exit_code == exits, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def names(found: dict[str, Any], way: str) -> list[str]:
    return [one["coordinate"] for one in found[way]]


@pytest.mark.parametrize("over", ["path", "link"])
def test_what_is_missing_is_told_each_way_until_both_hold_the_same(stage: Path, over: str) -> None:
    with serving("far.lace", stage) as address:
        if over == "link":
            lace("remote", "add", "near.lace", "far", address, "--replace")
        far, here = status("--expose", "all", exits=ExitCode.BAD)
        assert names(far, "missing_here") == ["//u//ding//theirs"]
        assert names(far, "missing_there") == ["//u//ding//ours"]
        assert here["equal"] is False
        assert lace("interlace", "near.lace", "far", "--expose", "all").exit_code == 0
        for _ in range(2):  # asking moves nothing
            far, here = status("--expose", "all", exits=ExitCode.OK)
            assert far["equal"]
            assert here["equal"]
        put("near.lace", "new")
        far, _ = status("--expose", "all", exits=ExitCode.BAD)
        assert names(far, "missing_there") == ["//u//ding//new"]
        assert far["stored_since"] == 1
        assert "different" in lace("status", "near.lace", "--expose", "all").stdout


def test_that_a_peer_has_other_rules_is_told_and_is_no_difference(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("remote", "add", "near.lace", "far", address, "--replace")
        lace("interlace", "near.lace", "far", "--expose", "all")
        (same, _) = status("--expose", "all", exits=ExitCode.OK)
        assert same["has_other_rules"] is False
        (other, _) = status("--expose", "all", "--select", "//u", exits=ExitCode.OK)
        assert other["has_other_rules"] is True
        assert "the peer's differ" in lace("status", "near.lace", "--expose", "all", "--select", "//u").stdout


def test_what_our_exposure_holds_back_is_not_equal(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("remote", "add", "near.lace", "far", address, "--replace")
        lace("interlace", "near.lace", "far")
        far, _ = status(exits=ExitCode.NOTHING)
        assert far["not_shown"] == 2
        assert "--expose selected" in lace("status", "near.lace").stdout


def test_offline_tells_what_is_known_and_dials_nobody(stage: Path) -> None:
    (never, _) = status("--offline", exits=ExitCode.BAD)
    assert never["last"] is None
    lace("interlace", "near.lace", "far", "--expose", "all")
    (known, _) = status("--offline", exits=ExitCode.OK)
    assert known["asked"] is False
    assert known["last"]["ending"] == "converged"
    Path("far.lace").unlink()
    assert status("--offline", exits=ExitCode.OK)
    put("near.lace", "new")
    (known, _) = status("--offline", exits=ExitCode.BAD)
    assert known["stored_since"] == 1


def test_a_remote_that_cannot_be_asked_does_not_hide_the_others(stage: Path) -> None:
    lace("interlace", "near.lace", "far", "--expose", "all")
    lace("remote", "add", "near.lace", "away", "unix:/nowhere/at/all")
    away, far, here = status("--expose", "all", exits=ExitCode.CONNECTION)
    assert away["trouble"]
    assert far["equal"]
    assert here["equal"] is False
    assert status("far", "--expose", "all", exits=ExitCode.OK)[0]["remote"] == "far"


def test_a_failed_exchange_is_remembered_with_its_reason_beside_the_last_fixed_point(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("remote", "add", "near.lace", "far", address, "--replace")
        lace("interlace", "near.lace", "far", "--expose", "all")
    assert lace("interlace", "near.lace", "far", "--expose", "all").exit_code == ExitCode.CONNECTION
    (far, _) = status("--offline", exits=ExitCode.BAD)
    assert far["last"]["ending"] == "not connected"
    assert far["last"]["fixed_point_at"]


def test_content_that_lacks_parts_and_coordinates_of_several_writers_are_told(stage: Path) -> None:
    with api.open("near.lace", limits=SMALL) as near:
        whole = near.put(b"x" * 300, group="u", app="ding", name="large")
        part = next(iter(manifest_pieces(near.load(whole)))).target
        near.delete(part)
        for key in (api.SigningKey.generate(), api.SigningKey.generate()):
            near.put(key.verifier.encode(), group="u", app="ding", name="shared", sign=key)
    lace("interlace", "near.lace", "far", "--expose", "all")
    *_, here = status("--expose", "all", exits=ExitCode.INCOMPLETE)
    assert [one["coordinate"] for one in here["incomplete"]] == ["//u//ding//large"]
    assert [one["coordinate"] for one in here["conflicts"]] == ["//u//ding//shared"]
    told = lace("status", "near.lace", "--expose", "all").stdout
    assert "written by several people: 1 coordinate" in told


def test_without_a_remote_nothing_is_called_equal(stage: Path) -> None:
    lace("remote", "rm", "near.lace", "far")
    (here,) = status(exits=ExitCode.BAD)
    assert here["equal"] is False


def test_an_unknown_remote_is_an_error_that_says_what_is_near() -> None:
    done = lace("status", "near.lace", "fra")
    assert done.exit_code == ExitCode.BAD
    assert "did you mean far?" in done.stderr
