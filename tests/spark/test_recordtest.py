"""What rules ask of one record, asked of its row: the same answer as the reference gives over all facts."""

from __future__ import annotations

from functools import partial

import pytest
from pyspark.sql import SparkSession

from lace.datalog import engine
from lace.datalog.language.annotations import read_annotated
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import LOCAL_PROFILE, CheckedProgram, check_program
from lace.facts.derive import derive_facts
from lace.limits import EngineLimits
from lace.records.model import ValidRecord
from lace.spark.archive.peer_records import RecordTest, record_test
from lace.thresholds import ArchiveThresholds
from spark.archives import make_records
from spark.test_additive import ADD_UP, ADD_UP_AND_SHOW, DO_NOT, GOAL, HAVE_GOAL
from spark.test_executor import wide

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

LIMITS = EngineLimits()
RECORDS = make_records(60, seed=8)
MODE, NEAR = Predicate("Mode", 1), Predicate("Near", 2)
GIVEN = [Fact(MODE, ("open",)), Fact(NEAR, ("u", "a")), Fact(NEAR, ("keys", "é"))]

COUNTED = "Cardinality(Tag"  # what several rules derive is not told by a row
EXACT = [
    *(rules for rules in ADD_UP_AND_SHOW if COUNTED not in rules),
    # A record has any number of these; some combination of them must do.
    "Goal(P) :- Have(P), Field(P,'X-Tag',_,T), T != 'a'.",
    "Goal(P) :- Have(P), Field(P,'X-Tag',I,T), Field(P,'X-Tag',J,T), I != J.",
    "Goal(P) :- Have(P), Field(P,'X-Tag',I,T), Field(P,'X-Tag',J,U), I != J, T != U, not Field(P,'App',_,T).",
    "Goal(P) :- Field(P,N,_,V), RecordLink(P,'+Link',_,'evidence',T), V != T, N != 'Type', IntCompare(V,'>','3').",
    "Goal(P) :- Have(P), Field(P,'X-Tag',_,T), Wanted(T).\nWanted('b') :- true.\nWanted(X) :- Near('keys',X).",
    "Goal(P) :- Have(P), Field(P,'X-Tag',_,T), not Wanted(T).\nWanted('b') :- true.\nWanted(X) :- Near('keys',X).",
    "Goal(P) :- Have(P), Field(P,'Group',_,G), Near(G,_).",
    "Goal(P) :- Have(P), Mode('open'), not Mode('shut').",
    "Goal(P) :- Have(P), Mode('shut').",
    "Goal(P) :- Have(P), not Near('u','a').",
    HAVE_GOAL + "Chosen(P) :- Tagged(P), not Hidden(P).\nTagged(P) :- Field(P,'X-Tag',_,_).\n"
    "Tagged(P) :- Field(P,'Type',_,'B').\nHidden(P) :- Field(P,'X-Tag',_,'a').\nHidden(P) :- Tagged(P), BlobHash(P,_).",
]
LOOSE = [
    *DO_NOT[1:5],
    "Goal(P) :- Have(P), Field(P,'App',_,'ding'), Field(P,'Name',_,N), not Noted(N).\nNoted(N) :- Field(_,'Name',_,N), "
    "Field(_,'App',_,N).",
    "Goal(P) :- Have(P), Field(P,'App',_,'ding'), not Bare(P).\nBare(P) :- Have(P), not Linked(P).\n"
    "Linked(T) :- RecordLink(_,_,_,_,T).",
    *(rules for rules in ADD_UP_AND_SHOW if COUNTED in rules),
    "Goal(P) :- Have(P), Field(P,'Group',_,G), Field(P,'X-Tag',_,T), Near(G,T).",
    "Goal(P) :- Field(P,'App',_,'ding'), Field(P,'X-Tag',_,_).\n"
    "Goal(P) :- Field(P,'App',_,'member'), RecordLink(_,_,_,_,P).",
]  # fmt: skip
NOTHING = [
    *ADD_UP,
    "Goal(P) :- Reached(P).\nReached(P) :- Field(P,'App',_,'ding').\nReached(T) :- Reached(P), RecordLink(P,_,_,_,T).",
    "Goal(P) :- Field(P,'App',_,'ding').\nGoal(T) :- RecordLink(_,_,_,_,T).",
    "Goal(P) :- Near(P,_).",
    "Goal('u') :- Field(_,'App',_,'ding').",
]


def program(rules: str) -> CheckedProgram:
    return check_program(read_annotated(rules, name="t").program, LOCAL_PROFILE, LIMITS)


def asked(rules: str, most_tests: int = ArchiveThresholds().row_tests) -> RecordTest | None:
    return record_test(program(rules).program, GOAL, GIVEN, LIMITS, most_tests)


def answer(rules: str, records: list[ValidRecord]) -> set[str]:
    facts = {fact for valid in records for fact in derive_facts(valid)} | set(GIVEN)
    return {row[0] for row in engine.evaluate(program(rules), facts).rows(GOAL)}


def rows(spark: SparkSession, test: RecordTest) -> set[str]:
    """The records that pass; of no row may it be unknown whether it does."""
    found = wide(spark, RECORDS).select("hash", test.holds.alias("holds")).collect()
    assert all(row["holds"] in (True, False) for row in found)
    return {row["hash"] for row in found if row["holds"]}


@pytest.mark.parametrize("rules", EXACT)
def test_a_row_tells_whether_rules_of_one_record_choose_it(spark: SparkSession, rules: str) -> None:
    test = asked(rules)
    assert test is not None
    assert test.is_exact
    assert rows(spark, test) == answer(rules, RECORDS)


@pytest.mark.parametrize("rules", LOOSE)
def test_a_row_that_fails_is_not_chosen_whatever_else_there_is(spark: SparkSession, rules: str) -> None:
    test = asked(rules)
    assert test is not None
    assert not test.is_exact
    assert rows(spark, test) >= answer(rules, RECORDS)


@pytest.mark.parametrize("rules", NOTHING)
def test_where_a_row_tells_nothing_there_is_no_test(rules: str) -> None:
    assert asked(rules) is None


def test_the_examples_tell_records_apart() -> None:
    """An answer of all records or of none would be found by a test that asks nothing."""
    found = {rules: len(answer(rules, RECORDS)) for rules in EXACT}
    assert sum(0 < count < len(RECORDS) for count in found.values()) >= len(EXACT) - 4


def test_a_test_that_would_be_too_long_is_not_made() -> None:
    many = "".join(f"Goal(P) :- Field(P,'App',_,'{number}').\n" for number in range(5))
    wanted = "".join(f"Wanted('{number}') :- true.\n" for number in range(5))
    members = "Goal(P) :- Have(P), Field(P,'App',_,A), Wanted(A).\n" + wanted
    # Each doubles what the one before it asks.
    nested = "Goal(P) :- A2(P), not B2(P).\nA0(P) :- Have(P).\nB0(P) :- Field(P,'App',_,'ding').\n" + "".join(
        f"A{n}(P) :- A{n - 1}(P), B{n - 1}(P).\nA{n}(P) :- B{n - 1}(P).\n"
        f"B{n}(P) :- A{n - 1}(P).\nB{n}(P) :- B{n - 1}(P).\n"
        for n in (1, 2)
    )
    tests = [asked(rules) for rules in (many, members, nested)]
    assert [test is not None and test.is_exact for test in tests] == [True, True, True]
    short = partial(asked, most_tests=4)
    assert short(many) is None
    assert short(nested) is None
    loosely = short(members)
    assert loosely is not None
    assert not loosely.is_exact
