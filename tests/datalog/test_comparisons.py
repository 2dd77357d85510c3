"""The builtins, value by value (030, P4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.language.comparisons import (
    cardinality_holds,
    compare,
    int_compare,
    integer_key,
    lex_compare,
    text_shape,
)
from lace.datalog.language.syntax import OPERATORS

mark = pytest.mark
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        pytest.param("9", "10", -1, marks=mark.clause("030-INT-01")),
        pytest.param("2", "2", 0, marks=mark.clause("030-INT-01")),
        pytest.param("-1", "0", -1, marks=mark.clause("030-INT-01")),
        pytest.param("-10", "-9", -1, marks=mark.clause("030-INT-01")),
        pytest.param("-0", "0", 0, marks=mark.clause("030-INT-07")),
        pytest.param("007", "7", 0, marks=mark.clause("030-INT-07")),
        pytest.param("-007", "-7", 0, marks=mark.clause("030-INT-07")),
        pytest.param("000", "0", 0, marks=mark.clause("030-INT-07")),
        pytest.param("9223372036854775807", "9223372036854775808", -1, marks=mark.clause("030-INT-05")),
        pytest.param("18446744073709551616", "0", 1, marks=mark.clause("030-INT-05")),
        pytest.param("123456789012345678901234567890", "123456789012345678901234567891", -1,
                     marks=mark.clause("030-INT-05")),
        pytest.param("1" + "0" * 6000, "9" * 6000, 1, marks=mark.clause("030-INT-05")),
        pytest.param("-1" + "0" * 6000, "-" + "9" * 6000, -1, marks=mark.clause("030-INT-05")),
    ],
)  # fmt: skip
def test_integers_compare_as_numbers_of_any_size(left: str, right: str, order: int) -> None:
    assert int_compare(left, "<", right) is (order < 0)
    assert int_compare(left, "<=", right) is (order <= 0)
    assert int_compare(left, ">", right) is (order > 0)
    assert int_compare(left, ">=", right) is (order >= 0)


@pytest.mark.clause("030-INT-06", "030-CARD-06")
@pytest.mark.parametrize(
    "text", ["", "1.0", " 1", "1 ", "+1", "x", "-", "--1", "1-", "١", "1_0", "0x1", "1\n", "²", "1e3"]
)
def test_a_text_that_is_no_integer_makes_the_test_false(text: str) -> None:
    for operator in OPERATORS:
        assert not int_compare(text, operator, "1")
        assert not int_compare("1", operator, text)
        assert not int_compare(text, operator, text)
        assert not cardinality_holds(0, operator, text)


@pytest.mark.clause("030-INT-05", "030-INT-09")
@given(st.integers(), st.integers(), st.sampled_from(["", "0", "00"]))
def test_integer_texts_agree_with_integers(left: int, right: int, zeros: str) -> None:
    a = f"-{zeros}{-left}" if left < 0 else f"{zeros}{left}"
    assert int_compare(a, "<", str(right)) is (left < right)
    assert int_compare(a, ">", str(right)) is (left > right)
    assert int_compare(a, "<", str(right)) is not int_compare(a, ">=", str(right))
    assert int_compare(a, ">", str(right)) is not int_compare(a, "<=", str(right))
    assert (integer_key(a) == integer_key(str(right))) is (left == right)


@pytest.mark.parametrize(
    ("lower", "higher"),
    [
        pytest.param("10", "9", marks=mark.clause("030-LEX-01")),
        pytest.param("a", "ab", marks=mark.clause("030-LEX-01")),
        pytest.param("Z", "a", marks=mark.clause("030-LEX-01", "030-VAL-06")),
        pytest.param("\ufffd", "\U0001f5a7", marks=mark.clause("030-LEX-03")),
        pytest.param("\ue000", "\U00010000", marks=mark.clause("030-LEX-03")),
        pytest.param("z", "é", marks=mark.clause("030-LEX-01", "030-VAL-06")),
        pytest.param("1640995200:999999999", "1640995201:000000000", marks=mark.clause("030-LEX-04")),
        pytest.param("0999999999:999999999", "1000000000:000000000", marks=mark.clause("030-LEX-04")),
        pytest.param("", "\x00", marks=mark.clause("030-LEX-06")),
        pytest.param("", "a", marks=mark.clause("030-LEX-06")),
    ],
)
def test_texts_compare_by_bytes(lower: str, higher: str) -> None:
    assert lex_compare(lower, "<", higher)
    assert lex_compare(lower, "<=", higher)
    assert lex_compare(higher, ">", lower)
    assert lex_compare(higher, ">=", lower)
    assert not lex_compare(higher, "<", lower)
    assert not lex_compare(lower, ">=", higher)


@pytest.mark.clause("030-LEX-01", "030-LEX-03", "030-LEX-06")
@given(TEXTS, TEXTS)
def test_text_order_is_utf8_byte_order(left: str, right: str) -> None:
    a, b = left.encode(), right.encode()
    answers = [compare("lex", left, operator, right) for operator in OPERATORS]
    assert answers == [a < b, a <= b, a > b, a >= b]
    assert lex_compare(left, "<=", left)
    assert not lex_compare(left, "<", left)


@pytest.mark.clause("030-LEX-05")
@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_equal_length_b64a_texts_sort_like_their_bytes(left: bytes, right: bytes) -> None:
    from lace.notation import b64a

    assert lex_compare(b64a.encode(left), "<", b64a.encode(right)) is (left < right)


SHAPES = [
    pytest.param("ab", "a", "", "b", True, marks=mark.clause("030-SHAPE-07", "030-SHAPE-08")),
    pytest.param("axxb", "a", "", "b", True, marks=mark.clause("030-SHAPE-07")),
    pytest.param("axxc", "a", "", "b", False, marks=mark.clause("030-SHAPE-07")),
    pytest.param("aba", "ab", "", "ba", False, marks=mark.clause("030-SHAPE-09")),
    pytest.param("a", "a", "", "a", False, marks=mark.clause("030-SHAPE-09")),
    pytest.param("abba", "ab", "", "ba", True, marks=mark.clause("030-SHAPE-09")),
    pytest.param("", "", "", "", True, marks=mark.clause("030-SHAPE-10")),
    pytest.param("x", "", "", "", True, marks=mark.clause("030-SHAPE-10")),
    pytest.param("links/", "links/", "", "", True, marks=mark.clause("030-SHAPE-11")),
    pytest.param("links/1", "links/", "", "", True, marks=mark.clause("030-SHAPE-11")),
    pytest.param("link", "links/", "", "", False, marks=mark.clause("030-SHAPE-11")),
    pytest.param("Links/1", "links/", "", "", False, marks=mark.clause("030-SHAPE-04", "030-SHAPE-11")),
    pytest.param("a.json", "", "", ".json", True, marks=mark.clause("030-SHAPE-12")),
    pytest.param(".json", "", "", ".json", True, marks=mark.clause("030-SHAPE-12")),
    pytest.param("a.json~", "", "", ".json", False, marks=mark.clause("030-SHAPE-12")),
    pytest.param("links/a.md", "links/", "", ".md", True, marks=mark.clause("030-SHAPE-13")),
    pytest.param("links/a.txt", "links/", "", ".md", False, marks=mark.clause("030-SHAPE-13")),
    pytest.param("xlinks/bob/msg", "links/", "/", "msg", False, marks=mark.clause("030-SHAPE-14")),
    pytest.param("links/bob", "links/", "/", "", False, marks=mark.clause("030-SHAPE-15")),
    pytest.param("", "", "/", "", False, marks=mark.clause("030-SHAPE-15")),
    pytest.param("/", "", "/", "", False, marks=mark.clause("030-SHAPE-16")),
    pytest.param("a/", "", "/", "", True, marks=mark.clause("030-SHAPE-16", "030-SHAPE-21")),
    pytest.param("a/b", "", "/", "", False, marks=mark.clause("030-SHAPE-21")),
    pytest.param("a/b", "", "/", "b", True, marks=mark.clause("030-SHAPE-17")),
    pytest.param("a/xb", "", "/", "b", False, marks=mark.clause("030-SHAPE-17")),
    pytest.param("a/b/c", "a/", "/", "c", True, marks=mark.clause("030-SHAPE-18")),
    pytest.param("a/x/y", "", "/", "x/y", True, marks=mark.clause("030-SHAPE-19")),
    pytest.param("links//msg", "links/", "/", "msg", False, marks=mark.clause("030-SHAPE-20")),
    pytest.param("links//x/msg", "links/", "/", "msg", False, marks=mark.clause("030-SHAPE-20")),
    pytest.param("a/b", "", "//", "b", True, marks=mark.clause("030-SHAPE-06")),
    pytest.param("a/b", "", "/./", "b", True, marks=mark.clause("030-SHAPE-06")),
    pytest.param("xéy", "x", "é", "y", False, marks=mark.clause("030-SHAPE-05")),
    pytest.param("axéy", "a", "é", "y", True, marks=mark.clause("030-SHAPE-05")),
    pytest.param("axãy", "a", "é", "y", False, marks=mark.clause("030-SHAPE-05")),
    pytest.param("ax🖧y", "a", "🖧", "y", True, marks=mark.clause("030-SHAPE-05")),
    pytest.param("ax🖨y", "a", "🖧", "y", False, marks=mark.clause("030-SHAPE-05")),
    pytest.param("links/bob/msg", "links/", "./", "msg", True, marks=mark.clause("030-SHAPE-22")),
    pytest.param("links/bob.msg", "links/", "./", "msg", True, marks=mark.clause("030-SHAPE-23")),
    pytest.param("links/msg", "links/", "./", "msg", False, marks=mark.clause("030-SHAPE-24")),
    pytest.param("links/bob/alice/msg", "links/", "./", "msg", False, marks=mark.clause("030-SHAPE-25")),
    pytest.param("links/.msg", "links/", "./", "msg", False, marks=mark.clause("030-SHAPE-26")),
]


@pytest.mark.parametrize(("text", "start", "delimiters", "end", "expected"), SHAPES)
def test_text_shapes(text: str, start: str, delimiters: str, end: str, expected: bool) -> None:
    assert text_shape(text, start, delimiters, end) is expected


@pytest.mark.clause("030-SHAPE-07", "030-SHAPE-15", "030-SHAPE-16", "030-SHAPE-17")
@given(*[st.text("ab/.", max_size=6)] * 2, st.text("/.", max_size=2), st.text("ab/.", max_size=3))
def test_a_shape_is_the_existence_of_its_parts(text: str, start: str, delimiters: str, end: str) -> None:
    if delimiters:
        middles = {
            text[len(start) : cut]
            for cut in range(len(start) + 2, len(text) + 1)
            if text[cut - 1] in delimiters and not set(text[len(start) : cut - 1]) & set(delimiters)
        }
    else:
        middles = {text[len(start) : cut] for cut in range(len(start), len(text) + 1)}
    expected = any(text == start + middle + end for middle in middles)
    assert text_shape(text, start, delimiters, end) is expected


@pytest.mark.clause("030-CARD-06")
def test_a_bound_is_a_number_of_any_size_and_sign() -> None:
    assert cardinality_holds(0, "<", "1")
    assert cardinality_holds(0, ">", "-1")
    assert cardinality_holds(3, "<=", "003")
    assert cardinality_holds(3, "<", "1" + "0" * 5000)
    assert not cardinality_holds(3, ">=", "4")
