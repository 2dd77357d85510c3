"""Goals with bound places: the same answers, less work."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import BASE, LEVELS, VALUES, random_facts, random_program
from engine.rankings import RANKED, rank_fact
from executors import reference
from lace.datalog.engine import answering, evaluate
from lace.datalog.engine.base import Base, RowSource
from lace.datalog.language.parser import parse_atom, parse_program
from lace.datalog.language.syntax import ANONYMOUS, Atom, Constant, Fact, Predicate, Term, Variable
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.meter import Meter
from lace.datalog.planning.demand import demand
from lace.errors import LaceError, LimitExceeded
from lace.limits import EngineLimits
from lace.thresholds import EngineThresholds
from tries import tries

seeds = st.integers(0, 2**32)


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def random_goal(random: Random) -> Atom:
    predicate = random.choice([p for level in LEVELS for p in level] + list(BASE))
    choices: list[Term] = [ANONYMOUS, Variable("X"), *map(Constant, VALUES[:4])]
    return Atom(predicate, tuple(random.choice(choices) for _ in range(predicate.arity)))


@pytest.mark.clause("030-EVAL-04")
@given(seeds)
@tries(200)
def test_goals_get_exactly_the_facts_of_full_evaluation_that_match(seed: int) -> None:
    random = Random(seed)
    program, facts = check_program(random_program(random), RAW_PROFILE), random_facts(random)
    goals = [random_goal(random) for _ in range(random.randint(1, 3))]
    expected = reference.evaluate(program, facts)
    for predicate in BASE:
        expected[predicate] = {fact.values for fact in facts if fact.predicate == predicate}
    result = evaluate(program, facts, goals=goals)
    for predicate in {goal.predicate for goal in goals}:
        matching = [goal for goal in goals if goal.predicate == predicate]
        rows = {
            row for row in expected.get(predicate, ()) if any(reference.match(g, row, {}) is not None for g in matching)
        }
        assert set(result.rows(predicate)) == rows


@pytest.mark.parametrize("text", RANKED.values(), ids=RANKED.keys())
@pytest.mark.parametrize("seed", range(4))
def test_a_goal_over_ranks_is_answered(text: str, seed: int) -> None:
    random = Random(seed)
    facts = [rank_fact(random) for _ in range(15)]
    goal = Atom(Predicate("Top", 1), (Constant("a"),))
    expected = reference.evaluate(checked(text), facts, goals=[goal])
    assert set(evaluate(checked(text), facts, goals=[goal]).rows(goal.predicate)) == expected[goal.predicate]


GENERATIONS = "Same(X,Y) :- Up(X,Z), Up(Y,Z).\nSame(X,Y) :- Up(X,A), Same(A,B), Up(Y,B)."


def tree(depth: int) -> list[Fact]:
    up, level, facts = Predicate("Up", 2), ["r"], []
    for _ in range(depth):
        facts += [Fact(up, (node + side, node)) for node in level for side in "01"]
        level = [node + side for node in level for side in "01"]
    return facts


def test_same_generation_of_one_node_touches_only_its_part() -> None:
    facts = tree(9)
    goal = parse_atom("Same('r0000',Y)")
    whole = evaluate(checked(GENERATIONS), facts)
    part = evaluate(checked(GENERATIONS), facts, goals=[goal])
    assert part.count(goal.predicate) == 16
    touched = sum(part.stats.of(plan.root.input).rows for plan in part.stats.plans)
    assert touched < 200 < whole.count(goal.predicate) / 100


def test_what_was_not_asked_for_is_not_answered_as_if_it_were_empty() -> None:
    result = evaluate(checked(GENERATIONS), tree(2), goals=[parse_atom("Same('r0',Y)")])
    with pytest.raises(LaceError):
        result.rows(Predicate("Up", 2))


def test_negation_inside_a_recursion_is_still_answered() -> None:
    text = """Reach(X,Y) :- Edge(X,Y), not Bad(X,Y).
