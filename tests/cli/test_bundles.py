"""`lace import` and `lace export`: bundles in and out, and what becomes of bad records."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.limits import RecordLimits
from lace.records.keys import SigningKey
from lace.records.model import Blob
from lace.records.write import encode_record

KEY = SigningKey(bytes(31) + b"\x07")


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two laces: one with three records under two groups, one empty."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "stage"
    folder.mkdir()
    monkeypatch.chdir(folder)
    with api.open("a.lace", create=True) as opened:
        for group, name in (("u", "1"), ("u", "2"), ("v", "3")):
            opened.put(name.encode(), group=group, app="ding", name=name, sign=KEY)
    api.open("b.lace", create=True).close()
    return folder


def lace(*arguments: str, given: bytes | str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=given)


def hashes(path: str) -> set[str]:
    with api.open(path) as opened:
        return {record_hash for _, record_hash in opened.store.records_since()}


def test_what_is_exported_can_be_imported_again_and_again(stage: Path) -> None:
    assert lace("export", "a.lace", "-o", "all.bundle").stdout == "exported 3 records\n"
    assert sorted(path.name for path in stage.iterdir() if "bundle" in path.name) == ["all.bundle", "all.bundle.idx"]
    assert lace("import", "b.lace", "all.bundle").stdout == "stored 3 records\n"
    assert hashes("a.lace") == hashes("b.lace")
    again = lace("import", "b.lace", "all.bundle", "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout) == {
        "stored": 0,
        "present": 3,
        "forgotten": 0,
        "rejected": {},
        "bytes": (stage / "all.bundle").stat().st_size,
    }


def test_a_bundle_goes_through_pipes() -> None:
    exported = lace("export", "a.lace")
    assert "exported 3 records" in exported.stderr
    assert lace("import", "b.lace", "-", given=exported.stdout_bytes).exit_code == 0
    assert hashes("a.lace") == hashes("b.lace")


def test_a_prefix_chooses_what_is_exported() -> None:
    assert json.loads(lace("export", "a.lace", "//u", "-o", "u.bundle", "--json").stdout)["records"] == 2
    lace("import", "b.lace", "u.bundle")
    with api.open("b.lace") as opened:
        assert [row["Group"] for row in opened.list()] == ["u", "u"]


def test_large_content_is_exported_with_its_chunks() -> None:
    limits = RecordLimits(max_data_bytes=100, max_extra_headers=6)
    with api.open("a.lace", limits=limits) as opened:
        opened.put(bytes(range(256)) * 10, group="big", app="a", name="big")
    lace("export", "a.lace", "//big//a//big", "-o", "big.bundle")
    lace("import", "b.lace", "big.bundle")
    assert lace("get", "b.lace", "//big//a//big").stdout_bytes == bytes(range(256)) * 10


def test_bad_records_are_refused_counted_and_written_down_and_the_good_ones_go_in(stage: Path) -> None:
    with api.open("a.lace") as opened:
        good = [opened.stored(found) for found in sorted(hashes("a.lace"))]
    broken = bytearray(good[1])
    broken[-1] ^= 1
    (stage / "mixed").write_bytes(good[0] + bytes(broken) + b"garbage\n" + good[2] + encode_record(Blob(b"x"))[:-1])
    result = lace("import", "b.lace", "mixed", "--rejected", "bad.jsonl")
    assert result.exit_code == ExitCode.BAD
    assert result.stdout == "stored 2 records\n"
    assert "refused" in result.stderr
    lines = [json.loads(line) for line in (stage / "bad.jsonl").read_text().splitlines()]
    assert all({"bundle", "offset", "rule", "reason", "data"} <= set(line) for line in lines)
    assert any(base64.b64decode(line["data"]).startswith(bytes(broken)[:60]) for line in lines)
    assert len(hashes("b.lace")) == 2
    said = json.loads(lace("import", "b.lace", "mixed", "--json").stdout)
    assert (said["stored"], said["present"]) == (0, 2)
    assert sum(said["rejected"].values()) == len(lines)


def test_a_forged_signature_is_refused_by_its_rule(stage: Path) -> None:
    with api.open("a.lace") as opened:
        plex = opened.record(opened.resolve("//u//ding//1")).record.plex  # type: ignore[union-attr]  # a Seal
    other = SigningKey(bytes(31) + b"\x09")
    forged = KEY.seal(plex)
    forged = type(forged)(signed_by=other.verifier, signature=forged.signature, plex=plex)
    (stage / "forged").write_bytes(encode_record(forged))
    said = json.loads(lace("import", "b.lace", "forged", "--json").stdout)
    assert said["rejected"] == {"seal-signature": 1}
    assert hashes("b.lace") == set()


def test_a_failed_export_leaves_the_old_file(stage: Path) -> None:
    (stage / "out").write_bytes(b"before")
    limits = RecordLimits(max_data_bytes=100)
    with api.open("a.lace", limits=limits) as opened:
        opened.put(bytes(150), group="big", app="a", name="big")
        opened.delete(Blob(bytes(50)).hash)
    result = lace("export", "a.lace", "//big", "-o", "out")
    assert result.exit_code == ExitCode.BAD
    assert (stage / "out").read_bytes() == b"before"
    assert [path.name for path in stage.iterdir() if path.name.startswith(".")] == []


@pytest.mark.parametrize(
    "arguments, code",
    [
        (["import", "b.lace", "none"], ExitCode.USAGE),
        (["import", "b.lace"], ExitCode.USAGE),
        (["import", "none.lace", "a.lace"], ExitCode.STORE),
        (["export", "none.lace"], ExitCode.STORE),
        (["export", "a.lace", "u"], ExitCode.USAGE),
        (["export", "a.lace", "-o", "no/such/folder/x"], ExitCode.STORE),
    ],
)
def test_bad_arguments_have_their_exit_codes(arguments: list[str], code: ExitCode) -> None:
    result = lace(*arguments)
    assert result.exit_code == code, result.output
    assert "Traceback" not in result.output


def test_a_bundle_that_is_no_bundle_is_refused_whole(stage: Path) -> None:
    (stage / "text").write_text("this is no bundle\n" * 10)
    result = lace("import", "b.lace", "text")
    assert result.exit_code == ExitCode.BAD
    assert result.stdout == "stored 0 records\n"
