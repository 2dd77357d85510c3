"""Records come back from their bytes, whole, split anywhere, and with bytes after them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidRecord, InvalidStream
from lace.intake.judge import judge_all
from lace.limits import MIB, RecordLimits
from lace.notation.bytesource import ByteSource
from lace.notation.digest import digest
from lace.records.frame import (
    MARKLINE_BYTES,
    claimed_hash,
    delimit,
    frame_end,
    max_head_bytes,
    read_frame,
    split_records,
)
from lace.records.grammar import MARK, RecordRule
from lace.records.headpattern import parse_common
from lace.records.model import DEFAULT_LIMITS, Blob, Parts, Plex, Record, Seal, ValidRecord
from lace.records.parse import parse_record
from lace.records.partcolumns import PartColumns, columns_of, parse_alike
from lace.records.thin import thicken, thin_form
from lace.records.validate import signature_task, signature_tasks, validate
from lace.records.write import encode_record
from notation.reading import read_whole
from records.strategies import BLOBS, DATA, FIELDS, PLEXES, RECORDS, SEALS, blob_bytes, plex_bytes, seal_bytes, stored


@pytest.mark.clause(
    "010-MARK-01", "010-MARK-02", "010-MARK-03", "010-MARK-04", "010-PLEX-05", "010-PLEX-07", "010-BLOB-09"
)
@given(RECORDS)
def test_what_is_written_is_read_back(record: Record) -> None:
    bytes_ = encode_record(record)
    markline, payload = bytes_.split(b"\n", 1)
    assert markline == MARK + record.hash.encode()
    assert record.hash.digest == digest(payload)
    valid = validate(memoryview(bytes_))
    assert (valid.record, valid.hash, valid.stored, valid.type) == (record, record.hash, bytes_, record.type)
    assert b"".join(valid.record.stored_chunks()) == bytes_


@given(RECORDS)
def test_the_fast_way_and_the_grammar_find_the_same(record: Record) -> None:
    bytes_ = encode_record(record)
    assert parse_common(bytes_, DEFAULT_LIMITS) == parse_record(bytes_, DEFAULT_LIMITS)


HEAD_NOISE = [
    b"",
    b"\n",
    b"A: b\n",
    b"\r",
    b"#",
    b"|",
    b"/",
    b"..",
    "é".encode(),
    b"e\xcc\x81",
    MARK,
    b"Type: x\n",
    b" ",
    b"0",
]


@given(st.one_of(PLEXES, SEALS).map(encode_record), st.data())
def test_the_fast_way_accepts_nothing_that_the_grammar_refuses(bytes_: bytes, data: st.DataObject) -> None:
    """Break a head somewhere, put every digest right again, and compare."""
    kind = chr(bytes_[6])
    plex_start = MARKLINE_BYTES if kind == "P" else bytes_.index(MARK, 1) + MARKLINE_BYTES
    blob_start = bytes_.index(MARK + b"B")
    at = data.draw(st.integers(plex_start, blob_start))
    cut = data.draw(st.integers(0, 3))
    noise = data.draw(st.sampled_from(HEAD_NOISE))
    head = bytes_[plex_start:at] + noise + bytes_[min(at + cut, blob_start) : blob_start]
    plex = stored("P", head + bytes_[blob_start:])
    broken = plex if kind == "P" else stored("S", bytes_[MARKLINE_BYTES : bytes_.index(MARK, 1)] + plex)
    fast = parse_common(broken, DEFAULT_LIMITS)
    among_others = parse_alike([bytes_, broken], DEFAULT_LIMITS)
    try:
        expected = parse_record(broken, DEFAULT_LIMITS)
    except InvalidRecord:
        assert fast is None
        assert among_others is None
    else:
        assert fast in (None, expected)
        assert among_others is None or rows(among_others)[1] == expected


def rows(columns: PartColumns) -> list[Parts]:
    return list(map(Parts._make, zip(*columns, strict=True)))


LIKE_EACH_OTHER = st.one_of(
    st.lists(PLEXES, max_size=4),
    st.lists(SEALS, max_size=4),
    st.lists(BLOBS, max_size=4),
    st.lists(RECORDS, max_size=3),
)


@given(LIKE_EACH_OTHER)
def test_records_that_are_read_together_are_those_that_are_read_one_by_one(records: list[Record]) -> None:
    frames = list(map(encode_record, records))
    columns = parse_alike(frames, DEFAULT_LIMITS)
    valids = [validate(frame) for frame in frames]
    assert PartColumns._fields == Parts._fields
    assert rows(columns_of(valids)) == [valid.parts for valid in valids]
    if columns is not None:
        assert rows(columns) == [valid.parts for valid in valids]
        assert signature_tasks(columns) == [task for valid in valids if (task := signature_task(valid)) is not None]


def test_only_records_of_one_type_and_the_common_shape_are_read_together() -> None:
    plexes = [plex_bytes(extras=b"X: %d\n" % number) for number in range(3)]
    seals = [seal_bytes(plex) for plex in plexes]
    blobs = [blob_bytes(b"%d" % number) for number in range(3)]
    for alike in (plexes, seals, blobs):
        assert parse_alike(alike, DEFAULT_LIMITS) is not None
        spoiled = alike[1][:-1] + bytes([alike[1][-1] ^ 1])
        for others in ([alike[0], spoiled], [spoiled, alike[0]], [alike[0], b""], [alike[0], alike[1] + b"x"]):
            assert parse_alike(others, DEFAULT_LIMITS) is None
        if alike is blobs:
            continue
        unusual = alike[0].replace(b"links", "lïnks".encode())
        assert parse_alike([alike[0], unusual], DEFAULT_LIMITS) is None
        few = [RecordLimits(max_data_bytes=1), RecordLimits(max_extra_headers=0), RecordLimits(max_header_line_bytes=9)]
        assert [parse_alike(alike, limits) for limits in few] == [None] * 3
    for mixed in ([plexes[0], seals[0]], [seals[0], plexes[0]], [blobs[0], plexes[0]], [], [b""]):
        assert parse_alike(mixed, DEFAULT_LIMITS) is None


def feed(bytes_: bytes, sizes: list[int]) -> bytes:
    """Read one record from a stream that comes in chunks of these sizes over and over."""
    source = ByteSource()
    reader = read_frame(source)
    position = 0
    turn = 0
    while True:
        try:
            next(reader)
        except StopIteration as done:
            record = bytes(done.value)
            break
        size = sizes[turn % len(sizes)]
        turn += 1
        source.feed(bytes_[position : position + size])
        position += size
    assert record + read_whole(source.read_exact(source.buffered), source) == bytes_[:position]
    return record


@given(RECORDS, st.lists(st.integers(1, 200), min_size=1, max_size=5), st.binary(max_size=20))
def test_a_record_on_a_stream_is_the_same_however_it_is_split(record: Record, sizes: list[int], after: bytes) -> None:
    bytes_ = encode_record(record)
    assert feed(bytes_, [1]) == bytes_
    assert feed(bytes_, [len(bytes_)]) == bytes_
    assert feed(bytes_ + after, sizes) == bytes_
    assert delimit(bytes_ + after) == len(bytes_)
    assert delimit(b"before" + bytes_ + after, 6) == 6 + len(bytes_)


@given(st.lists(RECORDS, max_size=4))
def test_records_back_to_back_come_apart(records: list[Record]) -> None:
    stream = b"".join(map(encode_record, records))
    assert [validate(one).record for one in split_records(stream)] == records
    if stream:
        with pytest.raises(InvalidStream):
            list(split_records(stream[:-1] if records[-1] != Blob(b"") else stream[:-2]))


@given(RECORDS, st.data())
def test_a_cut_record_is_never_whole(record: Record, data: st.DataObject) -> None:
    bytes_ = encode_record(record)
    cut = bytes_[: data.draw(st.integers(0, len(bytes_) - 1))]
    end = delimit(cut)
    assert end is None or end == len(bytes_)
    source = ByteSource(cut)
    with pytest.raises(InvalidStream, match="ended inside"):
        read_whole(read_frame(source), source)
    with pytest.raises(InvalidRecord):
        validate(cut)


FRAME_LINES = [
    MARK + b"S.x\n", MARK + b"P.x\n", MARK + b"B.x\n", MARK + b"X\n", MARK + b"\n", b"A: b\n", b"x\n", b"\n",
    b"Data-Length: 3\n",
    b"Data-Length: 03\n", b"Data-Length: \n", b"y" * 1024 + b"\n", b"y" * 1025 + b"\n", b"z\n" * 600, b"no end",
]  # fmt: skip


def outcome(find: Callable[[], int | None]) -> int | str | None:
    try:
        return find()
    except InvalidStream:
        return "no frame"


@given(st.lists(st.sampled_from(FRAME_LINES), max_size=7), st.binary(max_size=5))
def test_whole_bytes_and_streams_have_the_same_frame(lines: list[bytes], after: bytes) -> None:
    bytes_ = MARK + b"P.x\n" + b"".join(lines) + after

    def by_stream() -> int | None:
        source = ByteSource(bytes_)
        try:
            next(read_frame(source))
        except StopIteration as done:
            return len(done.value)
        return None

    found = outcome(lambda: delimit(bytes_))
    streamed = outcome(by_stream)
    data_missing = isinstance(found, int) and found > len(bytes_)
    assert streamed == (None if data_missing else found)


@given(st.lists(st.sampled_from(FRAME_LINES), max_size=7), st.binary(max_size=5))
def test_one_match_finds_the_frame_that_lines_find(lines: list[bytes], after: bytes) -> None:
    bytes_ = MARK + b"P.x\n" + b"".join(lines) + after
    found = outcome(lambda: delimit(bytes_))
    assert frame_end(bytes_, 0, DEFAULT_LIMITS) == (found if isinstance(found, int) else None)


def test_a_head_of_the_utmost_length_is_a_frame_and_one_line_more_is_none() -> None:
    line = b"y" * 1024 + b"\n"
    for lines, fits in ((518, True), (519, False)):
        head = MARK + b"S." + b"x" * 1016 + b"\n" + line * lines
        head += b"".join(MARK + letter + b"x" * 1017 + b"\n" for letter in (b"P", b"B"))
        frame = head + b"Data-Length: 1\n\nz"
        assert (frame_end(frame, 0, DEFAULT_LIMITS) == len(frame)) == fits
        assert outcome(lambda: delimit(frame)) == (len(frame) if fits else "no frame")  # noqa: B023
        assert len(frame) - 1 <= max_head_bytes(DEFAULT_LIMITS) or not fits


def test_limits_that_nobody_can_count_to_are_none() -> None:
    limits = RecordLimits(max_header_line_bytes=1 << 50, max_extra_headers=1 << 50, max_data_bytes=1 << 62)
    assert frame_end(MARK + b"B.x\n" + b"y" * 5000 + b"\nData-Length: 3\n\n", 0, limits) == 5030


@pytest.mark.parametrize(
    ("stored_bytes", "claim"),
    [(b"", ""), (b"x", ""), (MARK, ""), (MARK + b"B.x", "B.x"), (MARK + b"\xff\nB", "\\xff"), (b"z" + MARK + b"B", "")],
)
def test_what_a_record_claims_to_be_is_read_off_any_bytes(stored_bytes: bytes, claim: str) -> None:
    assert claimed_hash(stored_bytes) == claim
    assert claimed_hash(b"before" + stored_bytes, 6) == claim
    assert len(claimed_hash(MARK + b"y" * 10_000)) < 1024


HOSTILE = st.one_of(
    st.binary(max_size=80),
    st.lists(st.sampled_from([*FRAME_LINES, MARK, b"P", b"S", b"B", b"hello ", b"\xff"]), max_size=6).map(b"".join),
    st.tuples(RECORDS.map(encode_record), st.integers(0, 400), st.binary(max_size=3)).map(
        lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] + 1 :]
    ),
)


@pytest.mark.parametrize(
    "stored_bytes", [b"hello PS", b"hello B", b"\xf0\x9f\x96\xa7: S", b"123456P\n\n", b"\n\n", b""]
)
def test_bytes_that_look_like_a_record_in_one_place_are_refused_like_any_other(stored_bytes: bytes) -> None:
    with pytest.raises(InvalidRecord):
        validate(stored_bytes)


@given(HOSTILE)
def test_hostile_bytes_are_a_record_or_an_invalid_record_and_nothing_else(stored_bytes: bytes) -> None:
    verdict = judge_all([stored_bytes], DEFAULT_LIMITS)[0]
    assert verdict.stored == stored_bytes if isinstance(verdict, ValidRecord) else verdict.rule in list(RecordRule)


FRAMED_BUT_WRONG = [
    pytest.param(plex_bytes(FIELDS.replace(b"App", b"Zpp")), id="wrong-field"),
    pytest.param(stored("S", b"\xff\xfe\n" + blob_bytes()), id="seal-with-blob"),
    pytest.param(plex_bytes(extras=b"no header\r\n" * 100), id="bad-lines"),
    pytest.param(MARK + b"Pxyz\nx\n" + blob_bytes(), id="bad-hash-text"),
    pytest.param(stored("B", b"A: b\nData-Length: 2\n\nhi"), id="blob-with-headers"),
    pytest.param(blob_bytes()[:-1] + b"!", id="wrong-digest"),
    pytest.param(stored("S", b"x\n" * 518 + plex_bytes(b"")), id="518-lines"),
]


@pytest.mark.parametrize("bytes_", FRAMED_BUT_WRONG)
def test_what_can_be_delimited_is_refused_alone(bytes_: bytes) -> None:
    assert feed(bytes_, [1]) == bytes_
    assert feed(bytes_ + b"more", [7]) == bytes_
    assert delimit(bytes_ + b"more") == len(bytes_)
    with pytest.raises(InvalidRecord):
        validate(bytes_)


NO_FRAME = [
    pytest.param(
        "⋯🖧: B.x.H3\nData-Length: 0\n\n".encode(), id="trailer-form", marks=pytest.mark.clause("010-TRAIL-01")
    ),
    pytest.param(b"Data-Length: 0\n\n", id="no-mark"),
    pytest.param(MARK + b"X.\nData-Length: 0\n\n", id="unknown-letter"),
    pytest.param(MARK + b"\nData-Length: 0\n\n", id="no-letter"),
    pytest.param(plex_bytes(inner=seal_bytes(plex_bytes())), id="seal-in-plex"),
    pytest.param(stored("P", FIELDS + plex_bytes()), id="plex-in-plex"),
    pytest.param(plex_bytes(extras=b"\n"), id="blank-before-blob"),
    pytest.param(MARK + b"P.x\nData-Length: 0\n\n", id="plex-without-blob"),
    pytest.param(MARK + b"B.x\n\n", id="no-length"),
    pytest.param(MARK + b"B.x\nData-Length: 0\nA: b\n\n", id="header-after-length"),
    pytest.param(MARK + b"B.x\nData-Length: 01\n\n", id="leading-zero"),
    pytest.param(MARK + b"B.x\nData-Length: -1\n\n", id="negative"),
    pytest.param(MARK + b"B.x\nData-Length: 33554433\n\n", id="too-long"),
    pytest.param(MARK + b"B.x\nData-Length: 0\nData-Length: 0\n\n", id="two-lengths"),
    pytest.param(MARK + b"B.x\nData-Length: 0\n" + MARK + b"B.x\n\n", id="mark-after-length"),
    pytest.param(MARK + b"P." + b"x" * 1020 + b"\n", id="long-markline"),
    pytest.param(plex_bytes(extras=b"A: " + b"x" * 1022 + b"\n"), id="long-line"),
    pytest.param(stored("S", b"x\n" * 519 + plex_bytes(b"")), id="519-lines"),
    pytest.param(MARK + b"P.x\n" + b"y\n" * 519, id="519-lines-unended"),
]


@pytest.mark.parametrize("bytes_", NO_FRAME)
def test_what_cannot_be_delimited_is_an_error_of_the_stream(bytes_: bytes) -> None:
    with pytest.raises(InvalidStream):
        feed(bytes_ + b"x" * 4096, [1])
    with pytest.raises(InvalidStream):
        delimit(bytes_ + b"x" * 4096)


def test_a_reader_refuses_before_it_holds_more_than_its_limits_allow() -> None:
    limits = RecordLimits(max_header_line_bytes=100, max_extra_headers=2, max_data_bytes=1000)
    source = ByteSource()
    reader = read_frame(source, limits)
    source.feed(MARK + b"P." + b"x" * 50 + b"\n")
    next(reader)
    source.feed(b"y" * 101)
    with pytest.raises(InvalidStream, match="at most 100 bytes"):
        next(reader)
    for bad in (b"y\n" * 9, MARK + b"B.\nData-Length: 1001\n\n"):
        source = ByteSource(MARK + b"P.\n" + bad)
        with pytest.raises(InvalidStream, match="delimited"):
            next(read_frame(source, limits))
        with pytest.raises(InvalidStream, match="delimited"):
            delimit(MARK + b"P.\n" + bad, 0, limits)


@pytest.mark.clause("010-BLOB-08", "010-BLOB-09")
def test_the_largest_blob_is_read_with_one_copy_of_its_data() -> None:
    import tracemalloc

    data = bytes(32 * MIB)
    chunks = Blob(data).stored_chunks()
    source = ByteSource()
    tracemalloc.start()
    reader = read_frame(source)
    next(reader)
    for chunk in chunks[:-1]:
        source.feed(chunk)
        next(reader)
    source.feed(data)
    with pytest.raises(StopIteration) as done:
        next(reader)
    valid = validate(done.value.value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert valid.data_length == 32 * MIB
    assert peak < 34 * MIB


ACCEPTED = [
    pytest.param(b"A:  b\n", [("A", " b")], marks=pytest.mark.clause("010-HDR-07"), id="second-space-is-value"),
    pytest.param(
        b"A:   \n", [("A", "  ")], marks=pytest.mark.clause("010-HDR-14", "010-HDR-07"), id="spaces-are-value"
    ),
    pytest.param(
        b"A: b \nA:  b\n", [("A", "b "), ("A", " b")], marks=pytest.mark.clause("010-HDR-14"), id="not-trimmed"
    ),
    pytest.param(b"A: b: c:d\n", [("A", "b: c:d")], marks=pytest.mark.clause("010-HDR-15"), id="colon-in-value"),
    pytest.param(
        b"A: " + b"x" * 1021 + b"\n", [("A", "x" * 1021)], marks=pytest.mark.clause("010-HDR-13"), id="line-1024"
    ),
    pytest.param(b"A: b\n" * 512, [("A", "b")] * 512, marks=pytest.mark.clause("010-EXTRA-04"), id="512-extras"),
    pytest.param(
        b"A: 2\nA: 1\n",
        [("A", "2"), ("A", "1")],
        marks=pytest.mark.clause("010-EXTRA-03", "010-EXTRA-01"),
        id="free-order",
    ),
    pytest.param(
        b"Z: 1\ngroup: g\ntype: t\n",
        [("Z", "1"), ("group", "g"), ("type", "t")],
        marks=pytest.mark.clause("010-EXTRA-08"),
        id="case",
    ),
    pytest.param("x🖧: v\n".encode(), [("x🖧", "v")], marks=pytest.mark.clause("010-EXTRA-06"), id="mark-not-first"),
    pytest.param(
        "\ufffd: 1\n\U00010000: 2\n".encode(),
        [("\ufffd", "1"), ("\U00010000", "2")],
        marks=pytest.mark.clause("010-EXTRA-01"),
        id="bytewise",
    ),
    pytest.param("A: é\n".encode(), [("A", "é")], marks=pytest.mark.clause("010-HDR-10"), id="nfc"),
    pytest.param(
        b"+Link: no target\n", [("+Link", "no target")], marks=pytest.mark.clause("010-LINK-08"), id="bad-link"
    ),
]


@pytest.mark.parametrize(("extras", "headers"), ACCEPTED)
def test_headers_that_are_allowed_are_kept_as_they_are(extras: bytes, headers: list[tuple[str, str]]) -> None:
    bytes_ = plex_bytes(extras=extras)
    record = validate(bytes_).record
    assert isinstance(record, Plex)
    assert list(record.headers) == headers
    assert encode_record(record) == bytes_


@pytest.mark.clause("010-EXTRA-03", "010-PLEX-12")
def test_another_order_or_value_is_another_record() -> None:
    variants = [b"A: 1\nA: 2\n", b"A: 2\nA: 1\n", b"A: 1\nA: 2 \n", b"A: 1\n", b""]
    assert len({validate(plex_bytes(extras=extras)).hash for extras in variants}) == len(variants)
    inners = {validate(plex_bytes(inner=blob_bytes(data))).hash for data in (b"a", b"b")}
    assert len(inners) == 2


@pytest.mark.clause("010-PATH-05", "010-PATH-06", "010-PATH-01")
def test_reading_takes_long_segments_and_a_number_sign_in_names() -> None:
    head = b"Group: " + b"g" * 900 + b"\nApp: a\nName: n#1/" + b"n" * 900 + b"\nTAI: 1640995200:000000000\n"
    record = validate(plex_bytes(head)).record
    assert isinstance(record, Plex)
    assert record.name == "n#1/" + "n" * 900
    assert validate(encode_record(record)).record == record


@pytest.mark.clause("010-BLOB-02", "010-BLOB-09")
@given(DATA)
def test_a_blob_is_any_bytes(data: bytes) -> None:
    valid = validate(encode_record(Blob(data)))
    assert bytes(valid.data) == data
    assert valid.stored[55:] == b"Data-Length: %d\n\n" % len(data) + data


@pytest.mark.clause("010-THIN-01", "010-THIN-02")
@given(st.one_of(PLEXES, SEALS))
def test_a_thin_record_is_checked_with_its_inner_record_back(record: Plex | Seal) -> None:
    valid = validate(encode_record(record))
    inner = record.blob if isinstance(record, Plex) else record.plex
    kept = {inner.hash: encode_record(inner)}
    thin = thin_form(valid)
    assert thin.endswith(inner.hash.encode() + b"\n")
    assert thicken(thin, kept.get).stored == valid.stored


@pytest.mark.clause("010-THIN-03", "020-EMBED-06")
def test_a_thin_record_without_its_inner_record_or_with_another_fails() -> None:
    from lace.errors import NotFound

    valid = validate(seal_bytes(plex_bytes()))
    thin = thin_form(valid)
    with pytest.raises(NotFound):
        thicken(thin, lambda _: None)
    with pytest.raises(InvalidRecord):
        thicken(thin, lambda _: plex_bytes(extras=b"A: b\n"))
    with pytest.raises(InvalidRecord):
        validate(thin)


def test_valid_records_are_made_in_one_place() -> None:
    import ast
    from pathlib import Path

    import lace

    makers = set()
    for path in Path(str(lace.__file__)).parent.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "ValidRecord" in text else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "ValidRecord":
                makers.add(f"{path.parent.name}/{path.name}")
    assert makers == {"records/validate.py"}


def test_valid_records_compare_by_their_hash() -> None:
    one, other = validate(blob_bytes(b"a")), validate(blob_bytes(b"b"))
    assert one == validate(blob_bytes(b"a")) != other
    assert len({one, validate(blob_bytes(b"a")), other}) == 2
    assert isinstance(one, ValidRecord)
    assert repr(one) == f"ValidRecord('{one.hash}', {len(one.stored)} bytes)"
