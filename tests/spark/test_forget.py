"""What an archive forgets stays out: whoever brings it, and whatever wrote a file before."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

import lace
from lace.cli.app import app
from lace.errors import InvalidInput, NotFound
from lace.interlace.loop.refusals import HeldBack, Reason
from lace.limits import RecordLimits
from lace.notation.tai import TAI
from lace.policy.operand import Module
from lace.records.model import Blob, Plex, ValidRecord
from lace.records.validate import validate
from lace.records.write import encode_record
from lace.runtime.host.quotas import GateRules, QuotaGate
from lace.spark.archive.archive import Archive
from lace.spark.archive.run import run
from lace.spark.peer.arrivals import Arrivals
from lace.store.forgotten import forgotten_among
from lace.thresholds import ArchiveThresholds
from spark.archives import make_records, write_bundle
from spark.test_few import JOINED, check, no_spark
from spark.test_few import PEERS as FEW_PEERS
from spark.test_pipeline import peer

SECRET = "Zanzibar-whisper"  # in a body, in a name and in a header


def secret(number: int, group: str = "club") -> ValidRecord:
    headers = (("X-Tag", f"{SECRET}-header"),)
    plex = Plex(
        group=group, app="notes", name=f"{SECRET}-name", tai=TAI(f"160000000{number}:000000000"), headers=headers,
        blob=Blob(f"{SECRET} {number}".encode()),
    )  # fmt: skip
    return validate(encode_record(plex))


def content_in_parts(name: str, data: bytes) -> list[ValidRecord]:
    with lace.open(":memory:", limits=RecordLimits(max_data_bytes=40)) as made:
        made.put(data, group="club", app="files", name=name)
        return [validate(stored) for _, stored in made.store.bodies_since()]


def made(folder: Path, records: list[ValidRecord], session: object = no_spark, **more: int) -> Archive:
    archive = Archive(str(folder / "west"), session, thresholds=ArchiveThresholds(**more))  # type: ignore[arg-type]
    archive.init()
    write_bundle(folder / "a.bundle", records)
    archive.add([folder / "a.bundle"])
    return archive


def hashes(archive: Archive) -> set[str]:
    files = [f"{archive.files.uri}/{file.path}" for file in archive.log.state().table("records")]
    return set(ds.dataset(files).to_table(columns=["hash"])["hash"].to_pylist()) if files else set()


def files_with(folder: Path, text: str) -> list[str]:
    """The files under a folder in which a text stands, as bytes or in a column of Parquet."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if data[:4] == b"PAR1":
            data = repr(ds.dataset(str(path)).to_table().to_pylist()).encode() + data
        if text.encode() in data:
            found.append(path.relative_to(folder).as_posix())
    return found


PEERS = [peer("ann", Module.author("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n"))]


def test_what_was_forgotten_leaves_every_file_and_no_bundle_brings_it_back(tmp_path: Path) -> None:
    others = make_records(20)
    versions = [secret(1), secret(2)]
    archive = made(tmp_path, [*others, *versions])
    run(archive, PEERS)
    refused = bytearray(versions[0].stored)
    refused[-1] ^= 1  # no record any more, and it shows the same bytes
    (tmp_path / "bad.bundle").write_bytes(bytes(refused))
    archive.add([tmp_path / "bad.bundle"])
    assert archive.log.state().rows("quarantine") == 1
    archive.files.replace("report.html", SECRET.encode())
    west = tmp_path / "west"
    assert {name.split("/")[1] for name in files_with(west / "data", SECRET) for name in [f"data/{name}"]} >= {
        "records", "coordinates", "quarantine"
    }  # fmt: skip

    found = archive.forget(f"//club//notes//{SECRET}-name")
    assert set(found.records) == {valid.hash for valid in versions}
    assert (found.removed, found.parts) == (2, 0)
    assert hashes(archive) == {valid.hash for valid in others}
    # Names at the ends of files stand in commits that other writers may need, for a day.
    assert all(name.startswith("log/") for name in files_with(west, SECRET))
    with pytest.raises(InvalidInput, match="were removed"):
        archive.log.state(2)

    write_bundle(tmp_path / "again.bundle", [*versions, versions[0], make_records(1, seed=5)[0]])
    counts = archive.add([tmp_path / "again.bundle", tmp_path / "bad.bundle"]).batches[-1].counts
    assert counts == {"files": 1, "read": 4, "repeats": 0, "valid": 1, "quarantined": 0, "forgotten": 3}
    run(archive, PEERS)
    assert sorted(row for row in hashes(archive)) == sorted(
        {v.hash for v in others} | {make_records(1, seed=5)[0].hash}
    )
    listed = archive.log.state().rows("advertisements")
    assert listed == 21
    assert archive.take_again(versions[0].hash, versions[0].hash) == 1
    write_bundle(tmp_path / "third.bundle", [versions[1], versions[0]])
    assert archive.add([tmp_path / "third.bundle"]).batches[-1].counts["valid"] == 1
    assert versions[0].hash in hashes(archive)