Reach(X,Y) :- Reach(X,Z), Edge(Z,Y), not Bad(X,Y).
Bad(X,Y) :- Edge(X,Y), Odd(Y).
Bad(X,Y) :- Bad(X,Z), Edge(Z,Y), Odd(Y).
Odd(Y) :- Edge(Y,Z), Edge(Z,_), not Edge(Z,Y)."""
    edges = [Fact(BASE[0], (a, b)) for a, b in ("ab", "bc", "cb", "bd", "de", "ea", "ef", "fe")]
    program, goal = checked(text), parse_atom("Reach('a',Y)")
    expected = reference.evaluate(program, edges, goals=[goal])
    assert set(evaluate(program, edges, goals=[goal]).rows(goal.predicate)) == expected[goal.predicate]


def work(program: CheckedProgram, facts: list[Fact], goals: list[Atom] | None = None) -> int:
    meter = Meter(EngineLimits())
    evaluate(program, facts, goals=goals, meter=meter)
    return meter.rows


@pytest.mark.clause("030-EVAL-04")
@given(seeds)
@tries(100)
def test_demand_that_is_raced_against_full_evaluation_answers_the_same(seed: int) -> None:
    random = Random(seed)
    program, facts = check_program(random_program(random), RAW_PROFILE), random_facts(random)
    goal = random_goal(random)
    expected = evaluate(program, facts, goals=[goal]).rows(goal.predicate)
    ways = EngineThresholds(
        head_start_rows=random.choice([0, 600, 2_000]), demand_share=random.choice([0.0001, 0.25, 10])
    )
    meter = Meter(EngineLimits())
    assert evaluate(program, facts, goals=[goal], meter=meter, thresholds=ways).rows(goal.predicate) == expected
    assert meter.held_bytes >= 0  # the attempt that lost the race gives back what it held, and no more


CHAIN = "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Edge(X,Y), Path(Y,Z)."


def chain(length: int) -> list[Fact]:
    return [Fact(Predicate("Edge", 2), (f"{n:05}", f"{n + 1:05}")) for n in range(length)]


@pytest.mark.parametrize("goal", ["Path('00000',Y)", "Path(X,'00700')", "Path(X,Y)", "Path(X,X)", "Path(_,_)"])
def test_a_goal_that_needs_nearly_everything_costs_at_most_1_3_times_no_goal(goal: str) -> None:
    program, facts, atom = checked(CHAIN), chain(700), parse_atom(goal)
    assert work(program, facts, [atom]) <= 1.3 * work(program, facts)


def test_a_predicate_that_is_read_in_full_is_not_derived_in_part_beside() -> None:
    text = CHAIN + "\nAll(X,Y) :- Path(X,Y).\nAll(X,X) :- Path('00000',X)."
    demanded = demand(checked(text), [parse_atom("All(X,Y)")], lambda atom: 700)
    (copy,) = demanded.copies[Predicate("Path", 2)]
    assert copy.asked is None


def test_rules_that_a_goal_does_not_need_are_not_evaluated() -> None:
    text = "Pair(X,Y) :- Edge(X,_), Edge(Y,_).\nPath(X,Y) :- Edge(X,Y)."
    result = evaluate(checked(text), chain(50), goals=[parse_atom("Path(X,Y)")])
    assert result.count(Predicate("Path", 2)) == 50
    assert result.stats.rows_touched < 1_500


def test_a_small_relation_in_a_rule_asks_for_little_even_if_the_goal_is_free() -> None:
    text = CHAIN + "\nReached(Y) :- Start(X), Path(X,Y)."
    facts = [*chain(2_000), Fact(Predicate("Start", 1), ("01990",))]
    result = evaluate(checked(text), facts, goals=[parse_atom("Reached(Y)")])
    assert result.count(Predicate("Reached", 1)) == 10
    assert sum(result.run_of(copy.predicate).rows for copy in result.demanded.copies[Predicate("Path", 2)]) <= 55


def test_a_long_walk_is_not_given_up_for_an_evaluation_that_hits_a_limit() -> None:
    limits = EngineLimits(max_derived_facts_per_predicate=20_000)
    text = "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Path(X,Y), Edge(Y,Z)."
    result = evaluate(checked(text), chain(5_000), goals=[parse_atom("Path('00000',Y)")], limits=limits)
    assert result.count(Predicate("Path", 2)) == 5_000
    with pytest.raises(LimitExceeded):
        evaluate(checked(text), chain(5_000), limits=limits)


def test_many_goals_that_differ_in_constants_are_one_question() -> None:
    goals = [parse_atom(f"Path('{n:05}',Y)") for n in range(0, 60, 3)]
    result = evaluate(checked(CHAIN), chain(60), goals=goals)
    assert result.count(Predicate("Path", 2)) == sum(60 - n for n in range(0, 60, 3))
    assert len(result.stats.plans) < 20


WALKS = {
    "plain": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,Y), Far(Y,Z).",
    "itself": "Far(X,X) :- Edge(X,_).\nFar(X,Z) :- Edge(X,Y), Far(Y,Z).",
    "kept out": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,Y), not Shut(X,Y), Far(Y,Z).\nShut(X,Y) :- Edge(Y,X).",
    "unequal": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,Y), Far(Y,Z), X != Z.",
    "counted": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,Y), Cardinality(Edge(Y,_),'<','3'), Far(Y,Z).",
    "constant": "Far(X,Y) :- Edge(X,Y).\nFar(X,'a') :- Edge(X,Y), Far(Y,'a').\nFar(X,Z) :- Edge(X,Y), Far(Y,Z).",
    "back to one": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,_), Far('a',Z).",
    "two of its own": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Far(X,Y), Far(Y,Z).",
    "turned": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,Y), Far(Z,Y).",
    "both ways": "Far(X,Y) :- Edge(X,Y).\nFar(X,Z) :- Edge(X,Y), Far(Y,Z).\nFar(X,Z) :- Far(X,Y), Edge(Y,Z).",
}


@pytest.mark.clause("030-EVAL-04")
@pytest.mark.parametrize("text", WALKS.values(), ids=WALKS.keys())
@pytest.mark.parametrize("goal", ["Far('a',Y)", "Far(X,'b')", "Far('a','b')", "Far('a',_)", "Far('zz',Y)"])
def test_a_recursion_that_is_walked_answers_as_one_that_is_derived(text: str, goal: str) -> None:
    program, atom = checked(text), parse_atom(goal)
    for seed in range(6):
        random = Random(seed)
        edge = Predicate("Edge", 2)
        facts = [Fact(edge, (random.choice("abcdef"), random.choice("abcdef"))) for _ in range(8)]
        expected = reference.evaluate(program, facts, goals=[atom])[atom.predicate]
        for only_answers in (True, False):
            result = evaluate(program, facts, goals=[atom], only_answers=only_answers)
            assert set(result.rows(atom.predicate)) == expected


def test_a_right_linear_walk_takes_as_long_as_what_it_reaches() -> None:
    walked = work(checked(CHAIN), chain(120), [parse_atom("Path('00060',Y)")])
    left = CHAIN.replace("Edge(X,Y), Path(Y,Z)", "Path(X,Y), Edge(Y,Z)")
    assert walked < 2 * work(checked(left), chain(120), [parse_atom("Path('00060',Y)")])


def test_a_demand_that_meets_a_limit_gives_way_to_an_evaluation_that_does_not() -> None:
    """Which nodes of a chain are asked for are forty facts, though only three are derived in all."""
    text = "Deep(X,Y) :- Edge(X,Y), Mark(Y).\nDeep(X,Y) :- Edge(X,Z), Deep(Z,Y), Odd(Y), not Mark(X)."
    facts = [*chain(40), *(Fact(Predicate("Mark", 1), (f"{n:05}",)) for n in (1, 20, 30))]
    goal, limits = parse_atom("Deep('00000',Y)"), EngineLimits(max_derived_facts_per_predicate=10)
    result = evaluate(checked(text), [*facts, Fact(Predicate("Odd", 1), ("x",))], goals=[goal], limits=limits)
    assert result.rows(goal.predicate) == [("00000", "00001")]


def test_what_a_program_reads_at_least_are_the_base_facts_of_its_atoms_each_once() -> None:
    edges, marks = chain(7), [Fact(Predicate("Mark", 1), ("00003",))]
    base, program = (
        Base(edges, EngineLimits()),
        checked(CHAIN + "\nSeen(X) :- Mark(X), Path('00003',X), Edge('00003',_)."),
    )
    sizes = answering.BaseSizes(base, RowSource(marks))
    assert sizes.rows(parse_atom("Edge(X,Y)")) == 7
    assert sizes.rows(parse_atom("Edge('00003',Y)")) == 1
    assert sizes.rows(parse_atom("Edge('nowhere',Y)")) == 0
    assert sizes.read_by(program) == 7 + 1 + 1  # Edge(X,Y), Edge('00003',_), Mark(X)
