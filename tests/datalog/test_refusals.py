"""Where things stand in a rule text, and what is said of a line that is refused, to the letter."""

from __future__ import annotations

import pytest

from lace.datalog.language.annotations import format_annotated, read_annotated, read_annotated_all
from lace.datalog.language.diagnosis import lacegram_error, picture, wide_join_advice
from lace.datalog.language.parser import parse_all_errors, parse_atom, parse_facts, parse_program, plain_facts
from lace.datalog.language.syntax import (
    NO_SOURCE,
    Atom,
    Cardinality,
    Constant,
    Fact,
    Negated,
    Place,
    Positive,
    Predicate,
    SourceText,
    Variable,
)
from lace.errors import InvalidLacegram, LimitExceeded
from lace.limits import EngineLimits


@pytest.mark.parametrize("gap", ["", " "])  # atoms with spaces in them are read piece by piece
def test_every_part_of_a_rule_knows_where_it_stands(gap: str) -> None:
    parts = [
        f"B{gap}(X)", f"not C{gap}(X)", "X != 'a'", "true", f"IntCompare{gap}(X,'<','3')",
        f"LexCompare{gap}(X,'<','3')", f"TextShape{gap}(X,'a','',X)",
        f"Cardinality{gap}(D{gap}(X,_),'<','1')", f"Some{gap}()",
    ]  # fmt: skip
    text = f"\n  A{gap}(X) :- {', '.join(parts)}."
    (rule,) = parse_program(text).rules
    line = text.split("\n")[1]
    assert rule.place == rule.head.place == Place(2, 3)
    for part, literal in zip(parts, rule.body, strict=True):
        start = line.index(part) + 1
        match literal:
            case Positive(atom):
                assert atom.place == Place(2, start)
            case Negated(atom):
                assert atom.place == Place(2, start + len("not "))
            case Cardinality(atom):
                assert literal.place == Place(2, start)
                assert atom.place == Place(2, line.index(f"D{gap}(") + 1)
            case _:
                assert literal.place == Place(2, start)


