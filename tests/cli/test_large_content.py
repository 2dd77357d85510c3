"""Content around and over 32 MiB through the commands, at default settings and with real stores."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from cli.serving import serving
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.limits import MIB, RecordLimits
from lace.policy.exposure import expose_selected
from lace.policy.select import select_coordinate

ARCHIVE = select_coordinate("//archive//")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)


def bytes_of(size: int) -> bytes:
    """Bytes in which no two stretches are alike."""
    return hashlib.shake_128(str(size).encode()).digest(size)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        api.open(f"{name}.lace", create=True).close()
    return tmp_path


def put(name: str, data: bytes, limits: RecordLimits | None = None, **more: object) -> str:
    with api.open("a.lace", limits=limits) as opened:
        return opened.put(data, group="archive", app="x", name=name, **more)  # type: ignore[arg-type]


@pytest.mark.long
def test_every_size_around_the_limit_is_read_whole_on_the_other_side(stage: Path) -> None:
    sizes = [32 * MIB - 1, 32 * MIB, 32 * MIB + 1, 70 * MIB]
    key = api.generate_key()
    for size in sizes:
        put(f"f/{size}", bytes_of(size), sign=key if size % 2 else None)
    put("s/70", bytes_of(70 * MIB), sign=key)  # the parts of the unsigned one are shared
    with serving("a.lace", stage, module=ARCHIVE, exposures=(expose_selected(ARCHIVE),)) as address:
        words = ("interlace", "b.lace", address, "--select-coordinate", "//archive//", "--json")
        done = run(*words)
        assert done.exit_code == ExitCode.OK, done.output
        told = json.loads(done.stdout)
        assert (told["received"], told["sent"], told["incomplete"]) == (5 + 2 + 3, 0, [])
        again = json.loads(run(*words).stdout)
        assert (again["received"], again["sent"]) == (0, 0)
        fetched = run("get", "c.lace", f"//archive//x//f/{32 * MIB + 1}", "--from", address, "-o", "out")
        assert fetched.exit_code == ExitCode.OK, fetched.output
        assert (stage / "out").read_bytes() == bytes_of(32 * MIB + 1)
    for name, size in [*((f"f/{size}", size) for size in sizes), ("s/70", 70 * MIB)]:
        assert run("get", "b.lace", f"//archive//x//{name}", "-o", "out").exit_code == ExitCode.OK
        assert (stage / "out").read_bytes() == bytes_of(size)
    verified = run("verify", "b.lace")
    assert verified.exit_code == ExitCode.OK
    assert "everything holds" in verified.output


@pytest.mark.long
def test_store_to_a_peer_that_takes_a_coordinate_sends_every_part(stage: Path) -> None:
    record = put("film", bytes_of(33 * MIB))
    with serving("b.lace", stage, module=ARCHIVE, exposures=(expose_selected(ARCHIVE),)) as address:
        stored = run("store", "a.lace", "//archive//x//film", "--to", address)
        assert stored.exit_code == ExitCode.OK, stored.output
        assert "sent 3 of 3 records" in stored.output
        again = run("store", "a.lace", "//archive//x//film", "--to", address)
        assert again.exit_code == ExitCode.OK, again.output
        assert "already stored there" in again.output
    with api.open("b.lace") as opened:
        assert opened.get(record) == bytes_of(33 * MIB)


SMALL = RecordLimits(max_data_bytes=100)


@pytest.fixture
def cut(stage: Path) -> tuple[str, list[str]]:
    """A manifest in b.lace, without two of its three parts; its hash, and theirs."""
    record = put("film", bytes_of(250), SMALL)
    with api.open("a.lace") as first, api.open("b.lace") as second:
        parts = [str(row.hash) for row in first.list_blobs()]
        second.store.put([first.load(first.resolve(one)) for one in (record, parts[0])])
    return record, parts[1:]


def test_what_is_missing_is_named_by_every_command_that_looks(cut: tuple[str, list[str]]) -> None:
    record, missing = cut
    verified = run("verify", "b.lace")
    assert verified.exit_code == ExitCode.INCOMPLETE
    assert "//archive//x//film is incomplete: 2 of 3 parts (150 bytes) are not here" in verified.output
    assert "everything holds" not in verified.output
    assert all(part in verified.output for part in missing)
    (line,) = map(json.loads, run("verify", "b.lace", "--json").stdout.splitlines())
    assert line["incomplete"]["missing"] == missing
    (told,) = json.loads(run("stat", "b.lace", "--json").stdout)["incomplete"]
    assert (told["hash"], told["missing_bytes"]) == (record, 150)
    assert "2 of 3 parts" in run("stat", "b.lace").output
    assert "is incomplete: 2 of 3 parts" in run("why", "b.lace", record, "--expose", "all").output
    got = run("get", "b.lace", "//archive//x//film", "-o", "out")
    assert got.exit_code == ExitCode.INCOMPLETE
    assert "2 of 3 parts" in got.stderr
    assert not Path("out").exists()


def test_an_exchange_that_leaves_content_incomplete_does_not_say_converged(cut: tuple[str, list[str]]) -> None:
    _, missing = cut
    with api.open("a.lace") as first:
        first.delete(missing[0])
    words = ("interlace", "a.lace", "b.lace", "--select-coordinate", "//archive//", "--expose", "selected")
    done = run(*words)
    assert done.exit_code == ExitCode.INCOMPLETE, done.output
    assert missing[0] in done.stderr
    assert missing[1] not in done.stderr  # came from the other side
    assert run(*words).exit_code == ExitCode.INCOMPLETE
    elsewhere = run("interlace", "a.lace", "b.lace", "--select-coordinate", "//other//", "--expose", "all")
    assert "incomplete" not in elsewhere.output


def test_rm_and_compact_say_what_they_freed(stage: Path) -> None:
    record = put("film", bytes_of(250), SMALL)
    with api.open("a.lace") as opened:
        loose = opened.put_record(api.Blob(b"for itself"))
    removed = run("rm", "a.lace", record)
    assert "removed 1 record and 3 parts that nothing else needs" in removed.output
    told = run("compact", "a.lace")
    assert "no record links to 1 Blob" in told.output
    with api.open("a.lace") as opened:
        assert opened.store.have(loose)
    assert "removed 1 Blob" in run("compact", "a.lace", "--unlinked").output
    with api.open("a.lace") as opened:
        assert opened.stat().records == 0
