"""A program that is compiled once answers as an evaluation does, and nothing of one question is in the next."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.engine import PreparedProgram, RowSource
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import check_program
from lace.errors import EvaluationStopped
from lace.limits import EngineLimits
from lace.thresholds import PreparedThresholds

GOAL, ITEM, BLOCKED, OWNER = Predicate("Good", 1), Predicate("Item", 2), Predicate("Blocked", 1), Predicate("Owner", 1)
RULES = """
Good(X) :- Item(X,G), Owner(G), not Blocked(X).
Good(X) :- Item(X,'any'), Cardinality(Blocked(_),'<','2').
Good('nobody') :- Owner('a'), not Item('nobody','a').
"""
NEVER = PreparedThresholds(max_facts=-1)  # every question is evaluated


def program(thresholds: PreparedThresholds | None = None) -> PreparedProgram:
    return PreparedProgram(check_program(parse_program(RULES)), [GOAL], EngineLimits(), thresholds=thresholds)


def ask(prepared: PreparedProgram, facts: list[Fact], fixed: list[Fact]) -> list[str]:
    return sorted(prepared.ask(GOAL, [RowSource(facts)], fixed).values)


FACTS = st.lists(
    st.one_of(
        st.builds(lambda x, g: Fact(ITEM, (x, g)), st.sampled_from("pqr"), st.sampled_from(["a", "b", "any"])),
        st.builds(lambda x: Fact(BLOCKED, (x,)), st.sampled_from("pqr")),
    ),
    max_size=6,
    unique=True,
)
FIXED = st.sampled_from([[], [Fact(OWNER, ("a",))], [Fact(OWNER, ("a",)), Fact(OWNER, ("b",))]])


@given(questions=st.lists(st.tuples(FACTS, FIXED), max_size=8), max_texts=st.sampled_from([0, 3, 10_000]))
def test_each_answer_is_that_of_an_evaluation_over_its_own_facts(
    questions: list[tuple[list[Fact], list[Fact]]], max_texts: int
) -> None:
    compiled, evaluated = program(PreparedThresholds(max_texts=max_texts)), program(NEVER)
    compiled.get_ready()
    for facts, fixed in questions:
        assert ask(compiled, facts, fixed) == ask(evaluated, facts, fixed)
    compiled.close()


def test_a_question_that_was_broken_off_leaves_nothing_behind() -> None:
    prepared, owner = program(), [Fact(OWNER, ("a",))]
    assert ask(prepared, [Fact(ITEM, ("p", "a"))], owner) == ["nobody", "p"]
    with pytest.raises(EvaluationStopped):
        prepared.ask(GOAL, [RowSource([Fact(ITEM, ("q", "a"))])], owner, lambda: True)
    assert ask(prepared, [Fact(ITEM, ("r", "a"))], owner) == ["nobody", "r"]


def test_a_question_within_a_question_is_answered_too() -> None:
    """As when another thread asks meanwhile: it is evaluated, and nobody waits."""
    prepared, owner = program(), [Fact(OWNER, ("a",))]
    found: list[list[str]] = []

    def meanwhile() -> bool:
        if not found:
            found.append([])
            found.append(ask(prepared, [Fact(ITEM, ("q", "a"))], owner))
        return False

    answer = prepared.ask(GOAL, [RowSource([Fact(ITEM, ("p", "a"))])], owner, meanwhile)
    assert sorted(answer.values) == ["nobody", "p"]
    assert found[1] == ["nobody", "q"]
    assert answer.rows > 0
