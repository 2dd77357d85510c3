"""`lace sync` and `lace conflicts`, as a person or a script uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.cli.output.failure import ExitCode

AT = ("--at", "//club//files")


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    folder = tmp_path / "stage"
    (folder / "one").mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert lace("init", "hub.lace").exit_code == 0
    return folder


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def sync(folder: str, *more: str) -> Result:
    return lace("sync", folder, "hub.lace", "--once", *more)


def test_two_folders_over_a_lace_between_them(stage: Path) -> None:
    (stage / "one" / "a").write_text("a")
    first = sync("one", *AT)
    assert (first.exit_code, first.stdout, first.stderr) == (0, "stored    a\n", "1 file: 1 stored\n")
    second = sync("other", *AT)
    assert (second.exit_code, second.stdout) == (0, "written   a\n")
    assert (stage / "other" / "a").read_text() == "a"
    assert sync("other").stderr == "nothing to do\n"
    again = sync("other", "--json")
    assert json.loads(again.stdout) == {"event": "round", "conflicts": {}, "troubles": [], "stopped": None}
    (stage / "other" / "a").unlink()
    assert sync("other").stdout == "retracted a\n"
    assert sync("one").stdout == "removed   a\n"
    assert lace("get", "hub.lace", "//club//files//a").exit_code == ExitCode.BAD
    assert lace("undo", "hub.lace", "//club//files//a").exit_code == 0
    assert sync("one").stdout == "written   a\n"


def test_a_conflict_is_told_once_a_run_listed_and_settled(stage: Path) -> None:
    (stage / "one" / "a").write_text("base")
    sync("one", *AT)
    sync("other", *AT)
    (stage / "one" / "a").write_text("mine")
    (stage / "other" / "a").write_text("theirs")
    sync("one")
    told = sync("other")
    assert told.exit_code == ExitCode.BAD
    assert "a: 2 versions in conflict" in told.stderr
    listed = lace("conflicts", "other")
    assert listed.exit_code == ExitCode.BAD
    (row,) = map(json.loads, lace("conflicts", "other", "--json").stdout.splitlines())
    assert row["name"] == "a"
    beside = row["versions"][1]["file"]
    assert beside in listed.stdout
    assert {(stage / "other" / name).read_text() for name in ("a", beside)} == {"mine", "theirs"}
    (stage / "other" / beside).unlink()
    (stage / "other" / "a").write_text("both")
    assert sync("other").exit_code == 0
    assert sync("one").exit_code == 0
    assert lace("conflicts", "one").exit_code == 0
    assert sorted(os.listdir(stage / "one")) == [".lace", "a"]
    assert (stage / "one" / "a").read_text() == "both"


def test_what_would_delete_much_is_a_question(stage: Path) -> None:
    for number in range(12):
        (stage / "one" / str(number)).write_text("x")
    sync("one", *AT)
    for number in range(12):
        (stage / "one" / str(number)).unlink()
    asked = sync("one")
    assert asked.exit_code == ExitCode.BAD
    assert "12 of 12 files are gone from the folder: delete them everywhere?" in asked.stderr
    assert sync("one", "--yes").stdout.count("retracted") == 12


def test_a_folder_says_once_where_its_files_are(stage: Path) -> None:
    assert lace("sync", "one", "--once").exit_code == ExitCode.USAGE
    assert not (stage / "one" / ".lace").exists()
    assert lace("sync", "one", "--once", "--at", "//club").exit_code in (ExitCode.BAD, ExitCode.USAGE)
    assert lace("sync", "one", "--once", *AT).exit_code == 0
    assert lace("sync", "one", "--once", "--at", "//club//other").exit_code == ExitCode.USAGE
    assert lace("sync", "one", "--once", "--lace", "hub.lace").exit_code == ExitCode.USAGE
    assert lace("conflicts", "one").exit_code == 0
    assert lace("conflicts", ".").exit_code == ExitCode.USAGE


def test_on_demand_hides_no_files_and_takes_no_words_that_it_would_ignore(stage: Path) -> None:
    (stage / "one" / "a").write_text("a")
    sync("one", *AT)
    for folder, more, why in (
        ("two", (), "needs a lace outside DIR"),
        ("two", ("--lace", "hub.lace", "--once"), "goes with --lace"),
        ("one", ("--lace", "hub.lace"), "has files of its own"),
    ):
        refused = lace("sync", folder, "--on-demand", *AT, *more)
        assert (refused.exit_code, why in refused.stderr) == (ExitCode.USAGE, True), refused.stderr
    assert not (stage / "two").exists()


def test_what_no_folder_can_keep_is_told_once(stage: Path) -> None:
    os.mkfifo(stage / "one" / "pipe")
    (stage / "one" / "out").symlink_to("/etc")
    first = sync("one", *AT)
    assert (first.exit_code, first.stderr.count("warning")) == (ExitCode.BAD, 2)
    assert "pipe: neither a file" in first.stderr
    again = sync("one")
    assert (again.exit_code, again.stderr) == (0, "nothing to do\n")
    assert len(json.loads(sync("one", "--json").stdout)["troubles"]) == 2  # a program is told each time
    os.mkfifo(stage / "one" / "second")
    more = sync("one")
    assert (more.exit_code, more.stderr.count("warning"), "second" in more.stderr) == (ExitCode.BAD, 1, True)
    (stage / "one" / "pipe").unlink()
    assert sync("one").exit_code == 0
    os.mkfifo(stage / "one" / "pipe")
    assert "pipe" in sync("one").stderr  # it was gone meanwhile


def test_several_folders_follow_one_lace(stage: Path) -> None:
    (stage / "one" / "a").write_text("a")
    for folder in ("one", "other"):
        assert lace("sync", folder, "--lace", "hub.lace", "--once", *AT).exit_code == 0
    assert (stage / "other" / "a").read_text() == "a"
    below = lace("sync", "third", "--lace", "hub.lace", "--once", "--at", "//club//files//sub")
    assert (below.exit_code, below.stdout) == (0, "")


def test_ignored_files_stay_where_they_are(stage: Path) -> None:
    (stage / "one" / ".laceignore").write_text("*.tmp\nbuild/\n")
    (stage / "one" / "build").mkdir()
    for name in ("a.tmp", "build/b", "c"):
        (stage / "one" / name).write_text("x")
    assert sync("one", *AT).stdout.split() == ["stored", ".laceignore", "stored", "c"]
    assert sync("one").stdout == ""
    assert sync("other", *AT).exit_code == 0
    assert sorted(os.listdir(stage / "other")) == [".lace", ".laceignore", "c"]


def test_a_remote_is_named_as_elsewhere(stage: Path) -> None:
    (stage / "one" / "a").write_text("a")
    lace("sync", "one", "--once", *AT)
    assert lace("remote", "add", "one/.lace/folder.lace", "hub", "hub.lace").exit_code == 0
    assert lace("sync", "one", "hub", "--once").exit_code == 0
    assert lace("get", "hub.lace", "//club//files//a").stdout == "a"


@contextmanager
def running(*words: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-m", "lace.cli", *words], stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def until(is_so: Callable[[], bool]) -> None:
    """Wait for something that takes a moment; a minute is only for a machine that hangs."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def holds(path: Path, text: str) -> Callable[[], bool]:
    return lambda: path.is_file() and path.read_text() == text


