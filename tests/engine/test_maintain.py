"""Incremental evaluation against full evaluation."""

from __future__ import annotations

import gc
import tracemalloc
from array import array
from collections.abc import Callable, Iterable, Sequence
from random import Random
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import BASE, random_fact, random_facts, random_program
from engine.rankings import ORDERS, rank_fact
from executors import reference
from lace.datalog.engine import Materialized, evaluate, materialize
from lace.datalog.engine.row_lookup import Visibility
from lace.datalog.engine.runs import NO_SELECTION
from lace.datalog.engine.table import Table
from lace.datalog.engine.table_views import FixedTableView
from lace.datalog.engine.tombstones import run_of
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, CheckedProgram, check_program
from lace.datalog.planning.plan import Version
from lace.datalog.source import ColumnSource, MemorySource
from lace.errors import InvalidLacegram, LimitExceeded
from lace.limits import EngineLimits
from lace.thresholds import ENGINE_THRESHOLDS, EngineThresholds
from tries import tries

seeds = st.integers(0, 2**32)


def checked(text: str) -> CheckedProgram:
    return check_program(parse_program(text), RAW_PROFILE)


def state(m: Materialized, program: CheckedProgram) -> dict[Predicate, set[tuple[str, ...]]]:
    return {predicate: set(m.rows(predicate)) for predicate in program.derived}


def follow(
    program: CheckedProgram,
    facts: set[Fact],
    random: Random,
    steps: int,
    make: Callable[[Random], Fact],
    thresholds: EngineThresholds = ENGINE_THRESHOLDS,
) -> None:
    m = materialize(program, sorted(facts), thresholds=thresholds)
    for step in range(steps):
        before = state(m, program)
        if step % 3 == 1:
            suppose(m, program, facts, {make(random) for _ in range(random.choice((1, 2, 8)))})
        removed = set(random.sample(sorted(facts), min(len(facts), random.choice((0, 1, 1, 2, 4)))))
        added = {make(random) for _ in range(random.choice((0, 1, 1, 2, 4)))}
        changes = m.apply(sorted(added), sorted(removed))
        facts = (facts - removed) | added
        after = reference.evaluate(program, sorted(facts))
        assert state(m, program) == after
        for predicate in program.derived - m.ranked:
            assert set(changes.added.get(predicate, ())) == after[predicate] - before[predicate]
            assert set(changes.removed.get(predicate, ())) == before[predicate] - after[predicate]


def suppose(m: Materialized, program: CheckedProgram, facts: set[Fact], more: set[Fact]) -> None:
    """More facts for one question tell what they would change, and nothing of them stays."""
    before = state(m, program)
    changes = m.suppose(sorted(more))
    after = reference.evaluate(program, sorted(facts | more))
    for predicate in program.derived - m.ranked:
        assert set(changes.added.get(predicate, ())) == after[predicate] - before[predicate]
        assert set(changes.removed.get(predicate, ())) == before[predicate] - after[predicate]
    assert state(m, program) == before


@pytest.mark.long
@pytest.mark.clause("030-INCR-01", "030-INCR-02", "030-INCR-03", "030-INCR-04", "030-INCR-05")
@given(seeds)
@tries(100)
def test_any_edit_script_gives_what_full_evaluation_gives(seed: int) -> None:
    random = Random(seed)
    program = check_program(random_program(random), RAW_PROFILE)
    follow(program, set(random_facts(random)), random, 6, random_fact)


@pytest.mark.clause("030-INCR-02", "030-INCR-05")
@pytest.mark.parametrize("text", ORDERS.values(), ids=ORDERS.keys())
@given(seeds)
@tries(10)
def test_ranks_follow_their_candidates(text: str, seed: int) -> None:
    random = Random(seed)
    facts = {rank_fact(random) for _ in range(random.randint(0, 12))}
    follow(checked(text), facts, random, 6, rank_fact)


