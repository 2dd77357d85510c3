"""Fact lines: one spelling a fact."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lace.errors import InvalidText
from lace.notation.fact import Fact, FactColumn, Predicate
from lace.notation.factline import format_fact, format_facts, parse_fact, parse_plain_run
from lace.notation.text import is_nfc

NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_~-]{0,8}", fullmatch=True)
VALUES = st.text(
    st.one_of(
        st.sampled_from("ab'\\,() \t.#é漢🖧_"), st.characters(exclude_categories=["Cs"], exclude_characters="\r\n")
    ),
    max_size=8,
).filter(is_nfc)
FACTS = st.builds(
    lambda name, values: Fact(Predicate(name, len(values)), tuple(values)), NAMES, st.lists(VALUES, max_size=5)
)


@pytest.mark.clause("050-FACT-01", "050-FACT-04", "050-FACT-06", "060-FACT-01", "020-FACT-12")
@given(FACTS)
def test_a_fact_is_read_back_from_its_line(fact: Fact) -> None:
    line = format_fact(fact)
    if is_nfc(line):  # a combining mark at the front of a value could join the quote before it
        assert parse_fact(line, 1024) == parse_fact(line.encode(), 1024) == fact
    assert "\n" not in line


@pytest.mark.clause("050-FACT-08")
@given(st.text(st.sampled_from("AB'\\,(). \t_x"), max_size=14))
def test_what_is_accepted_has_that_one_spelling(line: str) -> None:
    try:
        fact = parse_fact(line, 1024)
    except InvalidText:
        return
    assert format_fact(fact) == line


EXAMPLES = [
    ("HelloAllAdvertisedFields()", "HelloAllAdvertisedFields", ()),
    ("Have('P.x.H3')", "Have", ("P.x.H3",)),
    ("A('','')", "A", ("", "")),
    (r"A('it\'s','a\\b')", "A", ("it's", "a\\b")),
    (r"A('\\','\'')", "A", ("\\", "'")),
    (r"A('x\',\'y')", "A", ("x','y",)),
    ("A('tab\there, (all) #kept.')", "A", ("tab\there, (all) #kept.",)),
    ("a~b-1_('é')", "a~b-1_", ("é",)),
]


@pytest.mark.clause("050-FACT-04", "050-FACT-06")
@pytest.mark.parametrize(("line", "name", "values"), EXAMPLES)
def test_examples(line: str, name: str, values: tuple[str, ...]) -> None:
    fact = parse_fact(line, 1024)
    assert fact == Fact(Predicate(name, len(values)), values)
    assert format_fact(fact) == line


REFUSED = [
    "",
    "A",
    "A(",
    "A)",
    "A('x'",
    "A('x')x",
    " A('x')",
    "A ('x')",
    "A( 'x')",
    "A('x' )",
    "A('x', 'y')",
    "A('x') ",
    "A('x').",
    "A('x',)",
    "A(,'x')",
    "A(X)",
    "A(_)",
    "A(1)",
    'A("x")',
    "A(B('x'))",
    "A('x''y')",
    "A('x'y)",
    "A('x)",
    r"A('\n')",
    r"A('x\')",
    "A('x\\",
    "A('x\r')",
    "A('x')\r",
    "A('x\n')",
    "1A('x')",
    "-A()",
    "_A()",
    "A.b()",
    "Ä()",
    "A() :- true.",
    "# comment",
    "not A()",
]


@pytest.mark.clause("050-FACT-05", "050-FACT-07", "050-FACT-08", "050-FACT-09")
@pytest.mark.parametrize("line", REFUSED)
def test_any_other_line_is_refused(line: str) -> None:
    with pytest.raises(InvalidText):
        parse_fact(line, 1024)
    with pytest.raises(InvalidText):
        parse_fact(line.encode(), 1024)


@pytest.mark.clause("050-FACT-02", "050-FACT-03", "020-FACT-11", "020-FACT-12")
@pytest.mark.parametrize("line", [b"A('\xc3\x28')", b"A('\xed\xa0\x80')", b"A('\xc0\xaf')", b"A('e\xcc\x81')", b"\xff"])
def test_bytes_that_are_no_nfc_text_are_refused(line: bytes) -> None:
    with pytest.raises(InvalidText):
        parse_fact(line, 1024)


def test_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(InvalidText):
        parse_fact("A('\ud800')", 1024)


@pytest.mark.parametrize("filler", ["x", "é", "🖧"])
def test_a_line_over_the_limit_is_refused(filler: str) -> None:
    line = f"A('{filler * 40}')"
    size = len(line.encode())
    for spelling in (line, line.encode()):
        parse_fact(spelling, size)
        with pytest.raises(InvalidText) as caught:
            parse_fact(spelling, size - 1)
        assert caught.value.rule == "fact-line-length"


PIECES = ["A", "Have", "B1", "(", ")", "'", "','", "x", "\\'", "\\", " ", "\r", "é", "''", "\n"]


@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from(["A('x')\n", "B()\n", "Have('a','b')\n"])), max_size=12)
)
def test_many_lines_at_once_are_read_as_one_by_one_or_left_to_that(pieces: list[str]) -> None:
    run = ("".join(pieces) + "\n").encode()
    found = parse_plain_run(run)
    if found is not None:
        assert found == [parse_fact(line, 1024) for line in run.split(b"\n")[:-1]]


_PIECES = st.lists(st.sampled_from(["A", "('", "')", "','", "'", ",", "x", "\\", "(", ")", "\n", "\r"]), max_size=8)


@given(st.lists(_PIECES.map("".join), min_size=1, max_size=4))
@example(["x','y", "z"])
@example(["x','y','z", "u"])
@example(["a'b", "c"])
@example(["x')\nA('y", "z"])
def test_lines_of_one_predicate_are_read_as_one_by_one_or_not_at_all(insides: list[str]) -> None:
    """Lines that are alike, and lines that only look so: what is read at once is what each line says by itself."""
    run = "".join(f"A('{inside}')\n" for inside in insides).encode()
    lines = run.split(b"\n")[:-1]
    try:
        alone = [parse_fact(line, 1024) for line in lines]
    except InvalidText:
        assert parse_plain_run(run) is None
    else:
        assert parse_plain_run(run) in (alone, None)
        if b"\\" not in run:
            assert parse_plain_run(run) == alone


def test_lines_without_escapes_are_read_at_once() -> None:
    run = b"A('x')\nB()\nA('y')\nA('x','y')\n"
    assert parse_plain_run(run) == [
        Fact(Predicate("A", 1), ("x",)), Fact(Predicate("B", 0), ()),
        Fact(Predicate("A", 1), ("y",)), Fact(Predicate("A", 2), ("x", "y")),
    ]  # fmt: skip


@given(st.lists(st.lists(st.text("ab'\\é", max_size=3), max_size=3), max_size=6))
def test_many_facts_are_formatted_as_one_by_one(rows: list[list[str]]) -> None:
    facts = [Fact(Predicate("Have", len(row)), tuple(row)) for row in rows]
    assert format_facts(facts) == "".join(f"{format_fact(fact)}\n" for fact in facts)


@given(
    st.lists(st.text("ab'\\é\n", max_size=3), max_size=6),
    st.lists(st.text("ab',\\", max_size=3), max_size=2),
)
def test_a_column_of_facts_is_its_facts(firsts: list[str], rest: list[str]) -> None:
    column = FactColumn(Predicate("Have", 1 + len(rest)), firsts, tuple(rest))
    facts = [Fact(column.predicate, (first, *rest)) for first in firsts]
    assert column == facts
    assert tuple(facts) == column
    assert len(column) == len(facts)
    assert [column[place] for place in range(len(facts))] == facts
    assert column[1:3] == facts[1:3]
    assert column != [*facts, Fact(column.predicate, ("x", *rest))]
    assert format_facts(column) == "".join(f"{format_fact(fact)}\n" for fact in facts)
    run = format_facts(column).encode()
    if firsts and not set("'\\\n,é") & set("".join([*firsts, *rest])):
        assert isinstance(parse_plain_run(run), FactColumn)
        assert parse_plain_run(run) == facts
