"""The engine over column sources, several sources, and a base that many evaluations share."""

from __future__ import annotations

import gc
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.columns import ArraySource
from engine.programs import BASE, random_fact, random_facts, random_program
from executors import reference
from lace.datalog.engine import Base, evaluate, materialize
from lace.datalog.language.comparisons import text_shape
from lace.datalog.language.parser import parse_atom, parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.planning.plan import chain
from lace.datalog.source import ColumnSource, MemorySource
from lace.errors import InvalidLacegram
from tries import tries

seeds = st.integers(0, 2**32)
FIELD, HAVE = Predicate("Field", 4), Predicate("Have", 1)
SELECT = "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'Name',_,K), TextShape(K,'links/','','')."


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def records(count: int) -> list[Fact]:
    facts = [Fact(HAVE, (f"P{n}",)) for n in range(count)]
    for n in range(count):
        facts.append(Fact(FIELD, (f"P{n}", "Group", "0", "u" if n % 2 else "v")))
        facts.append(Fact(FIELD, (f"P{n}", "Name", "0", f"links/{n}" if n % 3 else f"notes/{n}")))
    return facts


@pytest.mark.clause("030-CLASS-15", "030-FS-06", "030-FS-07", "030-CLASS-09")
@given(seeds)
@tries(80)
def test_a_store_and_runtime_facts_together_are_like_one_set_of_facts(seed: int) -> None:
    random = Random(seed)
    program, stored, runtime = (
        check_program(random_program(random), RAW_PROFILE),
        random_facts(random),
        random_facts(random),
    )
    expected = reference.evaluate(program, {*stored, *runtime})
    base = Base([ArraySource(stored), MemorySource(runtime)])
    for result in (
        evaluate(program, ArraySource(stored), extra=runtime),
        evaluate(program, base),
        evaluate(program, base),
        evaluate(program, runtime, extra=stored),
    ):
        assert {predicate: set(result.rows(predicate)) for predicate in result.derived} == expected


@given(seeds)
@tries(40)
def test_changes_beside_a_store_are_followed(seed: int) -> None:
    random = Random(seed)
    program, stored = check_program(random_program(random), RAW_PROFILE), set(random_facts(random))
    m = materialize(program, ArraySource(stored))
    for _ in range(3):
        added, removed = {random_fact(random)}, set(random.sample(sorted(stored), min(2, len(stored))))
        m.apply(added, removed)
        stored = (stored - removed) | added
        expected = reference.evaluate(program, stored)
        assert {predicate: set(m.rows(predicate)) for predicate in program.derived} == expected


def test_a_column_source_is_recognised() -> None:
    assert isinstance(ArraySource([]), ColumnSource)


def test_constants_read_only_their_slice() -> None:
    source = ArraySource(records(50))
    result = evaluate(checked(SELECT), source)
    assert result.rows(Predicate("Selected", 1)) == sorted((f"P{n}",) for n in range(50) if n % 2 and n % 3)
    assert f"columns {FIELD}" not in source.read


@pytest.mark.clause("030-CLASS-16")
def test_evaluations_over_one_base_do_not_touch_each_other() -> None:
    base = Base(ArraySource(records(20)))
    program = checked(SELECT)
    plain = evaluate(program, base).rows(Predicate("Selected", 1))
    own = [Fact(HAVE, ("X",)), Fact(FIELD, ("X", "Group", "0", "u")), Fact(FIELD, ("X", "Name", "0", "links/x"))]
    more = evaluate(program, base, extra=own)
    assert ("X",) in more.rows(Predicate("Selected", 1))
    assert evaluate(program, base).rows(Predicate("Selected", 1)) == plain


def test_rows_columns_membership_arrow_and_pandas_agree() -> None:
    result = evaluate(checked(SELECT), records(30))
    selected = Predicate("Selected", 1)
    rows = result.rows(selected)
    assert result.to_arrow(selected, ["id"]).column("id").to_pylist() == [row[0] for row in rows]
    assert sorted(result.to_pandas(selected)["c0"]) == [row[0] for row in rows]
    assert len(result.columns(selected)[0]) == result.count(selected) == len(rows)
    assert all(result.contains(Fact(selected, row)) for row in rows)
    assert not result.contains(Fact(selected, ("P0",)))
    assert not result.contains(Fact(selected, ("never seen",)))


