"""Who may move a tip: what the policy of a lace says, the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

import lace as api
from lace.errors import InvalidInput, NotFound
from lace.folder.lacetree import FolderPlace, LaceTree
from lace.people.kinds import PolicyKind
from lace.people.root import Root
from lace.porcelain.membership import appoint, dismiss
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
        before = club.stat().records
        with pytest.raises(InvalidInput, match="does not let this signer withdraw"):
            club.retract("//club//notes//x", sign=EVE)
        assert club.stat().records == before
        plain = {"group": "club", "app": "notes", "name": "x", "sign": EVE}
        club.put(b"", **plain, headers=[("Retract", "all")])  # as a program that knows no policy would
        assert club.get("//club//notes//x") == b"anna"
        club.retract("//club//notes//x", sign=ANNA)
        with pytest.raises(NotFound):
            club.get("//club//notes//x")


@pytest.mark.clause("083-TIP-03")
@pytest.mark.parametrize(
    ("who", "by", "reads"),
    [
        ("admins", ANNA, "anna again"),
        ("admins", FOUNDER, None),
        ("members", FOUNDER, None),
        ("members", EVE, "anna again"),
        ("author", ANNA, "founder"),
        ("author", FOUNDER, "anna again"),
        ("author", EVE, "anna again"),
    ],
)
def test_the_policy_says_whose_retractions_count(
    club: api.Lace, tmp_path: Path, who: str, by: SigningKey, reads: str | None
) -> None:
    place = {"group": "club", "app": "notes", "name": "x"}
    with club:
        set_policy(club, {PolicyKind.TIP: f'writers = "members"\nretract = "{who}"\n'}, ROOT, FOUNDER)
        club.put(b"anna again", **place, sign=ANNA)
        club.put(b"", **place, sign=by, headers=[("Retract", "all")])
        tips = [row.hash for row in club.list("//club//notes//x", tips=True)]
        if reads is None:
            assert tips == []
            with pytest.raises(NotFound):
                club.get("//club//notes//x")
        else:
            assert club.get("//club//notes//x") == reads.encode()
            assert tips == [club.resolve("//club//notes//x")]
        place_of_files = FolderPlace(group="club", app="notes")
        tree = LaceTree(club, place_of_files, {})
        tree.refresh()
        shown = tree.shown.get("x")
        expected = None if reads is None else club.record("//club//notes//x").parts.blob_hash
        assert ((shown and not shown.is_withdrawn and shown.item.content) or None) == expected


@pytest.mark.clause("083-TIP-03")
def test_under_authors_alone_a_single_version_and_a_retraction_are_their_authors_to_withdraw(club: api.Lace) -> None:
    with club:
        set_policy(club, {PolicyKind.TIP: 'writers = "members"\nretract = "author"\n'}, ROOT, FOUNDER)
        annas = club.resolve("//club//notes//x")
        with pytest.raises(InvalidInput, match="does not let this signer withdraw"):
            club.retract(annas, sign=FOUNDER)
        (gone,) = club.retract(annas, sign=ANNA)
        assert club.get("//club//notes//x") == b"founder"
        with pytest.raises(InvalidInput, match="does not let this signer withdraw"):
            club.undo(gone, sign=FOUNDER)
        club.undo(gone, sign=ANNA)
        assert club.get("//club//notes//x") == b"anna"


def test_a_retraction_of_a_former_admin_stays_what_it_was(club: api.Lace) -> None:
    place = {"group": "club", "app": "notes", "name": "x"}
    with club:
        set_policy(club, {PolicyKind.TIP: 'retract = "admins"\n'}, ROOT, FOUNDER)
        appoint(club, ANNA.verifier, FOUNDER)
        club.retract("//club//notes//x", sign=ANNA)
        set_policy(club, {PolicyKind.RECEIVE: "Receive(P) :- Have(P).\n"}, ROOT, ANNA)
        club.retract("//club//policy//receive", sign=ANNA)
        dismiss(club, ANNA.verifier, FOUNDER)
        with pytest.raises(NotFound):
            club.get("//club//notes//x")
        policy = club.policy()
        assert policy is not None
        assert set(policy.in_force.versions) == {PolicyKind.TIP}  # what an admin withdrew does not come back
        with pytest.raises(NotFound):
            club.get("//club//policy//receive")
        club.put(b"late", **place, sign=ANNA)
        club.put(b"", **place, sign=ANNA, headers=[("Retract", "all")])
        assert club.get("//club//notes//x") == b"late"


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
