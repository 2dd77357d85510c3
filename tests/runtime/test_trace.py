"""Captures: written, read back, told item by item."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from interlace.pair import blob
from interop.harness import honest_stream
from lace.errors import InvalidStream
from lace.runtime.clock import SystemClock
from lace.runtime.trace.trace import Capture, Passed, TraceReader, read_capture

STREAM = honest_stream([blob(b"hello world")], [blob(b"data!")])


def test_a_capture_reads_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    with path.open("wb") as file:
        capture = Capture(file, SystemClock())
        capture.sent(STREAM[:100])
        capture.received(b"\x00\xff")
        capture.sent(STREAM[100:])
    rows = list(read_capture(path))
    assert [(row.way, row.data) for row in rows] == [("out", STREAM[:100]), ("in", b"\x00\xff"), ("out", STREAM[100:])]
    assert all(row.ns >= 0 for row in rows)


def test_one_raw_direction_is_a_capture_too(tmp_path: Path) -> None:
    path = tmp_path / "raw"
    path.write_bytes(STREAM)
    assert b"".join(row.data for row in read_capture(path)) == STREAM


@pytest.mark.parametrize("line", ["", "{}", "[]", '{"ns":1,"way":"in","data":"?"}', "not json"])
def test_a_file_that_is_no_capture_is_refused_with_its_line(line: str, tmp_path: Path) -> None:
    path = tmp_path / "bad"
    path.write_text(json.dumps({"ns": 1, "way": "in", "data": ""}) + "\n" + line + "\n")
    with pytest.raises(InvalidStream, match="bad:2"):
        list(read_capture(path))


@pytest.mark.parametrize("piece", [1, 50, 1 << 20])
def test_a_stream_is_told_item_by_item_with_sizes_that_add_up(piece: int) -> None:
    teller = TraceReader()
    told = [
        line for at in range(0, len(STREAM), piece) for line in teller.feed(Passed(at, "out", STREAM[at : at + piece]))
    ]
    told += teller.end(0, "out")
    assert sum(line.size for line in told) == len(STREAM)
    kinds = [line.kind for line in told if line.kind != "facts"]
    assert kinds == ["preface", "resource", *["end"] * 4, "record", *["end"] * 4, "close"]
    assert "MayRequest" in next(line.text for line in told if "MayRequest" in line.text)
    assert told[-1].text == "at the end of a block"
    for line in told:
        if line.kind == "record":
            assert STREAM[line.offset :].startswith(b"\xf0\x9f\x96\xa7: " + line.text.encode())


def test_a_fault_is_told_once() -> None:
    teller = TraceReader()
    told = [*teller.feed(Passed(0, "in", b"nonsense")), *teller.feed(Passed(1, "in", b"more"))]
    assert [line.kind for line in told] == ["fault"]
    assert next(line.kind for line in teller.feed(Passed(2, "out", STREAM))) == "preface"


def test_what_follows_a_comment_line_stands_where_it_is_said_to_stand() -> None:
    comment = "# kept at home: é\n".encode()
    at = STREAM.index(b"\xf0\x9f\x96\xa7: ")
    stream = STREAM[:at] + comment + STREAM[at:]
    told = list(TraceReader().feed(Passed(0, "in", stream)))
    assert [(line.offset, line.size, line.text) for line in told if line.kind == "comment"] == [
        (at, 19, "# kept at home: é")
    ]
    record = next(line for line in told if line.kind == "record")
    assert record.offset == at + 19
    assert stream[record.offset :].startswith(b"\xf0\x9f\x96\xa7: " + record.text.encode())
    assert sum(line.size for line in told) == len(stream)
