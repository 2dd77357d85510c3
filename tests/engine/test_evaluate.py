"""The embedded engine against the naive evaluator."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import random_facts, random_program
from engine.rankings import CANDIDATE, EXISTING, GROUPED, NOT_EXISTING, NOT_RANKED, ORDERS, RANKED, rank_fact
from executors import reference
from lace.datalog.engine import evaluate
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate, Program
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.planning.existence import existence_counted
from lace.datalog.planning.ranking import ranked_predicates
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from tries import tries

seeds = st.integers(0, 2**32)


def derived(program: Program, facts: list[Fact]) -> dict[Predicate, set[tuple[str, ...]]]:
    done = check_program(program, RAW_PROFILE)
    result = evaluate(done, facts)
    return {predicate: set(result.rows(predicate)) for predicate in result.derived}


@pytest.mark.clause("030-EVAL-01", "030-EVAL-03", "030-EVAL-04", "030-EVAL-06")
@given(seeds)
@tries(300)
def test_every_program_gives_the_facts_of_naive_evaluation(seed: int) -> None:
    random = Random(seed)
    program, facts = random_program(random), random_facts(random)
    expected = reference.evaluate(check_program(program, RAW_PROFILE), facts)
    assert derived(program, facts) == expected


@pytest.mark.clause("030-EVAL-07", "030-EVAL-02")
@given(seeds)
def test_the_order_of_rules_atoms_and_facts_changes_nothing(seed: int) -> None:
    random = Random(seed)
    program, facts = random_program(random), random_facts(random)
    rules = [type(r)(r.head, tuple(random.sample(r.body, len(r.body)))) for r in program.rules]
    shuffled = Program(tuple(random.sample(rules, len(rules))))
    assert derived(shuffled, random.sample(facts, len(facts))) == derived(program, facts)


def parsed(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


@pytest.mark.clause("030-CARD-12", "030-CARD-01", "030-LIM-12")
@pytest.mark.parametrize("text", ORDERS.values(), ids=ORDERS.keys())
@given(seeds)
@tries(25)
def test_a_rank_is_the_count_of_the_facts_it_stands_for(text: str, seed: int) -> None:
    random = Random(seed)
    facts = [rank_fact(random) for _ in range(random.randint(0, 20))]
    program = parsed(text)
    assert derived(program.program, facts) == reference.evaluate(program, facts)


@pytest.mark.parametrize("text", RANKED.values(), ids=RANKED.keys())
def test_the_idiom_is_recognised(text: str) -> None:
    assert ranked_predicates(parse_program(text))


@pytest.mark.parametrize("text", NOT_RANKED.values(), ids=NOT_RANKED.keys())
def test_what_only_looks_like_the_idiom_is_not(text: str) -> None:
    assert not ranked_predicates(parse_program(text))


@pytest.mark.parametrize("text", EXISTING.values(), ids=EXISTING.keys())
def test_whether_something_stands_beyond_is_asked_of_a_rank(text: str) -> None:
    rewritten = existence_counted(parsed(text))
    assert ranked_predicates(rewritten.program)
    assert existence_counted(rewritten) is rewritten


@pytest.mark.parametrize("text", NOT_EXISTING.values(), ids=NOT_EXISTING.keys())
def test_a_rule_in_which_the_other_row_matters_stays_as_it_is(text: str) -> None:
    program = parsed(text)
    assert existence_counted(program) is program


@pytest.mark.parametrize("name", ["none newer", "newest of each", "with ties", "but not itself", "keys that differ"])
def test_orders_as_people_write_them_touch_rows_and_not_pairs(name: str) -> None:
    groups = [Fact(GROUPED, (f"{n:05}", f"g{n % 7}", f"{n % 4_000:05}")) for n in range(8_000)]
    facts = [*groups, *(Fact(CANDIDATE, (f.values[0], f.values[2])) for f in groups)]
    result = evaluate(parsed(ORDERS[name]), facts)
    assert result.count(Predicate("Top", 1)) > 0
    assert result.stats.rows_touched < 20 * len(facts)


@pytest.mark.clause("030-LIM-04", "030-LIM-12")
def test_a_ranked_predicate_is_not_held_to_the_limit_of_facts_it_never_makes() -> None:
    facts = [Fact(CANDIDATE, (f"{n:03}", f"{n % 50:03}")) for n in range(300)]
    result = evaluate(parsed(RANKED["newest"]), facts, limits=EngineLimits(max_derived_facts_per_predicate=300))
    assert result.rows(Predicate("Top", 1)) == [("249",), ("299",)]
    with pytest.raises(LimitExceeded):
        result.rows(Predicate("Before", 2))
