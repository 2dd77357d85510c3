"""Who may move a tip: what the policy of a lace says, the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import lace as api
from lace.errors import NotFound
from lace.people.kinds import PolicyKind
from lace.people.root import Root
from lace.porcelain.policy import set_policy
from lace.records.keys import SigningKey
from lace.records.tip import TipWriters

FOUNDER, ANNA, EVE = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7, 9))
ROOT = Root("club", FOUNDER.verifier)
MEMBERS = 'writers = "members"\n[apps]\nboard = "admins"\nwall = "anybody"\n'


@pytest.fixture
def club(tmp_path: Path) -> api.Lace:
    """A group of a founder and anna, and versions by them, by eve, and by nobody, each newer than the one before."""
    lace = api.open(tmp_path / "club.lace", create=True)
    set_policy(lace, {PolicyKind.TIP: MEMBERS}, ROOT, FOUNDER)
    lace.put(
        b"",
        group="club",
        app="member",
        name=ANNA.verifier,
        sign=FOUNDER,
        headers=[("State", "in"), ("Role", "member")],
    )
    for app in ("notes", "board", "wall"):
        for text, sign in (("founder", FOUNDER), ("anna", ANNA), ("eve", EVE), ("nobody", None)):
            lace.put(text.encode(), group="club", app=app, name="x", sign=sign)
    lace.put(b"eve", group="elsewhere", app="notes", name="x", sign=EVE)
    return lace


@pytest.mark.clause("083-TIP-01")
@pytest.mark.clause("083-TIP-02")
def test_the_policy_says_who_moves_a_tip_app_by_app(club: api.Lace) -> None:
    with club:
        said = {app: club.get(f"//club//{app}//x") for app in ("notes", "board", "wall")}
        assert said == {"notes": b"anna", "board": b"founder", "wall": b"nobody"}
        assert club.get("//elsewhere//notes//x") == b"eve"  # another group is not this policy's business
        tip = club.tip("//club//notes//x")
        assert [entry.signer for entry in tip.barred] == [None, EVE.verifier]
        assert any("policy lets others write here" in notice for notice in tip.notices())
        rows = {row.hash: row for row in club.list("//club//notes//x")}
        assert [str(row.state) for row in rows.values()] == ["stands", "stands", "barred", "barred"]
        assert [row.is_tip for row in rows.values()] == [False, True, False, False]


@pytest.mark.clause("083-TIP-01")
def test_who_may_not_write_may_not_withdraw_either(club: api.Lace) -> None:
    with club:
        club.retract("//club//notes//x", sign=EVE)
        assert club.get("//club//notes//x") == b"anna"
        club.retract("//club//notes//x", sign=ANNA)
        with pytest.raises(NotFound):
            club.get("//club//notes//x")


def test_a_changed_policy_changes_the_tips_of_an_open_lace(club: api.Lace) -> None:
    with club:
        assert club.get("//club//notes//x") == b"anna"
        set_policy(club, {PolicyKind.TIP: 'writers = "anybody"\n'}, ROOT, FOUNDER)
        assert club.get("//club//notes//x") == b"nobody"


def test_another_lace_with_the_same_records_and_root_has_the_same_tips(club: api.Lace, tmp_path: Path) -> None:
    from lace.people.root import pin_root

    with club, api.open(tmp_path / "other.lace", create=True) as other:
        bodies = [body for _, body in club.store.bodies_since()]
        for body in reversed(bodies):
            other.put_stored(body)
        assert other.get("//club//notes//x") == b"nobody"  # nobody pinned a root there
        pin_root(other.store, ROOT)
        for app in ("notes", "board", "wall"):
            assert other.resolve(f"//club//{app}//x") == club.resolve(f"//club//{app}//x")


@pytest.mark.clause("083-TIP-02")
def test_a_writer_counts_from_a_time_on_and_what_stands_counts_always() -> None:
    with api.open(":memory:") as lace:
        for tai in ("1790000000:000000000", "1790000010:000000000"):
            lace.put(tai.encode(), group="g", app="a", name="n", sign=ANNA, tai=tai)
        old, new = lace.store.versions("g", "a", "n")
    rule = TipWriters(group="g", since={ANNA.verifier: new.tai})
    assert [rule.admit(old), rule.admit(new)] == [False, True]
    rule = TipWriters(group="g", since={}, standing=frozenset(((str(old.hash), str(ANNA.verifier)),)))
    assert [rule.admit(old), rule.admit(new)] == [True, False]
