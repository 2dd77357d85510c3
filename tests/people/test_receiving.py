"""What a policy takes from peers: its receive rules, over every way in."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import lace as api
from lace.people.kinds import PolicyKind
from lace.people.root import Root
from lace.porcelain.exchange import interlace
from lace.porcelain.policy import set_policy
from lace.records.keys import SigningKey

FOUNDER, ANNA, EVE = (SigningKey(bytes(31) + bytes([number])) for number in (5, 7, 9))
ROOT = Root("club", FOUNDER.verifier)
EVERYTHING = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n"
SIGNED_BY_ANNA = f"Receive(P) :- Have(P), Field(P,'Signed-By',_,'{ANNA.verifier}').\n"
LISTED = "Receive(P) :- Have(P), Field(P,'Signed-By',_,V), Have(M), Field(M,'App',_,'member'), Field(M,'Name',_,V).\n"


def ours(path: Path, receive: str) -> api.Lace:
    lace = api.open(path, create=True)
    set_policy(lace, {PolicyKind.SELECT: EVERYTHING, PolicyKind.RECEIVE: receive}, ROOT, FOUNDER)
    return lace


def theirs(path: Path) -> api.Lace:
    lace = api.open(path, create=True)
    for name, sign in (("anna", ANNA), ("eve", EVE), ("nobody", None)):
        lace.put(name.encode(), group="club", app="notes", name=name, sign=sign)
    lace.put(b"other", group="elsewhere", app="notes", name="other")
    return lace


def names(lace: api.Lace, app: str = "notes") -> set[str]:
    return {entry.name for entry in lace.store.entries() if entry.app == app}


@pytest.mark.clause("083-RECEIVE-01")
def test_the_rules_decide_about_the_records_of_their_group_in_this_process(tmp_path: Path) -> None:
    with ours(tmp_path / "a.lace", SIGNED_BY_ANNA) as here, theirs(tmp_path / "b.lace") as there:
        done = interlace(here, there, their_select="all", their_expose="all")
        assert names(here) == {"anna", "other"}
        assert set(done.second.refused_hashes.values()) == {"policy"}
        again = interlace(here, there, their_select="all", their_expose="all")
        assert names(here) == {"anna", "other"}
        assert again.moved == 0


def test_who_is_a_member_may_change_and_then_their_records_come(tmp_path: Path) -> None:
    with ours(tmp_path / "a.lace", LISTED) as here, theirs(tmp_path / "b.lace") as there:
        interlace(here, there, their_select="all", their_expose="all")
        assert names(here) == {"other"}
        here.put(b"", group="club", app="member", name=EVE.verifier, sign=FOUNDER)
        interlace(here, there, their_select="all", their_expose="all")
        assert names(here) == {"other", "eve"}


@pytest.mark.clause("083-RECEIVE-02")
def test_people_records_and_a_newer_policy_always_come(tmp_path: Path) -> None:
    nothing = "Receive(P) :- Have(P), Field(P,'App',_,'never').\n"
    with ours(tmp_path / "a.lace", nothing) as here, api.open(tmp_path / "b.lace", create=True) as there:
        set_policy(there, {PolicyKind.RECEIVE: SIGNED_BY_ANNA}, ROOT, FOUNDER)
        interlace(here, there, their_select="all", their_expose="all")
        policy = here.policy()
        assert policy is not None
        assert policy.in_force.text(PolicyKind.RECEIVE) == SIGNED_BY_ANNA


def test_large_content_of_who_may_write_comes_whole(tmp_path: Path) -> None:
    limits = api.RecordLimits(max_data_bytes=100, max_extra_headers=6)
    content = bytes(range(256)) * 12
    with api.open(tmp_path / "b.lace", create=True, limits=limits) as there:
        there.put(content, group="club", app="notes", name="film", sign=ANNA)
        with ours(tmp_path / "a.lace", SIGNED_BY_ANNA) as here:
            interlace(here, there, their_select="all", their_expose="all")
            assert here.get("//club//notes//film") == content


@pytest.mark.clause("083-RECEIVE-01")
def test_a_served_lace_refuses_with_the_reason(tmp_path: Path) -> None:
    async def exchanged(here: api.Lace, there: api.Lace) -> api.Outcome:
        async with api.Node(here) as server, api.Node(there, select="all", expose="all") as client:
            (address,) = await server.serve(f"unix:{tmp_path}/s.sock")
            return await client.connect(address)

    with ours(tmp_path / "a.lace", SIGNED_BY_ANNA) as here, theirs(tmp_path / "b.lace") as there:
        outcome = asyncio.run(exchanged(here, there))
        assert names(here) == {"anna", "other"}
        assert set(outcome.result.refused_hashes.values()) == {"policy"}
        assert outcome.status == "incomplete"
