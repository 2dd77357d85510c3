"""Lowering: scopes, merge, enforcement, the peer's view, the send gate."""

from __future__ import annotations

import pytest

from executors.reference import evaluate
from lace.datalog.language.syntax import Fact, Predicate
from lace.datalog.source import MemorySource
from lace.facts.predicates import MAY_SEND, PEER, TRANSPORT_ENCRYPTED
from lace.policy.compile import agree
from lace.policy.lower import LoweringOptions, lower
from lace.policy.operand import Module
from lace.policy.transcript import Lowering
from policy.world import ALICE, EVERYTHING, GROUP_X, GROUP_Y, advertised, record, run, selector

STORE = [*record("x1", "X"), *record("x2", "X", link="y1"), *record("y1", "Y"), *record("y2", "Y")]
GATE_OFF = LoweringOptions(send_gate=False)


# views of the peer's operand (020)


@pytest.mark.parametrize(
    ("atom", "visible"),
    [
        pytest.param("Have(P)", {"x1", "x2"}, marks=pytest.mark.clause("020-RES-03")),
        pytest.param("Field(P,'Group',_,_)", {"x1", "x2"}, marks=pytest.mark.clause("020-RES-04")),
        pytest.param("RecordLink(P,_,_,_,_)", {"x2"}, marks=pytest.mark.clause("020-RES-05")),
        pytest.param("BlobHash(P,_)", {"x1", "x2"}, marks=pytest.mark.clause("020-RES-06")),
        pytest.param("PlexHash(P,_)", {"x1", "x2"}, marks=pytest.mark.clause("020-RES-07")),
    ],
)
@pytest.mark.clause("040-LOWER-04", "020-RES-14", "040-TERM-01")
def test_a_peer_s_record_atom_ranges_over_its_view(atom: str, visible: set[str]) -> None:
    facts = [*STORE, *record("y3", "Y", link="x1")]
    assert run(facts, peer=selector(atom), expose=[GROUP_X]).selected(1) == visible
    assert run(facts, peer=selector(f"Have(P), {atom}"), expose=[GROUP_X]).selected(1) == visible


@pytest.mark.clause("020-RES-08", "020-DISC-04")
@pytest.mark.parametrize(
    ("atom", "values"),
    [("RecordLink(Q,_,_,_,P)", {"y1"}), ("BlobHash(Q,P)", {"B.x1", "B.x2"}), ("PlexHash(Q,P)", {"P.x1", "P.x2"})],
)
def test_only_the_subject_of_a_fact_is_gated(atom: str, values: set[str]) -> None:
    assert run(STORE, peer=selector(atom), expose=[GROUP_X]).selected(1) == values


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        pytest.param("Field(_,'Group',_,'Y')", False, id="anonymous subject"),
        pytest.param("Field(Q,'Group',_,'Y')", False, id="free subject"),
        pytest.param("Field('y1','Group',_,'Y')", False, id="constant subject"),
        pytest.param("Field(_,'Group',_,'X')", True, id="visible"),
        pytest.param("not Field(_,'Group',_,'Y')", True, marks=pytest.mark.clause("020-RES-12")),
        pytest.param("not Have('y1')", True, marks=pytest.mark.clause("020-RES-12")),
        pytest.param("not Field(_,'Group',_,'X')", False, marks=pytest.mark.clause("020-RES-12")),
        pytest.param("Cardinality(Field(Q,'Group',_,'Y'),'>=','1')", False, marks=pytest.mark.clause("020-RES-13")),
        pytest.param("Cardinality(Have(_),'<=','2')", True, marks=pytest.mark.clause("020-RES-13")),
        pytest.param("Cardinality(Field(_,_,_,_),'<','3')", True, marks=pytest.mark.clause("020-RES-13")),
        pytest.param("Hidden('y1')", False, marks=pytest.mark.clause("020-RES-10", "020-RES-11")),
        pytest.param("not Hidden('y1')", True, marks=pytest.mark.clause("020-RES-10", "020-RES-11")),
        pytest.param("Cardinality(Hidden(_),'<','1')", True, marks=pytest.mark.clause("020-RES-10", "020-RES-11")),
    ],
)
@pytest.mark.clause("020-RES-14")
def test_a_peer_cannot_test_for_hidden_records(condition: str, holds: bool) -> None:
    helpers = "Hidden(P) :- Deeper(P).\nDeeper(P) :- Field(P,'Group',_,'Y').\nDeeper(P) :- Deeper(P), Have(P)."
    peer = selector(f"Have(P), {condition}", f"Advertised(P,S), {condition}", helpers)
    outcome = run([*STORE, *advertised("n")], peer=peer, expose=[GROUP_X])
    assert outcome.may_send == ({"x1", "x2"} if holds else set())
    assert outcome.may_request == ({"n"} if holds else set())


