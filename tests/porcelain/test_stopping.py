"""Questions that are told to stop: `lace.query` and `lace.explain` end, keep nothing, and answer the next time."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

import lace
from lace import Fact, Predicate
from lace.errors import EvaluationStopped

NODES = [Fact(Predicate("Node", 1), (str(number),)) for number in range(400)]
MANY = "Many(X,Y,Z) :- Node(X), Node(Y), Node(Z)."


def test_a_query_ends_at_its_deadline_and_when_it_is_told() -> None:
    told = threading.Event()
    asked: list[str] = []

    def interrupt() -> bool:
        asked.append(threading.current_thread().name)
        return told.is_set()

    found: list[BaseException] = []

    def ask() -> None:
        try:
            lace.query(NODES, MANY, interrupt=interrupt)
        except EvaluationStopped as error:
            found.append(error)

    thread = threading.Thread(target=ask, name="asking")
    thread.start()
    while not asked:
        told.wait(0.001)
    told.set()
    thread.join()
    assert len(found) == 1
    assert set(asked) == {"asking"}
    with pytest.raises(EvaluationStopped):
        lace.query(NODES, MANY, deadline_s=0)
    assert len(lace.query(NODES, MANY, "Many('1','2',Z)", deadline_s=600)) == 400


@pytest.mark.parametrize("ask", [lace.Lace.query, lace.Lace.explain], ids=["query", "explain"])
def test_questions_to_an_open_lace_take_the_same(ask: Callable[..., object]) -> None:
    with lace.open(":memory:") as notes:
        record = notes.put(b"x", group="u", app="a", name="n")
        rules = "Named(P) :- Have(P), Field(P,'Name',_,_)."
        with pytest.raises(EvaluationStopped):
            ask(notes, rules, "Named(P)", deadline_s=0)
        with pytest.raises(EvaluationStopped):
            ask(notes, rules, "Named(P)", interrupt=lambda: True)
        assert str(record) in str(notes.explain(rules, "Named(P)", deadline_s=600))
        assert notes.query(rules, "Named(P)", deadline_s=600).rows() == [(record,)]


def test_an_answer_is_read_in_pages() -> None:
    answer = lace.query(NODES, "Seen(X) :- Node(X).")
    pages = list(answer.pages(150))
    assert list(map(len, pages)) == [150, 150, 100]
    assert [row for page in pages for row in page] == answer.rows()
    assert list(lace.query(NODES, "Yes() :- Node(_).").pages()) == [[()]]
    assert list(lace.query(NODES, "No() :- Node('x').").pages()) == []