def test_parts_that_nothing_else_needs_go_along_and_what_lies_inside_stays_out(tmp_path: Path) -> None:
    data = bytes(range(100))
    one, other = content_in_parts("one", data), content_in_parts("other", data[:40] + bytes(60))
    inner = secret(1)
    bare = next(valid for valid in make_records(40) if valid.type == "B")
    archive = made(tmp_path, list({valid.hash: valid for valid in (*one, *other, inner, bare)}.values()))
    manifest = next(valid for valid in one if valid.type == "P")
    shared = {valid.hash for valid in one} & {valid.hash for valid in other}
    assert shared
    found = archive.forget(manifest.hash, inner.hash)
    assert found.parts == len(one) - 1 - len(shared)
    assert hashes(archive) == {valid.hash for valid in other} | {bare.hash}
    assert inner.parts.blob_hash in archive.forgotten()
    assert archive.forgotten() >= {valid.hash for valid in one} - shared
    loose = validate(encode_record(Blob(bytes(inner.data))))
    assert loose.hash == inner.parts.blob_hash
    write_bundle(tmp_path / "loose.bundle", [loose])
    assert archive.add([tmp_path / "loose.bundle"]).batches[-1].counts["forgotten"] == 1


def test_nothing_comes_from_peers_and_nothing_is_asked_of_them(tmp_path: Path) -> None:
    records = make_records(10)
    archive = made(tmp_path, records)
    stranger = make_records(1, seed=77)[0]
    archive.forget(stranger.hash, records[0].hash)  # one that was never here, too
    arrivals = Arrivals(archive, 1 << 20)
    assert forgotten_among(arrivals, [stranger.hash, records[1].hash]) == {stranger.hash}  # type: ignore[arg-type]
    many = [str(valid.hash) for valid in (*make_records(80, seed=78), stranger, records[0])]
    assert forgotten_among(arrivals, many) == {stranger.hash, records[0].hash}  # type: ignore[arg-type]
    gate = QuotaGate(arrivals, GateRules())  # type: ignore[arg-type]
    wanted = [str(stranger.hash), str(records[5].hash)]
    assert list(gate.requestable(wanted, lambda _: None, has_fields=False)) == [records[5].hash]
    assert gate.held_back == HeldBack.of({stranger.hash: Reason.POLICY})
    arrivals.landing.put([stranger.stored, make_records(1, seed=79)[0].stored])  # as a crash leaves them
    arrivals.landing.take_in()
    assert hashes(archive) == {valid.hash for valid in (*records[1:], make_records(1, seed=79)[0])}


@pytest.mark.spark
def test_removing_few_needs_no_spark_and_steps_take_note_of_it(spark: SparkSession, tmp_path: Path) -> None:
    records = make_records(40, seed=31)
    made(tmp_path, records)
    archive = Archive(str(tmp_path / "west"), lambda: spark)
    run(archive, FEW_PEERS)
    gone = records[::7]
    Archive(archive.uri, no_spark).remove([str(valid.hash) for valid in gone])
    assert archive.log.state().rows("removed") == len(gone)
    run(archive, FEW_PEERS)
    kept = [valid for valid in records if valid not in gone]
    check(archive, kept, FEW_PEERS)
    assert not archive.log.state().table("removed")  # every step has taken note
    write_bundle(tmp_path / "again.bundle", gone)
    assert archive.add([tmp_path / "again.bundle"]).batches[-1].counts["valid"] == len(gone)
    run(archive, FEW_PEERS)
    check(archive, [*kept, *gone], FEW_PEERS)
    version = archive.log.state().version
    assert archive.remove([str(make_records(1, seed=99)[0].hash)]).version == version


