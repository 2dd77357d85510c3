"""Bodies that go round in a circle: value by value, and two atoms at a time, give what naive evaluation gives."""

from __future__ import annotations

import tracemalloc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import random_fact, random_facts, random_program
from executors import reference
from lace.datalog.engine import Base, Meter, evaluate, materialize
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.errors import LimitExceeded
from lace.limits import EngineLimits
from lace.thresholds import EngineThresholds
from tries import tries

EDGE, NODE, TRIPLE = Predicate("E", 2), Predicate("N", 1), Predicate("R", 3)
ALWAYS = EngineThresholds(meeting_growth=0, meeting_growth_followed=0)
NEVER = EngineThresholds(meeting_growth=float("inf"), meeting_growth_followed=float("inf"))
FEW_AT_ONCE = EngineThresholds(meeting_growth=0, meeting_growth_followed=0, batch_rows=16, single_rows=0)
ONE_BY_ONE = EngineThresholds(
    meeting_growth=0, meeting_growth_followed=0, single_rows=1000, single_rows_reached=1 << 20
)
BODIES = {
    "triangle": "E(X,Y), E(Y,Z), E(X,Z)",
    "circle of three": "E(X,Y), E(Y,Z), E(Z,X)",
    "four": "E(X,Y), E(Y,Z), E(Z,W), E(W,X)",
    "clique": "E(X,Y), E(X,Z), E(X,W), E(Y,Z), E(Y,W), E(Z,W)",
    "two triangles": "E(X,Y), E(Y,Z), E(X,Z), E(Z,W), E(X,W)",
    "of one's own": "E(X,X), E(X,Y), E(Y,Z), E(Z,X)",
    "constant": "E(X,Y), E(Y,'h'), E(X,'h'), E(Y,Z), E(Z,X)",
    "three places": "R(X,Y,Z), R(Y,Z,W), R(X,W,_)",
    "private": "R(X,Y,A), R(Y,Z,B), R(Z,X,W)",
    "tests": "E(X,Y), E(Y,Z), E(X,Z), X != Z, not E(Z,X), LexCompare(X,'<',Y), E(Z,W)",
    "counted": "E(X,Y), E(Y,Z), E(X,Z), Cardinality(E(Z,_),'>','1'), N(W)",
    "ears": "N(X), E(X,Y), E(Y,Z), E(X,Z), E(Z,W), N(W)",
    "apart": "E(X,Y), E(Y,Z), E(X,Z), N(W)",
    "path": "N(X), E(X,Y), E(Y,Z), N(Z), E(Z,W)",
    "ends": "E(X,Y), R(Y,Z,W), E(W,'h'), N(X)",
    "points to": "R(X,Y,Z), E(X,W), R(W,Y,Z), E(Y,Z)",
}
HEADS = ("T(X,Y,Z,W)", "T(X,Z)", "T(W)", "T('k')")


def rules(random: Random) -> str:
    body = random.choice(sorted(BODIES.values()))
    names = {name for name in "XYZW" if name in body.replace("LexCompare", "").replace("RWX", "")}
    heads = [head for head in HEADS if {name for name in "XYZW" if name in head} <= names]
    text = f"{random.choice(heads)} :- {body}."
    if random.random() < 0.5 and "E(X,Y), E(Y,Z), E(X,Z)" in body:
        # what a circle finds goes on into circles
        text = f"P(X,Y) :- E(X,Y).\nP(X,Z) :- P(X,Y), E(Y,Z), P(Z,X).\n{text.replace('E(Y,Z)', 'P(Y,Z)')}"
    if random.random() < 0.3:
        text += f"\nU(X) :- N(X), not {heads[0].replace('X,Y', '_,_').replace('Z', '_').replace('W', '_')}."
        text = text if "T('k')" in text or heads[0] in text else text.rpartition("\nU")[0]
    return text


def skewed_fact(random: Random) -> Fact:
    """Half of all edges are at one node."""
    nodes = "habcdefg"

    def node() -> str:
        return "h" if random.random() < 0.3 else random.choice(nodes)

    kind = random.random()
    if kind < 0.75:
        return Fact(EDGE, (node(), node()))
    return Fact(NODE, (node(),)) if kind < 0.85 else Fact(TRIPLE, (node(), node(), node()))


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def agree(program: CheckedProgram, facts: list[Fact], expected: dict[Predicate, set[tuple[str, ...]]]) -> None:
    for ways in (ALWAYS, NEVER, FEW_AT_ONCE, EngineThresholds()):
        result = evaluate(program, facts, thresholds=ways)
        assert {predicate: set(result.rows(predicate)) for predicate in program.derived} == expected


seeds = st.integers(0, 2**32)


@pytest.mark.clause("030-EVAL-01", "030-EVAL-02")
@given(seeds)
@tries(150)
def test_a_circle_gives_the_same_value_by_value_and_two_atoms_at_a_time(seed: int) -> None:
    random = Random(seed)
    program = checked(rules(random))
    facts = [skewed_fact(random) for _ in range(random.randint(0, 60))]
    agree(program, facts, reference.evaluate(program, facts))


