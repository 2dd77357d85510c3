"""Resource text blocks (060-RES, 060-LIM, 060-AVAIL)."""

from __future__ import annotations

import pytest

from iltp.stream_samples import (
    PIECE_MARK,
    PREFACE,
    RULES,
    RULES_BLOCK,
    RULES_ID,
    lacegram_block,
    read_every_way,
    read_in_pieces,
)
from lace.errors import InvalidStream, LocalProtocolError
from lace.iltp.items import BlankLine, FactLines, Item, Preface, Resource
from lace.iltp.reader import StreamReader
from lace.iltp.resources import ResourceBook, check_resource, fault_of, parse_marker_line
from lace.iltp.writer import encode_resource
from lace.limits import EngineLimits, StreamLimits
from lace.notation.digest import digest
from lace.notation.identifiers import LacegramId


def resource_of(text: bytes, identifier: str | None = None) -> Resource:
    return Resource(identifier or str(LacegramId.of(digest(text))), "lacegram", text)


@pytest.mark.clause("060-RES-01", "060-RES-02", "060-RES-08", "060-RES-10", "060-RES-12", "060-RES-13", "060-RES-19")
def test_a_resource_block_gives_its_lines_joined_and_no_block_end() -> None:
    items, rule = read_every_way(PREFACE + RULES_BLOCK + b"Have('x')\n\n")
    assert rule is None
    assert items[:2] == [Preface(), Resource(RULES_ID, "lacegram", RULES)]
    assert [type(item) for item in items[2:]] == [FactLines, BlankLine]


@pytest.mark.parametrize(
    "line, rule",
    [
        pytest.param(
            f"{RULES_ID} lacegram\r", "resource-marker-form", marks=pytest.mark.clause("060-RES-03", "060-RES-33")
        ),
        pytest.param(f"{RULES_ID}\r lacegram", "resource-marker-form", marks=pytest.mark.clause("060-RES-03")),
        pytest.param(f"{RULES_ID} lacegram ", "resource-marker-form", marks=pytest.mark.clause("060-RES-04")),
        pytest.param(f"{RULES_ID} lacegram x", "resource-marker-form", marks=pytest.mark.clause("060-RES-05")),
        pytest.param(f"{RULES_ID}  lacegram", "resource-marker-form", marks=pytest.mark.clause("060-RES-06")),
        pytest.param(f"{RULES_ID}\tlacegram", "resource-marker-form", marks=pytest.mark.clause("060-RES-06")),
        pytest.param(" lacegram", "resource-marker-form", marks=pytest.mark.clause("060-RES-06")),
        pytest.param(RULES_ID, "resource-marker-form", marks=pytest.mark.clause("060-RES-06")),
        pytest.param(f"{RULES_ID} ", "resource-marker-form", marks=pytest.mark.clause("060-RES-06")),
        pytest.param("", "resource-marker-form", marks=pytest.mark.clause("060-RES-06")),
        pytest.param(f"{RULES_ID} e\u0301", "resource-marker-text", marks=pytest.mark.clause("060-RES-07")),
        pytest.param(f"{RULES_ID} Lacegram", "resource-kind", marks=pytest.mark.clause("060-RES-34")),
        pytest.param(f"{RULES_ID} rules", "resource-kind", marks=pytest.mark.clause("060-RES-34")),
        pytest.param(f"{RULES_ID} exchange-plan", "resource-id", marks=pytest.mark.clause("060-RES-35", "060-RES-09")),
        pytest.param(
            "E" + RULES_ID[1:] + " lacegram", "resource-id", marks=pytest.mark.clause("060-RES-35", "060-RES-08")
        ),
        pytest.param(RULES_ID[:-1] + " lacegram", "resource-id", marks=pytest.mark.clause("060-RES-35")),
        pytest.param(RULES_ID[:-1] + "T lacegram", "resource-id", marks=pytest.mark.clause("060-RES-35")),
    ],
)
def test_a_marker_line_is_exact(line: str, rule: str) -> None:
    items, found = read_every_way(PREFACE + PIECE_MARK + line.encode() + b"\n" + RULES + b"\n\n")
    assert (items, found) == ([Preface()], rule)


@pytest.mark.clause("060-RES-07")
def test_a_marker_line_that_is_no_text_is_refused() -> None:
    with pytest.raises(InvalidStream):
        parse_marker_line(b"\xff lacegram")


