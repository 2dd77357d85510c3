"""Safety, shadowing, reserved names and strata: what 030 refuses before anything is evaluated."""

from __future__ import annotations

import pytest

from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Atom, Constant, Predicate, Program, Rule, TrueLiteral
from lace.datalog.language.validate import LOCAL_PROFILE, RAW_PROFILE, RECORD_BASE, Profile, check_all, check_program
from lace.errors import InvalidLacegram, LimitExceeded
from lace.facts.predicates import RECORD_PREDICATES
from lace.limits import EngineLimits

mark = pytest.mark

SAFE = [
    pytest.param("A(X,'c') :- B(X).", marks=mark.clause("030-SAFETY-01")),
    pytest.param("A('a') :- true.", marks=mark.clause("030-SAFETY-16")),
    pytest.param("A(X) :- X != 'a', not C(X), LexCompare(X,'<','b'), Cardinality(D(X),'<','1'), B(X).",
                 marks=mark.clause("030-SAFETY-14")),
    pytest.param("A(X) :- B(X), Cardinality(C(X,Q,Q),'<','1').", marks=mark.clause("030-SAFETY-11")),
    pytest.param("A(X) :- B(X,_), not C(_,X), Cardinality(D(_,X),'<','1').", marks=mark.clause("030-SAFETY-12")),
    pytest.param("A(X) :- B(X,N), Cardinality(C(X),'<',N).", marks=mark.clause("030-CARD-06")),
    pytest.param("A() :- Cardinality(C(Q),'<','1').", marks=mark.clause("030-SAFETY-11")),
    pytest.param("A() :- not C(_).", marks=mark.clause("030-SAFETY-12")),
    pytest.param("Have(X,Y) :- Have(X), Have(Y).", marks=mark.clause("030-SHADOW-02", "030-SYN-25")),
    pytest.param("Field(X) :- Have(X).", marks=mark.clause("030-SHADOW-02")),
    pytest.param("A(X) :- Undefined(X).", marks=mark.clause("030-SYN-24")),
    pytest.param("T(X,Z) :- T(X,Y), T(Y,Z).\nT(X,Y) :- E(X,Y).", marks=mark.clause("030-STRAT-06")),
    pytest.param("A(X) :- B(X).\nB(X) :- A(X).", marks=mark.clause("030-STRAT-06")),
    pytest.param("A(X) :- B(X), not C(X).\nC(X) :- B(X), not D(X).", marks=mark.clause("030-STRAT-09")),
    pytest.param("A(X) :- B(X), not A(X,X).\nA(X,Y) :- C(X,Y).", marks=mark.clause("030-STRAT-07", "030-SYN-25")),
    pytest.param("MaySend(P) :- Have(P).\nSelectHave(P) :- MaySend(P).", marks=mark.clause("030-CLASS-07")),
    pytest.param("_Diagnose(P) :- Have(P).", marks=mark.clause("030-SYN-11")),
]  # fmt: skip


@pytest.mark.parametrize("text", SAFE)
def test_valid_programs_are_accepted(text: str) -> None:
    assert check_all(parse_program(text)) == []
    assert check_program(parse_program(text)).program == parse_program(text)


