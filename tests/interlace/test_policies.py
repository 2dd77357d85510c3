"""Exchanges whose policies matter (050 NONMONO, EX, MODEL, INVAR, RUN): evidence, negation, time, identity."""

from __future__ import annotations

import pytest

from interlace.pair import ALL, VERIFIER_A, VERIFIER_B, Pair, blob, hash_of, make_pair, plex
from interlace.scripted import Scripted
from lace.interlace.setup.terms import Link
from lace.notation.tai import TAI
from lace.policy.compile import agree
from lace.policy.exposure import Exposure
from lace.policy.lower import lower
from lace.policy.operand import Module
from lace.policy.origin import Viewer
from lace.policy.select import select_hash
from lace.records.keys import SigningKey
from lace.records.model import Plex
from lace.records.write import encode_record

mark = pytest.mark
ACTIVE_MEMBER = Module.author(
    "SelectHave(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'member').\n"
    "SelectHave(P) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'ding'), "
    "Field(P,'Signed-By',_,V), ActiveMember(V).\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), "
    "AdvertisedField(P,S,'App',_,'member').\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), "
    "AdvertisedField(P,S,'App',_,'ding'), AdvertisedField(P,S,'Signed-By',_,V), ActiveMember(V).\n"
    "ActiveMember(V) :- Have(P), Field(P,'Group',_,'u'), Field(P,'App',_,'member'), Field(P,'Name',_,V)."
)
ALICE, BOB = SigningKey(bytes(31) + b"\x05"), SigningKey(bytes(31) + b"\x09")


def sealed(key: SigningKey, name: str, app: str = "ding") -> bytes:
    plain = Plex(group="u", app=app, name=name, tai=TAI("1640995200:000000000"))
    return encode_record(key.seal(plain, aux=bytes(31) + b"\x01"))


@mark.clause("050-EX-04")
def test_the_active_member_module_requires_exactly_three_fields() -> None:
    plan = agree(ACTIVE_MEMBER, ALL)
    assert plan.requirements.names == {"App", "Group", "Signed-By"}
    assert plan.id == "E.MKjbmo7YennakTCEIpYvjsZ0ge65BDCSfR7IEncXXrp"


@mark.clause("050-EX-03", "050-MODEL-07", "050-INVAR-06", "050-EVAL-03")
def test_evidence_fetched_in_one_loop_selects_more_in_the_next() -> None:
    pair = make_pair(ACTIVE_MEMBER, ACTIVE_MEMBER)
    member = plex(str(ALICE.verifier), app="member")
    pair.sides[0].put(member, sealed(ALICE, "links/1"), sealed(BOB, "links/2"))
    first, second = pair.exchange()
    assert second.received_hashes[0] == hash_of(member)
    assert set(second.received_hashes) == {hash_of(member), hash_of(sealed(ALICE, "links/1"))}
    assert second.loops >= 3
    assert first.fixed_point


@mark.clause("050-EX-02", "050-OPS-03", "050-OPS-02")
def test_a_side_that_selects_one_record_gets_it_stored_by_a_server_that_accepts_it() -> None:
    given_record = plex("links/1")
    server = Module.author(
        "SelectHave(P) :- Have(P), Field(P,'App',_,'ding').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'App',_,'ding')."
    )
    pair = make_pair(select_hash(hash_of(given_record)), server)
    pair.sides[0].put(given_record, plex("links/2"))
    _, second = pair.exchange()
    assert second.received_hashes == (hash_of(given_record),)
    vocabulary = {fact.predicate.name for side in pair.sides for fact in side.facts_sent()}
    # 050-OPS-02: exactly the words of any exchange, so no wrapper of ours has a word of its own.
    assert vocabulary == {
        "ExchangeOperand", "HelloExchangePlan", "HelloTAI", "HelloTickInterval", "HelloRecordFormat", "HelloLimit",
        "HelloAdvertisedField", "Advertised", "AdvertisedField", "MayRequest",
    }  # fmt: skip


AT_MOST_ONE = Module.author(
    "SelectHave(P) :- Have(P).\n"
    "SelectAdvertised(P,S) :- Advertised(P,S), not Full(P).\n"
    "Full(P) :- Advertised(P,_), Have(Q), Field(Q,'Type',_,'B')."
)


@mark.clause("050-NONMONO-01", "050-NONMONO-03", "050-NONMONO-04", "050-INVAR-02", "050-MODEL-08")
@pytest.mark.parametrize("batch", [1, 2, 10])
def test_different_schedules_may_end_differently_and_each_is_a_fixed_point(batch: int) -> None:
    pair = make_pair(ALL, AT_MOST_ONE, max_requests=batch)
    pair.sides[0].put(*(blob(bytes([n])) for n in range(4)))
    _, second = pair.exchange()
    assert len(second.received_hashes) == min(batch, 4)
    assert second.fixed_point
    assert leftovers(pair) == set()


