"""The grammar of 030: what is a rule, what is not, and what an error says."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.language import parser as parser_module
from lace.datalog.language.formatting import format_program, format_rule
from lace.datalog.language.parser import parse_all_errors, parse_atom, parse_facts, parse_program
from lace.datalog.language.syntax import (
    ANONYMOUS,
    Constant,
    Fact,
    Negated,
    Positive,
    Predicate,
    TrueLiteral,
    Unequal,
    Variable,
)
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.errors import InvalidLacegram, LimitExceeded
from lace.limits import EngineLimits

mark = pytest.mark

VALID = [
    pytest.param("A(X) :- B(X).", marks=mark.clause("030-SYN-02", "030-SYN-14")),
    pytest.param("A() :- TransportEncrypted().", marks=mark.clause("030-SYN-06", "030-SYN-14")),
    pytest.param("KnownVerifier('V.example.H3') :- true.", marks=mark.clause("030-SYN-08")),
    pytest.param("a(X) :- A~b(X), x-1(X), P_(X), z~(X).", marks=mark.clause("030-SYN-09")),
    pytest.param("notA(X) :- trueB(X), nothing(X), not-(X).", marks=mark.clause("030-SYN-09")),
    pytest.param("_Trace(X) :- _seen-1(X).", marks=mark.clause("030-SYN-11")),
    pytest.param("A(X) :- B(X), not C(X), not TransportEncrypted().", marks=mark.clause("030-SYN-15")),
    pytest.param("A(X) :- B(X,Y), X != Y, X != 'a', 'a' != X.", marks=mark.clause("030-SYN-17", "030-EQ-08")),
    pytest.param("A(X) :- true, B(X), true.", marks=mark.clause("030-SYN-20")),
    pytest.param("A(X) :- B(X,Y_2b), C(_,_).", marks=mark.clause("030-TERM-01", "030-TERM-03")),
    pytest.param("A('\\\\','\\'','a\\'b') :- true.", marks=mark.clause("030-TERM-09")),
    pytest.param("A('\t#,).:- = \"🖧 é') :- true.", marks=mark.clause("030-TERM-13", "030-EQ-06", "030-TERM-07")),
    pytest.param("A('') :- true.", marks=mark.clause("030-VAL-05")),
    pytest.param(
        "A(X) :- B(X), IntCompare(X,'<','3'), LexCompare('a','>=',X), TextShape(X,'a','/',X).",
        marks=mark.clause("030-SYN-18", "030-INT-02", "030-LEX-02"),
    ),
    pytest.param(
        "A(X) :- B(X), Cardinality(C(X,_,Y),'<=',X), Cardinality(D(),'>','0').",
        marks=mark.clause("030-SYN-18", "030-CARD-05"),
    ),
    pytest.param("A(X) :- B(X), IntCompare(X,'<=','1'), IntCompare(X,'>','1').", marks=mark.clause("030-INT-02")),
]


@pytest.mark.parametrize("line", VALID)
def test_canonical_lines_parse_and_print_as_they_stand(line: str) -> None:
    program = parse_program(line)
    assert len(program.rules) == 1
    assert format_program(program) == line


INVALID = [
    # the line, the rule code, the column of the caret
    pytest.param("A(X) :-", "body-atom", 8, marks=mark.clause("030-SYN-03")),
    pytest.param("A(X) :- B(X). C(X) :- B(X).", "trailing-text", 15, marks=mark.clause("030-SYN-03")),
    pytest.param("A(X) :- B(X)", "rule-end", 13, marks=mark.clause("030-SYN-04")),
    pytest.param("A(X) :- B(X),", "body-atom", 14, marks=mark.clause("030-SYN-04")),
    pytest.param("A(X) :- B(X)..", "trailing-text", 14, marks=mark.clause("030-SYN-03")),
    pytest.param("Foo('a').", "rule-body", 9, marks=mark.clause("030-SYN-05")),
    pytest.param("Foo('a')", "rule-arrow", 9, marks=mark.clause("030-SYN-05")),
    pytest.param("Foo('a') :- .", "body-atom", 13, marks=mark.clause("030-SYN-05")),
    pytest.param("A(X) <- B(X).", "rule-arrow", 6, marks=mark.clause("030-SYN-02")),
    pytest.param("A(X) : - B(X).", "rule-arrow", 6, marks=mark.clause("030-SYN-02")),
    pytest.param("A(X) :- B(X) C(X).", "body-separator", 14, marks=mark.clause("030-SYN-02")),
    pytest.param("A(X) :- B(X); C(X).", "body-separator", 13, marks=mark.clause("030-SYN-02", "030-EQ-09")),
    pytest.param("A() :- TransportEncrypted.", "parentheses", 8, marks=mark.clause("030-SYN-07")),
    pytest.param("TransportEncrypted :- B().", "parentheses", 1, marks=mark.clause("030-SYN-07")),
    pytest.param("A() :- not TransportEncrypted.", "parentheses", 12, marks=mark.clause("030-SYN-07")),
    pytest.param("1A(X) :- B(X).", "predicate-name", 1, marks=mark.clause("030-SYN-10")),
    pytest.param("-A(X) :- B(X).", "predicate-name", 1, marks=mark.clause("030-SYN-10")),
    pytest.param("~A(X) :- B(X).", "predicate-name", 1, marks=mark.clause("030-SYN-10")),
    pytest.param("A.b(X) :- B(X).", "parentheses", 1, marks=mark.clause("030-SYN-10")),
    pytest.param("A b(X) :- B(X).", "parentheses", 1, marks=mark.clause("030-SYN-10")),
    pytest.param("Ä(X) :- B(X).", "predicate-name", 1, marks=mark.clause("030-SYN-10")),
    pytest.param("_(X) :- B(X).", "predicate-name", 1, marks=mark.clause("030-SYN-12")),
    pytest.param("_1(X) :- B(X).", "predicate-name", 1, marks=mark.clause("030-SYN-12")),
    pytest.param("A(X) :- __A(X).", "predicate-name", 9, marks=mark.clause("030-SYN-12")),
    pytest.param("A(X) :- _(X).", "predicate-name", 9, marks=mark.clause("030-SYN-12")),
    pytest.param("A(X) :- B(X), not true.", "not-operand", 19, marks=mark.clause("030-SYN-16")),
    pytest.param("A(X) :- B(X), not X != 'a'.", "not-operand", 19, marks=mark.clause("030-SYN-16")),
    pytest.param("A(X) :- B(X), not 'a' != X.", "not-operand", 19, marks=mark.clause("030-SYN-16")),
    pytest.param("A(X) :- B(X), not IntCompare(X,'<','1').", "not-operand", 19, marks=mark.clause("030-SYN-16")),
    pytest.param("A(X) :- B(X), not Cardinality(B(X),'<','1').", "not-operand", 19, marks=mark.clause("030-SYN-16")),
    pytest.param("A(X) :- B(X), not not C(X).", "not-operand", 19, marks=mark.clause("030-SYN-16")),
    pytest.param("IntCompare(X) :- B(X).", "builtin-head", 1, marks=mark.clause("030-SYN-19")),
    pytest.param("TextShape(X,X,X,X) :- B(X).", "builtin-head", 1, marks=mark.clause("030-SYN-19")),
    pytest.param("A(X) :- B(X), IntCompare(X,'<').", "builtin-arity", 15, marks=mark.clause("030-SYN-19")),
    pytest.param("A(X) :- B(X), LexCompare(X,'<',X,X).", "builtin-arity", 15, marks=mark.clause("030-SYN-19")),
    pytest.param("A(X) :- B(X), TextShape(X,'a','').", "builtin-arity", 15, marks=mark.clause("030-SYN-19")),
    pytest.param("A(X) :- B(X), TextShape().", "builtin-arity", 15, marks=mark.clause("030-SYN-19")),
    pytest.param("A(X) :- B(X), Cardinality(B(X),'<').", "builtin-arity", 15, marks=mark.clause("030-SYN-19")),
    pytest.param("A(X) :- B(X), Cardinality(B(X),'<','1','2').", "builtin-arity", 15, marks=mark.clause("030-SYN-19")),
    pytest.param("true() :- B().", "keyword", 1, marks=mark.clause("030-SYN-21")),
    pytest.param("A() :- true().", "keyword", 8, marks=mark.clause("030-SYN-21")),
    pytest.param("not(X) :- B(X).", "keyword", 1, marks=mark.clause("030-SYN-21")),
    pytest.param("A(X) :- B(X), not(X).", "keyword", 15, marks=mark.clause("030-SYN-21")),
    pytest.param("true :- B().", "parentheses", 1, marks=mark.clause("030-SYN-21")),
    pytest.param("# comment", "comment", 1, marks=mark.clause("030-SYN-27", "030-ANN-11")),
    pytest.param('#:json {"label":"x"}', "comment", 1, marks=mark.clause("030-SYN-27", "030-ANN-11")),
    pytest.param("A(X) :- B(X). # why", "trailing-text", 15, marks=mark.clause("030-SYN-27")),
    pytest.param("A(X-1) :- B(X).", "variable-name", 3, marks=mark.clause("030-TERM-01")),
    pytest.param("A(X~) :- B(X).", "variable-name", 3, marks=mark.clause("030-TERM-01")),
    pytest.param("A(X) :- B(X,x).", "lower-case-term", 13, marks=mark.clause("030-TERM-02")),
    pytest.param("A(X) :- B(X,links).", "lower-case-term", 13, marks=mark.clause("030-TERM-02")),
    pytest.param("A(X) :- B(X,1).", "bare-number", 13, marks=mark.clause("030-TERM-02")),
    pytest.param("A(X) :- B(X,-1).", "bare-number", 13, marks=mark.clause("030-TERM-02")),
    pytest.param("A(X) :- B(X,true).", "lower-case-term", 13, marks=mark.clause("030-TERM-02")),
    pytest.param("A(X) :- B(X,_Name).", "underscore-term", 13, marks=mark.clause("030-TERM-05")),
    pytest.param("A(X) :- B(X,_1).", "underscore-term", 13, marks=mark.clause("030-TERM-05")),
    pytest.param("A(X) :- B(X,__).", "underscore-term", 13, marks=mark.clause("030-TERM-05")),
    pytest.param("A(X) :- B(X), _Name != X.", "underscore-term", 15, marks=mark.clause("030-TERM-05")),
    pytest.param('A("a") :- true.', "constant-quotes", 3, marks=mark.clause("030-TERM-08")),
    pytest.param("A(a) :- true.", "lower-case-term", 3, marks=mark.clause("030-TERM-08")),
    pytest.param("A('a) :- true.", "constant-open", 3, marks=mark.clause("030-TERM-08")),
    pytest.param("A(X) :- B(X), 'a != X.", "constant-open", 15, marks=mark.clause("030-TERM-08")),
    pytest.param(r"A('\n') :- true.", "constant-escape", 4, marks=mark.clause("030-TERM-10")),
    pytest.param(r"A('\u0041') :- true.", "constant-escape", 4, marks=mark.clause("030-TERM-10")),
    pytest.param(r"A('\"') :- true.", "constant-escape", 4, marks=mark.clause("030-TERM-10")),
    pytest.param("A('a\\", "constant-escape", 5, marks=mark.clause("030-TERM-10")),
    pytest.param(r"A('a\') :- true.", "constant-open", 3, marks=mark.clause("030-TERM-10")),
    pytest.param("A('a\rb') :- true.", "line-break", 5, marks=mark.clause("030-TERM-12")),
    pytest.param("A(X) :- B(X), IntCompare(X,'=','1').", "operator", 28, marks=mark.clause("030-INT-03")),
    pytest.param("A(X) :- B(X), IntCompare(X,'==','1').", "operator", 28, marks=mark.clause("030-INT-03")),
    pytest.param("A(X) :- B(X), IntCompare(X,'!=','1').", "operator", 28, marks=mark.clause("030-INT-03")),
    pytest.param("A(X) :- B(X), IntCompare(X,'=<','1').", "operator", 28, marks=mark.clause("030-INT-03")),
    pytest.param("A(X) :- B(X), IntCompare(X,'','1').", "operator", 28, marks=mark.clause("030-INT-03")),
    pytest.param("A(X) :- B(X), IntCompare(X,X,'1').", "operator", 28, marks=mark.clause("030-INT-04")),
    pytest.param("A(X) :- B(X), IntCompare(X,_,'1').", "operator", 28, marks=mark.clause("030-INT-04")),
    pytest.param("A(X) :- B(X), LexCompare(X,'=','1').", "operator", 28, marks=mark.clause("030-LEX-02")),
    pytest.param("A(X) :- B(X), LexCompare(X,X,'1').", "operator", 28, marks=mark.clause("030-LEX-02")),
    pytest.param("A(X) :- B(X), Cardinality(B(Y), '=','1').", "operator", 33, marks=mark.clause("030-CARD-05")),
    pytest.param("A(X) :- B(X), Cardinality(B(Y),X,'1').", "operator", 32, marks=mark.clause("030-CARD-05")),
    pytest.param("A(X) :- B(X), TextShape(X,'a',X,'').", "delimiters", 31, marks=mark.clause("030-SHAPE-02")),
    pytest.param("A(X) :- B(X), TextShape(X,'a',_,'').", "delimiters", 31, marks=mark.clause("030-SHAPE-02")),
    pytest.param("A(X) :- B(X), Cardinality(not B(X),'<','1').", "counted-atom", 27, marks=mark.clause("030-CARD-10")),
    pytest.param(
        "A(X) :- B(X), Cardinality(IntCompare(X,'<','1'),'<','1').",
        "counted-atom",
        27,
        marks=mark.clause("030-CARD-10"),
    ),
    pytest.param("A(X) :- B(X), Cardinality(true,'<','1').", "counted-atom", 27, marks=mark.clause("030-CARD-10")),
    pytest.param("A(X) :- B(X), Cardinality(X,'<','1').", "parentheses", 27, marks=mark.clause("030-CARD-10")),
    pytest.param(
        "A(X) :- B(X), Cardinality((B(X), C(X)),'<','1').", "counted-atom", 27, marks=mark.clause("030-CARD-10")
    ),
    pytest.param("A(X) :- B(X), X = 'a'.", "equality", 17, marks=mark.clause("030-EQ-01", "030-INV-09")),
    pytest.param("A(X) :- B(X), 'a'=X.", "equality", 18, marks=mark.clause("030-EQ-01")),
    pytest.param("A(X) :- B(X), X == Y.", "equality", 17, marks=mark.clause("030-EQ-01")),
    pytest.param("A(X) :- X = Y, B(Y).", "equality", 11, marks=mark.clause("030-EQ-01", "030-EQ-05")),
    pytest.param("A(X) :- B(X), Prefix(X,'links/').", "removed-builtin", 15, marks=mark.clause("030-INV-08")),
    pytest.param("A(X) :- B(X), not Prefix(X).", "removed-builtin", 19, marks=mark.clause("030-INV-08")),
    pytest.param(
        "A(X) :- B(X), Cardinality(Prefix(),'<','1').", "removed-builtin", 27, marks=mark.clause("030-INV-08")
    ),
    pytest.param("Prefix(X,Y,Z) :- B(X,Y,Z).", "removed-builtin", 1, marks=mark.clause("030-INV-08")),
    pytest.param("A(X) :- B(X,Y,).", "term", 15, marks=mark.clause("030-SYN-02")),
    pytest.param("A(X) :- B(X Y).", "separator", 13, marks=mark.clause("030-SYN-02")),
    pytest.param("A(X) :- B(C(X)).", "separator", 12, marks=mark.clause("030-SYN-02")),
    pytest.param("A(X) :- B(X),\u00a0C(X).", "body-atom", 14, marks=mark.clause("030-SYN-02")),
    pytest.param("A('e\u0301') :- true.", "text-nfc", 1, marks=mark.clause("030-SYN-01")),
    pytest.param("A('\ud800') :- true.", "text-utf8", 1, marks=mark.clause("030-SYN-01")),
]


@pytest.mark.parametrize(("line", "code", "column"), INVALID)
def test_each_refusal_has_its_code_and_points_at_the_place(line: str, code: str, column: int) -> None:
    with pytest.raises(InvalidLacegram) as refused:
        parse_program("\n" + line, name="rules.lace")
    error = refused.value
    assert (error.rule, error.line, error.column) == (code, 2, column)
    assert error.place == f"rules.lace:2:{column}"
    shown, caret = error.picture.split("\n")
    assert caret == " " * (column - 1) + "^"
    assert len(shown) <= len(line)
    assert str(error).startswith(f"rules.lace:2:{column}: ")


@pytest.mark.clause("030-TERM-11", "030-SYN-03")
def test_a_constant_and_a_rule_end_with_their_line() -> None:
    _, errors = parse_all_errors("A('a\nb') :- true.")
    assert [(error.rule, error.line) for error in errors] == [("constant-open", 1), ("parentheses", 2)]
    with pytest.raises(InvalidLacegram, match="missing"):
        parse_program("A(X) :-\n  B(X).")
    with pytest.raises(InvalidLacegram):
        parse_atom("A('a\nb')")


def test_every_bad_line_is_reported_and_the_good_ones_are_read() -> None:
    program, errors = parse_all_errors("A(x) :- B(X).\nA(X) :- B(X).\n\nA(X) :- C(X)\nD() :- true.")
    assert [error.line for error in errors] == [1, 4]
    assert [format_rule(rule) for rule in program.rules] == ["A(X) :- B(X).", "D() :- true."]


def test_authored_spacing_is_free() -> None:
    text = "\n \t\n  A ( X ,Y ):-B( X,'a b' ) ,not  C (Y) , X!=Y,IntCompare( X , '<' , Y ),"
    text += "\tCardinality( D( _ ),'<','1' ) , true .  \r\n"
    program = parse_program(text)
    canonical = "A(X,Y) :- B(X,'a b'), not C(Y), X != Y, IntCompare(X,'<',Y), Cardinality(D(_),'<','1'), true."
    assert format_program(program) == canonical
    assert parse_program(canonical) == program


@pytest.mark.clause("030-SYN-26")
def test_an_empty_text_is_an_empty_program() -> None:
    assert parse_program("").rules == ()
    assert parse_program("\n\n").rules == ()


@pytest.mark.clause("030-SYN-25")
def test_a_predicate_is_its_name_and_arity() -> None:
    rule = parse_program("Have(X,Y) :- Have(X), Have(Y).").rules[0]
    assert rule.head.predicate == Predicate("Have", 2)
    assert rule.body[0] == Positive(rule.body[0].atom)  # type: ignore[union-attr]  # a positive literal
    assert rule.head.predicate != Predicate("Have", 1)


def test_the_tree_says_what_the_text_says() -> None:
    (rule,) = parse_program("A(X) :- B(X,_,'c'), not D(X), X != 'e', true.").rules
    positive, negated, unequal, always = rule.body
    assert isinstance(positive, Positive)
    assert positive.atom.terms == (Variable("X"), ANONYMOUS, Constant("c"))
    assert isinstance(negated, Negated)
    assert unequal == Unequal(Variable("X"), Constant("e"))
    assert always == TrueLiteral()
    assert (rule.place.line, positive.atom.place.column) == (1, 9)


@pytest.mark.clause("030-TERM-14")
def test_escapes_are_decoded_into_the_value_before_it_is_measured() -> None:
    (rule,) = parse_program("A('a\\'b') :- true.").rules
    assert rule.head.terms == (Constant("a'b"),)
    limits = EngineLimits(max_value_bytes=3)
    assert parse_program("A('a\\'b') :- true.", limits=limits) == parse_program("A('a\\'b') :- true.")
    with pytest.raises(LimitExceeded, match="max_value_bytes"):
        parse_program("A('aébc') :- true.", limits=EngineLimits(max_value_bytes=4))


@pytest.mark.clause("030-LIM-01", "030-LIM-05", "030-LIM-11")
def test_the_rule_limit_is_reached_but_not_passed() -> None:
    lines = "\n".join(f"A('{n}') :- true." for n in range(256))
    assert len(parse_program(lines).rules) == 256
    with pytest.raises(LimitExceeded) as passed:
        parse_program(lines + "\nA('x') :- true.")
    assert (passed.value.limit, passed.value.allowed) == ("max_rules", 256)


@pytest.mark.clause("030-LIM-07")
def test_the_arity_limit_is_reached_but_not_passed() -> None:
    terms = ",".join("ABCDEFGH")
    assert parse_program(f"P({terms}) :- Q({terms}).").rules[0].head.predicate.arity == 8
    with pytest.raises(LimitExceeded, match="max_tuple_arity"):
        parse_program(f"P() :- Q({terms},I).")


def test_goals_and_fact_lines_are_atoms() -> None:
    assert parse_atom(" Selected( P ) ").terms == (Variable("P"),)
    with pytest.raises(InvalidLacegram, match="one atom"):
        parse_atom("A(X), B(X)")
    facts = list(parse_facts("# about\nE('a','b')\n\n E('b','c').\nT()\n"))
    assert facts == [
        Fact(Predicate("E", 2), ("a", "b")),
        Fact(Predicate("E", 2), ("b", "c")),
        Fact(Predicate("T", 0), ()),
    ]
    with pytest.raises(InvalidLacegram, match="constants only"):
        list(parse_facts("E(X)"))


def test_an_error_crosses_a_process_border_whole() -> None:
    with pytest.raises(InvalidLacegram) as refused:
        parse_program("A(x) :- B(X).")
    copy = pickle.loads(pickle.dumps(refused.value))
    assert str(copy) == str(refused.value)
    assert copy.advice == refused.value.advice


HOSTILE = [
    "A(" * 200_000,
    "A(X) :- " + "B(X), " * 20_000 + "B(X)",
    "A(X) :- " + "not " * 200_000,
    "A('" + "\\\\" * 300_000,
    "A('" + "\\'" * 300_000,
    "(" * 500_000,
    "A(X) :- Cardinality(" * 40_000,
    " " * 900_000 + "A",
    "_" * 900_000,
    "A(X) :- X " + " " * 900_000 + "= Y.",
    "\n" * 900_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_megabytes_end_in_a_short_error(text: str) -> None:
    _, errors = parse_all_errors(text)
    assert all(len(str(error)) < 600 for error in errors)
    assert errors or not text.strip("\n")


def test_a_very_long_rule_is_read_in_one_pass() -> None:
    text = "A(X) :- " + ", ".join(f"B(X,'{n}')" for n in range(5_000)) + "."
    (rule,) = parse_program(text).rules
    assert len(rule.body) == 5_000
    assert format_rule(rule) == text


SPELLINGS = """A B X _ _N ( ) , . :- 'a' ' \\ != = not true # é '<' '1' IntCompare( LexCompare( TextShape(
Cardinality( Prefix("""
PIECES = st.sampled_from([*SPELLINGS.split(), " ", "\t", "\n", "not ", "A(X) :- B(X)"])


@given(st.lists(PIECES, max_size=30).map("".join))
def test_any_text_is_read_or_refused_and_never_crashes(text: str) -> None:
    program, errors = parse_all_errors(text)
    assert parse_program(format_program(program)) == program
    for error in errors:
        assert error.line >= 1
        assert error.rule
        assert 1 <= error.column <= len(text.split("\n")[error.line - 1]) + 1


PLAIN_FACTS = ["E('a','b')", "E('a','b').", "E('c').\r", "E()", "_n~1('é','')"]
OTHER_FACTS = ["", "# E('a')", " E( 'a' , 'b' ) .", "E('it\\'s')", "E('a','b') ."]
NO_FACTS = ["E(X)", "E('a'", "E('a') x", "true('a')", "IntCompare('a','b','c')", "E('e\u0301')", "E('\ud800')"]
NO_FACTS += ["E('a\rb')", "E('1','2','3','4')", f"E('{'v' * 40}')", f"E('{'ö' * 10}')", "E('a','b')..", "E('a') # no"]
FACT_LINES = st.sampled_from(PLAIN_FACTS) | st.sampled_from([*PLAIN_FACTS, *OTHER_FACTS, *NO_FACTS])


@given(st.lists(FACT_LINES, max_size=12), st.booleans(), st.sampled_from([1, 20, 1 << 18]))
def test_facts_read_at_once_are_those_read_line_by_line(lines: list[str], ended: bool, piece: int) -> None:
    text = "\n".join(lines) + "\n" * ended
    limits = EngineLimits(max_tuple_arity=3, max_value_bytes=32)

    def outcome(read: Callable[[], Iterator[Fact]]) -> object:
        facts: list[Fact] = []
        try:
            facts += read()
        except (InvalidLacegram, LimitExceeded) as error:
            return str(error)
        return facts

    with pytest.MonkeyPatch.context() as patch:
        found = outcome(lambda: parse_facts(text, limits=limits, piece_chars=piece))
        patch.setattr(parser_module, "plain_facts", lambda *_: None)
        assert found == outcome(lambda: parse_facts(text, limits=limits, piece_chars=piece))


@pytest.mark.clause("030-SYN-20", "030-SAFETY-16")
def test_true_may_stand_beside_other_atoms() -> None:
    check_program(parse_program("A('a') :- true.\nB(X) :- true, A(X), true."), RAW_PROFILE)
