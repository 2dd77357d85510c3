"""Names that rewritings make: they are the name of nothing else, whoever chose it."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.goals import goals_at_every_place, random_world
from executors import reference
from lace.datalog.engine import evaluate, materialize
from lace.datalog.language.parser import parse_atom, parse_facts, parse_program
from lace.datalog.language.syntax import ANONYMOUS, Atom, Constant, Fact, Positive, Predicate, Program, Rule, Variable
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.planning.demand import demand, only_what_goals_read
from lace.datalog.planning.existence import existence_counted
from lace.datalog.planning.names import (
    MARK,
    PredicateNames,
    VariableNames,
    authored_name,
    predicates_of,
    rule_variables,
)
from lace.datalog.planning.unfold import unfold
from tries import tries


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def test_a_maker_gives_no_name_twice_and_none_that_is_there() -> None:
    program = parse_program("D(X) :- F(X), not G(X), Cardinality(H(X,_),'>','0').")
    names = PredicateNames(program, [Predicate("Given", 3)])
    wanted = ["D", "F", "G", "H", "Given", "New", "New", "New~2"]
    made = [names.fresh(name, 2).name for name in wanted]
    assert made == ["D~2", "F~2", "G~2", "H~2", "Given~2", "New", "New~2", "New~2~2"]
    one, other = Predicate("D", 1), Predicate("D", 2)
    assert names.made_for(one, "0", 1) == names.made_for(one, "0", 1) == Predicate("D?0", 1)
    assert names.made_for(other, "0", 2) == Predicate("D?0~2", 2)


def test_a_maker_of_variables_knows_every_variable_of_a_rule() -> None:
    (rule,) = parse_program("D(X) :- F(X,Y), X != Z, F(Z,_), Cardinality(G(X,L),'<',Y).").rules
    assert set(rule_variables(rule)) == {"X", "Y", "Z", "L"}
    names = VariableNames.beside(rule)
    assert [names.fresh(name).name for name in ("X", "Y", "Z", "L", "New", "New")] == [
        "X_2", "Y_2", "Z_2", "L_2", "New", "New_2",
    ]  # fmt: skip


@given(st.integers(0, 2**32))
@tries(100)
def test_no_pass_gives_anything_a_name_that_the_program_or_its_facts_have(seed: int) -> None:
    """Rewriting what is rewritten already, over facts that have the very names that a pass would choose."""
    random = Random(seed)
    world = random_world(random)
    program = check_program(world.program, RAW_PROFILE)
    (predicate, rows) = random.choice(list(reference.evaluate(program, world.facts).items()))
    goals = list(goals_at_every_place(random, predicate, rows))
    first = existence_counted(program)
    taken = {*predicates_of(first.program.rules)}
    for _ in range(2):
        made = demand(first, random.sample(goals, 2) if len(goals) > 2 else goals, given=taken, only_answers=False)
        own = {made.answers[predicate]} | {seed.predicate for seed in made.seeds}
        own |= {
            each for copies in made.copies.values() for copy in copies for each in (copy.predicate, copy.asked) if each
        }
        own = {each for each in own if each not in first.derived}
        assert own.isdisjoint(taken)
        assert {each.name for each in own}.isdisjoint(each.name for each in taken)
        assert {authored_name(each.name) for each in own} <= {each.name for each in program.derived}
        taken |= own
        again = existence_counted(first, taken)
        new = {*predicates_of(again.program.rules)} - {*predicates_of(first.program.rules)}
        assert new.isdisjoint(taken)
        taken |= new


CASES = {
    "the helper of an existence test and a copy": ("D(X,X) :- F(X), F(W), LexCompare(W,'<=',X).", "D('b',B)"),
    "the same, the other place": ("D(X,X) :- F(X), F(W), LexCompare(W,'<=',X).\nD('z',X) :- F(X).", "D(A,'b')"),
    "predicates of one name": (
        "P(X,Y) :- E(X,Y).\nP(X,Y,Z) :- E(X,Y), E(Y,Z).\nQ(X) :- P('a',X), P('b',X,_).",
        "Q(X)",
    ),
    "a group that the head shows": ("Old(P,G) :- T(P,G,S), T(Q,G,R), LexCompare(R,'>',S).", "Old(P,'g')"),
}
FACTS = list(
    parse_facts(
        "F('a')\nF('b')\nF('c')\nE('a','b')\nE('b','c')\nE('c','b')\n"
        "T('p','g','1')\nT('p','h','2')\nT('q','h','3')\nT('q','g','0')\n"
    )
)


@pytest.mark.clause("030-EVAL-04")
@pytest.mark.parametrize(("rules", "goal"), CASES.values(), ids=CASES)
def test_a_goal_gets_its_facts(rules: str, goal: str) -> None:
    atom, program = parse_atom(goal), checked(rules)
    expected = reference.evaluate(program, FACTS, goals=[atom])
    assert set(evaluate(program, FACTS, goals=[atom]).rows(atom.predicate)) == expected[atom.predicate]


def test_many_goals_for_one_of_two_predicates_of_one_name_are_no_goals_for_the_other() -> None:
    program = checked("P(X,Y) :- E(X,Y).\nP(X,Y,Z) :- E(X,Y), E(Y,Z).")
    facts = [Fact(Predicate("E", 2), (f"{n}", f"{n + 1}")) for n in range(40)]
    two = [Atom(Predicate("P", 2), (Constant(f"{n}"), ANONYMOUS)) for n in range(10)]
    three = [Atom(Predicate("P", 3), (Constant(f"{n}"), ANONYMOUS, ANONYMOUS)) for n in range(20, 30)]
    result = evaluate(program, facts, goals=[*two, *three])
    assert {int(row[0]) for row in result.rows(Predicate("P", 2))} == set(range(10))
    assert {int(row[0]) for row in result.rows(Predicate("P", 3))} == set(range(20, 30))


def test_facts_that_have_the_names_of_a_rewriting_are_not_read_by_it() -> None:
    """No lacegram can hold such names, but a source of facts can."""
    program, goal = checked("D(X,Y) :- F(X), F(Y), F(W), LexCompare(W,'<',X)."), parse_atom("D('b',Y)")
    made = demand(program, [goal])
    read = [*made.checked.base, *made.checked.derived, *predicates_of(existence_counted(program).program.rules)]
    strange = [Fact(each, ("x",) * each.arity) for each in read if MARK in each.name]
    assert len(strange) >= 4
    assert evaluate(program, [*FACTS, *strange], goals=[goal]).rows(goal.predicate) == [("b", v) for v in "abc"]
    assert materialize(program, [*FACTS, *strange]).rows(goal.predicate) == evaluate(program, FACTS).rows(
        goal.predicate
    )
    whole = only_what_goals_read(program, [goal], [made.answers[goal.predicate]])
    assert whole.answers[goal.predicate] != made.answers[goal.predicate]


def test_a_local_variable_of_a_count_is_not_bound_by_the_one_of_another() -> None:
    """The helper of an existence test brings a local variable of its own, and following changes another."""
    rules = "D(X) :- T(X,_,S), T(_,_,R), LexCompare(R,'>',S), Cardinality(E(X,Other),'>=','1')."
    program = checked(rules)
    kept = materialize(program, [])
    for fact in [*FACTS, Fact(Predicate("E", 2), ("p", "x")), Fact(Predicate("E", 2), ("q", "x"))]:
        kept.apply(added=[fact])
    for fact in FACTS[6:8]:
        kept.apply(removed=[fact])
        kept.apply(added=[fact])
    facts = [*FACTS, Fact(Predicate("E", 2), ("p", "x")), Fact(Predicate("E", 2), ("q", "x"))]
    assert set(kept.rows(Predicate("D", 1))) == reference.evaluate(program, facts)[Predicate("D", 1)]


def test_variables_of_a_body_that_is_put_where_it_is_read_stay_apart() -> None:
    """Such as `Y_0`, which somebody may have chosen."""
    program = parse_program("A(X,Z) :- E(X,Y), E(Y,Z).\nB(X,Y_0,Y_1) :- A(X,_), A(Y_0,Y_1), F(Y_1), F(Y_0).")
    flat = unfold(program, {Predicate("B", 3)}, lambda rule: True, 64)
    found = reference.evaluate(check_program(flat, RAW_PROFILE), FACTS)[Predicate("B", 3)]
    assert found == reference.evaluate(check_program(program, RAW_PROFILE), FACTS)[Predicate("B", 3)] != set()


def test_a_goal_may_name_variables_as_a_rewriting_would() -> None:
    program = checked("D(X,Y,Z) :- E(X,Y), E(Y,Z).")
    terms = (Constant("a"), ANONYMOUS, Variable(f"Any{MARK}1"))
    assert evaluate(program, FACTS, goals=[Atom(Predicate("D", 3), terms)]).rows(Predicate("D", 3)) == [("a", "b", "c")]


def test_a_program_may_hold_what_a_pass_made_before() -> None:
    """The helper of a second existence test, made by a second pass, is not that of the first."""
    text = "D(X) :- F(X), F(V), LexCompare(V,'<',X), F(W), LexCompare(W,'>',X)."
    twice = existence_counted(existence_counted(checked(text)))
    helpers = {each for each in twice.derived if MARK in each.name}
    assert len(helpers) == 2
    rules = tuple(Rule(rule.head, rule.body) for rule in twice.program.rules)
    assert all(len([rule for rule in rules if rule.head.predicate == each]) == 1 for each in helpers)
    assert evaluate(twice, FACTS).rows(Predicate("D", 1)) == [("b",)]
    assert Program(rules)
    assert all(isinstance(literal, Positive) for rule in rules for literal in rule.body[:1])
