"""`lace.datalog` as a library: what it answers is what an evaluation of the same facts answers, however it is asked."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from enum import Enum
from random import Random
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.programs import random_facts, random_program
from executors import reference
from lace import datalog
from lace.datalog.language.formatting import format_program
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.language.validate import RAW_PROFILE, check_program
from lace.errors import EvaluationStopped, InvalidInput, InvalidLacegram, LaceError, LimitExceeded, NotFound
from tries import tries

CLOSURE = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."
EDGES = [("a", "b"), ("b", "c"), ("d", "a")]
PATHS = [("a", "b"), ("a", "c"), ("b", "c"), ("d", "a"), ("d", "b"), ("d", "c")]


def database(facts: list[Fact]) -> datalog.Database:
    """Facts as relations; a predicate of several arities cannot be given by name."""
    relations: dict[str, list[tuple[str, ...]]] = {}
    for predicate, values in facts:
        relations.setdefault(predicate.name, []).append(values)
    return datalog.Database(relations)


def test_a_program_answers_a_goal_and_all_outputs() -> None:
    db, program = datalog.Database({"Edge": EDGES}), datalog.compile(CLOSURE + "\nEnd(X) :- Edge(_,X), not Edge(X,_).")
    assert program.run(db, "Path('a',Y)").rows() == [("a", "b"), ("a", "c")]
    assert list(program.run(db, "Path('a',Y)").only) == [("a", "b"), ("a", "c")]
    everything = program.run(db)
    assert set(everything) == {"Path", "End"}
    assert everything["Path"].rows() == PATHS
    assert everything["End"].rows() == [("c",)]
    both = program.run(db, ["Path(X,'a')", "End(X)"])
    assert (both["Path"].rows(), both["End"].names) == ([("d", "a")], ("X",))
    with pytest.raises(InvalidInput, match="choose one of"):
        both.rows()
    with pytest.raises(KeyError, match="Edge"):
        both["Edge"]


@pytest.mark.clause("030-EVAL-04")
@given(st.integers(0, 2**32))
@tries(40)
def test_goals_that_are_asked_again_are_answered_as_the_first_time(seed: int) -> None:
    random = Random(seed)
    program, facts = random_program(random), random_facts(random)
    expected = reference.evaluate(check_program(program, RAW_PROFILE), facts)
    db, compiled = database(facts), datalog.compile(format_program(program))
    predicate = random.choice(sorted(expected))
    rows = sorted(expected[predicate]) or [("a",) * predicate.arity]
    for _ in range(5):
        row = random.choice(rows)
        bound = [random.random() < 0.6 for _ in row]
        terms = [
            "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'" if is_bound else f"V{n}"
            for n, (value, is_bound) in enumerate(zip(row, bound, strict=True))
        ]
        if random.random() < 0.2 and terms:
            bound[0], terms[0], row = True, "'nowhere'", ("nowhere", *row[1:])
        matching = [r for r in rows if r in expected[predicate]]
        wanted = [r for r in matching if all(r[n] == row[n] for n, is_bound in enumerate(bound) if is_bound)]
        if "''" in terms:
            continue  # the empty text is written another way
        assert compiled.run(db, f"{predicate.name}({','.join(terms)})").rows() == wanted


def test_facts_for_one_run_do_not_stay() -> None:
    db, program = datalog.Database({"Edge": EDGES}), datalog.compile(CLOSURE)
    assert ("c", "e") in program.run(db, "Path('c',Y)", extra={"Edge": [("c", "e")]}).rows()
    assert program.run(db, "Path('c',Y)").rows() == []
    assert program.run(db, "Path('c',Y)").rows() == []


def test_tables_are_read_and_given() -> None:
    import pandas
    import polars
    import pyarrow

    columns = {"from": ["a", "b", "d", "a"], "to": ["b", "c", "a", "b"]}
    program = datalog.compile(CLOSURE)
    for table in (pyarrow.table(columns), polars.DataFrame(columns), pandas.DataFrame(columns)):
        db = datalog.Database({"Edge": table})
        assert db.count("Edge") == 3
        answer = program.run(db, "Path(X,Y)")
        assert answer.rows() == PATHS
        assert answer.to_arrow().column_names == ["X", "Y"]
        assert answer.to_polars().rows() == PATHS
        assert list(answer.to_pandas().itertuples(index=False, name=None)) == PATHS
        assert program.run(db, "Path('d',Y)").to_arrow().num_rows == 3
        assert program.run(db, "Path('d',Y)").to_polars().height == 3
    numbers = datalog.Database({"Age": polars.DataFrame({"who": ["a"], "years": [7]})})
    assert numbers.rows("Age") == [("a", "7")]
    with pytest.raises(InvalidInput, match="column 'to' of Edge has 1 nulls"):
        datalog.Database({"Edge": pyarrow.table({"from": ["a"], "to": pyarrow.array([None], pyarrow.string())})})


class Colour(Enum):
    RED = "red"


def test_a_value_has_the_text_that_the_page_states() -> None:
    texts: dict[Any, str] = {
        "x": "x", 7: "7", -3: "-3", True: "true", 0.1: "0.1", Decimal("1.50"): "1.50", b"\x00\xff": "00ff",
        date(2026, 11, 18): "2026-11-18", UUID(int=1): "00000000-0000-0000-0000-000000000001", Colour.RED: "red",
    }  # fmt: skip
    for value, text in texts.items():
        assert datalog.fact_text(value) == text
        assert datalog.Database({"V": [(value,)]}).rows("V") == [(text,)]
    for value in (None, float("nan"), float("inf"), object(), ["a"]):
        with pytest.raises(InvalidInput, match="has no text as a fact value"):
            datalog.fact_text(value)


@pytest.mark.parametrize(
    ("relations", "said"),
    [
        ({"Edge": ["ab"]}, "row 0 of Edge is 'ab'"),
        ({"Edge": [("a", "b"), ("a",)]}, "row 1 of Edge has 1 values, the first 2"),
        ({"Edge": {"a": "b"}}, "Edge is given a dict"),
        ({"Edge": "ab"}, "Edge is given a str"),
        ({"not a name": [("a",)]}, "is not a predicate name"),
        ({"Wide": [tuple("abcdefghi")]}, "has 9 columns"),
        ({"Edge": [("a", None)]}, "None has no text"),
    ],
)
def test_misuse_says_what_to_write(relations: Any, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        datalog.Database(relations)


def test_what_cannot_be_meant_is_told() -> None:
    program = datalog.compile("Two(X,Z) :- Egde(X,Y), Edge(Y,Z), Note(X).")
    db = datalog.Database({"Edge": EDGES, "Note": []})
    assert program.warnings_over(db) == ("the database has no facts of Egde/2; did you mean Edge?",)
    assert datalog.compile("A(X) :- B(X).\nC(X) :- B(X,_).").warnings == (
        "B/1 and B/2: one name with several numbers of values",
    )
    with pytest.raises(InvalidLacegram, match="did you mean Two"):
        program.run(db, "Tow(X,Y)")
    with pytest.raises(InvalidLacegram, match="has facts in the database"):
        datalog.compile("Edge(X,Y) :- Other(X,Y).").run(db)
    with pytest.raises(InvalidLacegram) as found:
        datalog.compile("A(X) :- B(Y).", name="mine")
    assert found.value.place.startswith("mine:1")


def test_a_program_tells_its_strata_and_its_plan() -> None:
    program = datalog.compile(CLOSURE + "\nApart(X) :- Edge(X,_), not Path(X,X).")
    assert [[str(predicate) for predicate in stratum] for stratum in program.strata] == [["Path/2"], ["Apart/1"]]
    assert [str(predicate) for predicate in program.reads] == ["Edge/2"]
    plan = program.plan(datalog.Database({"Edge": EDGES}))
    assert "Without on (X) Scan Path(X,X)" in plan
    assert "rows" in plan


@pytest.mark.clause("030-INCR-02")
def test_a_followed_program_tells_what_changed() -> None:
    db, program = datalog.Database({"Edge": EDGES}), datalog.compile(CLOSURE)
    with program.follow(db) as following:
        delta = following.apply(added={"Edge": [("c", "e")]}, removed={"Edge": [("d", "a"), ("x", "y")]})
        assert delta.added == {"Path": (("a", "e"), ("b", "e"), ("c", "e"))}
        assert delta.removed == {"Path": (("d", "a"), ("d", "b"), ("d", "c"))}
        assert not following.apply(added={"Edge": [("a", "b")]})
        assert following.rows("Path") == [("a", "b"), ("a", "c"), ("a", "e"), ("b", "c"), ("b", "e"), ("c", "e")]
        with pytest.raises(EvaluationStopped):
            following.apply(added={"Edge": [("e", "f")]}, interrupt=lambda: True)
        assert following.count("Path") == 6
        with pytest.raises(NotFound, match="the rules derive Path/2"):
            following.rows("Nothing")
    assert program.run(db, "Path(X,Y)").rows() == PATHS


def test_why_and_why_not_are_trees() -> None:
    db, program = datalog.Database({"Edge": EDGES}), datalog.compile(CLOSURE)
    proof = program.why(db, "Path('d','c')").to_json()
    assert (proof["fact"], proof["holds"]) == ("Path('d','c')", True)
    assert {node["fact"] for node in proof["nodes"]} >= {"Edge('b','c')", "Path('d','b')"}
    absence = program.why_not(db, "Path('c','a')").to_json()
    assert absence["holds"] is False
    assert absence["attempts"][0]["miss"]["kind"] == "missing"
    with pytest.raises(NotFound, match="does not hold"):
        program.why(db, "Path('c','a')")
    with pytest.raises(NotFound, match="holds: ask why"):
        program.why_not(db, "Path('a','b')")


PRODUCT = "Many(X,Y,Z) :- Node(X), Node(Y), Node(Z)."


def stopped(work: Callable[[], object]) -> bool:
    try:
        work()
    except EvaluationStopped:
        return True
    return False


def test_a_run_ends_when_it_is_told_and_the_next_one_answers() -> None:
    db, program = datalog.Database({"Node": [(n,) for n in range(400)]}), datalog.compile(PRODUCT)
    assert stopped(lambda: program.run(db, deadline_s=0))
    assert stopped(lambda: program.run(db, deadline_s=0.05))
    told, ended = threading.Event(), threading.Event()

    def ask() -> None:
        assert stopped(lambda: program.run(db, interrupt=told.is_set))
        ended.set()

    thread = threading.Thread(target=ask)
    thread.start()
    assert stopped(lambda: program.run(db, "Many('1',X,Y)", deadline_s=0)), "another run reads the database"
    told.set()
    thread.join()
    assert ended.is_set()
    assert len(program.run(db, "Many('1','2',Z)").only) == 400
    with pytest.raises(InvalidInput, match="deadline_s is -1"):
        program.run(db, deadline_s=-1)
    small = datalog.compile(PRODUCT, limits=datalog.EngineLimits(max_rows_touched=10_000))
    with pytest.raises(LimitExceeded):
        small.run(db)


def test_threads_may_share_a_program_and_a_database() -> None:
    db, program = datalog.Database({"Edge": [(n, n + 1) for n in range(200)]}), datalog.compile(CLOSURE)
    found: dict[int, int] = {}
    failed: list[LaceError] = []

    def ask(number: int) -> None:
        try:
            for start in range(number, 200, 4):
                found[start] = len(program.run(db, f"Path('{start}',Y)").rows())
        except LaceError as error:
            failed.append(error)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert found == {start: 200 - start for start in range(200)}


def test_every_name_is_there_and_importing_the_package_loads_no_engine() -> None:
    assert all(getattr(datalog, name) is not None for name in datalog.__all__)
    assert set(datalog.__all__) <= set(dir(datalog))
    with pytest.raises(AttributeError, match="no attribute 'databse'"):
        getattr(datalog, "databse")  # noqa: B009  # a type checker finds it too
    code = "import sys, lace.datalog as d; assert 'numpy' not in sys.modules; d.Database; assert 'numpy' in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_predicate_without_places_is_a_fact() -> None:
    db = datalog.Database({"On": [()], "Off": [], "Node": [("a",)]})
    program = datalog.compile("A(X) :- Node(X), On().\nB(X) :- Node(X), not Off().\nC() :- A(_).")
    answers = program.run(db, ["A(X)", "B(X)", "C()"])
    assert [answers[name].rows() for name in "ABC"] == [[("a",)], [("a",)], [()]]
    assert program.run(db, "C()").to_arrow().num_columns == 0
    assert Predicate("On", 0) in db.relations
