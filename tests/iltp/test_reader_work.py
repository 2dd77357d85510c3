"""What the reader says of a fault to the byte, and which of its two ways it goes where both give the same items."""

from __future__ import annotations

import pytest

from iltp.stream_samples import DATA, HELLO_WORLD, PREFACE, RECORD_MARK, RULES_BLOCK, lacegram_block
from lace.errors import InvalidStream, InvalidText, LocalProtocolError
from lace.iltp import reader as reading
from lace.iltp import resources
from lace.iltp.address import TcpAddress, parse_address
from lace.iltp.items import EndOfStream, FactLines, Item, RecordItem, Resource
from lace.iltp.packed import encode_packed, parse_head, runs_of, unpack
from lace.iltp.reader import FACT_ITEM_BYTES, SHORT_RECORD_BYTES, StreamReader
from lace.iltp.resources import ResourceBook, check_resource
from lace.iltp.writer import encode_facts, encode_resource
from lace.limits import StreamLimits
from lace.notation.bytesource import ByteSource
from lace.notation.fact import Fact, Predicate
from lace.records import frame
from lace.thresholds import StreamThresholds

AT_ONCE = StreamThresholds().read_fact_bytes
SHORT = SHORT_RECORD_BYTES


def refuse(*_: object) -> None:
    raise AssertionError("this need not be asked")


def begun(data: bytes = b"", limits: StreamLimits | None = None, max_block_bytes: int = 1 << 26) -> StreamReader:
    """A reader behind its preface, with bytes to read."""
    reader = StreamReader(limits, max_block_bytes=max_block_bytes)
    reader.feed(PREFACE)
    reader.receive(data)
    return reader


def lines_of(size: int) -> bytes:
    """Fact lines of so many bytes together."""
    return b"A('x')\n" * (size // 7 - 2) + b"A('" + b"y" * (size % 7 + 8) + b"')\n"


# --- what is said ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "byte 0: the stream ended before its preface"),
        (PREFACE[:1], "byte 0: the stream ended inside its preface"),
        (PREFACE[:-1], "byte 0: the stream ended inside its preface"),
        (PREFACE + b"\n", "byte 13: no blank line follows the preface"),
        (b"x" * 99, "byte 0: a direction begins with the line 🪢: iltp/1 (found b'x')"),
        (PREFACE + b"A('x')\nB('\\x')\n", "byte 20: a fact line is Predicate('constant',...) without spaces between"),
        (PREFACE + b"A('\\'')\nA('x')\nB)\nC()\n", "byte 28: a fact line is Predicate('constant',...) without"),
        (PREFACE + b"B)\n", "byte 13: a fact line is Predicate('constant',...) without"),
        (PREFACE + b"#a\n#b\n", "byte 16: two comment lines follow each other"),
        (PREFACE + b"#a\rb\n", "byte 18: a comment holds no CR (found b'#a\\rb')"),
        (PREFACE + b"A()\n" + DATA, "byte 17: a fact block holds no records"),
        (PREFACE + DATA + b"A()\n", f"byte {13 + len(DATA)}: a record batch holds no fact lines"),
        (PREFACE + b"A()\n" + RULES_BLOCK, "byte 17: a resource stands before a block, not inside one"),
        (PREFACE + b"\xf0\x9fx", "byte 13: no stream item begins with these bytes (found b'\\xf0\\x9fx')"),
        (PREFACE + b"\xf0\x9f", "byte 13: the stream ended inside a marker"),
    ],
)
def test_a_fault_is_told_with_its_place(data: bytes, said: str) -> None:
    reader = StreamReader()
    with pytest.raises(InvalidStream) as caught:  # noqa: PT012 - wherever it is noticed
        reader.feed(data)
        reader.receive_eof()
        while reader.read_all():
            pass
    assert str(caught.value).startswith(said)
    with pytest.raises(InvalidStream):
        reader.read_block()
    reader.receive(b"A()\n")  # nothing after a fault is kept
    assert reader.buffered == 0


def test_comments_are_told_with_the_byte_they_begin_at() -> None:
    reader, heard = begun(b"#one\nA()\n#two\n\n"), list[tuple[int, bytes]]()
    reader.on_comment = lambda start, line: heard.append((start, line))
    reader.read_all()
    assert heard == [(13, b"#one"), (22, b"#two")]
    assert reader.offset == 13 + 15


@pytest.mark.parametrize(
    ("data", "is_open"),
    [(b"", False), (b"A()\n", True), (b"A()\n\n", False), (DATA, True), (DATA + b"\n", False), (b"#x\n", False)],
)
def test_an_end_inside_a_block_says_so(data: bytes, is_open: bool) -> None:
    reader = begun(data)
    items = reader.read_all()
    reader.receive_eof()
    assert [*items, *reader.read_all()][-1] == EndOfStream(block_open=is_open)