@pytest.mark.clause("020-RES-13")
@pytest.mark.parametrize(("count", "holds"), [("9", False), ("10", True), ("11", False)])
def test_a_count_is_of_distinct_visible_facts(count: str, holds: bool) -> None:
    facts = [fact for n in range(10) for fact in record(f"x{n}", "X")]
    facts += [fact for n in range(20) for fact in record(f"y{n}", "Y")]
    body = f"Have(P), Cardinality(Field(Q,'Group',_,G),'>=','{count}'), Cardinality(Field(_,_,_,_),'<=','{count}')"
    assert bool(run(facts, peer=selector(body), expose=[GROUP_X]).selected(1)) is holds


@pytest.mark.clause("020-VIEW-05", "020-VIEW-13", "020-VIEW-14", "020-VIEW-15", "020-VIEW-16", "020-RES-01")
@pytest.mark.clause("020-VIEW-07", "020-VIEW-08", "040-LOWER-03", "040-FACET-01", "040-FACET-03", "040-TERM-07")
@pytest.mark.parametrize("local_index", [0, 1])
def test_own_rules_see_everything_and_the_peer_s_see_the_view(local_index: int) -> None:
    outcome = run(STORE, peer=selector(), expose=[GROUP_X], local_index=local_index)
    assert outcome.selected(local_index) == {"x1", "x2", "y1", "y2"}
    assert outcome.selected(1 - local_index) == {"x1", "x2"}


@pytest.mark.clause("040-ORIGIN-09")
def test_one_text_from_two_origins_means_two_things() -> None:
    module = selector("Have(P), not Field(_,'Group',_,'Y')")
    outcome = run(STORE, local=module, peer=module, expose=[GROUP_X])
    assert (outcome.selected(0), outcome.selected(1)) == (set(), {"x1", "x2"})


@pytest.mark.clause("020-DISC-01", "020-DISC-02", "020-DISC-03", "040-DISC-02")
def test_what_is_queryable_is_queryable() -> None:
    """Through each kind of literal, and `Have` with every other fact of a visible record."""
    peer = selector("Field(P,'Group',_,_), Have(P)", "Advertised(P,S), Cardinality(Have(_),'>=','2'), not Have('y1')")
    outcome = run([*STORE, *advertised("n")], peer=peer, expose=[GROUP_X])
    assert (outcome.may_send, outcome.may_request) == ({"x1", "x2"}, {"n"})


@pytest.mark.clause("020-VIEW-01", "020-VIEW-02", "020-VIEW-03", "020-VIEW-04")
def test_evaluation_reads_its_snapshot_and_nothing_else() -> None:
    policy = run(STORE, peer=selector(), expose=[GROUP_X]).policy
    facts = list(STORE)
    snapshot = MemorySource(facts)
    before = evaluate(policy.program, snapshot)
    facts += record("x9", "X")  # a later write is no part of the snapshot
    assert evaluate(policy.program, snapshot) == before
    assert ("x9",) in evaluate(policy.program, MemorySource(facts))[MAY_SEND]


# scopes and merge


@pytest.mark.clause("040-FACET-07", "040-FACET-08", "040-SCOPE-01", "040-SCOPE-02", "040-SCOPE-04")
def test_helpers_of_the_same_name_do_not_meet() -> None:
    local = selector("Have(P), Member(P)", helpers="Member(P) :- Field(P,'Group',_,'X').")
    peer = selector("Have(P), Member(P)", helpers="Member('x1') :- true.\nMember('y1') :- true.")
    outcome = run(STORE, local=local, peer=peer, expose=[EVERYTHING])
    assert (outcome.selected(0), outcome.selected(1), outcome.may_send) == ({"x1", "x2"}, {"x1", "y1"}, {"x1"})


