"""`lace test`, `lace rules` and what `lace check` finds that can never match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.datalog.language.annotations import read_annotated
from lace.errors import NotFound
from lace.policy.exposure import Exposure
from lace.policy.lint import doubts, profile_of
from lace.policy.operand import Module
from lace.porcelain.casefile import read_cases, run_case
from lace.porcelain.ruletemplates import fill, templates

ADMIN = "V.BtkUJHd789DLiASa2amHAEYBXBsSOPfsnvZLQR90wzG.H3"
WORDS = {"group": "club", "app": "notes", "admin": ADMIN, "count": "3"}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def codes(rules: str) -> list[str]:
    program = read_annotated(rules).program
    return [doubt.rule for doubt in doubts(program, profile_of(program))]


@pytest.mark.parametrize("name", [template.name for template in templates()])
def test_a_template_is_a_valid_policy_and_passes_its_own_cases(name: str) -> None:
    files = fill(name, WORDS)
    Module.author(files["select.lace"])
    Exposure.author(files["expose.lace"])
    for text in (files["select.lace"], files["expose.lace"]):
        assert codes(text) == []
    cases = read_cases(files["cases.toml"])
    assert [case.name for case in cases if not run_case(case, files["select.lace"]).passed] == []
    assert len(cases) >= 2


@pytest.mark.parametrize("name", [template.name for template in templates()])
def test_lace_check_has_nothing_to_say_about_a_template(name: str, tmp_path: Path) -> None:
    for file, text in fill(name, WORDS).items():
        if file.endswith(".lace"):
            (tmp_path / file).write_text(text, "utf-8")
            checked = run("check", str(tmp_path / file))
            assert (checked.exit_code, "no errors" in checked.output) == (0, True), checked.output


def test_an_exposure_has_to_bind_everything_but_its_viewer(tmp_path: Path) -> None:
    (tmp_path / "open.lace").write_text("AllowQueryRecord(Viewer,P) :- Have(Q).\n", "utf-8")
    checked = run("check", str(tmp_path / "open.lace"))
    assert checked.exit_code == 1
    assert "variable P" in checked.output


def test_the_cases_of_a_template_notice_a_broken_rule() -> None:
    """Each line of each selector is needed by one of its cases."""
    for template in templates():
        files = fill(template.name, WORDS)
        lines = [line for line in files["select.lace"].split("\n") if line and not line.startswith("#")]
        for left_out in lines:
            broken = "\n".join(line for line in lines if line != left_out)
            outcomes = [run_case(case, broken) for case in read_cases(files["cases.toml"])]
            # Its cases know no number of records, and with few of them none is left out: what orders them is not seen.
            ordering = template.name == "newest-n" and "Before" in left_out.split(":-")[0]
            assert ordering or not all(outcome.passed for outcome in outcomes), (template.name, left_out)


def test_an_exposure_is_tested_for_a_viewer() -> None:
    expose = fill("members", WORDS)["expose.lace"]
    given = f"""
