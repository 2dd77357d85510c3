"""Goals that bind heads at every subset of places choose exactly their facts from the whole evaluation."""

from __future__ import annotations

from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.proof_checker import Checker
from engine.goals import World, goals_at_every_place, random_world
from executors import reference
from executors.executors import Relations, run_embedded, run_incremental
from executors.solvers import nemo_can_say, run_clingo, run_nemo
from lace.datalog.engine import evaluate
from lace.datalog.explain import Proof
from lace.datalog.language.formatting import format_atom, format_program
from lace.datalog.language.syntax import Atom
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.source import Row
from lace.limits import EngineLimits
from lace.porcelain.explain import Explainer
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds
from tries import tries

LIMITS = EngineLimits()
NIGHTLY_GOALS = 5_500
seeds = st.integers(0, 2**32)


def drawn(seed: int) -> tuple[Random, World, CheckedProgram, Relations]:
    """A world with what the naive evaluator derives in it."""
    random = Random(seed)
    world = random_world(random)
    checked = check_program(world.program, RAW_PROFILE)
    return random, world, checked, reference.evaluate(checked, world.facts)


def matching(rows: set[Row], goals: list[Atom]) -> set[Row]:
    return {row for row in rows if any(reference.match(goal, row, {}) is not None for goal in goals)}


def check_goals_one_by_one(seed: int) -> int:
    """Ask every goal of a world by itself; how many there were."""
    random, world, checked, expected = drawn(seed)
    assert run_embedded(checked, world.facts, LIMITS) == expected, world
    asked = 0
    for predicate, rows in expected.items():
        for goal in goals_at_every_place(random, predicate, rows):
            found = set(evaluate(checked, world.facts, goals=[goal]).rows(predicate))
            assert found == matching(rows, [goal]), (format_atom(goal), world)
            asked += 1
    return asked


@pytest.mark.clause("030-EVAL-04", "030-CARD-12")
@given(seeds)
@tries(150)
def test_a_goal_bound_at_any_places_gets_the_facts_that_match(seed: int) -> None:
    check_goals_one_by_one(seed)


@pytest.mark.slow
def test_thousands_of_goals_bound_at_any_places_get_the_facts_that_match() -> None:
    asked = 0
    for seed in count():
        asked += check_goals_one_by_one(seed)
        if asked >= NIGHTLY_GOALS:
            return


@pytest.mark.clause("030-EVAL-04")
@given(seeds)
@tries(100)
def test_goals_asked_together_get_the_facts_that_match_any_of_them(seed: int) -> None:
    """Of several predicates that share a name too, more of them than are written as rules, and raced."""
    random, world, checked, expected = drawn(seed)
    goals = [
        goal
        for predicate, rows in expected.items()
        for _ in range(random.choice((1, 1, 4)))
        for goal in goals_at_every_place(random, predicate, rows)
    ]
    goals = random.sample(goals, random.randint(1, len(goals)))
    start = random.choice([0, 600, 2_000, *[ENGINE_THRESHOLDS.head_start_rows] * 3])
    ways = EngineThresholds(head_start_rows=start)
    result = evaluate(checked, world.facts, goals=goals, only_answers=random.random() < 0.5, thresholds=ways)
    for predicate in {goal.predicate for goal in goals}:
        wanted = [goal for goal in goals if goal.predicate == predicate]
        assert set(result.rows(predicate)) == matching(expected[predicate], wanted), (
            list(map(format_atom, goals)),
            world,
        )


@pytest.mark.clause("030-CLASS-13", "030-EVAL-04")
@given(seeds)
@tries(60)
def test_every_goal_is_explained_by_a_true_proof_or_a_true_absence(seed: int) -> None:
    random, world, _, expected = drawn(seed)
    checker = Checker(world.program, list(world.facts), expected)
    explainer = Explainer(world.facts, format_program(world.program))
    for predicate, rows in expected.items():
        for goal in goals_at_every_place(random, predicate, rows):
            explanation = explainer.explain(goal)
            assert "?" not in str(explanation), explanation
            if isinstance(explanation.found, Proof):
                assert explanation.found.fact.values == min(matching(rows, [goal]))
                checker.check_proof(explanation.found)
            else:
                assert not matching(rows, [goal])
                checker.check_absence(explanation.found)


@pytest.mark.clause("030-INCR-02")
@given(seeds)
@tries(60)
def test_facts_that_come_and_go_give_what_evaluation_gives(seed: int) -> None:
    _, world, checked, expected = drawn(seed)
    assert run_incremental(checked, world.facts, LIMITS) == expected


@given(seeds)
@tries(40)
def test_other_solvers_derive_the_same(seed: int) -> None:
    _, world, _, expected = drawn(seed)
    assert run_clingo(world.program, world.facts) == expected
    if nemo_can_say(world.program):
        assert run_nemo(world.program, world.facts) == expected
