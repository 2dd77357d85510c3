"""Work is counted: the same for the same facts, charged to who wrote the rule, stopped when asked (P36)."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns import ArraySource
from engine.programs import random_fact, random_facts, random_program
from lace.datalog.engine import Base, Meter, evaluate, materialize
from lace.datalog.language.parser import parse_atom, parse_program
from lace.datalog.language.syntax import Atom, Fact, Positive, Predicate, Program, Rule, Variable
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.meter import BudgetSpent, as_written
from lace.errors import EvaluationStopped, LimitExceeded
from lace.limits import EngineLimits
from lace.thresholds import EngineThresholds

EDGE, NODE, PATH = Predicate("Edge", 2), Predicate("Node", 1), Predicate("Path", 2)
CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."
LIMITS = EngineLimits()
seeds = st.integers(0, 2**32)


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def chain(length: int) -> list[Fact]:
    return [Fact(EDGE, (str(n), str(n + 1))) for n in range(length)]


def rows_of(program: CheckedProgram, facts: list[Fact]) -> int:
    return evaluate(program, facts).stats.rows_touched


@given(seeds)
def test_the_count_depends_on_the_facts_and_not_on_their_order_form_or_history(seed: int) -> None:
    random = Random(seed)
    program = random_program(random)
    facts = sorted(set(random_facts(random)))
    done = check_program(program, RAW_PROFILE)
    expected = rows_of(done, facts)
    assert rows_of(done, random.sample(facts, len(facts))) == expected
    assert evaluate(done, ArraySource(facts)).stats.rows_touched == expected
    base = Base(ArraySource(random.sample(facts, len(facts))))
    assert [evaluate(done, base).stats.rows_touched for _ in range(2)] == [expected, expected]
    shuffled = Program(tuple(random.sample(program.rules, len(program.rules))))
    assert rows_of(check_program(shuffled, RAW_PROFILE), facts) == expected


@pytest.mark.parametrize("limit", ["max_rows_touched", "max_held_bytes"])
def test_a_limit_of_work_may_be_reached_and_not_passed(limit: str) -> None:
    meter = Meter(LIMITS)
    evaluate(checked(CLOSURE), chain(5), meter=meter)
    enough = meter.rows if limit == "max_rows_touched" else meter.held_bytes + 4096
    evaluate(checked(CLOSURE), chain(5), limits=EngineLimits(**{limit: enough}))
    with pytest.raises(LimitExceeded) as error:
        evaluate(checked(CLOSURE), chain(5), limits=EngineLimits(**{limit: meter.held_bytes - 1}))
    assert error.value.limit == limit
    assert error.value.rule in CLOSURE.split("\n")
    assert error.value.advice
    assert pickle.loads(pickle.dumps(error.value)).__dict__ == error.value.__dict__


def test_the_rule_is_named_as_written_when_a_goal_rewrote_it() -> None:
    goals = [parse_atom("Path('0',Y)")]
    with pytest.raises(LimitExceeded) as error:
        evaluate(checked(CLOSURE), chain(50), goals=goals, limits=EngineLimits(max_rows_touched=20_000))
    assert error.value.rule == "Path(X,Y) :- Path(X,Z), Edge(Z,Y)."


@pytest.mark.parametrize("way", ["in full", "for a goal", "followed"])
def test_the_rule_is_named_as_written_when_its_existence_test_became_a_count(way: str) -> None:
    text = (
        "Few(X) :- Edge(X,A), Edge(Y,B), Edge(Z,_), LexCompare(Y,'<',Z), LexCompare(X,'<',Y), LexCompare(A,'<',B).\n"
        "Some(X) :- Few(X)."
    )
    ways: dict[str, Callable[..., object]] = {
        "in full": evaluate,
        "for a goal": partial(evaluate, goals=[parse_atom("Some(X)")]),
        "followed": materialize,
    }
    with pytest.raises(LimitExceeded) as error:
        ways[way](checked(text), chain(50), limits=EngineLimits(max_working_rows=100))
    assert error.value.rule == text.split("\n")[0]


@pytest.mark.parametrize("limit", ["max_stratum_iterations", "max_derived_facts_per_predicate"])
@pytest.mark.parametrize("goal", ["Path('0','40')", "Path(X,'40')", "Path('0',X)"])
def test_a_limit_names_the_predicate_as_written_when_a_goal_rewrote_it(goal: str, limit: str) -> None:
    with pytest.raises(LimitExceeded, match="Path/2") as error:
        evaluate(checked(CLOSURE), chain(50), goals=[parse_atom(goal)], limits=EngineLimits(**{limit: 3}))
    assert "?" not in str(error.value)
    assert "raise the limit" in error.value.advice


def test_rules_of_two_texts_that_stand_at_one_place_are_told_apart() -> None:
    one, two = parse_program("One(X) :- Edge(X,_)."), parse_program("Two(X,Y) :- Node(X), Node(Y).")
    program = check_program(Program((*two.rules, *one.rules)), RAW_PROFILE)
    facts = [Fact(NODE, (str(n),)) for n in range(20)]
    with pytest.raises(LimitExceeded, match="Two") as error:
        evaluate(program, facts, goals=[parse_atom("Two(X,Y)")], limits=EngineLimits(max_working_rows=100))
    assert error.value.rule == "Two(X,Y) :- Node(X), Node(Y)."


def test_rounds_without_rows_are_work_too() -> None:
    meter = Meter(LIMITS)
    program = checked("Reach('0') :- true.\nReach(Y) :- Reach(X), Edge(X,Y).")
    evaluate(program, chain(1000), meter=meter)
    assert meter.rows > 100 * 1000  # three thousand rows, but a thousand rounds


def test_a_join_that_is_filtered_to_nothing_is_charged_for_what_it_joined() -> None:
    facts = [Fact(NODE, (str(n),)) for n in range(200)]
    meter = Meter(LIMITS)
    evaluate(checked("Out(X) :- Node(X), Node(Y), LexCompare(X,'<',Y), LexCompare(Y,'<',X)."), facts, meter=meter)
    assert meter.rows >= 200**2


def test_rows_followed_one_by_one_are_added_up_by_256_each_as_64() -> None:
    meter = Meter(LIMITS)
    meter.follow(255)
    assert meter.rows == 0
    meter.follow(1)
    assert meter.rows == 256 * 64
    meter.follow(3)
    meter.settle()
    assert meter.rows == 259 * 64
    meter.follow(7)
    meter.begin()
    meter.settle()
    assert meter.rows == 0


def test_a_budget_may_be_spent_and_not_passed_and_ends_with_its_block() -> None:
    meter = Meter(LIMITS)
    meter.touch(5)
    with meter.budget(10):
        meter.foresee(10)
        meter.touch(10)
        with pytest.raises(BudgetSpent):
            meter.foresee(1)
        with pytest.raises(BudgetSpent):
            meter.touch(1)
    meter.foresee(10**9)
    meter.touch(10)
    assert meter.rows == 26


class Stop:
    """Answers True from the n-th question on."""

    def __init__(self, after: int) -> None:
        self.left = after

    def __call__(self) -> bool:
        self.left -= 1
        return self.left < 0


def test_an_evaluation_stops_when_it_is_asked_to() -> None:
    with pytest.raises(EvaluationStopped, match=r"Path\(X,Y\) :- "):
        evaluate(checked(CLOSURE), chain(200), meter=Meter(LIMITS, interrupt=Stop(20)))


@pytest.mark.parametrize("after", [0, 1, 2, 5, 11])
def test_a_change_that_was_stopped_leaves_everything_as_it_was(after: int) -> None:
    stop = Stop(10**9)
    m = materialize(checked(CLOSURE), chain(60), meter=Meter(LIMITS, interrupt=stop))
    before = m.rows(PATH)
    stop.left = after
    with pytest.raises(EvaluationStopped):
        m.apply(added=[Fact(EDGE, ("x", "0"))], removed=[Fact(EDGE, ("30", "31"))])
    stop.left = 10**9
    assert m.rows(PATH) == before
    m.apply(removed=[Fact(EDGE, ("30", "31"))])
    assert set(m.rows(PATH)) == set(evaluate(checked(CLOSURE), chain(30) + chain(60)[31:]).rows(PATH))


def guest_program(random: Random) -> tuple[CheckedProgram, frozenset[Predicate]]:
    """A random program over views of the base: its own rules are a guest's, those of the views are the host's."""
    from engine.programs import BASE

    program = random_program(random)
    view = {p: Predicate(f"V{p.name}", p.arity) for p in BASE}

    def through_views(text: str) -> str:
        for p in BASE:
            text = text.replace(f"{p.name}(", f"V{p.name}(")
        return text

    from lace.datalog.language.formatting import format_rule

    seen = parse_program("\n".join(through_views(format_rule(rule)) for rule in program.rules)).rules
    gates = tuple(_gate(p, view[p]) for p in BASE)
    guests = frozenset(rule.head.predicate for rule in seen)
    return check_program(Program(seen + gates), RAW_PROFILE), guests


def _gate(predicate: Predicate, view: Predicate) -> Rule:
    terms = tuple(Variable(f"A{n}") for n in range(predicate.arity))
    shown = Positive(Atom(Predicate(f"Shown{predicate.name}", predicate.arity), terms))
    return Rule(Atom(view, terms), (Positive(Atom(predicate, terms)), shown))


def shown(fact: Fact) -> list[Fact]:
    return [fact, Fact(Predicate(f"Shown{fact.predicate.name}", fact.predicate.arity), fact.values)]


Charge = Callable[[list[Fact]], int]


@given(seeds)
@pytest.mark.long
def test_a_guest_is_charged_the_same_whatever_is_hidden_from_it(seed: int) -> None:
    random = Random(seed)
    program, guests = guest_program(random)
    visible = random_facts(random, most=20)
    hidden = [fact for fact in random_facts(random, most=60) if fact not in visible]
    hidden += [Fact(EDGE, (f"h{n}", random.choice("ab"))) for n in range(random.choice((0, 30)))]
    facts = [part for fact in visible for part in shown(fact)]
    steps = [(random_fact(random), random.choice([*visible, random_fact(random)])) for _ in range(4)]

    def charges(secret: list[Fact]) -> list[int]:
        meter = Meter(LIMITS, guests=guests)
        m = materialize(program, secret + facts, meter=meter)
        found = [meter.guest_rows]
        for came, went in steps:
            m.apply(added=shown(came), removed=shown(went))
            found.append(meter.guest_rows)
        return found

    plain = charges([])
    assert charges(hidden) == plain  # other codes, other columns, other sizes below the views
    assert charges(hidden[::-1]) == plain


def test_the_limit_of_a_guest_is_its_own() -> None:
    program = checked("Mine(X,Y) :- Edge(X,Y).\nTheirs(X,Z) :- Mine(X,Y), Mine(Y,Z).")
    limits = EngineLimits(max_peer_rows_touched=2_000)
    theirs, mine = frozenset({Predicate("Theirs", 2)}), frozenset({Predicate("Mine", 2)})
    meter = Meter(limits, guests=mine)
    evaluate(program, chain(1000), limits=limits, meter=meter)
    assert 1000 <= meter.guest_rows < meter.rows
    with pytest.raises(LimitExceeded, match="max_peer_rows_touched") as error:
        evaluate(program, chain(1000), limits=limits, meter=Meter(limits, guests=theirs))
    assert error.value.rule == "Theirs(X,Z) :- Mine(X,Y), Mine(Y,Z)."


@pytest.mark.parametrize("seed", range(6))
def test_a_guest_that_gives_up_row_by_row_is_charged_the_same_whatever_is_hidden(seed: int) -> None:
    """Many rows for some keys and few for others: where the many stand among the few depends on codes."""
    random = Random(seed)
    text = "Seen(X,Y) :- Edge(X,Y), Shown(X).\nThree(X,W) :- Seen(X,Y), Seen(Y,Z), Seen(Z,W)."
    program = checked(text)
    hubs = [Fact(EDGE, (f"h{n}", f"m{k}")) for n in range(3) for k in range((5, 60, 120)[n])]
    visible = [*hubs, *(Fact(EDGE, ("s", f"h{n}")) for n in range(3)), Fact(EDGE, ("r", "s"))]
    visible += [Fact(EDGE, (f"m{k}", f"m{k + 1}")) for k in range(8)]
    shown = [Fact(Predicate("Shown", 1), (name,)) for name in sorted({fact.values[0] for fact in visible})]
    hidden = [Fact(EDGE, (f"x{n}", random.choice(visible).values[1])) for n in range(200)]

    def charges(facts: list[Fact]) -> list[int]:
        meter = Meter(LIMITS, guests=frozenset({Predicate("Three", 2)}))
        m = materialize(program, facts + shown, meter=meter)
        found = [meter.guest_rows]
        for fact in [visible[0], visible[-9], visible[-1], Fact(EDGE, ("r", "s"))]:
            m.apply(removed=[fact])
            found.append(meter.guest_rows)
            m.apply(added=[fact])
            found.append(meter.guest_rows)
        return found

    plain = charges(visible)
    for _ in range(3):
        mixed = random.sample(visible + hidden, len(visible) + len(hidden))
        assert charges(mixed) == plain


def test_a_predicate_is_shown_as_the_running_rule_names_it_or_without_its_marks() -> None:
    (rule,) = parse_program("Path(X,Y) :- Edge(X,Y).").rules
    meter = Meter(LIMITS)
    assert meter.shown(Predicate("Edge?0", 3)) == "Edge/3"
    meter.enter(rule)
    assert meter.shown(Predicate("Path?0?asked", 1)) == "Path/2"
    assert meter.shown(Predicate("Edge?0", 3)) == "Edge/3"


def test_a_rule_is_shown_without_what_its_rewriting_added() -> None:
    """What a goal asks for stands before the body and belongs to nobody's text."""
    x, edge = Variable("X"), Predicate("Edge", 1)
    asked = Positive(Atom(Predicate("Path?asked", 1), (x,)))
    head, read = Atom(Predicate("Path?0", 1), (x,)), Positive(Atom(edge, (x,)))
    written = Atom(Predicate("Path", 1), (x,))
    assert as_written(Rule(head, (asked, read))) == Rule(written, (read,))
    assert as_written(Rule(head, (read, read))) == Rule(written, (read, read))
    assert as_written(Rule(head, (asked,))) == Rule(written, (Positive(written),))  # a body is never empty


