"""Paths as Names and back (082): reversible, legal in a record, and nothing but what a path has for a Name."""

from __future__ import annotations

import contextlib
import json
import os
import random
from pathlib import Path
from unicodedata import is_normalized

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.notation.tai import TAI
from lace.records.fileform import (
    Attributes,
    FileKind,
    base_headers,
    bases_of,
    leads_inside,
    name_of,
    path_of,
    read_attributes,
)
from lace.records.model import Plex

VECTORS = json.loads((Path(__file__).parent.parent / "vectors" / "folder.json").read_text(encoding="utf-8"))

nasty = st.sampled_from([*b"{}|^\n\x7f\\:.aA0E57\xe9\xcc\x81\xff "])
nasty_part = st.lists(nasty, min_size=1, max_size=255).map(bytes)
text_part = st.text(
    st.sampled_from("éeÉ\u0301\u0327\u1100\u1161\u11a8ạ.^C5😀\ufb01K\u212b"), min_size=1, max_size=60
).map(str.encode)
parts = (nasty_part | text_part | st.binary(min_size=1, max_size=255)).filter(
    lambda part: part not in (b".", b"..") and b"/" not in part and b"\0" not in part
)


@pytest.mark.clause("082-NAME-01", "082-NAME-02", "082-NAME-03", "082-NAME-04", "082-NAME-05", "082-NAME-06")
@given(st.lists(parts, min_size=1, max_size=2))
def test_every_path_has_a_name_that_records_can_hold_and_that_leads_back(path: list[bytes]) -> None:
    name = name_of(path)
    assert path_of(name) == tuple(path)
    assert is_normalized("NFC", name)
    assert max(len(segment.encode()) for segment in name.split("/")) <= 128
    if len(name.encode()) < 1000:
        Plex(group="g", app="a", name=name, tai=TAI("1640995200:000000000"))


@pytest.mark.clause("082-NAME-07")
@given(st.text(st.sampled_from("^0123456789ABCDEFab./é"), min_size=1, max_size=20))
def test_a_name_has_one_path_or_none(name: str) -> None:
    try:
        path = path_of(name)
    except InvalidText:
        return
    assert name_of(path) == name
    assert all(part not in (b"", b".", b"..") and b"/" not in part and b"\0" not in part for part in path)


@pytest.mark.parametrize("name", ["^2E^2E/x", "a^2Fb", "a^00", "^41", "x^", "..", "a//b", "^2E", "x^/", "a^/b", "0..9"])
def test_what_no_path_spells_is_refused(name: str) -> None:
    with pytest.raises(InvalidText):
        path_of(name)


@pytest.mark.parametrize("vector", VECTORS["names"], ids=lambda vector: vector["name"][:30])
def test_the_vectors_of_names(vector: dict[str, str]) -> None:
    path = tuple(bytes.fromhex(part) for part in vector["path"])
    assert name_of(path) == vector["name"]
    assert path_of(vector["name"]) == path


@pytest.mark.clause("082-ATTR-01", "082-ATTR-02", "082-ATTR-03")
@pytest.mark.parametrize("vector", VECTORS["attributes"], ids=lambda vector: str(vector["headers"])[:40])
def test_the_vectors_of_attributes(vector: dict) -> None:  # type: ignore[type-arg]
    said = Attributes(FileKind(vector["kind"]), vector["executable"], vector["time_ns"])
    headers = tuple((name, value) for name, value in vector["headers"])
    assert said.headers() == headers
    assert read_attributes(headers) == said


@pytest.mark.clause("082-ATTR-04")
def test_what_headers_say_that_is_not_known_is_a_plain_file() -> None:
    odd = [("File-Kind", "socket"), ("File-Mode", "setuid"), ("File-Time", "yesterday"), ("Other", "x")]
    assert read_attributes(odd) == Attributes()
    assert not read_attributes([("File-Kind", "link"), ("File-Mode", "executable")]).executable


@pytest.mark.clause("082-ATTR-05")
def test_a_time_alone_makes_no_difference() -> None:
    assert Attributes(time_ns=1).means_same(Attributes(time_ns=2))
    assert not Attributes(executable=True).means_same(Attributes())


@pytest.mark.clause("082-BASE-01")
def test_a_version_names_what_it_takes_the_place_of() -> None:
    hashes = [f"P.{'0' * 43}.H3", f"S.{'0' * 43}.H3"]
    headers = [("Base+Link", "other P.0.H3"), *base_headers(hashes), ("Title", "x")]
    assert bases_of(headers) == tuple(hashes)


@pytest.mark.clause("082-LINK-01", "082-LINK-02")
@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("a", "b", True), ("a/b", "../c", True), ("a/b", "../../c", False), ("a", "../x", False), ("a", "/etc", False),
        ("a/b/c", "./../..//d/e", True), ("a", "", False), ("a", "b/../../x", False), ("a/b", "c/../../..", False),
        ("a/b/c", "d/../e", False), ("a/b/c", "../d/../e", False), ("a/b", "..", True), ("a/b", "../..", False),
    ],
)  # fmt: skip
def test_a_link_leads_inside_or_is_not_kept(path: str, target: str, inside: bool) -> None:
    assert leads_inside(path.encode().split(b"/"), target.encode()) is inside


@pytest.mark.clause("082-LINK-01", "082-LINK-02")
def test_no_chain_of_links_that_are_kept_leads_out(tmp_path: Path) -> None:
    draw = random.Random(28)
    made = 0
    for number in range(100):
        root = tmp_path / str(number)
        for folder in ("a/b", "c"):
            (root / folder).mkdir(parents=True)
        for place in draw.sample(["a/b/x", "a/b/y", "a/x", "a/y", "c/x", "c/y", "x", "y"], 6):
            target = "/".join(
                draw.choice(["..", "..", "x", "y", "a", "b", "c", "."]) for _ in range(draw.randint(1, 5))
            )
            if leads_inside(place.encode().split(b"/"), target.encode()):
                (root / place).symlink_to(target)
                made += 1
        for link in root.rglob("*"):
            with contextlib.suppress(RuntimeError, OSError):  # links that lead to each other
                assert link.resolve(strict=True).is_relative_to(root), (link, os.readlink(link))
    assert made > 100