@pytest.mark.parametrize(("room", "taken"), [(21, 3), (20, 2), (14, 2), (13, 1), (7, 1), (6, 0)])
def test_lines_before_the_limit_of_a_block_are_still_told(room: int, taken: int) -> None:
    reader = begun(b"A('x')\n" * 3 + b"\n", max_block_bytes=room)
    items = reader.read_all()
    assert sum(len(item.facts) for item in items if isinstance(item, FactLines)) == taken
    if taken < 3:
        with pytest.raises(InvalidStream, match=f"a fact block has at most {room} bytes"):
            reader.read_all()


# --- how much at once ------------------------------------------------------------------------------------------------


def told(items: list[Item]) -> list[int]:
    return [item.size for item in items if isinstance(item, FactLines)]


@pytest.mark.parametrize(("size", "first"), [(AT_ONCE - FACT_ITEM_BYTES, 1), (AT_ONCE - FACT_ITEM_BYTES - 1, 2)])
def test_facts_are_handed_out_when_there_are_enough(size: int, first: int) -> None:
    for run in (lines_of(size), b"A('\\'')\n" + lines_of(size - 8)):  # with an escape each line is read by itself
        reader = begun(run + b"#comment\nA()\n\n")
        sizes = [size, 4]
        assert told(reader.read_block()) == sizes[:first]
        assert told(reader.read_block()) == sizes[first:]


def test_no_more_than_enough_is_matched_at_once() -> None:
    reader = begun(b"A('x')\n" * 10_000)
    assert told(reader.read_block()) == [AT_ONCE // 7 * 7]


def test_a_line_longer_than_what_is_matched_at_once_is_read_too() -> None:
    limits = StreamLimits(max_fact_line_bytes=2 * AT_ONCE)
    line = b"A('" + b"x" * (2 * AT_ONCE - 5) + b"')\n"
    reader = begun(line + b"\n", limits)
    assert told(reader.read_block()) == [2 * AT_ONCE + 1]
    longer = begun(line.replace(b"x'", b"xx'"), limits)
    with pytest.raises(InvalidStream, match=f"a line has at most {2 * AT_ONCE} bytes"):
        longer.read_all()


def test_a_packed_item_tells_its_bytes_once() -> None:
    lines = lines_of(3 * AT_ONCE)
    (packed,) = encode_packed(lines)
    reader = begun(packed + b"A()\n\n")
    reader.accepts_packed = True
    items = [item for item in reader.read_all() if isinstance(item, FactLines)]
    assert [item.packed for item in items] == [len(packed), *[0] * (len(items) - 2), None]
    assert sum(item.size for item in items) == len(lines) + 4


# --- records ---------------------------------------------------------------------------------------------------------


def record_of(size: int) -> bytes:
    """A record of so many bytes; nobody judges it here."""
    head = RECORD_MARK + b"B.x\nData-Length: %d\n\n"
    return head % (size - len(head % 10000)) + bytes(size - len(head % 10000))


def test_short_records_that_are_cut_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "read_frame", refuse)
    for record in (HELLO_WORLD, record_of(SHORT)):
        for cut in (len(RECORD_MARK) + 60, len(record) - 1):
            reader = begun(record[:cut])
            assert reader.read_all() == []
            assert [item.data for item in reader.feed(record[cut:]) if isinstance(item, RecordItem)] == [record]


def test_a_long_record_is_not_put_together_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ByteSource, "join", refuse)
    for size, cut in ((SHORT + 1, 100), (2 * SHORT, SHORT + 100)):
        record = record_of(size)
        reader = begun(record[:cut])
        assert reader.read_all() == []
        assert [item.data for item in reader.feed(record[cut:]) if isinstance(item, RecordItem)] == [record]


def test_a_record_that_cannot_be_delimited_is_refused_before_more_of_it_comes() -> None:
    for head in (b"B.x\n\n", b"B.x\nData-Length: 01\n", b"B.x\nData-Length: 1\nx\n", b"X.x\n"):
        reader = begun(RECORD_MARK + head)
        with pytest.raises(InvalidStream, match="the record cannot be delimited"):
            reader.read_all()


def test_a_gate_hears_whole_names_only() -> None:
    heard: list[str] = []
    for at in range(len(HELLO_WORLD)):
        reader = begun()
        reader.record_gate = heard.append
        reader.feed(HELLO_WORLD[:at])
        assert set(heard) <= {"B.EA7_ehEAY8WYL2is4DZ9idBDQctY2cOfABSz06ARHQx.H3"}
        assert bool(heard) == (b"\n" in HELLO_WORLD[:at])
        heard.clear()