def test_figures_of_a_run_are_kept_per_node() -> None:
    result = evaluate(checked(SELECT), records(30))
    text = "\n".join(result.stats.lines())
    assert "Scan Field(P,'Group',_,'u')" in text
    assert "10 rows" in text
    assert result.stats.memory_bytes > 0
    assert result.stats.rounds == {"Selected/1": 1}


def test_every_node_of_a_plan_has_its_rows_and_its_time() -> None:
    text = "Reach(X) :- Start(X).\nReach(Y) :- Reach(X), Edge(X,Y).\nLone() :- Start(X), not Edge(X,X)."
    edges = [Fact(Predicate("Edge", 2), pair) for pair in (("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "a"))]
    stats = evaluate(checked(text), [Fact(Predicate("Start", 1), ("a",)), *edges]).stats
    rows = {str(node): stats.of(node).rows for plan in stats.plans for node in chain(plan.root) if stats.of(node).rows}
    assert rows == {
        "Scan Start(X)": 1,
        "Project Reach(X)": 1,  # a
        "Scan delta Reach(X)": 4,  # each fact once, over all rounds
        "Join on (X) Scan Edge(X,Y)": 5,  # every edge is walked
        "Project Reach(Y)": 3,  # b, c, d; that d and a were found again is no new fact
        "Without on (X) Scan Edge(X,X)": 1,
        "Project Lone()": 1,
    }
    assert all(stats.of(plan.root).seconds > 0 for plan in stats.plans if stats.of(plan.root).rows)


@pytest.mark.parametrize("end", ["", "x", "s/"])
@pytest.mark.clause("030-SHAPE-07")
def test_prefix_and_suffix_over_columns_are_what_the_builtin_says(end: str) -> None:
    texts = [
        "",
        "links",
        "links/",
        "links/x",
        "links/é",
        "linkſ/x",
        "ll",
        "links/s/",
        "s/",
        "links/\0x",
        "x",
        "LINKS/x",
    ]
    facts = [Fact(Predicate("T", 1), (text,)) for text in texts]
    result = evaluate(checked(f"Out(K) :- T(K), TextShape(K,'links/','','{end}')."), facts)
    assert {row[0] for row in result.rows(Predicate("Out", 1))} == {
        text for text in texts if text_shape(text, "links/", "", end)
    }


@pytest.mark.clause("030-SHADOW-01")
def test_facts_of_a_derived_predicate_are_refused() -> None:
    with pytest.raises(InvalidLacegram):
        evaluate(checked("Out(X) :- Node(X)."), [], extra=[Fact(Predicate("Out", 1), ("a",))])


def test_a_fact_with_another_number_of_values_is_refused() -> None:
    with pytest.raises(InvalidLacegram):
        evaluate(checked("Out(X) :- Node(X)."), [Fact(BASE[1], ("a", "b"))])


def test_goals_over_a_base_answer_twice_the_same() -> None:
    base = Base(ArraySource(records(40)))
    goal = parse_atom("Selected('P5')")
    for _ in range(2):
        assert evaluate(checked(SELECT), base, goals=[goal]).rows(goal.predicate) == [("P5",)]


def test_facts_that_an_evaluation_keeps_are_no_lists_that_the_cycle_collector_looks_through() -> None:
    facts = records(2_000)
    known = {id(found) for found in long_lists()}
    base = Base(fact for fact in facts)
    result = evaluate(checked(SELECT), base, extra=facts[:1_500])
    assert [len(found) for found in long_lists() if id(found) not in known] == []
    assert len(set(result.rows(Predicate("Selected", 1)))) == 667


def long_lists() -> list[list[object]]:
    return [found for found in gc.get_objects() if type(found) is list and len(found) >= 1_000]
