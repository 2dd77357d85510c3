"""Rules that say of a claim what they say of a record (070-TAKE-02 rests on them)."""

from __future__ import annotations

import pytest

from lace.policy.compile import agree
from lace.policy.mirrored import is_mirrored, names_parts, selects_alike
from lace.policy.operand import Module
from lace.policy.select import select, select_all, select_coordinate, select_hash, telling
from lace.policy.transcript import Lowering

HASH = f"B.{'0' * 43}.H3"
GROUP = "SelectHave(P) :- Have(P), Field(P,'Group',_,'u')."


def module(*rules: str) -> Module:
    return Module.author("\n".join(rules))


@pytest.mark.parametrize(
    "selector",
    [
        select_all(),
        select_coordinate("//u//ding//links/"),
        select_coordinate("//u//"),
        select_coordinate("//u//ding//links/1"),
        select_hash(HASH),
        select(coordinates=["//u//", "//v//"], hashes=[HASH]),
        telling(select_coordinate("//u//"), ["TAI"]),
    ],
    ids=["all", "below", "group", "coordinate", "hash", "several", "telling more"],
)
def test_what_the_helpers_write_is_mirrored(selector: Module) -> None:
    assert is_mirrored(selector)
    assert selects_alike(agree(selector, select_all()))
    assert selects_alike(agree(select_all(), selector))


@pytest.mark.parametrize(
    "claimed",
    [
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u').",
        "SelectAdvertised(Q,From) :- AdvertisedField(Q,From,'Group',_,'u'), Advertised(Q,From).",
        "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,'u').",
    ],
)
def test_names_of_variables_and_what_goes_without_saying_do_not_count(claimed: str) -> None:
    assert is_mirrored(module(GROUP, claimed))


@pytest.mark.parametrize(
    "claimed",
    [
        "SelectAdvertised(P,S) :- Advertised(P,S).",  # asks for more
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'v').",  # for others
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group','0','u').",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'App',_,'u').",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,T,'Group',_,'u').",  # of anybody's claim
        "SelectAdvertised(P,S) :- Advertised(P,S), not AdvertisedField(P,S,'Group',_,'u').",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), Peer(S).",  # of some peers
        "SelectAdvertised(P,'me') :- Advertised(P,'me'), AdvertisedField(P,'me','Group',_,'u').",
        "SelectAdvertised(P,P) :- Advertised(P,P), AdvertisedField(P,P,'Group',_,'u').",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), LexCompare(S,'<','m').",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), Have(P).",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Group',_,'u'), Have(Q).",
    ],
)
def test_anything_else_is_not(claimed: str) -> None:
    assert not is_mirrored(module(GROUP, claimed))
    assert not selects_alike(agree(module(GROUP, claimed), select_all()))
    assert not selects_alike(agree(select_all(), module(GROUP, claimed)))


def test_one_rule_more_on_either_side_is_another_set() -> None:
    group = module(GROUP, "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,'u').")
    assert is_mirrored(group)
    assert not is_mirrored(module(group.text, "SelectAdvertised(P,S) :- AdvertisedField(P,S,'App',_,'a')."))
    assert not is_mirrored(module(group.text, "SelectHave(P) :- Field(P,'App',_,'a')."))
    both = ("SelectHave(P) :- Field(P,'App',_,'a').", "SelectAdvertised(P,S) :- AdvertisedField(P,S,'App',_,'a').")
    assert is_mirrored(module(group.text, *both))


@pytest.mark.parametrize(
    "helper",
    [
        ("Good(V) :- Have(R), Field(R,'Name',_,V).",),  # other records
        ("Good(V) :- Here(V).",),  # who one is
        ("Good(V) :- TickTAI(V).",),
        ("Good(V) :- Advertised(V,_).",),
        ("Good(V) :- Better(V).", "Better(V) :- Here(V)."),
    ],
)
def test_a_helper_that_two_sides_may_see_differently_is_a_doubt(helper: tuple[str, ...]) -> None:
    reads = (
        "SelectHave(P) :- Have(P), Field(P,'Signed-By',_,V), Good(V).",
        "SelectAdvertised(P,S) :- Advertised(P,S), AdvertisedField(P,S,'Signed-By',_,V), Good(V).",
    )
    assert not is_mirrored(module(*reads, *helper))
    assert is_mirrored(module(*reads, "Good('a') :- true.", "Good('b') :- true."))


def test_a_source_that_is_read_as_a_value_is_no_variable_of_the_record() -> None:
    assert not is_mirrored(
        module(
            "SelectHave(P) :- Good(X), Field(P,'App',_,X).",
            "SelectAdvertised(P,S) :- Good(S), AdvertisedField(P,S,'App',_,S).",
            "Good('a') :- true.",
        )
    )


def test_a_long_text_is_a_doubt() -> None:
    """A peer may have written it, and to look at every atom takes a while."""
    names = [f"a{number:03}" for number in range(40)]
    rules = [
        rule
        for name in names
        for rule in (
            f"SelectHave(P) :- Field(P,'App',_,'{name}').",
            f"SelectAdvertised(P,S) :- AdvertisedField(P,S,'App',_,'{name}').",
        )
    ]
    assert is_mirrored(module(*rules[:60]))
    longer = module(*rules)
    assert len(longer.text) > 4096
    assert not is_mirrored(longer)


def test_links_of_a_record_have_no_claims() -> None:
    assert not is_mirrored(
        module("SelectHave(P) :- Have(P), BlobHash(P,_).", "SelectAdvertised(P,S) :- Advertised(P,S).")
    )


@pytest.mark.parametrize("lowering", list(Lowering))
def test_a_plan_that_reads_who_the_peer_is_is_a_doubt(lowering: Lowering) -> None:
    plan = agree(select_all(), select_all(), lowering=lowering)
    assert selects_alike(plan) == (lowering is Lowering.STANDARD)


def test_rules_for_parts_are_left_aside_and_told_of() -> None:
    everything, group = select_all(), select_coordinate("//u//")
    assert names_parts(agree(everything, group))
    assert names_parts(agree(group, everything))
    assert not names_parts(agree(everything, module(GROUP, "SelectAdvertised(P,S) :- Advertised(P,S).")))
    parts = "SelectHave(C) :- SelectHave(M), RecordLink(M,'Chunk+Link',_,_,C), Have(C)."
    claimed = "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,'u')."
    assert is_mirrored(module(GROUP, claimed, parts))
    assert not is_mirrored(module(GROUP, claimed, parts.replace("Chunk+Link", "See+Link")))
