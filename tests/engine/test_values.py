"""Values as codes and back: the dictionary, builtins over columns, and columns as texts."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest

from engine.columns import ArraySource
from lace.datalog.engine import Base, evaluate, vector
from lace.datalog.engine import verdicts as verdicts_module
from lace.datalog.engine.changes import LateRows, RelationChanges
from lace.datalog.engine.dictionary import Dictionary, check_texts
from lace.datalog.engine.index import Codes
from lace.datalog.engine.texts import TextColumn, in_text_order, json_lines, text_column
from lace.datalog.engine.tombstones import run_of
from lace.datalog.engine.vector import batches_of
from lace.datalog.engine.verdicts import Judged, Verdicts, distinct_codes, integer_ranks, text_ranks
from lace.datalog.language.comparisons import compare, text_shape
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import OPERATORS, Compare, Constant, Fact, Predicate, TextShape, Unequal, Variable
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.datalog.planning.plan import Test
from lace.errors import LimitExceeded
from lace.limits import EngineLimits

FIELD = Predicate("Field", 3)


def codes(*values: int) -> Codes:
    return np.array(values, np.uint32)


class Asked(ArraySource):
    """A source that remembers which texts and codes it was asked for."""

    def __init__(self) -> None:
        super().__init__([Fact(FIELD, ("a", "b", "c"))])
        self.asked: list[list[str]] = []
        self.texts_read: list[list[int]] = []

    def codes(self, texts: list[str]) -> list[int]:  # type: ignore[override]
        self.asked.append(list(texts))
        return super().codes(texts)

    def texts(self, codes: memoryview) -> list[str]:
        self.texts_read.append(codes.tolist())
        return super().texts(codes)


def test_a_dictionary_without_a_source_numbers_values_as_they_come() -> None:
    dictionary = Dictionary(EngineLimits())
    assert (dictionary.size, dictionary.base, dictionary.find("x")) == (0, 0, -1)
    assert dictionary.intern([("x", "q"), ("y", "q"), ("x", "q")], 0).tolist() == [0, 1, 0]
    assert dictionary.intern([("x", "q"), ("y", "q")], 1).tolist() == [2, 2]
    assert dictionary.intern([], 0).tolist() == []
    assert dictionary.intern([("x",), ("z",), ("x",)], 0).tolist() == [0, 3, 0]
    assert (dictionary.code("y"), dictionary.code("w"), dictionary.find("w"), dictionary.size) == (1, 4, 4, 5)
    assert dictionary.codes([("x", "new"), ("y", "x")]) == [(0, 5), (1, 0)]
    assert dictionary.found([("x", "none"), ("new", "x")]) == [(0, -1), (5, 0)]
    assert dictionary.size == 6
    assert dictionary.texts(codes(5, 0, 0, 4)) == ["new", "x", "x", "w"]
    assert [dictionary.text(code) for code in range(6)] == ["x", "y", "q", "z", "w", "new"]


def test_values_of_a_source_keep_its_codes_and_are_asked_for_once() -> None:
    source = Asked()
    dictionary = Dictionary(EngineLimits(), source)
    assert (dictionary.base, dictionary.size) == (3, 3)
    assert (dictionary.find("b"), dictionary.find("nobody"), dictionary.find("b")) == (1, -1, 1)
    assert source.asked == [["b"], ["nobody"]]
    assert dictionary.code("nobody") == 3
    assert (dictionary.code("c"), dictionary.code("c"), dictionary.code("nobody")) == (2, 2, 3)
    assert source.asked == [["b"], ["nobody"], ["nobody"], ["c"]]
    assert dictionary.intern([("a",), ("x",), ("b",), ("x",)], 0).tolist() == [0, 4, 1, 4]
    assert dictionary.intern([("y",), ("z",)], 0).tolist() == [5, 6]
    assert dictionary.codes([("a", "v"), ("x", "c")]) == [(0, 7), (4, 2)]
    assert dictionary.found([("a", "none"), ("v", "c")]) == [(0, -1), (7, 2)]
    assert dictionary.size == 8
    assert source.asked[4:] == [["a", "x"], ["y", "z"], ["v"], ["none"]]
    assert dictionary.texts(codes(7, 0, 2, 3)) == ["v", "a", "c", "nobody"]
    assert dictionary.texts(codes(1, 0)) == ["b", "a"]
    assert source.texts_read == [[0, 2], [1, 0]]


def test_single_texts_of_a_source_are_kept_up_to_a_number() -> None:
    source = Asked()
    dictionary = Dictionary(EngineLimits(), source, kept_texts=2)
    assert [dictionary.text(code) for code in (0, 1, 0, 1)] == ["a", "b", "a", "b"]
    assert source.texts_read == [[0], [1]]
    assert [dictionary.text(code) for code in (2, 0, 2)] == ["c", "a", "c"]
    assert source.texts_read == [[0], [1], [2], [0]]


def test_texts_that_come_in_parts_can_all_be_read() -> None:
    dictionary = Dictionary(EngineLimits())
    every: list[str] = []
    for count in (1, 1, 2, 3, 9, 1, 30):
        more = [f"v{len(every) + n}" for n in range(count)]
        dictionary.intern([(text,) for text in more], 0)
        every += more
        assert dictionary.text(len(every) - 1) == every[-1]
        assert dictionary.texts(np.arange(len(every), dtype=np.uint32)) == every
    settled = sum(map(len, every))
    assert dictionary.memory_bytes == 110 * len(every) + settled + 49 * len(every)
    dictionary.code("more")
    assert dictionary.memory_bytes == 110 * (len(every) + 1) + settled + 49 * len(every)


def test_memory_counts_texts_of_a_source_that_were_looked_up() -> None:
    dictionary = Dictionary(EngineLimits(), Asked())
    dictionary.codes([("a", "x")])
    dictionary.settle()
    assert dictionary.memory_bytes == 110 * 2 + 1 + 49


def test_texts_are_checked_together_and_one_by_one_where_they_may_be_refused() -> None:
    limits = EngineLimits(max_value_bytes=4)
    assert check_texts(["abcd", "", "é"], limits) == 5
    assert check_texts([], limits) == 0
    for texts in (["abcde"], ["a", "ééé"], ["zzzzz", "abcde"]):
        with pytest.raises(LimitExceeded):
            check_texts(texts, limits)


# builtins

X, Y = Variable("X"), Variable("Y")
TEXTS = ["", "a", "ab", "b", "10", "9", "-3", "009", "links/x", "links/", "é", "abab"]
ONE: list[Test] = [
    *(
        Compare(kind, X, operator, Constant(bound))
        for kind in ("int", "lex")
        for operator in OPERATORS
        for bound in "9a"
    ),
    Compare("int", X, "<", X),
    Compare("lex", Constant("a"), "<=", X),
    TextShape(X, Constant("links/"), "", Constant("")),
    TextShape(X, Constant("a"), "", Constant("b")),
    TextShape(X, Constant("ab"), "", Constant("ab")),
    TextShape(X, Constant(""), "/", Constant("x")),
    TextShape(X, X, "", X),
    Unequal(X, Constant("ab")),
    Unequal(X, X),
]
TWO: list[Test] = [
    *(Compare(kind, X, operator, Y) for kind in ("int", "lex") for operator in OPERATORS),
    Unequal(X, Y),
    TextShape(X, Y, "", Constant("")),
    TextShape(X, Y, "/", Constant("x")),
]


def truth(test: Test, x: str, y: str) -> bool:
    values = {X: x, Y: y}

    def value(term: object) -> str:
        return term.value if isinstance(term, Constant) else values[term]  # type: ignore[index]

    match test:
        case Unequal(left, right):
            return value(left) != value(right)
        case Compare(kind, left, operator, right):
            return compare(kind, value(left), operator, value(right))
        case TextShape(text, start, delimiters, end):
            return text_shape(value(text), value(start), delimiters, value(end))


def test_a_builtin_over_columns_is_the_builtin_of_each_row() -> None:
    dictionary = Dictionary(EngineLimits())
    numbers = dictionary.codes([TEXTS])[0]
    verdicts = Verdicts(dictionary)
    pairs = list(product(numbers, repeat=2))
    left, right = (np.array(column, np.uint32) for column in zip(*pairs, strict=True))
    for test in ONE:
        expected = [truth(test, text, "") for text in TEXTS]
        column = np.array(numbers, np.uint32)
        assert verdicts.mask(test, {"X": column[::2]}, 6).tolist() == expected[::2]
        assert verdicts.mask(test, {"X": column}, len(TEXTS)).tolist() == expected
        assert [Judged(test, dictionary).one(code) for code in numbers] == expected
    for test in TWO:
        expected = [truth(test, TEXTS[x], TEXTS[y]) for x, y in product(range(len(TEXTS)), repeat=2)]
        assert verdicts.mask(test, {"X": left, "Y": right}, len(left)).tolist() == expected
    always, never = Unequal(Constant("a"), Constant("b")), Unequal(Constant("a"), Constant("a"))
    assert verdicts.mask(always, {}, 2).tolist() == [True, True]
    assert verdicts.mask(never, {}, 2).tolist() == [False, False]


def test_a_verdict_is_found_once_and_told_of_values_that_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(
        verdicts_module, "compare", lambda kind, left, operator, right: asked.append(left) or left < right
    )
    dictionary = Dictionary(EngineLimits())
    a, b = dictionary.codes([("a", "b")])[0]
    verdicts, test = Verdicts(dictionary), Compare("lex", X, "<", Constant("b"))
    assert verdicts.judged(test) is verdicts.judged(test)
    for _ in range(2):
        assert verdicts.mask(test, {"X": codes(a, b, a)}, 3).tolist() == [True, False, True]
        assert [verdicts.judged(test).one(code) for code in (a, b)] == [True, False]
    assert asked == ["a", "b"]
    assert verdicts.nbytes == 2
    later = [dictionary.code(f"a{n}") for n in range(3)]
    assert verdicts.judged(test).one(later[2]) is True
    assert verdicts.nbytes == 5 + 64
    assert verdicts.mask(test, {"X": codes(*later)}, 3).tolist() == [True] * 3
    assert asked == ["a", "b", "a2", "a0", "a1"]
    assert verdicts.judged(test).table[:2].tolist() == [1, 2]
    for n in range(67):
        dictionary.code(f"c{n}")
    assert verdicts.judged(test).one(dictionary.size - 1) is False
    assert verdicts.nbytes == 72 + 9 + 64
    assert verdicts.judged(test).table[[a, b]].tolist() == [1, 2]


def test_the_last_orders_are_kept() -> None:
    dictionary = Dictionary(EngineLimits())
    numbers = np.array(dictionary.codes([("b", "10", "9", "a", "09")])[0], np.uint32)
    verdicts = Verdicts(dictionary)
    lex = verdicts.ranks(numbers, "lex")
    assert lex.tolist() == [4, 1, 2, 3, 0]
    assert verdicts.ranks(numbers.copy(), "lex") is lex
    assert verdicts.ranks(numbers, "int").tolist() == [-1, 1, 0, -1, 0]
    assert verdicts.nbytes == 2 * (5 * 4 + 5 * 8)
    for count in (1, 2):
        verdicts.ranks(numbers[:count], "lex")
    assert verdicts.ranks(numbers, "lex") is lex
    verdicts.ranks(numbers[:3], "lex")
    assert verdicts.ranks(numbers, "lex") is not lex


@pytest.mark.parametrize("texts", [
    ["b", "a", ""], ["é", "z", "\U0001f5a7", "\ufffd"], ["a\0", "a", "b"], ["x" * 32, "x" * 31 + "a", "y"],
    ["x" * 33, "x" * 32 + "a"], ["12345678", "123456789", "12345678a", "1"], [""], ["same-one", "same-two"],
])  # fmt: skip
def test_texts_as_words_are_ordered_like_texts(texts: list[str]) -> None:
    expected = [sorted(texts).index(text) for text in texts]
    assert text_ranks(texts).tolist() == expected
    assert text_ranks(texts, len(texts)).tolist() == expected
    used = verdicts_module.as_words(texts) is not None
    plain = all(text.isascii() and "\0" not in text for text in texts)
    assert used is (plain and 0 < max(map(len, texts)) <= verdicts_module.WORDS_BYTES)


def test_words_are_used_for_many_texts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts_module, "as_words", lambda texts: pytest.fail("these are too few"))
    assert text_ranks([str(n) for n in range(10_000, 29_999)]).tolist() == list(range(19_999))
    assert integer_ranks(["10", "x", "2", "-1", "+1", "010"]).tolist() == [2, -1, 1, 0, -1, 2]


@pytest.mark.parametrize("domain", [6, 65_536 + 4 * 16 + 1])
def test_codes_that_occur(domain: int) -> None:
    found = distinct_codes(codes(5, 1, 5, 0), domain)
    assert (found.tolist(), found.dtype) == ([0, 1, 5], np.uint32)


# texts


def test_columns_become_texts_in_their_order() -> None:
    dictionary = Dictionary(EngineLimits())
    rows = [("b", "x", "2"), ("a", "y", "1"), ("b", "x", "1"), ("a", "x", "9"), ("c", "y", "1")]
    columns = [text_column(dictionary.intern(rows, place), dictionary) for place in range(3)]
    assert (columns[0].texts, columns[0].places.tolist()) == (["a", "b", "c"], [1, 0, 1, 0, 2])
    assert columns[2].whole() == ["2", "1", "1", "9", "1"]
    for width in (1, 2, 3):
        ordered = in_text_order(columns[:width])
        found = list(zip(*(column.whole() for column in ordered), strict=True))
        assert found == sorted(row[:width] for row in rows)
    ordered = in_text_order(columns)
    assert ordered[0].part(1, 3) == ["a", "b"]
    pages = list(json_lines(["p", "q", "r"], ordered, page_rows=2))
    assert [page.count("\n") for page in pages] == [2, 2, 1]
    lines = [json.loads(line) for line in "".join(pages).splitlines()]
    assert lines == [{"p": p, "q": q, "r": r} for p, q, r in sorted(rows)]
    assert list(json_lines(["p"], ordered[:1], str.upper, 2)) == [
        '{"P": "A"}\n{"P": "A"}\n',
        '{"P": "B"}\n{"P": "B"}\n',
        '{"P": "C"}\n',
    ]
    assert list(json_lines(["größe"], [TextColumn(["日本"], np.zeros(1, np.int32))])) == ['{"größe": "日本"}\n']
    assert TextColumn([], np.empty(0, np.int32)).whole() == []


def test_results_are_read_as_texts_however_often_values_repeat() -> None:
    program = check_program(
        parse_program("Pair(X,Y) :- Edge(X,Y).\nSome() :- Edge(_,_).\nNone() :- Edge('q',_)."), RAW_PROFILE
    )
    edges = [("a", str(n)) for n in range(7)]
    result = evaluate(program, [Fact(Predicate("Edge", 2), edge) for edge in edges])
    pair, some, none = Predicate("Pair", 2), Predicate("Some", 0), Predicate("None", 0)
    assert sorted(result.rows(pair, ordered=False)) == result.rows(pair) == edges
    assert result.text_columns(pair) == [list(column) for column in zip(*edges, strict=True)]
    result.forget_texts()
    assert sorted(zip(*result.text_columns(pair), strict=True)) == edges
    assert result.rows_between(pair, 2, 4) == edges[2:4]
    assert (result.rows(some), result.rows(none), result.count(some), result.count(none)) == ([()], [], 1, 0)
    asked = [("a", "0"), ("0", "a"), ("a", "7"), ("zz", "0")]
    assert [result.contains(Fact(pair, row)) for row in asked] == [True, False, False, False]
    assert (result.contains(Fact(some, ())), result.contains(Fact(none, ()))) == (True, False)
    assert result.derived == (none, pair, some)
    assert list(result.json_lines(none)) == []
    assert "".join(result.json_lines(pair)).splitlines()[0] == '{"c0": "a", "c1": "0"}'


def test_changes_are_counted_without_their_texts_and_read_in_order() -> None:
    dictionary = Dictionary(EngineLimits())
    texts = [(f"{n % 7}", f"{n:02}") for n in range(20)]
    rows = dictionary.codes(texts)
    for count in (0, 1, 15, 16, 20):
        for found in (rows[:count], run_of(rows[:count], 2, dictionary.size)):
            late = LateRows({FIELD: [], Predicate("Edge", 2): found}, dictionary)
            assert (late.count(Predicate("Edge", 2)), late.count(FIELD), len(late)) == (count, 0, int(count > 0))
            assert dict(late) == ({Predicate("Edge", 2): tuple(sorted(texts[:count]))} if count else {})
            assert bool(RelationChanges(late, {})) is bool(RelationChanges({}, late)) is (count > 0)
    late = LateRows({Predicate("On", 0): [()]}, dictionary)
    assert dict(late) == {Predicate("On", 0): ((),)}


# batches


@pytest.mark.parametrize(("counts", "parts"), [
    ([], []), ([0], [(0, 1)]), ([4, 4, 4], [(0, 2), (2, 3)]), ([9, 1, 8, 0], [(0, 1), (1, 2), (2, 4)]),
    ([1, 9, 9], [(0, 1), (1, 2), (2, 3)]), ([8, 0, 1], [(0, 2), (2, 3)]),
])  # fmt: skip
def test_batches_end_before_they_grow_past_their_size(counts: list[int], parts: list[tuple[int, int]]) -> None:
    assert list(batches_of(np.array(counts, np.int64), 8)) == parts


@pytest.mark.parametrize(("text", "number"), [
    ("12", 12), ("-0", 0), ("x", None), ("9" * 18, 10**18 - 1), ("-" + "9" * 18, 1 - 10**18), ("1" + "0" * 18, 1 << 62),
    ("-1" + "0" * 18, -(1 << 62)), ("0" * 30 + "7", 7),
])  # fmt: skip
def test_a_bound_of_any_length_compares_with_every_count(text: str, number: int | None) -> None:
    assert vector.bound_number(text) == number


def test_rows_that_all_pass_are_not_copied() -> None:
    rows = vector.Bindings(2, {"X": codes(4, 5)})
    assert rows.where(np.array([True, True])) is rows
    assert rows.where(np.array([False, True])).columns["X"].tolist() == [5]


def test_memory_of_an_evaluation_is_that_of_its_base_and_of_what_it_derived() -> None:
    base = Base([Fact(Predicate("Edge", 2), (str(n), str(n + 1))) for n in range(9)])
    result = evaluate(check_program(parse_program("Back(Y,X) :- Edge(X,Y)."), RAW_PROFILE), base)
    assert result.stats.memory_bytes == base.nbytes() + 9 * 2 * 4
