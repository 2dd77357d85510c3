"""The smallest notations to the last character: numbers, digests, predicates, identifiers, what an error repeats."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidText, excerpt
from lace.notation import b64a, digest
from lace.notation.decimal import MAX_DIGITS, is_decimal, natural
from lace.notation.fact import Fact, FactColumn, Predicate, facts_of
from lace.notation.factline import format_facts, parse_alike, parse_fact, parse_plain_run
from lace.notation.identifiers import ExchangePlanId, LacegramId, RecordHash, RuleId, Verifier, is_record_hash
from lace.notation.tai import TAI
from lace.notation.text import decode_text, is_nfc, quote, require_nfc

PAYLOAD = b64a.encode(bytes(range(32)))


def refuse(*_: object) -> None:
    raise AssertionError("this need not be asked")


# --- B64A ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 5, 6, 16, 32, 33, 64])
def test_a_pattern_takes_the_texts_of_its_size_and_no_others(size: int) -> None:
    pattern = re.compile(b64a.pattern_of(size))
    for fill in (b"\x00", b"\xff", b"\x5a"):
        for near in range(max(0, size - 3), size + 4):
            text = b64a.encode(fill * near)
            assert (pattern.fullmatch(text) is not None) is (near == size)
            assert b64a.text_length(near) == len(text)
    last = {symbol for symbol in b64a.ALPHABET if size and pattern.fullmatch(b64a.encode(bytes(size))[:-1] + symbol)}
    assert len(last) == {0: 64 if size else 0, 1: 4, 2: 16}[size % 3]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("01", "the filler bits of the last B64A symbol must be zero (found '1')"),
        ("00000z1", "the filler bits of the last B64A symbol must be zero (found '1')"),
        ("00000", "no B64A text has a length of 1 mod 4 (found 5 symbols)"),
        ("00=0", "symbol 2: B64A has no symbol '='"),
        ("00.=", "symbol 2: B64A has no symbol '.'"),
    ],
)
def test_a_refusal_says_which_symbol(text: str, said: str) -> None:
    with pytest.raises(InvalidText) as caught:
        b64a.decode(text)
    assert str(caught.value) == said


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("7", 7),
        ("10", 10),
        ("9" * 18, int("9" * 18)),
        ("9" * 19, None),
        ("00", None),
        ("01", None),
        ("", None),
        ("-1", None),
        ("+1", None),
        ("1 ", None),
        ("1\n", None),
        ("٣", None),
        ("x", None),
    ],
)
def test_natural_numbers_have_one_text(text: str, number: int | None) -> None:
    assert natural(text) == number
    assert is_decimal(text) is (number is not None or text == "9" * 19)


@pytest.mark.parametrize(("digits", "found"), [(2, None), (3, 123), (4, 123), (MAX_DIGITS, 123)])
def test_a_number_has_no_more_digits_than_its_reader_takes(digits: int, found: int | None) -> None:
    assert natural("123", digits) == found


# --- digests ---------------------------------------------------------------------------------------------------------


@given(st.lists(st.binary(max_size=90), max_size=4), st.integers(0, 70))
def test_digests_one_by_one_and_together_are_those_of_the_library(pieces: list[bytes], start: int) -> None:
    plain = [blake3(piece).digest() for piece in pieces]
    assert list(map(digest.digest, pieces)) == plain == digest.digest_each(pieces)
    assert digest.digest_tails(pieces, [[0, start] for _ in pieces]) == [
        blake3(tail).digest() for piece in pieces for tail in (piece, piece[start:])
    ]
    assert [digest.domain_digest("d/1", piece) for piece in pieces] == [blake3(b"d/1" + p).digest() for p in pieces]
    derived = [blake3(piece, derive_key_context="c").digest(length=40) for piece in pieces]
    derive = digest.key_deriver("c")
    assert [derive(piece, 40) for piece in pieces] == derived
    assert [derive(piece) for piece in pieces] == [one[:32] for one in derived] == digest.derive_each("c", pieces)
    hasher = digest.hasher()
    for piece in pieces:
        hasher.update(piece)
    assert hasher.digest() == blake3(b"".join(pieces)).digest()


# --- facts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Have/1", Predicate("Have", 1)),
        ("A/0", Predicate("A", 0)),
        ("A/10", Predicate("A", 10)),
        ("A/01", None),
        ("A/", None),
        ("A", None),
        ("/1", None),
        ("A/1/2", None),
        ("A/-1", None),
        ("", None),
    ],
)
def test_a_predicate_is_its_name_and_its_arity(text: str, found: Predicate | None) -> None:
    assert Predicate.parse(text) == found
    if found is not None:
        assert str(found) == text


def test_a_column_is_written_and_compared_without_making_its_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    column = FactColumn(Predicate("A", 2), ["x", "y"], ("z",))
    assert column == [Fact(Predicate("A", 2), ("x", "z")), Fact(Predicate("A", 2), ("y", "z"))]
    assert column != [Fact(Predicate("A", 2), ("x", "z")), Fact(Predicate("A", 2), ("y", "w"))]
    assert column != [Fact(Predicate("A", 2), ("x", "z"))]
    assert column != {1: 2, 3: 4}
    monkeypatch.setattr(FactColumn, "__iter__", refuse)
    assert format_facts(column) == "A('x','z')\nA('y','z')\n"
    assert format_facts(FactColumn(Predicate("A", 2), ["it's"], ("\\",))) == "A('it\\'s','\\\\')\n"
    assert format_facts(FactColumn(Predicate("A", 1), [])) == ""
    assert format_facts([]) == ""


ALIKE = {
    "a column": ("A('x')\nA('y')\n", True),
    "a column of pairs": ("A('x','z')\nA('y','z')\n", True),
    "one line": ("A('x')\n", True),
    "empty constants": ("A('')\nA('')\n", True),
    "another second constant at the end": ("A('x','z')\nA('y','w')\n", False),
    "another second constant at the front": ("A('x','w')\nA('y','z')\nA('u','z')\n", False),
    "another arity at the end": ("A('x')\nA('y','z')\n", False),
    "another arity at the front": ("A('x','z')\nA('y')\n", False),
    "another name at the end": ("A('x')\nB('y')\n", False),
    "a longer name": ("A('x')\nAB('y')\n", False),
    "no constants": ("A()\nA()\n", False),
    "no constants at the end": ("A('x')\nA()\n", False),
}


@pytest.mark.parametrize(("text", "is_column"), ALIKE.values(), ids=ALIKE)
def test_lines_that_are_alike_and_lines_that_only_seem_so(text: str, is_column: bool) -> None:
    found = parse_plain_run(text.encode())
    assert found is not None
    assert isinstance(found, FactColumn) is is_column
    assert list(found) == [parse_fact(line, 1024) for line in text.splitlines()]
    assert format_facts(list(found)) == text == format_facts(found)


@pytest.mark.parametrize(
    "text",
    [
        "A('x'\n",
        "A('x')\n\n",
        "A('x\\'')\n",
        "A('x\r')\n",
        "A('é')\n",
        "A('x''y')\n",
        "1()\n",
    ],
)
def test_lines_that_are_not_all_plain_are_left_to_whoever_reads_them_one_by_one(text: str) -> None:
    assert parse_plain_run(text.encode()) is None


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("A('x')\n", [("x",)]),
        ("A('')\nA('y')\n", [("",), ("y",)]),
        ("A('x','z')\nA('y','w')\n", [("x", "z"), ("y", "w")]),
        ("A('x','z','u')\n", [("x", "z", "u")]),
        ("A('x')\nA('y','z')\n", None),
        ("A('x')\nB('y')\n", None),
        ("A()\nA('y')\n", None),
        ("A('x')\nA()\n", None),
        ("A('x\\')\n", None),
        ("A('x\r')\n", None),
        ("A('x'y')\n", None),
        ("A('x')\nA('y'z','u')\n", None),
        ("A('x)\nA('y')\n", None),
        ("1('x')\n", None),
        ("A('x') \n", None),
    ],
)
def test_lines_of_one_predicate_are_split_at_once(text: str, rows: list[tuple[str, ...]] | None) -> None:
    found = parse_alike(text)
    assert found == (None if rows is None else [Fact(Predicate("A", len(row)), row) for row in rows])


@pytest.mark.parametrize(
    ("line", "size", "said"),
    [
        ("A('xyz')", 7, "a fact line has at most 7 bytes (found 8 bytes)"),
        (b"A('xyz')", 7, "a fact line has at most 7 bytes (found 8 bytes)"),
        ("A('é')", 6, "a fact line has at most 6 bytes (found 6 bytes)"),
        (b"A('\xc3\xa9')", 6, "a fact line has at most 6 bytes (found 7 bytes)"),
        ("x" * 99, 100, "a fact line is Predicate('constant',...) without spaces between or anything after (found "),
    ],
)
def test_a_fact_line_that_is_none_is_told_why(line: str | bytes, size: int, said: str) -> None:
    with pytest.raises(InvalidText) as caught:
        parse_fact(line, size)
    assert str(caught.value).startswith(said)


def test_facts_of_one_predicate_are_facts() -> None:
    facts = facts_of(Predicate("A", 1), [("x",), ("y",)])
    assert facts == [Fact(Predicate("A", 1), ("x",)), Fact(Predicate("A", 1), ("y",))]
    assert all(isinstance(fact, Fact) for fact in facts)
    assert facts[0].values == ("x",)


# --- identifiers -----------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[Callable[[str], str], Callable[[bytes], str]]] = {
    f"V.{PAYLOAD}.H3": (Verifier.parse, Verifier.of),
    f"R.{PAYLOAD}": (LacegramId.parse, LacegramId.of),
    f"U.{PAYLOAD}": (RuleId.parse, RuleId.of),
    f"E.{PAYLOAD}": (ExchangePlanId.parse, ExchangePlanId.of),
    f"P.{PAYLOAD}.H3": (RecordHash.parse, lambda digest: RecordHash.of("P", digest)),
    f"B.{PAYLOAD}.H3": (RecordHash.parse, lambda digest: RecordHash.of("B", digest)),
    f"S.{PAYLOAD}.H3": (RecordHash.parse, lambda digest: RecordHash.of("S", digest)),
}


@pytest.mark.parametrize("text", KINDS)
def test_an_identifier_has_one_text(text: str) -> None:
    parse, of = KINDS[text]
    found = parse(text)
    assert found == of(bytes(range(32))) == text
    assert found.payload == PAYLOAD  # type: ignore[attr-defined]
    assert found.digest == bytes(range(32))  # type: ignore[attr-defined]
    wrong = [
        text[1:], text[:-1], text + "x", "x" + text, "Q" + text[1:], text.replace(".", "-", 1), "", text[:2],
        text.replace(PAYLOAD, PAYLOAD[1:]), text.replace(PAYLOAD, PAYLOAD[:-1] + "z"), text.replace(PAYLOAD, ""),
        text.removesuffix(".H3") if text.endswith(".H3") else text + ".H3", text.replace("H3", "H4") + " ", text + "\n",
    ]  # fmt: skip
    for other in wrong:
        with pytest.raises(InvalidText) as caught:
            parse(other)
        assert caught.value.found == repr(other[:80])
        assert not is_record_hash(other)
    assert is_record_hash(text) is (text[0] in "BPS")
    if text[0] in "BPS":
        assert RecordHash(text).type == text[0]


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "rule", "found"),
    [
        (lambda: decode_text(b"ab\xff", "here"), "text-utf8", "byte 2"),
        (lambda: decode_text("e\u0301".encode(), "here"), "text-nfc", repr("e\u0301")),
        (lambda: require_nfc("\ud800", "here"), "text-utf8", "'\\ud800'"),
        (lambda: require_nfc("e\u0301" * 99, "here"), "text-nfc", repr("e\u0301" * 40)),
    ],
)
def test_what_is_no_text_is_told_why_and_where(read: Callable[[], object], rule: str, found: str) -> None:
    with pytest.raises(InvalidText) as caught:
        read()
    assert (caught.value.rule, caught.value.place, caught.value.found) == (rule, "here", found)


def test_nfc_is_asked_of_what_is_not_ascii() -> None:
    assert [is_nfc(text) for text in ("", "a'b", "é", "e\u0301")] == [True, True, True, False]
    assert decode_text("é".encode()) == "é"
    assert quote("a'b\\c") == "'a\\'b\\\\c'"


def test_errors_repeat_the_beginning_of_what_they_found() -> None:
    assert excerpt("x" * 81) == f"'{'x' * 80}'"
    assert excerpt("x" * 80) == f"'{'x' * 80}'"
    assert excerpt(b"\r\n") == "b'\\r\\n'"
    with pytest.raises(InvalidText) as caught:
        TAI.parse("1" * 99)
    assert caught.value.found == repr("1" * 80)


@pytest.mark.parametrize(
    ("tai_ns", "text"),
    [(0, "0000000000:000000000"), (1, "0000000000:000000001"), (10**19 - 1, "9999999999:999999999")],
)
def test_the_first_and_the_last_instant_have_texts(tai_ns: int, text: str) -> None:
    assert TAI.from_ns(tai_ns) == text
    assert TAI(text).to_ns() == tai_ns
    assert TAI(text).plus_ns(0) == text
