"""A byte source gives the same items however its stream is split."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidStream
from lace.notation.bytesource import ByteSource, Reader
from notation.reading import read_whole

MAX = 12


def items(source: ByteSource) -> Reader[list[bytes]]:
    """A small language: a line `n<digits>` is followed by that many bytes, other lines stand alone."""
    found = []
    while (yield from source.peek(1)):
        line = yield from source.read_line(MAX)
        found.append(line)
        if line[:1] == b"n":
            found.append((yield from source.read_exact(int(line[1:] or b"0"))))
    return found


def run(chunks: list[bytes]) -> list[bytes]:
    source = ByteSource()
    reader = items(source)
    pending = iter(chunks)
    while True:
        try:
            next(reader)
        except StopIteration as done:
            result: list[bytes] = done.value
            return result
        chunk = next(pending, None)
        if chunk is None:
            source.feed_eof()
        else:
            source.feed(chunk)


def encode(parts: list[bytes | str]) -> bytes:
    return b"".join(b"n%d\n" % len(part) + part if isinstance(part, bytes) else part.encode() + b"\n" for part in parts)


LINES = st.text(st.sampled_from("abc"), max_size=MAX)
STREAMS = st.lists(st.one_of(LINES, st.binary(max_size=30)), max_size=8).map(encode)


def split(stream: bytes, cuts: list[int]) -> Iterator[bytes]:
    places = sorted({0, len(stream), *(cut % (len(stream) + 1) for cut in cuts)})
    return (stream[a:b] for a, b in pairwise(places))


@given(STREAMS, st.lists(st.integers(0, 1000), max_size=9))
def test_any_split_gives_the_same_items(stream: bytes, cuts: list[int]) -> None:
    whole = run([stream])
    assert run(list(split(stream, cuts))) == whole
    assert run([stream[at : at + 1] for at in range(len(stream))]) == whole


@given(STREAMS, st.lists(st.integers(0, 1000), max_size=9), st.integers(0, 20))
def test_fed_ahead_of_the_reader_it_gives_the_same_and_counts_what_it_gave(
    stream: bytes, cuts: list[int], peeked: int
) -> None:
    source = ByteSource()
    for chunk in split(stream, cuts):
        source.feed(bytearray(chunk))
    assert source.buffered == len(stream)
    source.feed_eof()
    assert read_whole(source.peek(peeked), source) == stream[:peeked]
    assert read_whole(items(source), source) == run([stream])
    assert source.consumed == len(stream)
    assert source.ended


def test_a_line_over_the_limit_is_refused_as_soon_as_it_is_seen() -> None:
    for chunks in ([b"x" * 13], [b"x"] * 13, [b"x" * 5, b"x" * 8 + b"\n"], [b"x" * 13 + b"\n"]):
        with pytest.raises(InvalidStream, match="at most 12 bytes"):
            run(chunks)
    assert run([b"x" * 12 + b"\n"]) == [b"x" * 12]
    assert run([b"x" * 6, b"x" * 6, b"\n"]) == [b"x" * 12]


@pytest.mark.parametrize("stream", [b"x", b"a\nb", b"n3\nab", b"n3\n", b"n2"])
def test_an_end_inside_an_item_is_an_error(stream: bytes) -> None:
    for chunks in ([stream], [stream[at : at + 1] for at in range(len(stream))]):
        with pytest.raises(InvalidStream) as caught:
            run(chunks)
        assert caught.value.rule == "stream-cut"


def test_large_runs_are_passed_on_uncopied() -> None:
    chunks = [bytes([number]) * 1000 for number in range(5)]
    source = ByteSource()
    for chunk in chunks:
        source.feed(chunk)
    pieces = read_whole(source.read_pieces(4500), source)
    assert [len(piece) for piece in pieces] == [1000] * 4 + [500]
    assert all(piece is chunk for piece, chunk in zip(pieces[:4], chunks, strict=False))
    assert source.buffered == 500


def test_lines_can_be_taken_without_a_generator() -> None:
    source = ByteSource(b"a\nbb\nc")
    assert [source.take_line(5) for _ in range(3)] == [b"a", b"bb", None]
    source.feed(b"c\n")
    assert source.take_line(5) == b"cc"
    assert source.take_line(5) is None
    source.feed_eof()
    assert source.ended
    with pytest.raises(ValueError, match="ended"):
        source.feed(b"x")


def test_a_reader_that_wants_more_than_the_whole_stream_is_told_so() -> None:
    source = ByteSource(b"abc")
    with pytest.raises(InvalidStream):
        read_whole(source.read_exact(4), source)


def test_a_chunk_that_was_skipped_to_its_end_gives_way_to_the_next() -> None:
    source = ByteSource(b"abc")
    source.feed(b"de\n")
    assert source.head == (b"abc", 0)
    source.skip(2)
    assert (source.head, source.consumed, source.buffered) == ((b"abc", 2), 2, 4)
    source.skip(1)
    assert (source.head, source.consumed, source.buffered) == ((b"de\n", 0), 3, 3)
    assert source.take_line(2) == b"de"
    assert source.buffered == 0
