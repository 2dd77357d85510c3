"""A fact source seen through a view."""

from __future__ import annotations

import pytest

from lace.datalog.language.formatting import format_rule
from lace.datalog.language.parser import parse_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.source import MemorySource
from lace.facts.predicates import ADVERTISED, FIELD, HAVE, RECORD_LINK, RECORD_PREDICATES
from lace.facts.views import EmptyView, GatedView, ViewSource, constant_gate
from policy.hostile import worlds
from policy.world import advertised, record

FACTS = [*record("x", "X", link="y"), *record("y", "Y", link="x"), *advertised("y")]
VIEW = ViewSource(MemorySource(FACTS), {"x"})


@pytest.mark.clause("020-VIEW-05", "020-RES-03", "020-RES-04", "020-RES-05", "020-RES-06", "020-RES-07", "020-RES-09")
@pytest.mark.parametrize("predicate", RECORD_PREDICATES, ids=str)
def test_only_facts_of_admitted_subjects_show(predicate: Predicate) -> None:
    shown = [values for name, values in FACTS if name == predicate and values[0] == "x"]
    assert list(VIEW.iterate(predicate)) == list(VIEW.query(predicate)) == shown
    assert VIEW.count(predicate) == len(shown) > 0
    assert list(VIEW.query(predicate, "y")) == []


@pytest.mark.clause("020-RES-08")
def test_targets_of_visible_facts_stay() -> None:
    assert list(VIEW.query(RECORD_LINK, None, None, None, None, "y")) == [("x", "+Link", "0", "evidence", "y")]


@pytest.mark.clause("040-LOWER-05")
def test_other_facts_are_not_filtered() -> None:
    assert list(VIEW.iterate(ADVERTISED)) == [("y", "S")]
    assert VIEW.count(ADVERTISED) == 1
    assert set(VIEW.predicates()) >= {HAVE, FIELD, ADVERTISED}


@pytest.mark.clause("020-DISC-05", "020-VIEW-01")
@pytest.mark.parametrize("seed", range(20))
def test_two_stores_with_one_view_are_one_source_to_its_viewer(seed: int) -> None:
    """Whatever is computed from the source, an explanation too, is then the same for both."""
    pair = worlds(seed)
    visible = {fact.values[0] for fact in pair.first if fact.predicate == FIELD and fact.values[3] == "X"}
    first, second = (ViewSource(MemorySource(facts), visible) for facts in (pair.first, pair.second))
    for predicate in {fact.predicate for fact in (*pair.first, *pair.second)}:
        assert set(first.iterate(predicate)) == set(second.iterate(predicate))
        assert first.count(predicate) == second.count(predicate)


def test_a_view_of_nothing_shows_no_record() -> None:
    nothing = ViewSource(MemorySource([Fact(HAVE, ("x",))]), frozenset())
    assert list(nothing.iterate(HAVE)) == []
    assert nothing.count(HAVE) == 0


@pytest.mark.clause("020-RES-12", "020-RES-13")
def test_a_gated_view_holds_what_its_module_asks_for_and_counts_what_is_there() -> None:
    """Atoms of one shape share a view; a `_` is a column of it only where facts are counted; a gate is always there."""
    view = GatedView("v_", constant_gate(Predicate("Sees", 2), "X"))
    body = "Field(R,'name',_,_), not RecordLink(R,_,_,_,_), Cardinality(Field(R,_,_,_),'>','1'), Field(R,'name',_,_)"
    [rule] = parse_program(f"A(R) :- {body}, Have(_), Other(R,_).").rules
    resolved = view.resolve(rule)
    assert resolved is not None
    counted = "Cardinality(v_Field_2(R,_,_,_),'>','1')"
    assert format_rule(resolved) == (
        f"A(R) :- v_Field_0(R), not v_RecordLink_1(R), {counted}, v_Field_0(R), v_Have_3(), Other(R,_)."
    )
    assert [(str(predicate), format_rule(made)) for predicate, made in view.definitions()] == [
        ("Field/4", "v_Field_0(A0) :- Field(A0,'name',_,_), Sees('X',A0)."),
        ("RecordLink/5", "v_RecordLink_1(A0) :- RecordLink(A0,_,_,_,_), Sees('X',A0)."),
        ("Field/4", "v_Field_2(A0,A1,A2,A3) :- Field(A0,A1,A2,A3), Sees('X',A0)."),
        ("Have/1", "v_Have_3() :- Have(A0), Sees('X',A0)."),
    ]


@pytest.mark.clause("020-VIEW-06", "020-GATE-09")
@pytest.mark.parametrize(
    ("body", "resolved"),
    [
        ("Other(R), Have(R)", None),
        ("Other(R), not Have(R)", "Other(R)"),
        ("not Have('x')", "true"),
        ("Other(R), Cardinality(Field(R,_,_,_),'<','1')", "Other(R), Cardinality(v_none_Field(R,_,_,_),'<','1')"),
        ("Other(R), Cardinality(Other(_),'>','0')", "Other(R), Cardinality(Other(_),'>','0')"),
        ("Other(R), not Other('x')", "Other(R), not Other('x')"),
    ],
)
def test_a_view_of_nothing_takes_records_out_of_rules_and_nothing_else(body: str, resolved: str | None) -> None:
    [rule] = parse_program(f"A('a') :- {body}.").rules
    found = EmptyView("v_").resolve(rule)
    assert (None if found is None else format_rule(found)) == (None if resolved is None else f"A('a') :- {resolved}.")