def test_a_rule_that_was_rewritten_is_told_as_in_the_program_that_it_was_made_of() -> None:
    """Another evaluation may run a part of what a rewriting made, under the same meter."""
    meter, program = Meter(LIMITS), parse_program("Path(X,Y) :- Edge(X,Y).")
    (rule,) = program.rules
    made = replace(rule, head=replace(rule.head, predicate=Predicate("Path?0", 2)))
    meter.tell_as_in(program)
    meter.tell_as_in(Program((made,)))
    meter.enter(made)
    assert meter.exceeded("max_rules", 1).rule == "Path(X,Y) :- Edge(X,Y)."
    assert meter.shown(Predicate("Path?0?asked", 1)) == "Path/2"


@pytest.mark.parametrize("body", ["Edge(X,Y), not Edge(Y,_)", "Edge(X,Y), Edge(Y,Z)", "Edge(X,Y), Edge(Y,_)"])
def test_looking_up_the_rows_of_a_large_relation_can_be_stopped_in_between(body: str) -> None:
    asked: list[None] = []
    program, facts = checked(f"Found(X,Y) :- {body}."), chain(1000)

    def interrupt() -> bool:
        asked.append(None)
        return False

    whole = evaluate(program, facts)
    ways = EngineThresholds(batch_rows=50)
    found = evaluate(program, facts, meter=Meter(LIMITS, interrupt=interrupt), thresholds=ways)
    assert len(asked) >= 1000 // 50
    (head,) = program.derived
    assert found.rows(head) == whole.rows(head)
    assert found.stats.rows_touched == whole.stats.rows_touched