@pytest.mark.clause("040-SCOPE-07", "040-FACET-07")
def test_a_helper_that_only_the_other_operand_defines_is_empty() -> None:
    local = selector("Have(P), Member(P)", helpers="Member(P) :- Have(P).")
    assert run(STORE, local=local, peer=selector("Have(P), Member(P)"), expose=[EVERYTHING]).selected(1) == set()


@pytest.mark.clause("040-SCOPE-03", "040-SCOPE-06", "040-SCOPE-10")
def test_scoped_names_come_from_the_index_and_base_predicates_stay() -> None:
    policy = run(STORE, peer=selector(helpers="Other(P) :- Have(P), StartTAI(T), Advertised(P,S)."), viewer=None).policy
    names = {predicate.name for predicate in policy.program.derived | policy.program.base}
    assert not any("Opq_" in name or "." in name for name in names)
    assert {"Have", "Advertised"} <= names
    assert "o1_Have" not in names
    assert "o1_Advertised" not in names


@pytest.mark.clause("040-MERGE-01", "040-MERGE-02", "040-MERGE-04", "040-LOWER-01")
def test_only_what_both_select_may_be_sent() -> None:
    local, peer = selector("Field(P,'Group',_,'X')"), selector("RecordLink(P,_,_,_,_)")
    outcome = run([*STORE, *record("y3", "Y", link="x1")], local=local, peer=peer, expose=[EVERYTHING])
    assert outcome.may_send == {"x2"}


@pytest.mark.clause("040-MERGE-03", "040-LOWER-02", "040-FACET-02", "040-FACET-04")
def test_both_select_the_same_record_of_the_same_source() -> None:
    claims = [*advertised("n", "S1", Group="X"), *advertised("n", "S2", Group="Y"), *advertised("m", "S1", Group="X")]
    local = selector(claimed="AdvertisedField(P,S,'Group',_,'X')")
    other = selector(claimed="Advertised(P,S), LexCompare(S,'>','S1')")
    assert run(claims, local=local, peer=other).may_request == set()
    assert run([*claims, *advertised("m", "S2", Group="X")], local=local, peer=other).may_request == {"m"}


@pytest.mark.clause("040-MERGE-05")
def test_the_order_of_the_operands_does_not_matter_for_the_sets() -> None:
    # Each side selects something that the other does not, so a merge that forgets either operand is seen.
    local = selector("Field(P,'Group',_,'X')", "AdvertisedField(P,S,'Group',_,'X')")
    peer = selector("Have(P), LexCompare(P,'>','x1')", "AdvertisedField(P,S,'App',_,'a')")
    claims = [*advertised("n", Group="X", App="a"), *advertised("m", Group="X"), *advertised("k", App="a")]
    first = run([*STORE, *claims], local=local, peer=peer, expose=[EVERYTHING], local_index=0)
    second = run([*STORE, *claims], local=local, peer=peer, expose=[EVERYTHING], local_index=1)
    assert (first.may_send, first.may_request) == (second.may_send, second.may_request) == ({"x2"}, {"n"})
    swapped = run([*STORE, *claims], local=peer, peer=local, expose=[EVERYTHING], local_index=0)
    assert (swapped.may_send, swapped.may_request) == ({"x2"}, {"n"})
    assert len({one.policy.plan.id for one in (first, second, swapped)}) >= 2


@pytest.mark.clause("040-MERGE-06")
def test_without_exposure_a_peer_that_asks_for_records_gets_none() -> None:
    assert run(STORE, peer=selector(), options=GATE_OFF).may_send == set()


# enforcement


@pytest.mark.clause("040-LOWER-09", "040-LOWER-11")
def test_an_encrypted_lowering_sends_only_over_an_encrypted_transport() -> None:
    plain = run(STORE, peer=selector(), expose=[EVERYTHING], lowering=Lowering.ENCRYPTED)
    assert plain.may_send == plain.sendable == set()
    facts = [*STORE, Fact(TRANSPORT_ENCRYPTED, ())]
    assert run(facts, peer=selector(), expose=[EVERYTHING], lowering=Lowering.ENCRYPTED).sendable == {
        "x1", "x2", "y1", "y2",
    }  # fmt: skip


@pytest.mark.clause("040-LOWER-10", "040-LOWER-11")
def test_a_from_peer_lowering_requests_only_from_the_proven_peer() -> None:
    claims = [*advertised("n", "V.p"), *advertised("m", "S")]
    assert run(claims, peer=selector(), lowering=Lowering.FROM_PEER).may_request == set()
    facts = [*claims, Fact(PEER, ("V.p",))]
    assert run(facts, peer=selector(), lowering=Lowering.FROM_PEER).may_request == {"n"}
    assert run(facts, peer=selector(), lowering=Lowering.ENCRYPTED_FROM_PEER).requestable == {"n"}


