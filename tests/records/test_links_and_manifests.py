"""Record links and the large-content convention of 010."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidRecord
from lace.limits import MIB, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.records.link import Link, is_target, link_header, parse_link
from lace.records.manifest import (
    Chunk,
    Manifest,
    ManifestRule,
    build_manifests,
    chunk_ranges,
    is_manifest,
    leaf_chunks,
    manifest_headers,
    parse_manifest,
)
from lace.records.model import Blob, Header, Plex, sorted_headers
from lace.records.validate import validate
from lace.records.write import encode_record

TARGET = Blob(b"target").hash

LINKS = [
    pytest.param("+Link", f"source {TARGET}", Link("source", TARGET), marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("Chunk+Link", f"0..5 {TARGET}", Link("0..5", TARGET), marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("Link", f"source {TARGET}", None, marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("+Links", f"source {TARGET}", None, marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("+link", f"source {TARGET}", None, marks=pytest.mark.clause("010-LINK-01")),
    pytest.param("+Link", f"a b  c {TARGET}", Link("a b  c", TARGET), marks=pytest.mark.clause("010-LINK-02")),
    pytest.param("+Link", f"a  {TARGET}", Link("a ", TARGET), marks=pytest.mark.clause("010-LINK-02")),
    pytest.param("+Link", "x Q.0000.H9", Link("x", "Q.0000.H9"), marks=pytest.mark.clause("010-LINK-03", "020-ID-04")),
    pytest.param("+Link", "x z.~l.a.b", Link("x", "z.~l.a.b"), marks=pytest.mark.clause("010-LINK-03")),
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
def test_a_header_is_a_link_or_it_is_not(name: str, value: str, link: Link | None) -> None:
    assert parse_link(name, value) == link


@pytest.mark.clause("010-CONV-01")
@pytest.mark.parametrize("word", ["request", "supersedes", "source", "evidence", "anything else"])
def test_any_word_may_tag_a_link(word: str) -> None:
    assert parse_link(*link_header(word, TARGET)) == Link(word, TARGET)
    with pytest.raises(ValueError, match="no record link"):
        link_header(word, "nothing")
    assert is_target(TARGET)


# Manifests


def blob_hash(number: int) -> RecordHash:
    return Blob(b"%d" % number).hash


def manifest(*bounds: int, total: int | None = None) -> Manifest:
    chunks = [Chunk(a, b, blob_hash(i)) for i, (a, b) in enumerate(pairwise(bounds))]
    return Manifest(bounds[-1] if total is None else total, tuple(chunks))


def make_plex(headers: tuple[Header, ...]) -> Plex:
    return Plex(group="u", app="files", name="big", tai=TAI("1640995200:000000000"), headers=headers)


@pytest.mark.clause("010-CONV-02", "010-CONV-03", "010-CONV-08")
@given(st.lists(st.integers(1, 10**12), max_size=6), st.sampled_from([None, "text/plain"]), st.booleans())
def test_a_manifest_is_read_back_from_its_plex(sizes: list[int], content_type: str | None, hashed: bool) -> None:
    bounds = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
    said = manifest(*bounds)
    said = Manifest(said.total_length, said.chunks, content_type, blob_hash(99) if hashed else None)
    valid = validate(encode_record(make_plex(manifest_headers(said))))
    assert is_manifest(valid.parts.headers)
    assert valid.data_length == 0
    assert parse_manifest(valid.parts.headers, valid.data_length) == said


def headers_of(*ranges: str, total: str = "10") -> tuple[Header, ...]:
    return sorted_headers([("Content-Total-Length", total), *(("Chunk+Link", f"{one} {TARGET}") for one in ranges)])


RULE = ManifestRule
BAD = [
    pytest.param(headers_of("0..4", "5..10"), RULE.RANGE, id="gap", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(headers_of("0..5", "4..10"), RULE.RANGE, id="overlap", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(headers_of("1..10"), RULE.RANGE, id="not-from-0", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(headers_of("0..9"), RULE.RANGE, id="short", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(headers_of("0..11"), RULE.RANGE, id="long", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(headers_of(), RULE.RANGE, id="no-chunks", marks=pytest.mark.clause("010-CONV-04")),
    pytest.param(headers_of("5..10", "0..5"), RULE.RANGE, id="order", marks=pytest.mark.clause("010-CONV-03")),
    pytest.param(headers_of("0..0", "0..10"), RULE.RANGE, id="empty-range"),
    pytest.param(headers_of("0..010"), RULE.LINK, id="leading-zero"),
    pytest.param(headers_of("0-10"), RULE.LINK, id="no-range"),
    pytest.param(headers_of("0..10", total="010"), RULE.TOTAL, id="total-zero"),
    pytest.param(headers_of("0..10", total="ten"), RULE.TOTAL, id="total-word"),
    pytest.param(
        (("Chunk+Link", f"0..10 {TARGET}"),), RULE.TOTAL, id="no-total", marks=pytest.mark.clause("010-CONV-02")
    ),
    pytest.param(sorted_headers([*headers_of("0..10"), ("Content-Total-Length", "10")]), RULE.TOTAL, id="two-totals"),
    pytest.param((("Chunk+Link", "0..10 S" + TARGET[1:]), ("Content-Total-Length", "10")), RULE.LINK, id="seal"),
    pytest.param((("Chunk+Link", "0..10 B.0000.H9"), ("Content-Total-Length", "10")), RULE.LINK, id="foreign"),
    pytest.param(
        sorted_headers([*headers_of("0..10"), ("Content-Hash-Full", "P" + TARGET[1:])]), RULE.HASH, id="hash-type"
    ),
    pytest.param(sorted_headers([*headers_of("0..10"), ("Content-Hash-Full", "x")]), RULE.HASH, id="hash-text"),
]


@pytest.mark.parametrize(("headers", "rule"), BAD)
def test_a_bad_manifest_is_refused_by_its_reader_only(headers: tuple[Header, ...], rule: ManifestRule) -> None:
    validate(encode_record(make_plex(headers)))
    with pytest.raises(InvalidRecord) as caught:
        parse_manifest(headers, 0)
    assert caught.value.rule is rule


@pytest.mark.clause("010-CONV-02")
def test_a_manifest_has_no_data_of_its_own() -> None:
    with pytest.raises(InvalidRecord) as caught:
        parse_manifest(headers_of("0..10"), 1)
    assert caught.value.rule is RULE.DATA


@pytest.mark.clause("010-CONV-05")
@given(st.integers(0, 60), st.integers(1, 9))
def test_nested_manifests_give_their_leaves_in_order(count: int, size: int) -> None:
    limits = RecordLimits(max_extra_headers=128 + 3)
    root = manifest(*(size * number for number in range(count + 1)))
    plexes = build_manifests(root, make_plex, limits)
    known = {plex.hash: parse_manifest(plex.headers, 0) for plex in plexes}
    assert all(len(one.chunks) <= 3 for one in known.values())
    assert all(one.chunks[0].start == 0 for one in known.values() if one.chunks)
    top = known[plexes[-1].hash]
    assert top.total_length == root.total_length
    assert tuple(leaf_chunks(top, known.__getitem__)) == root.chunks


@pytest.mark.clause("010-CONV-05")
def test_lengths_that_do_not_fit_the_range_are_refused() -> None:
    child = make_plex(manifest_headers(manifest(0, 5)))
    top = Manifest(6, (Chunk(0, 6, child.hash),))
    with pytest.raises(InvalidRecord) as caught:
        list(leaf_chunks(top, lambda _: manifest(0, 5)))
    assert caught.value.rule is RULE.NESTED_LENGTH
    Chunk(3, 6, TARGET).check_data_length(3)
    with pytest.raises(InvalidRecord) as caught:
        Chunk(3, 6, TARGET).check_data_length(4)
    assert caught.value.rule is RULE.CHUNK_LENGTH


@pytest.mark.clause("010-CONV-06")
@pytest.mark.parametrize(("depth", "allowed"), [(1, True), (8, True), (9, False)])
def test_manifests_nest_eight_deep_and_no_deeper(depth: int, allowed: bool) -> None:
    known: dict[RecordHash, Manifest] = {}
    top = manifest(0, 5)
    for _ in range(depth - 1):
        plex = make_plex(manifest_headers(top))
        known[plex.hash] = top
        top = Manifest(5, (Chunk(0, 5, plex.hash),))
    if allowed:
        assert list(leaf_chunks(top, known.__getitem__)) == [Chunk(0, 5, blob_hash(0))]
        return
    with pytest.raises(InvalidRecord) as caught:
        list(leaf_chunks(top, known.__getitem__))
    assert caught.value.rule is RULE.DEPTH


@pytest.mark.clause("010-CONV-07", "010-CONV-03")
def test_content_is_cut_into_chunks_of_32_mib_by_default() -> None:
    assert list(chunk_ranges(70 * MIB)) == [(0, 32 * MIB), (32 * MIB, 64 * MIB), (64 * MIB, 70 * MIB)]
    assert list(chunk_ranges(0)) == []
    assert list(chunk_ranges(32 * MIB)) == [(0, 32 * MIB)]
    assert list(chunk_ranges(5, 2)) == [(0, 2), (2, 4), (4, 5)]


def test_a_manifest_needs_room_for_two_chunks() -> None:
    with pytest.raises(ValueError, match="room"):
        build_manifests(manifest(0, 1), make_plex, RecordLimits(max_extra_headers=129))
