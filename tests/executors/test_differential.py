"""Random programs: reference, embedded, clingo and nemo derive the same facts; so does every rewriting of a program."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from executors.executors import Relations, run_embedded, run_incremental, run_reference
from executors.programs import Scenario, scenarios
from executors.reference import evaluate
from executors.solvers import nemo_can_say, run_clingo, run_nemo
from lace.datalog import engine
from lace.datalog.language.canonical import canonical_text
from lace.datalog.language.formatting import format_program
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import (
    Anonymous,
    Atom,
    Cardinality,
    Constant,
    Fact,
    Literal,
    Negated,
    Positive,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
)
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from tries import tries

LIMITS = EngineLimits()
FEWER = tries(30)
randoms = st.randoms(use_true_random=False)


def checked(program: Program) -> CheckedProgram:
    return check_program(program, RAW_PROFILE)


def by_reference(scenario: Scenario) -> Relations:
    return run_reference(checked(scenario.program), scenario.facts, LIMITS)


@pytest.mark.clause("030-EVAL-01", "030-EVAL-03", "030-EVAL-04", "030-STRAT-09")
@given(scenarios)
def test_the_embedded_engine_agrees_with_naive_evaluation(scenario: Scenario) -> None:
    assert run_embedded(checked(scenario.program), scenario.facts, LIMITS) == by_reference(scenario)


@pytest.mark.clause("030-INCR-02", "030-INCR-03", "030-INCR-04", "030-INCR-05")
@FEWER
@given(scenarios)
def test_facts_that_come_late_or_come_back_change_nothing(scenario: Scenario) -> None:
    assert run_incremental(checked(scenario.program), scenario.facts, LIMITS) == by_reference(scenario)


@pytest.mark.clause("030-EVAL-01", "030-CARD-01", "030-CARD-03")
@given(scenarios)
def test_clingo_agrees_with_naive_evaluation(scenario: Scenario) -> None:
    assert run_clingo(scenario.program, scenario.facts) == by_reference(scenario)


@pytest.mark.clause("030-EVAL-01", "030-SYN-22", "030-SYN-23")
@FEWER
@given(scenarios)
def test_nemo_agrees_with_naive_evaluation(scenario: Scenario) -> None:
    counted_out = Program(tuple(rule for rule in scenario.program.rules if nemo_can_say(Program((rule,)))))
    assume(counted_out.rules)
    scenario = replace(scenario, program=counted_out)
    assert run_nemo(scenario.program, scenario.facts) == by_reference(scenario)


@pytest.mark.clause("030-SYN-22", "030-SYN-23", "030-EVAL-07")
@FEWER
@given(scenarios, randoms)
def test_the_order_of_rules_atoms_and_facts_changes_nothing(scenario: Scenario, rng: random.Random) -> None:
    rules = [Rule(rule.head, tuple(rng.sample(rule.body, len(rule.body)))) for rule in scenario.program.rules]
    rules += rng.sample(rules, len(rules) // 2)
    rng.shuffle(rules)
    shuffled = Scenario(Program(tuple(rules)), tuple(rng.sample(scenario.facts, len(scenario.facts))))
    expected = by_reference(scenario)
    assert by_reference(shuffled) == expected
    assert run_embedded(checked(shuffled.program), shuffled.facts, LIMITS) == expected


@pytest.mark.clause("030-CLASS-07", "030-TERM-06")
@FEWER
@given(scenarios)
def test_names_mean_nothing(scenario: Scenario) -> None:
    renamed = Program(tuple(_renamed(rule) for rule in scenario.program.rules))
    expected = {Predicate(f"MaySend-{p.name}", p.arity): rows for p, rows in by_reference(scenario).items()}
    facts = [Fact(Predicate(f"MaySend-{f.predicate.name}", f.predicate.arity), f.values) for f in scenario.facts]
    assert run_reference(checked(renamed), facts, LIMITS) == expected
    assert run_embedded(checked(renamed), facts, LIMITS) == expected


def _renamed(rule: Rule) -> Rule:
    """Variables turned around and lengthened, predicates prefixed."""

    def term(old: Term) -> Term:
        return Variable(f"Q_{old.name[::-1]}z") if isinstance(old, Variable) else old

    def atom(old: Atom) -> Atom:
        return Atom(Predicate(f"MaySend-{old.predicate.name}", old.predicate.arity), tuple(map(term, old.terms)))

    def literal(old: Literal) -> Literal:
        match old:
            case Positive() | Negated():
                return type(old)(atom(old.atom))
            case Cardinality():
                return replace(old, atom=atom(old.atom), bound=term(old.bound))
            case _:
                changes = {
                    name: term(getattr(old, name))
                    for name in ("left", "right", "text", "start", "end")
                    if hasattr(old, name)
                }
                return replace(old, **changes)

    return Rule(atom(rule.head), tuple(map(literal, rule.body)))


@pytest.mark.clause("030-EVAL-02", "030-CLASS-02")
@FEWER
@given(scenarios)
def test_a_program_may_be_split_between_its_strata(scenario: Scenario) -> None:
    """Completing strata one program at a time, each on the facts of the last, gives the same facts."""
    whole = checked(scenario.program)
    facts, found = list(scenario.facts), {}
    for stratum in whole.strata:
        part = run_embedded(checked(Program(stratum.rules)), facts, LIMITS)
        found.update(part)
        facts += [Fact(predicate, row) for predicate, rows in part.items() for row in rows]
    assert found == by_reference(scenario)


@pytest.mark.clause("030-SYN-22")
@FEWER
@given(scenarios, randoms)
def test_a_copy_of_a_predicate_stands_for_it_anywhere(scenario: Scenario, rng: random.Random) -> None:
    """A positive atom may be read through a rule that copies its predicate."""
    rules = list(scenario.program.rules)
    assume(rules)
    index = rng.randrange(len(rules))
    body = list(rules[index].body)
    places = [n for n, literal in enumerate(body) if isinstance(literal, Positive)]
    assume(places)
    place = rng.choice(places)
    predicate = body[place].atom.predicate
    copy = Predicate("Copy", predicate.arity)
    names = tuple(Variable(f"A{n}") for n in range(predicate.arity))
    body[place] = Positive(Atom(copy, body[place].atom.terms))
    rules[index] = Rule(rules[index].head, tuple(body))
    rules.append(Rule(Atom(copy, names), (Positive(Atom(predicate, names)),)))
    found = run_embedded(checked(Program(tuple(rules))), scenario.facts, LIMITS)
    found.pop(copy)
    assert found == by_reference(scenario)


@pytest.mark.clause("030-CANON-13")
@FEWER
@given(scenarios)
def test_canonical_text_derives_the_same_facts(scenario: Scenario) -> None:
    assert parse_program(format_program(scenario.program)) == scenario.program
    canonical = parse_program(canonical_text(scenario.program))
    assert run_reference(checked(canonical), scenario.facts, LIMITS) == by_reference(scenario)


@pytest.mark.clause("030-EVAL-06")
@FEWER
@given(scenarios)
def test_no_rule_makes_a_value(scenario: Scenario) -> None:
    known = {value for fact in scenario.facts for value in fact.values}
    for rule in scenario.program.rules:
        known |= {term.value for term in rule.head.terms if isinstance(term, Constant)}
    derived = by_reference(scenario)
    assert {value for rows in derived.values() for row in rows for value in row} <= known


@pytest.mark.clause("030-LIM-09", "030-LIM-12", "030-EVAL-05", "030-EVAL-07")
@given(scenarios, randoms, st.integers(0, 4), st.integers(0, 3))
def test_the_same_limit_is_hit_whatever_the_order(
    scenario: Scenario, rng: random.Random, derived: int, rounds: int
) -> None:
    limits = EngineLimits(max_derived_facts_per_predicate=derived, max_stratum_iterations=rounds)
    rules = tuple(rng.sample(scenario.program.rules, len(scenario.program.rules)))
    shuffled = Scenario(Program(rules), tuple(rng.sample(scenario.facts, len(scenario.facts))))
    for run in (run_reference, run_embedded):
        assert _outcome(run, scenario, limits) == _outcome(run, shuffled, limits)


def _outcome(run: object, scenario: Scenario, limits: EngineLimits) -> object:
    try:
        return run(checked(scenario.program), scenario.facts, limits)  # type: ignore[operator]  # an executor
    except LimitExceeded as error:
        return str(error)


@pytest.mark.clause("030-CLASS-08", "030-EVAL-04")
@FEWER
@given(scenarios)
def test_goals_choose_from_the_whole_result(scenario: Scenario) -> None:
    expected = by_reference(scenario)
    for predicate, rows in expected.items():
        first = min(rows)[0] if rows and predicate.arity else None
        terms: list[Term] = [Anonymous()] * predicate.arity
        if first is not None:
            terms[0] = Constant(first)
        wanted = {row for row in rows if first is None or row[0] == first}
        goal = Atom(predicate, tuple(terms))
        assert evaluate(checked(scenario.program), scenario.facts, goals=[goal]) == {predicate: wanted}
        asked = engine.evaluate(checked(scenario.program), scenario.facts, goals=[goal]).rows(predicate)
        assert {row for row in asked if first is None or row[0] == first} == wanted