def test_names_of_many_records_are_cut_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [record[len(RECORD_MARK) : record.index(b"\n")].decode() for record in (DATA, HELLO_WORLD, DATA)]
    with monkeypatch.context() as patched:
        patched.setattr(frame, "claimed_hash", refuse)
        patched.setattr(reading, "claimed_hash", refuse)
        reader = begun()
        reader.receive(DATA + HELLO_WORLD + DATA + RECORD_MARK)  # what follows shows that the last is whole
        items = [item for item in reader.read_block() if isinstance(item, RecordItem)]
    assert [item.claimed for item in items] == names
    assert [item.data for item in items] == [DATA, HELLO_WORLD, DATA]
    short, wide = DATA.replace(b".H3\n", b"\n"), DATA.replace(b"B.8M", b"B.\xc3\xa9")
    early = RECORD_MARK + b"B.x\n" + DATA[len(RECORD_MARK) + 4 :]
    for other in (short, wide, early):
        assert frame.claimed_hashes([DATA, other]) == [
            names[0], other[len(RECORD_MARK) : other.index(b"\n")].decode(),
        ]  # fmt: skip


# --- packed lines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "runs"),
    [
        (3, [b"aa\n", b"bbbb\n", b"c\n"]),
        (5, [b"aa\n", b"bbbb\n", b"c\n"]),
        (8, [b"aa\nbbbb\n", b"c\n"]),
        (9, [b"aa\nbbbb\n", b"c\n"]),
        (10, [b"aa\nbbbb\nc\n"]),
        (1, [b"aa\n", b"bbbb\n", b"c\n"]),
    ],
)
def test_lines_are_cut_into_runs_of_whole_ones(most: int, runs: list[bytes]) -> None:
    assert list(runs_of(b"aa\nbbbb\nc\n", most)) == runs
    assert list(runs_of(b"", most)) == []


def test_runs_are_packed_from_a_length_on_and_where_it_pays() -> None:
    for size, is_packed in ((511, False), (512, True), (600, True)):
        (item,) = encode_packed(lines_of(size))
        assert item.startswith(b"A(") is not is_packed
        if is_packed:
            head, _, rest = item.partition(b"\n")
            assert parse_head(head.split(b": ")[1]) == (size, len(rest))
            assert unpack(rest, size) == lines_of(size)
            for other in (size - 1, size + 1):
                with pytest.raises(InvalidStream, match="not as long as it says"):
                    unpack(rest, other)


@pytest.mark.parametrize(
    ("head", "sizes"),
    [
        (b"2 1", (2, 1)),
        (b"1048576 1048575", (1048576, 1048575)),
        (b"1048577 1", None),
        (b"2 2", None),
        (b"1 2", None),
        (b"0 0", None),
        (b"x", None),
    ],
)
def test_a_packed_item_is_shorter_than_its_lines(head: bytes, sizes: tuple[int, int] | None) -> None:
    if sizes is not None:
        assert parse_head(head) == sizes
        return
    with pytest.raises(InvalidStream) as caught:
        parse_head(head)
    assert caught.value.found == repr(head)


# --- resources and writing -------------------------------------------------------------------------------------------


def test_no_further_line_fits_into_a_resource_that_is_full() -> None:
    limits = StreamLimits(max_resource_bytes=4)
    for text, fits in ((b"abcd", True), (b"ab\nc", True), (b"abcd\ne", False), (b"abc\nd", False), (b"abcde", False)):
        reader = begun(lacegram_block(text), limits)
        if fits:
            assert len(reader.read_all()) == 1
        else:
            with pytest.raises(InvalidStream, match="a resource has at most 4 bytes"):
                reader.read_all()


def resource_of(text: bytes) -> Resource:
    (found,) = begun(lacegram_block(text)).read_all()
    assert isinstance(found, Resource)
    return found


def test_a_book_lets_go_of_the_oldest_text_and_keeps_the_last() -> None:
    texts = [b"A(P) :- Have(P).", b"B(P) :- Have(P).", b"CC(P) :- Have(P)."]
    resources = []
    for text in texts:
        (resource,) = begun(lacegram_block(text)).read_all()
        resources.append(resource)
    for most, kept in (
        (49, [True] * 3),
        (48, [False, True, True]),
        (33, [False, True, True]),
        (32, [False, False, True]),
    ):
        book = ResourceBook(most)
        for resource in resources:
            book.keep(resource)  # type: ignore[arg-type]
        assert [book.text(resource.id) is not None for resource in resources] == kept  # type: ignore[union-attr]
    tiny = ResourceBook(1)
    tiny.keep(resources[0])  # type: ignore[arg-type]
    assert tiny.knows(resources[0])  # type: ignore[arg-type]
    assert not tiny.knows(resources[1])  # type: ignore[arg-type]


