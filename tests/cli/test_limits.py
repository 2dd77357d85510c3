"""Limits of the engine reach wherever they are said."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace
from lace.cli.app import app
from lace.cli.commands.serve import word_rules
from lace.cli.options.nodefile import PolicyWords, read_node_file
from lace.datalog.language.limiting import LIMIT_NAMES, limits_with, parse_limit, stated_limits
from lace.datalog.language.parser import parse_facts
from lace.errors import InvalidLacegram, InvalidText, LaceError, LimitExceeded

NINE = ",".join(f"X{n}" for n in range(9))
WIDE = f"Wide({NINE}) :- Row({NINE})."
ROW = "Row(" + ",".join(f"'{n}'" for n in range(9)) + ")\n"
PAIRS = "Pair(X,Y) :- Node(X), Node(Y)."
LONG = "x" * 2_000


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def facts(tmp_path: Path) -> str:
    path = tmp_path / "facts.txt"
    path.write_text(ROW + "".join(f"Node('{n}')\n" for n in range(40)), "utf-8")
    return str(path)


def wide_facts(path: Path) -> str:
    path.write_text(ROW, "utf-8")
    return str(path)


@pytest.mark.clause("030-LIM-01", "030-LIM-07")
def test_a_raised_arity_is_raised_for_rules_goals_and_facts(tmp_path: Path) -> None:
    facts = wide_facts(tmp_path / "wide.txt")
    goal = f"Wide({NINE})"
    refused = run("query", "--facts", facts, WIDE)
    assert refused.exit_code == 4
    assert "max_tuple_arity" in refused.stderr
    for words in (["--limit", "max_tuple_arity=9"], ["--limit", "tuple-arity=9"]):
        allowed = run("query", "--facts", facts, WIDE, "--goal", goal, *words)
        assert allowed.exit_code == 0, allowed.stderr
        assert allowed.stdout.split("\n")[1].split() == [str(n) for n in range(9)]
        assert run("explain", "--facts", facts, WIDE, goal, *words).exit_code == 0
    checked = run("check", "--profile", "raw", "--given", "Row/9", "--limit", "tuple-arity=9", WIDE)
    assert checked.exit_code == 0, checked.output


@pytest.mark.clause("030-LIM-01")
def test_python_callers_raise_the_limits_of_the_rule_reader_too() -> None:
    limits = lace.EngineLimits(max_tuple_arity=9, max_rules=300, max_value_bytes=4_000)
    rules = "\n".join([WIDE, *(f"Wide({NINE}) :- Row({NINE}), X0 != '{n}'." for n in range(280))])
    rows = list(parse_facts(ROW, limits=limits))
    assert len(lace.query(rows, rules, limits=limits)) == 1
    long = list(parse_facts(f"Row('{LONG}')", limits=limits))
    assert lace.query(long, f"Same(X) :- Row(X), X != '{LONG[1:]}'.", limits=limits).rows() == [(LONG,)]
    with pytest.raises(LimitExceeded, match=r"max_tuple_arity = 8 .*use fewer places, or raise the limit"):
        lace.query(rows, WIDE)
    assert lace.explain(rows, rules, f"Wide({NINE})", limits=limits).holds
    with pytest.raises(LimitExceeded, match="max_tuple_arity = 8"):
        lace.explain(rows, WIDE, f"Wide({NINE})")


@pytest.mark.clause("030-LIM-01")
def test_a_lace_is_asked_within_limits_of_the_callers() -> None:
    with lace.open(":memory:") as notes:
        for name in "abc":
            notes.put(b"", group="u", app="a", name=name)
        pairs, few = "Pair(P,Q) :- Have(P), Have(Q).", lace.EngineLimits(max_derived_facts_per_predicate=8)
        assert len(notes.query(pairs)) == 9
        with pytest.raises(LimitExceeded, match="max_derived_facts_per_predicate = 8"):
            notes.query(pairs, limits=few)
        long = f"Named(P) :- Have(P), Field(P,'Name',_,N), N != '{LONG}'."
        roomy = lace.EngineLimits(max_value_bytes=4_000)
        assert len(notes.query(long, limits=roomy)) == 3
        assert notes.explain(long, "Named(P)", limits=roomy).holds
        for ask in (notes.query, notes.explain):
            with pytest.raises(LimitExceeded, match=r"max_value_bytes = 1024 .*use shorter values, or raise the limit"):
                ask(long, "Named(P)")


def test_a_rule_file_says_its_own_limits_and_the_command_line_has_the_last_word(tmp_path: Path) -> None:
    rules = tmp_path / "wide.rules"
    rules.write_text(f'#:json {{"limits": {{"max_tuple_arity": 9}}, "label": "wide"}}\n{WIDE}\n', "utf-8")
    facts = tmp_path / "facts.txt"
    facts.write_text(ROW, "utf-8")
    assert run("query", "--facts", str(facts), str(rules)).exit_code == 0
    refused = run("query", "--facts", str(facts), str(rules), "--limit", "tuple-arity=8")
    assert refused.exit_code == 4
    assert stated_limits(rules.read_text("utf-8")).max_tuple_arity == 9


@pytest.mark.parametrize("command", ["id", "fmt", "test"])
def test_whatever_reads_a_rule_file_takes_the_limits_it_says(tmp_path: Path, command: str) -> None:
    rules, cases = tmp_path / "wide.rules", tmp_path / "cases.toml"
    cases.write_text(f"[[case]]\nname = 'one'\ngiven = \"{ROW.strip()}\"\nnone = 'Other/1'\n", "utf-8")
    words = [command, str(rules), *([str(cases)] if command == "test" else [])]
    words += ["--profile", "raw"] if command == "id" else []
    rules.write_text(f"{WIDE}\n", "utf-8")
    refused = run(*words)
    assert (refused.exit_code, "max_tuple_arity" in refused.stderr) == (4, True)
    assert run(*words, "--limit", "tuple-arity=9").exit_code == 0
    rules.write_text(f'#:json {{"limits": {{"max_tuple_arity": 9}}}}\n{WIDE}\n', "utf-8")
    allowed = run(*words)
    assert allowed.exit_code == 0, allowed.stderr
    assert run(*words, "--limit", "tuple-arity=8").exit_code == 4


def test_a_limit_that_is_hit_names_the_rule_as_written_even_under_a_goal(facts: str) -> None:
    text = "Reach(X,Y) :- Pair(X,Y).\nReach(X,Z) :- Pair(X,Y), Reach(Y,Z).\n" + PAIRS
    wide = ["--limit", "tuple-arity=9", "--limit", "working-rows=100"]
    for goal in ("Reach('1',Y)", "Reach(X,Y)", "Reach(X,'1')"):
        refused = run("query", "--facts", facts, text, "--goal", goal, *wide)
        assert refused.exit_code == 4
        assert "max_working_rows" in refused.stderr
        assert "?" not in refused.stderr.replace("did you mean", "")
        assert " :- " in refused.stderr


def test_a_name_that_is_no_limit_is_refused_with_what_is_near(facts: str) -> None:
    wrong = run("query", "--facts", facts, PAIRS, "--limit", "max_working_row=5")
    assert wrong.exit_code == 2
    assert "max_working_rows" in wrong.stderr
    for text in ("max_rules", "max_rules=", "max_rules=x", "=5", "max_rules=-1", "max_rules=5z"):
        assert run("query", "--facts", facts, PAIRS, "--limit", text).exit_code == 2
    with pytest.raises(InvalidText, match="above 0"):
        limits_with(lace.EngineLimits(), {"max_rules": True})
    with pytest.raises(InvalidText, match="above 0"):
        stated_limits('#:json {"limits": {"max_rules": 0}}\nA(X) :- B(X).')


def test_values_may_carry_units() -> None:
    assert parse_limit("working-rows=2Ki") == ("max_working_rows", 2048)
    assert parse_limit("MAX_RULES=1_000") == ("max_rules", 1000)
    assert parse_limit("held-bytes=3G") == ("max_held_bytes", 3_000_000_000)


def test_the_help_page_names_every_limit() -> None:
    shown = run("help", "limits").stdout
    assert all(name in shown for name in LIMIT_NAMES)
    assert set(LIMIT_NAMES) == set(asdict(lace.EngineLimits()))


def test_a_node_file_says_what_rules_may_use(tmp_path: Path) -> None:
    path = tmp_path / "node.toml"
    path.write_text('store = "notes.lace"\n[rule_limits]\nmax_tuple_arity = 12\n', "utf-8")
    assert read_node_file(path).rule_limits.max_tuple_arity == 12
    rules = tmp_path / "wide.rules"
    rules.write_text(
        f"{WIDE.replace('Row', 'Same')}\nSame({NINE}) :- {', '.join(f'Have(X{n})' for n in range(9))}.\n"
        f"SelectHave(X0) :- Wide({NINE}).\nSelectAdvertised(P,S) :- Advertised(P,S).\n",
        "utf-8",
    )
    policy = PolicyWords(select=[str(rules)])
    with pytest.raises(LaceError, match="max_tuple_arity"):
        word_rules(policy, lace.EngineLimits())
    assert word_rules(policy, read_node_file(path).rule_limits).limits.max_tuple_arity == 12
    path.write_text('store = "notes.lace"\n[rule_limits]\nmax_arity = 12\n', "utf-8")
    with pytest.raises(InvalidText, match="max_tuple_arity"):
        read_node_file(path)


@pytest.mark.parametrize(
    ("goal", "said"),
    [
        ("Piar(X,Y)", "did you mean Pair/2?"),
        ("Pair(X)", "did you mean Pair/2?"),
        ("Nod(X)", "did you mean Node/1?"),
        ("Zzz(X)", "the rules derive Pair/2"),
    ],
)
def test_a_mistyped_goal_is_refused_with_what_is_near(tmp_path: Path, goal: str, said: str) -> None:
    path = tmp_path / "facts.txt"
    path.write_text("Node('1')\n", "utf-8")
    for command in (
        ["query", "--facts", str(path), PAIRS, "--goal", goal],
        ["explain", "--facts", str(path), PAIRS, goal],
    ):
        wrong = run(*command)
        assert wrong.exit_code == 1
        assert said in wrong.stderr
        assert not wrong.stdout
    with pytest.raises(InvalidLacegram, match="no rule and no fact"):
        lace.query(list(parse_facts("Node('1')")), PAIRS, goal)


def test_a_goal_for_a_record_predicate_is_right_even_where_there_is_no_such_fact(tmp_path: Path) -> None:
    with lace.open(tmp_path / "empty.lace", create=True) as notes:
        assert lace.query(notes, "A(P) :- Have(P).", "RecordLink(P,_,_,_,Q)").rows() == []
