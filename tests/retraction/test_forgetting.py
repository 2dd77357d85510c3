"""Forgetting: the bytes leave every file of a lace, and no exchange, import, backup or repair brings them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import lace as api
from interlace.pair import blob, hash_of
from interop.harness import filled
from lace.cli.app import app
from lace.errors import InvalidInput
from lace.interlace.loop.refusals import Reason
from lace.limits import RecordLimits
from lace.porcelain.exchange import interlace
from lace.records.keys import SigningKey
from lace.records.validate import validate
from lace.runtime.host.quotas import GateRules
from lace.store.forgotten import note_forgotten
from refusals.links import run as run_links

ANN = SigningKey(bytes(31) + b"\x05")
SECRET = {"group": "club", "app": "diary", "name": "unspeakable"}
THERE = "//club//diary//unspeakable"
WORDS = b"what nobody was to know"
TRACES = (WORDS, b"unspeakable", b"Whispered", b"shame")


def put_secret(lace: api.Lace, content: bytes = WORDS) -> str:
    return lace.put(content, headers={"Whispered": "shame"}, sign=ANN, **SECRET)


def traces(folder: Path) -> list[tuple[str, bytes]]:
    """The words of what was forgotten in any file below a folder."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [(path.name, word) for path in files for word in TRACES if word in path.read_bytes()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


def command(*words: str, code: int = 0, **more: Any) -> Any:
    done = CliRunner().invoke(app, list(words), **more)
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("is_searched", [False, True])
@pytest.mark.parametrize("by_coordinate", [False, True])
def test_the_bytes_leave_every_file(home: Path, is_searched: bool, by_coordinate: bool) -> None:
    folder = home / "here"
    with api.open(folder / "a.lace", create=True) as lace:
        if is_searched:
            lace.store.index_words(lambda _: None)
        kept = lace.put(b"kept", group="club", app="notes", name="kept")
        put_secret(lace, b"older, too: " + WORDS)
        record = put_secret(lace)
        if by_coordinate:
            lace.retract(THERE)
    assert {word for _, word in traces(folder)} == set(TRACES)
    targets = [THERE] if by_coordinate else _versions(folder)
    done = command("forget", "a.lace", *targets)
    assert "forgot 3 records" in done.stdout if by_coordinate else "forgot 2 records" in done.stdout
    assert traces(folder) == []
    with api.open(folder / "a.lace") as lace:
        assert [row.hash for row in lace.list(withdrawn=True)] == [kept]
        assert record in lace.forgotten()
        assert list(lace.verify()) == []
    command("compact", "a.lace")
    command("backup", "a.lace", "b.lace")
    assert traces(folder) == []


def _versions(folder: Path) -> list[str]:
    with api.open(folder / "a.lace") as lace:
        return [row.hash for row in lace.list("//club//diary", withdrawn=True)]


def test_it_does_not_come_back_by_import_or_by_hand(home: Path) -> None:
    with api.open("a.lace", create=True) as lace:
        record = put_secret(lace)
        stored = lace.stored(record)
        lace.put(b"kept", group="club", app="notes", name="kept")
        lace.export("all.bundle")
    command("forget", "a.lace", record)
    for _ in range(2):
        done = command("import", "a.lace", "all.bundle", "--json")
        assert json.loads(done.stdout) | {"bytes": 0} == {
            "stored": 0, "present": 1, "forgotten": 1, "rejected": {}, "bytes": 0,
        }  # fmt: skip
    with api.open("a.lace") as lace:
        with pytest.raises(InvalidInput, match="it was forgotten here"):
            lace.put_stored(stored)
        with pytest.raises(InvalidInput, match="it was forgotten here"):
            lace.put_record(validate(stored).record)  # built elsewhere
        assert lace.stat().records == 1
    assert [name for name, _ in traces(home / "here") if name != "all.bundle"] == []
    assert command("forget", "a.lace", "--list").stdout.split().count(record) == 1
    command("forget", "a.lace", record, "--allow")
    command("import", "a.lace", "all.bundle")
    assert command("get", "a.lace", record).stdout == WORDS.decode()


def test_no_backup_brings_it_back(home: Path) -> None:
    with api.open("a.lace", create=True) as lace:
        record = put_secret(lace)
        lace.put(b"kept", group="club", app="notes", name="kept")
    command("backup", "a.lace", "old.lace")
    command("forget", "a.lace", THERE)
    done = command("restore", "old.lace", "again.lace")
    assert "left out 1 record that you forgot" in done.stderr
    assert traces_of(home, "again.lace") == []
    with api.open("again.lace") as again:
        assert record in again.forgotten()
        assert again.get("//club//notes//kept") == b"kept"
        assert list(again.verify()) == []
        with api.open("old.lace") as old:
            interlace(old, again, expose="all")
        assert not again.store.present(again.forgotten())
    command("restore", "old.lace", "whole.lace", "--with-forgotten")
    assert command("get", "whole.lace", THERE).stdout == WORDS.decode()