@pytest.mark.parametrize(
    "body, rule",
    [
        pytest.param(b"\n", "resource-empty", marks=pytest.mark.clause("060-RES-11")),
        pytest.param(b"A(P) :- B(P).\r\n\n", "resource-cr", marks=pytest.mark.clause("060-RES-14")),
        pytest.param(b"A(P) :- \rB(P).\n\n", "resource-cr", marks=pytest.mark.clause("060-RES-14")),
        pytest.param(b"# note\n\n", "resource-marker", marks=pytest.mark.clause("060-RES-16")),
        pytest.param(
            b"A(P) :- B(P).\n" + PIECE_MARK + b"x\n\n", "resource-marker", marks=pytest.mark.clause("060-RES-17")
        ),
        pytest.param(b"\xf0\x9f\x96\xa7: x\n\n", "resource-marker", marks=pytest.mark.clause("060-RES-17")),
        pytest.param(PREFACE + b"\n", "resource-marker", marks=pytest.mark.clause("060-RES-17")),
        pytest.param("⋯🖧: x\n\n".encode(), "resource-marker", marks=pytest.mark.clause("060-RES-17")),
        pytest.param(b"\xff\n\n", "text-utf8", marks=pytest.mark.clause("060-RES-18")),
        pytest.param(b"e\xcc\x81\n\n", "text-nfc", marks=pytest.mark.clause("060-RES-18")),
    ],
)
def test_a_body_line_that_a_stream_cannot_carry_is_a_stream_error(body: bytes, rule: str) -> None:
    items, found = read_every_way(PREFACE + PIECE_MARK + RULES_ID.encode() + b" lacegram\n" + body)
    assert (items, found) == ([Preface()], rule)


@pytest.mark.clause("060-RES-15")
def test_the_first_blank_line_ends_the_body() -> None:
    block = PIECE_MARK + RULES_ID.encode() + b" lacegram\n" + RULES.replace(b"\n", b"\n\n") + b"\n\n"
    items, rule = read_every_way(PREFACE + block)
    assert items[1] == Resource(RULES_ID, "lacegram", RULES.split(b"\n")[0])
    assert rule == "fact-syntax"  # what follows is read as a block of its own


@pytest.mark.clause("060-RES-20")
def test_a_resource_stands_before_a_block_or_between_records_but_not_between_facts() -> None:
    record = b"\xf0\x9f\x96\xa7: B.x\nData-Length: 1\n\nx"
    assert read_every_way(PREFACE + b"Have('x')\n\n" + RULES_BLOCK)[1] is None
    assert read_every_way(PREFACE + record + RULES_BLOCK + record + b"\n")[1] is None
    assert read_every_way(PREFACE + b"Have('x')\n" + RULES_BLOCK)[1] == "resource-place"


@pytest.mark.clause("060-LIM-03")
def test_a_marker_line_has_at_most_1024_bytes() -> None:
    room = 1024 - 6 - len(" lacegram")
    for size, rule in ((room, "resource-id"), (room + 1, "line-length")):
        assert read_every_way(PREFACE + PIECE_MARK + b"R" * size + b" lacegram\n")[1] == rule


@pytest.mark.clause("060-LIM-04", "060-LIM-07", "060-RES-38", "060-LIM-09")
def test_a_resource_has_at_most_its_limit_of_recovered_bytes() -> None:
    head = PREFACE + PIECE_MARK + RULES_ID.encode() + b" lacegram\n"
    whole = b"x" * 5000 + b"\n" + b"y" * ((1 << 20) - 5001)
    assert len(whole) == 1 << 20
    assert read_in_pieces([head + whole + b"\n\n"])[0][1] == Resource(RULES_ID, "lacegram", whole)
    assert read_in_pieces([head + whole + b"z\n\n"])[1] == "resource-size"
    assert read_in_pieces([head + whole + b"\nz\n\n"])[1] == "resource-size"
    small = StreamLimits(max_resource_bytes=10)
    assert read_every_way(head + b"1234567890\n\n", limits=small)[1] is None
    assert read_every_way(head + b"12345\n6789\n\n", limits=small)[1] is None
    assert read_every_way(head + b"12345\n67890\n\n", limits=small)[1] == "resource-size"
    reader = StreamReader(small)
    reader.receive(head + b"x" * 11)
    while reader.read_block():
        if reader.buffered == 0:
            break
    with pytest.raises(InvalidStream):
        reader.read_block()
    assert reader.buffered == 0


@pytest.mark.clause("060-LIM-05", "060-RES-38")
def test_a_resource_has_at_most_4096_lines() -> None:
    head = PREFACE + PIECE_MARK + RULES_ID.encode() + b" lacegram\n"
    assert read_in_pieces([head + b"x\n" * 4096 + b"\n"])[1] is None
    assert read_in_pieces([head + b"x\n" * 4097 + b"\n"])[1] == "resource-lines"


@pytest.mark.clause("060-LIM-06", "060-RES-39")
def test_a_direction_has_at_most_256_resources_repeats_included() -> None:
    assert read_in_pieces([PREFACE + RULES_BLOCK * 256])[1] is None
    assert read_in_pieces([PREFACE + RULES_BLOCK * 257])[1] == "resource-count"


# --- what a body claims to be -----------------------------------------------------------------------------------------