@given(seeds)
@tries(60)
def test_any_program_gives_the_same_whatever_circles_it_has(seed: int) -> None:
    random = Random(seed)
    program = check_program(random_program(random), RAW_PROFILE)
    facts = random_facts(random)
    agree(program, facts, reference.evaluate(program, facts))


@pytest.mark.clause("030-INCR-02", "030-INCR-03")
@pytest.mark.parametrize("ways", [ALWAYS, NEVER, FEW_AT_ONCE, ONE_BY_ONE], ids=["always", "never", "columns", "rows"])
@given(seeds)
@tries(40)
def test_a_circle_follows_what_comes_and_goes(ways: EngineThresholds, seed: int) -> None:
    random = Random(seed)
    made = random.random() < 0.8
    program = checked(rules(random)) if made else check_program(random_program(random), RAW_PROFILE)
    make = skewed_fact if made else random_fact
    facts = {make(random) for _ in range(random.randint(0, 40))}
    m = materialize(program, sorted(facts), thresholds=ways)
    for _ in range(5):
        removed = set(random.sample(sorted(facts), min(len(facts), random.choice((0, 1, 2, 6)))))
        added = {make(random) for _ in range(random.choice((0, 1, 2, 6)))}
        m.apply(sorted(added), sorted(removed))
        facts = (facts - removed) | added
        expected = reference.evaluate(program, sorted(facts))
        assert {predicate: set(m.rows(predicate)) for predicate in program.derived} == expected


def hub(spokes: int) -> list[Fact]:
    """A node that knows everybody and that everybody knows, and a chain of the others."""
    spokes_of = [pair for n in range(spokes) for pair in (("h", f"n{n}"), (f"n{n}", "h"))]
    return [Fact(EDGE, pair) for pair in [*spokes_of, *((f"n{n}", f"n{n + 1}") for n in range(spokes - 1))]]


TRIANGLE = "T(X,Y,Z) :- E(X,Y), E(Y,Z), E(X,Z)."


def test_a_triangle_at_a_hub_touches_rows_by_the_thousand_and_not_by_the_million() -> None:
    spokes = 3000
    meter = Meter(EngineLimits(max_working_rows=20 * spokes))
    found = evaluate(checked(TRIANGLE), hub(spokes), meter=meter)
    assert found.count(Predicate("T", 3)) == 3 * (spokes - 1)
    assert meter.rows < 20 * 3 * spokes
    with pytest.raises(LimitExceeded, match="max_working_rows"):
        evaluate(checked(TRIANGLE), hub(spokes), limits=EngineLimits(max_working_rows=20 * spokes), thresholds=NEVER)


def test_one_edge_at_a_hub_touches_few_rows() -> None:
    spokes = 3000
    m = materialize(checked(TRIANGLE), hub(spokes))
    m.apply(added=[Fact(EDGE, ("n5", "n9"))])
    for change in ({"added": [Fact(EDGE, ("n7", "n20"))]}, {"removed": [Fact(EDGE, ("n7", "n20"))]}):
        changed = m.apply(**change)
        assert sum(map(len, (*changed.added.values(), *changed.removed.values()))) == 3
        assert m.meter.rows < 20_000


def test_a_circle_holds_no_more_than_its_facts_and_its_answers() -> None:
    spokes = 20_000
    base = Base(hub(spokes))
    base.runs(EDGE)
    program = checked(TRIANGLE)
    evaluate(program, hub(10))
    tracemalloc.start()
    try:
        found = evaluate(program, base)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    answers = found.count(Predicate("T", 3)) * 3 * 4
    assert most < base.nbytes() + 4 * answers


def test_values_that_another_atom_lacks_are_left_out_before_a_join() -> None:
    """Where everybody knows everybody: what is said of those few, of whom much is said, that some know."""
    nodes = [f"n{n}" for n in range(120)]
    facts = [Fact(EDGE, (a, b)) for a in nodes for b in nodes]
    facts += [Fact(NODE, (name,)) for name in nodes[:3]]
    facts += [Fact(Predicate("S", 2), (nodes[50 + n % 2], f"said {n}")) for n in range(400)]
    program = checked("T(X,A) :- N(X), E(X,Y), S(Y,A).")
    plain, reduced = (Meter(EngineLimits()) for _ in range(2))
    for meter, ways in ((plain, NEVER), (reduced, EngineThresholds())):
        assert evaluate(program, facts, meter=meter, thresholds=ways).count(Predicate("T", 2)) == 3 * 400
    plan = str(evaluate(program, facts).stats.plans[0])
    assert "Meet in Y of Scan E(X,Y), Scan S(Y,_)" in plan
    assert "Join on (Y) Scan S(Y,A)" in plan
    assert reduced.rows < plain.rows


def test_what_a_limit_advises_is_true_of_the_rule() -> None:
    facts = hub(300)
    limits = EngineLimits(max_working_rows=10_000)
    with pytest.raises(LimitExceeded, match=r"some values of Y have very many facts on both sides"):
        evaluate(checked("T(X,Y,Z) :- E(X,Y), E(Y,Z)."), facts, limits=limits)
    with pytest.raises(LimitExceeded, match=r"let the atoms share a variable"):
        evaluate(checked("T(X,Z) :- E(X,_), E(_,Z)."), facts, limits=limits)