ADVICE = "a term is a Variable (capital first), a 'constant' in single quotes, or _"
REFUSED = [
    # the line, the column, the message with what was found, the advice
    ("A(X) :- B(X) = X.", 14, "= is not Lace Datalog", "to tell values apart use !="),
    ("A(X) :- x = 'a'.", 9, "= is not Lace Datalog", "to tell values apart use !="),
    ("A(X) :- x != 'a'.", 9, "x is not a term", "write 'x' or a capital first letter"),
    ("A(X) :- X = 'a'.", 11, "= is not Lace Datalog",
     "write the same variable, or the constant, in both places; to tell values apart use !="),
    ("A(X) :- B(X) C(X,'long').", 14, "expected , or . after a body atom (found \"C(X,'long').\")", ""),
    ("A(X) :- B(X) C(X,'longer').", 14, "expected , or . after a body atom (found \"C(X,'longer'\")", ""),
    ("A(X) :- ", 9, "a body atom is missing here (found the end of the line)",
     "it is P(X), not P(X), X != Y, a builtin, or true"),
    ("A(X) :- _, B(X).", 9, "a body atom is missing here (found '_, B(X).')",
     "it is P(X), not P(X), X != Y, a builtin, or true"),
    ("A(X) :- \"a\" != X.", 9, "constants are single-quoted", "write 'text'"),
    ("A(X) :- ''', B(X).", 9, "a body atom is missing here (found \"''', B(X).\")",
     "it is P(X), not P(X), X != Y, a builtin, or true"),
    ("A(X) :- B(X", 12, "expected , or ) after a term (found the end of the line)", ""),
    ("A(X) :- B(X,)", 13, "a term is missing here (found ')')", ADVICE),
    ("A(X) :- B(-1).", 11, "numbers are constants too", "write '-1'"),
    ("A(X) :- B(12).", 11, "numbers are constants too", "write '12'"),
    ("A(X) :- B(ab).", 11, "ab is not a term", "write 'ab' or a capital first letter"),
    ("A(X) :- B(~a).", 11, "~a is not a term", "write '~a' or a capital first letter"),
    ("A(X) :- B(_ab).", 11, "_ab is not a term", "use _ alone, or a variable that begins with a capital"),
    ("A(X) :- B(Xa~b).", 11, "Xa~b is not a variable", "variables hold letters, digits and _"),
    ("A(X) :- B(X), abc.", 15, "abc has no parentheses", "write abc() for arity 0"),
    ("A(X) :- B(X), not abc.", 19, "abc has no parentheses", "write abc() for arity 0"),
    ("A(X) :- B(X), not .", 19, "this cannot be negated (found '.')", "not stands only before Predicate(…)"),
    ("A(X) :- B(X), 1b(X).", 15, "a body atom begins with a predicate name (found '1b(X).')",
     "a predicate is named by an ASCII letter, then letters, digits, _, ~ or -"),
    ("IntCompare(X) :- B(X).", 1, "IntCompare is a builtin and cannot be defined", "choose another name"),
    ("A(X) :- B(X), IntCompare(X).", 15, "IntCompare has 3 terms, not 1", "write IntCompare(A,'<',B)"),
    ("A(X) :- B(X), TextShape(X).", 15, "TextShape has 4 terms, not 1", "write TextShape(Text,Start,'delims',End)"),
    ("A(X) :- B(X), Cardinality(C(X),'<','1',x).", 15, "Cardinality has three parts", "Cardinality(P(X),'<','100')"),
    ("A(X) :- B(X), Cardinality(C(X),'<').", 15, "Cardinality has three parts", "Cardinality(P(X),'<','100')"),
    ("A(X) :- B(X), Cardinality(C(X),'<','1'.", 15, "Cardinality has three parts", "Cardinality(P(X),'<','100')"),
    ("A(X) :- B(X), Cardinality C(X),'<','1').", 15, "Cardinality has no parentheses",
     "write Cardinality() for arity 0"),
    ("A(X) :- B(X), Cardinality().", 27, "Cardinality counts one predicate atom (found ').')",
     "write Cardinality(Predicate(…),'<','100')"),
    ("A('a\\\\\\x') :- true.", 7, "unknown escape in a constant", "only \\\\ and \\' are escapes"),
    ("A('\\'a) :- true.", 3, "the constant is not closed on its line", "constants hold no line breaks"),
    ("A('\\\\a) :- true.", 3, "the constant is not closed on its line", "constants hold no line breaks"),
    ("A('ab", 3, "the constant is not closed on its line", "constants hold no line breaks"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "column", "message", "advice"), REFUSED)
def test_a_refusal_says_where_what_and_what_to_write(line: str, column: int, message: str, advice: str) -> None:
    with pytest.raises(InvalidLacegram) as refused:
        parse_program(line)
    error = refused.value
    assert str(error).split("\n")[0] == f"<rules>:1:{column}: {message}"
    assert (error.column, error.advice) == (column, advice)


def test_goals_and_facts_are_no_builtins_and_say_where() -> None:
    with pytest.raises(InvalidLacegram) as refused:
        parse_atom(" IntCompare(X,'<','1')")
    assert (refused.value.rule, refused.value.place) == ("builtin-name", "<goal>:1:2")
    with pytest.raises(InvalidLacegram) as refused:
        list(parse_facts("E('a')\nE('b')\n\n  TextShape('a')"))
    assert (refused.value.rule, refused.value.place) == ("builtin-name", "<facts>:4:3")
    with pytest.raises(InvalidLacegram) as refused:
        list(parse_facts("E('a')\n E('a',X)"))
    assert (refused.value.rule, refused.value.place) == ("fact-ground", "<facts>:2:2")
    with pytest.raises(InvalidLacegram) as refused:
        parse_atom("A(X) B")
    assert (refused.value.place, refused.value.found) == ("<goal>:1:6", "'B'")
    assert parse_atom("  A(X)").place == Place(1, 3)


@pytest.mark.parametrize(
    ("text", "where"),
    [("A('x') :- true.\n B('éé') :- true.", "<rules>:2:2"), ("A('x') :- true.\n B( 'éé' ) :- true.", "<rules>:2:5")],
)
def test_a_limit_says_where_it_was_passed(text: str, where: str) -> None:
    for allowed in (3, 2, 1):
        with pytest.raises(LimitExceeded) as passed:
            parse_program(text, limits=EngineLimits(max_value_bytes=allowed))
        assert (passed.value.limit, passed.value.detail) == ("max_value_bytes", where)
    assert len(parse_program(text, limits=EngineLimits(max_value_bytes=4)).rules) == 2


