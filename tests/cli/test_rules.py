"""`lace check`, `fmt`, `id` and `explain`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.datalog.language.canonical import Lacegram, is_canonical, rule_id
from lace.datalog.language.parser import parse_program
from lace.errors import NotFound
from lace.porcelain.lace import open_lace

RULES = """# which records
#:json {"label":"selected","why":"everything but the blocked"}
Selected(P) :- Have( P ), Field(P,'Group',_,G), not Bad(G).
Bad('v') :- true.
"""
FACTS = "Have('1')\nHave('2')\nField('1','Group','0','u')\nField('2','Group','0','v')\n"
CANONICAL = "Bad('v') :- true.\nSelected(P) :- Have(P), Field(P,'Group',_,G), not Bad(G)."


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.lace").write_text(RULES, "utf-8")
    (tmp_path / "facts.txt").write_text(FACTS, "utf-8")
    (tmp_path / "bad.lace").write_text(
        "# bad\nA(x) :- B(X).\nC(Y) :- B(X), not C(X).\nA(X) :- B(X), X = 'a'.\n", "utf-8"
    )
    return tmp_path


def run(*arguments: str, given: str | bytes | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=given)


def test_check_shows_every_error_of_every_file(files: Path) -> None:
    result = run("check", "rules.lace", "bad.lace")
    assert result.exit_code == 1
    assert "✓ rules.lace: 2 rules, no errors\n✗ bad.lace: " in result.stdout
    places = [line.split(": ")[0] for line in result.stdout.split("\n") if line.startswith("bad.lace")]
    assert places == ["bad.lace:2:3", "bad.lace:3:3", "bad.lace:3:19", "bad.lace:4:17"]
    assert "  A(X) :- B(X), X = 'a'.\n                  ^\n" in result.stdout
    assert run("check", "rules.lace").exit_code == 0


def test_check_speaks_json_and_knows_profiles(files: Path) -> None:
    result = run("check", "--json", "bad.lace")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(error["line"], error["rule"]) for error in found] == [
        (2, "lower-case-term"), (3, "unsafe"), (3, "unstratified"), (4, "equality"),
    ]  # fmt: skip
    have = "Have('x') :- true."
    assert run("check", have).exit_code == 1
    assert run("check", "--profile", "raw", have).exit_code == 0
    assert run("check", "--profile", "selector", "MaySend(P) :- Have(P).").exit_code == 1
    assert run("check", "--profile", "exposure", "AllowQueryRecord(V,P) :- Have(P), Peer(V).").exit_code == 0


def test_check_refuses_bytes_that_are_no_text(files: Path) -> None:
    (files / "binary.lace").write_bytes(b"A('\xff') :- true.")
    result = run("check", "binary.lace")
    assert result.exit_code == 1
    assert "invalid UTF-8" in result.stdout
    assert run("check", "missing.lace").exit_code == 3


def test_fmt_writes_canonical_order_and_keeps_comments(files: Path) -> None:
    assert run("fmt", "--check", "rules.lace").exit_code == 1
    assert (files / "rules.lace").read_text("utf-8") == RULES
    assert run("fmt", "rules.lace").exit_code == 0
    written = (files / "rules.lace").read_text("utf-8")
    assert written == (
        "Bad('v') :- true.\n\n# which records\n"
        '#:json {"label":"selected","why":"everything but the blocked"}\n'
        "Selected(P) :- Have(P), Field(P,'Group',_,G), not Bad(G).\n"
    )
    again = run("fmt", "--check", "rules.lace")
    assert (again.exit_code, again.stdout) == (0, "")
    assert run("fmt", "-", given=RULES).stdout == written


def test_fmt_prints_canonical_text_and_refuses_what_it_cannot_read(files: Path) -> None:
    text = run("fmt", "--canonical", "rules.lace").stdout
    assert text == CANONICAL
    assert is_canonical(text)
    result = run("fmt", "bad.lace")
    assert result.exit_code == 1
    assert "bad.lace:2:3" in result.stderr
    assert "A(x) :- B(X).\n" in result.stderr
    assert (files / "bad.lace").read_text("utf-8").startswith("# bad\n")
    assert run("fmt", "--canonical", "--check", "rules.lace").exit_code == 2


def test_id_is_that_of_the_canonical_text(files: Path) -> None:
    expected = Lacegram.from_program(parse_program(CANONICAL)).id
    assert run("id", "rules.lace").stdout == f"{expected}\n"
    assert run("id", "-", given=CANONICAL).stdout == f"{expected}\n"
    first = run("id", "--rules", "rules.lace").stdout.splitlines()[1]
    line = "Bad('v') :- true."
    assert first == f"{rule_id(line)}  {line}"
    told = json.loads(run("id", "--json", "rules.lace").stdout)
    assert told["id"] == expected
    assert told["rules"][1]["annotation"]["label"] == "selected"
    assert run("id", "bad.lace").exit_code == 1
    assert run("id", "A(X) :- B(Y).").exit_code == 1


def test_explain_shows_the_proof(files: Path) -> None:
    result = run("explain", "--facts", "facts.txt", "rules.lace", "Selected('1')")
    assert result.exit_code == 0
    assert result.stdout.startswith("Selected('1')\n│ by Selected(P) :- ")
    assert "selected: everything but the blocked" in result.stdout
    assert "└─ not Bad('u')  (no such fact)" in result.stdout
    assert run("explain", "--facts", "facts.txt", "rules.lace", "Selected(P)").stdout == result.stdout
    told = json.loads(run("explain", "--facts", "facts.txt", "rules.lace", "Selected('1')", "--json").stdout)
    assert told["holds"] is True
    assert run("explain", "--facts", "facts.txt", "rules.lace", "Selected('1')", "--dot").stdout.startswith("digraph")


def test_explain_shows_why_not(files: Path) -> None:
    result = run("explain", "--facts", "facts.txt", "rules.lace", "Selected('2')", "--not")
    assert result.exit_code == 0
    assert "not Bad('v') is false, because this holds:" in result.stdout
    told = json.loads(run("explain", "--facts", "facts.txt", "rules.lace", "Selected('2')", "--not", "--json").stdout)
    assert told["attempts"][0]["miss"]["kind"] == "blocked"
    wrong = run("explain", "--facts", "facts.txt", "rules.lace", "Selected('2')")
    assert wrong.exit_code == 1
    assert "--not" in wrong.stderr
    assert run("explain", "--facts", "facts.txt", "rules.lace", "Selected('1')", "--not").exit_code == 1


def test_explain_shows_the_plan(files: Path) -> None:
    result = run("explain", "--facts", "facts.txt", "rules.lace", "--plan")
    assert result.exit_code == 0
    assert "Scan Field(P,'Group',_,G)" in result.stdout
    assert "evaluated in" in result.stdout
    assert "Project Selected(P)   [1 rows" in result.stdout
    assert run("explain", "--facts", "facts.txt", "rules.lace").exit_code == 2
    assert run("explain").exit_code == 2


def test_explain_over_a_lace(files: Path) -> None:
    with open_lace(files / "notes.lace", create=True) as lace:
        kept = lace.put(b"one", group="u", app="ding", name="links/1")
        other = lace.put(b"two", group="u", app="ding", name="notes/2")
    rules = "Selected(P) :- Have(P), Field(P,'Name',_,K), TextShape(K,'links/','','')."
    result = run("explain", "notes.lace", rules, f"Selected('{kept}')")
    assert result.exit_code == 0, result.stderr
    assert f"Have('{kept}')  (base fact)" in result.stdout
    result = run("explain", "notes.lace", rules, f"Selected('{other}')", "--not")
    assert "TextShape('notes/2','links/','','') is false" in result.stdout
    assert run("explain", "missing.lace", rules, "Selected(P)").exit_code == 3
    assert run("explain", "notes.lace", "Have(X) :- Other(X).", "Have(P)").exit_code == 1


def test_explain_is_a_verb_of_a_lace_too(tmp_path: Path) -> None:
    with open_lace(tmp_path / "notes.lace", create=True) as lace:
        kept = lace.put(b"one", group="u", app="ding", name="links/1")
        rules = "#:json {\"label\":\"by group\"}\nSelected(P) :- Have(P), Field(P,'Group',_,'u')."
        explanation = lace.explain(rules, f"Selected('{kept}')")
        assert explanation.holds
        assert "by group" in str(explanation)
        assert explanation.to_json()["holds"] is True
        assert explanation.to_dot().startswith("digraph")
        absent = lace.explain(rules, "Selected('nothing')")
        assert not absent.holds
        assert absent.to_json()["attempts"][0]["reached"] == 1
        with pytest.raises(NotFound, match="no proof to draw"):
            absent.to_dot()


@pytest.mark.parametrize("text", ["", "  ", "\n"])
@pytest.mark.parametrize("command", [("query", "--facts", "f"), ("explain", "--facts", "f")])
def test_an_empty_rule_text_is_told_as_that(command: tuple[str, ...], text: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("Edge('a','b')\n")
    arguments = [*command[:2], str(tmp_path / "f"), text, "Edge(A,B)"]
    done = CliRunner().invoke(app, arguments if command[0] == "explain" else arguments[:-1])
    assert done.exit_code == 1
    assert "there are no rules" in done.stderr


def test_records_are_named_by_their_fields_beside_their_hashes(tmp_path: Path) -> None:
    path = tmp_path / "a.lace"
    with open_lace(path, create=True) as opened:
        record = opened.put(b"x", group="u", app="ding", name="links/1")
    rules = "Old(P) :- Have(P), Field(P,'App',_,'ding')."
    asked = ["explain", str(path), rules, f"Old('{record}')", "--columns", "Name, App,Absent"]
    told = CliRunner().invoke(app, asked)
    assert told.exit_code == 0, told.output
    plain = CliRunner().invoke(app, asked[:-2]).stdout.splitlines()
    for line, without in zip(told.stdout.splitlines(), plain, strict=True):
        assert line == (f"{without}   # Name links/1, App ding" if record in without else without)
    found = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert found["records"] == {record: {"Name": ["links/1"], "App": ["ding"]}}
    assert CliRunner().invoke(app, ["explain", "--facts", "-", rules, "Old(P)", "--columns", "Name"]).exit_code == 2