def test_a_candidate_with_two_keys_is_looked_at_again_whatever_its_number() -> None:
    """c counts by its lesser key, and is numbered before all that stand there by their only one."""
    program, cand = checked(ORDERS["integers"]), Predicate("Cand", 2)
    rows = [("c", "1"), ("c", "3"), ("e", "1"), ("g", "1"), ("h", "1")]
    m = materialize(program, [Fact(cand, row) for row in rows])
    assert ("c",) in m.rows(Predicate("Top", 1))
    m.apply([Fact(cand, ("d", "3")), Fact(cand, ("f", "01"))], [])
    assert set(m.rows(Predicate("Top", 1))) == {("d",)}


CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y).\nFar(X,Y) :- Node(X), Node(Y), not Path(X,Y)."


def small_edge(random: Random) -> Fact:
    if random.random() < 0.2:
        return Fact(BASE[1], (random.choice("abcde"),))
    return Fact(BASE[0], (random.choice("abcde"), random.choice("abcde")))


@pytest.mark.clause("030-INCR-04", "030-INCR-03")
@given(seeds)
@tries(40)
def test_facts_in_a_circle_do_not_keep_each_other_alive(seed: int) -> None:
    random = Random(seed)
    follow(checked(CLOSURE), {small_edge(random) for _ in range(8)}, random, 8, small_edge)


@given(seeds)
@tries(30)
def test_large_changes_are_computed_anew_with_the_same_result(seed: int) -> None:
    random = Random(seed)
    program = check_program(random_program(random), RAW_PROFILE)
    ways = EngineThresholds(follow_share=0, follow_rows=random.choice((-1, 100, 1000)), flush_rows=0)
    follow(program, set(random_facts(random)), random, 4, random_fact, ways)


class Numbers(MemorySource):
    """Edges n → n + 1 without every fourth, as columns; the texts of codes are their numbers."""

    def __init__(self, edges: int) -> None:
        super().__init__()
        self.code_count = edges // 3 * 4 + 4
        self._starts = array("I", (n for n in range(self.code_count) if n % 4 != 3))[:edges]

    def predicates(self) -> Iterable[Predicate]:
        return [BASE[0]]

    def count(self, predicate: Predicate) -> int:
        return len(self._starts) if predicate == BASE[0] else 0

    def codes(self, texts: Sequence[str]) -> list[int]:
        return [int(text) if text.isdigit() and int(text) < self.code_count else -1 for text in texts]

    def texts(self, codes: memoryview) -> list[str]:
        return list(map(str, codes))

    def columns(self, predicate: Predicate) -> Sequence[memoryview]:
        return [memoryview(self._starts), memoryview(array("I", [n + 1 for n in self._starts]))]

    def slices(self, predicate: Predicate, position: int) -> None:
        return None


