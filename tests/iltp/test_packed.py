"""Packed fact lines (070): read as the lines they hold, and refused in every other form."""

from __future__ import annotations

import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidStream
from lace.iltp.items import BlankLine, FactLines
from lace.iltp.markers import PACKED
from lace.iltp.packed import MAX_PACKED_BYTES, encode_packed, parse_head, runs_of
from lace.iltp.reader import StreamReader
from lace.iltp.writer import encode_facts, encode_preface
from lace.notation.fact import Fact, Predicate

LINES = encode_facts([Fact(Predicate("MayRequest", 1), (f"P.{n:043}.H3",)) for n in range(300)])


def reader(*, accepts: bool = True) -> StreamReader:
    made = StreamReader()
    made.accepts_packed = accepts
    made.feed(encode_preface() + b"A('1')\n\n")
    return made


def item(lines: bytes, *, whole: int | None = None, data: bytes | None = None) -> bytes:
    packed = zlib.compress(lines) if data is None else data
    return b"%s%d %d\n%s" % (PACKED, len(lines) if whole is None else whole, len(packed), packed)


def read_to_the_fault(made: StreamReader, stream: bytes) -> None:
    """What stands before a fault is handed out first."""
    made.feed(stream)
    made.read_all()


def facts_of(stream: bytes, piece: int) -> list[Fact]:
    made, found = reader(), []
    for start in range(0, len(stream), piece):
        for read in made.feed(stream[start : start + piece]):
            if isinstance(read, FactLines):
                found += read.facts
    return found


@pytest.mark.clause("070-ZIP-01", "070-ZIP-02")
@given(st.integers(0, 300), st.sampled_from([1, 7, 1000, 1 << 20]))
def test_packed_lines_are_the_lines(count: int, piece: int) -> None:
    lines = b"".join(LINES.splitlines(keepends=True)[:count])
    packed = b"".join(encode_packed(lines))
    assert len(packed) <= len(lines)
    assert facts_of(packed + b"\n", piece) == facts_of(lines + b"\n", piece)


@pytest.mark.clause("070-ZIP-03")
def test_long_runs_are_packed_in_pieces_that_any_reader_takes() -> None:
    lines = LINES * 200
    pieces = list(encode_packed(lines))
    assert len(pieces) > 1
    assert len(facts_of(b"".join(pieces), 1 << 16)) == 300 * 200


@pytest.mark.clause("070-ZIP-05")
def test_nobody_who_did_not_agree_reads_them() -> None:
    with pytest.raises(InvalidStream, match="no stream item begins"):
        reader(accepts=False).feed(item(LINES))


BOMB = zlib.compress(b"A('1')\n" * (4 * MAX_PACKED_BYTES))


@pytest.mark.clause("070-ZIP-02", "070-ZIP-03", "070-ZIP-04")
@pytest.mark.parametrize(
    "stream",
    [
        item(LINES, whole=len(LINES) - 1),
        item(LINES, whole=len(LINES) + 1),
        item(LINES, data=zlib.compress(LINES)[:-1]),
        item(LINES, data=zlib.compress(LINES) + b"x"),
        item(LINES, data=b"garbage"),
        item(LINES + b"\n"),
        item(LINES[:-1]),
        item(LINES + b"# a comment\n"),
        item(LINES + b"A('1')\r\n"),
        item(b"A('" + b"x" * 2000 + b"')\n"),
        item(LINES, whole=MAX_PACKED_BYTES, data=BOMB),
        item(LINES, whole=MAX_PACKED_BYTES + 1),
        PACKED + b"010 5\nabcde",
        PACKED + b"5 10\nabcdeabcde",
        PACKED + b"10\nabcde",
        PACKED + b"9" * 30,
    ],
)
def test_anything_else_is_a_malformed_stream(stream: bytes) -> None:
    made = reader()
    with pytest.raises(InvalidStream):
        read_to_the_fault(made, stream + b"\n")


@pytest.mark.clause("070-ZIP-03")
def test_the_limit_of_a_block_counts_what_was_packed() -> None:
    made = StreamReader(max_block_bytes=len(LINES) * 2)
    made.accepts_packed = True
    made.feed(encode_preface() + b"A('1')\n\n")
    made.feed(item(LINES) * 2)
    with pytest.raises(InvalidStream, match="fact block has at most"):
        read_to_the_fault(made, item(LINES))


def test_a_record_batch_holds_no_packed_lines() -> None:
    made = reader()
    record = "🖧: B.EA7_ehEAY8WYL2is4DZ9idBDQctY2cOfABSz06ARHQx.H3\nData-Length: 11\n\nhello world".encode()
    made.feed(record)
    with pytest.raises(InvalidStream, match="record batch"):
        made.feed(item(LINES))


def test_the_block_goes_on_behind_a_packed_item() -> None:
    read = reader().feed(item(LINES) + b"A('2')\n\n")
    assert isinstance(read[-1], BlankLine)
    assert isinstance(read[0], FactLines)
    assert read[0].packed == len(item(LINES))


@pytest.mark.parametrize("head", [b"5 5", b"5 9", b"1048577 5", b"05 1", b"5 0", b"5  4", b"5 4 ", b"", b"-5 4"])
def test_a_head_that_promises_what_cannot_be_is_refused_before_anything_is_waited_for(head: bytes) -> None:
    with pytest.raises(InvalidStream) as caught:
        parse_head(head)
    assert caught.value.rule == "packed-head"


def test_a_head_may_promise_as_much_as_a_reader_takes() -> None:
    assert parse_head(b"%d %d" % (MAX_PACKED_BYTES, MAX_PACKED_BYTES - 1)) == (MAX_PACKED_BYTES, MAX_PACKED_BYTES - 1)
    assert parse_head(b"2 1") == (2, 1)


@pytest.mark.clause("070-ZIP-03")
def test_an_item_that_swells_is_handed_out_a_piece_at_a_time() -> None:
    """Whoever reads has other things to do between two pieces; all of them together are the lines."""
    lines = LINES * (MAX_PACKED_BYTES // len(LINES))
    made = reader()
    made.receive(item(lines) + b"\n")
    pieces = []
    while block := made.read_block():
        pieces.append(block)
    facts = [found for block in pieces for found in block if isinstance(found, FactLines)]
    assert len(pieces) >= 8
    assert sum(found.size for found in facts) == len(lines)
    assert [found.packed for found in facts] == [len(item(lines)), *[0] * (len(facts) - 1)]
    assert b"".join(runs_of(lines, 1000)) == lines
    assert max(map(len, runs_of(lines, 1000))) <= 1000


@pytest.mark.parametrize("made_of", [lambda: item(LINES), lambda: b"# word\n" + LINES])
def test_many_short_items_are_handed_out_a_few_at_a_time(made_of: Callable[[], bytes]) -> None:
    made = reader()
    made.receive(made_of() * 1000)
    most = 0
    while block := made.read_block():
        most = max(most, len(block))
    assert 0 < most <= 33
