"""What is said to add up adds up: over any split into batches, and when records go."""

from __future__ import annotations

import random

import pytest

from lace.datalog import engine
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, check_program
from lace.facts.derive import derive_facts
from lace.limits import EngineLimits
from lace.records.model import ValidRecord
from lace.spark.archive.additive import additivity
from spark.archives import make_records

GOAL = Predicate("Goal", 1)
HAVE_GOAL = "Goal(P) :- Have(P), Chosen(P).\n"

ADD_UP_AND_SHOW = [
    "Goal(P) :- Have(P).",
    "Goal(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,A), A != 'ding'.",
    "Goal(P) :- Have(P), Field(P,'Group',_,'u'), not Field(P,'X-Tag','0','a').",
    "Goal(P) :- Have(P), Cardinality(Field(P,'X-Tag',_,_),'>','1').",
    HAVE_GOAL + "Chosen(P) :- Field(P,'Group',_,'u').\nChosen(P) :- Field(P,'App',_,'member').",
    HAVE_GOAL + "Chosen(P) :- Have(P), not Hidden(P).\nHidden(P) :- Field(P,'App',_,'ding').\n"
    "Hidden(P) :- Field(P,'Group',_,'keys').",
    "Goal(P) :- Have(P), Cardinality(Tag(P,_),'<','2').\nTag(P,V) :- Field(P,'X-Tag',_,V).\n"
    "Tag(P,V) :- Field(P,'App',_,V).",
    "Goal(P) :- Have(P), Field(P,'App',_,A), Wanted(A).\nWanted('ding') :- true.\nWanted('member') :- true.",
    "Goal(P) :- Have(P), Field(P,'App',_,A), not Wanted(A).\nWanted('ding') :- true.",
]
ADD_UP = [
    "Goal(A) :- Field(_,'App',_,A).",
    "Goal(T) :- RecordLink(_,_,_,_,T).",
    "Goal(G) :- Seen(G).\nSeen(G) :- Field(_,'Group',_,G).\nSeen(H) :- Seen(G), Next(G,H).\n"
    "Next('u','v') :- true.\nNext('v','w') :- true.",
]
DO_NOT = [
    HAVE_GOAL + "Chosen(T) :- RecordLink(_,_,_,_,T).\nChosen(P) :- Field(P,'App',_,'ding').",
    "Goal(P) :- Have(P), Tag(P,V), Tag(Q,V), Have(Q).\nTag(P,V) :- Field(P,'X-Tag',_,V).\n"
    "Tag(P,V) :- Field(P,'App',_,V).",
    "Goal(P) :- Have(P), Field(P,'App',_,A), Field(Q,'Name',_,A).",
    "Goal(P) :- Have(P), not Linked(P).\nLinked(T) :- RecordLink(_,_,_,_,T).",
    "Goal(P) :- Have(P), Field(P,'Group',_,G), Cardinality(Field(_,'Group',_,G),'<','9').",
    "Goal(P) :- Reached(P).\nReached(P) :- Field(P,'App',_,'ding').\nReached(T) :- Reached(P), RecordLink(P,_,_,_,T).",
]


def answer(rules: str, records: list[ValidRecord]) -> set[str]:
    checked = check_program(read_annotated(rules, name="t").program, LOCAL_PROFILE, EngineLimits())
    facts: set[Fact] = {fact for valid in records for fact in derive_facts(valid)}
    return {row[0] for row in engine.evaluate(checked, facts).rows(GOAL)}


def found(rules: str) -> tuple[bool, bool]:
    checked = check_program(read_annotated(rules, name="t").program, LOCAL_PROFILE, EngineLimits())
    return tuple(additivity(checked.program, GOAL))  # type: ignore[return-value]


@pytest.mark.parametrize("rules", [*ADD_UP_AND_SHOW, *ADD_UP])
def test_batches_evaluated_one_by_one_give_the_whole(rules: str) -> None:
    assert found(rules)[0]
    records = make_records(60, seed=4)
    rng = random.Random(5)
    for _ in range(5):
        batch_of = [rng.randrange(4) for _ in records]
        parts = [[valid for valid, at in zip(records, batch_of, strict=True) if at == b] for b in range(4)]
        assert set().union(*(answer(rules, part) for part in parts)) == answer(rules, records)


@pytest.mark.parametrize("rules", ADD_UP_AND_SHOW)
def test_a_record_that_goes_takes_its_own_row_along(rules: str) -> None:
    assert found(rules) == (True, True)
    records = make_records(60, seed=6)
    kept, gone = records[:40], {str(valid.hash) for valid in records[40:]}
    assert answer(rules, kept) == answer(rules, records) - gone


@pytest.mark.parametrize("rules", ADD_UP)
def test_a_goal_that_does_not_show_its_record_is_not_subtracted_from(rules: str) -> None:
    assert found(rules) == (True, False)


@pytest.mark.parametrize("rules", DO_NOT)
def test_rules_that_look_at_two_records_do_not_add_up(rules: str) -> None:
    assert not found(rules)[0]
