"""A byte source does what a plain byte string does, whatever is asked of it in whatever order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lace.errors import InvalidStream
from lace.notation.bytesource import ByteSource, Reader
from tries import tries

Step = tuple[str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["feed", "line", "exact", "peek", "skip", "join"]), st.integers(0, 7)), max_size=30
)
STREAMS = st.lists(st.sampled_from([b"", b"a", b"bc", b"\n", b"\n\n", b"defgh", b"i\n", b"jklmnopq"]), max_size=12)


def asked(reader: Reader[bytes]) -> bytes | None:
    """What a reader gives at once; None if it wants more bytes first."""
    try:
        next(reader)
    except StopIteration as done:
        result: bytes = done.value
        return result
    return None


class Plain:
    """The same over one byte string, as short as it can be said."""

    def __init__(self) -> None:
        self.data, self.taken, self.ended = b"", 0, False

    def take(self, count: int, behind: int = 0) -> bytes:
        taken, self.data = self.data[:count], self.data[count + behind :]
        self.taken += count + behind
        return taken

    def line(self, most: int) -> bytes | str | None:
        end = self.data.find(b"\n")
        if 0 <= end <= most:
            return self.take(end, behind=1)
        if len(self.data) > most:
            return f"byte {self.taken}: a line has at most {most} bytes"
        return f"byte {self.taken}: the stream ended inside a line" if self.ended else None

    def exact(self, count: int) -> bytes | str | None:
        if len(self.data) >= count:
            return self.take(count)
        if not self.ended:
            return None
        return f"byte {self.taken + len(self.data)}: the stream ended inside a run of {count} bytes"

    def peek(self, count: int) -> bytes | None:
        return self.data[:count] if len(self.data) >= count or self.ended else None


def answer_of(ask: Callable[[], bytes | None]) -> bytes | str | None:
    try:
        return ask()
    except InvalidStream as error:
        return str(error)


@tries(200)
@given(STREAMS, STEPS)
@example([b"jklmnopq", b"\n"], [("feed", 0), ("feed", 0), ("line", 7)])
@example([b"a", b"\n", b"bc"], [("feed", 0), ("feed", 0), ("line", 1), ("feed", 0), ("peek", 2)])
@example([b"bc", b"bc", b"i\n"], [("feed", 0), ("feed", 0), ("feed", 0), ("line", 5), ("line", 5), ("line", 4)])
@example([b"bc", b"", b"bc"], [("feed", 0), ("feed", 0), ("feed", 0), ("skip", 2), ("exact", 2)])
@example([b"bc", b"bc", b"a"], [("feed", 0), ("feed", 0), ("feed", 0), ("peek", 3), ("peek", 4), ("peek", 5)])
@example([b"bc", b"defgh"], [("feed", 0), ("feed", 0), ("skip", 1), ("exact", 3), ("join", 0), ("exact", 3)])
def test_a_source_is_its_bytes(chunks: list[bytes], steps: list[Step]) -> None:
    """Every answer, error and count; after the last chunk the stream ends."""
    source, plain, waiting = ByteSource(), Plain(), list(chunks)
    for verb, number in [*steps, *[("feed", 0)] * (len(chunks) + 1), *[("line", 7)] * 40]:
        match verb:
            case "feed" if waiting:
                source.feed(waiting[0])
                plain.data += waiting.pop(0)
            case "feed":
                source.feed_eof()
                plain.ended = True
            case "skip":
                head, at = source.head
                count = min(number, len(head) - at)
                source.skip(count)
                assert plain.take(count) == head[at : at + count]
            case "join":
                before = len(source.head[0]) - source.head[1]
                source.join()
                assert len(source.head[0]) - source.head[1] >= before
            case "line":
                assert answer_of(lambda most=number: asked(source.read_line(most))) == plain.line(number)  # type: ignore[misc]
            case "peek":
                assert asked(source.peek(number)) == plain.peek(number)
            case "exact":
                if len(plain.data) < number and not plain.ended:
                    continue  # a reader that waits has taken the pieces that were there
                told = plain.exact(number)
                assert answer_of(lambda count=number: asked(source.read_exact(count))) == told  # type: ignore[misc]
                if isinstance(told, str):
                    return
        head, at = source.head
        assert head[at:] == plain.data[: len(head) - at]
        assert bool(head[at:]) is bool(plain.data)  # a chunk that is used up is let go of
        assert (source.buffered, source.consumed) == (len(plain.data), plain.taken)
        assert source.ended is (plain.ended and not plain.data)


def test_joining_makes_one_chunk_of_two_and_leaves_the_third() -> None:
    source = ByteSource()
    for chunk in (b"abc", b"de", b"f"):
        source.feed(chunk)
    source.skip(1)
    source.join()
    assert (source.head, source.buffered, source.consumed) == ((b"bcde", 0), 5, 1)
    source.join()
    assert source.head == (b"bcdef", 0)
    source.join()
    assert source.head == (b"bcdef", 0)


def test_a_chunk_goes_in_front_where_nothing_waits_and_behind_where_something_does() -> None:
    source = ByteSource(b"ab")
    source.feed(b"")
    assert source.head == (b"ab", 0)
    source.skip(2)
    assert source.head == (b"", 0)
    source.feed(b"cd")
    source.feed(b"ef")
    assert (source.head, source.buffered) == ((b"cd", 0), 4)


@pytest.mark.parametrize("chunks", [[b"abc", b"d\n"], [b"ab", b"cd\n"], [b"a", b"b", b"c", b"d\n"]])
def test_a_line_of_exactly_the_limit_is_read_however_it_is_cut(chunks: list[bytes]) -> None:
    for most, expected in ((4, b"abcd"), (3, "byte 0: a line has at most 3 bytes")):
        source = ByteSource()
        for chunk in chunks:
            source.feed(chunk)
        assert answer_of(lambda most=most, source=source: source.take_line(most)) == expected  # type: ignore[misc]


def test_the_first_bytes_and_the_end_can_be_given_at_once() -> None:
    with pytest.raises(InvalidStream, match="byte 0: the stream ended inside a line"):
        ByteSource(b"ab", ended=True).take_line(9)
    assert ByteSource(ended=True).take_line(9) is None
    assert not ByteSource(b"ab").ended
    assert not ByteSource(b"ab", ended=True).ended
    assert ByteSource(ended=True).ended
    with pytest.raises(InvalidStream, match="byte 0: the stream ended inside a line"):
        asked(ByteSource(b"ab", ended=True).read_line(9))
