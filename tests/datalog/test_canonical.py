"""Canonical text and identifiers (030, P1, P2)."""

from __future__ import annotations

import random

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.language.canonical import Lacegram, canonical_text, format_program, is_canonical, lacegram_id, rule_id
from lace.datalog.language.parser import parse_program
from lace.datalog.language.validate import RAW_PROFILE
from lace.errors import InvalidLacegram, InvalidText
from lace.notation import b64a
from lace.notation.identifiers import ExchangePlanId, LacegramId, RecordHash, RuleId

mark = pytest.mark
MODULE = "SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P)."
IN_TRACE_ORDER = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."


@pytest.mark.clause("030-RID-01", "030-CANON-11", "030-RID-03")
def test_lacegram_identifiers_match_the_vectors() -> None:
    emitted = Lacegram.from_program(parse_program(IN_TRACE_ORDER))
    assert emitted.text == MODULE
    assert emitted.id == "R.lbJvPaWYF6WIGOhLim1FSg7nPPZ4acVE7oyvWH5gjj0"
    received = Lacegram.parse_canonical(IN_TRACE_ORDER.encode())
    assert received.id == "R.V3wv7Ug32jVLxA5Q6An85cW~HQfME12J4bJK7MpVBHS"
    assert received.text == IN_TRACE_ORDER
    other = Lacegram.from_program(
        parse_program("SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Have(P), Field(P,'Group',_,'g143').")
    )
    assert other.id == "R.WlXY2_E5_swzXiV2xo~ArmqQAnJuK8tfLH1vPh1Dlhp"
    assert len(emitted.id) == 45


@pytest.mark.clause("030-RID-05", "030-RID-06", "030-RID-07")
def test_rule_identifiers_match_the_vectors() -> None:
    line = "SelectHave(P) :- Have(P)."
    assert rule_id(line) == "U.~5QSJ1rpuUpjwMISHdt6Bv5PfVYi~oF~NwY5lUWsc5C"
    assert rule_id(parse_program(line).rules[0]) == rule_id(line)
    assert rule_id("SelectAdvertised(P,S) :- Advertised(P,S).") == "U.AxB1eh_AA1vva17Jq0iibg7dr5WfXKY6G6C5XGg9448"
    assert rule_id(line).digest == blake3(b"lace-rule/v1" + line.encode()).digest()
    assert rule_id(line + "\n") != rule_id(line)


@pytest.mark.clause("030-RID-02", "030-RID-03", "030-RID-04")
def test_identifiers_of_different_kinds_do_not_mix() -> None:
    identifier = lacegram_id(MODULE.encode())
    for other in (RecordHash, ExchangePlanId, RuleId):
        with pytest.raises(InvalidText):
            other.parse(identifier)
    with pytest.raises(InvalidText):
        LacegramId.parse("E." + identifier[2:])
    assert LacegramId.parse(identifier) == identifier
    assert identifier == "R." + b64a.encode(blake3(MODULE.encode()).digest())


NOT_CANONICAL = [
    pytest.param(MODULE + "\n", marks=mark.clause("030-CANON-03")),
    pytest.param("\n" + MODULE, marks=mark.clause("030-CANON-05")),
    pytest.param(MODULE.replace("\n", "\n\n"), marks=mark.clause("030-CANON-05")),
    pytest.param(MODULE.replace("\n", "\r\n"), marks=mark.clause("030-CANON-02")),
    pytest.param("# why\n" + MODULE, marks=mark.clause("030-CANON-04", "030-ANN-11")),
    pytest.param('#:json {"label":"x"}\n' + MODULE, marks=mark.clause("030-CANON-04", "030-ANN-11")),
    pytest.param(" A(X) :- B(X).", marks=mark.clause("030-CANON-05")),
    pytest.param("A(X) :- B(X). ", marks=mark.clause("030-CANON-05")),
    pytest.param("A(X) :- B(X),\tC(X).", marks=mark.clause("030-CANON-05", "030-CANON-07")),
    pytest.param("A(X):- B(X).", marks=mark.clause("030-CANON-06")),
    pytest.param("A(X) :-B(X).", marks=mark.clause("030-CANON-06")),
    pytest.param("A(X)  :- B(X).", marks=mark.clause("030-CANON-06")),
    pytest.param("A(X) :- B(X),C(X).", marks=mark.clause("030-CANON-07")),
    pytest.param("A(X) :- B(X) , C(X).", marks=mark.clause("030-CANON-07")),
    pytest.param("A(X) :- B(X, 'a').", marks=mark.clause("030-CANON-08")),
    pytest.param("A(X) :- B( X).", marks=mark.clause("030-CANON-08")),
    pytest.param("A(X) :- B(X ).", marks=mark.clause("030-CANON-08")),
    pytest.param("A (X) :- B(X).", marks=mark.clause("030-CANON-08")),
    pytest.param("A(X) :- B(X) .", marks=mark.clause("030-CANON-08")),
    pytest.param("A() :- not  B().", marks=mark.clause("030-CANON-09")),
    pytest.param("A(X) :- B(X), X!='a'.", marks=mark.clause("030-CANON-09")),
    pytest.param("A(X) :- B(X), X !='a'.", marks=mark.clause("030-CANON-09")),
    pytest.param("A(X) :- B(X), Cardinality(C(X), '<','1').", marks=mark.clause("030-CANON-08")),
    pytest.param("A('\\n') :- true.", marks=mark.clause("030-CANON-10")),
    pytest.param("A(X) :- B(X), X = 'a'.", marks=mark.clause("030-EQ-02", "030-EQ-04")),
    pytest.param("A('e\u0301') :- true.", marks=mark.clause("030-CANON-02", "030-SYN-01")),
]