def most_memory(work: Callable[[], object]) -> int:
    """The bytes that a piece of work holds at once: arrays over a whole relation show here, whoever runs it."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.clause("030-INCR-07")
@pytest.mark.long
def test_one_fact_in_a_million_costs_a_small_part_of_evaluating_anew() -> None:
    program = checked("Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y).")
    source = Numbers(2**20)
    assert isinstance(source, ColumnSource)
    edge, lookup = Fact(BASE[0], ("3", "4")), Predicate("Path", 2)
    m = materialize(program, source)
    before = m.count(lookup)
    m.apply(added=[edge])  # indexes for changes are built once
    assert m.count(lookup) == before + 16  # each of 4 places before the gap now reaches each of 4 after it
    m.apply(removed=[edge])
    full = most_memory(lambda: evaluate(program, source))
    more = most_memory(lambda: m.apply(added=[edge]))
    assert m.count(lookup) == before + 16
    less = most_memory(lambda: m.apply(removed=[edge]))
    assert m.count(lookup) == before
    assert max(more, less) * 1000 < full


@pytest.mark.clause("030-LIM-10", "030-LIM-09")
def test_a_change_that_passes_a_limit_leaves_everything_as_it_was() -> None:
    edges = [Fact(BASE[0], (str(n), str(n + 1))) for n in range(4)]
    program = checked(CLOSURE)
    m = materialize(program, edges, EngineLimits(max_derived_facts_per_predicate=10))
    before = state(m, program)
    with pytest.raises(LimitExceeded, match="max_derived_facts_per_predicate"):
        m.apply(added=[Fact(BASE[0], ("4", "5"))])
    assert state(m, program) == before
    m.apply(added=[Fact(BASE[0], ("4", "5"))], removed=[edges[0]])
    assert m.contains(Fact(Predicate("Path", 2), ("1", "5")))
    assert m.count(Predicate("Path", 2)) == 10


@pytest.mark.clause("030-SHADOW-01")
def test_a_change_cannot_bring_facts_of_a_derived_predicate() -> None:
    m = materialize(checked(CLOSURE), [])
    with pytest.raises(InvalidLacegram):
        m.apply(added=[Fact(Predicate("Path", 2), ("a", "b"))])


def test_a_value_that_no_fact_may_hold_changes_nothing() -> None:
    m = materialize(checked(CLOSURE), [])
    with pytest.raises(LimitExceeded):
        m.apply(added=[Fact(BASE[0], ("a", "b")), Fact(BASE[0], ("a", "x" * 1025))])
    assert m.rows(Predicate("Path", 2)) == []


def test_what_came_and_went_beside_a_small_table_is_read_as_one_run_when_rules_are_computed_anew() -> None:
    table = Table(Predicate("Edge", 2), run_of([(n, n + 1) for n in range(50)], 2, 60))
    for change in (table.remove, table.add):  # the same row stands beside the columns from now on
        assert change((20, 21))
        table.commit()
    assert table.add((55, 56))
    assert len(table.views(NO_SELECTION, Visibility.NEW)) == 3
    for selection in (NO_SELECTION, (((0, 20),), ())):
        (run,) = FixedTableView(table).views(Version.ALL, selection)
        rows = set(zip(run.column(0).tolist(), run.column(1).tolist(), strict=True))
        wanted = {(n, n + 1) for n in (*range(50), 55)}
        assert rows == {row for row in wanted if selection == NO_SELECTION or row[0] == 20}


def test_rounds_of_a_change_may_reach_their_limit_and_not_pass_it() -> None:
    """The first edge leads on to the end of a chain of six, one node further with each round."""
    edges = [Fact(BASE[0], (str(n), str(n + 1))) for n in range(6)]
    for allowed in (6, 5):
        m = materialize(checked(CLOSURE), edges[1:], EngineLimits(max_stratum_iterations=allowed))
        if allowed == 6:
            assert len(m.apply(added=edges[:1]).added[Predicate("Path", 2)]) == 6
        else:
            with pytest.raises(LimitExceeded, match="max_stratum_iterations"):
                m.apply(added=edges[:1])
            assert m.count(Predicate("Path", 2)) == 15


@pytest.mark.parametrize("used", [False, True])
def test_what_is_closed_is_gone_without_the_garbage_collector(used: bool) -> None:
    gc.collect()
    gc.disable()
    try:
        m = materialize(checked(CLOSURE), [Fact(BASE[0], ("1", "2")), Fact(BASE[0], ("2", "3"))], ready=used)
        if used:
            m.apply(added=[Fact(BASE[0], ("3", "1"))])
            m.apply(removed=[Fact(BASE[0], ("1", "2"))])
        held = [
            ref(m),
            ref(m.table(Predicate("Path", 2))),
            ref(m.table(Predicate("Path", 2)).main),
            ref(m.table(BASE[0])),
        ]
        m.close()
        del m
        assert [one() for one in held] == [None] * len(held)
    finally:
        gc.enable()
