"""Opaque labels, claims, viewers and sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.errors import InvalidExchangePlan, InvalidText
from lace.notation import b64a
from lace.notation.identifiers import Verifier
from lace.policy.compile import agree
from lace.policy.operand import Module
from lace.policy.origin import (
    Origin,
    Source,
    Viewer,
    assign_origins,
    is_opaque,
    labels_of,
    read_claim,
    require_proven,
    source_of,
    viewer_of,
    wire_origin,
)
from policy.world import ALL, selector

ALICE = Verifier("V." + "0" * 43 + ".H3")
BOB = Verifier("V.1" + "0" * 42 + ".H3")
digests = st.binary(min_size=32, max_size=32).map(b64a.encode)


@pytest.mark.clause("040-OPQ-01")
@pytest.mark.parametrize("text", ["Opq_", "Opq_AB", "Opq_+", "opq_A", "Opq_ä", "V.alice.H3", ""])
def test_a_label_is_exactly_one_b64a_character_behind_its_prefix(text: str) -> None:
    assert not is_opaque(text)
    with pytest.raises(InvalidText):
        Origin.parse(text)


@pytest.mark.clause("040-OPQ-01")
@pytest.mark.parametrize("character", b64a.ALPHABET)
def test_every_b64a_character_makes_a_label(character: str) -> None:
    assert Origin.parse(f"Opq_{character}") == f"Opq_{character}"


@pytest.mark.clause("040-OPQ-04", "040-OPQ-05")
@given(digests, digests)
def test_two_labels_differ_at_the_first_difference(first: str, second: str) -> None:
    if first == second:
        return
    labels = labels_of(first, second)
    at = next(i for i in range(43) if first[i] != second[i])
    assert labels == (f"Opq_{first[at]}", f"Opq_{second[at]}")
    assert labels[0] != labels[1]


@pytest.mark.clause("040-OPQ-06")
def test_equal_digests_have_no_labels() -> None:
    identity = Module.author(ALL).identity(0)
    with pytest.raises(InvalidExchangePlan) as refused:
        assign_origins(identity, identity)
    assert refused.value.rule == "origin-equal"


@pytest.mark.clause("040-OPQ-07", "040-OPQ-02")
def test_role_nonce_verifier_facet_and_module_all_break_ties_and_none_is_shown() -> None:
    module = Module.author(ALL)
    base = module.identity(0)
    others = [
        module.identity(1),
        module.identity(0, nonce="n"),
        module.identity(0, verifier=ALICE),
        selector("Have(P), Peer(_)").identity(0),
    ]
    assert len({base.digest_text(), *(other.digest_text() for other in others)}) == 5
    for other in others:
        assert all(is_opaque(label) for label in assign_origins(base, other))


@pytest.mark.clause("040-OPQ-11", "040-ORIGIN-01", "040-ORIGIN-02")
def test_both_sides_compute_the_same_labels_each_time() -> None:
    first, second = Module.author(ALL), selector("Have(P), Peer(_)")
    assert [operand.origin for operand in agree(first, second).operands] == [
        operand.origin for operand in agree(Module.author(first.text), Module.author(second.text)).operands
    ]


@pytest.mark.clause("040-ORIGIN-05", "040-OPQ-11")
@pytest.mark.parametrize("claim", ["Opq_A", "Opq_~"])
def test_an_opaque_claim_is_replaced_without_a_look(claim: str) -> None:
    assert read_claim(claim, own=ALICE) is None


@pytest.mark.clause("040-ORIGIN-05", "040-INV-07")
def test_a_claim_of_our_own_verifier_is_refused() -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        read_claim(ALICE, own=ALICE)
    assert refused.value.rule == "origin-local"
    assert read_claim(BOB, own=ALICE) == BOB


@pytest.mark.clause("040-ORIGIN-02")
@pytest.mark.parametrize("claim", ["local", "", "Opq_AB", "V.alice.H3", "P." + "0" * 43 + ".H3"])
def test_a_claim_is_a_verifier_or_a_label(claim: str) -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        read_claim(claim)
    assert refused.value.rule == "origin-claim"


@pytest.mark.clause("040-ORIGIN-06", "040-ORIGIN-08")
@pytest.mark.parametrize(("proven", "rule"), [(None, "origin-unproven"), (BOB, "origin-disagrees")])
def test_a_claimed_verifier_must_be_the_proven_one(proven: Verifier | None, rule: str) -> None:
    with pytest.raises(InvalidExchangePlan) as refused:
        require_proven(ALICE, proven)
    assert refused.value.rule == rule
    require_proven(ALICE, ALICE)
    require_proven(None, proven)


@pytest.mark.clause("040-ORIGIN-03", "040-OPQ-10", "020-VIEW-09", "020-VIEW-11", "040-ORIGIN-04")
def test_a_proven_verifier_is_the_viewer_while_the_origin_stays_opaque() -> None:
    origin = agree(Module.author(ALL), Module.author(ALL)).operands[1].origin
    assert is_opaque(origin)
    assert viewer_of(origin, BOB) == BOB
    assert viewer_of(origin, None) == origin
    assert source_of(origin, BOB) == BOB
    assert source_of(origin, None) == origin
    assert (type(viewer_of(origin, None)), type(source_of(origin, None))) == (Viewer, Source)


def test_a_sender_writes_the_verifier_that_it_will_prove() -> None:
    identity = Module.author(ALL).identity(0)
    assert wire_origin(identity, ALICE) == ALICE
    assert wire_origin(identity, None) == f"Opq_{identity.digest_text()[0]}"