@pytest.mark.clause("040-EXEC-02")
def test_the_runtime_reads_sendable_and_requestable() -> None:
    """Sendable is MaySend and Have behind the gate; requestable is MayRequest, advertised and missing."""
    peer = selector("Wanted(P)", "Wanted(P), Peer(S)", "Wanted('x1') :- true.\nWanted('gone') :- true.")
    local = selector("Wanted(P)", "Wanted(P), Peer(S)", "Wanted('x1') :- true.\nWanted('gone') :- true.")
    facts = [*STORE, *advertised("x1"), Fact(PEER, ("V.p",))]
    outcome = run(facts, local=local, peer=peer, expose=[EVERYTHING])
    assert (outcome.may_send, outcome.sendable) == ({"x1", "gone"}, {"x1"})
    assert (outcome.may_request, outcome.requestable) == ({"x1", "gone"}, set())
    assert run([*facts, *advertised("gone")], local=local, peer=peer).requestable == {"gone"}


@pytest.mark.clause("040-EX-05", "040-LOWER-13")
def test_a_constant_selector_is_held_back_by_the_send_gate_only() -> None:
    peer = selector("Named(P)", helpers="Named('y1') :- true.")
    closed = run(STORE, peer=peer, expose=[GROUP_X])
    assert (closed.may_send, closed.sendable) == ({"y1"}, set())
    letter = run(STORE, peer=peer, expose=[GROUP_X], options=GATE_OFF)
    assert (letter.may_send, letter.sendable) == ({"y1"}, {"y1"})
    nothing = run(STORE, peer=peer)
    assert (nothing.may_send, nothing.sendable) == ({"y1"}, set())
    assert run(STORE, peer=peer, options=GATE_OFF).sendable == {"y1"}
    assert closed.policy.plan.id == letter.policy.plan.id == nothing.policy.plan.id


@pytest.mark.clause("040-LOWER-06", "040-LOWER-07")
def test_the_lowered_program_is_one_flat_checked_program() -> None:
    policy = run(STORE, peer=selector("Have(P), not Field(_,'Group',_,'Y')"), expose=[GROUP_X]).policy
    reads = policy.program.base
    assert Predicate("CanQueryRecord", 2) not in reads
    peer_rules = [rule.line for rule in policy.provenance.rules if rule.detail == "O1"]
    assert peer_rules
    assert not any(" Have(" in line or " Field(" in line for line in peer_rules)


def test_lowering_is_linear_in_the_operands_and_keeps_their_limit() -> None:
    helpers = "\n".join(f"H{n}(P) :- Have(P), Field(P,'Group',_,'g{n}')." for n in range(250))
    peer = selector(helpers=helpers)
    assert len(run([], peer=peer, expose=[EVERYTHING]).policy.program.program.rules) < 270
    gated = run([], peer=peer, expose=[GROUP_X]).policy
    assert len(gated.program.program.rules) < 520


# the worked example of 040


ALICE_S_BAIT = selector(
    "Have(P), Field(P,'Group',_,'X')",
    "Advertised(P,S), AdvertisedField(P,S,'Group',_,'X'), Field(Q,'Group',_,'Y')",
)
BOB_S_GRANT = "AllowQueryRecord('V.alice.H3',P) :- Have(P), Field(P,'Group',_,'X')."
BAIT = advertised("bait", ALICE, Group="X")


@pytest.mark.clause("040-EX-02", "040-DISC-01")
def test_bait_tells_nothing_of_hidden_records() -> None:
    assert run([*STORE, *BAIT], peer=ALICE_S_BAIT, expose=[BOB_S_GRANT]).may_request == set()
    without_y = [fact for fact in STORE if not fact.values[0].startswith("y")]
    assert run([*without_y, *BAIT], peer=ALICE_S_BAIT, expose=[BOB_S_GRANT]).may_request == set()


@pytest.mark.clause("040-EX-03")
def test_bait_tells_of_exposed_records() -> None:
    both = f"{BOB_S_GRANT}\n{GROUP_Y}"
    assert run([*STORE, *BAIT], peer=ALICE_S_BAIT, expose=[both]).may_request == {"bait"}


