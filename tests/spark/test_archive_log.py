"""The log of an archive: numbered commits that two writers never share and a crash never halves."""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidInput, StoreError
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.log import Log
from lace.spark.archive.versions import ArchiveBatch, Commit, DataFile, Input, LostRace, State, StepResult
from tries import tries


def batch_name(number: int) -> str:
    return f"{number:08d}-x"


def commit(number: int, *, added: int = 1, dropped: tuple[str, ...] = ()) -> Commit:
    files = tuple(
        DataFile(
            table="records",
            path=f"data/{number}-{n}.parquet",
            rows=n,
            bytes=9,
            first=batch_name(number),
            last=batch_name(number),
            low={"hash": "a"},
        )
        for n in range(added)
    )
    batch = ArchiveBatch(
        id=batch_name(number), inputs={f"c{number}": Input(address="/in/a", size=number)}, counts={"valid": 1}
    )
    done = StepResult(mark="m", seen=batch_name(number), removals=0, counts={"n": number}, seconds=0.5)
    return Commit(
        version=0, time=f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00+00:00", operation="add",
        added=files, dropped=dropped, batch=batch, results={"step": done},
    )  # fmt: skip


def test_a_state_is_what_the_commits_say_whether_replayed_or_read_whole(tmp_path: Path) -> None:
    log = Log(LocalFiles(tmp_path))
    state, states = State(), []
    for number in range(1, 40):
        gone = (state.files[0].path,) if number % 3 == 0 else ()
        state = log.commit(state, commit(number, added=number % 4, dropped=gone))
        states.append(state)
    assert [log.state(version) for version in range(1, 40)] == states
    assert log.state() == states[-1]
    assert log.state("2026-01-01T00:07:30") == states[6]
    assert len(log.commits()) == 39


def grown(log: Log, versions: int, seed: int = 0) -> list[State]:
    """The states of a log of commits of every kind: additions, runs whose results go again, rewrites, removals."""
    rng, state, states = random.Random(seed), State(), []
    for number in range(1, versions + 1):
        files = [file.path for file in state.files]
        one = commit(
            number, added=rng.randrange(4), dropped=tuple(rng.sample(files, min(len(files), rng.randrange(3))))
        )
        step = f"step {rng.randrange(5)}"
        results = {step: replace(one.results["step"], mark=str(number))}
        forgotten = tuple(key for key in state.results if key != step and rng.random() < 0.1)
        state = log.commit(state, replace(
            one,
            batch=one.batch if rng.random() < 0.5 else None,
            results=results,
            forgotten=forgotten,
            removal=rng.random() < 0.2,
            oldest=max(state.oldest, number - 3) if rng.random() < 0.01 else None,
            time=f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00+00:00",
        ))  # fmt: skip
        states.append(state)
    return states


