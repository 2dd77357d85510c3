"""The record commands, driven as a person or a script drives them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.limits import MIB, RecordLimits
from lace.notation.compiled import IS_PURE
from lace.records.model import Blob

SOURCE = Path(__file__).parents[2] / "src"
OLD, NEW = "1640995200:000000000", "1640995200:000000001"


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to be in, with a lace and a key ring of its own."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "stage"
    folder.mkdir()
    monkeypatch.chdir(folder)
    assert lace("init", "a.lace").exit_code == 0
    return folder


def lace(*arguments: str, given: bytes | str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=given)


def put(content: bytes | str, *more: str, name: str = "links/1") -> str:
    result = lace("put", "a.lace", "-g", "u", "-a", "ding", "-n", name, *more, "-", given=content)
    assert result.exit_code == 0, result.output
    return result.stdout.strip()


def test_init_makes_a_lace_once() -> None:
    assert lace("init", "b.lace").stdout == "created b.lace\n"
    again = lace("init", "b.lace")
    assert again.exit_code == ExitCode.STORE
    assert "already exists" in again.stderr
    assert json.loads(lace("init", "--json", "c.lace").stdout) == {"path": "c.lace"}


def test_put_prints_the_hash_and_get_gives_the_bytes_back() -> None:
    content = bytes(range(256))
    found = put(content)
    assert found.startswith("P.")
    for target in (found, f"////{found}", "//u//ding//links/1", found[:14] + "…"):
        assert lace("get", "a.lace", target).stdout_bytes == content


def test_put_signs_links_and_writes_headers() -> None:
    verifier = json.loads(lace("key", "new", "me", "--json").stdout)["verifier"]
    target = Blob(b"x").hash
    more = ["--sign", "me", "--header", "X-A=1=2", "--header", "X-A=3", "--link", f"source={target}", "--tai", OLD]
    found = put("hello", *more)
    stored = lace("cat", "a.lace", found).stdout
    assert found.startswith("S.")
    assert f"Signed-By: {verifier}\n" in stored
    assert f"TAI: {OLD}\n+Link: source {target}\nX-A: 1=2\nX-A: 3\n" in stored


def test_put_warns_when_its_record_is_not_the_tip() -> None:
    put("new", "--tai", NEW)
    result = lace("put", "a.lace", "-g", "u", "-a", "ding", "-n", "links/1", "--tai", OLD, "-", given="old")
    assert result.exit_code == 0
    assert "//u//ding//links/1 has a newer record, so this one is not its tip" in result.stderr


def test_a_coordinate_says_where_as_the_options_do() -> None:
    Path("plan.txt").write_text("a plan")
    whole = lace("put", "a.lace", "//club//notes//x/y", "plan.txt", "--json")
    assert json.loads(whole.stdout)["coordinate"] == "//club//notes//x/y"
    own = lace("put", "a.lace", "//club//notes", "plan.txt", "--json")
    assert json.loads(own.stdout)["coordinate"] == "//club//notes//plan.txt"
    assert lace("get", "a.lace", "//club//notes//plan.txt").stdout == "a plan"
    Path("d").mkdir()
    Path("d/one").write_text("1")
    assert lace("put", "a.lace", "//club//notes//home", "d").exit_code == ExitCode.OK
    assert lace("get", "a.lace", "//club//notes//home/one").stdout == "1"
    typed = lace("put", "a.lace", "//club//notes//typed", "-", given="typed")
    assert typed.exit_code == ExitCode.OK


@pytest.mark.parametrize(
    "words",
    [
        ["plan.txt"],
        ["//club", "plan.txt"],
        ["//club//notes//x", "plan.txt", "--name", "y"],
        ["//club//notes", "-"],
        ["club/notes/x", "plan.txt"],
        ["//club//no{tes//x", "plan.txt"],
        ["//club//notes//x", "plan.txt", "more"],
    ],
)
def test_a_place_that_is_none_is_a_usage_error(words: list[str]) -> None:
    Path("plan.txt").write_text("a plan")
    assert lace("put", "a.lace", *words).exit_code == ExitCode.USAGE


def test_a_record_dated_too_far_ahead_is_stored_and_said_to_be_no_tip() -> None:
    stored = lace(
        "put", "a.lace", "-g", "u", "-a", "ding", "-n", "x", "--tai", "9999999999:000000000", "-", given="later"
    )
    assert stored.exit_code == 0
    assert "dated too far ahead to be the tip" in stored.stderr
    walked = lace("why", "a.lace", stored.stdout.strip(), "--expose", "all")
    assert "dated too far ahead to be the tip" in walked.stdout


def test_put_takes_a_file_under_its_own_name_and_says_so_in_json(stage: Path) -> None:
    (stage / "note.txt").write_text("hello")
    result = lace("put", "a.lace", "-g", "u", "-a", "files", "--json", "note.txt")
    said = json.loads(result.stdout)
    assert said["coordinate"] == "//u//files//note.txt"
    assert lace("get", "a.lace", said["hash"]).stdout == "hello"


def test_put_takes_a_whole_directory(stage: Path) -> None:
    (stage / "d" / "sub").mkdir(parents=True)
    (stage / "d" / "a").write_text("A")
    (stage / "d" / "sub" / "b").write_text("B")
    result = lace("put", "a.lace", "-g", "u", "-a", "files", "-n", "home", "d")
    assert result.exit_code == 0
    assert [line.split("  ")[1] for line in result.stdout.splitlines()] == ["home/a", "home/sub/b"]
    assert result.stderr == "2 files: 2 new\n"
    assert lace("get", "a.lace", "//u//files//home/sub/b").stdout == "B"


def test_a_directory_comes_out_as_it_went_in_and_a_second_run_moves_nothing(stage: Path) -> None:
    (stage / "d" / "sub").mkdir(parents=True)
    (stage / "d" / "a").write_text("A")
    (stage / "d" / "sub" / "b").write_text("B")
    lace("put", "a.lace", "-g", "u", "-a", "files", "d")
    again = lace("put", "a.lace", "-g", "u", "-a", "files", "d")
    assert (again.exit_code, again.stdout, again.stderr) == (0, "", "2 files: 2 unchanged\n")
    out = lace("checkout", "a.lace", "//u//files", "out")
    assert out.exit_code == 0
    assert out.stdout == "new      out/a\nnew      out/sub/b\n"
    assert out.stderr == "2 files: 2 new\n"
    assert (stage / "out" / "sub" / "b").read_text() == "B"
    second = lace("checkout", "a.lace", "//u//files", "out")
    assert (second.exit_code, second.stdout, second.stderr) == (0, "", "2 files: 2 unchanged\n")
    (stage / "out" / "a").write_text("mine")
    refused = lace("checkout", "a.lace", "//u//files", "out", "--json")
    assert refused.exit_code == ExitCode.BAD
    assert [json.loads(line)["state"] for line in refused.stdout.splitlines()] == ["refused", "unchanged"]
    assert (stage / "out" / "a").read_text() == "mine"
    part = lace("checkout", "a.lace", "//u//files//sub", "part", "--quiet")
    assert (part.stdout, (stage / "part" / "b").read_text()) == ("", "B")
    assert lace("checkout", "a.lace", "//u//files").exit_code == ExitCode.USAGE
    assert lace("checkout", "a.lace", "//u//nothing", "out").exit_code == ExitCode.BAD


def test_a_directory_with_something_that_is_no_file_stores_the_rest_and_exits_1(stage: Path) -> None:
    (stage / "d").mkdir()
    (stage / "d" / "good").write_text("A")
    os.mkfifo(stage / "d" / "pipe")
    result = lace("put", "a.lace", "-g", "u", "-a", "files", "d", "--json")
    assert result.exit_code == ExitCode.BAD
    assert [json.loads(line)["file"] for line in result.stdout.splitlines()] == ["d/good"]
    assert "warning: d/pipe was not stored" in result.stderr
    assert "2 files: 1 new, 1 refused" in result.stderr


def test_get_writes_a_file_only_when_it_is_whole(stage: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with api.open("a.lace", limits=RecordLimits(max_data_bytes=10)) as opened:
        found = opened.put(b"x" * 95, group="u", app="a", name="big")
        chunk = Blob(b"xxxxx").hash
        assert lace("get", "a.lace", found, "-o", "out").exit_code == 0
        assert (stage / "out").read_bytes() == b"x" * 95
        opened.delete(chunk)
    (stage / "out").write_bytes(b"before")
    result = lace("get", "a.lace", "//u//a//big", "-o", "out")
    assert result.exit_code == ExitCode.INCOMPLETE
    assert chunk in result.stderr
    assert (stage / "out").read_bytes() == b"before"
    assert sorted(path.name for path in stage.iterdir() if path.name.startswith(".")) == []


def test_cat_gives_stored_bytes_back_to_back() -> None:
    first, second = put("one", name="1"), put("two", name="2")
    both = lace("cat", "a.lace", first, second).stdout_bytes
    with api.open("a.lace") as opened:
        assert both == opened.stored(first) + opened.stored(second)


def test_ls_shows_a_table_and_chosen_columns_and_json() -> None:
    found = put("hello", "--header", "X-A=1", "--tai", "1640995237:000000000")
    plain = lace("ls", "a.lace").stdout.splitlines()
    assert plain[0].split() == ["record", "coordinate", "time", "(UTC)", "size", "signed", "by"]
    assert plain[1].split() == [found, "//u//ding//links/1", "2022-01-01", "00:00:00", "5", "B", "-"]
    chosen = lace("ls", "a.lace", "--columns", "Name,X-A,Nothing").stdout.splitlines()
    assert [line.split() for line in chosen] == [["record", "Name", "X-A", "Nothing"], [found, "links/1", "1"]]
    row = json.loads(lace("ls", "a.lace", "--json", "--columns", "Name,X-A,Nothing").stdout)
    tip = {"is_tip": True, "concurrent": [], "state": "stands", "withdrawn_by": None}
    assert row == {"hash": found, "Name": "links/1", "X-A": "1", "Nothing": None, **tip}


def test_ls_follows_prefix_tips_and_blobs() -> None:
    put("1", "--tai", OLD, name="a/1")
    newest = put("2", "--tai", NEW, name="a/1")
    put("3", name="b")

    def listed(*more: str) -> list[str]:
        return [json.loads(line)["hash"] for line in lace("ls", "a.lace", "--json", *more).stdout.splitlines()]

    assert len(listed()) == 3
    assert len(listed("//u//ding//a/")) == 2
    assert listed("//u//ding//a/", "--tips") == [newest]
    assert listed("--blobs") == []
    assert lace("ls", "a.lace", "--blobs", "--tips").exit_code == ExitCode.USAGE


def test_ls_shows_the_size_of_chunked_content() -> None:
    with api.open("a.lace", limits=RecordLimits(max_data_bytes=1000)) as opened:
        opened.put(b"x" * 5000, group="u", app="a", name="big")
    assert "4.9 KiB" in lace("ls", "a.lace").stdout
    assert "1000 B" in lace("ls", "a.lace", "--blobs").stdout


def test_facts_prints_fact_lines_and_json() -> None:
    found = put("it's")
    put("other", name="2")
    lines = lace("facts", "a.lace", found).stdout.splitlines()
    assert f"Have('{found}')" in lines
    assert f"Field('{found}','Name','0','links/1')" in lines
    assert all(found in line for line in lines)
    first = json.loads(lace("facts", "a.lace", "--json", found).stdout.splitlines()[0])
    assert first == {"predicate": "Have", "values": [found]}
    assert len(lace("facts", "a.lace").stdout.splitlines()) == 2 * len(lines)


def test_rm_removes_by_hash_all_or_none() -> None:
    first, second = put("one", name="1"), put("two", name="2")
    assert lace("rm", "a.lace", first, Blob(b"z").hash).exit_code == ExitCode.BAD
    assert lace("stat", "a.lace", "--json").stdout.startswith('{"records": 2')
    assert lace("rm", "a.lace", first).stdout == "removed 1 record\n"
    assert lace("get", "a.lace", first).exit_code == ExitCode.BAD
    assert lace("get", "a.lace", second).stdout == "two"
    assert lace("rm", "a.lace", "//u//ding//2").exit_code == ExitCode.USAGE


def test_stat_and_verify_tell_what_there_is() -> None:
    put("hello")
    assert "records      1\n" in lace("stat", "a.lace").stdout
    result = lace("verify", "a.lace")
    assert (result.exit_code, result.stdout) == (0, "✓ verified 1 record: everything holds\n")


def test_verify_names_what_is_damaged_and_exits_1(stage: Path) -> None:
    import sqlite3

    found = put("damage me")
    with sqlite3.connect("a.lace") as connection:
        (body,) = connection.execute("SELECT body FROM records").fetchone()
        connection.execute("UPDATE records SET body = ?", (body.replace(b"damage", b"DAMAGE"),))
    connection.close()
    result = lace("verify", "a.lace")
    assert result.exit_code == ExitCode.BAD
    assert result.stdout.splitlines()[0] == "✗ verified 1 record: 1 finding"
    assert found in result.stdout
    assert json.loads(lace("verify", "a.lace", "--json").stdout.splitlines()[0])["hash"] == found


def test_verify_tells_of_a_body_that_ends_inside_a_head(stage: Path) -> None:
    import sqlite3

    put("damage me")
    with sqlite3.connect("a.lace") as connection:
        connection.execute("UPDATE records SET body = ?", (b"hello PS",))
    connection.close()
    result = lace("verify", "a.lace")
    assert result.exit_code == ExitCode.BAD
    assert "record 1" in result.stdout


def test_a_backup_is_a_lace_and_a_lace_is_restored_from_it(stage: Path) -> None:
    found = put("hello")
    assert lace("backup", "a.lace", "b.lace").stdout.endswith("to b.lace\n")
    assert lace("backup", "a.lace", "b.lace").exit_code == ExitCode.STORE
    assert json.loads(lace("backup", "a.lace", "b.lace", "--replace", "--json").stdout)["path"] == "b.lace"
    assert lace("get", "b.lace", found).stdout == "hello"
    assert lace("restore", "b.lace", "c.lace").stdout == "restored 1 record to c.lace\n"
    assert lace("restore", "b.lace", "c.lace").exit_code == ExitCode.STORE
    assert lace("verify", "c.lace").exit_code == ExitCode.OK
    assert lace("get", "c.lace", found).stdout == "hello"


def test_secure_rm_and_compact_leave_nothing_of_a_record(stage: Path) -> None:
    first, second = put("sesame open", name="whispered"), put("two", name="2")
    third = put("three words", name="muttered")
    assert lace("rm", "a.lace", first).exit_code == ExitCode.OK
    assert b"whispered" in Path("a.lace").read_bytes()
    assert lace("rm", "a.lace", third, "--secure").stdout == "removed 1 record\n"
    data = Path("a.lace").read_bytes()
    assert not any(word in data for word in (b"whispered", b"sesame", b"muttered", b"three words"))
    assert lace("get", "a.lace", second).stdout == "two"
    assert json.loads(lace("compact", "a.lace", "--json").stdout)["bytes"] == Path("a.lace").stat().st_size
    assert re.search(r"a.lace: [\d.]+ KiB before, [\d.]+ KiB now", lace("compact", "a.lace").stdout)
    assert lace("verify", "a.lace").exit_code == ExitCode.OK


def test_repair_keeps_what_can_be_read_and_names_what_cannot(stage: Path) -> None:
    import sqlite3

    good, bad = put("good", name="1"), put("bad", name="2")
    with sqlite3.connect("a.lace") as connection:
        connection.execute("UPDATE records SET body = CAST(replace(body, 'bad', 'BAD') AS BLOB)")
        connection.execute("DELETE FROM segments")
    connection.close()
    assert lace("verify", "a.lace").exit_code == ExitCode.BAD
    result = lace("repair", "a.lace")
    assert result.exit_code == ExitCode.BAD
    assert bad in result.stdout
    assert "kept 1 record; lost 1" in result.stdout
    assert lace("get", "a.lace", good).stdout == "good"
    assert lace("verify", "a.lace").exit_code == ExitCode.OK
    assert Path("a.lace.damaged").exists()
    assert json.loads(lace("repair", "a.lace", "--json").stdout)["damaged"] == "a.lace.damaged2"


def test_repair_finds_the_records_of_a_lace_whose_beginning_was_overwritten(stage: Path) -> None:
    names = ["1", "2", "long"]
    hashes = [put("good" * (60_000 if name == "long" else 1), name=name) for name in names]
    data = Path("a.lace").read_bytes()
    Path("a.lace").write_bytes(bytes(16384) + data[16384:])
    result = lace("get", "a.lace", hashes[0])
    assert result.exit_code == ExitCode.STORE
    assert "`lace repair` looks for records in it" in result.stderr
    result = lace("repair", "a.lace")
    assert result.exit_code == ExitCode.OK
    assert "kept 3 records; lost 0" in result.stdout
    assert "removed records may be among them" in result.stdout
    assert "add those again with `lace key know`" in result.stdout
    assert lace("get", "a.lace", hashes[2]).stdout == "good" * 60_000
    assert lace("verify", "a.lace").exit_code == ExitCode.OK


@pytest.mark.parametrize(
    "arguments, code, said",
    [
        (["get", "none.lace", "//u//a//b"], ExitCode.STORE, "create it with `lace init none.lace`"),
        (["get", "text.lace", "//u//a//b"], ExitCode.STORE, "not a lace store"),
        (["ls", "folder"], ExitCode.STORE, "directory"),
        (["get", "a.lace", "//u//a//b"], ExitCode.BAD, "there is no record at //u//a//b"),
        (["get", "a.lace", "//u//a"], ExitCode.USAGE, "lace help coordinates"),
        (["get", "a.lace", "nonsense"], ExitCode.USAGE, "lace help coordinates"),
        (["ls", "a.lace", "u//a"], ExitCode.USAGE, "begins with //"),
        (["put", "a.lace", "-g", "u", "-a", "a", "none"], ExitCode.USAGE, "does not exist"),
        (["put", "a.lace", "-g", "u", "-a", "a", "-"], ExitCode.USAGE, "give --name"),
        (["put", "a.lace", "-g", "u", "-a", "a{", "text.lace"], ExitCode.BAD, "path-character"),
        (["put", "a.lace", "-g", "u", "-a", "a", "text.lace", "--sign", "x"], ExitCode.KEY, "lace key new x"),
        (["put", "a.lace", "-g", "u", "-a", "a", "text.lace", "--header", "x"], ExitCode.USAGE, "NAME=VALUE"),
        (["put", "a.lace", "-g", "u", "-a", "a", "text.lace", "--header", "TAI=1"], ExitCode.BAD, "TAI"),
        (["put", "a.lace", "-g", "u", "-a", "a", "text.lace", "--link", "a=b"], ExitCode.BAD, "link"),
        (["put", "a.lace", "-g", "u", "-a", "a", "text.lace", "--tai", "now"], ExitCode.USAGE, "a time is 2026-11-18"),
        (["put", "a.lace", "text.lace"], ExitCode.USAGE, "--group"),
        (["rm", "a.lace"], ExitCode.USAGE, "HASH"),
    ],
    ids=lambda value: "-".join(value[:1]) if isinstance(value, list) else None,
)
def test_bad_input_ends_in_one_block_and_its_exit_code(
    stage: Path, arguments: list[str], code: ExitCode, said: str
) -> None:
    (stage / "text.lace").write_text("this is text, and no lace at all\n" * 50)
    (stage / "folder").mkdir()
    result = lace(*arguments)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)


# Linux lets a process's ru_maxrss survive exec, so a child of a large test process would report its parent's memory
# and not its own: the peak of the program itself is VmHWM. Where there is no /proc, ru_maxrss starts at exec.
REPORTING_ITS_PEAK = """
import resource, sys
from pathlib import Path
from lace.cli import main

