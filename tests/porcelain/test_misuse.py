"""Ordinary misuse: an error of ours that says what to write, and nothing stored."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

import lace

EDGE = lace.Predicate("Edge", 2)
RULES = "P(X) :- Edge(X,_)."
WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "a naive datetime": (lambda one: put(one, tai=datetime(2026, 1, 1)), "needs a time zone"),
    "a number as time": (lambda one: put(one, tai=1640995200), "a time is text, such as '1640995200:000000000'"),
    "a number as name": (lambda one: put(one, name=5), "name is text, such as 'links/1', and not int"),
    "a number in a header": (lambda one: put(one, headers={"Size": 5}), "the value of Size is text"),
    "a number as key": (lambda one: put(one, sign=5), "sign is a SigningKey"),
    "a number to get": (lambda one: one.get(5), "a record's name is text, such as '//group//app//name'"),
    "a tuple to get": (lambda one: one.get(("u", "a", "n")), "and not tuple"),
    "a number to delete": (lambda one: one.delete(5), "a record's name is text"),
    "a number to select": (lambda one: lace.exchange(one, one, select=5), "select is text"),
    "a number to expose": (lambda one: lace.exchange(one, one, expose=5), "expose is text"),
    "tuples for facts": (lambda _: lace.query([("a", "b")], RULES), r"a fact is lace.Fact\(lace.Predicate"),
    "numbers in facts": (lambda _: lace.query([lace.Fact(EDGE, (1, 2))], RULES), r"write str\(1\)"),
    "a path for a lace": (lambda one: lace.exchange(one, "b.lace"), r"give an open lace, `lace.open\("),
    "a path for a node": (lambda _: lace.Node("b.lace"), "give an open lace"),
    "a lace for a path": (lambda one: lace.compact(one), "give the path of its file"),
    "too few values": (lambda _: lace.query([lace.Fact(EDGE, ("a",))], RULES), "takes 2 values, and is given 1"),
}


def put(one: Any, **changed: Any) -> object:
    return one.put(b"x", **{"group": "u", "app": "a", "name": "n", **changed})


@pytest.mark.parametrize("what", WRONG)
def test_misuse_says_what_to_write_and_stores_nothing(what: str) -> None:
    notes = lace.open(":memory:")
    misuse, said = WRONG[what]
    with pytest.raises(lace.LaceError, match=said):
        misuse(notes)
    assert list(notes.list()) == []


def test_a_datetime_is_a_time_whatever_its_zone() -> None:
    notes = lace.open(":memory:")
    moment = datetime(2022, 1, 1, 12, 30, 0, 250_000, UTC)
    put(notes, tai=moment)
    (row,) = notes.list()
    assert lace.TAI.parse(row["TAI"]) == lace.TAI.of_unix_ns(1_641_040_200_250_000_000)
    first = put(lace.open(":memory:"), tai=moment)
    assert put(lace.open(":memory:"), tai=moment.astimezone(timezone(timedelta(hours=-5)))) == first


def test_a_lace_that_has_no_answer_to_a_misspelt_question_warns_where_it_was_asked() -> None:
    notes = lace.open(":memory:")
    put(notes)
    with pytest.warns(lace.RulesWarning, match=r"nothing supplies Hav/1.*\n.*\n.*\n?.*did you mean Have\?") as told:
        answer = notes.query("Named(P) :- Hav(P).")
    assert [each.filename for each in told] == [__file__]
    assert [doubt.line for doubt in answer.doubts] == [1]
    with pytest.warns(lace.RulesWarning) as told:
        lace.query(notes, "Named(P) :- Hav(P).")
    assert [each.filename for each in told] == [__file__]
    assert notes.query("Named(P) :- Have(P), Field(P,'Name',_,'m').").doubts == ()
    assert notes.query("Named(P) :- Hav(P).", extra=[lace.Fact(lace.Predicate("Hav", 1), ("x",))]).rows() == [("x",)]