REFUSED = [
    pytest.param("A(X,V) :- B(X).", "unsafe", 5, marks=mark.clause("030-SAFETY-01")),
    pytest.param("Selected(P,V) :- Field(P,'Group',_,'u').", "unsafe", 12,
                 marks=mark.clause("030-SAFETY-01", "030-INV-01")),
    pytest.param("A(X) :- true.", "unsafe", 3, marks=mark.clause("030-SAFETY-01", "030-SAFETY-13")),
    pytest.param("A(X) :- not B(X).", "unsafe", 3, marks=mark.clause("030-SAFETY-01", "030-SAFETY-02")),
    pytest.param("A() :- not B(X).", "unsafe", 14, marks=mark.clause("030-SAFETY-02")),
    pytest.param("A(X) :- B(X), not C(X,Y).", "unsafe", 23, marks=mark.clause("030-SAFETY-02")),
    pytest.param("A(_) :- B(X).", "anonymous-head", 3, marks=mark.clause("030-SAFETY-03")),
    pytest.param("Selected(_) :- Have(P).", "anonymous-head", 10, marks=mark.clause("030-SAFETY-03", "030-INV-02")),
    pytest.param("A(X) :- B(X), Y != X.", "unsafe", 15, marks=mark.clause("030-SAFETY-04")),
    pytest.param("A(X) :- B(X), X != Y.", "unsafe", 20, marks=mark.clause("030-SAFETY-04")),
    pytest.param("A(X) :- B(X), IntCompare(Y,'<','1').", "unsafe", 26,
                 marks=mark.clause("030-SAFETY-05", "030-INT-08")),
    pytest.param("A(X) :- IntCompare(X,'<','1').", "unsafe", 3, marks=mark.clause("030-INT-08", "030-SAFETY-13")),
    pytest.param("A(X) :- B(X), LexCompare(X,'<',Y).", "unsafe", 32, marks=mark.clause("030-SAFETY-06")),
    pytest.param("A(X) :- B(X), TextShape(Y,'a','','').", "unsafe", 25,
                 marks=mark.clause("030-SAFETY-07", "030-SHAPE-01")),
    pytest.param("A(X) :- B(X), TextShape(X,Y,'','').", "unsafe", 27, marks=mark.clause("030-SAFETY-07")),
    pytest.param("A(X) :- B(X), TextShape(X,'X','Y',Z).", "unsafe", 35, marks=mark.clause("030-SAFETY-07")),
    pytest.param("A(X) :- B(X), _ != X.", "anonymous-builtin", 15, marks=mark.clause("030-SAFETY-08")),
    pytest.param("A(X) :- B(X), X != _.", "anonymous-builtin", 20, marks=mark.clause("030-SAFETY-08")),
    pytest.param("A(X) :- B(X), IntCompare(_,'<','1').", "anonymous-builtin", 26, marks=mark.clause("030-SAFETY-08")),
    pytest.param("A(X) :- B(X), LexCompare('1','<',_).", "anonymous-builtin", 34, marks=mark.clause("030-SAFETY-08")),
    pytest.param("Selected(P) :- Have(P), TextShape(_,'links/','','').", "anonymous-builtin", 35,
                 marks=mark.clause("030-SAFETY-08", "030-INV-03")),
    pytest.param("A(X) :- B(X), TextShape(X,_,'','').", "anonymous-builtin", 27, marks=mark.clause("030-SAFETY-08")),
    pytest.param("A(X) :- B(X), TextShape(X,'','',_).", "anonymous-builtin", 33, marks=mark.clause("030-SAFETY-08")),
    pytest.param("A(X) :- B(X), Cardinality(C(X),'<',_).", "anonymous-builtin", 15, marks=mark.clause("030-CARD-06")),
    pytest.param("A(X) :- B(X), Cardinality(C(X),'<',N).", "unsafe", 36, marks=mark.clause("030-CARD-06")),
    pytest.param("A(Q) :- Cardinality(B(Q),'<','1').", "unsafe", 3, marks=mark.clause("030-SAFETY-09", "030-CARD-07")),
    pytest.param("A(X) :- B(X), Cardinality(C(Q),'<','1'), not D(Q).", "unsafe", 29,
                 marks=mark.clause("030-SAFETY-10")),
    pytest.param("A(X) :- B(X), Cardinality(C(Q),'<','1'), Cardinality(D(Q),'<','1').", "unsafe", 29,
                 marks=mark.clause("030-SAFETY-10")),
    pytest.param("A(X) :- B(X), Cardinality(C(Q),'<',Q).", "unsafe", 29, marks=mark.clause("030-SAFETY-10")),
    pytest.param("A(X) :- X != 'a'.", "unsafe", 3, marks=mark.clause("030-SAFETY-13")),
    pytest.param("A(X) :- TextShape(X,'','','').", "unsafe", 3, marks=mark.clause("030-SAFETY-13")),
    pytest.param("Have('x') :- true.", "shadowing", 1, marks=mark.clause("030-SHADOW-01", "030-SHADOW-07")),
    pytest.param("Have(P) :- true.", "shadowing", 1, marks=mark.clause("030-INV-05", "030-SHADOW-07")),
    pytest.param("Have(P) :- Other(P).", "shadowing", 1, marks=mark.clause("030-SHADOW-07")),
    pytest.param("Field(A,B,C,D) :- E(A,B,C,D).", "shadowing", 1, marks=mark.clause("030-SHADOW-08")),
    pytest.param("RecordLink(A,B,C,D,E) :- F(A,B,C,D,E).", "shadowing", 1, marks=mark.clause("030-SHADOW-09")),
    pytest.param("BlobHash(A,B) :- F(A,B).", "shadowing", 1, marks=mark.clause("030-SHADOW-10")),
    pytest.param("PlexHash(A,B) :- F(A,B).", "shadowing", 1, marks=mark.clause("030-SHADOW-11")),
    pytest.param("A(X) :- B(X), not A(X).", "unstratified", 19, marks=mark.clause("030-STRAT-02", "030-STRAT-04")),
    pytest.param("A(X) :- B(X), not C(X).\nC(X) :- A(X).", "unstratified", 19,
                 marks=mark.clause("030-STRAT-01", "030-STRAT-04")),
    pytest.param("A(P) :- Candidate(P), Cardinality(A(Q),'<','100').", "unstratified", 35,
                 marks=mark.clause("030-STRAT-03", "030-STRAT-05", "030-INV-07")),
    pytest.param("A(X) :- B(X), Cardinality(C(X),'<','1').\nC(X) :- D(X).\nD(X) :- A(X).", "unstratified", 27,
                 marks=mark.clause("030-STRAT-05")),
    pytest.param("A('a') :- Never('b'), not A('c').", "unstratified", 27, marks=mark.clause("030-STRAT-07")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "column"), REFUSED)
