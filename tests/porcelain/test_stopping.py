"""Calls that are told to stop end, keep what was durable and no more, and work the next time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from inspect import isfunction, signature
from pathlib import Path
from socket import socket

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


# every long call


LONG = (
    lace.backup,
    lace.browse,
    lace.compact,
    lace.connect,
    lace.exchange,
    lace.explain,
    lace.fetch,
    lace.preview,
    lace.publish,
    lace.query,
    lace.relay,
    lace.repair,
    lace.restore,
    lace.status,
    lace.view,
    lace.why,
    lace.Lace.explain,
    lace.Lace.export,
    lace.Lace.import_,
    lace.Lace.put,
    lace.Lace.query,
    lace.Lace.verify,
)
QUICK = {"check", "generate_key", "plan", "selector", "validate"}  # bounded by the text they are given
GOES_ON = {"follow", "follow_rules", "serve"}  # until its block ends


def test_every_public_function_that_may_take_long_takes_a_deadline_and_an_interrupt() -> None:
    for call in LONG:
        assert {"deadline_s", "interrupt"} <= signature(call).parameters.keys(), call
    functions = {name for name in lace.__all__ if isfunction(getattr(lace, name))}
    assert functions - {call.__name__ for call in LONG} - {"exchange"} == QUICK | GOES_ON


Made = tuple[Path, lace.Lace]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Made]:
    """A lace in a file with some records, a bundle of them and a backup."""
    with lace.open(tmp_path / "a.lace", create=True) as notes:
        with notes.batch() as batch:
            for number in range(50):
                batch.put(b"%d" % number, group="u", app="a", name=str(number))
        notes.export(tmp_path / "all.records")
        yield tmp_path, notes


ALL = {"select": "//u", "expose": "selected"}
STOPPABLE: dict[str, Callable[..., object]] = {
    "backup": lambda at, notes, **until: lace.backup(at / "a.lace", at / "new", **until),
    "restore": lambda at, notes, **until: lace.restore(at / "a.lace", at / "new", **until),
    "compact": lambda at, notes, **until: lace.compact(at / "a.lace", **until),
    "export": lambda at, notes, **until: notes.export(at / "new", **until),
    "import": lambda at, notes, **until: lace.open(":memory:").import_(at / "all.records", **until),
    "verify": lambda at, notes, **until: list(notes.verify(**until)),
    "put": lambda at, notes, **until: notes.put(at / "all.records", group="u", app="b", name="x", **until),
    "exchange": lambda at, notes, **until: lace.exchange(notes, lace.open(":memory:"), **ALL, **until),
    "fetch": lambda at, notes, **until: lace.fetch(lace.open(":memory:"), notes, "//u//a//1", **until),
    "view": lambda at, notes, **until: lace.view(notes, f"V.{'0' * 43}", **ALL, **until),
    "why": lambda at, notes, **until: lace.why(notes, "//u//a//1", lace.open(":memory:"), **ALL, **until),
    "status": lambda at, notes, **until: lace.status(notes, **until),
}


@pytest.mark.parametrize("name", STOPPABLE)
def test_a_call_that_is_told_to_stop_leaves_things_as_they_were_and_works_the_next_time(made: Made, name: str) -> None:
    at, notes = made

    def names() -> list[str]:
        return sorted(path.name for path in at.iterdir() if path.suffix != ".lace-reserve")

    before = names(), notes.stat().records
    call = STOPPABLE[name]
    with pytest.raises(lace.CallStopped):
        call(*made, interrupt=lambda: True)
    with pytest.raises(lace.CallStopped):
        call(*made, deadline_s=0)
    assert (names(), notes.stat().records) == before
    call(*made, deadline_s=600, interrupt=lambda: False)


def test_a_damaged_lace_stays_where_it_is_if_its_repair_is_stopped(made: Made) -> None:
    at, notes = made
    notes.close()
    before = (at / "a.lace").read_bytes()
    with pytest.raises(lace.CallStopped):
        lace.repair(at / "a.lace", interrupt=lambda: True)
    assert (at / "a.lace").read_bytes() == before
    assert not (at / "a.lace.damaged").exists()
    assert lace.repair(at / "a.lace", deadline_s=600).kept == 50


def test_an_exchange_that_is_stopped_keeps_what_came_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with lace.open(":memory:") as notes, lace.open(tmp_path / "b.lace", create=True) as other:
        with notes.batch() as batch:
            for number in range(6_000):
                batch.put(b"%d" % number, group="u", app="a", name=str(number))
        with pytest.raises(lace.CallStopped, match="the next exchange goes on from there"):
            lace.exchange(notes, other, **ALL, interrupt=lambda: other.stat().records > 0)
        kept = other.stat().records
        assert 0 < kept < 6_000
        assert lace.exchange(notes, other, **ALL).raise_for_status().moved == 6_000 - kept


@pytest.mark.parametrize("call", [lace.connect, lace.preview], ids=["connect", "preview"])
def test_a_peer_that_never_answers_is_left_when_the_caller_says_so(call: Callable[..., object]) -> None:
    with socket() as silent, lace.open(":memory:") as notes:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        told = iter([False, False, True])
        with pytest.raises(lace.CallStopped):
            call(notes, f"tcp:127.0.0.1:{silent.getsockname()[1]}", interrupt=lambda: next(told, True))
