"""Pages of a store file are what reading all of it gives, cut at a key and a limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lace
from lace.porcelain.lace import open_lace
from lace.store.base import Entry
from lace.store.browsing import Browser
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


KEYS = [None, lace.generate_key(), lace.generate_key()]
VERSION = st.tuples(st.sampled_from(KEYS), st.integers(0, 3))


@tries(25)
@given(versions=st.lists(VERSION, max_size=12), until=st.integers(0, 4), limit=st.integers(1, 4))
def test_versions_come_newest_first_however_they_came_and_wherever_pages_end(
    tmp_path_factory: pytest.TempPathFactory,
    versions: list[tuple[lace.SigningKey | None, int]],
    until: int,
    limit: int,
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.lace"
    with open_lace(path, create=True) as opened, Browser(path) as browser:
        with opened.batch() as batch:
            for number, (key, instant) in enumerate(versions):
                batch.put(b"%d" % number, group="g", app="a", name="n", tai=_instant(instant), sign=key)
        listed = opened.store.versions("g", "a", "n")
        ordered = sorted(listed, key=lambda entry: (entry.tai, entry.hash), reverse=True)
        assert ordered == listed[::-1]
        assert list(opened.store.newest_first("g", "a", "n")) == ordered
        bounded = [entry for entry in ordered if entry.tai <= _instant(until)]
        assert list(opened.store.newest_first("g", "a", "n", until=_instant(until))) == bounded
        space = browser.space("g", "a")
        seen: list[Entry] = []
        while space and (page := browser.versions(space, "n", before=seen[-1] if seen else None, limit=limit)):
            seen += page
        assert seen == ordered


def _instant(number: int) -> str:
    return f"{1_700_000_000 + number}:000000000"


@pytest.mark.parametrize("count", [1, 200, 1_100, 2_500])  # above the rows of a page, and of two
def test_many_versions_of_one_instant_are_ordered_by_their_hashes(tmp_path: Path, count: int) -> None:
    path = tmp_path / "i.lace"
    with lace.open(path, create=True) as opened:
        with opened.batch() as batch:
            for number in range(count):
                batch.put(b"%d" % number, group="g", app="a", name="n", tai="1700000000:000000000")
        ordered = sorted(opened.store.versions("g", "a", "n"), key=lambda entry: entry.hash, reverse=True)
        assert list(opened.store.newest_first("g", "a", "n")) == ordered
        assert opened.resolve("//g//a//n") == ordered[0].hash
        with Browser(path) as browser:
            space = browser.space("g", "a")
            assert space is not None
            assert browser.versions(space, "n", limit=20) == ordered[:20]