@pytest.mark.clause("060-RES-23", "060-RES-24", "060-RES-26")
def test_a_canonical_lacegram_under_its_own_id_is_taken() -> None:
    check_resource(Resource(RULES_ID, "lacegram", RULES))
    check_resource(resource_of(b"A('%s') :- B('x')." % (b"long" * 200)))  # longer than a fact line may be


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(RULES.replace(b":- ", b":-  "), marks=pytest.mark.clause("060-RES-25", "060-RES-36")),
        pytest.param(b"A('\\x') :- B('x').", marks=pytest.mark.clause("060-RES-25", "060-RES-36")),
        pytest.param(b"A(P) :- B(P). # note", marks=pytest.mark.clause("060-RES-25", "060-RES-36")),
        pytest.param(b"A(P):-B(P).", marks=pytest.mark.clause("060-RES-25", "060-RES-36")),
        pytest.param(b"A(P) :- B(P), P = 'x'.", marks=pytest.mark.clause("060-RES-27")),
        pytest.param(b"A(P) :- B(P), Prefix(P,'x').", marks=pytest.mark.clause("060-RES-28")),
        pytest.param(b"A(P) :- B(Q).", marks=pytest.mark.clause("060-RES-26")),
        pytest.param(b"no rules", marks=pytest.mark.clause("060-RES-26")),
        pytest.param(b"\n".join(b"A('%d') :- B('x')." % n for n in range(300)), marks=pytest.mark.clause("060-RES-26")),
    ],
)
def test_other_lacegram_bytes_are_refused_even_under_their_own_hash(text: bytes) -> None:
    with pytest.raises(InvalidStream) as refusal:
        check_resource(resource_of(text))
    assert refusal.value.rule == "resource-body"


@pytest.mark.clause("060-RES-25")
def test_unsorted_rules_are_canonical() -> None:
    check_resource(resource_of(b"\n".join(sorted(RULES.split(b"\n")))))
    check_resource(resource_of(b"\n".join(sorted(RULES.split(b"\n"), reverse=True))))


@pytest.mark.clause("060-RES-24", "060-RES-37")
def test_a_body_under_another_id_is_refused() -> None:
    with pytest.raises(InvalidStream) as refusal:
        check_resource(Resource(RULES_ID, "lacegram", b"A(P) :- B(P)."))
    assert refusal.value.rule == "resource-mismatch"


@pytest.mark.clause("060-RES-31", "060-AVAIL-03", "060-AVAIL-04")
def test_a_book_keeps_what_it_was_given_and_takes_repeats() -> None:
    book, rules = ResourceBook(), Resource(RULES_ID, "lacegram", RULES)
    assert not book.knows(rules)
    book.keep(rules)
    assert book.knows(rules)
    assert book.text(RULES_ID) == RULES
    assert book.text("R." + "0" * 43) is None


@pytest.mark.clause("060-RES-32")
def test_a_book_refuses_another_body_under_a_known_id() -> None:
    book = ResourceBook()
    book.keep(Resource(RULES_ID, "lacegram", RULES))
    other = Resource(RULES_ID, "lacegram", RULES.replace(b"S", b"T"))
    assert not book.knows(other)
    with pytest.raises(InvalidStream, match="another text is known"):
        book.keep(other)
    assert book.text(RULES_ID) == RULES


def test_a_book_has_a_bound() -> None:
    book = ResourceBook(max_kept_bytes=200)
    texts = [b"A('%03d') :- B('x')." % n for n in range(50)]
    for text in texts:
        book.keep(resource_of(text))
    kept = [text for text in texts if book.text(str(LacegramId.of(digest(text)))) is not None]
    assert kept == texts[-len(kept) :]
    assert 0 < sum(map(len, kept)) <= 200


# --- writing ----------------------------------------------------------------------------------------------------------


@pytest.mark.clause("060-RES-02", "060-RES-13")
def test_what_is_written_reads_back() -> None:
    block = encode_resource(RULES_ID, "lacegram", RULES)
    assert block == RULES_BLOCK == lacegram_block(RULES)
    items: list[Item] = read_every_way(PREFACE + block)[0]
    assert items[1] == Resource(RULES_ID, "lacegram", RULES)


@pytest.mark.parametrize(
    "text",
    [b"", b"a\n", b"a\n\nb", b"# a", b"a\r", PREFACE[:-1], b"\xff", b"x" * ((1 << 20) + 1), b"x\n" * 4096 + b"x"],
)
def test_a_resource_that_no_reader_would_take_is_not_written(text: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        encode_resource(RULES_ID, "lacegram", text)


@pytest.mark.parametrize("text", [b"x" * (1 << 20), b"x\n" * 4095 + b"x"])
def test_a_resource_may_be_exactly_as_large_as_a_stream_carries(text: bytes) -> None:
    assert text in encode_resource(RULES_ID, "lacegram", text)


def test_a_fault_is_found_under_the_limits_that_were_given() -> None:
    text = b"SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P)."
    resource = Resource(str(LacegramId.of(digest(text))), "lacegram", text)
    assert fault_of(resource) is None
    assert "max_rules" in str(fault_of(resource, EngineLimits(max_rules=1)))


def test_a_resource_that_passed_once_is_judged_again_under_other_limits_and_names() -> None:
    text = b"SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P)."
    name = str(LacegramId.of(digest(text)))
    for _ in range(2):
        check_resource(Resource(name, "lacegram", text))
        with pytest.raises(InvalidStream, match="max_rules"):
            check_resource(Resource(name, "lacegram", text), EngineLimits(max_rules=1))
        with pytest.raises(InvalidStream, match="not what the id names"):
            check_resource(Resource(str(LacegramId.of(digest(b"other"))), "lacegram", text))
