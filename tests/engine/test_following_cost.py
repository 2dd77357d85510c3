"""Following a change costs at most twice what starting anew costs, counted in rows touched; mostly next to nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import random_fact, random_facts, random_program
from engine.rankings import RANKED, rank_fact
from executors.cases import NAMES, read_case
from lace.datalog.engine import Materialized, Result, evaluate, materialize
from lace.datalog.engine import follow as follow_module
from lace.datalog.engine.row_lookup import Visibility
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.errors import LaceError
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds
from tries import share, tries


def _measured_programs() -> ModuleType:
    """bench/ is no package of the tests (its datalog.py would hide theirs), so the module is read by its path."""
    path = Path(__file__).parents[2] / "bench" / "rulebench" / "programs.py"
    spec = spec_from_file_location("measured_programs", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MEASURED = _measured_programs()
BY_NAME, POINTS_TO = MEASURED.BY_NAME, MEASURED.POINTS_TO
seeds = st.integers(0, 2**32)
# For every stratum: what following may try before its share counts, and steps that a change of one row has to take.
CONSTANT = 2 * ENGINE_THRESHOLDS.follow_rows
EDGE, PATH = Predicate("Edge", 2), Predicate("Path", 2)
CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def anew(program: CheckedProgram, facts: set[Fact]) -> Result:
    """What starting anew gives, and what it costs: `stats.rows_touched`."""
    return evaluate(program, sorted(facts))


def require_cheap(m: Materialized, program: CheckedProgram, before: Result, after: Result) -> None:
    """The last change of `m` led from some facts to others."""
    full = max(before.stats.rows_touched, after.stats.rows_touched)
    assert m.meter.rows <= 2 * full + CONSTANT * len(program.strata), (m.meter.rows, full)


def same_facts(m: Materialized, program: CheckedProgram, expected: Result) -> None:
    for predicate in program.derived:
        assert set(m.rows(predicate)) == set(expected.rows(predicate))


@given(seeds)
@tries(80)
@pytest.mark.long
def test_random_changes_of_random_programs_stay_within_the_bound(seed: int) -> None:
    random = Random(seed)
    program = check_program(random_program(random), RAW_PROFILE)
    facts = set(random_facts(random, most=80))
    m = materialize(program, sorted(facts))
    before = anew(program, facts)
    for _ in range(4):
        removed = set(random.sample(sorted(facts), min(len(facts), random.choice((0, 1, 5)))))
        added = {random_fact(random) for _ in range(random.choice((0, 1, 5)))}
        m.apply(sorted(added), sorted(removed))
        facts = (facts - removed) | added
        after = anew(program, facts)
        require_cheap(m, program, before, after)
        before = after


@given(seeds)
@tries(40)
@pytest.mark.long
def test_rows_and_columns_follow_alike(seed: int) -> None:
    random = Random(seed)
    program = check_program(random_program(random), RAW_PROFILE)
    follow_all_ways(program, set(random_facts(random)), random, random_fact)


@pytest.mark.parametrize("text", [CLOSURE, POINTS_TO, *RANKED.values()])
@pytest.mark.parametrize("seed", range(3))
def test_rows_and_columns_follow_alike_in_known_programs(text: str, seed: int) -> None:
    random = Random(seed)

    def make(random: Random) -> Fact:
        if "Cand" in text or "Post" in text:
            return rank_fact(random)
        name = random.choice(["Edge"] if text == CLOSURE else ["Assign", "Assign", "Load"])
        return Fact(Predicate(name, 2), (random.choice("abcdefg"), random.choice("abcdefg")))

    follow_all_ways(checked(text), {make(random) for _ in range(12)}, random, make)


def follow_all_ways(program: CheckedProgram, facts: set[Fact], random: Random, make: object) -> None:
    assert callable(make)
    steps = [
        (
            {make(random) for _ in range(random.choice((0, 1, 3)))},
            set(random.sample(sorted(facts), min(len(facts), random.choice((0, 1, 3))))),
        )
        for _ in range(3)
    ]
    expected, now = [], set(facts)
    for added, removed in steps:
        now = (now - removed) | added
        expected.append(anew(program, now))
    for few, followed in ((0, 0), (2, 3), (32, 2048)):
        ways = EngineThresholds(
            single_rows=few,
            single_rows_reached=followed,
            follow_share=1000,  # no way out
            flush_rows=random.choice((0, 4, 16_384)),
        )
        m = materialize(program, sorted(facts), thresholds=ways)
        for (added, removed), wanted in zip(steps, expected, strict=True):
            m.apply(sorted(added), sorted(removed))
            same_facts(m, program, wanted)
            ranks_are_sound(m, program)


def ranks_are_sound(m: Materialized, program: CheckedProgram) -> None:
    """Every fact of a recursive stratum has a derivation from facts of lower rank."""
    for rules in m.get_ready():
        if rules.stratum.recursive:
            for predicate in rules.stratum.predicates:
                ranks = {row[:-1]: row[-1] for row in m.table(predicate).lookup(((), ()), ()).find((), _NEW)}
                assert not m.unproven(rules, predicate, ranks)


_NEW = Visibility.NEW


@pytest.mark.parametrize("name", NAMES)
def test_any_fact_of_a_case_can_go_and_come_back_within_the_bound(name: str) -> None:
    case = read_case(name)
    try:
        program = case.check()
        m = materialize(program, case.base_facts(), case.limits)
    except LaceError:
        return  # the case is about an error
    facts = set(case.base_facts())
    whole = anew(program, facts)
    for fact in sorted(facts)[: share(20)]:
        without = anew(program, facts - {fact})
        m.apply(removed=[fact])
        same_facts(m, program, without)
        require_cheap(m, program, whole, without)
        m.apply(added=[fact])
        require_cheap(m, program, without, whole)
    same_facts(m, program, whole)


SMALL = {
    "group/app/name selector": 300,
    "members, not blocked": 300,
    "evidence closure": 300,
    "newest 100": 300,
    "closure of a grid": 9,
    "closure of a random graph": 100,
    "closure of chains": 40,
    "same generation in a tree": 5,
}


GRAPHS = [name for name, question in BY_NAME.items() if question.kind == "graph"]


def bench_facts(name: str) -> Iterator[Fact]:
    return (Fact(Predicate(label, len(row)), row) for label, row in BY_NAME[name].facts(SMALL[name]))


@pytest.mark.long
@pytest.mark.parametrize("name", BY_NAME)
def test_any_fact_of_a_measured_program_can_go_within_the_bound(name: str) -> None:
    program, facts = checked(BY_NAME[name].lace), set(bench_facts(name))
    m = materialize(program, sorted(facts))
    whole = anew(program, facts)
    cheap = 0
    sample = Random(1).sample(sorted(facts), 25)
    for fact in sample:
        without = anew(program, facts - {fact})
        m.apply(removed=[fact])
        require_cheap(m, program, whole, without)
        cheap += m.meter.rows < 0.1 * whole.stats.rows_touched + ENGINE_THRESHOLDS.follow_rows
        m.apply(added=[fact])
        require_cheap(m, program, without, whole)
    same_facts(m, program, whole)
    assert name in GRAPHS or cheap >= 20  # in graphs so small an edge is a large part


def graph(edges: Iterator[tuple[int, int]]) -> set[Fact]:
    return {Fact(EDGE, (str(a), str(b))) for a, b in edges}


def test_an_edge_of_a_large_closure_can_go_within_the_bound() -> None:
    random = Random(1)
    facts = graph((random.randrange(300), random.randrange(300)) for _ in range(599))
    program = checked(CLOSURE)
    m = materialize(program, sorted(facts))
    full = anew(program, facts).stats.rows_touched
    work: list[int] = []
    for fact in random.sample(sorted(facts), 25):
        m.apply(removed=[fact])
        facts.discard(fact)
        work.append(m.meter.rows)
    same_facts(m, program, anew(program, facts))
    assert max(work) <= 2 * full + CONSTANT


def test_the_middle_of_a_chain_can_go_within_the_bound() -> None:
    facts = graph((n, n + 1) for n in range(300))
    program = checked(CLOSURE)
    m = materialize(program, sorted(facts))
    middle = Fact(EDGE, ("150", "151"))
    changes = m.apply(removed=[middle])
    assert len(changes.removed[PATH]) == 151 * 150
    without = anew(program, facts - {middle})
    require_cheap(m, program, anew(program, facts), without)
    same_facts(m, program, without)


def test_a_change_that_alters_nothing_is_cheap() -> None:
    """Every node reaches every node two layers down by forty ways: without an edge nothing but that edge is missing."""
    facts = graph((40 * layer + a, 40 * layer + 40 + b) for layer in range(5) for a in range(40) for b in range(40))
    program = checked(CLOSURE)
    m = materialize(program, sorted(facts))
    full = anew(program, facts).stats.rows_touched
    for fact in Random(2).sample(sorted(facts), 10):
        assert m.apply(removed=[fact]).removed == {PATH: (fact.values,)}
        assert m.meter.rows < 0.15 * full
        m.apply(added=[fact])
        assert m.meter.rows < 0.15 * full


STAR = "Star(P,V) :- Part(P,'a',V), Part(P,'b',W), Part(P,'c',X), Whole(P), not Part(P,'d',V)."
PART, WHOLE, STAR_HEAD = Predicate("Part", 3), Predicate("Whole", 1), Predicate("Star", 2)


def star(name: str) -> list[Fact]:
    return [*(Fact(PART, (name, part, "1")) for part in "abc"), Fact(WHOLE, (name,))]


@pytest.mark.parametrize("few", [0, 12])
def test_what_rests_on_several_new_facts_is_found_from_one_of_them(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []
    collect = follow_module.Follower._collect
    monkeypatch.setattr(
        follow_module.Follower,
        "_collect",
        lambda self, into, head, more: found.append(len(more)) or collect(self, into, head, more),
    )
    ways = EngineThresholds(single_rows=few, follow_share=1000)  # no way out
    m = materialize(checked(STAR), [fact for n in range(40) for fact in star(f"s{n}")], thresholds=ways)
    m.apply(added=star("new"))
    assert m.contains(Fact(STAR_HEAD, ("new", "1")))
    assert sum(found) == 1


@pytest.mark.parametrize("few", [0, 12])
@pytest.mark.parametrize("late", range(4))
def test_a_fact_that_goes_and_comes_in_one_change_stands_for_what_comes_with_it(few: int, late: int) -> None:
    ways = EngineThresholds(single_rows=few, follow_share=1000)  # no way out
    facts = star("s")
    missing = facts.pop(late)
    m = materialize(checked(STAR), [*facts, *star("other")], thresholds=ways)
    m.apply(added=[*facts, missing], removed=facts)
    assert m.rows(STAR_HEAD) == [("other", "1"), ("s", "1")]
    m.apply(removed=[missing])
    m.apply(added=[missing])
    assert m.rows(STAR_HEAD) == [("other", "1"), ("s", "1")]
