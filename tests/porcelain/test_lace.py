"""The Lace object: the verbs of a developer on a file and in memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from io import BytesIO
from pathlib import Path

import pytest

import lace
from lace.errors import InvalidRecord, InvalidText, KeyUnavailable, NotFound, StoreError
from lace.intake.batch import BatchLimits
from lace.limits import RecordLimits
from lace.porcelain.lace import Lace
from lace.records.keys import SigningKey, SigningSecret
from lace.records.model import Blob
from lace.records.write import encode_record
from lace.runtime.identity.keyring import KeyRing
from lace.store import MemoryStore

KEY = SigningKey(bytes(31) + b"\x07")
OTHER = SigningKey(bytes(31) + b"\x09")
OLD, NEW = "1640995200:000000000", "1640995200:000000001"


@pytest.fixture(params=["file", "memory"])
def notes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lace]:
    keys = KeyRing(tmp_path / "home")
    path = tmp_path / "notes.lace" if request.param == "file" else ":memory:"
    with lace.open(path, create=True, keys=keys) as opened:
        yield opened


def put(notes: Lace, content: bytes, name: str = "links/1", tai: str | None = None, **more: object) -> lace.RecordHash:
    return notes.put(content, group="u", app="ding", name=name, tai=tai, **more)  # type: ignore[arg-type]  # kwargs


def test_what_was_put_can_be_got_by_hash_by_address_and_by_coordinate(notes: Lace) -> None:
    found = put(notes, b"hello", sign=KEY)
    for target in (found, f"////{found}", "//u//ding//links/1", found[:12], found[:12] + "…"):
        assert notes.get(target) == b"hello"
    assert notes.record(found).parts.signed_by == KEY.verifier
    assert notes.stored(found) == notes.record(found).stored


def test_a_put_is_durable_when_it_returns(tmp_path: Path) -> None:
    with lace.open(tmp_path / "a.lace", create=True) as writer:
        found = put(writer, b"hello")
        with lace.open(tmp_path / "a.lace", read_only=True) as reader:
            assert reader.get(found) == b"hello"


def test_content_may_be_bytes_a_path_or_a_stream(notes: Lace, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"hello")
    contents = [b"hello", bytearray(b"hello"), memoryview(b"hello"), file, BytesIO(b"hello")]
    assert len({put(notes, content, tai=OLD) for content in contents}) == 1  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="encode"):
        put(notes, "hello")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="content must be bytes, a Path or an open file, not NoneType"):
        put(notes, None)  # type: ignore[arg-type]


def test_headers_and_links_are_written_in_canonical_order(notes: Lace) -> None:
    target = Blob(b"x").hash
    found = put(notes, b"", headers={"X-B": "2", "A": "1"}, links=[("source", target), ("evidence", target)])
    assert notes.record(found).parts.headers == (
        ("+Link", f"source {target}"),
        ("+Link", f"evidence {target}"),
        ("A", "1"),
        ("X-B", "2"),
    )
    with pytest.raises(InvalidText, match="link"):
        put(notes, b"", links=[("source", "nowhere")])


def test_a_key_of_the_ring_signs_by_name_and_by_verifier(tmp_path: Path) -> None:
    ring = KeyRing(tmp_path / "home")
    entry = ring.add("me", SigningSecret.generate())
    with lace.open(":memory:", keys=ring) as notes:
        for name in ("me", entry.verifier):
            assert notes.record(put(notes, b"x", sign=name)).parts.signed_by == entry.verifier
        with pytest.raises(KeyUnavailable):
            put(notes, b"x", sign="nobody")


@pytest.mark.clause("110-RES-01")
def test_a_hash_gives_that_record_or_nothing(notes: Lace) -> None:
    first = put(notes, b"one", tai=OLD)
    put(notes, b"two", tai=NEW)
    assert notes.get(f"////{first}") == b"one"
    for target in (Blob(b"x").hash, f"////{Blob(b'x').hash}", "P.zzzzzzzz"):
        with pytest.raises(NotFound):
            notes.get(target)


@pytest.mark.clause("110-VERB-01", "110-VER-01", "110-VER-09", "110-RES-03")
def test_a_coordinate_means_its_tip_by_time_and_then_by_hash(notes: Lace) -> None:
    put(notes, b"new", tai=NEW)
    put(notes, b"old", tai=OLD)
    assert notes.get("//u//ding//links/1") == b"new"
    rival = put(notes, b"rival", tai=NEW)
    tip = max(row.hash for row in notes.list("//u//ding//links/1") if row["TAI"] == NEW)
    assert notes.resolve("//u//ding//links/1") == tip
    assert rival in {row.hash for row in notes.list("//u//ding//links/1")}


@pytest.mark.clause("110-VER-02", "110-VER-03", "110-VER-04", "110-VER-05", "110-VER-06", "110-VER-07", "110-VER-08")
def test_a_version_selector_chooses_among_the_records_of_a_coordinate(notes: Lace) -> None:
    records = {
        ("plex", OLD): put(notes, b"a", tai=OLD),
        ("plex", NEW): put(notes, b"b", tai=NEW),
        (KEY.verifier, OLD): put(notes, b"c", tai=OLD, sign=KEY),
        (KEY.verifier, NEW): put(notes, b"d", tai=NEW, sign=KEY),
        (OTHER.verifier, OLD): put(notes, b"e", tai=OLD, sign=OTHER),
    }
    here = "//u//ding//links/1/|/"
    assert notes.resolve(f"{here}plex") == records["plex", NEW]
    assert notes.resolve(f"{here}plex/{OLD}") == records["plex", OLD]
    assert notes.resolve(f"{here}plex/{OLD}/{records['plex', OLD]}") == records["plex", OLD]
    assert notes.resolve(f"{here}seal") == records[KEY.verifier, NEW]
    assert notes.resolve(f"{here}seal/{OTHER.verifier}") == records[OTHER.verifier, OLD]
    assert notes.resolve(f"{here}seal/{KEY.verifier}/{OLD}") == records[KEY.verifier, OLD]
    exact = f"{here}seal/{KEY.verifier}/{OLD}/{records[KEY.verifier, OLD]}"
    assert notes.resolve(exact) == records[KEY.verifier, OLD]
    with pytest.raises(NotFound, match="there is no record") as caught:
        notes.resolve(f"{here}plex/{OLD}/{records['plex', NEW]}")
    assert "5 other versions" in caught.value.__notes__[0]


def test_a_beginning_that_several_hashes_share_is_refused() -> None:
    store = MemoryStore()
    with Lace(store) as notes:
        seen: dict[str, str] = {}
        number = 0
        while True:  # by the birthday bound two of some thousand hashes share four characters
            found = notes.put_record(Blob(str(number).encode()))
            number += 1
            if found[:6] in seen:
                break
            seen[found[:6]] = found
        with pytest.raises(InvalidText, match="2 hashes begin with"):
            notes.resolve(found[:6])


@pytest.mark.clause("110-ROW-01", "110-ROW-03")
def test_a_listing_has_a_row_per_hash_with_the_fields_asked_for(notes: Lace) -> None:
    first = put(notes, b"one", tai=OLD, sign=KEY, headers=[("X-A", "1"), ("X-A", "2")])
    second = put(notes, b"three", tai=NEW)
    rows = list(notes.list())
    assert [row.hash for row in rows] == [first, second]
    assert rows[0].coordinate == rows[1].coordinate == "//u//ding//links/1"
    assert (rows[0]["Signed-By"], rows[1]["Signed-By"], rows[1]["Data-Length"]) == (KEY.verifier, "", "5")
    assert [row.fields.get("X-A") for row in notes.list(columns=["X-A"])] == [("1", "2"), None]


@pytest.mark.clause("110-ROW-02")
def test_a_row_cannot_be_changed(notes: Lace) -> None:
    put(notes, b"x")
    row = next(iter(notes.list()))
    with pytest.raises(FrozenInstanceError):
        row.hash = row.hash  # type: ignore[misc]


@pytest.mark.clause("110-VERB-02")
@pytest.mark.parametrize(
    "prefix, names",
    [
        ("//", ["links", "links/1", "links/1/a", "links/2", "linksmore"]),
        ("//u", ["links", "links/1", "links/1/a", "links/2", "linksmore"]),
        ("//u//ding", ["links", "links/1", "links/1/a", "links/2", "linksmore"]),
        ("//u//ding//", ["links", "links/1", "links/1/a", "links/2", "linksmore"]),
        ("//u//ding//links/", ["links/1", "links/1/a", "links/2"]),
        ("//u//ding//links/1", ["links/1"]),
        ("//u//din", []),
        ("//v", []),
    ],
)
def test_a_listing_shows_what_stands_under_its_prefix(notes: Lace, prefix: str, names: list[str]) -> None:
    for name in ("links", "links/1", "links/1/a", "links/2", "linksmore"):
        put(notes, b"x", name=name)
    assert [row["Name"] for row in notes.list(prefix)] == names


def test_tips_are_the_newest_of_each_coordinate(notes: Lace) -> None:
    for name in ("a", "b"):
        put(notes, b"old", name=name, tai=OLD)
        put(notes, b"new", name=name, tai=NEW)
    assert [notes.get(row.hash) for row in notes.list(tips=True)] == [b"new", b"new"]
    assert [row["TAI"] for row in notes.list(tips=True)] == [NEW, NEW]


def test_blobs_have_a_listing_of_their_own(notes: Lace) -> None:
    put(notes, b"x")
    found = notes.put_record(Blob(b"abc"))
    assert [(row.hash, row["Data-Length"]) for row in notes.list_blobs()] == [(found, "3")]
    assert found not in {row.hash for row in notes.list()}


def test_facts_are_those_of_one_record_or_of_all(notes: Lace) -> None:
    first, second = put(notes, b"x", name="a"), put(notes, b"y", name="b")
    assert {fact.values[0] for fact in notes.facts(first)} == {first}
    everything = list(notes.facts())
    assert [fact.values[0] for fact in everything if fact.predicate.name == "Have"] == [first, second]
    assert set(notes.facts(second)) <= set(everything)


def test_deleting_is_all_or_nothing_and_takes_the_facts_along(notes: Lace) -> None:
    first, second = put(notes, b"x", name="a"), put(notes, b"y", name="b")
    with pytest.raises(NotFound):
        notes.delete(first, Blob(b"z").hash)
    assert notes.get(first) == b"x"
    with pytest.raises(InvalidText, match="by their hash"):
        notes.delete("//u//ding//a")
    assert notes.delete(first) == 1
    assert {fact.values[0] for fact in notes.facts()} == {second}
    with pytest.raises(NotFound):
        notes.get("//u//ding//a")


@pytest.mark.clause("110-RES-02")
def test_invalid_bytes_are_refused_and_appear_nowhere(notes: Lace) -> None:
    stored = bytearray(encode_record(Blob(b"hello")))
    stored[-1] ^= 1
    with pytest.raises(InvalidRecord):
        notes.put_stored(bytes(stored))
    assert notes.stat().records == 0
    assert list(notes.facts()) == []


@pytest.mark.clause("110-VERB-03")
def test_given_records_are_stored_as_they_are(notes: Lace) -> None:
    stored = encode_record(Blob(b"hello"))
    found = notes.put_stored(stored)
    assert notes.stored(found) == stored


def test_large_content_goes_through_the_store_in_chunks(tmp_path: Path) -> None:
    limits = RecordLimits(max_data_bytes=1000)
    file = tmp_path / "big"
    file.write_bytes(bytes(range(256)) * 40)
    seen: list[int] = []
    with lace.open(tmp_path / "a.lace", create=True, limits=limits) as notes:
        found = notes.put(file, group="u", app="a", name="big", sign=KEY, progress=seen.append)
        assert sum(seen) == notes.content_length(found) == 10240
        assert max(len(piece) for piece in notes.content(found)) == 1000
        assert notes.get("//u//a//big") == file.read_bytes()
        assert len(list(notes.list_blobs())) == 11


def test_a_tree_is_stored_file_by_file_and_tells_what_it_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(b"a")
    (folder / "sub" / "cafe\u0301").write_bytes(b"b")
    (folder / "bad{name}").write_bytes(b"c")
    (folder / "link").symlink_to(folder / "a.txt")
    with Lace(MemoryStore(), batches=BatchLimits(max_records=2)) as notes:
        results = {result.name: result for result in notes.put_tree(folder, group="u", app="files", name="home/")}
        assert set(results) == {"home/a.txt", "home/sub/cafe^CC^81", "home/bad^7Bname^7D", "home/link"}
        assert results["home/link"].refused == "a link that leads out of the folder is not kept"
        assert notes.get("//u//files//home/sub/cafe^CC^81") == b"b"
        assert notes.stat().records == 3


def test_results_of_a_tree_come_only_once_they_are_durable(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}").write_bytes(b"x%d" % number)
    store = MemoryStore()
    with Lace(store, batches=BatchLimits(max_records=2)) as notes:
        for result in notes.put_tree(tmp_path, group="u", app="a"):
            assert result.hash is not None
            assert store.have(result.hash)


def test_verifying_finds_damage_in_a_stored_record(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "a.lace"
    with lace.open(path, create=True) as notes:
        put(notes, b"a", name="a", sign=KEY)
        damaged = put(notes, b"damage me", name="b", sign=KEY)
        assert list(notes.verify()) == []
    body = notes_body = None
    connection = sqlite3.connect(path)
    for record_id, notes_body in connection.execute("SELECT id, body FROM records").fetchall():
        if bytes(notes_body).endswith(b"damage me"):
            body = bytes(notes_body)[:-1] + b"E"
            connection.execute("UPDATE records SET body = ? WHERE id = ?", (body, record_id))
    connection.commit()
    connection.close()
    assert body is not None
    with lace.open(path, read_only=True) as notes:
        (finding,) = notes.verify()
        assert (finding.hash, finding.id) == (damaged, 2)
        assert "digest" in finding.finding


def test_opening_what_is_not_there_creates_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        lace.open(tmp_path / "a.lace")
    assert not (tmp_path / "a.lace").exists()
    (tmp_path / "text").write_text("hello, this is no lace " * 100)
    with pytest.raises(StoreError):
        lace.open(tmp_path / "text")


def test_every_public_name_is_found_and_importing_costs_little() -> None:
    for name in lace.__all__:
        assert getattr(lace, name) is not None
        assert name in dir(lace)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = lace.nothing
    code = (
        "import sys, lace\n"
        "heavy = {'numpy', 'rich', 'click', 'sqlite3', 'coincurve', 'pyspark', 'websockets', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    source = Path(lace.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": str(source)}, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n"
