"""What is said before an exchange about exposure, and the provenance of lowered rules."""

from __future__ import annotations

import pytest

from lace.datalog.language.canonical import rule_id
from lace.facts.predicates import SELECT_ADVERTISED, SELECT_HAVE
from lace.notation.factline import format_fact, parse_fact
from lace.policy.exposure import Exposure
from lace.policy.lower import LoweringOptions
from lace.policy.notice import can_select_unseen, exposure_notices
from lace.policy.operand import Module
from policy.world import ALICE, EVERYTHING, GROUP_X, advertised, exposures, record, run, selector

CONSTANT = selector("Named(P)", helpers="Named('x1') :- true.")
THROUGH_HELPERS = selector("Good(P)", "Advertised(P,S), Good(P)", "Good(P) :- Better(P).\nBetter(P) :- Have(P).")


def codes(peer: Module, *, expose: tuple[str, ...] = (), gate: bool = True) -> list[str]:
    options = LoweringOptions(send_gate=gate)
    policy = run([], peer=peer, expose=expose, options=options).policy
    return [notice.code for notice in exposure_notices(policy, options)]


@pytest.mark.clause("020-DISC-08")
def test_nothing_exposed_is_said_with_the_flag_that_changes_it() -> None:
    policy = run([], peer=selector()).policy
    (notice,) = exposure_notices(policy, LoweringOptions())
    assert str(notice) == (
        "Nothing is exposed to this peer: its SelectHave needs Have, so it selects nothing here and nothing will be "
        "sent. `--expose selected` shows the peer's rules what your own selector selects, `--expose FILE` what its "
        "AllowQueryRecord rules allow, `--expose all` every record."
    )


@pytest.mark.parametrize(
    ("peer", "gate", "expected"),
    [
        (selector(), True, ["peer-selects-nothing"]),
        (selector(), False, ["peer-selects-nothing"]),
        (CONSTANT, True, ["send-gate-closed"]),
        (CONSTANT, False, []),
        (THROUGH_HELPERS, True, ["peer-selects-nothing", "peer-lets-request-nothing"]),
        (selector("Advertised(P,_), not Have(P)"), False, []),
    ],
)
def test_the_notice_fits_the_peer_s_rules(peer: Module, gate: bool, expected: list[str]) -> None:
    assert codes(peer, gate=gate) == expected


@pytest.mark.parametrize("expose", [(GROUP_X,), (EVERYTHING,)])
def test_nothing_is_said_when_something_is_exposed(expose: tuple[str, ...]) -> None:
    assert codes(selector(), expose=expose) == []


@pytest.mark.parametrize("peer", [selector(), CONSTANT, THROUGH_HELPERS, selector("Have(P), not Have('q')")])
def test_the_notice_is_true_of_the_evaluation(peer: Module) -> None:
    outcome = run([*record("x1"), *record("y1", "Y"), *advertised("n")], peer=peer)
    assert bool(outcome.selected(1)) <= can_select_unseen(peer, SELECT_HAVE)
    assert bool(outcome.claims(1)) <= can_select_unseen(peer, SELECT_ADVERTISED)


@pytest.mark.clause("040-PROV-02", "040-PROV-03", "040-PROV-04", "040-PROV-05", "030-ANN-10")
def test_every_generated_rule_knows_where_it_comes_from() -> None:
    peer = selector("Have(P), not Field(_,'Group',_,'Y')")
    policy = run([], peer=peer, expose=[GROUP_X]).policy
    facts = [format_fact(fact) for fact in policy.provenance.facts()]
    assert facts == sorted(set(facts))
    assert [parse_fact(line, 1024) for line in policy.provenance.text().split("\n")] == policy.provenance.facts()
    original = rule_id("SelectHave(P) :- Have(P), not Field(_,'Group',_,'Y').")
    generated = rule_id("o1_SelectHave(P) :- v_Have_0(P), not v_Field_1().")
    origin = policy.plan.operands[1].origin
    assert f"RuleSource('{generated}','{peer.id}','{original}')" in facts
    assert f"RuleGeneratedBy('{generated}','040-operand-scope','O1')" in facts
    assert f"RuleOrigin('{generated}','{origin}')" in facts
    merged = rule_id("MergedSelectHave(P) :- o0_SelectHave(P), o1_SelectHave(P).")
    assert f"RuleGeneratedBy('{merged}','040-intersection','SelectHave/1')" in facts
    lowered = rule_id("MaySend(P) :- MergedSelectHave(P).")
    assert f"RuleGeneratedBy('{lowered}','040-lowering','MaySend/1')" in facts
    granted = rule_id("m1_AllowQueryRecord('V.alice.H3',P) :- Have(P), Field(P,'Group',_,'X').")
    assert f"RuleSource('{granted}','{exposures(GROUP_X)[0].id}','{rule_id(GROUP_X)}')" in facts
    assert {rule_id(rule) for rule in policy.program.program.rules} == {rule.id for rule in policy.provenance.rules}
    assert [rule.detail for rule in policy.provenance.of(generated)] == ["O1"]


def test_one_generated_rule_may_have_two_sources() -> None:
    text = "AllowQueryRecord(V,P) :- Have(P), Peer(V).\nAllowQueryRecord(W,P) :- Have(P), Peer(W)."
    policy = run([], peer=selector(), expose=[text]).policy
    assert len(Exposure.author(text).program.rules) == 2
    (both,) = {rule.id for rule in policy.provenance.rules if rule.detail == "m1"}
    assert len(policy.provenance.of(both)) == 2
    assert policy.viewer == ALICE


@pytest.mark.parametrize(
    ("body", "needed"),
    [
        ("Have(P)", "Have"),
        ("Have(P), Field(P,'App',_,'a')", "Field and Have"),
        ("Have(P), Field(P,'App',_,'a'), BlobHash(P,_)", "BlobHash, Field and Have"),
    ],
)
def test_what_a_selector_needs_is_named(body: str, needed: str) -> None:
    (notice,) = exposure_notices(run([], peer=selector(body)).policy, LoweringOptions())
    assert f": its SelectHave needs {needed}, so it selects nothing here" in notice.text