@pytest.mark.parametrize("text", ["A(X,Y) :- B(X,Y).", "A( X,Y) :- B(X,Y)."])
def test_the_place_of_too_many_terms(text: str) -> None:
    with pytest.raises(LimitExceeded) as passed:
        parse_program(text, limits=EngineLimits(max_tuple_arity=1))
    assert (passed.value.limit, passed.value.detail) == ("max_tuple_arity", f"<rules>:1:{text.index('Y') + 1}")
    assert parse_program(text, limits=EngineLimits(max_tuple_arity=2)) == parse_program(text)
    assert parse_program("A() :- B( ).", limits=EngineLimits(max_tuple_arity=0)).rules[0].head.terms == ()


def test_refused_lines_count_as_rules() -> None:
    limits = EngineLimits(max_rules=2)
    with pytest.raises(LimitExceeded) as passed:
        parse_all_errors("A(x) :- B(X).\nA(X) :- B(X).\n\nC() :- D().", limits=limits)
    assert passed.value.detail == "<rules>:4"
    with pytest.raises(LimitExceeded) as passed:
        read_annotated_all("A(x) :- B(X).\n# why\nA(X) :- B(X).\n\nC() :- D().", limits=limits)
    assert passed.value.detail == "<rules>:5"


PLAIN = [
    # fact lines, whether they are read at once under a limit of 32 bytes and three values
    ("E('123456')\n", True),
    ("E('1234567')\n", False),
    ("E('1','2','3')\n", False),  # together they might pass the limit of one
    ("E('1','2')", True),
    ("E('','','')", True),
    ("E('','','','')", False),
    ("E('é')\nE()\nF('a').\n", True),
    ("E('e\u0301')\n", False),
    ("E('\ud800')\n", False),
    ("E('a')\n\nE('b')\n", False),
    ("E( 'a')\n", False),
    ("not('a')\n", False),
]


@pytest.mark.parametrize(("piece", "at_once"), PLAIN)
def test_plain_fact_lines_are_read_at_once(piece: str, at_once: bool) -> None:
    found = plain_facts(piece, EngineLimits(max_value_bytes=32, max_tuple_arity=3))
    assert (found is not None) is at_once
    if found is not None:
        assert [fact.predicate.name for fact in found] == [line[0] for line in piece.splitlines()]


def test_facts_of_several_pieces_keep_their_line_numbers() -> None:
    text = "E('a')\nE('b')\n# no\nF('a','b')\nF('c')\nE(X)\n"
    expected = [("E", ("a",)), ("E", ("b",)), ("F", ("a", "b")), ("F", ("c",))]
    found: list[Fact] = []
    with pytest.raises(InvalidLacegram) as refused:
        found.extend(iter_facts(text, found))
    assert refused.value.place == "<facts>:6:1"
    assert [(fact.predicate.name, fact.values) for fact in found] == expected
    assert all(fact.predicate == Predicate(fact.predicate.name, len(fact.values)) for fact in found)


def iter_facts(text: str, found: list[Fact]) -> list[Fact]:
    for fact in parse_facts(text, piece_chars=8):
        found.append(fact)  # noqa: PERF402  # what came before an error counts
    return []


# pictures

LONG = "".join(chr(ord("a") + n % 26) for n in range(200))


@pytest.mark.parametrize(
    ("line", "column", "shown", "caret"),
    [
        ("A(x).", 3, "A(x).", 2),
        ("A(x).", 0, "A(x).", 0),
        ("A(x).", 99, "A(x).", 5),
        ("A\tx\x00", 2, "A x\ufffd", 1),
        (LONG[:110], 101, LONG[:110], 100),
        (LONG[:110], 70, LONG[:109] + "…", 69),
        (LONG[:110], 71, LONG[:110], 70),
        (LONG[:111], 72, "…" + LONG[1:111], 71),
        (LONG[:111], 71, LONG[:110] + "…", 70),
        (LONG, 101, "…" + LONG[30:140] + "…", 71),
        (LONG, 161, "…" + LONG[90:200], 71),
        (LONG, 160, "…" + LONG[89:199] + "…", 71),
        (LONG, 1, LONG[:40] + "…", 0),
    ],
)
def test_a_picture_is_one_line_cut_around_the_caret(line: str, column: int, shown: str, caret: int) -> None:
    assert picture(line, column) == f"{shown}\n{' ' * caret}^"


