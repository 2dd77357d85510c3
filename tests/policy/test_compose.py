"""Several selectors as one operand, and the selectors that people write by flags."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lace.datalog.language.syntax import Fact
from lace.errors import InvalidExchangePlan, InvalidText
from lace.facts.predicates import ADVERTISED_FIELD, FIELD, HAVE
from lace.notation.identifiers import RecordHash
from lace.policy.compose import union
from lace.policy.operand import Module
from lace.policy.select import select, select_all, select_coordinate, select_hash
from policy.hostile import hostile_module, worlds
from policy.world import EVERYTHING, advertised, record, run, selector

HASH = "P.FCj42pghb4H3WYIb~bi89N8AUEgr6iyilDwo8Llxi4O.H3"
OTHER = "B.EA7_ehEAY8WYL2is4DZ9idBDQctY2cOfABSz06ARHQx.H3"
SEAL = "S.v35WOHHcDxryND3zxylafC_8wS3bHtGkDSL_TP0w_VC.H3"
VERIFIER = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"


def selection(module: Module, facts: list[Fact]) -> tuple[set[str], set[tuple[str, ...]]]:
    outcome = run(facts, peer=module, expose=[EVERYTHING])
    return outcome.selected(1), outcome.claims(1)


@pytest.mark.clause("040-TERM-05")
@pytest.mark.parametrize("seed", range(12))
def test_a_composed_operand_means_the_union(seed: int) -> None:
    modules, facts = [hostile_module(seed), hostile_module(seed + 100)], worlds(seed).first
    parts = [selection(module, facts) for module in modules]
    assert selection(union(modules), facts) == (parts[0][0] | parts[1][0], parts[0][1] | parts[1][1])


@pytest.mark.clause("040-TERM-05")
def test_helpers_and_exports_of_the_parts_do_not_meet() -> None:
    facts = [*record("a"), *record("b", link="a"), *record("c")]
    good = [selector("Have(P), Good(P)", helpers=f"Good('{name}') :- true.") for name in "ab"]
    assert selection(union(good), facts)[0] == {"a", "b"}
    # The second part follows links from its own selection only.
    closing = selector(
        "Start(P)", helpers="Start('b') :- true.\nSelectHave(Q) :- SelectHave(P), RecordLink(P,_,_,_,Q)."
    )
    assert selection(union([selector("Have(P), P != 'a', P != 'b'"), closing]), facts)[0] == {"a", "b", "c"}
    start_c = selector(
        "Start(P)", helpers="Start('c') :- true.\nSelectHave(Q) :- SelectHave(P), RecordLink(P,_,_,_,Q)."
    )
    assert selection(union([start_c, selector("Have(P), P != 'a', P != 'c'")]), facts)[0] == {"b", "c"}


def test_composition_nests_and_stays_a_shareable_operand() -> None:
    module = hostile_module(3)
    nested = union([union([module, union([module, module])]), module])
    facts = worlds(5).first
    assert selection(nested, facts) == selection(module, facts)
    assert Module.receive(nested.text.encode(), announced=nested.id) == nested


def test_one_part_is_itself_and_none_is_refused() -> None:
    module = select_all()
    assert union([module]) is module
    with pytest.raises(InvalidExchangePlan):
        union([])


# selectors by coordinate and hash


def plex(name: str, **fields: str) -> tuple[list[Fact], list[Fact]]:
    """One record as stored and as advertised."""
    stored = [Fact(HAVE, (name,))] + [Fact(FIELD, (name, key, "0", value)) for key, value in fields.items()]
    claims = advertised(name, "S", **fields)
    return stored, claims


RECORDS = {
    HASH: {"Type": "P", "Group": "u", "App": "ding", "Name": "links/1", "TAI": "1640995200:000000000"},
    SEAL: {"Type": "S", "Group": "u", "App": "ding", "Name": "links/1", "TAI": "1640995200:000000000",
           "Signed-By": VERIFIER},
    "P.links": {"Type": "P", "Group": "u", "App": "ding", "Name": "links"},
    "P.linksy": {"Type": "P", "Group": "u", "App": "ding", "Name": "linksy/1"},
    "P.app": {"Type": "P", "Group": "u", "App": "dong", "Name": "links/1"},
    "P.group": {"Type": "P", "Group": "u/v", "App": "ding", "Name": "links/1"},
    "B.blob": {"Type": "B"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("//", set(RECORDS)),
        ("//u//", {HASH, SEAL, "P.links", "P.linksy", "P.app"}),
        ("//u//ding//", {HASH, SEAL, "P.links", "P.linksy"}),
        ("//u//ding//links/", {HASH, SEAL}),
        ("//u//ding//links/1", {HASH, SEAL}),
        ("//u//ding//links", {"P.links"}),
        ("//u//ding//links/1/|/plex", {HASH}),
        ("//u//ding//links/1/|/seal", {SEAL}),
        (f"//u//ding//links/1/|/seal/{VERIFIER}", {SEAL}),
        (f"//u//ding//links/1/|/seal/{VERIFIER}/1640995200:000000000/{SEAL}", {SEAL}),
        ("//u//ding//links/1/|/plex/1640995201:000000000", set()),
    ],
)
def test_a_coordinate_selects_the_same_set_stored_and_advertised(address: str, expected: set[str]) -> None:
    facts = [fact for name, fields in RECORDS.items() for part in plex(name, **fields) for fact in part]
    have, claims = selection(select_coordinate(address), facts)
    assert have == expected
    assert claims == {(name, "S") for name in expected}


def test_a_quote_in_a_path_is_a_value_and_not_a_rule() -> None:
    address = "//it's//a\\b//n'); SelectHave('x"
    assert "Field(P,'Group',_,'it\\'s')" in select_coordinate(address).text


def test_a_hash_selects_itself_without_a_look_at_records() -> None:
    module = select_hash(HASH, OTHER, HASH)
    assert selection(module, [])[0] == {HASH, OTHER}
    assert selection(module, [*advertised(HASH), *advertised("P.x")])[1] == {(HASH, "S")}
    assert ADVERTISED_FIELD.name not in module.text
    assert run([Fact(HAVE, (HASH,))], peer=module).may_send == {HASH}  # no exposure needed; the gate is another matter


def test_two_hundred_and_fifty_hashes_fit_into_one_operand() -> None:
    hashes = [RecordHash.of("P", bytes([n]) * 32) for n in range(250)]
    assert selection(select_hash(*hashes), [])[0] == set(hashes)


def test_flags_join_into_a_union_and_none_means_everything() -> None:
    facts = [fact for name, fields in RECORDS.items() for part in plex(name, **fields) for fact in part]
    only = selector("Field(P,'App',_,'dong')", "AdvertisedField(P,S,'App',_,'dong')")
    module = select(coordinates=["//u//ding//links", "//u/v//"], hashes=[HASH], modules=[only])
    assert selection(module, facts)[0] == {"P.links", "P.group", HASH, "P.app"}
    assert select() == select_all()


@pytest.mark.parametrize("bad", ["u//ding", "//u//ding//a//b", "//u//../x"])
def test_a_bad_coordinate_is_refused(bad: str) -> None:
    with pytest.raises(InvalidText):
        select_coordinate(bad)


def test_a_bad_or_missing_hash_is_refused() -> None:
    with pytest.raises(InvalidText):
        select_hash("P.x")
    with pytest.raises(InvalidExchangePlan):
        select_hash()


def test_the_rules_shown_in_the_policy_document_are_accepted() -> None:
    text = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    chosen, shown = re.findall(r"```lace\n(.*?)```", text, re.DOTALL)
    assert Module.author(chosen) == select_coordinate("//u//")
    facts = [*record("x1", "u"), *record("x2", "v")]
    assert run(facts, peer=select_all(), expose=[shown]).visible == {"x1"}
