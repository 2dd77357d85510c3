"""Joins that make more rows than a batch takes: in how many parts they are made changes nothing."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import random_facts, random_program
from lace.datalog.engine import answering, evaluate
from lace.datalog.engine.base import Base, RowSource
from lace.datalog.engine.evaluate import Evaluation
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.datalog.meter import Meter
from lace.limits import EngineLimits
from lace.thresholds import EngineThresholds

EDGE = Predicate("Edge", 2)


@pytest.mark.parametrize("most", [1, 2, 3, 7])
@pytest.mark.parametrize(
    "text",
    ["Out(X,Z) :- Edge(X,Y), Edge(Y,Z).", "Out(X,Y) :- Edge(X,_), Edge(_,Y).", "Out(X,Y) :- Edge(X,Y), Edge(Y,X)."],
)
def test_a_join_in_parts_gives_the_rows_of_one_piece(most: int, text: str) -> None:
    program = check_program(parse_program(text), RAW_PROFILE)
    facts = [Fact(EDGE, (str(n), str(n * k % 6))) for n in range(9) for k in (1, 2, 5)]
    expected = evaluate(program, facts).rows(Predicate("Out", 2))
    found = evaluate(program, facts, thresholds=EngineThresholds(batch_rows=most))
    assert found.rows(Predicate("Out", 2)) == expected
    assert len(expected) > 7


@given(st.integers(0, 2**32), st.integers(1, 9))
def test_programs_in_small_batches_derive_the_same(seed: int, most: int) -> None:
    random = Random(seed)
    program, facts = check_program(random_program(random), RAW_PROFILE), random_facts(random)
    whole = evaluate(program, facts)
    parts = evaluate(program, facts, thresholds=EngineThresholds(batch_rows=most))
    for predicate in program.derived:
        assert parts.rows(predicate) == whole.rows(predicate)


def test_what_two_programs_derive_by_the_same_rules_is_taken_over() -> None:
    """Each stratum rests on the one below it, so all of them are the same or none above the first that is not."""
    text = "A(X) :- Edge(X,_).\nB(X) :- Node(X), not A(X).\nC(X) :- Node(X), not B(X)."
    facts = [Fact(EDGE, ("a", "b")), Fact(Predicate("Node", 1), ("b",))]
    evaluation = Evaluation(
        check_program(parse_program(text), RAW_PROFILE),
        Base(facts, EngineLimits()),
        RowSource(()),
        Meter(EngineLimits()),
    )
    evaluation.run()
    for changed, shared in [("", "ABC"), ("C(X) :- A(X).", "AB"), ("B(X) :- Edge(X,_).", "A"), ("A('x') :- true.", "")]:
        other = check_program(parse_program(f"{text}\n{changed}"), RAW_PROFILE)
        alike = answering.derived_alike(evaluation, other, other.derived)
        assert {predicate.name for predicate in alike} == set(shared), changed
        assert answering.derived_alike(evaluation, other, frozenset()) == {}


def test_a_stratum_that_is_given_is_not_derived_again() -> None:
    program = check_program(parse_program("A(X) :- Edge(X,_)."), RAW_PROFILE)
    base = Base([Fact(EDGE, ("a", "b"))], EngineLimits())
    first = Evaluation(program, base, RowSource(()), Meter(EngineLimits()))
    first.run()
    assert first.meter.rows > 0
    again = Evaluation(program, base, RowSource(()), Meter(EngineLimits()), dict(first.completed))
    again.run()
    assert again.meter.rows == 0
    assert again.completed.keys() == {Predicate("A", 1)}


def test_rows_in_memory_are_found_by_any_of_their_values() -> None:
    source = RowSource([Fact(EDGE, pair) for pair in [("a", "b"), ("a", "c"), ("d", "b"), ("a", "b")]])
    assert list(source.query(EDGE)) == [("a", "b"), ("a", "c"), ("d", "b")]
    assert list(source.query(EDGE, "a")) == list(source.query(EDGE, "a", None)) == [("a", "b"), ("a", "c")]
    assert list(source.query(EDGE, None, "b")) == [("a", "b"), ("d", "b")]
    assert list(source.query(EDGE, "d", "c")) == []
    assert (source.count(EDGE), source.at_most(EDGE)) == (3, 4)
