"""What a viewer's rules may see: exposure modules and their composition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.datalog.language.syntax import Fact
from lace.errors import InvalidExchangePlan
from lace.facts.predicates import PEER, SELECT_HAVE
from lace.policy.exposure import Exposure, expose, expose_all, expose_selected
from lace.policy.lower import LoweringOptions, ViewKind, lower
from lace.policy.operand import Module
from lace.policy.origin import Viewer
from policy.world import ALICE, ALL, EVERYTHING, GROUP_X, GROUP_Y, Outcome, advertised, record, run, selector

STORE = [*record("x1", "X"), *record("x2", "X", tag="t"), *record("y1", "Y"), *record("y2", "Y", tag="t")]
TAGGED = "AllowQueryRecord(Viewer,P) :- Field(P,'Tag',_,'t')."


def seen(*texts: str, viewer: str | None = ALICE, facts: list[Fact] = STORE) -> set[str]:
    outcome = run(facts, peer=selector(), expose=texts, viewer=None if viewer is None else Viewer(viewer))
    assert outcome.selected(1) == outcome.visible & {fact.values[0] for fact in facts if fact.predicate.name == "Have"}
    return outcome.visible


@pytest.mark.clause("040-EXPOSE-01", "020-GATE-01", "020-GATE-04", "020-GATE-06", "040-EX-01")
def test_a_viewer_sees_exactly_what_is_allowed() -> None:
    assert seen(GROUP_X) == {"x1", "x2"}
    assert seen("AllowQueryRecord('V.alice.H3',P) :- Have(P), Field(P,'Group',_,'X').") == {"x1", "x2"}
    assert seen("AllowQueryRecord('V.bob.H3',P) :- Have(P).") == set()


@pytest.mark.clause("040-COMP-05", "020-GATE-09", "020-VIEW-06", "020-VIEW-12", "040-ORIGIN-07")
def test_nothing_is_visible_by_default_and_before_proof() -> None:
    assert seen() == set()
    assert seen(EVERYTHING, viewer=None) == set()
    assert run(STORE, peer=selector(), expose=[EVERYTHING], viewer=None).selected(1) == set()


@pytest.mark.clause("040-COMP-01", "040-COMP-02", "020-GATE-07", "020-GATE-08")
def test_several_modules_intersect() -> None:
    assert seen(GROUP_X, TAGGED) == {"x2"}
    assert seen(GROUP_X, GROUP_Y) == set()
    assert seen(GROUP_X, EVERYTHING) == {"x1", "x2"}


@pytest.mark.clause("040-COMP-03")
def test_a_module_about_others_closes_the_view() -> None:
    assert seen(GROUP_X, "AllowQueryRecord('V.bob.H3',P) :- Have(P).") == set()


@pytest.mark.clause("040-COMP-04")
def test_helpers_of_two_modules_do_not_meet() -> None:
    first = "AllowQueryRecord(V,P) :- Good(P).\nGood(P) :- Field(P,'Group',_,'X')."
    second = "AllowQueryRecord(V,P) :- Good(P).\nGood(P) :- Field(P,'Tag',_,'t')."
    assert seen(first, second) == {"x2"}


@pytest.mark.clause("040-COMP-06", "040-LOWER-05")
def test_an_empty_view_still_shows_advertisements_and_runtime_facts() -> None:
    peer = selector("Peer(P)", "Advertised(P,S), AdvertisedField(P,S,'Group',_,'X')")
    outcome = run([*STORE, *advertised("n", Group="X"), Fact(PEER, ("V.p",))], peer=peer)
    assert (outcome.selected(1), outcome.claims(1)) == ({"V.p"}, {("n", "S")})


@pytest.mark.clause("040-EXPOSE-08")
def test_advertisements_cannot_move_a_view() -> None:
    text = (
        "AllowQueryRecord(V,P) :- Have(P), not Advertised(P,_).\nAllowQueryRecord(V,P) :- AdvertisedField(P,_,_,_,_)."
    )
    assert seen(text, facts=[*STORE, *advertised("x1", Group="X")]) == {"x1", "x2", "y1", "y2"}


@pytest.mark.clause("040-EXPOSE-08")
def test_exposure_reads_full_record_facts_and_runtime_facts() -> None:
    text = "AllowQueryRecord(V,P) :- Have(P), Peer(V), Cardinality(Field(Q,'Group',_,'Y'),'>=','2')."
    assert seen(text, facts=[*STORE, Fact(PEER, (ALICE,))]) == {"x1", "x2", "y1", "y2"}
    assert seen(text) == set()


@pytest.mark.clause("020-GATE-05")
@pytest.mark.parametrize(
    ("text", "visible"),
    [
        ("AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'X').", {"x1", "x2"}),
        ("AllowQueryRecord(W,P) :- Have(P), Field(P,'Group',_,'X').", {"x1", "x2"}),
        ("AllowQueryRecord(V,P) :- Have(P), V != 'V.alice.H3'.", set()),
        ("AllowQueryRecord(V,P) :- Have(P), LexCompare(V,'>','V.'), Field(P,'Tag',_,'t').", {"x2", "y2"}),
        ("AllowQueryRecord(V,P) :- Have(P), Grant(V).\nGrant('V.alice.H3') :- true.", {"x1", "x2", "y1", "y2"}),
        ("AllowQueryRecord(V,P) :- Have(P), not Grant(V).\nGrant('V.alice.H3') :- true.", set()),
        ("AllowQueryRecord(V,P) :- Have(P), Cardinality(Grant(V),'<','1').\nGrant('V.alice.H3') :- true.", set()),
        ("AllowQueryRecord(V,P) :- Have(P), TextShape(V,'V.','','H3').", {"x1", "x2", "y1", "y2"}),
        ("AllowQueryRecord(V,'x1') :- true.", {"x1"}),
    ],
)
def test_the_viewer_takes_the_variable_s_place_throughout_its_rule(text: str, visible: set[str]) -> None:
    assert seen(text) == visible


@pytest.mark.clause("020-GATE-05")
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("AllowQueryRecord(V,P) :- Helper(V,P).\nHelper(V,P) :- Have(P).", "unsafe"),
        ("AllowQueryRecord(V,P) :- Have(Q).", "unsafe"),
        ("AllowQueryRecord(_,P) :- Have(P).", "anonymous-head"),
        ("Helper(P) :- Have(P).", "missing-allow-query-record"),
        ("AllowQueryRecord(V,P) :- Have(P).\nCanQueryRecord(V,P) :- Have(P), Peer(V).", "reserved-head"),
        pytest.param(
            "AllowQueryRecord(V,P) :- SelectHave(P).\nSelectHave(P) :- Have(P).",
            "reserved-head",
            marks=pytest.mark.clause("030-SHADOW-15"),
        ),
        pytest.param(
            "AllowQueryRecord(V,P) :- Have(P).\nSelectAdvertised(P,S) :- Have(P), Peer(S).",
            "reserved-head",
            marks=pytest.mark.clause("030-SHADOW-15"),
        ),
        ("AllowQueryRecord(V,P) :- MaySend(P).", "reserved-body"),
        ("AllowQueryRecord(V,P) :- o1_SelectHave(P).", "reserved-prefix"),
        ("AllowQueryRecord('Opq_A',P) :- Have(P).", "grants-opaque"),
    ],
)
def test_an_exposure_is_refused_with_its_reason(text: str, rule: str) -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        Exposure.author(text)
    assert refused.value.rule == rule


@pytest.mark.clause("040-OPQ-09", "040-ORIGIN-04")
def test_nothing_can_be_granted_to_an_exchange_local_label() -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        Exposure.author("AllowQueryRecord('Opq_s',P) :- Have(P).")
    assert refused.value.rule == "grants-opaque"
    assert seen("AllowQueryRecord(Viewer,P) :- Have(P).", viewer="Opq_s") == {"x1", "x2", "y1", "y2"}


def test_an_exposure_may_follow_links_from_what_it_allows() -> None:
    text = f"{GROUP_X}\nAllowQueryRecord(V,Q) :- AllowQueryRecord(V,P), RecordLink(P,_,_,_,Q)."
    assert seen(text, facts=[*STORE, *record("x3", "X", link="y1")]) == {"x1", "x2", "x3", "y1"}


CONSTRAINTS = st.lists(
    st.sampled_from([GROUP_X, GROUP_Y, TAGGED, EVERYTHING, "AllowQueryRecord(V,'x1') :- true."]), min_size=1, max_size=4
)


@pytest.mark.clause("020-GATE-11", "020-GATE-12", "040-COMP-08", "040-COMP-09")
@given(CONSTRAINTS)
def test_one_more_constraint_only_narrows(texts: list[str]) -> None:
    assert seen(*texts) <= seen(*texts[:-1]) or len(texts) == 1


@pytest.mark.clause("040-COMP-07", "040-COMP-08", "020-GATE-10")
def test_widening_is_a_choice_of_its_own() -> None:
    assert seen(f"{GROUP_X}\n{TAGGED}") == {"x1", "x2", "y2"}
    assert seen(GROUP_X, TAGGED) == seen(GROUP_X) & seen(TAGGED)


@pytest.mark.clause("040-EXPOSE-05")
def test_choices_compile_to_exposure_modules() -> None:
    chosen = selector("Have(P), Field(P,'Group',_,'X'), Good(P)", helpers="Good(P) :- Field(P,'Tag',_,'t').")
    assert expose("none", selector=chosen) == ()
    assert expose("all", selector=chosen) == (expose_all(),)
    assert seen(*(module.text for module in expose("all", selector=chosen))) == {"x1", "x2", "y1", "y2"}
    assert seen(*(module.text for module in expose("selected", selector=chosen))) == {"x2"}
    assert expose("selected", selector=Module.author(ALL)) == (expose_all(),)
    assert [module.text for module in expose(GROUP_X, selector=chosen)] == [GROUP_X]


def test_selected_exposure_takes_only_what_selection_needs() -> None:
    chosen = selector("Have(P), Advertised(P,_)", "Advertised(P,S), Friend(S)", "Friend(S) :- Peer(S).")
    module = expose_selected(chosen)
    assert "Friend" not in module.text
    assert str(SELECT_HAVE.name) in module.text
    assert seen(module.text, facts=[*STORE, *advertised("x1")]) == set()  # advertisements count as none


@pytest.mark.clause("040-EXPOSE-06", "020-RES-09")
def test_showing_all_takes_no_copies_and_gives_the_same() -> None:
    peer = selector("Have(P), not Field(P,'Tag',_,_)", "Advertised(P,S), Cardinality(Have(Q),'>','3')")
    facts = [*STORE, *advertised("n")]
    direct = run(facts, peer=peer, expose=[EVERYTHING])
    through_gate = run(facts, peer=peer, expose=["AllowQueryRecord(V,P) :- Have(P), true."])
    assert (direct.policy.view, through_gate.policy.view) == (ViewKind.ALL, ViewKind.GATED)
    assert _results(direct) == _results(through_gate)
    assert not any(rule.stage == "020-query-view" for rule in direct.policy.provenance.rules)


def _results(outcome: Outcome) -> tuple[set[str], ...]:
    return outcome.may_send, outcome.may_request, outcome.sendable, outcome.visible


@pytest.mark.clause("040-LOCAL-01", "040-LOCAL-04", "040-LOCAL-05")
def test_trust_is_an_explicit_mark() -> None:
    assert run(STORE, peer=selector()).sendable == set()
    trusted = run(STORE, peer=selector(), options=LoweringOptions(trust_peer=True))
    assert trusted.sendable == trusted.visible == {"x1", "x2", "y1", "y2"}
    unproven = run(STORE, peer=selector(), options=LoweringOptions(trust_peer=True), viewer=None)
    assert unproven.sendable == set()


@pytest.mark.clause("020-RES-02")
def test_our_own_selector_may_be_given_a_narrower_view() -> None:
    narrow = LoweringOptions(local_view=(Exposure.author(GROUP_X),))
    outcome = run(STORE, peer=selector(), expose=[EVERYTHING], options=narrow)
    assert (outcome.selected(0), outcome.selected(1)) == ({"x1", "x2"}, {"x1", "x2", "y1", "y2"})


@pytest.mark.clause("040-LOCAL-03")
def test_exposure_text_is_in_nothing_that_is_shared() -> None:
    secret = "AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'very-secret')."
    policy = run(STORE, peer=selector(), expose=[secret]).policy
    shared = [policy.plan.transcript, *(operand.module.text for operand in policy.plan.operands)]
    assert not any("very-secret" in text for text in shared)


def test_before_proof_the_lowered_program_holds_no_exposure_at_all() -> None:
    plan = run(STORE, peer=selector()).policy.plan
    policy = lower(plan, local_index=0, viewer=None, exposures=(expose_all(),))
    assert policy.view is ViewKind.NOTHING
    assert not any("AllowQueryRecord" in rule.line for rule in policy.provenance.rules)


ONE_EACH = "AllowQueryRecord('V.alice.H3',P) :- Have(P).\nAllowQueryRecord('V.bob.H3',P) :- Have(P)."


@pytest.mark.clause("020-GATE-05")
def test_rules_for_other_viewers_are_left_out_unless_the_module_reads_itself() -> None:
    (only,) = Exposure.author(ONE_EACH).rules_for(Viewer("V.alice.H3"))
    assert str(only[1].head.terms[0].value) == "V.alice.H3"  # type: ignore[union-attr]
    reads = f"{ONE_EACH}\nAllowQueryRecord(V,P) :- AllowQueryRecord('V.bob.H3',P), Peer(V)."
    assert len(list(Exposure.author(reads).rules_for(Viewer("V.alice.H3")))) == 3