[[case]]
name = "a member sees the group"
viewer = "V.alice"
expect = "AllowQueryRecord('V.alice','list')"
[[case.record]]
id = "list"
Group = "club"
App = "member"
Name = "V.alice"
Signed-By = "{ADMIN}"
[[case]]
name = "a stranger sees nothing"
viewer = "V.bob"
none = "AllowQueryRecord/2"
[[case.record]]
id = "list"
Group = "club"
App = "member"
Name = "V.alice"
Signed-By = "{ADMIN}"
"""
    assert [run_case(case, expose).passed for case in read_cases(given)] == [True, True]


def test_a_mistyped_template_is_told_the_nearest() -> None:
    with pytest.raises(NotFound, match="did you mean members"):
        fill("memebrs", {})
    with pytest.raises(NotFound, match="there are public-read, members"):
        fill("xyz", {})


def test_new_writes_files_once_and_they_run(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    done = run("rules", "new", "members", str(folder), "--group", "club", "--admin", ADMIN)
    assert done.exit_code == 0, done.output
    tested = run("test", str(folder / "select.lace"), str(folder / "cases.toml"))
    assert (tested.exit_code, tested.output.split("\n")[-2]) == (0, "5 passed, 0 failed")
    assert run("check", str(folder / "select.lace"), str(folder / "expose.lace")).exit_code == 0
    again = run("rules", "new", "members", str(folder), "--admin", ADMIN)
    assert again.exit_code == 3
    assert "already exists" in again.output
    assert "needs admin" in run("rules", "new", "members", str(tmp_path / "x")).output
    assert run("rules", "new", "nothing").exit_code == 1
    assert run("rules", "new", "public-read", str(tmp_path / "y"), "--group", "it's").exit_code == 1
    assert {json.loads(line)["name"] for line in run("rules", "list", "--json").output.splitlines()} == {
        "public-read", "members", "blocked", "newest-n", "evidence",
    }  # fmt: skip


def test_a_failing_case_shows_why(tmp_path: Path) -> None:
    (tmp_path / "r.lace").write_text("Selected(P) :- Have(P), Field(P,'Group',_,'u').\n")
    (tmp_path / "c.toml").write_text(
        "[[case]]\nname='missing'\nexpect=\"Selected('a')\"\n"
        "[[case]]\nname='too many'\nnone='Selected/1'\nrecord=[{id='b', Group='u'}]\n"
        "[[case]]\nname='absent'\nabsent=\"Selected('b')\"\nrecord=[{id='b', Group='u'}]\n"
        "[[case]]\nname='unspoken'\nexpect=\"Selekted('b')\"\n"
        "[[case]]\nname='fine'\nexpect=\"Selected('b')\"\nrecord=[{id='b', Group=['x','u']}]\n"
    )
    shown = run("test", str(tmp_path / "r.lace"), str(tmp_path / "c.toml"))
    assert shown.exit_code == 1
    assert "should hold: Selected('a')" in shown.output
    assert "there is no Have('a')" in shown.output
    assert "no rule and no given fact mentions Selekted/1" in shown.output
    assert shown.output.count("should not hold: Selected('b')") == 2
    assert "1 passed, 4 failed" in shown.output
    told = [
        json.loads(line)
        for line in run("test", str(tmp_path / "r.lace"), str(tmp_path / "c.toml"), "--json").output.splitlines()
    ]
    assert [one["passed"] for one in told] == [False, False, False, False, True]
    assert run("test", str(tmp_path / "r.lace"), str(tmp_path / "c.toml"), "-k", "fine").exit_code == 0
    assert run("test", str(tmp_path / "r.lace"), str(tmp_path / "c.toml"), "-k", "nowhere").exit_code == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "not toml",
        "[[case]]\nexpect='A()'",
        "[[case]]\nname='x'\nexpekt='A()'",
        "[[case]]\nname='x'\nexpect=3",
        "[[case]]\nname='x'\nexpect='A('",
        "[[case]]\nname='x'\nnone='A'",
        "[[case]]\nname='x'\nrecord=[{Group='u'}]",
        "[[case]]\nname='x'\nrecord=[{id='a', Group=3}]",
        "other=1",
    ],
)
def test_a_bad_case_file_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    done = run("test", "A(P) :- Have(P).", str(tmp_path / "c.toml"))
    assert done.exit_code == 1
    assert "c.toml" in done.output


@pytest.mark.parametrize(
    ("rules", "code"),
    [
        ("A(P) :- Have(P), Feild(P,'Group',_,'u').", "unknown-predicate"),
        ("A(P) :- Have(P), not Feild(P,'Group',_,'u').", "unknown-predicate"),
        ("A(P) :- Have(P), Cardinality(Feild(P,_,_,_),'<','1').", "unknown-predicate"),
        ("A(P) :- Field(P,'Group','u').", "arity"),
        ("A(P) :- Field(P,'group',_,'u').", "field-name"),
        ("A(P) :- Field(P,'SignedBy',_,V).", "field-name"),
        ("A(P) :- Field(P,'Type',_,'X').", "field-value"),
        ("A(P) :- Field(P,'Data-Length',_,'007').", "field-value"),
        ("A(P) :- Field(P,'TAI',_,'2026').", "field-value"),
        ("A(P) :- Field(P,'Signed-By',_,'alice').", "field-value"),
        ("A(P) :- Field(P,'Group',_,'/u/').", "field-value"),
        ("A(P) :- Field(P,'Group','first','u').", "index"),
        ("A('x') :- Have('x').", "record-name"),
        ("A(P) :- Have(P), P != P.", "never-unequal"),
        ("A(P) :- Field(P,'App',_,'a'), Field(P,'App',_,'b').", "two-values"),
        ("A(P) :- Have(P), Peer(V).", "never-supplied"),
        ("AllowQueryRecord(V,P) :- Have(P), Advertised(P,S).", "never-supplied"),
        ("SelectHave(P) :- Have(P).", "missing-export"),
        ("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\nLost(P) :- Have(P).", "unread"),
    ],
)
def test_what_can_never_match_is_found(rules: str, code: str) -> None:
    assert codes(rules) == [code]


PARTS = "SelectHave(C) :- SelectHave(M), RecordLink(M,'Chunk+Link',_,_,C), Have(C)."


@pytest.mark.parametrize(
    "rules",
    [
        "A(P) :- Have(P), Field(P,'Content-Type',_,'text/plain').",
        "A(P) :- Field(P,'App',_,'a'), Field(Q,'App',_,'b'), RecordLink(P,_,_,_,Q).",
        "A(P) :- Field(P,'Tag',_,'a'), Field(P,'Tag',_,'b').",
        "A(P) :- Have(P).\nB(P) :- A(P).",
        "SelectHave(P) :- Have(P), Peer(V), Field(P,'Name',_,V).\nSelectAdvertised(P,S) :- Advertised(P,S).\n" + PARTS,
        "SelectHave(P) :- Have(P), Field(P,'Type',_,T), T != 'B'.\nSelectAdvertised(P,S) :- Advertised(P,S), Here(S).\n"
        + PARTS,
    ],
)
def test_what_may_match_raises_no_doubt(rules: str) -> None:
    assert codes(rules) == []


def test_facts_from_elsewhere_can_be_declared() -> None:
    rules = "Path(X,Y) :- Edge(X,Y)."
    assert run("check", rules).exit_code == 1
    assert run("check", rules, "--given", "Edge/2").exit_code == 0
    assert run("check", rules, "--profile", "raw").exit_code == 0
    assert run("check", rules, "--given", "Edge").exit_code == 2
