"""Files in and out: what is unchanged is not stored again; checking out loses nothing and stays in its folder."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lace
from lace.porcelain.putting import FileState

PLACE = {"group": "club", "app": "files"}


def make(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def states(results: object) -> Counter[str]:
    return Counter(result.state.value for result in results)  # type: ignore[attr-defined]


@pytest.fixture
def notes(tmp_path: Path) -> lace.Lace:
    return lace.open(tmp_path / "notes.lace", create=True)


FILES = {"a.txt": b"a", "empty": b"", "deep/er/b b.bin": bytes(range(256)) * 40}


def test_a_folder_comes_out_as_it_went_in(notes: lace.Lace, tmp_path: Path) -> None:
    source = make(tmp_path / "in", FILES)
    assert states(notes.put_tree(source, **PLACE)) == {"new": 3}
    assert states(notes.checkout(tmp_path / "out")) == {"new": 3}
    assert files_of(tmp_path / "out") == FILES
    assert states(notes.checkout(tmp_path / "out")) == {"unchanged": 3}


def test_what_is_unchanged_is_not_stored_again(notes: lace.Lace, tmp_path: Path) -> None:
    source = make(tmp_path / "in", FILES)
    list(notes.put_tree(source, **PLACE))
    before = notes.stat().records
    again = list(notes.put_tree(source, **PLACE))
    assert states(again) == {"unchanged": 3}
    assert notes.stat().records == before
    assert {result.hash for result in again} == {row.hash for row in notes.list("//club")}
    (source / "a.txt").write_bytes(b"b")  # of the same length
    make(source, {"new": b"x"})
    assert states(notes.put_tree(source, **PLACE)) == {"unchanged": 2, "changed": 1, "new": 1}
    assert notes.get("//club//files//a.txt") == b"b"
    assert states(notes.put_tree(source, **PLACE, again=True)) == {"changed": 4}


def test_a_header_that_the_tip_lacks_is_a_change(notes: lace.Lace, tmp_path: Path) -> None:
    source = make(tmp_path / "in", {"a": b"a"})
    list(notes.put_tree(source, **PLACE))
    titled = {"headers": {"Title": "t"}}
    assert states(notes.put_tree(source, **PLACE, **titled)) == {"changed": 1}
    assert states(notes.put_tree(source, **PLACE, **titled)) == {"unchanged": 1}
    assert states(notes.put_tree(source, **PLACE)) == {"unchanged": 1}


@pytest.mark.parametrize("more", [-1, 0, 1, 7])
def test_content_in_chunks_is_compared_and_written(tmp_path: Path, more: int) -> None:
    limits = lace.RecordLimits(max_data_bytes=1000)
    big = os.urandom(1000 + more) if more < 7 else os.urandom(5007)
    with lace.open(tmp_path / "notes.lace", create=True, limits=limits) as notes:
        source = make(tmp_path / "in", {"big": big})
        list(notes.put_tree(source, **PLACE))
        assert states(notes.put_tree(source, **PLACE)) == {"unchanged": 1}
        assert states(notes.checkout(tmp_path / "out")) == {"new": 1}
        assert files_of(tmp_path / "out") == {"big": big}
        (source / "big").write_bytes(big[:-1] + bytes([big[-1] ^ 1]))
        assert states(notes.put_tree(source, **PLACE)) == {"changed": 1}
        assert states(notes.checkout(tmp_path / "out")) == {"changed": 1}
        assert files_of(tmp_path / "out") == files_of(source)


def test_content_without_its_parts_is_stored_again(tmp_path: Path) -> None:
    limits = lace.RecordLimits(max_data_bytes=1000)
    with lace.open(tmp_path / "notes.lace", create=True, limits=limits) as notes:
        source = make(tmp_path / "in", {"big": os.urandom(2500)})
        list(notes.put_tree(source, **PLACE))
        part = next(iter(notes.list_blobs())).hash
        notes.store.delete(part)
        (refused,) = notes.checkout(tmp_path / "out")
        assert refused.state == FileState.REFUSED
        assert not files_of(tmp_path / "out")
        assert states(notes.put_tree(source, **PLACE)) == {"changed": 1}
        assert states(notes.checkout(tmp_path / "out")) == {"new": 1}


def test_content_that_the_lace_does_not_hold_is_never_overwritten(notes: lace.Lace, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for content in (b"one", b"two"):
        notes.put(content, **PLACE, name="x")
    make(out, {"x": b"one"})
    assert states(notes.checkout(out)) == {"changed": 1}  # an older version: nothing is lost
    make(out, {"x": b"mine"})
    (refused,) = notes.checkout(out)
    assert (refused.state, refused.refused) == (FileState.REFUSED, "the file has content that this lace does not hold")
    assert files_of(out) == {"x": b"mine"}
    assert states(notes.checkout(out, replace=True)) == {"changed": 1}
    assert files_of(out) == {"x": b"two"}


def test_a_link_in_the_folder_leads_nowhere(notes: lace.Lace, tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", {"kept": b"kept"})
    out = tmp_path / "out"
    out.mkdir()
    (out / "way").symlink_to(outside)
    (out / "file").symlink_to(outside / "kept")
    for name in ("way/evil", "file", "fine"):
        notes.put(b"evil", **PLACE, name=name)
    found = {result.name: result for result in notes.checkout(out, replace=True)}
    assert {name: result.state.value for name, result in found.items()} == {
        "way/evil": "refused",
        "file": "refused",
        "fine": "new",
    }
    assert files_of(outside) == {"kept": b"kept"}


def test_a_file_and_a_folder_of_one_name_are_told(notes: lace.Lace, tmp_path: Path) -> None:
    notes.put(b"file", **PLACE, name="a")
    notes.put(b"below", **PLACE, name="a/b")
    results = list(notes.checkout(tmp_path / "out"))
    assert [result.state.value for result in results] == ["new", "refused"]
    assert "in the way" in results[1].refused


def test_a_place_is_what_comes_out(notes: lace.Lace, tmp_path: Path) -> None:
    for name in ("photos/1", "photos/2/3", "photosynthesis", "single"):
        notes.put(name.encode(), **PLACE, name=name)
    for number, (place, expected) in enumerate(
        [
            ("//club//files", {"photos/1", "photos/2/3", "photosynthesis", "single"}),
            ("//club//files//", {"photos/1", "photos/2/3", "photosynthesis", "single"}),
            ("//club//files//photos", {"1", "2/3"}),
            ("//club//files//photos/", {"1", "2/3"}),
            ("//club//files//single", {"single"}),
            ("//club//files//photos/2/3", {"3"}),
        ]
    ):
        list(notes.checkout(tmp_path / str(number), place))
        assert set(files_of(tmp_path / str(number))) == expected, place
    with pytest.raises(lace.NotFound):
        list(notes.checkout(tmp_path / "none", "//club//nothing"))
    for place in ("//", "//club", "//club//files//x/|/plex"):
        with pytest.raises(lace.InvalidText):
            list(notes.checkout(tmp_path / "none", place))
    notes.put(b"other", group="club", app="other", name="x")
    with pytest.raises(lace.InvalidInput, match="say which one"):
        list(notes.checkout(tmp_path / "none"))


def test_a_time_gives_what_was_the_tip_then(notes: lace.Lace, tmp_path: Path) -> None:
    times = {"2020-01-01": b"old", "2021-01-01T00:00:00+00:00": b"new"}
    for time, content in times.items():
        notes.put(content, **PLACE, name="x", tai=lace.TAI.of_text(time))
    list(notes.checkout(tmp_path / "then", as_of="2020-12-31"))
    list(notes.checkout(tmp_path / "now"))
    assert files_of(tmp_path / "then") == {"x": b"old"}
    assert files_of(tmp_path / "now") == {"x": b"new"}
    with pytest.raises(lace.NotFound):
        list(notes.checkout(tmp_path / "before", as_of="2019-12-31"))
    with pytest.raises(lace.InvalidText, match="a time is"):
        list(notes.checkout(tmp_path / "before", as_of="yesterday"))


def test_a_write_that_fails_leaves_the_file_that_was_there(notes: lace.Lace, tmp_path: Path) -> None:
    hashes = [notes.put(content, **PLACE, name="x") for content in (b"old", b"new" * 10)]
    list(notes.checkout(tmp_path / "out", as_of=notes.record(hashes[0]).parts.tai))

    def fails(_: int) -> None:
        raise OSError(28, "No space left on device")

    (refused,) = notes.checkout(tmp_path / "out", progress=fails)
    assert refused.refused == "No space left on device"
    assert files_of(tmp_path / "out") == {"x": b"old"}


names = st.lists(st.text("ab.é", min_size=1, max_size=3).filter(lambda t: t not in (".", "..")), min_size=1, max_size=3)


@given(st.dictionaries(names.map("/".join), st.binary(max_size=40), max_size=6), st.data())
def test_in_and_out_is_the_same_folder(
    tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes], data: st.DataObject
) -> None:
    from unicodedata import normalize

    folder = tmp_path_factory.mktemp("folder")
    kept: dict[str, bytes] = {}
    for name, content in files.items():
        taken = {"/".join(name.split("/")[:n]) for n in range(1, name.count("/") + 2)}
        if (
            normalize("NFC", name) == name
            and not taken & kept.keys()
            and not any(k.startswith(f"{name}/") for k in kept)
        ):
            kept[name] = content
    source = make(folder / "in", kept)
    source.mkdir(exist_ok=True)
    with lace.open(folder / "one.lace", create=True) as one:
        assert states(one.put_tree(source, **PLACE)) == ({"new": len(kept)} if kept else {})
        changed = data.draw(st.sets(st.sampled_from(sorted(kept)))) if kept else set()
        for name in changed:
            (source / name).write_bytes(kept[name] + b"!")
        found = states(one.put_tree(source, **PLACE))
        assert (found["changed"], found["unchanged"]) == (len(changed), len(kept) - len(changed))
        if kept:
            list(one.checkout(folder / "out"))
            assert files_of(folder / "out") == files_of(source)


ODD = [
    b"a{b}|c",
    b"line\nend",
    b"caf\xe9",
    "café".encode(),
    "cafe\u0301".encode(),
    b"A",
    b"a",
    b"x^41",
    b"n" * 255,
    b"0..9",
]


@pytest.mark.clause("082-NAME-07", "082-ATTR-06", "082-LINK-03")
def test_whatever_a_name_is_made_of_comes_out_as_it_went_in(notes: lace.Lace, tmp_path: Path) -> None:
    source, out = tmp_path / "in", tmp_path / "out"
    (source / "empty" / "er").mkdir(parents=True)
    for number, name in enumerate(ODD):
        (source / os.fsdecode(name)).write_bytes(b"%d" % number)
    (source / "to").symlink_to("./A")
    os.chmod(source / "A", 0o755)
    os.utime(source / "a", ns=(10**18 + 5, 10**18 + 5))
    assert states(notes.put_tree(source, **PLACE)) == {"new": len(ODD) + 2}
    assert states(notes.put_tree(source, **PLACE)) == {"unchanged": len(ODD) + 2}
    assert states(notes.checkout(out)) == {"new": len(ODD) + 2}
    assert sorted(os.listdir(os.fsencode(out))) == sorted([*ODD, b"empty", b"to"])
    assert all((out / os.fsdecode(name)).read_bytes() == b"%d" % number for number, name in enumerate(ODD))
    assert (out / "empty" / "er").is_dir()
    assert os.readlink(out / "to") == "./A"
    assert [os.access(out / name, os.X_OK) for name in "Aa"] == [True, False]
    assert (out / "a").stat().st_mtime_ns == 10**18 + 5
    assert states(notes.checkout(out)) == {"unchanged": len(ODD) + 2}
    os.chmod(source / "A", 0o644)
    os.utime(source / "a")
    assert states(notes.put_tree(source, **PLACE)) == {"unchanged": len(ODD) + 1, "changed": 1}
    assert states(notes.checkout(out)) == {"unchanged": len(ODD) + 1, "changed": 1}
    assert not os.access(out / "A", os.X_OK)


def test_what_sync_knows_of_a_folder_neither_goes_in_nor_comes_out(notes: lace.Lace, tmp_path: Path) -> None:
    source = make(tmp_path / "in", {"kept": b"x", ".lace/folder.json": b"{}", "d/.lace-1-2.part": b"half"})
    assert states(notes.put_tree(source, **PLACE)) == {"new": 1}
    notes.put(b'{"lace": "/elsewhere/private.lace"}', **PLACE, name=".lace/folder.json")
    found = {result.name: result.state.value for result in notes.checkout(tmp_path / "out", replace=True)}
    assert found == {"kept": "new", ".lace/folder.json": "refused"}
    assert not (tmp_path / "out" / ".lace").exists()


@pytest.mark.clause("082-LINK-01", "082-ATTR-03")
def test_what_leads_out_of_the_folder_or_is_no_file_is_told(notes: lace.Lace, tmp_path: Path) -> None:
    source, outside = make(tmp_path / "in", {"kept": b"x"}), make(tmp_path / "outside", {"kept": b"kept"})
    (source / "way").symlink_to("../outside")
    os.mkfifo(source / "pipe")
    assert states(notes.put_tree(source, **PLACE)) == {"new": 1, "refused": 2}
    link = {"headers": {"File-Kind": "link"}}
    for name, target in {"a": b"../outside", "b": str(outside).encode(), "c/d": b"../..", "e^2Ff": b"kept"}.items():
        notes.put(target, **PLACE, **link, name=name)
    notes.put(b"evil", **PLACE, name="a/kept")
    found = {result.name: result.state.value for result in notes.checkout(tmp_path / "out", replace=True)}
    assert found == {
        "a": "refused",
        "b": "refused",
        "c/d": "refused",
        "e^2Ff": "refused",
        "a/kept": "new",
        "kept": "new",
    }
    assert files_of(outside) == {"kept": b"kept"}
