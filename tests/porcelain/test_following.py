"""`lace.follow_rules`: a view is always what evaluating its rules anew would give."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lace
from engine.programs import random_fact, random_facts, random_program
from executors.reference import evaluate
from lace.datalog.language.formatting import format_rule
from lace.datalog.language.validate import RAW_PROFILE, check_program
from tries import tries

EDGE, PATH, SHOWN, PICKED = (
    lace.Predicate(name, arity) for name, arity in (("Edge", 2), ("Path", 2), ("Shown", 1), ("Picked", 1))
)
CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."
NOTES = "Shown(P) :- Have(P), Field(P,'Group',_,'u'), not Hidden(P).\nHidden(P) :- Hide(P)."


def edges(*pairs: str) -> list[lace.Fact]:
    return [lace.Fact(EDGE, tuple(pair)) for pair in pairs]


@given(st.integers(0, 2**32))
@tries(25)
def test_a_view_its_changes_its_cursors_and_its_snapshots_agree_with_evaluation(seed: int) -> None:
    random = Random(seed)
    program = random_program(random)
    facts = set(random_facts(random))
    view = lace.follow_rules("\n".join(map(format_rule, program.rules)), sorted(facts))
    checked = check_program(program, RAW_PROFILE)
    moments = [(view.cursor, view.snapshot(), evaluate(checked, sorted(facts)))]
    for _ in range(4):
        removed = set(random.sample(sorted(facts), min(len(facts), random.choice((0, 1, 3)))))
        added = {random_fact(random) for _ in range(random.choice((0, 1, 3)))}
        facts = (facts - removed) | added
        changes = view.apply(sorted(added), sorted(removed))
        assert changes.cursor == view.cursor
        moments.append((view.cursor, view.snapshot(), evaluate(checked, sorted(facts))))
    now = moments[-1][2]
    assert set(view) == {lace.Fact(predicate, row) for predicate, rows in now.items() for row in rows}
    for cursor, snapshot, then in moments:
        since = view.since(cursor)
        for predicate in view.predicates:
            assert snapshot.rows(predicate) == sorted(then[predicate])
            if predicate not in view.counted_only:
                assert set(since.added.get(predicate, ())) == now[predicate] - then[predicate]
                assert set(since.removed.get(predicate, ())) == then[predicate] - now[predicate]


def test_a_view_over_a_lace_follows_what_is_put_and_deleted_by_anybody() -> None:
    with lace.open(":memory:") as notes:
        view = lace.follow_rules(NOTES, notes)
        assert view.rows("Shown") == []
        first = notes.put(b"one", group="u", app="a", name="1")
        notes.put(b"two", group="v", app="a", name="2")
        assert view.rows("Shown") == []  # until it is asked to follow
        assert view.apply().added == {SHOWN: ((first,),)}
        assert not view.apply()
        notes.delete(first)
        assert view.apply().removed == {SHOWN: ((first,),)}
        with pytest.warns(lace.RulesWarning, match="nothing supplies Hide/1"):
            assert view.rows("Shown") == notes.query(NOTES, "Shown(P)").rows() == []


def test_facts_stand_beside_those_of_a_lace() -> None:
    hide = lace.Predicate("Hide", 1)
    with lace.open(":memory:") as notes:
        first = notes.put(b"one", group="u", app="a", name="1")
        view = lace.follow_rules(NOTES, notes)
        assert view.apply(added=[lace.Fact(hide, (first,))]).removed == {SHOWN: ((first,),)}
        second = notes.put(b"two", group="u", app="a", name="2")
        assert view.apply(removed=[lace.Fact(hide, (first,))]).added == {SHOWN: tuple(sorted([(first,), (second,)]))}
        with pytest.raises(lace.InvalidInput, match="only facts that were passed in"):
            view.apply(removed=[lace.Fact(lace.Predicate("Have", 1), (first,))])
        # What is handed in and stored stays as long as one of both holds it.
        group = lace.Fact(lace.Predicate("Field", 4), (first, "Group", "0", "u"))
        view.apply(added=[group])
        assert not view.apply(removed=[group])
        assert view.count("Shown") == 2


@pytest.mark.parametrize("most", [0, 3, 100_000])
def test_a_lace_that_changed_too_much_is_read_anew_with_the_same_outcome(most: int) -> None:
    with lace.open(":memory:") as notes:
        old = [notes.put(str(n).encode(), group="u", app="a", name=str(n)) for n in range(5)]
        view = lace.follow_rules(NOTES, notes, max_followed_facts=most)
        view.apply(added=[lace.Fact(lace.Predicate("Hide", 1), (old[0],))])
        start = view.cursor
        notes.delete(old[1], old[2])
        new = [notes.put(str(n).encode(), group="u", app="b", name=str(n)) for n in range(3)]
        changes = view.apply()
        assert set(changes.added[SHOWN]) == {(record,) for record in new}
        assert set(changes.removed[SHOWN]) == {(record,) for record in old[1:3]}
        assert view.since(start).added == changes.added
        assert (old[0],) not in view.rows("Shown")
        kept, shown = view.snapshot(), view.rows("Shown")
        view.close()
        assert kept.rows("Shown") == shown


def test_a_change_that_fails_leaves_the_view_as_it_was() -> None:
    view = lace.follow_rules(CLOSURE, edges("ab"), limits=lace.EngineLimits(max_derived_facts_per_predicate=3))
    before = view.cursor, view.rows("Path")
    with pytest.raises(lace.LimitExceeded):
        view.apply(added=edges("bc", "cd"))
    with pytest.raises(lace.InvalidLacegram):
        view.apply(added=[lace.Fact(PATH, ("a", "b"))])
    assert (view.cursor, view.rows("Path")) == before
    view.apply(added=edges("bc"))
    assert view.count("Path") == 3


def test_a_view_can_be_stopped_and_goes_on_afterwards() -> None:
    stop = [False]
    view = lace.follow_rules(CLOSURE, edges("ab"), interrupt=lambda: stop[0])
    stop[0] = True
    with pytest.raises(lace.EvaluationStopped):
        view.apply(added=edges("bc"))
    stop[0] = False
    assert view.rows("Path") == [("a", "b")]
    assert view.apply(added=edges("bc")).added[PATH] == (("a", "c"), ("b", "c"))
    assert view.rows_touched > 0


def test_a_cursor_that_is_too_old_or_no_cursor_is_refused() -> None:
    view = lace.follow_rules(CLOSURE, [], max_kept_changes=2)
    start = view.cursor
    for pair in ("ab", "bc", "cd"):
        view.apply(added=edges(pair))
    assert len(view.since("1").added[PATH]) == 5
    for cursor in (start, "4", "-1", "x", ""):
        with pytest.raises(lace.CursorExpired):
            view.since(cursor)


def test_what_is_kept_for_cursors_is_bounded_by_facts_too() -> None:
    view = lace.follow_rules(CLOSURE, [], max_kept_facts=3)
    view.apply(added=edges("ab"))
    start = view.cursor
    view.apply(added=edges("bc", "cd"))  # five facts
    with pytest.raises(lace.CursorExpired):
        view.since(start)


def test_facts_are_asked_for_by_name_and_unknown_names_are_refused() -> None:
    view = lace.follow_rules("P(X) :- Edge(X,_).\nP(X,Y) :- Edge(X,Y).\nQ(X) :- P(X).", edges("ab"))
    assert view.rows("Q") == view.rows(lace.Predicate("P", 1)) == view.rows("P/1") == [("a",)]
    assert lace.Fact(lace.Predicate("P", 2), ("a", "b")) in view
    assert lace.Fact(EDGE, ("a", "b")) not in view  # given, not derived
    for name in ("P", "Edge", "R"):
        with pytest.raises(lace.NotFound, match="P/1"):
            view.rows(name)


def test_rules_say_their_own_limits_unless_others_are_handed_in() -> None:
    rules = '#:json {"limits": {"max_derived_facts_per_predicate": 5}}\n' + CLOSURE
    few, many = edges("ab", "bc"), edges("ab", "bc", "cd")
    assert lace.follow_rules(rules, few).count("Path") == 3
    with pytest.raises(lace.LimitExceeded):
        lace.follow_rules(rules, many)
    view = lace.follow_rules(rules, few)
    with pytest.raises(lace.LimitExceeded):
        view.apply(added=edges("cd"))
    assert view.count("Path") == 3
    assert lace.follow_rules(rules, many, limits=lace.EngineLimits()).count("Path") == 6


def test_a_path_is_no_source_since_a_view_needs_its_lace_open(tmp_path: Path) -> None:
    for source in (tmp_path / "notes.lace", str(tmp_path / "notes.lace")):
        with pytest.raises(lace.InvalidInput, match="open"):
            lace.follow_rules(NOTES, source)  # type: ignore[arg-type]


def test_a_closed_view_says_so_and_what_it_gave_out_stays() -> None:
    view = lace.follow_rules(CLOSURE, edges("ab", "bc"))
    snapshot, changes = view.snapshot(), view.apply(added=edges("cd"))
    view.close()
    view.close()
    assert len(snapshot.rows("Path")) == 3
    assert len(changes.added[PATH]) == 3
    for use in (view.snapshot, view.apply, lambda: view.rows("Path"), lambda: list(view)):
        with pytest.raises(lace.InvalidInput, match="closed"):
            use()


def test_an_explanation_can_be_stopped_too() -> None:
    from lace.porcelain.explain import Explainer

    stop = [False]
    explainer = Explainer(edges("ab", "bc"), CLOSURE, interrupt=lambda: stop[0])
    assert explainer.explain("Path('a','c')").holds
    stop[0] = True
    for goal in ("Path('a','b')", "Path('c','a')", "Edge('c','a')"):
        with pytest.raises(lace.EvaluationStopped):
            explainer.explain(goal)