def test_every_version_is_read_from_stretches_as_its_commits_were_written(tmp_path: Path) -> None:
    states = grown(Log(LocalFiles(tmp_path)), 300)
    oldest = states[-1].oldest
    readable = [state for state in states if state.version >= oldest]
    assert [Log(LocalFiles(tmp_path)).state(state.version) for state in readable] == readable
    assert Log(LocalFiles(tmp_path)).state(f"2026-01-01T{oldest // 60:02d}:{oldest % 60:02d}:30") == readable[0]
    stretches = sorted((tmp_path / "log" / "stretches").iterdir())
    assert len(stretches) == 300 // 16 + 300 // 256
    for gone in random.Random(1).sample(stretches, len(stretches) // 2):  # a crash may leave any of them out
        gone.unlink()
    (tmp_path / "log" / "_newest").unlink()
    log = Log(LocalFiles(tmp_path))
    assert log.state() == states[-1]
    assert log.state(oldest) == readable[0]
    (tmp_path / "log" / "_newest").write_text("256")  # behind, as it always may be
    assert Log(LocalFiles(tmp_path)).state() == states[-1]


def test_a_reader_that_stays_sees_what_others_commit(tmp_path: Path) -> None:
    writer, reader = Log(LocalFiles(tmp_path)), Log(LocalFiles(tmp_path))
    state = State()
    for number in range(1, 40):
        state = writer.commit(state, commit(number))
        assert reader.state() == state
    with pytest.raises(LostRace):
        reader.commit(replace(state, version=38), commit(40))


def test_a_commit_is_as_large_whatever_was_before_and_the_log_grows_in_a_line(tmp_path: Path) -> None:
    log = Log(LocalFiles(tmp_path))
    state, sizes = State(), []
    for number in range(1, 513):
        state = log.commit(state, replace(commit(number), time="2026-01-01T00:00:00+00:00"))
        if number in (256, 512):
            sizes.append(sum(file.size for file in log.files.listing("log")))
    first, last = ((tmp_path / "log" / f"{number:08d}.json").stat().st_size for number in (1, 512))
    assert last < first + 40
    assert sizes[1] < 2.2 * sizes[0]


def test_a_read_opens_few_files_however_long_the_log(tmp_path: Path) -> None:
    grown(Log(LocalFiles(tmp_path)), 300)
    for number in range(2, 288):  # all of these are part of a stretch
        (tmp_path / "log" / f"{number:08d}.json").unlink()
    assert Log(LocalFiles(tmp_path)).state().version == 300


def test_an_age_is_as_many_versions_as_tell_of_every_time_since(tmp_path: Path) -> None:
    log = Log(LocalFiles(tmp_path))
    state = State()
    for number in range(1, 21):  # one a minute
        state = log.commit(state, commit(number))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    assert log.versions_since(start + timedelta(minutes=15, seconds=30)) == 6  # what was there then stays
    assert log.versions_since(start + timedelta(minutes=20)) == 1
    assert log.versions_since(start + timedelta(days=1)) == 1
    assert log.versions_since(start - timedelta(days=1)) == 20
    log.commit(state, replace(commit(21), oldest=10))
    assert log.versions_since(start - timedelta(days=1)) == 12


@pytest.mark.parametrize("stopped", [None, 1, 5])
def test_commits_that_no_version_needs_go_and_the_rest_is_read_as_before(tmp_path: Path, stopped: int | None) -> None:
    log = Log(LocalFiles(tmp_path))
    states = grown(log, 100, seed=3)
    for path in sorted((tmp_path / "log").rglob("*.*"))[:90]:
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert log.forget(70, 3600) == 68
    assert log.versions()[:2] == [1, 70]
    assert [Log(LocalFiles(tmp_path)).state(v) for v in range(max(70, states[-1].oldest), 101)] == [
        state for state in states if state.version >= max(70, states[-1].oldest)
    ]
    after = log.commit(states[-1], commit(101))
    assert Log(LocalFiles(tmp_path)).state() == after
    if stopped is not None:  # a crash in the middle: what was not reached yet is still there
        assert Log(LocalFiles(tmp_path)).forget(70 + stopped, 3600) == stopped
        assert Log(LocalFiles(tmp_path)).state() == after
    assert Log(LocalFiles(tmp_path)).forget(101, 1e9) == 0  # young commits stay


def as_before(state: State, change: Commit, version: int) -> bytes:
    """A commit as format 1 had it: every batch by name, and each sixteenth time all that there was."""

    def named(found: dict[str, Any]) -> dict[str, Any]:
        first, last = found.pop("first"), found.pop("last")
        return {**found, "batches": [first] if first == last else [first, last]}

    def seen(found: dict[str, Any], batches: Sequence[str]) -> dict[str, Any]:
        last = found.pop("seen")
        return {**found, "batches": [batch for batch in batches if batch <= last]}

    body = asdict(replace(change, version=version))
    whole = asdict(state)
    whole.pop("time")
    for part, files in ((body, "added"), (whole, "files")):
        part[files] = [named(file) for file in part[files]]
        part["results"] = {key: seen(result, state.batch_ids) for key, result in part["results"].items()}
    return json.dumps({"format": 1, **body, "whole": whole if version % 16 == 0 else None}, indent=1).encode()


@pytest.mark.parametrize("versions", [5, 40])
def test_a_log_of_an_older_lace_is_read_and_goes_on(tmp_path: Path, versions: int) -> None:
    files = LocalFiles(tmp_path)
    state, states = State(), []
    for number in range(1, versions + 1):
        change = replace(commit(number, added=2), version=number)
        state = change.apply(state)
        assert files.publish(f"log/{number:08d}.json", as_before(state, change, number))
        states.append(state)
    log = Log(files)
    assert [Log(files).state(number) for number in range(1, versions + 1)] == states
    assert log.state("2026-01-01T00:03:30") == states[2]
    for number in range(versions + 1, versions + 40):
        state = log.commit(log.state(), replace(commit(number), time="2026-02-01T00:00:00+00:00"))
        states.append(state)
    assert [Log(files).state(number) for number in range(1, versions + 40)] == states


@pytest.mark.parametrize("wrong", ["0", "41", "yesterday", "2020-01-01"])
def test_a_version_that_never_was_is_refused(tmp_path: Path, wrong: str) -> None:
    log = Log(LocalFiles(tmp_path))
    log.commit(State(), commit(1))
    with pytest.raises(InvalidInput):
        log.state(wrong)


def test_of_two_writers_after_one_version_one_wins(tmp_path: Path) -> None:
    log = Log(LocalFiles(tmp_path))
    before = log.commit(State(), commit(1))
    outcomes: list[str] = []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        try:
            log.commit(before, commit(number))
            outcomes.append("won")
        except LostRace:
            outcomes.append("lost")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(2, 10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(outcomes) == ["lost"] * 7 + ["won"]
    assert log.versions() == [1, 2]
    assert [path.name for path in (tmp_path / "log").iterdir() if path.name.startswith(".")] == []


def test_a_crash_while_writing_leaves_the_version_before(tmp_path: Path) -> None:
    log = Log(LocalFiles(tmp_path))
    before = log.commit(State(), commit(1))
    (tmp_path / "log" / ".00000002.json.abc").write_bytes(b'{"format": 1, "ver')  # what a dead writer leaves
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orphan.parquet").write_bytes(b"half")
    assert log.state() == before
    assert log.commit(before, commit(2)).version == 2


def test_damage_is_named_with_its_file(tmp_path: Path) -> None:
    log = Log(LocalFiles(tmp_path))
    with pytest.raises(StoreError, match="no archive here"):
        log.state()
    log.commit(State(), commit(1))
    path = tmp_path / "log" / "00000001.json"
    whole = path.read_bytes()
    log = Log(log.files)
    for damaged in (whole[:-20], b"[]", json.dumps({**json.loads(whole), "format": 99}).encode()):
        path.unlink()
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"00000001\.json"):
            log.state()
    path.unlink()
    log.files.publish("log/00000002.json", whole)
    with pytest.raises(StoreError, match="missing from the log"):
        log.state()
    for number in range(1, 17):
        (tmp_path / "log" / f"{number:08d}.json").unlink(missing_ok=True)
    for number, state in enumerate(grown(log, 16), 1):
        assert state.version == number
    (stretch,) = (tmp_path / "log" / "stretches").iterdir()
    stretch.write_bytes(stretch.read_bytes()[:-30])
    with pytest.raises(StoreError, match=r"00000000-00000016\.parquet: not a part of a log"):
        Log(log.files).state()


@given(data=st.binary(max_size=2000), name=st.sampled_from(["a", "x/y", "x/é"]))
@tries(30)
def test_a_published_file_is_whole_and_stays(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    files = LocalFiles(tmp_path_factory.mktemp("root"))
    assert files.publish(name, data)
    assert not files.publish(name, b"another")
    assert files.read(name) == data
    assert [(item.name, item.size) for item in files.listing("")] == [(name, len(data))]
    files.replace(name, b"new")
    assert files.read(name) == b"new"
    files.remove(name)
    files.remove(name)
    assert files.listing("") == []
