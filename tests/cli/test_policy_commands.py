"""`lace plan` and `lace view`, driven as a person or a script drives them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.cli.output.failure import ExitCode

ALL = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n"
GROUP_U = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'u').\n"
VERIFIER = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    Path("all.rules").write_text(f"# everything\n{ALL}", encoding="utf-8")
    Path("u.rules").write_text(GROUP_U, encoding="utf-8")
    return tmp_path


def lace(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, list(arguments), input=given)


@pytest.fixture
def stored() -> dict[str, str]:
    """A lace with one record in each of two groups."""
    assert lace("init", "a.lace").exit_code == 0
    put = {group: lace("put", "a.lace", "-g", group, "-a", "ding", "-n", "1", "-", given=group) for group in "uv"}
    return {group: result.stdout.strip() for group, result in put.items()}


def test_plan_prints_transcript_ids_requirements_and_rules() -> None:
    result = lace("plan", "all.rules", "//u//ding//links/", "--expose", "all")
    assert result.exit_code == 0, result.output
    told = result.stdout
    assert "operand 0                   Opq_s  R.lbJvPaWYF6WIGOhLim1FSg7nPPZ4acVE7oyvWH5gjj0  all.rules" in told
    assert "advertised fields required  App, Group, Name" in told
    assert "  ExchangePlanRequireAdvertisedField('Group')\n" in told
    assert "  o0_SelectHave(P) :- Have(P).\n    040-operand-scope  O0  Opq_s  from U.~5QSJ1rpu" in told
    assert result.stderr == ""


def test_the_transcript_alone_is_the_hashed_text() -> None:
    result = lace("plan", "all.rules", "all", "--transcript")
    assert len(result.stdout_bytes) == 592
    assert json.loads(lace("plan", "all", "all", "--json").stdout)["plan"] == (
        "E.zew87ygr8YqSix5kzMgOXgACp_hJqCdqpcS0~H_rJn0"
    )


@pytest.mark.clause("040-PROV-02", "020-DISC-07")
def test_plan_tells_programs_the_origin_of_every_rule() -> None:
    found = json.loads(lace("plan", "all", "all", "--expose", "u.rules", "--viewer", VERIFIER, "--json").stdout)
    assert (found["view"], found["viewer"], found["notices"]) == ("gated", VERIFIER, [])
    gate = next(rule for rule in found["rules"] if rule["stage"] == "020-query-gate")
    assert gate["rule"] == f"CanQueryRecord('{VERIFIER}',P) :- m1_AllowQueryRecord('{VERIFIER}',P)."
    assert all(rule["source"] for rule in found["rules"] if rule["stage"] == "040-operand-scope")
    assert [operand["origin"] for operand in found["operands"]] == ["Opq_s", "Opq_R"]


def test_plan_says_in_plain_words_that_nothing_is_exposed() -> None:
    result = lace("plan", "all", "all")
    assert result.exit_code == 0
    assert "Nothing is exposed to this peer" in result.stderr
    assert "--expose selected" in result.stderr


def test_the_two_sides_and_the_stricter_lowerings_show() -> None:
    sides = [
        json.loads(lace("plan", "all", "//u//", "--side", side, "--expose", "all", "--json").stdout) for side in "01"
    ]
    assert sides[0]["plan"] == sides[1]["plan"]
    strict = json.loads(lace("plan", "all", "//u//", "--require-encrypted", "--from-peer", "--json").stdout)
    assert strict["lowering"] == "standard-v1-encrypted-from-peer"
    assert strict["plan"] != sides[0]["plan"]
    assert any("TransportEncrypted()" in rule["rule"] for rule in strict["rules"])


def test_a_bad_operand_is_told_with_every_reason() -> None:
    Path("bad.rules").write_text("MaySend(P) :- Have(P).\nSelectHave(P) :- Have(Q).\n", encoding="utf-8")
    result = lace("plan", "all", "bad.rules")
    assert result.exit_code == ExitCode.BAD
    for reason in ("3 reasons", "bad.rules:1:1: a shared operand defines MaySend/1", "bad.rules:2:12: variable P",
                   "has to define SelectAdvertised/2"):  # fmt: skip
        assert reason in result.stderr


@pytest.mark.usefixtures("stored")
def test_a_store_is_no_operand() -> None:
    result = lace("plan", "all", "a.lace")
    assert result.exit_code == ExitCode.STORE
    assert "is a lace, not a rule file" in result.stderr


@pytest.mark.clause("020-DISC-01", "020-VIEW-14")
def test_view_shows_exactly_the_query_view(stored: dict[str, str]) -> None:
    result = lace("view", "a.lace", "--expose", "u.rules", "--viewer", VERIFIER)
    assert result.exit_code == 0, result.output
    facts = lace("facts", "a.lace", stored["u"]).stdout
    assert sorted(result.stdout.splitlines()) == sorted(facts.splitlines())
    assert "sees 1 of 2 records" in result.stderr
    assert stored["v"] not in result.stdout


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ([], ""),
        (["--expose", "none"], ""),
        (["--expose", "all"], "uv"),
        (["--expose", "all", "--expose", "u.rules"], "u"),
        (["--expose", "selected", "--select-coordinate", "//v//"], "v"),
        (["--expose", "peer.rules"], "uv"),
        (["--expose", "late.rules", "--at", "1000000000:000000000"], ""),
        (["--expose", "late.rules", "--at", "3000000000:000000000"], "uv"),
    ],
)
def test_each_exposure_gives_its_view(stored: dict[str, str], options: list[str], seen: str) -> None:
    Path("peer.rules").write_text("AllowQueryRecord(V,P) :- Have(P), Peer(V).", encoding="utf-8")
    late = "AllowQueryRecord(V,P) :- Have(P), StartTAI(T), LexCompare(T,'>','2000000000:000000000')."
    Path("late.rules").write_text(late, encoding="utf-8")
    result = lace("view", "a.lace", "--viewer", VERIFIER, "--hashes", *options)
    assert result.exit_code == 0, result.output
    assert set(result.stdout.split()) == {stored[group] for group in seen}


def test_view_gives_programs_one_fact_a_line(stored: dict[str, str]) -> None:
    lines = lace("view", "a.lace", "--viewer", "Opq_A", "--expose", "u.rules", "--json").stdout.splitlines()
    assert {"predicate": "Have", "values": [stored["u"]]} in map(json.loads, lines)


def test_nothing_exposed_is_said(stored: dict[str, str]) -> None:
    result = lace("view", "a.lace", "--viewer", "Opq_A")
    assert result.stdout == ""
    assert f"see none of {len(stored)} records. --expose changes that." in result.stderr


def test_contradicting_exposures_are_a_usage_error(stored: dict[str, str]) -> None:
    assert stored
    assert (
        lace("view", "a.lace", "--viewer", "Opq_A", "--expose", "none", "--expose", "all").exit_code == ExitCode.USAGE
    )