@pytest.mark.clause("030-CANON-01")
@pytest.mark.parametrize("text", NOT_CANONICAL)
def test_text_in_another_spelling_is_refused_on_receipt(text: str) -> None:
    assert not is_canonical(text)
    assert not is_canonical(text.encode())
    with pytest.raises(InvalidLacegram):
        Lacegram.parse_canonical(text.encode(), profile=RAW_PROFILE)


@pytest.mark.clause("030-SYN-01", "030-CANON-02", "030-VAL-01")
def test_bytes_that_are_not_utf8_are_refused() -> None:
    data = b"A('\xff') :- true."
    assert not is_canonical(data)
    with pytest.raises(InvalidLacegram, match="UTF-8"):
        Lacegram.parse_canonical(data)


CANONICAL = [
    pytest.param("", marks=mark.clause("030-SYN-26")),
    pytest.param(IN_TRACE_ORDER, marks=mark.clause("030-CANON-11")),
    pytest.param(MODULE + "\n" + MODULE, marks=mark.clause("030-CANON-11")),
    pytest.param("A(Zed) :- C(Zed), B(Zed).", marks=mark.clause("030-CANON-12")),
    pytest.param("A('\\\\\\'\té\\'') :- true.", marks=mark.clause("030-CANON-10")),
]


@pytest.mark.clause("030-CANON-01")
@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_text_is_accepted_as_it_stands(text: str) -> None:
    assert is_canonical(text)
    assert is_canonical(text.encode())
    assert Lacegram.parse_canonical(text.encode()).text == text


@pytest.mark.clause("030-CANON-14")
@pytest.mark.parametrize("text", ["A(X) :- true.", "Have('a') :- true.", "A(X) :- B(X), not A(X)."])
def test_a_canonical_spelling_is_no_lacegram_unless_the_program_is_valid(text: str) -> None:
    assert is_canonical(text)
    for door in (lambda: Lacegram.parse_canonical(text.encode()), lambda: Lacegram.from_program(parse_program(text))):
        with pytest.raises(InvalidLacegram) as refused:
            door()
        assert refused.value.line == 1


@pytest.mark.clause("030-EQ-08", "030-CANON-12")
def test_nothing_inside_a_rule_is_renamed_or_reordered() -> None:
    texts = ["A(X) :- B(X), X != 'a'.", "A(X) :- B(X), 'a' != X.", "A(Y) :- B(Y), Y != 'a'.", "A(X) :- X != 'a', B(X)."]
    assert [canonical_text(parse_program(text)) for text in texts] == texts
    assert len({Lacegram.from_program(parse_program(text)).id for text in texts}) == 4


LINES = [
    "A(X) :- B(X).",
    "A(é) :- B(X).".replace("é", "X1"),
    "Z('é') :- true.",
    "Z('z') :- true.",
    "a() :- b().",
    "A() :- B().",
]


@pytest.mark.clause("030-CANON-11", "030-CANON-13")
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_emitted_text_is_sorted_by_bytes_without_repeats_and_stable(lines: list[str], rng: random.Random) -> None:
    messy = "\n".join(
        line.replace(" :- ", rng.choice([":-", "  :-\t", " :- "])) + rng.choice(["", " "]) for line in lines
    )
    text = canonical_text(parse_program(messy))
    assert text.encode().split(b"\n") == sorted({line.encode() for line in lines})
    assert is_canonical(text)
    assert canonical_text(parse_program(text)) == text
    assert format_program(parse_program(text)) == text
