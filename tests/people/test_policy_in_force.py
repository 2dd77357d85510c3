"""Which policy is in force in a lace: what an admin in force signed, and nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import lace as api
from lace.errors import InvalidText
from lace.limits import SECOND_NS
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.people.policyrecords import PolicyKind, policy_in_force
from lace.people.root import Root, pin_root, pinned_root
from lace.people.standing import admins_in_force
from lace.records.keys import SigningKey
from lace.records.tip import TipPolicy

FOUNDER, ANNA, EVE = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7, 9))
NOW = TAI.of_unix_ns(1_790_000_000 * SECOND_NS)
TIPS = TipPolicy.at(NOW, 86_400)
ROOT = Root("club", FOUNDER.verifier)


def dated(seconds: float) -> str:
    return str(NOW.plus_ns(int(seconds * SECOND_NS)))


def put(lace: api.Lace, app: str, name: str, text: str, sign: SigningKey | None, at: float, **headers: str) -> str:
    """A record as a peer may bring it: put elsewhere, stored here."""
    with api.open(":memory:") as elsewhere:
        written = elsewhere.put(
            text.encode(), group="club", app=app, name=name, tai=dated(at), sign=sign, headers=list(headers.items())
        )
        stored = elsewhere.store.get(written)
        assert stored is not None
        return str(lace.put_stored(stored))


def rules(what: str) -> str:
    """A selector that can be told from others."""
    return f"SelectHave(P) :- Have(P), Field(P,'X',_,'{what}').\nSelectAdvertised(P,S) :- Advertised(P,S).\n"


def text_in_force(lace: api.Lace, kind: PolicyKind = PolicyKind.SELECT) -> str | None:
    found = policy_in_force(lace.store, TIPS)
    assert found is not None
    return found.text(kind)


@pytest.mark.clause("083-ROOT-02")
def test_a_lace_without_a_root_has_no_policy_whatever_it_holds() -> None:
    with api.open(":memory:") as lace:
        put(lace, "policy", "select", rules("rules"), FOUNDER, -10)
        assert policy_in_force(lace.store, TIPS) is None


@pytest.mark.clause("083-FORCE-01")
@pytest.mark.clause("083-FORCE-02")
def test_the_newest_version_of_the_founder_is_in_force() -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "policy", "select", rules("new"), FOUNDER, -10)
        put(lace, "policy", "select", rules("old"), FOUNDER, -20)  # a replayed older one
        assert text_in_force(lace) == rules("new")
        assert text_in_force(lace, PolicyKind.EXPOSE) is None


@pytest.mark.clause("083-FORCE-02")
@pytest.mark.parametrize("signer", [None, EVE], ids=["unsigned", "by a stranger"])
def test_a_forged_policy_counts_for_nothing(signer: SigningKey | None) -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "policy", "select", rules("forged"), signer, -1)
        assert text_in_force(lace) is None
        put(lace, "policy", "select", rules("true"), FOUNDER, -10)
        assert text_in_force(lace) == rules("true")


def test_an_admin_may_set_it_until_the_founder_withdraws_them() -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "policy", "select", rules("founders"), FOUNDER, -30)
        put(lace, "policy", "select", rules("annas"), ANNA, -20)
        assert text_in_force(lace) == rules("founders")
        put(lace, "admin", ANNA.verifier, "", FOUNDER, -25, State="in")
        assert admins_in_force(lace.store, ROOT) == {FOUNDER.verifier, ANNA.verifier}
        assert text_in_force(lace) == rules("annas")
        put(lace, "admin", ANNA.verifier, "", FOUNDER, -5, State="out")
        assert text_in_force(lace) == rules("founders")


def test_nobody_becomes_an_admin_by_their_own_word() -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "admin", EVE.verifier, "", EVE, -25, State="in")
        assert admins_in_force(lace.store, ROOT) == {FOUNDER.verifier}


@pytest.mark.clause("083-FORCE-01")
def test_a_version_that_is_dated_too_far_ahead_waits() -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "policy", "select", rules("todays"), FOUNDER, -10)
        put(lace, "policy", "select", rules("next weeks"), FOUNDER, 7 * 86_400)
        assert text_in_force(lace) == rules("todays")


@pytest.mark.clause("083-ROOT-01")
def test_a_root_is_pinned_once_and_kept_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "club.lace"
    with api.open(path, create=True) as lace:
        assert pinned_root(lace.store) is None
        pin_root(lace.store, ROOT)
    with api.open(path) as lace:
        assert pinned_root(lace.store) == ROOT
        pin_root(lace.store, ROOT)
        with pytest.raises(InvalidText, match="pinned to the group club"):
            pin_root(lace.store, Root("club", EVE.verifier))
        assert pinned_root(lace.store) == ROOT
    with api.open(":memory:") as other, pytest.raises(InvalidText):
        pin_root(other.store, Root("o'clock", FOUNDER.verifier))


@pytest.mark.clause("083-FORM-01")
@pytest.mark.clause("083-FORCE-02")
def test_a_version_that_cannot_be_read_is_never_in_force() -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "policy", "select", rules("good"), FOUNDER, -20)
        put(lace, "policy", "select", "SelectHave(P) :- Nothing", FOUNDER, -10)
        put(lace, "policy", "select", "\x00" * 300_000, FOUNDER, -5)
        assert text_in_force(lace) == rules("good")


def test_what_is_in_force_does_not_depend_on_the_order_in_which_records_came() -> None:
    said = [
        ("policy", "select", rules("a"), FOUNDER, -30, {}),
        ("policy", "select", rules("b"), ANNA, -20, {}),
        ("policy", "select", rules("c"), EVE, -10, {}),
        ("admin", ANNA.verifier, "", FOUNDER, -25, {"State": "in"}),
        ("admin", EVE.verifier, "", EVE, -24, {"State": "in"}),
        ("policy", "expose", "nonsense", FOUNDER, -3, {}),
    ]
    with api.open(":memory:") as first:
        for app, name, text, sign, at, headers in said:
            put(first, app, name, text, sign, at, **headers)
        stored = [body for _, body in first.store.bodies_since()]
    found = set()
    for turn in range(len(stored)):
        with api.open(":memory:") as lace:
            pin_root(lace.store, ROOT)
            for body in [*stored[turn:], *stored[:turn]]:
                lace.put_stored(body)
            in_force = policy_in_force(lace.store, TIPS)
            assert in_force is not None
            found.add((in_force.hashes, in_force.admins, text_in_force(lace)))
    ((_, admins, text),) = found
    assert admins == {FOUNDER.verifier, ANNA.verifier}
    assert text == rules("b")


@pytest.mark.clause("083-FORCE-01")
def test_an_admin_withdraws_a_policy_and_a_stranger_does_not() -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, ROOT)
        put(lace, "policy", "select", rules("first"), FOUNDER, -40)
        second = put(lace, "policy", "select", rules("second"), FOUNDER, -30)
        put(lace, "policy", "select", "", EVE, -25, Retract="all")
        assert text_in_force(lace) == rules("second")
        put(lace, "policy", "select", "", FOUNDER, -20, **{"Retract+Link": f"version {second}"})
        assert text_in_force(lace) == rules("first")
        put(lace, "policy", "select", "", FOUNDER, -10, Retract="all")
        assert text_in_force(lace) is None
        put(lace, "policy", "select", rules("third"), FOUNDER, -5)
        assert text_in_force(lace) == rules("third")


VECTORS = json.loads((Path(__file__).parents[1] / "vectors" / "policy.json").read_text(encoding="utf-8"))


@pytest.mark.clause("083-FORCE-01")
@pytest.mark.clause("083-FORCE-02")
@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["name"])
def test_the_vectors_say_what_is_in_force(case: dict[str, Any]) -> None:
    with api.open(":memory:") as lace:
        pin_root(lace.store, Root(VECTORS["group"], Verifier(VECTORS["founder"])))
        for stored in case["records"]:
            lace.put_stored(stored.encode())
        found = policy_in_force(lace.store, TipPolicy(until=VECTORS["until"]))
        assert found is not None
        assert {str(kind): version.hash for kind, version in found.versions.items()} == case["in_force"]
