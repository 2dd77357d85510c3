"""The log of an archive: numbered commits that two writers never share and a crash never halves."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidInput, StoreError
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.log import ArchiveBatch, Commit, DataFile, Input, Log, LostRace, State, StepResult
from tries import tries


def commit(number: int, *, added: int = 1, dropped: tuple[str, ...] = ()) -> Commit:
    files = tuple(
        DataFile(
            table="records",
            path=f"data/{number}-{n}.parquet",
            rows=n,
            bytes=9,
            batches=(str(number),),
            low={"hash": "a"},
        )
        for n in range(added)
    )
    batch = ArchiveBatch(
        id=str(number), inputs={f"c{number}": Input(address="/in/a", size=number)}, counts={"valid": 1}
    )
    done = StepResult(mark="m", batches=(str(number),), removals=0, counts={"n": number}, seconds=0.5)
    return Commit(
        version=0, time=f"2026-01-01T00:{number:02d}:00+00:00", operation="add", added=files, dropped=dropped,
        batch=batch, results={"step": done},
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
    for damaged in (whole[:-20], b"[]", json.dumps({**json.loads(whole), "format": 99}).encode()):
        path.unlink()
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=r"00000001\.json"):
            log.state()
    path.unlink()
    log.files.publish("log/00000002.json", whole)
    with pytest.raises(StoreError, match="missing from the log"):
        log.state()


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
