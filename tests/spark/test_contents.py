"""Repeats are found by looking into sorted digests: the bytes that are read follow what is new."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.notation import b64a
from lace.spark.archive.archive import Archive
from lace.spark.archive.contents import CONTENTS, GONE, WIDTH, Lookup, covered, uncovered_files, write
from lace.spark.archive.filesystem import LocalFiles
from lace.spark.archive.versions import ArchiveBatch, BatchRange, DataFile, State
from spark.archives import make_records, write_bundle
from tries import tries


def digests(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    return [b64a.encode(rng.randbytes(32)) for _ in range(count)]


def added(files: LocalFiles, state: State, contents: list[str]) -> State:
    """The state after a batch of digests."""
    batch = f"{len(state.batches) + 1:08d}-x"
    made, dropped = write(files, state, pa.chunked_array([contents], pa.string()), batch)
    kept = tuple(file for file in state.files if file.path not in dropped)
    done = ArchiveBatch(id=batch, inputs={}, counts={"valid": len(contents), "quarantined": 0})
    return replace(state, files=(*kept, *made), batches=(*state.batches, done))


@given(sizes=st.lists(st.integers(0, 400), min_size=1, max_size=12), seed=st.integers(0, 1000))
@tries(40)
def test_a_lookup_finds_what_was_written_and_nothing_else(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: int
) -> None:
    folder = tmp_path_factory.mktemp("root")
    files, state, every = LocalFiles(folder), State(), digests(sum(sizes), seed)
    rest = iter(every)
    for size in sizes:
        state = added(files, state, [next(rest) for _ in range(size)])
    others = digests(50, seed + 5000)
    assert Lookup(folder, state, [*every, *others]).known == set(every)
    assert Lookup(folder, state, []).bytes_read == 0
    filled = [batch.id for batch in state.batches if batch.counts["valid"]]
    assert covered(state) == ([BatchRange("", filled[-1])] if filled else [])
    lengths = [file.rows for file in state.table(CONTENTS)]
    assert len(lengths) <= 10


def large(folder: Path, count: int) -> State:
    """An archive of very many digests, as a large load leaves them."""
    alphabet = np.frombuffer(b64a.ALPHABET.encode(), np.uint8)
    texts = alphabet[np.random.default_rng(count).integers(0, 64, (count, WIDTH - 1))]
    last = np.full((count, 1), ord("0"), np.uint8)  # of a canonical text
    whole = np.sort(np.ascontiguousarray(np.hstack([texts, last])).view(f"S{WIDTH}").ravel())
    LocalFiles(folder).publish("data/contents/a/part.digests", whole.tobytes())
    ends = ({"content": bytes(whole[at]).decode()} for at in (0, -1))
    file = DataFile(
        table=CONTENTS, path="data/contents/a/part.digests", rows=count, bytes=count * WIDTH, first="1", last="1",
        low=next(ends), high=next(ends),
    )  # fmt: skip
    batch = ArchiveBatch(id="1", inputs={}, counts={"valid": count, "quarantined": 0})
    return State(files=(file,), batches=(batch,))


def large_file(folder: Path, count: int) -> Path:
    return folder / large(folder, count).files[0].path


def test_the_bytes_of_a_lookup_follow_what_is_looked_for_and_not_what_is_there(tmp_path: Path) -> None:
    read = []
    for count in (250_000, 4_000_000):
        folder = tmp_path / str(count)
        state = large(folder, count)
        whole = (folder / "data/contents/a/part.digests").read_bytes()
        rng = random.Random(count)
        there = [whole[at * WIDTH : (at + 1) * WIDTH].decode() for at in (rng.randrange(count) for _ in range(250))]
        ends = [whole[:WIDTH].decode(), whole[-WIDTH:].decode()]
        found = Lookup(folder, state, [*there, *ends, *digests(250, count)])
        assert found.known == {*there, *ends}
        read.append(found.bytes_read)
    assert read[1] < 1.2 * read[0]
    assert read[1] < 500 * 3 * 4200  # three blocks each


def test_very_many_digests_are_looked_for_by_reading_each_stretch_of_a_file_once(tmp_path: Path) -> None:
    state = large(tmp_path, 100_000)
    whole = (tmp_path / "data/contents/a/part.digests").read_bytes()
    there = [whole[at : at + WIDTH].decode() for at in range(0, len(whole), 9 * WIDTH)]
    found = Lookup(tmp_path, state, [*there, *digests(9000, 1)])
    assert found.known == set(there)
    assert found.bytes_read < 1.1 * len(whole)


@pytest.mark.long
def test_a_long_file_is_written_again_in_slices_and_in_order(tmp_path: Path) -> None:
    state = large(tmp_path, 1_100_000)
    before = np.fromfile(tmp_path / "data/contents/a/part.digests", f"S{WIDTH}")
    new = np.fromfile(tmp_path / large_file(tmp_path / "other", 600_000), f"S{WIDTH}")
    contents = pa.chunked_array([pa.array(new.astype(str))])
    made, dropped = write(LocalFiles(tmp_path), state, contents, "2")
    assert dropped == ["data/contents/a/part.digests"]
    (file,) = made
    held = np.fromfile(tmp_path / file.path, f"S{WIDTH}")
    assert (held == np.union1d(before, new)).all()
    assert (file.rows, file.first, file.last) == (len(held), "1", "2")
    assert file.low["content"].encode() == held[0]
    assert file.high["content"].encode() == held[-1]


def test_an_addition_finds_repeats_and_leaves_the_records_alone(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "west"))
    archive.init()
    records = make_records(90)
    for number in range(0, 60, 10):
        archive.add([write_bundle(tmp_path / f"{number}.bundle", records[number : number + 10])])
    state = archive.log.state()
    assert not uncovered_files(state)
    for file in (*state.table("records"), *state.table("quarantine")):
        (tmp_path / "west" / file.path).rename(tmp_path / "west" / f"{file.path}.away")  # nobody opens them
    state = archive.add([write_bundle(tmp_path / "all.bundle", records)])
    assert state.batches[-1].counts == {"files": 1, "read": 90, "repeats": 60, "valid": 30, "quarantined": 0}
    assert Archive(str(tmp_path / "west")).add([write_bundle(tmp_path / "b.bundle", records[::-1])]).version == 9
    assert archive.log.state().batches[-1].counts["repeats"] == 90


def test_an_archive_without_digests_is_read_as_before_and_gets_them(tmp_path: Path) -> None:
    archive = Archive(str(tmp_path / "west"))
    archive.init()
    records = make_records(50)
    archive.add([write_bundle(tmp_path / "a.bundle", records[:30])])
    state = archive.log.state()
    gone = tuple(file.path for file in state.table(CONTENTS))
    from lace.spark.archive.versions import Commit

    archive.commit(lambda _: Commit(operation="older", dropped=gone))  # as a lace wrote it that knew of none
    state = archive.add([write_bundle(tmp_path / "b.bundle", records[20:])])
    assert state.batches[-1].counts["repeats"] == 10
    state = archive.add([write_bundle(tmp_path / "c.bundle", records)])
    assert state.batches[-1].counts["repeats"] == 50
    assert [file.table for file in uncovered_files(state)] == ["records"]


@pytest.mark.spark
def test_jobs_write_and_find_the_same_digests_through_removal_and_compaction(tmp_path: Path, spark: object) -> None:
    from lace.thresholds import ArchiveThresholds

    records = make_records(90)
    found = []
    for name, looked_up in (("looked", 16_384), ("joined", 0)):
        archive = Archive(str(tmp_path / name), spark, thresholds=ArchiveThresholds(looked_up_digests=looked_up))  # type: ignore[arg-type]
        archive.init()
        archive.add([write_bundle(tmp_path / "a.bundle", records[:40])])
        assert not uncovered_files(archive.log.state())
        archive.remove([str(valid.hash) for valid in records[:5]])
        assert sum(file.rows for file in archive.log.state().table(GONE)) == 5
        counts = [archive.add([write_bundle(tmp_path / "b.bundle", records[:60])]).batches[-1].counts]
        state = archive.compact()
        assert not state.table(GONE)
        assert not uncovered_files(state)
        assert sum(file.rows for file in state.table(CONTENTS)) == 60
        away = [tmp_path / name / file.path for file in state.table("records")]
        for path in away:
            path.rename(f"{path}.away")  # no job reads records, however many are new
        counts.append(archive.add([write_bundle(tmp_path / "c.bundle", records)]).batches[-1].counts)
        for path in away:
            Path(f"{path}.away").rename(path)
        found.append(counts)
        assert archive.table("records").count() == 90
    assert found[0] == found[1]
    assert [counts["repeats"] for counts in found[0]] == [35, 60]
