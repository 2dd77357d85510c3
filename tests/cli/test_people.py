"""`lace invite`, `join`, `member`, `device`, `admin`: people with homes of their own, and a real server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

import lace as api
from lace.cli.app import app
from lace.people.kinds import PolicyKind
from lace.people.root import Root, pin_root, pinned_root
from lace.people.wording import TemplateWords
from lace.policy.origin import Viewer
from lace.porcelain.exchange import interlace
from lace.porcelain.invitations import InviteLine, accept, find_invitation, invite, withdraw
from lace.porcelain.membership import add_device, admit, appoint, dismiss, find_person, put_out, readmit, roster
from lace.porcelain.policy import set_policy, template_policy
from lace.porcelain.rotation import Successors, commit_successor, rotate
from lace.porcelain.status import conflicts
from lace.porcelain.visibility import visible_records
from lace.records.keys import SigningKey, SigningSecret
from lace.runtime.identity.keyring import KeyRing


class Club:
    """A folder with a home for each person."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.served: subprocess.Popen[str] | None = None
        self.address = ""

    def lace(self, who: str, *words: str, given: str = "", exits: Sequence[int] = (0,)) -> str:
        folder = self.folder / who
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-m", "lace.cli", *words]
        done = subprocess.run(
            command, cwd=folder, env=self.env(who), input=given, capture_output=True, text=True, timeout=120
        )
        assert done.returncode in exits, (words, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def env(self, who: str) -> dict[str, str]:
        return {**os.environ, "LACE_HOME": str(self.folder / f"home-{who}")}

    def found(self) -> None:
        self.lace("anna", "key", "new", "anna")
        self.lace("anna", "init", "club.lace")
        self.lace("anna", "policy", "set", "club.lace", "members", "--group", "club", "--app", "notes")
        command = [sys.executable, "-m", "lace.cli", "serve", "club.lace", "ws:127.0.0.1:0", "--key", "anna",
                   "--log", "json"]  # fmt: skip
        self.served = subprocess.Popen(
            command, cwd=self.folder / "anna", env=self.env("anna"), stderr=subprocess.PIPE, text=True
        )
        assert self.served.stderr is not None
        for line in self.served.stderr:
            if "address" in line and "listening" in line:
                self.address = json.loads(line)["address"].removesuffix("/interlace")
                break

    def invite(self, name: str, *options: str) -> str:
        out = self.lace("anna", "invite", "club.lace", name, "--address", self.address, "--json", *options)
        return str(json.loads(out)["line"])

    def stop(self) -> None:
        if self.served is not None:
            self.served.terminate()
            self.served.communicate(timeout=30)


@pytest.fixture
def club(tmp_path: Path) -> Iterator[Club]:
    found = Club(tmp_path)
    try:
        found.found()
        yield found
    finally:
        found.stop()


def members(club: Club, who: str) -> set[str]:
    return {row["called"] for row in people(club, who) if row["is_member"] and not row["is_founder"]}


def people(club: Club, who: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in club.lace(who, "member", "list", "club.lace", "--json").splitlines()]


def founder_at(club: Club, who: str) -> object:
    (founder,) = (row["called"] for row in people(club, who) if row["is_founder"])
    return founder


@pytest.mark.long
def test_people_join_by_one_pasted_line_write_leave_and_come_back(club: Club) -> None:
    club.lace("bob", "join", club.invite("bob"))
    assert founder_at(club, "bob") is None  # what anna calls her key is her own business
    club.lace("carl", "join", club.invite("carl", "--as", "Anna B."))
    assert founder_at(club, "carl") == "Anna B."
    note = ("put", "club.lace", "--group", "club", "--app", "notes", "--name")
    club.lace("bob", *note, "boat", "--sign", "bob", "-", given="repaired")
    club.lace("bob", "interlace", "club.lace", "home")
    club.lace("carl", "interlace", "club.lace", "home")
    assert club.lace("carl", "get", "club.lace", "//club//notes//boat") == "repaired"
    assert members(club, "carl") == {"bob", "carl"}
    following = subprocess.Popen(
        [sys.executable, "-m", "lace.cli", "follow", "club.lace", "home", "--json"],
        cwd=club.folder / "bob", env=club.env("bob"), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert following.stdout is not None
        following.stdout.readline()  # the link is open
        time.sleep(1)
        club.lace("anna", "member", "leave", "club.lace", "bob")
        for line in following.stdout:  # how soon is tests/interop/test_node.py's to say
            if "end" in json.loads(line).get("event", "") or "closed" in line or "lost" in line:
                break
    finally:
        following.kill()
        following.communicate(timeout=30)
    club.lace("bob", *note, "spam", "--sign", "bob", "-", given="late")
    club.lace("bob", *note, "boat", "--sign", "bob", "--tai", "1700000000:000000000", "-", given="backdated")
    club.lace("bob", "interlace", "club.lace", "home", exits=(0, 5, 8, 9))
    assert "may not be a member" in club.lace("bob", "status", "club.lace", exits=(8,))
    club.lace("carl", "interlace", "club.lace", "home")
    club.lace("carl", "status", "club.lace")
    assert club.lace("carl", "get", "club.lace", "//club//notes//boat") == "repaired"
    club.lace("carl", "get", "club.lace", "//club//notes//spam", exits=(1,))
    assert members(club, "carl") == {"carl"}
    club.lace("anna", "member", "rejoin", "club.lace", "bob")
    club.lace("bob", "interlace", "club.lace", "home", exits=(0, 8, 9))
    club.lace("bob", *note, "back", "--sign", "bob", "-", given="back")
    club.lace("bob", "interlace", "club.lace", "home", exits=(0, 9))
    club.lace("carl", "interlace", "club.lace", "home")
    assert club.lace("carl", "get", "club.lace", "//club//notes//back") == "back"
    club.lace("carl", "get", "club.lace", "//club//notes//spam", exits=(1,))


@pytest.mark.long
def test_a_device_comes_in_by_a_line_of_its_person_and_its_loss_costs_nothing_else(club: Club) -> None:
    club.lace("bob", "join", club.invite("bob"))
    line = json.loads(club.lace("bob", "device", "add", "club.lace", "phone", "--sign", "bob", "--json"))["line"]
    club.lace("bob", "interlace", "club.lace", "home")
    club.lace("phone", "join", line)
    note = ("put", "club.lace", "--group", "club", "--app", "notes", "--name")
    club.lace("phone", *note, "photo", "--sign", "phone", "-", given="sea")
    club.lace("phone", "interlace", "club.lace", "home")
    assert club.lace("anna", "get", "club.lace", "//club//notes//photo") == "sea"
    club.lace("bob", "interlace", "club.lace", "home")
    club.lace("bob", "device", "rm", "club.lace", "phone", "--sign", "bob")
    club.lace("bob", "interlace", "club.lace", "home")
    club.lace("phone", *note, "theft", "--sign", "phone", "-", given="x")
    club.lace("phone", "interlace", "club.lace", "home", exits=(0, 5, 8, 9))
    club.lace("anna", "get", "club.lace", "//club//notes//theft", exits=(1,))
    assert club.lace("anna", "get", "club.lace", "//club//notes//photo") == "sea"
    club.lace("bob", *note, "on", "--sign", "bob", "-", given="still here")
    club.lace("bob", "interlace", "club.lace", "home")
    assert club.lace("anna", "get", "club.lace", "//club//notes//on") == "still here"


@pytest.mark.long
def test_used_guessed_damaged_raced_and_withdrawn_lines_let_nobody_in(club: Club) -> None:
    line = club.invite("bob")
    with ThreadPoolExecutor() as racing:
        list(racing.map(lambda who: club.lace(who, "join", line, "--name", who, exits=(0, 1)), ("r1", "r2", "r3")))
    assert len(members(club, "anna") & {"r1", "r2", "r3"}) == 1
    club.lace("late", "join", line, exits=(1,))
    club.lace("cut", "join", line[:-9], exits=(1,))
    club.lace("changed", "join", f"{line[:40]}{'0' if line[40] != '0' else '1'}{line[41:]}", exits=(1,))
    other = club.invite("carl")
    club.lace("anna", "invite", "club.lace", "carl", "--withdraw")
    club.lace("carl", "join", other, exits=(1,))
    guessed = InviteLine.parse(line)
    forged = str(InviteLine(kind=guessed.kind, secret=type(guessed.secret).generate(), root=guessed.root,
                            issued=guessed.issued, address=guessed.address))  # fmt: skip
    club.lace("guess", "join", forged, exits=(1, 8))
    assert len(members(club, "anna")) == 1


def founded() -> tuple[api.Lace, SigningKey, Root]:
    """A group in memory."""
    key = SigningKey.generate()
    found = api.open(":memory:")
    root = Root("club", key.verifier)
    set_policy(found, template_policy("members", TemplateWords(root=root, apps=("notes",))), root, key)
    return found, key, root


@pytest.mark.clause("080-TRAVEL-03")
def test_a_stranger_sees_nothing_a_guest_sees_who_is_who_and_a_member_sees_all() -> None:
    club, key, _ = founded()
    bob = SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    club.put(b"x", group="club", app="notes", name="n", sign=bob)
    said = invite(club, key, address="", lasts_s=3600)
    guest = SigningKey.from_secret(said.line.secret).verifier
    policy = club.policy()
    assert policy is not None

    def seen(viewer: str) -> set[str]:
        found = visible_records(club.store.snapshot(), Viewer(viewer), policy.exposures, at=club.clock.tai())
        return {entry.app for entry in club.store.entries() if entry.hash in found}

    assert seen("Opq_A") == set()
    assert seen(SigningKey.generate().verifier) == set()
    assert seen(bob.verifier) == {"notes", "member", "invite", "policy"}
    assert seen(guest) == {"member", "invite", "policy"}
    withdraw(club, find_invitation(club, guest), key)
    assert seen(guest) == set()


def test_a_line_comes_back_as_it_was_and_a_changed_one_never(tmp_path: Path) -> None:
    club, key, _ = founded()
    said = invite(club, key, address="wss:club.example.org", lasts_s=3600, called="Bob", pin=b"\x07" * 32)
    text = str(said.line)
    assert str(InviteLine.parse(f" {text[:60]}\n{text[60:]} ")) == text  # broken by a mail program
    for place in range(len("lace1."), len(text), 7):
        with pytest.raises(api.InvalidInput):
            InviteLine.parse(text[:place] + ("0" if text[place] != "0" else "1") + text[place + 1 :])
    other = api.open(":memory:")
    bob = SigningKey.generate()
    accept(other, said.line, bob)
    accept(other, said.line, bob)
    assert pinned_root(other.store) == said.line.root
    assert len(list(other.list("//club//member"))) == 1


def test_putting_out_names_what_stands_and_a_wrong_hand_changes_nothing() -> None:
    club, key, root = founded()
    bob, eve = SigningKey.generate(), SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    admit(club, eve.verifier, key, called="eve")
    mine = club.put(b"x", group="club", app="notes", name="n", sign=bob)
    with pytest.raises(api.InvalidInput):
        put_out(club, find_person(club, "bob"), eve)
    with pytest.raises(api.InvalidInput):
        admit(club, SigningKey.generate().verifier, eve)
    assert put_out(club, find_person(club, "bob"), key).stands == 1
    gone = roster(club).of_key(bob.verifier)
    assert gone is not None
    assert not gone.is_member
    assert (mine, bob.verifier) in set(_standing(club, root))
    assert roster(club).named("eve")[0].is_member


def test_a_name_of_mine_goes_before_one_that_somebody_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(tmp_path))
    founder, dora, eve = SigningSecret.generate(), SigningSecret.generate(), SigningKey.generate()
    KeyRing(tmp_path).add("anna", founder)
    key, dora_key = SigningKey.from_secret(founder), SigningKey.from_secret(dora)
    path = tmp_path / "club.lace"
    with api.open(path, create=True) as club:
        root = Root("club", key.verifier)
        set_policy(club, template_policy("members", TemplateWords(root=root, apps=("notes",))), root, key)
        admit(club, dora_key.verifier, key, called="dora")
        admit(club, eve.verifier, key, called="dora")
    leave = ("member", "leave", str(path), "dora", "--json")
    refused = CliRunner().invoke(app, list(leave))
    assert refused.exit_code == 7
    assert "lace name add" in refused.output
    assert CliRunner().invoke(app, ["name", "add", str(path), "dora", dora_key.verifier]).exit_code == 0
    assert json.loads(CliRunner().invoke(app, list(leave)).output)["verifier"] == dora_key.verifier
    with api.open(path) as club:
        assert {one.verifier for one in roster(club).people if one.is_member} == {key.verifier, eve.verifier}


def test_what_several_say_about_a_member_is_not_a_conflict_and_what_they_write_is() -> None:
    club, key, _ = founded()
    bob = SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    for _ in range(2):
        accept(club, invite(club, key, address="", lasts_s=3600).line, bob)
    assert conflicts(club, club.list("//", tips=True)) == []
    for sign in (key, bob):
        club.put(b"x", group="club", app="notes", name="n", sign=sign)
    assert [row.coordinate for row in conflicts(club, club.list("//", tips=True))] == ["//club//notes//n"]


def _standing(club: api.Lace, root: Root) -> list[tuple[str, ...]]:
    from lace.people.roster import PeopleStanding

    return list(PeopleStanding(club.store, root).rows("Standing", 2))


def test_a_key_hands_its_place_to_the_successor_that_it_committed_to(tmp_path: Path) -> None:
    club, key, root = founded()
    kept = Successors(tmp_path)
    bob = SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    commit_successor(club, key, kept)
    assert commit_successor(club, key, kept) is None
    mine = club.put(b"x", group="club", app="notes", name="n", sign=key)
    found = kept.find(key.verifier)
    assert found is not None
    rotate(club, key.verifier, kept)
    now = roster(club)
    assert now.admins == {found.key.verifier}
    assert {bob.verifier, found.key.verifier} == set(now.person_of)
    policy = club.policy()
    assert policy is not None
    assert not policy.is_waiting  # what the founder signed stands
    assert (mine, key.verifier) in set(_standing(club, root))
    with pytest.raises(api.InvalidInput):
        admit(club, SigningKey.generate().verifier, key)
    admit(club, SigningKey.generate().verifier, found.key)
    with pytest.raises(api.LaceError):  # nothing of the sort for a key that never committed
        rotate(club, bob.verifier, kept)


def test_an_admin_rotates_twice_stays_one_person_and_can_be_dismissed(tmp_path: Path) -> None:
    club, key, _ = founded()
    kept = Successors(tmp_path)
    bob, carl, dora = SigningKey.generate(), SigningKey.generate(), SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    appoint(club, bob.verifier, key)
    commit_successor(club, bob, kept)
    admit(club, carl.verifier, bob, called="carl")
    appoint(club, dora.verifier, bob)
    now = bob
    for _ in range(2):
        following = kept.find(now.verifier)
        assert following is not None
        rotate(club, now.verifier, kept)
        rotate(club, now.verifier, kept)  # interrupted, and run again
        now = following.key
        admit(club, SigningKey.generate().verifier, now)
        (person,) = roster(club).named("bob")
        assert (person.verifier, person.acting, person.is_admin) == (bob.verifier, [now.verifier], True)
        assert {dora.verifier, now.verifier, key.verifier} == roster(club).admins
        assert roster(club).named("carl")[0].is_member
    assert add_device(club, person, SigningKey.generate().verifier, now).records
    dismiss(club, now.verifier, key)
    (person,) = roster(club).named("bob")
    assert (person.is_admin, person.is_member) == (False, True)
    assert roster(club).admins == {dora.verifier, key.verifier}  # what they decided stands
    assert roster(club).named("carl")[0].is_member


def test_what_was_said_before_is_not_written_twice() -> None:
    club, key, _ = founded()
    bob, carl = SigningKey.generate(), SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    admit(club, carl.verifier, key, called="carl")
    assert appoint(club, carl.verifier, key).records
    assert not appoint(club, carl.verifier, key).records
    assert appoint(club, carl.verifier, carl).records  # another admin's word is another word
    dismiss(club, carl.verifier, key)
    assert appoint(club, carl.verifier, key).records
    assert put_out(club, find_person(club, "bob"), bob).records
    assert not put_out(club, find_person(club, "bob"), bob).records
    assert put_out(club, find_person(club, "bob"), key).records  # from now on only admins say what stands
    assert not put_out(club, find_person(club, "bob"), key).records
    assert put_out(club, find_person(club, "bob"), key, since=club.clock.tai()).records


def test_two_admins_who_set_the_policy_at_once_go_by_the_same_one() -> None:
    club, key, root = founded()
    bob = SigningKey.generate()
    admit(club, bob.verifier, key, called="bob")
    appoint(club, bob.verifier, key)
    others = api.open(":memory:")
    pin_root(others.store, root)
    meet(club, key, others, bob)
    for mine, sign, also in ((club, key, "songs"), (others, bob, "maps")):
        set_policy(mine, template_policy("members", TemplateWords(root=root, apps=("notes", also))), root, sign)
    for _ in range(2):
        meet(club, key, others, bob)
    in_force = [policy_texts_of(one) for one in (club, others)]
    assert in_force[0] == in_force[1]
    assert ("songs" in in_force[0]) != ("maps" in in_force[0])
    assert meet(club, key, others, bob) == 0


def test_a_name_is_invited_twice_a_line_pasted_twice_devices_come_two_at_once_and_a_member_leaves_twice() -> None:
    club, key, _ = founded()
    bob, eve = SigningKey.generate(), SigningKey.generate()
    lines = [invite(club, key, address="", lasts_s=3600, called="bob").line for _ in range(2)]
    for _ in range(2):
        accept(club, lines[0], bob, called="bob")
    accept(club, lines[0], eve, called="bob")  # the line was pasted by somebody else as well: there is one place
    (person,) = (one for one in roster(club).people if one.called == "bob" and one.is_member)
    assert person.verifier == bob.verifier
    phone, tablet = SigningKey.generate(), SigningKey.generate()
    for device in (phone, tablet):
        add_device(club, person, device.verifier, bob, called="phone")
    (person,) = (one for one in roster(club).people if one.verifier == bob.verifier)
    put_out(club, person, bob, only=phone.verifier)
    assert roster(club).person_of.get(tablet.verifier) == bob.verifier
    assert phone.verifier not in roster(club).person_of
    written = []
    for _ in range(2):
        written.append(club.put(b"x", group="club", app="notes", name=f"n{len(written)}", sign=bob))
        put_out(club, find_person(club, bob.verifier), key)
        assert not find_person(club, bob.verifier).is_member
        lost = club.put(b"spam", group="club", app="notes", name="spam", sign=bob)
        readmit(club, find_person(club, bob.verifier), key)
        assert find_person(club, bob.verifier).is_member
    standing = {record for record, _ in _standing(club, roster(club).root)}
    assert set(written) <= standing
    assert lost not in standing


def meet(one: api.Lace, here: SigningKey, two: api.Lace, there: SigningKey) -> int:
    """An exchange under the policies of both; how many records moved."""
    return interlace(one, two, here=here.verifier, there=there.verifier).moved


def policy_texts_of(held: api.Lace) -> str:
    policy = held.policy()
    assert policy is not None
    return str(policy.in_force.text(PolicyKind.SELECT))


@pytest.mark.long
def test_a_key_is_rotated_twice_and_goes_on_as_a_device_and_an_invitation_would_have_it(tmp_path: Path) -> None:
    club = Club(tmp_path)
    club.lace("anna", "key", "new", "anna")
    club.lace("anna", "init", "club.lace")
    club.lace("anna", "policy", "set", "club.lace", "members", "--group", "club", "--app", "notes")
    club.lace("anna", "invite", "club.lace", "bob", "--address", "ws:127.0.0.1:1", "--as", "anna", "--no-qr")
    for old in ("anna-old", "anna-old2"):
        club.lace("anna", "key", "rotate", "anna", "club.lace")
        assert old in club.lace("anna", "key", "list")
        club.lace("anna", "device", "add", "club.lace", f"of-{old}", "--address", "ws:127.0.0.1:1", "--no-qr")
    (anna,) = people(club, "anna")
    assert (anna["called"], anna["is_founder"], len(anna["keys"])) == ("anna", True, 5)  # type: ignore[arg-type]
    club.lace("anna", "policy", "check", "club.lace")