def test_what_cannot_be_forgotten_says_why(tmp_path: Path) -> None:
    archive = made(tmp_path, make_records(5))
    with pytest.raises(NotFound, match="no record at //none//x//y"):
        archive.forget("//none//x//y")
    with pytest.raises(InvalidInput):
        archive.forget("B.short")
    assert archive.log.state().version == 2
    assert archive.take_again(make_records(1, seed=9)[0].hash) == 0
    assert archive.log.state().version == 2


def test_the_command_forgets_lists_allows_and_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made(tmp_path, [*make_records(12), secret(1), secret(2), secret(3, "other")])

    def said(*arguments: str, code: int = 0) -> list[dict[str, object]]:
        done = CliRunner().invoke(app, ["archive", *arguments, "--json"])
        assert done.exit_code == code, done.output
        return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]

    found = said("find", "west", "//club")
    assert [row["hash"] for row in found] == [secret(2).hash, secret(1).hash]  # the newest first
    assert found[0]["ts"] == "2020-09-13T12:26:05+00:00"  # TAI less 37 leap seconds
    assert [row["hash"] for row in said("find", "west", "//club//notes", "--until", "2020-09-13T12:26:04.5")] == [
        secret(1).hash
    ]
    assert len(said("find", "west", secret(1).hash, secret(3).hash, make_records(1, seed=4)[0].hash)) == 1
    assert len(said("find", "west", "--limit", "3")) == 3
    said("find", "west", "//nobody", code=1)
    said("find", "west", "//club", secret(1).hash, code=2)
    assert "club" in CliRunner().invoke(app, ["archive", "find", "west", "//club"]).output

    (gone,) = said("forget", "west", f"//club//notes//{SECRET}-name")
    assert (gone["removed"], gone["parts"]) == (2, 0)
    assert gone["files"]
    listed = {row["hash"] for row in said("forget", "west", "--list")}
    assert listed >= {secret(1).hash, secret(2).hash}
    said("find", "west", "//club", code=1)
    said("forget", "west", code=2)
    assert said("forget", "west", "--allow", str(secret(1).hash)) == [{"allowed": 1}]
    told = CliRunner().invoke(app, ["archive", "forget", "west", str(secret(1).hash)]).stdout
    assert told.startswith("forgot 1 record; removed 0 from west")


@pytest.mark.spark
def test_jobs_forget_what_this_process_forgets(spark: SparkSession, tmp_path: Path) -> None:
    data = bytes(range(100))
    one, other = content_in_parts("one", data), content_in_parts("other", data[:40] + bytes(60))
    records = list({v.hash: v for v in (*one, *other, *make_records(12), secret(1), secret(2))}.values())
    archive = made(tmp_path, records, lambda: spark, in_process_bytes=0)
    joins = peer("joins", Module.author(JOINED))
    run(archive, [joins, *PEERS])
    manifest = next(valid for valid in one if valid.type == "P")
    found = archive.forget(manifest.hash, f"//club//notes//{SECRET}-name")
    shared = {valid.hash for valid in one} & {valid.hash for valid in other}
    gone = {valid.hash for valid in one} - shared | {secret(1).hash, secret(2).hash}
    assert (found.removed, found.parts) == (3, len(one) - 1 - len(shared))
    assert hashes(archive) == {valid.hash for valid in records} - gone
    assert not archive.log.state().table("relations")
    assert all(name.startswith("log/") for name in files_with(tmp_path / "west", SECRET))
    write_bundle(tmp_path / "again.bundle", [*records, make_records(1, seed=5)[0]])
    counts = archive.add([tmp_path / "again.bundle"]).batches[-1].counts
    assert (counts["valid"], counts["forgotten"], counts["repeats"]) == (1, len(gone), len(records) - len(gone))
    run(archive, [joins, *PEERS])
    state = archive.log.state()
    assert state.rows("advertisements") - state.rows("selected") == 0
