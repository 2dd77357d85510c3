"""Which rules look at one record at a time, by their texts."""

from __future__ import annotations

import pytest

from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Predicate
from lace.policy.recordwise import looks_at_one_record

GOALS = [Predicate("Goal", 1)]

ONE = {
    "a fact": "Goal(P) :- Have(P).",
    "joined with itself": "Goal(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,A), A != 'x'.",
    "through helpers": "Goal(P) :- Can('me',P). Can(V,P) :- Allow(V,P). Allow('me',P) :- Have(P), Field(P,'Name',_,N).",
    "negated and counted": "Goal(P) :- Have(P), not Field(P,'Group',_,'v'), Cardinality(Field(P,'Note',I,X),'<','3').",
    "a list of names": "Goal(P) :- Field(P,'Signed-By',_,V), Friend(V). Friend('a') :- true. Friend('b') :- true.",
    "runtime facts": "Goal(P) :- Have(P), Peer(V), Field(P,'Signed-By',_,V).",
    "claims": "Goal(P) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), not Have(P).",
    "recursion on the spot": "Goal(P) :- Have(P). Goal(P) :- Goal(P), Field(P,'App',_,'a').",
}
MORE = {
    "a link to another": "Goal(P) :- Have(P), RecordLink(P,_,_,_,Q), Field(Q,'Group',_,'u').",
    "any record at all": "Goal(P) :- Have(P), Some(). Some() :- Have(_).",
    "a value of another": "Goal(P) :- Have(P), Field(P,'App',_,A), Used(A). Used(A) :- Field(_,'App',_,A).",
    "the newest": "Goal(P) :- Field(P,'TAI',_,T), not Old(T). Old(T) :- Field(P,'TAI',_,T), Field(Q,'TAI',_,U), U!=T.",
    "how many there are": "Goal(P) :- Have(P), Cardinality(Have(Q),'<','100').",
    "none is blocked": "Goal(P) :- Have(P), not Field(_,'Name',_,'blocked').",
    "named by a link": "Goal(Q) :- RecordLink(P,_,_,_,Q).",
    "one that is named": "Goal('P.x') :- Have('P.x').",
    "closure": "Goal(P) :- Reach(P). Reach(P) :- Have(P). Reach(Q) :- Reach(P), RecordLink(P,_,_,_,Q).",
    "one rule of two": "Goal(P) :- Have(P). Goal(P) :- Have(P), Have(Q), Field(Q,'App',_,'a').",
    "claims of another": "Goal(P) :- Advertised(P,S), Advertised(Q,S), AdvertisedField(Q,S,'App',_,'a').",
    "a helper in two places": "Goal(P) :- Pair(P,V), Pair(V,P). Pair(P,V) :- Field(P,'App',_,V).",
}


def lines(rules: str) -> str:
    return rules.replace(". ", ".\n")


@pytest.mark.parametrize("name", ONE)
def test_rules_that_look_at_one_record(name: str) -> None:
    assert looks_at_one_record(parse_program(lines(ONE[name])).rules, GOALS)


@pytest.mark.parametrize("name", MORE)
def test_rules_that_look_at_others_too(name: str) -> None:
    assert not looks_at_one_record(parse_program(lines(MORE[name])).rules, GOALS)


def test_rules_that_the_goals_do_not_need_do_not_count() -> None:
    rules = parse_program(lines(ONE["a fact"] + " Other(P,Q) :- Have(P), Have(Q).")).rules
    assert looks_at_one_record(rules, GOALS)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("Goal(P) :- Have(P).\nMore('a') :- true.", True),  # a goal that no record decides
        ("Goal(P) :- Have(P).", True),  # one that no rule defines
        ("Goal(P) :- Have(P).\nMore(P) :- Have(P), Have(Q).", False),
    ],
)
def test_every_goal_counts(rules: str, expected: bool) -> None:
    assert looks_at_one_record(parse_program(rules).rules, [*GOALS, Predicate("More", 1)]) is expected


@pytest.mark.parametrize(("head", "expected"), [("Pair(P,V)", True), ("Pair(V,P)", False)])
def test_a_goal_names_its_record_first(head: str, expected: bool) -> None:
    rules = parse_program(f"{head} :- Field(P,'App',_,V).").rules
    assert looks_at_one_record(rules, [Predicate("Pair", 2)]) is expected
