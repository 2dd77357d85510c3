"""The embedded engine against the naive evaluator."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.programs import random_facts, random_program
from lace.datalog import reference
from lace.datalog.engine import evaluate
from lace.datalog.syntax import Fact, Predicate, Program
from lace.datalog.validate import RAW_PROFILE, check_program

seeds = st.integers(0, 2**32)


def derived(program: Program, facts: list[Fact]) -> dict[Predicate, set[tuple[str, ...]]]:
    done = check_program(program, RAW_PROFILE)
    result = evaluate(done, facts)
    return {predicate: set(result.rows(predicate)) for predicate in result.derived}


@pytest.mark.clause("030-EVAL-01", "030-EVAL-03", "030-EVAL-04", "030-EVAL-06")
@given(seeds)
@settings(max_examples=300, deadline=None)
def test_every_program_gives_the_facts_of_naive_evaluation(seed: int) -> None:
    random = Random(seed)
    program, facts = random_program(random), random_facts(random)
    expected = reference.evaluate(check_program(program, RAW_PROFILE), facts)
    assert derived(program, facts) == expected


@pytest.mark.clause("030-EVAL-07", "030-EVAL-02")
@given(seeds)
@settings(max_examples=60, deadline=None)
def test_the_order_of_rules_atoms_and_facts_changes_nothing(seed: int) -> None:
    random = Random(seed)
    program, facts = random_program(random), random_facts(random)
    rules = [type(r)(r.head, tuple(random.sample(r.body, len(r.body)))) for r in program.rules]
    shuffled = Program(tuple(random.sample(rules, len(rules))))
    assert derived(shuffled, random.sample(facts, len(facts))) == derived(program, facts)