def peak_kib():
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))

sys.argv[0] = "lace"
try:
    main()
finally:
    print(peak_kib(), file=sys.stderr)
"""


PATIENCE_S = 3600 if IS_PURE else 120  # plain Python hashes less than a megabyte a second


@pytest.mark.long
def test_content_of_40_mib_streams_through_with_bounded_memory(stage: Path) -> None:
    """The real limits: a manifest of two chunks, written and read by the real command from and to a pipe."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with (stage / "big").open("wb") as file:
        for number in range(160):
            file.write(number.to_bytes(1) * (256 * 1024))

    def run(*arguments: str, source: str = os.devnull) -> tuple[bytes, int]:
        with Path(source).open("rb") as given:
            command = [sys.executable, "-c", REPORTING_ITS_PEAK, *arguments]
            done = subprocess.run(command, env=environment, stdin=given, capture_output=True, timeout=PATIENCE_S)
        assert done.returncode == 0, done.stderr
        return done.stdout, int(done.stderr.split()[-1])

    _, put_kib = run("put", "a.lace", "-g", "u", "-a", "a", "-n", "big", "-", source="big")
    _, get_kib = run("get", "a.lace", "//u//a//big", "-o", "back")
    assert (stage / "back").read_bytes() == (stage / "big").read_bytes()
    assert max(put_kib, get_kib) < 400 * 1024
    assert lace("ls", "a.lace", "--blobs", "--json").stdout.count("\n") == 2
    assert (stage / "big").stat().st_size == 40 * MIB