def leftovers(pair: Pair) -> set[str]:
    """What is requestable, advertised, missing and still sendable at the end, computed apart."""
    left: set[str] = set()
    for side in pair.sides:
        sender = pair.other(side)
        wanted = side.host.requestable.intersection(side.held_hashes) - side.machine.refused
        left |= wanted & sender.host.sendable
    return left


@mark.clause("050-NONMONO-05")
def test_with_monotonic_rules_the_final_set_does_not_depend_on_the_schedule() -> None:
    ends = set()
    for options in ({}, {"max_requests": 1}, {"max_service_records": 2}, {"partition_threshold_bytes": 1}):
        pair = make_pair(**options)
        pair.sides[0].put(*(blob(bytes([n])) for n in range(6)))
        pair.sides[1].put(*(blob(bytes([n])) for n in range(4, 9)))
        pair.exchange()
        ends.add((frozenset(pair.sides[0].have), frozenset(pair.sides[1].have)))
    assert len(ends) == 1


@mark.clause("050-RUN-03", "050-RUN-04", "050-RUN-10", "050-RUN-11")
@pytest.mark.parametrize("encrypted", [False, True])
def test_rules_see_the_transport_and_only_proven_encryption(encrypted: bool) -> None:
    module = Module.author(
        "SelectHave(P) :- Have(P), Transport('wss:example.com:443/interlace'), TransportEncrypted().\n"
        "SelectAdvertised(P,S) :- Advertised(P,S)."
    )
    pair = make_pair(module, link=Link(transport="wss:example.com:443/interlace", encrypted=encrypted))
    pair.sides[0].put(blob(b"x"))
    pair.exchange()
    assert bool(pair.sides[1].have) is encrypted


@mark.clause("050-RUN-01", "050-RUN-12", "050-RUN-11", "050-RUN-02", "050-RUN-09")
def test_each_side_evaluates_the_same_plan_with_its_own_here() -> None:
    module = Module.author(
        f"SelectHave(P) :- Have(P), Here('{VERIFIER_A}').\n"
        f"SelectAdvertised(P,S) :- Advertised(P,S), Peer('{VERIFIER_A}')."
    )
    pair = make_pair(module, module, signed=True)
    pair.sides[0].put(blob(b"a"))
    pair.sides[1].put(blob(b"b"))
    pair.exchange()
    assert len(pair.sides[1].have) == 2
    assert len(pair.sides[0].have) == 1
    unsigned = make_pair(module, module)
    unsigned.sides[0].put(blob(b"a"))
    unsigned.exchange()
    assert unsigned.sides[1].have == set()


@mark.clause("050-INVAR-07", "050-ENG-06", "050-SIGN-08")
def test_a_peer_rule_cannot_read_what_is_not_exposed() -> None:
    bait = Module.author(
        "SelectHave(P) :- Have(P), Field(P,'Group',_,'X').\n"
        "SelectAdvertised(P,S) :- Advertised(P,S), Field(Q,'Group',_,'Y')."
    )
    expose = (Exposure.author("AllowQueryRecord(V,P) :- Have(P), Field(P,'Group',_,'X')."),)
    for private in ((), (plex("secret", group="Y"),)):
        pair = make_pair(bait, ALL, expose=expose)
        pair.sides[0].put(plex("bait", group="X"))
        pair.sides[1].put(*private)
        pair.exchange()
        assert pair.sides[1].named("MayRequest") == []


@mark.clause("050-INVAR-04", "050-MODEL-12")
def test_the_executable_is_made_from_operands_and_views_only() -> None:
    plan = agree(ALL, ALL)
    policy = lower(plan, local_index=0, viewer=Viewer(VERIFIER_B), exposures=())
    assert {rule.head.predicate.name for rule in policy.program.program.rules} >= {"MaySend", "MayRequest"}


@mark.clause("050-MODEL-01", "050-STATE-03", "050-MODEL-10")
def test_a_machine_holds_what_an_exchange_is_defined_by() -> None:
    wire = Scripted(stored=(blob(b"x"),)).open()
    machine = wire.side.machine
    agreement = machine.agreement
    assert agreement.plan.id == wire.plan.id
    assert agreement.negotiated.record_formats == {"H3"}
    assert agreement.negotiated.schema.names == frozenset()
    assert agreement.negotiated.limits == wire.side.terms.limits
    assert machine.epoch.own.count == 1
    assert machine.epoch.claims == 0
    assert machine.outstanding == set()
    assert machine.epoch.ticks.tick == agreement.negotiated.start
    assert VERIFIER_A != VERIFIER_B