@pytest.mark.clause("040-EX-04", "040-DISC-03", "020-DISC-09")
def test_our_own_rules_may_depend_on_private_records() -> None:
    own = selector(claimed="Advertised(P,S), Field(Q,'Group',_,'Y')")
    assert run([*STORE, *BAIT], local=own, peer=selector(), expose=[BOB_S_GRANT]).may_request == {"bait"}
    assert run([*record("x1"), *BAIT], local=own, peer=selector(), expose=[BOB_S_GRANT]).may_request == set()


@pytest.mark.clause("020-DISC-06")
def test_possession_of_an_advertised_hash_is_intrinsic() -> None:
    """Not requested because it is here, though hidden: the one thing that a peer may learn of a known hash."""
    outcome = run([*STORE, *advertised("y1"), *advertised("n")], peer=selector(), expose=[GROUP_X])
    assert (outcome.may_request, outcome.requestable) == ({"y1", "n"}, {"n"})


@pytest.mark.clause("020-EMBED-07")
def test_an_inner_record_is_sent_and_missed_as_any_other() -> None:
    """`BlobHash(P,H)` names H without storing it: not sendable, and requestable from a peer that has it."""
    inner = selector("BlobHash(_,P)", "Advertised(P,S), BlobHash(_,P)")
    facts = [*record("x1"), *advertised("B.x1")]
    outcome = run(facts, local=inner, peer=inner, expose=[EVERYTHING])
    assert (outcome.may_send, outcome.sendable, outcome.requestable) == ({"B.x1"}, set(), {"B.x1"})
    held = run([*facts, *record("B.x1")], local=inner, peer=inner, expose=[EVERYTHING])
    assert ("B.x1" in held.sendable, "B.x1" in held.requestable) == (True, False)


@pytest.mark.clause("020-ID-03", "020-ID-04", "020-ID-06")
def test_an_advertised_identifier_is_a_text_until_its_record_is_visible() -> None:
    """An unsupported hash may be advertised and selected; it makes no record fact, and a hidden one is but a text."""
    unknown = "P.00.H9"
    peer = selector("Have(P)", "Advertised(P,S), not Have(P), not Field(P,_,_,_)")
    facts = [*STORE, *advertised(unknown, Group="X"), *advertised("y1"), *advertised("x1")]
    outcome = run(facts, peer=peer, expose=[GROUP_X])
    assert outcome.may_request == {unknown, "y1"}
    assert (outcome.selected(0), outcome.selected(1)) == ({"x1", "x2", "y1", "y2"}, {"x1", "x2"})


@pytest.mark.clause("040-PROV-06")
def test_provenance_facts_are_not_visible_to_rules() -> None:
    peer = selector("Have(P), RuleSource(_,_,_)")
    assert run(STORE, peer=peer, expose=[EVERYTHING]).selected(1) == set()


@pytest.mark.clause("040-ADVREQ-07")
def test_schema_and_view_are_two_controls() -> None:
    """Asking for a field in advertisements opens no view; a view adds no required field."""
    peer = selector("Field(P,'Group',_,'Y')", "AdvertisedField(P,S,'Group',_,'Y')")
    outcome = run(STORE, peer=peer, expose=[GROUP_X])
    assert (outcome.policy.plan.requirements.names, outcome.selected(1)) == ({"Group"}, set())
    reads_fields = selector("Field(P,'Tag',_,_)")
    assert run(STORE, peer=reads_fields, expose=[EVERYTHING]).policy.plan.requirements.names == set()


@pytest.mark.parametrize("local", [0, 1])
def test_what_is_charged_to_a_peer_are_its_own_rules(local: int) -> None:
    """P36: whose rules touch rows pays for them, whichever operand we are."""
    rules = "SelectAdvertised(P,S) :- Advertised(P,S).\nSelectHave(P) :- Help(P).\nHelp(P) :- Advertised(P,_)."
    plan = agree(Module.author(rules), Module.author(f"{rules}\nHelp(P) :- Peer(P)."))
    guests = lower(plan, local_index=local, viewer=None).guests
    scope = "o1_" if local == 0 else "o0_"
    named = (("SelectHave", 1), ("SelectAdvertised", 2), ("Help", 1))
    assert guests == {Predicate(f"{scope}{name}", arity) for name, arity in named}
