"""Pages of a store file are what reading all of it gives, cut at a key and a limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import lace
from lace.porcelain.opening import open_lace
from lace.store.browsing import Browser, Wanted
from tries import tries

# Characters on both sides of "/" in the order of bytes, and one of several bytes.
SEGMENT = st.text(alphabet="a-.0é", min_size=1, max_size=2).filter(lambda text: text not in (".", ".."))
NAME = st.lists(SEGMENT, min_size=1, max_size=3).map("/".join)


def naive_children(names: list[str], under: str) -> list[tuple[str, int]]:
    """Folders and names directly below a name, with how many records each holds."""
    found: dict[str, int] = {}
    for name in names:
        if name.startswith(under):
            segment, slash, _ = name[len(under) :].partition("/")
            found[under + segment + slash] = found.get(under + segment + slash, 0) + 1
    # a folder stands where the first name below it stands
    return sorted(
        found.items(), key=lambda item: min(n.encode() for n in names if n == item[0] or _is_below(n, item[0]))
    )


def _is_below(name: str, folder: str) -> bool:
    return folder.endswith("/") and name.startswith(folder)


@tries(15)
@given(names=st.lists(NAME, max_size=25), limit=st.integers(1, 4), under=st.sampled_from(["", "a/", "é/", "a/a/"]))
def test_children_are_found_by_jumping_as_by_reading(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], limit: int, under: str
) -> None:
    path = tmp_path_factory.mktemp("b") / "b.lace"
    with lace.open(path, create=True) as opened:
        with opened.batch() as batch:
            for number, name in enumerate(names):
                batch.put(b"%d" % number, group="g", app="a", name=name)
        with Browser(path) as browser:
            space = browser.space("g", "a")
            assert (space is None) == (not names)
            seen: list[tuple[str, int]] = []
            start: str | None = ""
            while space is not None and start is not None:
                page = browser.children(space, under, start=start, limit=limit, count_to=100)
                assert len(page.rows) <= limit
                seen += [(child.name, child.held.number) for child in page.rows]
                start = page.next
            assert seen == naive_children(names, under)


def test_versions_come_newest_first_and_go_on_behind_one(tmp_path: Path) -> None:
    path = tmp_path / "v.lace"
    with lace.open(path, create=True) as opened:
        with opened.batch() as batch:
            for number in range(30):  # three of each instant
                batch.put(
                    b"%d" % number, group="g", app="a", name="n", tai=f"{1700000000 + number // 3:010d}:000000000"
                )
        expected = [entry.hash for entry in opened.store.versions("g", "a", "n")][::-1]
        with Browser(path) as browser:
            space = browser.space("g", "a")
            assert space is not None
            seen = browser.versions(space, "n", limit=7)
            while page := browser.versions(space, "n", before=seen[-1], limit=7):
                seen += page
        assert [entry.hash for entry in seen] == expected


def test_spaces_that_hold_nothing_any_more_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.lace"
    with lace.open(path, create=True) as opened:
        gone = opened.put(b"x", group="a", app="a", name="n")
        for group, app in (("b", "a"), ("b", "b"), ("c/d", "a")):
            opened.put(b"x", group=group, app=app, name="n")
        opened.delete(gone)
        with Browser(path) as browser:
            found = browser.spaces(limit=10)
            assert [(space.group, space.app) for space in found] == [("b", "a"), ("b", "b"), ("c/d", "a")]
            assert [space.app for space in browser.spaces(group="b", limit=10)] == ["a", "b"]
            assert [space.group for space in browser.spaces(start=("b", "b"), limit=1)] == ["b"]
            opened.put(b"x", group="0", app="a", name="n")  # seen without opening again
            assert browser.spaces(limit=1)[0].group == "0"


SIGNED, UNSIGNED = lace.generate_key(), None
STRANGER = lace.generate_key()
VERSION = st.tuples(st.sampled_from([SIGNED, STRANGER, UNSIGNED]), st.integers(0, 3))


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every coordinate has many versions."""
    monkeypatch.setattr("lace.store.browsing._FEW", 0)


@pytest.mark.usefixtures("few")
@tries(25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions=st.lists(VERSION, min_size=1, max_size=12), horizon=st.sampled_from([None, 0]), is_known=st.booleans())
def test_the_tip_is_among_the_candidates_whoever_wrote_and_whenever(
    tmp_path_factory: pytest.TempPathFactory,
    versions: list[tuple[lace.SigningKey | None, int]],
    horizon: int | None,
    is_known: bool,
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.lace"
    with open_lace(path, create=True) as made, made.batch() as batch:
        for number, (key, instant) in enumerate(versions):
            tai = f"{(1_700_000_000 if instant < 3 else 9_000_000_000) + instant:010d}:000000000"
            batch.put(b"%d" % number, group="g", app="a", name="n", tai=tai, sign=key)
    with open_lace(path, horizon_s=horizon) as opened, Browser(path) as browser:
        opened.know_key(STRANGER.verifier, forget=True)
        opened.know_key(SIGNED.verifier, forget=not is_known)
        signers, until = opened.tip_bounds()
        wanted = Wanted(tuple(signers), within=len(versions))
        wanted = wanted if until is None else wanted._replace(until=str(until))
        space = browser.space("g", "a")
        assert space is not None
        found, is_whole = browser.candidates(space, "n", wanted)
        assert is_whole
        expected = opened.choose_tip(opened.store.versions("g", "a", "n"))
        chosen = opened.choose_tip(found)
        assert (chosen and chosen.entry) == (expected and expected.entry)


@pytest.mark.parametrize("above", [31, 32, 33, 1_000])
def test_strangers_move_no_tip_however_many_versions_they_write(tmp_path: Path, above: int) -> None:
    path = tmp_path / "f.lace"
    with lace.open(path, create=True) as opened:
        kept = opened.put(b"ours", group="g", app="a", name="n", tai="1700000000:000000000", sign=SIGNED)
        with opened.batch() as batch:
            for number in range(above):
                tai = f"{1_700_000_001 + number:010d}:000000000"
                batch.put(b"%d" % number, group="g", app="a", name="n", tai=tai)
        assert opened.resolve("//g//a//n") == kept
        with Browser(path) as browser:
            space = browser.space("g", "a")
            assert space is not None

            def tip(within: int) -> tuple[str, bool]:
                wanted = Wanted((str(SIGNED.verifier),), within=within)
                child = browser.children(space, limit=1, count_to=10, wanted=wanted).rows[0]
                chosen = opened.choose_tip(child.candidates)
                assert chosen is not None
                assert browser.candidates(space, "n", wanted) == (list(child.candidates), child.is_searched)
                return chosen.entry.hash, child.is_searched

            assert tip(within=above + 1) == (kept, True)
            if above > 31:  # few versions are read whatever the limit is; with more, what was not looked at is said
                found, is_searched = tip(within=above)
                assert found != kept
                assert not is_searched


def test_many_versions_of_one_instant_are_ordered_by_their_hashes(tmp_path: Path) -> None:
    path = tmp_path / "i.lace"
    with lace.open(path, create=True) as opened:
        with opened.batch() as batch:
            for number in range(200):
                batch.put(b"%d" % number, group="g", app="a", name="n", tai="1700000000:000000000")
        with Browser(path) as browser:
            space = browser.space("g", "a")
            assert space is not None
            found, is_whole = browser.candidates(space, "n", Wanted(within=200))
            assert is_whole
            assert found[-1].hash == opened.resolve("//g//a//n")
            assert not browser.candidates(space, "n", Wanted(within=199)).is_whole
