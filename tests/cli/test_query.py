"""`lace query` and `lace.query`."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import duckdb
import polars
import pyarrow
import pytest
from click.testing import CliRunner, Result
from pyarrow.parquet import read_table

import lace
from lace.cli.app import app
from lace.datalog.language.parser import parse_facts
from lace.datalog.language.syntax import Fact, Predicate

LINKS = "Selected(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'Name',_,K), TextShape(K,'links/','','')."
PATHS = "Path(X,Y) :- Edge(X,Y).\nPath(X,Y) :- Path(X,Z), Edge(Z,Y)."
EDGES = "Edge('a','b')\nEdge('b','c')\nEdge('x','y')\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "notes.lace"
    with lace.open(path, create=True) as notes:
        for group, name in (("u", "links/1"), ("u", "notes/2"), ("v", "links/3"), ("u", "links/4")):
            notes.put(name.encode(), group=group, app="ding", name=name)
    return path


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text(EDGES, "utf-8")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.mark.clause("030-EX-01")
def test_selected_records_are_shown_with_their_fields(store: Path) -> None:
    result = run("query", str(store), LINKS, "--columns", "Group,Name,Missing", "--json")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["Name"] for row in rows} == {"links/1", "links/4"}
    assert all(row["P"].startswith("P.") and row["Group"] == "u" and row["Missing"] is None for row in rows)
    table = run("query", str(store), LINKS, "--columns", "Name").stdout.splitlines()
    assert table[0].split() == ["P", "Name"]
    assert sorted(line.split()[1] for line in table[1:]) == ["links/1", "links/4"]


def test_rules_run_over_fact_lines_without_a_store(edges: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules.lace"
    rules.write_text("# closure\n" + PATHS, "utf-8")
    assert run("query", "--facts", str(edges), str(rules)).stdout.split() == [*"XY", *"ab", *"ac", *"bc", *"xy"]
    bound = run("query", "--facts", str(edges), str(rules), "--goal", "Path('a',To)", "--json")
    assert [json.loads(line)["To"] for line in bound.stdout.splitlines()] == ["b", "c"]


def test_a_goal_without_places_is_true_or_false(edges: Path) -> None:
    text = "Any() :- Edge(_,'c').\nNone() :- Edge('c',_)."
    assert run("query", "--facts", str(edges), text, "--goal", "Any()").stdout == "true\n"
    assert run("query", "--facts", str(edges), text, "--goal", "None()").stdout == "false\n"


def test_several_heads_need_a_goal(edges: Path) -> None:
    result = run("query", "--facts", str(edges), "A(X) :- Edge(X,_).\nB(X) :- Edge(_,X).")
    assert result.exit_code == 1
    assert "A/1, B/1" in result.stderr


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ("Named(N) :- Feild(P,'Name',_,N).", "did you mean Field?"),
        ("Named(N) :- Field(P,'Naem',_,N).", "did you mean Name?"),
    ],
)
def test_an_empty_answer_to_a_mistyped_question_says_what_is_near(store: Path, rules: str, said: str) -> None:
    for form in ([], ["--json"]):
        result = run("query", str(store), rules, *form)
        assert result.exit_code == 0
        assert said in result.stderr
        assert "did you mean" not in result.stdout


def test_an_answer_with_rows_says_nothing_else(store: Path) -> None:
    assert run("query", str(store), LINKS + "\nOdd(P) :- Feild(P,'Name',_,_).", "--goal", "Selected(P)").stderr == ""


def test_missing_arguments_are_a_usage_error() -> None:
    assert run("query", LINKS).exit_code == 2


def test_python_gets_rows_arrow_and_pandas(store: Path) -> None:
    with lace.open(store) as notes:
        answer = notes.query(LINKS)
        assert len(answer) == 2
        assert answer.to_arrow().column_names == ["P"]
        assert sorted(answer.to_pandas()["P"]) == [row[0] for row in answer]
        again = notes.query(LINKS, f"Selected('{answer.rows()[0][0]}')")
        assert again.rows() == answer.rows()[:1]
        assert again.base is answer.base
        notes.put(b"5", group="u", app="ding", name="links/5")
        assert len(notes.query(LINKS)) == 3
    assert len(lace.query(store, LINKS).rows()) == 3
    assert set(lace.query(store, "N(V) :- Field(_,'Name',_,V).")) > {("links/1",), ("links/5",)}
    assert lace.query(parse_facts(EDGES), PATHS, "Path('x',Y)").rows() == [("x", "y")]
    assert len(lace.query(store, "Both(P) :- Have(P), Extra(P).", extra=parse_facts("Extra('nobody')"))) == 0


AWKWARD = ["plain", 'quo"te', "back\\slash", "é", "🦆", "tab\there", "", "a\u2028b", "\x1b[31m"]


def awkward_answer() -> lace.Answer:
    pairs = [Fact(Predicate("Pair", 2), (a, b)) for a in AWKWARD for b in reversed(AWKWARD)]
    return lace.query(pairs, "Both(X,Y) :- Pair(X,Y), X != Y.")


def test_every_form_of_an_answer_says_the_same_sorted_rows() -> None:
    answer = awkward_answer()
    rows = sorted((a, b) for a in AWKWARD for b in AWKWARD if a != b)
    assert answer.rows() == rows
    lines = "".join(answer.json_lines()).removesuffix("\n").split("\n")
    assert [tuple(json.loads(line).values()) for line in lines] == rows
    assert list(zip(*answer.to_arrow().to_pydict().values(), strict=True)) == rows
    assert list(answer.to_pandas().itertuples(index=False, name=None)) == rows
    assert answer.to_arrow().schema.names == ["X", "Y"]
    assert len(answer) == len(rows)


def test_an_answer_is_an_arrow_stream_that_other_tools_take_as_it_is() -> None:
    answer = awkward_answer()
    reader = pyarrow.RecordBatchReader.from_stream(answer)
    assert list(zip(*reader.read_all().to_pydict().values(), strict=True)) == answer.rows()
    assert polars.DataFrame(answer).rows() == answer.rows()
    assert duckdb.sql("SELECT * FROM answer").fetchall() == answer.rows()


def test_a_notebook_shows_the_first_facts_and_how_many_there_are() -> None:
    shown = awkward_answer()._repr_html_()
    assert shown.count("<tr>") == 21
    assert "the first 20 of 72 facts" in shown
    small = lace.query(list(parse_facts("E('<b>')")), "A(X) :- E(X).")._repr_html_()
    assert "&lt;b&gt;" in small
    assert "shown" not in small
    assert repr(awkward_answer()) == "<Answer Both(X, Y): 72 facts>"


def test_arrow_and_parquet_files_hold_the_answer(edges: Path, tmp_path: Path) -> None:
    expected = [{"X": x, "Y": y} for x, y in lace.query(list(parse_facts(EDGES)), PATHS)]
    arrow, parquet = tmp_path / "a.arrow", tmp_path / "a.parquet"
    assert run("query", "--facts", str(edges), PATHS, "--arrow", str(arrow)).exit_code == 0
    assert pyarrow.ipc.open_stream(arrow).read_all().to_pylist() == expected
    assert run("query", "--facts", str(edges), PATHS, "--parquet", str(parquet)).exit_code == 0
    assert read_table(parquet).to_pylist() == expected
    piped = run("query", "--facts", str(edges), PATHS, "--arrow", "-")
    assert pyarrow.ipc.open_stream(piped.stdout_bytes).read_all().to_pylist() == expected
    both = run("query", "--facts", str(edges), PATHS, "--arrow", str(arrow), "--parquet", str(parquet))
    assert both.exit_code == 2


def test_an_empty_answer_has_columns_in_every_form() -> None:
    answer = lace.query(list(parse_facts("E('a','b')")), "A(X,Y) :- E(X,Y), X != 'a'.")
    assert answer.rows() == []
    assert list(answer.json_lines()) == []
    assert answer.to_arrow().schema.names == ["X", "Y"]
    assert answer.to_arrow().num_rows == 0
    assert list(answer.to_pandas().columns) == ["X", "Y"]
    assert answer._repr_html_().count("<tr>") == 1


def test_columns_of_several_places_are_sorted_as_rows_are() -> None:
    random = Random(3)
    rows = {tuple(random.choice("abcé🦆") for _ in range(4)) for _ in range(200)}
    answer = lace.query([Fact(Predicate("R", 4), row) for row in rows], "A(X,Y,Z,W) :- R(X,Y,Z,W).")
    assert answer.rows() == sorted(rows)


def test_a_master_is_refused_where_nothing_runs_on_spark(store: Path) -> None:
    for words in (["query", str(store), LINKS], ["interlace", str(store), "tcp:127.0.0.1:9"]):
        refused = run(*words, "--master", "local[1]")
        assert refused.exit_code == 2
        assert "--master" in refused.stderr
