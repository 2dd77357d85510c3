"""The exposure page says what an exchange would do, with the same gates."""

from __future__ import annotations

import shutil
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

import lace
from inspector.visiting import Visitor, World
from lace.inspector.inspected import open_all
from lace.inspector.serving import inspecting
from lace.notation.identifiers import Verifier
from lace.notation.tai import TAI
from lace.people.root import Root
from lace.people.wording import TemplateWords
from lace.policy.origin import Viewer
from lace.porcelain.exchange import exposures, interlace, selector
from lace.porcelain.policy import set_policy, template_policy
from lace.porcelain.visibility import visible_records
from lace.records.keys import SigningSecret
from lace.runtime.identity.keyring import KeyRing

SIGNED = """SelectHave(P) :- Field(P,'Signed-By',_,_).
SelectAdvertised(P,S) :- Advertised(P,S)."""
NOTES = "AllowQueryRecord(V,P) :- Field(P,'App',_,'notes')."
MINE = "AllowQueryRecord(V,P) :- Field(P,'Signed-By',_,V)."


def ask(visitor: Visitor, **choice: str) -> dict[str, object]:
    return visitor.page(f"/lace/notes/exposure?{urlencode(choice)}")


@pytest.mark.clause("020-GATE-05")
@pytest.mark.parametrize("expose", ["all", "selected", "none", NOTES, MINE])
@pytest.mark.parametrize("ours", ["all", "//u//notes//", SIGNED])
def test_what_is_seen_and_sent_is_what_an_exchange_shows_and_sends(
    visitor: Visitor, world: World, tmp_path: Path, expose: str, ours: str
) -> None:
    page = ask(visitor, ours=ours, theirs="all", expose=expose, viewer=world.ann)
    here = shutil.copy(world.path, tmp_path / "here.lace")
    with lace.open(here) as source:
        shown = exposures(expose, selector(ours))
        seen = visible_records(source.store.snapshot(), Viewer(world.ann), shown, at=TAI("1800000000:000000000"))
        assert page["visible"]["count"] == len(seen)
        assert set(page["visible"]["records"]) <= set(seen)
        with lace.open(tmp_path / "there.lace", create=True) as there:
            moved = interlace(source, there, select=ours, their_select="all", expose=expose, their_expose="none",
                              there=Verifier(world.ann))  # fmt: skip
    assert page["sent"]["count"] == len(moved.first.sent_hashes)


def test_nothing_exposed_warns_in_words(visitor: Visitor) -> None:
    page = ask(visitor, expose="none")
    assert page["notices"]
    assert page["sent"]["count"] == 0
    assert page["notices"][0]["text"] in visitor.get("/lace/notes/exposure?expose=none").text.replace("&#x27;", "'")


def test_two_rule_files_give_the_plan_that_the_command_gives(visitor: Visitor) -> None:
    from lace.policy.compile import agree

    page = ask(visitor, ours=SIGNED, theirs="//u//notes//")
    plan = agree(selector(SIGNED), selector("//u//notes//"))
    assert page["plan"] == plan.id
    assert page["transcript"] == list(plan.contents.lines)
    assert page["rules"]


def test_errors_stand_at_their_field(visitor: Visitor) -> None:
    page = ask(visitor, ours="SelectHave(P) :- Have(Q).", theirs="//u//a//b//c", expose="Nonsense(")
    assert {error["field"] for error in page["errors"]} == {"ours", "theirs"}
    assert {error["field"] for error in ask(visitor, expose="Nonsense(")["errors"]} == {"expose"}
    assert page["plan"] is None


def test_a_viewer_is_a_verifier_a_key_of_the_ring_or_a_stranger_and_no_other_word(
    visitor: Visitor, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    KeyRing.of_user().add("barbara", SigningSecret.generate())
    for stranger in ("Opq_A", ""):
        page = ask(visitor, expose=MINE, viewer=stranger)
        assert (page["visible"]["count"], page["errors"]) == (0, [])
    for wrong in ("hello", "barbra", "V.nonsense", "<script>", "x" * 5000, "../key", "a\0b"):
        page = ask(visitor, expose=MINE, viewer=wrong)
        assert [error["field"] for error in page["errors"]] == ["viewer"], wrong
        assert page["plan"] is None
        text = visitor.get(f"/lace/notes/exposure?{urlencode({'viewer': wrong})}").text
        assert "<script>" not in text.replace("<script src", "")
    assert "did you mean barbara?" in ask(visitor, viewer="barbra")["errors"][0]["advice"]
    verifier = KeyRing.of_user().verifier("barbara")
    assert ask(visitor, viewer="barbara")["viewer"] == verifier
    assert ask(visitor, viewer=str(world.bob))["viewer"] == world.bob


def test_the_gates_of_one_record_are_walked(visitor: Visitor, world: World) -> None:
    record = world.records["image"]
    walked = ask(visitor, record=record, expose="all")["why"]
    assert walked["stops"] is None
    shut = ask(visitor, record=record, expose="all", ours="//u//notes//")["why"]
    assert (shut["stops"], shut["said"]) == ("selected by its own rules", "this side's own rules do not select it")
    assert shut["gates"][-1]["open"] is False
    text = visitor.get(f"/lace/notes/exposure?{urlencode({'record': record, 'ours': '//u//notes//'})}").text
    assert "It stops here, at the gate “selected by its own rules”: this side's own rules do not select it" in unescape(
        text
    )
    assert ask(visitor, record="//u//notes//books/reading", expose="all")["why"]["record"] == world.records["third"]
    for wrong in ("nonsense", "//u//nobody//here", "<script>"):
        assert visitor.get(f"/lace/notes/exposure?{urlencode({'record': wrong})}").status == 200


@pytest.mark.long
def test_gates_agree_with_what_would_be_sent(visitor: Visitor, world: World) -> None:
    for expose in ("all", "none", NOTES, MINE):
        choice = {"expose": expose, "ours": SIGNED, "viewer": world.bob}
        sent = set(ask(visitor, **choice)["sent"]["records"])
        for record in world.records.values():
            stops = ask(visitor, record=record, **choice)["why"]["stops"]
            assert (stops is None) == (record in sent), (expose, record)


def test_a_lace_with_a_policy_is_shown_under_it(tmp_path: Path) -> None:
    founder, member = lace.SigningKey.generate(), lace.SigningKey.generate()
    words = TemplateWords(root=Root("club", founder.verifier), apps=("notes",))
    with lace.open(tmp_path / "club.lace", create=True) as club:
        set_policy(club, template_policy("members", words), words.root, founder)
        headers = [("State", "in"), ("Role", "member")]
        club.put(b"", group="club", app="member", name=member.verifier, sign=founder, headers=headers)
        note = club.put(b"a plan", group="club", app="notes", name="plan", sign=founder)
        club.put(b"dear diary", group="club", app="diary", name="day", sign=founder)
        club.put(b"other", group="elsewhere", app="notes", name="other", sign=founder)
    inspected = open_all([tmp_path / "club.lace"])
    with inspecting(inspected) as inspector:
        visitor = Visitor.admitted(inspector)
        for viewer, is_sent in ((member.verifier, True), ("", False)):
            page = visitor.page(f"/lace/club/exposure?{urlencode({'viewer': viewer})}")
            assert page["errors"] == []
            assert (note in page["sent"]["records"]) == is_sent
            assert not [record for record in page["sent"]["records"] if record not in page["visible"]["records"]]
    inspected.close()