def test_each_refusal_names_its_rule_and_place(text: str, code: str, column: int) -> None:
    errors = check_all(parse_program(text, name="rules.lace"))
    assert (errors[0].rule, errors[0].line, errors[0].column) == (code, 1, column)
    with pytest.raises(InvalidLacegram):
        check_program(parse_program(text))


@pytest.mark.clause("030-INV-06", "030-STRAT-04")
def test_two_predicates_that_negate_each_other_are_refused_and_the_cycle_is_named() -> None:
    text = "A(P) :- U(P), not B(P).\nB(P) :- U(P), not A(P)."
    errors = check_all(parse_program(text))
    assert [error.rule for error in errors] == ["unstratified", "unstratified"]
    assert "A/1 → B/1 → A/1" in errors[0].message
    assert "B/1 → A/1 → B/1" in errors[1].message
    literal = check_all(parse_program("A(P) :- not B(P).\nB(P) :- not A(P)."))
    assert {error.rule for error in literal} == {"unsafe", "unstratified"}


@pytest.mark.clause("030-SAFETY-15")
def test_one_unsafe_rule_refuses_the_whole_program() -> None:
    text = "A(X) :- B(X).\nC(Y) :- B(X).\nD(X) :- A(X)."
    with pytest.raises(InvalidLacegram) as refused:
        check_program(parse_program(text))
    assert refused.value.line == 2


def test_all_errors_are_told_in_the_order_of_the_text() -> None:
    text = "Have(Y) :- B(X), not C(Z).\nA(_) :- not A(Q)."
    found = [(error.line, error.rule) for error in check_all(parse_program(text))]
    assert found == [
        (1, "shadowing"), (1, "unsafe"), (1, "unsafe"), (2, "anonymous-head"), (2, "unsafe"), (2, "unstratified"),
    ]  # fmt: skip


def test_the_caret_skips_the_same_letters_inside_constants() -> None:
    (error,) = check_all(parse_program("A('V, V',V) :- B(X)."))
    assert error.column == 10
    assert error.picture == "A('V, V',V) :- B(X).\n         ^"


EXCHANGE = Profile(
    name="exchange",
    base=frozenset({Predicate("Have", 1), Predicate("TransportEncrypted", 0)}),
    forbidden_heads=frozenset({Predicate("MaySend", 1)}),
    forbidden_bodies=frozenset({Predicate("MaySend", 1)}),
    reserved_prefixes=("o0_",),
)
RESERVED = [
    ("MaySend(P) :- Have(P).", "reserved-head"),
    ("A(P) :- Have(P), not MaySend(P).", "reserved-body"),
    ("A(P) :- Have(P), Cardinality(MaySend(P),'<','1').", "reserved-body"),
    ("o0_A(P) :- Have(P).", "reserved-prefix"),
    ("A(P) :- Have(P), o0_B(P).", "reserved-prefix"),
    ("_A(P) :- Have(P).", "underscore-predicate"),
    ("A(P) :- Have(P), not _B(P).", "underscore-predicate"),
    ("TransportEncrypted() :- true.", "shadowing"),
]