def test_an_error_without_a_place_or_a_text_has_no_picture() -> None:
    source = SourceText("rules", "A(x).")
    nowhere = lacegram_error(source, Place(0, 0), "", "r", "m", "a", "f")
    assert (nowhere.place, nowhere.line, nowhere.picture, nowhere.advice, nowhere.found) == ("rules", 0, "", "a", "f")
    first = lacegram_error(source, Place(1, 3), "A(x).", "r", "m")
    assert (first.place, first.line, first.column, first.picture) == ("rules:1:3", 1, 3, "A(x).\n  ^")
    bare = lacegram_error(NO_SOURCE, Place(1, 3), "A(x).", "r", "m")
    assert (bare.picture, bare.place.endswith("1:3")) == ("", True)


def test_advice_on_wide_joins_speaks_of_sorting_where_rows_are_compared() -> None:
    (plain,) = parse_program("A(X,Y) :- B(X), C(Y), X != Y.").rules
    (compared,) = parse_program("A(X,Y) :- B(X), C(Y), LexCompare(X,'<',Y).").rules
    short = "let the atoms share a variable or a constant, so that fewer rows meet"
    assert wide_join_advice(None) == wide_join_advice(plain) == short
    assert wide_join_advice(compared).startswith(short + "; or compare two rows of one predicate")


# annotated source

RULE = "A(X) :- B(X)."
FORMATTED = [
    # source text, as it is formatted, its header
    (f"# file\n\n# about\n{RULE}\n# end", f"# file\n\n# about\n{RULE}\n\n# end\n", ("# file",)),
    (f"# about\n{RULE}", f"# about\n{RULE}\n", ()),
    (f"\n\n# one\n\n\n# two\n\n\n{RULE}", f"# one\n\n# two\n\n{RULE}\n", ("# one", "", "# two")),
    (f"# one\n\n#:json {{}}\n\n# two\n{RULE}", f"# one\n\n#:json {{}}\n# two\n{RULE}\n", ("# one",)),
    (f"{RULE}\nB(X) :- C(X).", f"{RULE}\nB(X) :- C(X).\n", ()),
    (f"B(X) :- C(X).\n# a\n{RULE}", f"# a\n{RULE}\nB(X) :- C(X).\n", ()),
    (f"{RULE}\n\n# b\nB(X) :- C(X).\n\n# c\n\n# d", f"{RULE}\n\n# b\nB(X) :- C(X).\n\n# c\n# d\n", ()),
    ("# only", "# only\n", ()),
    (f"{RULE}\n# end", f"{RULE}\n\n# end\n", ()),
    (f"#:json {{}}\n\n# two\n{RULE}", f"#:json {{}}\n# two\n{RULE}\n", ()),
    ("", "", ()),
    (f"# x\n{RULE}\n\n# y\nA( X) :- B(X).", f"# x\n# y\n{RULE}\n", ()),
]


@pytest.mark.parametrize(("text", "formatted", "header"), FORMATTED)
def test_comments_stay_where_they_belong(text: str, formatted: str, header: tuple[str, ...]) -> None:
    source = read_annotated(text)
    assert (format_annotated(source), source.header) == (formatted, header)
    assert format_annotated(read_annotated(formatted)) == formatted


def test_an_annotation_that_is_refused_says_its_line() -> None:
    for text, rule in (
        ("#:json 1", "annotation-object"),
        ("#:jsonx {}", "annotation-form"),
        ("#:json {", "annotation-json"),
    ):
        _, errors = read_annotated_all(f"{RULE}\n  {text}\n{RULE}")
        assert [(error.rule, error.place) for error in errors] == [(rule, "<rules>:2:1")]
    _, errors = read_annotated_all(f"{RULE}\n#:json {{}}\n# more")
    assert [(error.rule, error.place) for error in errors] == [("annotation-dangling", "<rules>:2:1")]
    assert errors[0].picture == "#:json {}\n^"


def test_an_atom_of_the_tree_is_compared_by_what_it_says() -> None:
    atom = parse_atom("A(X,'b')")
    assert atom == Atom(Predicate("A", 2), (Variable("X"), Constant("b")))
