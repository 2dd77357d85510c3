"""Content of any size: what manifests look like, that they come back whole, and which ones are refused."""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidRecord, LimitExceeded, NotFound
from lace.limits import MIB, RecordLimits
from lace.notation.identifiers import RecordHash
from lace.notation.tai import TAI
from lace.porcelain.content import Heading, read_content, read_fully, write_content
from lace.records.keys import SigningKey
from lace.records.manifest import content_length, manifest_pieces
from lace.records.model import Blob, Header, Plex, Record
from lace.records.validate import ValidRecord, validate
from lace.records.write import encode_record

HEADING = Heading(group="u", app="ding", name="big", tai=TAI("1640995200:000000000"))
KEY = SigningKey(bytes(31) + b"\x07")


class Shelf:
    """Records in a dict, with the two doors that content needs."""

    def __init__(self, limits: RecordLimits) -> None:
        self.limits = limits
        self.records: dict[str, ValidRecord] = {}

    def add(self, record: Record) -> RecordHash:
        valid = validate(encode_record(record), limits=self.limits)
        self.records[valid.hash] = valid
        return valid.hash

    def load(self, record_hash: RecordHash) -> ValidRecord:
        if record_hash not in self.records:
            raise NotFound(record_hash)
        return self.records[record_hash]

    def write(self, data: bytes, *, size: int | None = None, headers: tuple[Header, ...] = ()) -> RecordHash:
        heading = Heading(group="u", app="ding", name="big", tai=HEADING.tai, headers=headers)
        source = BytesIO(data)
        return write_content(source, heading, add=self.add, sign=KEY.seal, limits=self.limits, size=size)

    def read(self, record_hash: RecordHash) -> bytes:
        return b"".join(read_content(self.load(record_hash), load=self.load, limits=self.limits))

    def manifest(self, *headers: Header) -> RecordHash:
        return self.add(HEADING.plex(RecordLimits(), Blob(b""), headers))


def small(chunk: int = 4, headers: int = 512, depth: int = 8) -> RecordLimits:
    return RecordLimits(max_data_bytes=chunk, max_extra_headers=headers, max_manifest_depth=depth)


@given(data=st.binary(max_size=200), chunk=st.integers(1, 40), headers=st.integers(5, 12), known=st.booleans())
def test_content_of_any_size_comes_back_whole(data: bytes, chunk: int, headers: int, known: bool) -> None:
    shelf = Shelf(small(chunk, headers))
    found = shelf.write(data, size=len(data) if known else None)
    assert shelf.read(found) == data
    assert content_length(shelf.load(found)) == len(data)
    assert all(record.data_length <= chunk for record in shelf.records.values())


@pytest.mark.parametrize("size, records", [(0, 1), (4, 1), (5, 3), (8, 3), (9, 4)])
def test_content_becomes_chunks_only_above_the_limit(size: int, records: int) -> None:
    shelf = Shelf(small(4))
    shelf.write(bytes(size))
    distinct_chunks = {bytes(min(4, size - start)) for start in range(0, size, 4)} if size > 4 else set()
    assert len(shelf.records) == 1 + len(distinct_chunks) <= records


@pytest.mark.clause("010-CONV-02", "010-CONV-03", "010-CONV-08")
def test_a_manifest_says_its_length_its_ranges_and_its_full_hash() -> None:
    shelf = Shelf(small(4))
    found = shelf.write(b"abcdefghij", size=10, headers=(("Content-Type", "text/plain"),))
    parts = shelf.load(found).parts
    assert shelf.load(found).data_length == 0
    assert parts.headers == (
        ("Chunk+Link", f"0..4 {Blob(b'abcd').hash}"),
        ("Chunk+Link", f"4..8 {Blob(b'efgh').hash}"),
        ("Chunk+Link", f"8..10 {Blob(b'ij').hash}"),
        ("Content-Hash-Full", Blob(b"abcdefghij").hash),
        ("Content-Total-Length", "10"),
        ("Content-Type", "text/plain"),
    )


def test_a_source_that_grew_has_no_full_hash() -> None:
    shelf = Shelf(small(4))
    found = shelf.write(b"abcdefghij", size=9)
    assert "Content-Hash-Full" not in dict(shelf.load(found).parts.headers)
    assert shelf.read(found) == b"abcdefghij"


@pytest.mark.clause("010-CONV-05")
def test_many_chunks_stand_under_nested_manifests_that_count_from_their_own_zero() -> None:
    shelf = Shelf(small(1, headers=4))
    found = shelf.write(bytes(range(20)))
    targets = [piece.target for piece in manifest_pieces(shelf.load(found))]
    assert all(target.startswith("P.") for target in targets)
    assert all(manifest_pieces(shelf.load(RecordHash(target)))[0].start == 0 for target in targets)
    assert shelf.read(found) == bytes(range(20))


@pytest.mark.clause("010-CONV-07")
def test_a_chunk_is_32_mib_by_default() -> None:
    assert RecordLimits().max_data_bytes == 32 * MIB


def test_too_many_chunks_for_the_depth_are_refused() -> None:
    shelf = Shelf(small(1, headers=4, depth=2))
    with pytest.raises(LimitExceeded, match="max_manifest_depth"):
        shelf.write(bytes(range(40)))


