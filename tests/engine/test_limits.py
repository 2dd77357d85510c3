"""Limits: exactly reached is allowed, passed is an error, the same one whatever the order (030, limits)."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.programs import random_facts, random_program
from executors import reference
from lace.datalog.engine import evaluate
from lace.datalog.language.formatting import format_literal
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate, Program
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.errors import LaceError, LimitExceeded
from lace.limits import EngineLimits
from tries import tries

EDGE, NODE = Predicate("Edge", 2), Predicate("Node", 1)
CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def chain(length: int) -> list[Fact]:
    return [Fact(EDGE, (str(n), str(n + 1))) for n in range(length)]


@pytest.mark.clause("030-LIM-09", "030-LIM-11", "030-LIM-10", "030-LIM-01")
@pytest.mark.parametrize(
    "limit, enough",
    [("max_derived_facts_per_predicate", 10), ("max_stratum_iterations", 4), ("max_base_facts", 4)],
)
def test_a_limit_may_be_reached_and_not_passed(limit: str, enough: int) -> None:
    program = checked(CLOSURE)
    assert evaluate(program, chain(4), limits=EngineLimits(**{limit: enough})).count(Predicate("Path", 2)) == 10
    with pytest.raises(LimitExceeded) as error:
        evaluate(program, chain(4), limits=EngineLimits(**{limit: enough - 1}))
    assert (error.value.limit, error.value.allowed) == (limit, enough - 1)


@pytest.mark.clause("030-LIM-06", "030-EVAL-05")
def test_a_chain_of_a_thousand_productive_rounds_succeeds() -> None:
    program = checked("Reach(Y) :- Edge('0',Y).\nReach(Y) :- Reach(X), Edge(X,Y).")
    result = evaluate(program, chain(1000), limits=EngineLimits(max_stratum_iterations=1000))
    assert result.count(Predicate("Reach", 1)) == 1000


@pytest.mark.clause("030-LIM-02", "030-LIM-04", "030-EVAL-08")
@pytest.mark.long
def test_a_million_base_facts_and_a_quarter_million_derived_ones_are_within_the_defaults() -> None:
    facts = [Fact(NODE, (str(n),)) for n in range(2**20)]
    result = evaluate(checked("Other(X) :- Node(X), X != '7'."), facts)
    assert result.count(Predicate("Other", 1)) == 2**20 - 1 >= 2**18


@pytest.mark.clause("030-LIM-07", "030-LIM-08", "030-VAL-03")
def test_eight_places_and_values_of_1024_bytes_work_and_more_are_refused() -> None:
    wide = Predicate("Wide", 8)
    values = (*"abcdefg", "é" * 512)
    program = checked("Out(A,B,C,D,E,F,G,H) :- Wide(A,B,C,D,E,F,G,H).")
    assert evaluate(program, [Fact(wide, values)]).rows(Predicate("Out", 8)) == [values]
    with pytest.raises(LimitExceeded):
        evaluate(program, [Fact(wide, (*"abcdefg", "é" * 512 + "x"))])


@pytest.mark.clause("030-VAL-01", "030-VAL-02")
@pytest.mark.parametrize("value", ["\ud800", "e\u0301"])
def test_values_that_are_not_utf8_nfc_are_refused(value: str) -> None:
    with pytest.raises(LaceError):
        evaluate(checked("Out(X) :- Node(X)."), [Fact(NODE, (value,))])


HOSTILE = "Boom(A,H) :- Node(A), Node(B), Node(C), Node(D), Node(E), Node(F), Node(G), Node(H), A != B."


def test_a_hostile_cross_product_stops_before_memory_is_gone() -> None:
    facts = [Fact(NODE, (str(n),)) for n in range(3000)]
    with pytest.raises(LimitExceeded) as error:
        evaluate(checked(HOSTILE), facts, limits=EngineLimits(max_working_rows=10_000_000))
    assert error.value.limit == "max_working_rows"


@pytest.mark.clause("030-EVAL-07")
@given(st.integers(0, 2**32))
@example(784307)  # two rules of one head, told apart only by where their atoms stand
@tries(80)
def test_the_same_limit_is_hit_whatever_the_order(seed: int) -> None:
    random = Random(seed)
    program, facts = random_program(random), random_facts(random)
    limits = EngineLimits(
        max_derived_facts_per_predicate=random.choice((1, 2, 5, 1000)),
        max_stratum_iterations=random.choice((1, 2, 1000)),
        max_working_rows=random.choice((2, 10, 1000)),
    )
    rules = [type(r)(r.head, tuple(random.sample(r.body, len(r.body)))) for r in program.rules]
    shuffled = Program(tuple(random.sample(rules, len(rules))))
    assert outcome(shuffled, random.sample(facts, len(facts)), limits) == outcome(program, facts, limits)


def outcome(program: Program, facts: list[Fact], limits: EngineLimits) -> object:
    done = check_program(program, RAW_PROFILE)
    try:
        result = evaluate(done, facts, limits=limits)
    except LimitExceeded as error:
        (rule,) = parse_program(error.rule).rules  # as written: so only the order of its atoms may differ
        return error.limit, error.allowed, error.detail, rule.head, sorted(map(format_literal, rule.body))
    found = {predicate: set(result.rows(predicate)) for predicate in result.derived}
    assert found == reference.evaluate(done, facts)  # 030-LIM-12: never another result
    return found
