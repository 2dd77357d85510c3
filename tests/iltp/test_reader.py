"""The stream reader: dispatch, preface, facts, comments, records, blocks, ends (060)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iltp.stream_samples import (
    DATA,
    HELLO_WORLD,
    PIECE_MARK,
    PREFACE,
    RECORD_MARK,
    RULES,
    RULES_BLOCK,
    RULES_ID,
    read_every_way,
    read_in_pieces,
)
from lace.errors import InvalidStream
from lace.iltp import markers
from lace.iltp.items import BlankLine, EndOfStream, FactLines, Item, Preface, RecordItem, Resource
from lace.iltp.reader import StreamReader
from lace.limits import RecordLimits, StreamLimits
from lace.notation.fact import Fact, Predicate

BLANK = BlankLine()


def facts_of(items: list[Item]) -> list[Fact]:
    return [fact for item in items if isinstance(item, FactLines) for fact in item.facts]


def have(value: str) -> Fact:
    return Fact(Predicate("Have", 1), (value,))


# --- preface ---------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-PREF-01", "060-PREF-02", "060-PREF-03", "060-PREF-05")
def test_a_direction_begins_with_thirteen_bytes_that_are_no_block() -> None:
    assert bytes.fromhex("F09FAAA23A20696C74702F310A") == markers.PREFACE
    assert read_every_way(PREFACE) == ([Preface()], None)


@pytest.mark.parametrize(
    "first_line",
    [
        pytest.param(b"\xef\xbb\xbf" + PREFACE, marks=pytest.mark.clause("060-PREF-02")),
        pytest.param(b"\n" + PREFACE, marks=pytest.mark.clause("060-PREF-02")),
        pytest.param(b" " + PREFACE, marks=pytest.mark.clause("060-PREF-02")),
        pytest.param(PREFACE[:-1] + b"\r\n", marks=pytest.mark.clause("060-PREF-04")),
        pytest.param(PREFACE[:-1] + b"\r", marks=pytest.mark.clause("060-PREF-04")),
        pytest.param(PREFACE.replace(b"/1", b"/2"), marks=pytest.mark.clause("060-PREF-06")),
        pytest.param(PREFACE.replace(b": ", b":"), marks=pytest.mark.clause("060-PREF-06")),
        pytest.param(PREFACE[:-1] + b" \n", marks=pytest.mark.clause("060-PREF-06")),
        pytest.param(PREFACE.replace(b"iltp", b"ILTP"), marks=pytest.mark.clause("060-PREF-06")),
        pytest.param(PIECE_MARK + b"iltp/1\n", marks=pytest.mark.clause("060-PREF-06")),
        pytest.param(b"Have('x')\n", marks=pytest.mark.clause("060-PREF-06")),
        pytest.param(b"# hello\n" + PREFACE, marks=pytest.mark.clause("060-PREF-06")),
    ],
)
def test_any_other_first_line_is_refused(first_line: bytes) -> None:
    assert read_every_way(first_line) == ([], "preface")


@pytest.mark.clause("060-PREF-07")
def test_a_blank_line_right_after_the_preface_is_refused() -> None:
    assert read_every_way(PREFACE + b"\n") == ([Preface()], "preface-blank")


@pytest.mark.clause("060-PREF-08")
def test_a_comment_after_the_preface_and_a_blank_line_are_an_empty_block() -> None:
    assert read_every_way(PREFACE + b"# hello\n\n") == ([Preface(), BLANK], None)


@pytest.mark.clause("060-PREF-09", "060-DISP-01")
def test_a_second_preface_is_refused() -> None:
    items, rule = read_every_way(PREFACE + b"Have('x')\n\n" + PREFACE)
    assert rule == "preface-repeated"
    assert facts_of(items) == [have("x")]


@pytest.mark.clause("060-PREF-11")
def test_a_first_line_is_refused_at_its_first_wrong_byte_and_never_collected() -> None:
    reader = StreamReader()
    assert reader.feed(PREFACE[:6]) == []
    with pytest.raises(InvalidStream):
        reader.feed(b"x")
    reader.receive(b"y" * 1_000_000)
    assert reader.buffered == 0


# --- dispatch --------------------------------------------------------------------------------------------------------


@pytest.mark.clause(
    "060-DISP-10", "060-DISP-02", "060-DISP-06", "060-DISP-07", "060-DISP-08", "060-FACT-04", "060-CMT-04"
)
@pytest.mark.parametrize("byte", range(256))
def test_only_letters_number_sign_lf_and_whole_markers_begin_an_item(byte: int) -> None:
    first = bytes([byte])
    _, rule = read_in_pieces([PREFACE + b"Have('x')\n\n" + first + b"oo bar\n"])
    if first.isalpha():
        assert rule == "fact-syntax"
    elif byte == 0x23 or byte == 0x0A:
        assert rule != "dispatch" or byte == 0x0A  # after the blank line stands another fact line
    else:
        assert rule == "dispatch"


@pytest.mark.parametrize(
    "data, rule",
    [
        pytest.param(b"\xf0\x9f\x98\x80: x\n", "dispatch", marks=pytest.mark.clause("060-DISP-08")),
        pytest.param(b"\xf0\x9f\xa7\xa9 x\n", "dispatch", marks=pytest.mark.clause("060-DISP-09")),
        pytest.param(b"\xf0\x9f\x96\xa7:x\n", "dispatch", marks=pytest.mark.clause("060-DISP-09")),
        pytest.param(
            "⋯".encode() + RECORD_MARK + b"x\n",
            "trailer",
            marks=pytest.mark.clause("060-DISP-05", "060-WSF-07", "060-WSF-08", "060-WSF-09"),
        ),
        pytest.param(b" # x\n", "dispatch", marks=pytest.mark.clause("060-CMT-04")),
        pytest.param(b"_Have('x')\n", "dispatch", marks=pytest.mark.clause("060-FACT-04")),
        pytest.param(b" Have('x')\n", "dispatch", marks=pytest.mark.clause("060-FACT-04")),
        pytest.param(b"\r\n", "dispatch", marks=pytest.mark.clause("060-DISP-10")),
    ],
)
def test_other_leading_bytes_are_refused(data: bytes, rule: str) -> None:
    assert read_every_way(PREFACE + data) == ([Preface()], rule)


@pytest.mark.clause("060-DISP-11")
@pytest.mark.parametrize("marker", [RECORD_MARK, PIECE_MARK, PREFACE[:6]])
def test_a_stream_that_ends_inside_a_marker_is_cut(marker: bytes) -> None:
    for size in range(1, len(marker)):
        assert read_every_way(PREFACE + marker[:size], eof=True) == ([Preface()], "stream-cut")


@pytest.mark.clause("060-STREAM-01", "060-STREAM-03", "060-DISP-03", "060-DISP-04", "060-WSF-01")
def test_items_are_told_apart_by_their_leading_bytes() -> None:
    stream = PREFACE + b"# one\n" + RULES_BLOCK + b"Have('x')\n# two\nHave('y')\n\n" + HELLO_WORLD + DATA + b"\n\n"
    items, rule = read_every_way(stream, eof=True)
    assert rule is None
    assert items == [
        Preface(),
        Resource(RULES_ID, "lacegram", RULES),
        FactLines((have("x"), have("y")), 20),
        BLANK,
        RecordItem("B.EA7_ehEAY8WYL2is4DZ9idBDQctY2cOfABSz06ARHQx.H3", HELLO_WORLD),
        RecordItem("B.8MXI1BSOLOcbeOoxz7yx_TbyhD6oDvUB1vzvusBCcVK.H3", DATA),
        BLANK,
        BLANK,
        EndOfStream(block_open=False),
    ]


# --- fact lines ------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-FACT-01", "060-FACT-02", "060-CMT-06")
def test_fact_lines_have_the_syntax_of_050() -> None:
    items, rule = read_every_way(PREFACE + "HelloAllAdvertisedFields()\nA('é','it\\'s # no comment','')\n".encode())
    assert rule is None
    assert facts_of(items) == [
        Fact(Predicate("HelloAllAdvertisedFields", 0), ()),
        Fact(Predicate("A", 3), ("é", "it's # no comment", "")),
    ]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"Have('x')\r\n", marks=pytest.mark.clause("060-FACT-02", "060-FACT-03")),
        pytest.param(b"Have('x\ry')\n", marks=pytest.mark.clause("060-FACT-03")),
        pytest.param(b"Have('x').\n", marks=pytest.mark.clause("060-FACT-01")),
        pytest.param(b"Have( 'x')\n", marks=pytest.mark.clause("060-FACT-01")),
        pytest.param(b"Have(x)\n", marks=pytest.mark.clause("060-FACT-01")),
        pytest.param(b"Have('e\xcc\x81')\n", marks=pytest.mark.clause("060-FACT-01")),
        pytest.param(b"Have('\xff')\n", marks=pytest.mark.clause("060-FACT-01")),
        pytest.param(b"GET note\n", marks=pytest.mark.clause("060-FACT-01", "060-WS-03")),
    ],
)
def test_what_is_no_fact_ends_the_stream_after_the_facts_before_it(line: bytes) -> None:
    items, rule = read_every_way(PREFACE + b"Have('a')\n" + line + b"Have('b')\n\n")
    assert rule is not None
    assert facts_of(items) == [have("a")]


@pytest.mark.clause("060-FACT-05", "060-LIM-01")
def test_a_fact_line_has_at_most_1024_bytes() -> None:
    longest = b"Have('" + b"x" * (1024 - 8) + b"')"
    assert len(longest) == 1024
    items, rule = read_every_way(PREFACE + longest + b"\n")
    assert rule is None
    assert len(facts_of(items)) == 1
    items, rule = read_every_way(PREFACE + longest.replace(b"xx", b"xxx", 1) + b"\n")
    assert rule == "line-length"
    assert facts_of(items) == []


@pytest.mark.clause("060-LIM-07")
def test_an_endless_fact_line_is_refused_without_being_collected() -> None:
    reader = StreamReader()
    reader.feed(PREFACE + b"Have('")
    for _ in range(10):
        reader.feed(b"x" * 100)
    with pytest.raises(InvalidStream):
        reader.feed(b"x" * 100)
    assert reader.buffered == 0


@pytest.mark.clause("060-LIM-08")
def test_the_limits_of_blocks_and_records_are_those_of_050_and_010() -> None:
    """Written out from the two tables: 64 MiB a fact block, 32 MiB of data, 1,024 bytes a header line."""
    reader = StreamReader()
    assert reader.max_block_bytes == 67_108_864
    head = b"\xf0\x9f\x96\xa7: B.EA7_ehEAY8WYL2is4DZ9idBDQctY2cOfABSz06ARHQx.H3\n"
    assert HELLO_WORLD.startswith(head)
    most, over = b"Data-Length: 33554432\n\n", b"Data-Length: 33554433\n\n"
    assert read_every_way(PREFACE + head + most)[1] is None  # its bytes may still come
    assert read_every_way(PREFACE + head + over)[1] is not None
    longest = b"A: " + b"x" * 1021 + b"\n"
    assert read_every_way(PREFACE + head + longest)[1] is None
    assert read_every_way(PREFACE + head + b"x" + longest)[1] is not None


@pytest.mark.clause("060-LIM-08")
def test_a_fact_block_is_refused_where_it_passes_its_limit() -> None:
    block = b"Have('x')\n" * 10
    assert read_every_way(PREFACE + block + b"\n" + block + b"\n", max_block_bytes=100)[1] is None
    items, rule = read_every_way(PREFACE + block + b"Have('y')\n", max_block_bytes=100)
    assert rule == "block-size"
    assert have("y") not in facts_of(items)


# --- comments --------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-CMT-01", "060-CMT-02", "060-CMT-03", "060-CMT-09", "060-CMT-15")
def test_comments_leave_no_trace() -> None:
    bare = PREFACE + RULES_BLOCK + b"Have('x')\n\n" + HELLO_WORLD + b"\n"
    noted = PREFACE + b"#Advertised('P','S')\n" + RULES_BLOCK + b"# a\nHave('x')\n#\n\n# b\n" + HELLO_WORLD + b"# c\n\n"
    assert read_every_way(noted) == read_every_way(bare)


@pytest.mark.clause("060-CMT-05", "060-LIM-02")
def test_a_comment_line_has_at_most_128_bytes_with_its_lf() -> None:
    assert read_every_way(PREFACE + b"#" + b"x" * 126 + b"\n")[1] is None
    assert read_every_way(PREFACE + b"#" + b"x" * 127 + b"\n")[1] == "line-length"


@pytest.mark.clause("060-CMT-07", "060-CMT-10")
def test_two_comments_in_a_row_are_refused() -> None:
    assert read_every_way(PREFACE + b"Have('x')\n# a\n# b\n")[1] == "comment-repeated"


@pytest.mark.clause("060-CMT-08")
@pytest.mark.parametrize("between", [b"Have('x')\n", RULES_BLOCK, HELLO_WORLD, b"\n"])
def test_each_kind_of_item_allows_one_more_comment(between: bytes) -> None:
    assert read_every_way(PREFACE + b"# a\n" + between + b"# b\n")[1] is None


@pytest.mark.parametrize(
    "line, rule",
    [
        pytest.param(b"# a\r\n", "comment-cr", marks=pytest.mark.clause("060-CMT-11")),
        pytest.param(b"# a\rb\n", "comment-cr", marks=pytest.mark.clause("060-CMT-11")),
        pytest.param(b"# \xff\n", "comment-utf8", marks=pytest.mark.clause("060-CMT-12")),
        pytest.param(b"# e\xcc\x81\n", None, marks=pytest.mark.clause("060-CMT-12")),
    ],
)
def test_a_comment_is_one_line_of_utf8(line: bytes, rule: str | None) -> None:
    assert read_every_way(PREFACE + line)[1] == rule


@pytest.mark.clause("060-CMT-13")
def test_inside_a_record_a_number_sign_is_data_and_inside_a_resource_an_error() -> None:
    record = RECORD_MARK + b"B.x\nData-Length: 8\n\n# data\n\n"
    assert read_every_way(PREFACE + record + b"\n")[0][1:] == [RecordItem("B.x", record), BLANK]
    block = PIECE_MARK + RULES_ID.encode() + b" lacegram\n# note\n" + RULES + b"\n\n"
    assert read_every_way(PREFACE + block)[1] == "resource-marker"


@pytest.mark.clause("060-CMT-14")
def test_the_comment_example_is_an_advertisement_block_and_a_request() -> None:
    stream = (
        PREFACE
        + b"# Round 1: Alice advertises\nAdvertised('P.a.H3','V.alice.H3')\n"
        + b"AdvertisedField('P.a.H3','V.alice.H3','Group','0','u')\n\n# Bob requests the new record\n"
        + b"MayRequest('P.a.H3')\n\n"
    )
    items, rule = read_every_way(stream)
    assert rule is None
    assert [type(item) for item in items] == [Preface, FactLines, BlankLine, FactLines, BlankLine]


# --- records ---------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-REC-01", "060-REC-02", "060-REC-03", "060-REC-07", "060-REC-08")
def test_blob_data_may_look_like_anything() -> None:
    data = b"\n\n# x\nHave('x')\n" + RECORD_MARK + b"B.y\n" + PIECE_MARK + PREFACE
    record = RECORD_MARK + b"B.x\nData-Length: %d\n\n" % len(data) + data
    items, rule = read_every_way(PREFACE + record + DATA + b"\nHave('x')\n\n")
    assert rule is None
    assert items[1:4] == [RecordItem("B.x", record), items[2], BLANK]
    assert facts_of(items) == [have("x")]


def chain(*headers: bytes) -> bytes:
    return b"".join(
        (RECORD_MARK + b"S.a\n", RECORD_MARK + b"P.b\n", *headers, RECORD_MARK + b"B.c\nData-Length: 1\n\nx")
    )


@pytest.mark.clause("060-REC-04", "060-REC-11")
def test_embedded_marklines_are_no_items_of_their_own() -> None:
    record = chain(b"Group: u\n", b"whatever\n")
    assert read_every_way(PREFACE + record + b"\n")[0][1:] == [RecordItem("S.a", record), BLANK]
    assert read_every_way(PREFACE + chain(*[b"h\n"] * 518) + b"\n")[1] is None


@pytest.mark.clause("060-REC-10", "060-REC-12")
@pytest.mark.parametrize(
    "record",
    [
        chain(b"h" * 1025 + b"\n"),
        chain(*[b"h\n"] * 519),
        RECORD_MARK + b"P.a\n" + chain(),
        chain(b"\n"),
        RECORD_MARK + b"B.c\nData-Length: 01\n\nx",
        RECORD_MARK + b"B.c\n\nx",
        RECORD_MARK + b"B.c\nData-Length: 33554433\n\n",
        RECORD_MARK + b"B.c\nData-Length: 1\nx\n",
        RECORD_MARK + b"X.c\nData-Length: 1\n\nx",
    ],
    ids=["line", "lines", "plex-in-plex", "empty-line", "leading-zero", "no-length", "too-long", "no-gap", "type"],
)
def test_a_record_without_a_frame_cannot_be_delimited(record: bytes) -> None:
    items, rule = read_in_pieces([PREFACE + record + b"\n\n"])
    assert rule in ("record-frame", "line-length")
    assert items == [Preface()]
    assert read_in_pieces([PREFACE] + [record[i : i + 7] for i in range(0, len(record), 7)] + [b"\n\n"])[1] == rule


@pytest.mark.clause("060-REC-09")
@pytest.mark.parametrize(
    "header", [b"Name: a\tb\n", b"Name: a\rb\n", b"Name\n", b"Name: \xff\n", b"Name: e\xcc\x81\n", b"TAI: never\n"]
)
def test_what_is_wrong_inside_a_frame_is_delimited_all_the_same(header: bytes) -> None:
    record = chain(header)
    assert read_every_way(PREFACE + record + DATA)[0][1] == RecordItem("S.a", record)


@pytest.mark.clause("060-REC-05")
def test_a_gate_refuses_a_record_by_its_name_before_its_bytes_come() -> None:
    def gate(claimed: str) -> None:
        raise InvalidStream("not asked for", rule="unasked", found=claimed)

    for begun in (HELLO_WORLD[:-1], RECORD_MARK + b"B.x\n"):
        reader = StreamReader()
        reader.record_gate = gate
        reader.feed(PREFACE)
        with pytest.raises(InvalidStream, match="not asked for"):
            reader.feed(begun)


def test_facts_and_records_do_not_share_a_block() -> None:
    assert read_every_way(PREFACE + b"Have('x')\n" + DATA)[1] == "block-mixed"
    assert read_every_way(PREFACE + DATA + b"Have('x')\n")[1] == "block-mixed"


def test_a_large_record_is_held_once() -> None:
    reader = StreamReader(records=RecordLimits(max_data_bytes=1 << 20))
    reader.feed(PREFACE)
    reader.feed(RECORD_MARK + b"B.x\nData-Length: 1000000\n\n")
    for _ in range(99):
        assert reader.feed(b"y" * 10_000) == []
        assert reader.buffered == 0  # what was taken for the record waits for nothing else
    (record,) = reader.feed(b"y" * 10_000)
    assert isinstance(record, RecordItem)
    assert record.data.endswith(b"y" * 1_000_000)


# --- blocks and phases -----------------------------------------------------------------------------------------------


@pytest.mark.clause(
    "060-PHASE-01", "060-PHASE-02", "060-PHASE-03", "060-PHASE-05", "060-PHASE-08", "060-PHASE-10", "060-PHASE-11"
)
def test_blank_lines_end_blocks_and_batches_and_say_nothing_else() -> None:
    items, _ = read_every_way(PREFACE + b"Have('x')\n\nHave('y')\n# c\n\n" + DATA + b"\n\n")
    kinds = [type(item) for item in items[1:]]
    assert kinds == [FactLines, BlankLine, FactLines, BlankLine, RecordItem, BlankLine, BlankLine]


@pytest.mark.clause("060-PHASE-06", "060-PHASE-07", "060-PHASE-09")
def test_a_blank_line_alone_or_after_a_comment_is_an_empty_block() -> None:
    items, _ = read_every_way(PREFACE + b"Have('x')\n\n\n# c\n\n\n")
    assert [type(item) for item in items[2:]] == [BlankLine] * 4


@pytest.mark.clause("060-STREAM-07")
def test_a_block_is_handed_out_alone_and_the_next_one_waits() -> None:
    reader = StreamReader()
    reader.receive(PREFACE + b"Have('x')\n\nHave('y')\n\n" + DATA)
    assert reader.read_block()[-1] == BLANK
    waiting = reader.buffered
    assert waiting == len(b"Have('y')\n\n" + DATA)
    assert reader.read_block()[-1] == BLANK
    assert [type(item) for item in reader.read_block()] == [RecordItem]
    assert reader.read_block() == []


# --- the end ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"Have('x", marks=pytest.mark.clause("060-DISC-03")),
        pytest.param(b"Have('x')", marks=pytest.mark.clause("060-DISC-03")),
        pytest.param(b"# hello", marks=pytest.mark.clause("060-DISC-04")),
        pytest.param(RULES_BLOCK[:30], marks=pytest.mark.clause("060-DISC-05")),
        pytest.param(RULES_BLOCK[:-5], marks=pytest.mark.clause("060-DISC-05")),
        pytest.param(RULES_BLOCK[:-1], marks=pytest.mark.clause("060-DISC-05")),
        pytest.param(HELLO_WORLD[:30], marks=pytest.mark.clause("060-DISC-06")),
        pytest.param(HELLO_WORLD[:-1], marks=pytest.mark.clause("060-DISC-06")),
    ],
)
def test_an_end_inside_an_item_is_a_cut(data: bytes) -> None:
    assert read_every_way(PREFACE + data, eof=True) == ([Preface()], "stream-cut")


@pytest.mark.clause("060-DISC-02", "060-DISC-07", "060-DISC-08")
def test_an_end_between_items_says_whether_a_block_was_open() -> None:
    assert read_every_way(PREFACE + b"Have('x')\n\n", eof=True)[0][-1] == EndOfStream(block_open=False)
    assert read_every_way(PREFACE + b"Have('x')\n", eof=True)[0][-1] == EndOfStream(block_open=True)
    items, rule = read_every_way(PREFACE + DATA, eof=True)
    assert (items[1].__class__, items[-1], rule) == (RecordItem, EndOfStream(block_open=True), None)
    assert read_every_way(PREFACE + RULES_BLOCK, eof=True)[0][-1] == EndOfStream(block_open=False)


@pytest.mark.clause("060-RES-40")
def test_after_a_fault_nothing_more_comes_out() -> None:
    reader = StreamReader()
    with pytest.raises(InvalidStream):
        reader.feed(PREFACE[:3] + b"?")
    with pytest.raises(InvalidStream):
        reader.feed(PREFACE + b"Have('x')\n")


# --- any bytes, any split ---------------------------------------------------------------------------------------------

_ITEMS = st.sampled_from(
    [b"Have('x')\n", "Field('é')\n".encode(), b"\n", b"# c\n", RULES_BLOCK, DATA, HELLO_WORLD, chain(b"x: y\n")]
)
_FAULTS = st.one_of(st.binary(min_size=1, max_size=8), st.sampled_from([b"Have(x)\n", b"\r\n", PREFACE, b"Have('y"]))


@pytest.mark.clause("060-STREAM-04", "060-STREAM-05")
@given(
    st.lists(_ITEMS, max_size=8),
    st.one_of(st.just(b""), _FAULTS),
    st.lists(st.integers(0, 400), max_size=6),
    st.booleans(),
)
def test_every_split_of_the_same_bytes_gives_the_same_items(
    items: list[bytes], fault: bytes, cuts: list[int], eof: bool
) -> None:
    data = PREFACE + b"".join(items) + fault
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[left:right] for left, right in pairwise(edges)]
    whole = read_in_pieces([data], eof=eof)
    assert read_in_pieces(pieces, eof=eof) == whole
    assert read_in_pieces([data[i : i + 1] for i in range(len(data))], eof=eof) == whole


@given(st.binary(max_size=300))
def test_arbitrary_bytes_give_items_or_a_stream_error_and_nothing_is_hoarded(data: bytes) -> None:
    limits = StreamLimits(max_fact_line_bytes=64, max_resource_bytes=128, max_resource_lines=4)
    reader = StreamReader(limits)
    try:
        reader.feed(PREFACE + data)
        reader.receive_eof()
        reader.read_all()
    except InvalidStream:
        pass
    assert reader.buffered == 0


def test_what_comes_after_the_end_is_neither_read_nor_kept() -> None:
    reader = StreamReader()
    reader.feed(PREFACE)
    reader.receive_eof()
    assert reader.read_all() == [EndOfStream(block_open=False)]
    reader.receive(b"Have('a')\n\n")
    assert reader.read_all() == []
    assert (reader.buffered, reader.offset) == (0, len(PREFACE))