def test_a_bad_heading_is_told_before_anything_is_read() -> None:
    class Unread:
        def read(self, size: int, /) -> bytes:
            raise AssertionError("read")

    bad = Heading(group="u", app="a|b", name="n", tai=HEADING.tai)
    with pytest.raises(InvalidRecord, match="path"):
        write_content(Unread(), bad, add=Shelf(small()).add, sign=KEY.seal, limits=small())


A, B = Blob(b"abcd"), Blob(b"efgh")


@pytest.mark.clause("010-CONV-04")
@pytest.mark.parametrize(
    "links, total",
    [
        ([f"0..4 {A.hash}", f"5..9 {B.hash}"], "9"),
        ([f"0..4 {A.hash}", f"3..7 {B.hash}"], "7"),
        ([f"1..5 {A.hash}"], "5"),
        ([f"0..4 {A.hash}"], "8"),
        ([f"0..4 {A.hash}", f"4..8 {B.hash}"], "4"),
        ([f"0..0 {A.hash}"], "0"),
        ([f"4..0 {A.hash}"], "0"),
        ([], "4"),
        ([f"0..04 {A.hash}"], "4"),
        ([f"0-4 {A.hash}"], "4"),
        ([f"0..4 {A.hash}x"], "4"),
        ([f"0..4 S{A.hash[1:]}"], "4"),
        ([f"0..4 {A.hash}"], "four"),
    ],
    ids=[
        "gap",
        "overlap",
        "late-start",
        "short",
        "long",
        "empty-range",
        "backwards",
        "none",
        "zero",
        "dash",
        "hash",
        "seal",
        "length",
    ],
)
def test_a_manifest_that_does_not_cover_its_content_is_refused(links: list[str], total: str) -> None:
    shelf = Shelf(RecordLimits())
    shelf.add(A)
    shelf.add(B)
    found = shelf.manifest(*(("Chunk+Link", link) for link in links), ("Content-Total-Length", total))
    with pytest.raises(InvalidRecord) as caught:
        shelf.read(found)
    assert caught.value.rule == "manifest"
    assert found in caught.value.place


@pytest.mark.clause("010-CONV-05")
def test_a_chunk_of_another_length_than_its_range_is_refused() -> None:
    shelf = Shelf(RecordLimits())
    shelf.add(A)
    found = shelf.manifest(("Chunk+Link", f"0..3 {A.hash}"), ("Content-Total-Length", "3"))
    with pytest.raises(InvalidRecord, match="does not hold 3 bytes"):
        shelf.read(found)


@pytest.mark.clause("010-CONV-05")
def test_a_plex_that_is_no_manifest_is_not_read_as_a_chunk() -> None:
    shelf = Shelf(RecordLimits())
    plain = shelf.add(Plex(group="u", app="a", name="n", tai=HEADING.tai, blob=A))
    found = shelf.manifest(("Chunk+Link", f"0..4 {plain}"), ("Content-Total-Length", "4"))
    with pytest.raises(InvalidRecord, match="not a manifest"):
        shelf.read(found)


@pytest.mark.clause("010-CONV-06")
@pytest.mark.parametrize("levels, fine", [(8, True), (9, False)])
def test_manifests_nest_eight_deep_and_no_deeper(levels: int, fine: bool) -> None:
    shelf = Shelf(RecordLimits())
    target = shelf.add(A)
    for _ in range(levels):
        target = shelf.manifest(("Chunk+Link", f"0..4 {target}"), ("Content-Total-Length", "4"))
    if fine:
        assert shelf.read(target) == b"abcd"
    else:
        with pytest.raises(LimitExceeded, match="max_manifest_depth"):
            shelf.read(target)


def test_a_wrong_full_hash_is_found_at_the_end() -> None:
    shelf = Shelf(RecordLimits())
    shelf.add(A)
    links = (("Chunk+Link", f"0..4 {A.hash}"), ("Content-Hash-Full", B.hash), ("Content-Total-Length", "4"))
    with pytest.raises(InvalidRecord, match="full hash"):
        shelf.read(shelf.manifest(*links))


def test_a_missing_chunk_is_named() -> None:
    shelf = Shelf(RecordLimits())
    found = shelf.manifest(("Chunk+Link", f"0..4 {A.hash}"), ("Content-Total-Length", "4"))
    with pytest.raises(NotFound, match=A.hash):
        shelf.read(found)


@given(pieces=st.lists(st.binary(min_size=1, max_size=5), max_size=8), size=st.integers(0, 20))
def test_a_source_that_gives_little_at_a_time_is_read_to_the_wanted_size(pieces: list[bytes], size: int) -> None:
    class Slow:
        def __init__(self, parts: Iterator[bytes]) -> None:
            self.rest = b""
            self.parts = parts

        def read(self, most: int, /) -> bytes:
            self.rest = self.rest or next(self.parts, b"")
            given, self.rest = self.rest[:most], self.rest[most:]
            return given

    assert read_fully(Slow(iter(pieces)), size) == b"".join(pieces)[:size]
