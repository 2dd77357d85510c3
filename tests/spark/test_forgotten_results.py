"""Rules that peers bring leave results in an archive, and not more of them than are kept; without a JVM."""

from __future__ import annotations

from pathlib import Path

from lace.spark.archive.archive import Archive
from lace.spark.archive.versions import Commit, DataFile, State, StepResult
from lace.spark.peer.peer import ArchivePeer, PeerBounds
from lace.spark.peer.selecting import PEERS, RESULT, forgettable
from lace.thresholds import ArchiveThresholds


def result(mark: str, name: str) -> StepResult:
    return StepResult(mark=mark, seen="b", removals=0, counts={f"selected {name}": 1}, seconds=0.1)


def selected(mark: str) -> DataFile:
    rules = {"rules": mark}
    return DataFile(table="selected", path=f"data/selected/{mark}", rows=1, bytes=1, low=rules, high=rules)


def brought(*marks: str) -> dict[str, StepResult]:
    return {RESULT + mark: result(mark, f"{PEERS}{mark}") for mark in marks}


def test_the_oldest_results_that_no_link_uses_are_forgotten_and_those_of_the_owner_never() -> None:
    owned = {RESULT + "own": result("own", "ann"), "advertise:ann": result("x", "ann")}
    state = State(version=1, results={**brought("a"), **owned, **brought("b", "c", "d")})
    assert forgettable(state, set(), 4) == []
    assert forgettable(state, set(), 2) == [RESULT + "a", RESULT + "b"]
    assert forgettable(state, {"a", "c"}, 2) == [RESULT + "b", RESULT + "d"]
    assert forgettable(state, {"a", "b", "c", "d"}, 0) == []


def test_forgetting_drops_the_files_and_is_read_back(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "west"))
    archive.init()
    files = tuple(selected(mark) for mark in ("a", "b", "own"))
    results = {**brought("a", "b"), RESULT + "own": result("own", "ann")}
    archive.commit(lambda _: Commit(operation="run", added=files, results=results))
    peer = ArchivePeer(archive, PeerBounds(max_rule_sets=1))
    peer.put_setting("root", "a", b"kept")
    peer.selections.tidy()
    state = archive.log.state()
    assert list(state.results) == [RESULT + "b", RESULT + "own"]
    assert [file.path for file in state.files] == ["data/selected/b", "data/selected/own"]
    assert peer.get_setting("root", "a") is None
    version = state.version
    peer.selections.tidy()
    assert archive.log.state().version == version


def test_a_served_archive_does_less_by_itself_than_a_command_and_never_more_than_it_was_told(tmp_path: Path) -> None:
    served = Archive(str(tmp_path / "west"))
    ArchivePeer(served)
    assert served.thresholds.in_process_bytes == 8 << 20 < ArchiveThresholds().in_process_bytes
    for told, bound, wanted in ((0, 1 << 30, 0), (1 << 30, 5, 5)):
        archive = Archive(str(tmp_path / "east"), thresholds=ArchiveThresholds(in_process_bytes=told, held_rows=7))
        ArchivePeer(archive, PeerBounds(max_in_process_bytes=bound))
        assert (archive.thresholds.in_process_bytes, archive.thresholds.held_rows) == (wanted, 7)