@pytest.mark.long
def test_two_folders_follow_each_other_over_a_server(stage: Path) -> None:
    address = f"unix:{stage}/hub.sock"
    (stage / "one" / "a").write_text("a")
    with (
        running("serve", "hub.lace", address, "--expose", "all"),
        running("sync", "one", address, *AT),
        running("sync", "other", address, *AT),
    ):
        until(holds(stage / "other" / "a", "a"))
        (stage / "other" / "a").write_text("b")
        (stage / "other" / "new").write_text("new")
        until(holds(stage / "one" / "a", "b"))
        until(holds(stage / "one" / "new", "new"))
        (stage / "one" / "new").unlink()
        until(lambda: not (stage / "other" / "new").exists())


PLACE = ("--group", "club", "--app", "files")


@contextmanager
def serving_ws(*words: str) -> Iterator[str]:
    """A server over ws on a free port; its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "lace.cli", "serve", words[0], "ws:127.0.0.1:0", *words[1:]],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        line = next(line for line in process.stderr if "listening on" in line)
        yield line.rpartition(" ")[2].strip()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        assert process.returncode == 0


def found_a_club() -> None:
    assert lace("key", "new", "anna").exit_code == 0
    assert lace("init", "club.lace").exit_code == 0
    assert lace("policy", "set", "club.lace", "members", "--group", "club", "--app", "files").exit_code == 0


@pytest.mark.long
def test_a_folder_over_a_lace_with_a_policy_exchanges_by_it(
    stage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run names the lace, the place and a remote; members' files come and go, and `--once` is enough."""
    found_a_club()
    anna, bob = tmp_path / "home", tmp_path / "home of bob"
    with serving_ws("club.lace", "--key", "anna") as address:
        line = json.loads(lace("invite", "club.lace", "bob", "--address", address, "--json").stdout)["line"]
        monkeypatch.setenv("LACE_HOME", str(bob))
        assert lace("join", line, "bob.lace").exit_code == 0
        (stage / "one" / "a").write_text("of bob")
        first = lace("sync", "one", "home", "--lace", "bob.lace", *AT, "--sign", "bob", "--once")
        assert first.exit_code == 0, first.output
        assert lace("get", "club.lace", "//club//files//a").stdout == "of bob"
        monkeypatch.setenv("LACE_HOME", str(anna))
        words = ["put", "club.lace", *PLACE, "--name", "b", "--sign", "anna", "-"]
        assert CliRunner().invoke(app, words, input="of anna").exit_code == 0
        monkeypatch.setenv("LACE_HOME", str(bob))
        assert lace("sync", "one", "home", "--once").exit_code == 0
        assert (stage / "one" / "b").read_text() == "of anna"


@pytest.mark.long
def test_two_laces_of_one_member_are_kept_the_same_through_a_folder(stage: Path) -> None:
    found_a_club()
    assert lace("backup", "club.lace", "stick.lace").exit_code == 0
    (stage / "one" / "a").write_text("here")
    done = lace("sync", "one", "stick.lace", "--lace", "club.lace", *AT, "--sign", "anna", "--once")
    assert done.exit_code == 0, done.output
    assert lace("get", "stick.lace", "//club//files//a").stdout == "here"
