"""The past: log, diff, revert and --as-of, through the library and the command."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from lace.cli.app import app
from lace.errors import InvalidInput, StoreError
from tries import tries

HERE = "//club//notes//meet"
PLACE = {"group": "club", "app": "notes", "name": "meet"}


def command(*words: str, code: int = 0, **more: Any) -> Any:
    done = CliRunner().invoke(app, list(words), **more)
    assert done.exit_code == code, done.output
    return done


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with api.open("a.lace", create=True) as lace:
        for day, said in ((1, b"at 9\n"), (2, b"at 10\n"), (3, b"at 11\n")):
            lace.put(said, tai=str(api.TAI.of_text(f"2026-03-0{day}T12:00")), headers={"Day": str(day)}, **PLACE)
        lace.retract(HERE, tai=str(api.TAI.of_text("2026-03-04T12:00")))
        lace.put(b"other\n", group="club", app="notes", name="other", tai=str(api.TAI.of_text("2026-03-03")))
    return tmp_path


@pytest.mark.parametrize(
    ("time", "said"), [("2026-03-02", "at 9\n"), ("2026-03-02T12:00", "at 10\n"), ("2026-03-04T12:59+01:00", "at 11\n")]
)
def test_what_was_there_at_a_time(folder: Path, time: str, said: str) -> None:
    assert command("get", "a.lace", HERE, "--as-of", time).stdout == said
    (row,) = [
        json.loads(line)
        for line in command("ls", "a.lace", HERE, "--tips", "--as-of", time, "--json").stdout.splitlines()
    ]
    assert command("get", "a.lace", row["hash"]).stdout == said
    assert "too far ahead" not in command("get", "a.lace", HERE, "--as-of", time).stderr


def test_before_and_after_there_is_nothing(folder: Path) -> None:
    command("get", "a.lace", HERE, "--as-of", "2026-03-01", code=1)
    assert "was withdrawn" in command("get", "a.lace", HERE, "--as-of", "2026-03-04T12:00", code=1).stderr
    assert "was withdrawn" in command("get", "a.lace", HERE, code=1).stderr
    command("get", "a.lace", HERE, "--as-of", "last week", code=2)
    rules = "Day(D) :- Field(_,'Day',_,D)."
    assert command("query", "a.lace", rules, "--as-of", "2026-03-02T13:00").stdout.split() == ["D", "1", "2"]
    assert command("query", "a.lace", rules, "--as-of", "2026-02-01").stdout.split() == ["D"]


def test_the_log_tells_every_version(folder: Path) -> None:
    rows = [json.loads(line) for line in command("log", "a.lace", HERE, "--json").stdout.splitlines()]
    assert [row["state"] for row in rows] == ["retracts", "withdrawn", "withdrawn", "withdrawn"]
    assert {row["withdrawn_by"] for row in rows[1:]} == {rows[0]["hash"]}
    then = command("log", "a.lace", HERE, "--as-of", "2026-03-03", "--json").stdout.splitlines()
    assert [json.loads(line)["state"] for line in then] == ["tip", "stands"]
    shown = command("log", "a.lace", HERE, "-n", "2").stdout
    assert "withdrawn by unsigned" in shown
    assert len(shown.splitlines()) == 3
    command("log", "a.lace", "//club//notes//missing", code=1)
    command("log", "a.lace", rows[0]["hash"], code=2)


def test_what_changed_between_versions(folder: Path) -> None:
    command("undo", "a.lace", HERE)
    lines = command("diff", "a.lace", HERE).stdout.splitlines()
    assert {"-at 10", "+at 11", "-Day: 2", "+Day: 3"} <= set(lines)
    since = command("diff", "a.lace", HERE, "--as-of", "2026-03-01T12:00").stdout.splitlines()
    assert {"-at 9", "+at 11"} <= set(since)
    assert {"-at 11", "+other"} <= set(command("diff", "a.lace", HERE, "//club//notes//other").stdout.splitlines())
    assert command("diff", "a.lace", HERE, HERE).stdout == ""
    assert json.loads(command("diff", "a.lace", HERE, "--json").stdout)["difference"] == lines[2:]
    command("diff", "a.lace", "//club//notes//other", code=1)


def test_an_earlier_version_is_the_tip_again(folder: Path) -> None:
    command("key", "new", "ann")
    command("revert", "a.lace", HERE, "--as-of", "2026-03-02T12:00", "--sign", "ann")
    assert command("get", "a.lace", HERE).stdout == "at 10\n"
    with api.open("a.lace") as lace:
        assert lace.record(HERE).parts.headers == (("Day", "2"),)
        assert lace.tip(HERE).entry.signer is not None
        first = list(lace.history(HERE))[-1].version.hash
    command("revert", "a.lace", HERE, "--to", first)
    assert command("get", "a.lace", HERE).stdout == "at 9\n"
    assert "the tip" in command("revert", "a.lace", HERE, "--as-of", "2100-01-01", code=1).stderr
    other = json.loads(command("ls", "a.lace", "//club//notes//other", "--json").stdout)["hash"]
    command("revert", "a.lace", HERE, "--to", other, code=1)
    command("revert", "a.lace", HERE, code=2)


def test_content_in_parts_is_the_tip_again(tmp_path: Path) -> None:
    limits = api.RecordLimits(max_data_bytes=1000)
    with api.open(tmp_path / "a.lace", create=True, limits=limits) as lace:
        large = lace.put(bytes(5000), **PLACE)
        lace.put(b"small", **PLACE)
        lace.revert(HERE, large)
        assert lace.get(HERE) == bytes(5000)
        assert list(lace.verify()) == []


def test_the_past_takes_no_records() -> None:
    with api.open(":memory:") as lace:
        record = lace.put(b"x", **PLACE)
        past = lace.at("2020-01-01")
        for work in (lambda: past.put(b"y", **PLACE), lambda: past.retract(record), lambda: past.delete(record)):
            with pytest.raises((StoreError, InvalidInput)):
                work()
        past.close()
        assert lace.get(HERE) == b"x"


STEP = st.tuples(st.sampled_from(["put", "put", "retract", "undo", "one"]), st.integers(0, 99))


@tries(40)
@given(steps=st.lists(STEP, min_size=1, max_size=12), seed=st.integers(0, 99))
def test_the_past_is_what_the_present_was(steps: list[tuple[str, int]], seed: int) -> None:
    """After each step the present is noted; from the end, each of them is the past of its moment."""
    noted: list[tuple[str, list[str]]] = []
    with api.open(":memory:") as lace:
        made: list[str] = []
        for number, (kind, which) in enumerate(steps):
            tai = f"17000000{number:02}:000000000"
            try:
                if kind == "put":
                    made.append(lace.put(b"%d" % number, tai=tai, **PLACE))
                elif kind == "one" and made:
                    lace.retract(made[which % len(made)], tai=tai)
                elif kind in ("retract", "undo"):
                    getattr(lace, kind)(HERE, tai=tai)
            except (api.NotFound, InvalidInput):
                pass
            noted.append((tai, [row.hash for row in lace.list(tips=True)]))
        random.Random(seed).shuffle(noted)
        for tai, tips in noted:
            past = lace.at(tai)
            assert [row.hash for row in past.list(tips=True)] == tips
            assert [row.hash for row in lace.list(tips=True)] == next(t for at, t in noted if at == max(noted)[0])
