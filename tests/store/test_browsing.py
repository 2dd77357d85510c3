"""Pages of a store file are what reading all of it gives, cut at a key and a limit."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lace
from lace.store.browsing import Browser

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


@settings(max_examples=15)
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