def test_small_texts_are_identified_once(monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (b"A('identified once %s') :- Have(P)." % (b"x" * count) for count in (1, 900))
    asked: list[int] = []
    real = resources.identify
    monkeypatch.setattr(resources, "identify", lambda resource, limits: (asked.append(1), real(resource, limits))[1])
    for text, times in ((small, 1), (b"\n".join([large] * 10), 2)):
        asked.clear()
        for _ in range(2):
            check_resource(resource_of(text))
        assert len(asked) == times


@pytest.mark.parametrize(("length", "good"), [(1019, True), (1020, False)])
def test_a_line_is_written_up_to_its_limit(length: int, good: bool) -> None:
    facts = [Fact(Predicate("A", 1), ("x" * length,)), Fact(Predicate("B", 0), ())]
    if good:
        assert len(encode_facts(facts)) == 1024 + 1 + 4
        return
    with pytest.raises(LocalProtocolError):
        encode_facts(facts)


def test_a_resource_of_as_many_lines_as_a_stream_carries_is_written() -> None:
    limits = StreamLimits(max_resource_lines=2, max_resource_bytes=5)
    name = RULES_BLOCK[6:].split(b" ")[0].decode()
    assert encode_resource(name, "lacegram", b"ab\ncd", limits).endswith(b"ab\ncd\n\n")
    for text in (b"a\nb\nc", b"ab\ncde", b"abcdef"):
        with pytest.raises(LocalProtocolError, match="larger than a stream may carry"):
            encode_resource(name, "lacegram", text, limits)


# --- addresses -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "listening", "port"),
    [
        ("tcp:h:1", False, 1), ("tcp:h:65535", False, 65535), ("tcp:h:65536", False, None), ("tcp:h:0", False, None),
        ("tcp:h:0", True, 0), ("tcp:h:1", True, 1), ("tcp:h:00", True, None), ("tcp:h:99999", False, None),
        ("tcp:h", True, 4790), (f"tcp:{'a.' * 126}a", False, 4790), (f"tcp:{'a.' * 126}aa", False, None),
        ("tcp:h\x1f", False, None), ("tcp:h\x7f", False, None), ("tcp:h ", False, None), ("tcp:1.2.3", False, None),
    ],
)  # fmt: skip
def test_ports_and_hosts_at_their_bounds(text: str, listening: bool, port: int | None) -> None:
    if port is None:
        with pytest.raises(InvalidText):
            parse_address(text, listening=listening)
    else:
        found = parse_address(text, listening=listening)
        assert isinstance(found, TcpAddress)
        assert found.port == port


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tcp:h\x1f", "an address holds no control characters"),
        ("\x7f", "an address holds no control characters"),
        ("tcp", "an address is `stdio` or `scheme:address`"),
        ("", "an address is `stdio` or `scheme:address`"),
        ("stdio:", "the schemes are stdio, unix, tcp, ws and wss"),
        ("TCP:h", "the schemes are stdio, unix, tcp, ws and wss"),
        ("unix:a/b", "a unix address needs an absolute path"),
        ("ws://h", "URL-style ws:// and wss:// are not Lace addresses"),
        ("ws:h/", "the path of a WebSocket address is /interlace"),
        ("ws:h/interlace/", "the path of a WebSocket address is /interlace"),
        ("tcp:[::1", "an IPv6 host stands in brackets"),
        ("tcp:h:x", "a port is a decimal from 1 to 65535"),
        ("tcp:[1.2.3.4]", "brackets hold an IPv6 address"),
        ("tcp:", "a host is a name, an IPv4 address or a bracketed IPv6 address"),
        ("tcp:h ", "a host is a name, an IPv4 address or a bracketed IPv6 address"),
        ("tcp:1.2.3", "a host that ends in a number is an IPv4 address"),
        ("tcp:1.2.3.256", "a host that ends in a number is an IPv4 address"),
    ],
)
def test_what_is_no_address_is_told_why(text: str, said: str) -> None:
    with pytest.raises(InvalidText) as caught:
        parse_address(text)
    assert (caught.value.message, caught.value.found) == (said, repr(text))


@pytest.mark.parametrize("text", ["unix:/a b", "tcp:[::1]:4790", "ws:h:80/interlace", "stdio", "tcp:1.2.3.4:5"])
def test_an_address_is_shown_as_it_was_written(text: str) -> None:
    assert str(parse_address(text)) == text
