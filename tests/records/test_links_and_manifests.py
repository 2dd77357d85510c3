"""Record links and the large-content convention of 010."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidRecord
from lace.notation.tai import TAI
from lace.records.link import LinkWords, is_target, link_header, parse_link
from lace.records.manifest import Piece, content_length, full_hash, is_manifest, manifest_pieces
from lace.records.model import Blob, Header, Plex, ValidRecord, sorted_headers
from lace.records.validate import validate
from lace.records.write import encode_record

TARGET = Blob(b"target").hash

LINKS = [
    pytest.param("+Link", f"source {TARGET}", LinkWords("source", TARGET), marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("Chunk+Link", f"0..5 {TARGET}", LinkWords("0..5", TARGET), marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("Link", f"source {TARGET}", None, marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("+Links", f"source {TARGET}", None, marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("+link", f"source {TARGET}", None, marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("+Link", f"a b  c {TARGET}", LinkWords("a b  c", TARGET), marks=pytest.mark.clause("010-LINK-02")),
    pytest.param("+Link", f"a  {TARGET}", LinkWords("a ", TARGET), marks=pytest.mark.clause("010-LINK-02")),
    pytest.param(
        "+Link", "x Q.0000.H9", LinkWords("x", "Q.0000.H9"), marks=pytest.mark.clause("010-LINK-03", "020-ID-04")
    ),
    pytest.param("+Link", "x z.~l.a.b", LinkWords("x", "z.~l.a.b"), marks=pytest.mark.clause("010-LINK-03")),
    pytest.param("+Link", TARGET, None, marks=pytest.mark.clause("010-LINK-04")),
    pytest.param("+Link", f" {TARGET}", None, marks=pytest.mark.clause("010-LINK-05")),
    pytest.param("+Link", f"{TARGET} source", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x PP.0000.H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x .0000.H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x 1.0000.H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x P.0000", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x P.0000.", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x P..H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x P.01.H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x P.00000.H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", "x P.00=.H3", None, marks=pytest.mark.clause("010-LINK-06")),
    pytest.param("+Link", f"x {TARGET} ", None, marks=pytest.mark.clause("010-LINK-06")),
]


@pytest.mark.parametrize(("name", "value", "link"), LINKS)
def test_a_header_is_a_link_or_it_is_not(name: str, value: str, link: LinkWords | None) -> None:
    assert parse_link(name, value) == link


@pytest.mark.clause("010-CONV-01")
@pytest.mark.parametrize("word", ["request", "supersedes", "source", "evidence", "anything else"])
def test_any_word_may_tag_a_link(word: str) -> None:
    assert parse_link(*link_header(word, TARGET)) == LinkWords(word, TARGET)
    with pytest.raises(ValueError, match="not a record link"):
        link_header(word, "nothing")
    assert is_target(TARGET)


# Manifests; what porcelain writes and reads through them is in tests/porcelain/test_content.py


def plex_with(*headers: Header, data: bytes = b"") -> ValidRecord:
    plex = Plex(
        group="u", app="files", name="big", tai=TAI("1640995200:000000000"), headers=sorted_headers(headers),
        blob=Blob(data),
    )  # fmt: skip
    return validate(encode_record(plex))


def total(length: str) -> Header:
    return "Content-Total-Length", length


@pytest.mark.clause("010-CONV-02", "010-CONV-03", "010-CONV-08")
@given(st.lists(st.integers(1, 10**12), max_size=6), st.booleans())
def test_a_manifest_is_read_back_from_its_plex(sizes: list[int], hashed: bool) -> None:
    bounds = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    pieces = [Piece(a, b, Blob(b"%d" % i).hash) for i, (a, b) in enumerate(pairwise(bounds))]
    stated = [("Content-Hash-Full", TARGET)] if hashed else []
    record = plex_with(*(piece.header() for piece in pieces), total(str(bounds[-1])), *stated)
    assert is_manifest(record)
    assert manifest_pieces(record) == pieces
    assert content_length(record) == bounds[-1]
    assert full_hash(record) == (TARGET if hashed else None)


def ranges(*spans: str, length: str = "10") -> tuple[Header, ...]:
    return (total(length), *(("Chunk+Link", f"{one} {TARGET}") for one in spans))


BAD = [
    pytest.param(ranges("0..4", "5..10"), id="gap", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(ranges("0..5", "4..10"), id="overlap", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(ranges("1..10"), id="not-from-0", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(ranges("0..9"), id="short", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(ranges("0..11"), id="long", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(ranges(), id="no-chunks", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(ranges("5..10", "0..5"), id="order", marks=pytest.mark.clause("010-CONV-03")),
    pytest.param(ranges("0..0", "0..10"), id="empty-range"),
    pytest.param(ranges("0..010"), id="leading-zero"),
    pytest.param(ranges("0-10"), id="no-range"),
    pytest.param(ranges("0..10", length="010"), id="total-zero"),
    pytest.param(ranges("0..10", length="ten"), id="total-word"),
    pytest.param(ranges("0..10", length="1" * 20), id="total-long"),
    pytest.param((*ranges("0..10"), total("10")), id="two-totals"),
    pytest.param((("Chunk+Link", "0..10 S" + TARGET[1:]), total("10")), id="seal"),
    pytest.param((("Chunk+Link", "0..10 B.0000.H9"), total("10")), id="foreign"),
    pytest.param((("Chunk+Link", f"0..10{TARGET}"), total("10")), id="no-link"),
]


@pytest.mark.parametrize("headers", BAD)
def test_a_bad_manifest_is_refused_by_its_reader_only(headers: tuple[Header, ...]) -> None:
    record = plex_with(*headers)
    assert is_manifest(record)
    with pytest.raises(InvalidRecord) as caught:
        manifest_pieces(record)
    assert caught.value.rule == "manifest"


@pytest.mark.clause("010-CONV-02")
def test_a_plex_with_data_of_its_own_or_without_a_total_is_no_manifest() -> None:
    assert not is_manifest(plex_with(*ranges("0..10"), data=b"own"))
    assert not is_manifest(plex_with(("Chunk+Link", f"0..10 {TARGET}")))
    assert not is_manifest(validate(encode_record(Blob(b""))))
