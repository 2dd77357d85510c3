"""`lace query` and `lace.query`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace
from lace.cli.app import app
from lace.datalog.parser import parse_facts

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
