"""Blocks of rules that pages of the documentation run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from lace_playground.door import Door

CLUB = "SelectHave(P) :- Have(P), Field(P,'Group',_,'club').\nSelectAdvertised(P,S) :- Advertised(P,S)."
DOOR = Door()


def ask(**question: Any) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(DOOR.answer(json.dumps(question)))
    return answer


def test_a_block_of_rules_gives_a_table_for_each_head_that_nothing_reads() -> None:
    have, advertised = ask(ask="run", rules=CLUB)["tables"]
    assert have["predicate"] == "SelectHave"
    assert sorted(have["rows"]) == [["//club//recipes//bread"], ["//club//recipes//soup"]]
    assert sorted(advertised["rows"]) == [["//ben//todo//today", "ben"], ["//club//recipes//dumplings", "ben"]]


def test_a_block_may_bring_its_own_facts() -> None:
    rules = "Path(X,Y) :- Edge(X,Y).\nPath(X,Z) :- Path(X,Y), Edge(Y,Z)."
    (table,) = ask(ask="run", rules=rules, facts="Edge('a','b')\nEdge('b','c')\n")["tables"]
    assert (table["predicate"], table["columns"]) == ("Path", ["X", "Y"])
    assert table["rows"] == [["a", "b"], ["a", "c"], ["b", "c"]]


def test_why_and_why_not_call_records_by_their_coordinates() -> None:
    held = ask(ask="why_fact", rules=CLUB, goal="SelectHave('//club//recipes//soup')")
    assert held["holds"]
    assert "Field('//club//recipes//soup','Group','0','club')" in held["text"]
    not_held = ask(ask="why_fact", rules=CLUB, goal="SelectHave('//ada//diary//monday')")
    assert not not_held["holds"]
    assert "nearest: Field('//ada//diary//monday','Group','0','ada')" in not_held["text"]


def test_a_misspelt_predicate_is_doubted() -> None:
    (doubt,) = ask(ask="run", rules="SelectHave(P) :- Have(P), Feld(P,'Group',_,'club').")["doubts"]
    assert (doubt["line"], doubt["advice"]) == (1, "did you mean Field?")


@pytest.mark.parametrize(
    "question",
    [
        {"ask": "run", "rules": "Path(X,Y) :- "},
        {"ask": "run", "rules": 3},
        {"ask": "run", "rules": "#" * 30_000},
        {"ask": "run", "rules": CLUB, "facts": "Edge("},
        {"ask": "why_fact", "rules": CLUB, "goal": "nonsense"},
        {"ask": "why_fact", "rules": CLUB},
        {"ask": "run", "rules": "P(A,B,C,D) :- Field(A,_,_,_), Field(B,_,_,_), Field(C,_,_,_), Field(D,_,_,_)."},
    ],
)
def test_what_cannot_be_run_is_an_answer(question: dict[str, Any]) -> None:
    assert "error" in ask(**question)