def traces_of(home: Path, name: str) -> list[tuple[str, bytes]]:
    return [found for found in traces(home / "here") if found[0].startswith(name)]


def test_a_peer_is_not_asked_for_it_and_is_told(tmp_path: Path) -> None:
    with api.open(tmp_path / "a.lace", create=True) as ours, api.open(tmp_path / "b.lace", create=True) as theirs:
        record = put_secret(theirs)
        theirs.put(b"kept", group="club", app="notes", name="kept")
        interlace(ours, theirs, expose="all")
        ours.forget(THERE)
        for _ in range(2):
            done = interlace(ours, theirs, expose="all")
            assert not done.first.received_hashes
            assert not done.second.sent_hashes
            assert not ours.store.have(theirs.resolve(THERE))
        assert theirs.get(THERE) == WORDS
        assert record in ours.forgotten()


@pytest.mark.parametrize("receiver", [0, 1])
@pytest.mark.parametrize("salted", [False, True])
def test_its_holder_is_told_that_it_is_held_back(receiver: int, salted: bool) -> None:
    gone, kept = blob(b"gone"), blob(b"kept")
    ours = filled([])
    note_forgotten(ours, [hash_of(gone)])
    sides: list[Any] = [[gone, kept], [gone, kept]]
    sides[receiver] = ours
    for _ in range(2):
        ends = run_links(*sides, GateRules(), receiver=receiver, **({} if salted else {"salt": None}))
        sent = ends[1 - receiver].outcome.result
        assert dict(sent.held_back_by_peer.records) | dict(sent.refused_hashes) == {hash_of(gone): Reason.POLICY}
        assert ours.stat().records == 1
    assert ours.settings("refused") == {}  # nothing of it is remembered but its hash


def test_the_parts_of_content_go_and_stay_away(tmp_path: Path) -> None:
    limits = RecordLimits(max_data_bytes=1000)
    large = b"".join(b"%s %d\n" % (WORDS, number) for number in range(300))
    with (
        api.open(tmp_path / "a.lace", create=True, limits=limits) as ours,
        api.open(tmp_path / "b.lace", create=True, limits=limits) as theirs,
    ):
        theirs.put(large, **SECRET)
        interlace(ours, theirs, expose="all")
        assert ours.get(THERE) == large
        done = ours.forget(THERE)
        assert done.parts == len(large) // 1000 + 1
        interlace(ours, theirs, expose="all")
        assert ours.stat().records == 0
    api.compact(tmp_path / "a.lace")
    assert WORDS not in (tmp_path / "a.lace").read_bytes()
    with api.open(tmp_path / "a.lace", limits=limits) as ours:
        ours.put(large, **SECRET)  # what is put here by hand is wanted again
        assert ours.get(THERE) == large


def test_what_is_inside_a_record_does_not_come_by_itself(tmp_path: Path) -> None:
    with api.open(":memory:") as ours, api.open(":memory:") as theirs:
        sealed = put_secret(ours)
        plex = ours.record(sealed).record.plex  # type: ignore[union-attr]
        theirs.put_record(plex)
        theirs.put_record(plex.blob)
        ours.forget(sealed)
        interlace(ours, theirs, expose="all")
        assert ours.stat().records == 0
        ours.put(b"", **SECRET)  # what every record without content holds is not kept out
        ours.forget(THERE)
        assert len(ours.forgotten()) == 4


def test_a_record_that_is_not_here_is_kept_out(home: Path) -> None:
    with api.open("b.lace", create=True) as theirs:
        record = put_secret(theirs)
    command("init", "a.lace")
    command("forget", "a.lace", record)
    command("forget", "a.lace", record)
    with api.open("a.lace") as ours, api.open("b.lace") as theirs:
        interlace(ours, theirs, expose="all")
        assert ours.stat().records == 0
    command("forget", "a.lace", "//club//diary//missing", code=1)
    command("forget", "a.lace", "P.zzzzzz", code=1)
    command("forget", "a.lace", code=2)


def test_repair_leaves_it_out(home: Path) -> None:
    with api.open("a.lace", create=True) as lace:
        record = put_secret(lace)
        lace.put(b"kept", group="club", app="notes", name="kept")
        lace.forget(record)  # and is not compacted: its bytes are still in free pages
        lace.put_record(api.Blob(b"more"))
    assert traces_of(home, "a.lace")
    command("repair", "a.lace")
    assert traces_of(home, "a.lace") == [found for found in traces_of(home, "a.lace") if "damaged" in found[0]]
    with api.open("a.lace") as lace:
        assert record in lace.forgotten()
        assert lace.stat().records == 2


def test_rm_says_what_it_did_not_do(home: Path) -> None:
    with api.open("a.lace", create=True) as lace:
        record = put_secret(lace)
    done = command("rm", "a.lace", record)
    assert "not forgotten" in done.stderr
    assert "lace retract" in done.stderr