@pytest.mark.clause("030-SHADOW-03", "030-SHADOW-04", "030-SYN-13", "030-SHADOW-05")
@pytest.mark.parametrize(("text", "code"), RESERVED)
def test_a_profile_reserves_names(text: str, code: str) -> None:
    assert [error.rule for error in check_all(parse_program(text), EXCHANGE)] == [code]
    assert check_all(parse_program(text), RAW_PROFILE) == []


def test_the_local_profile_has_the_record_predicates_as_base() -> None:
    assert frozenset(RECORD_PREDICATES) == RECORD_BASE == LOCAL_PROFILE.base


def test_facts_in_hand_make_their_predicates_base() -> None:
    profile = RAW_PROFILE.with_base([Predicate("E", 2)])
    assert [e.rule for e in check_all(parse_program("E('a','b') :- true."), profile)] == ["shadowing"]


@pytest.mark.clause("030-SYN-19")
@pytest.mark.parametrize("name", ["IntCompare", "Cardinality", "Prefix", "true", "not", "1A", "_", "Ä", ""])
def test_a_tree_built_by_hand_is_held_to_the_same_names(name: str) -> None:
    head = Atom(Predicate(name, 1), (Constant("a"),))
    errors = check_all(Program((Rule(head, (TrueLiteral(),)),)))
    assert errors
    assert errors[0].line == 0


@pytest.mark.clause("030-STRAT-08", "030-EVAL-02", "030-EX-04")
def test_strata_are_components_in_topological_order_whatever_the_rule_order() -> None:
    lines = [
        "Selected(P) :- Candidate(P,T), Cardinality(Before(P,Q),'<','100').",
        "Before(P,Q) :- Candidate(P,T), Candidate(Q,T), LexCompare(Q,'>',P).",
        "Before(P,Q) :- Candidate(P,TP), Candidate(Q,TQ), LexCompare(TQ,'>',TP).",
        "Candidate(P,T) :- Have(P), Field(P,'TAI',_,T).",
        "Odd(X) :- Even(Y), Next(Y,X).",
        "Even(X) :- Odd(Y), Next(Y,X).",
    ]
    forward = check_program(parse_program("\n".join(lines)))
    backward = check_program(parse_program("\n".join(lines[::-1])))
    shape = [([p.name for p in s.predicates], s.recursive, s.level, len(s.rules)) for s in forward.strata]
    assert shape == [
        (["Candidate"], False, 0, 1),
        (["Even", "Odd"], True, 0, 2),
        (["Before"], False, 1, 2),
        (["Selected"], False, 2, 1),
    ]
    assert [s.predicates for s in backward.strata] == [s.predicates for s in forward.strata]
    assert forward.base == {Predicate("Have", 1), Predicate("Field", 4), Predicate("Next", 2)}


def test_a_deep_chain_of_predicates_needs_no_stack() -> None:
    text = "\n".join(f"A{n}(X) :- A{n + 1}(X)." for n in range(3000))
    limits = EngineLimits(max_rules=3000)
    checked = check_program(parse_program(text, limits=limits), LOCAL_PROFILE, limits)
    assert len(checked.strata) == 3000
    assert checked.strata[0].predicates[0].name == "A2999"


@pytest.mark.clause("030-LIM-01", "030-LIM-09")
@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        (EngineLimits(max_rules=1), "max_rules"),
        (EngineLimits(max_tuple_arity=1), "max_tuple_arity"),
        (EngineLimits(max_value_bytes=2), "max_value_bytes"),
    ],
)
def test_limits_of_the_text_hold_for_trees_too(limits: EngineLimits, limit: str) -> None:
    program = parse_program("A(X) :- B(X,'abc').\nC() :- true.")
    with pytest.raises(LimitExceeded) as passed:
        check_program(program, RAW_PROFILE, limits)
    assert passed.value.limit == limit
