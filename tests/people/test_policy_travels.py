"""A policy between machines: real processes, no flags, a hostile server, an old program, a newer version."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lace as api
from lace.notation.tai import TAI
from lace.people.root import Root, pin_root
from lace.records.keys import SigningKey
from lace.runtime.identity.keyring import KeyRing

COMMAND = (sys.executable, "-m", "lace.cli")
WAIT_S = 60


class Person:
    """Somebody with a key ring and a lace of their own."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.folder = name, folder / name
        self.folder.mkdir()
        self.environment = {**os.environ, "LACE_HOME": str(self.folder / "home")}
        secret = api.SigningSecret.generate()
        KeyRing(self.folder / "home").add(name, secret)
        self.key = SigningKey.from_secret(secret)
        self.path = self.folder / "club.lace"
        api.open(self.path, create=True).close()

    def run(self, *words: str, typed: str = "", exits: int = 0) -> str:
        done = subprocess.run(
            [*COMMAND, *words],
            cwd=self.folder,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
        )
        assert done.returncode == exits, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout + done.stderr

    def put(self, app: str, name: str, text: str, sign: bool = True, **headers: str) -> str:
        with api.open(self.path) as lace:
            key = self.key if sign else None
            return lace.put(text.encode(), group="club", app=app, name=name, sign=key, headers=list(headers.items()))

    def names(self, group: str = "club", app: str = "notes") -> set[str]:
        with api.open(self.path, read_only=True) as lace:
            return {entry.name for entry in lace.store.entries(group, app)}

    def joins(self, founder: Person) -> None:
        """What `lace join` does to a lace: pins the root."""
        with api.open(self.path) as lace:
            pin_root(lace.store, Root("club", founder.key.verifier))
        founder.put("member", self.key.verifier, "")

    @contextmanager
    def serving(self, *words: str, address: str = "ws:127.0.0.1:0") -> Iterator[Served]:
        address = f"unix:{self.folder}/club.sock" if address == "unix" else address
        process = subprocess.Popen(
            [*COMMAND, "serve", "club.lace", address, *words],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            served = Served(process)
            served.address = served.until(r"listening on (\S+)")[1]
            yield served
        finally:
            ended(process)


def ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.communicate(timeout=WAIT_S)


class Served:
    """A running server or follower, read line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = ""
        self.lines: list[str] = []

    def until(self, pattern: str) -> re.Match[str]:
        """The first line from now on that matches."""
        stream = self._process.stderr or self._process.stdout
        assert stream is not None
        ends = time.monotonic() + WAIT_S
        while time.monotonic() < ends:
            ready, _, _ = select.select([stream], [], [], 1)
            line = stream.readline() if ready else ""
            if line:
                self.lines.append(line)
                if found := re.search(pattern, line):
                    return found
            elif self._process.poll() is not None:
                break
        raise AssertionError(f"{pattern!r} was never printed:\n{''.join(self.lines)}")


def eventually(holds: object, what: str) -> None:
    assert callable(holds)
    ends = time.monotonic() + WAIT_S
    while not holds():
        assert time.monotonic() < ends, what
        time.sleep(0.05)


@pytest.fixture
def anna(tmp_path: Path) -> Person:
    """A founder with a policy, a note, and a diary that is nobody's business."""
    anna = Person(tmp_path, "anna")
    anna.run("policy", "set", "club.lace", "members", "--group", "club", "--app", "notes")
    anna.put("notes", "plan", "a plan")
    anna.put("diary", "day", "dear diary")
    return anna


@pytest.fixture
def bob(tmp_path: Path, anna: Person) -> Person:
    bob = Person(tmp_path, "bob")
    bob.joins(anna)
    return bob


@pytest.mark.clause("083-USE-01")
@pytest.mark.clause("083-USE-02")
@pytest.mark.long
def test_who_joined_gets_the_policy_and_then_what_it_selects_without_a_flag(anna: Person, bob: Person) -> None:
    with anna.serving("--key", "anna") as served:
        said = bob.run("interlace", "club.lace", served.address, "--key", "bob")
        assert "has not come yet" in said
        assert re.search(r"policy of \d+ [A-Z][a-z]{2} is newer: select, expose, tip", said)
        assert bob.names() == {"plan"}
        assert bob.names(app="diary") == set()
        bob.put("notes", "answer", "an answer")
        bob.put("diary", "mine", "nobody's business")
        again = bob.run("interlace", "club.lace", served.address, "--key", "bob")
        assert "newer" not in again
        assert "override" not in again
        eventually(lambda: anna.names() == {"plan", "answer"}, "the answer never came")
        assert anna.names(app="diary") == {"day"}
        stranger = Person(bob.folder, "eve")
        stranger.run("interlace", "club.lace", served.address, "--key", "eve", exits=8)
        assert stranger.names() == set()
    assert bob.run("policy", "log", "club.lace", "--json") == anna.run("policy", "log", "club.lace", "--json")


@pytest.mark.clause("083-USE-03")
@pytest.mark.long
def test_a_newer_policy_reaches_open_links_and_is_told(anna: Person, bob: Person) -> None:
    follow = [*COMMAND, "follow", "club.lace"]
    with anna.serving("--key", "anna") as served:
        process = subprocess.Popen(
            [*follow, served.address, "--key", "bob"],
            cwd=bob.folder,
            env=bob.environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            eventually(lambda: bob.names() == {"plan"}, "the note never came")
            anna.put("photos", "cat", "a cat")
            anna.put("notes", "second", "another")
            eventually(lambda: bob.names() == {"plan", "second"}, "the link does not live")
            assert bob.names(app="photos") == set()
            anna.run("policy", "set", "club.lace", "members", "--app", "notes,photos")
            served.until(r"policy of \d+ [A-Z][a-z]{2} is newer: select")
            eventually(lambda: bob.names(app="photos") == {"cat"}, "the new policy is not in use")
            Served(process).until(r"policy of .* is newer: select$")
        finally:
            ended(process)


@pytest.mark.clause("083-USE-01")
@pytest.mark.long
def test_a_flag_overrides_for_once_and_is_told(anna: Person, bob: Person) -> None:
    with anna.serving("--key", "anna") as served:
        bob.run("interlace", "club.lace", served.address, "--key", "bob")
        anna.put("diary", "later", "dear diary")
        said = bob.run("interlace", "club.lace", served.address, "--key", "bob", "--select", "//club//diary", exits=8)
        assert "--select: not by the policy of club.lace, for this once" in said
        assert bob.names(app="diary") == set()  # anna's own policy does not select it
    shown = bob.run("why", "club.lace", "//club//notes//plan", "--peer", anna.key.verifier)
    assert "selected by its own rules" in shown


@pytest.mark.long
@pytest.mark.parametrize("address", ["unix", "tcp:127.0.0.1:0"])
def test_a_hostile_server_can_neither_add_nor_change_anybody(tmp_path: Path, bob: Person, address: str) -> None:
    anna = Person(bob.folder, "anna2")
    anna.run("policy", "set", "club.lace", "public-read", "--group", "club", "--app", "notes")
    with api.open(anna.path) as lace:
        old = [body for _, body in lace.store.bodies_since()]
    anna.run("policy", "set", "club.lace", "public-read", "--app", "notes,photos")
    with api.open(anna.path) as lace:
        new = [body for _, body in lace.store.bodies_since()]
    carol = Person(tmp_path, "carol")
    with api.open(carol.path) as lace:
        pin_root(lace.store, Root("club", anna.key.verifier))
        for body in new:
            lace.put_stored(body)
    eve = Person(tmp_path, "eve")
    with api.open(eve.path) as lace:
        for body in old:  # a replayed older policy, without the newer one
            lace.put_stored(body)
        late = str(TAI(lace.clock.tai()).plus_ns(3600 * 10**9))
        everything = b"SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n"
        for sign in (eve.key, None):
            lace.put(everything, group="club", app="policy", name="select", sign=sign, tai=late)
        lace.put(b"", group="club", app="admin", name=eve.key.verifier, sign=eve.key, headers=[("State", "in")])
        lace.put(b"", group="club", app="member", name=eve.key.verifier, sign=eve.key)
    before = carol.run("policy", "show", "club.lace", "--json")
    with eve.serving("--expose", "all", address=address) as served:
        assert "newer" not in carol.run("interlace", "club.lace", served.address)
        carol.run("interlace", "club.lace", served.address, "--select", "all")
    assert carol.run("policy", "show", "club.lace", "--json") == before
    told = [json.loads(line) for line in carol.run("policy", "log", "club.lace", "select", "--json").splitlines()]
    assert [one["standing"] for one in told] == ["not signed by an admin"] * 2 + ["in force", "replaced"]
    assert "does not count" in carol.run("policy", "check", "club.lace", exits=1)


@pytest.mark.clause("083-WIRE-01")
@pytest.mark.long
def test_a_program_that_knows_nothing_of_policies_still_carries_the_records(anna: Person, tmp_path: Path) -> None:
    """A lace without a root behaves as one of an older program: it selects what its flags say."""
    anna.run("policy", "set", "club.lace", "public-read", "--app", "notes")
    old = Person(tmp_path, "old")
    with anna.serving(address="unix") as served:
        old.run("interlace", "club.lace", served.address, "--select", "all", "--standard")
    assert old.names() == {"plan"}
    assert "select" in old.names(app="policy")
    late = Person(tmp_path, "late")
    with api.open(late.path) as lace:
        pin_root(lace.store, Root("club", anna.key.verifier))
    with old.serving("--expose", "all", "--standard", address="unix") as served:
        late.run("interlace", "club.lace", served.address)
    assert late.names() == {"plan"}
    assert late.names(app="diary") == set()


@pytest.mark.long
def test_a_server_is_checked_before_it_serves(anna: Person) -> None:
    said = anna.run("serve", "club.lace", "tcp:127.0.0.1:0", "--check")
    assert "would serve at tcp:127.0.0.1:0, by the policy of the lace" in said
    (anna.folder / "wrong.lace").write_text(
        "SelectHave(P) :- Fild(P,'Group',_,'club').\nSelectAdvertised(P,S) :- Advertised(P,S).\n"
    )
    told = anna.run("serve", "club.lace", "tcp:127.0.0.1:0", "--check", "--select", "wrong.lace")
    assert "nothing supplies Fild/4" in told
    assert "--select: not by the policy of club.lace" in told
    anna.run("serve", "club.lace", "tcp:127.0.0.1:0", "--check", "--key", "nobody", exits=2)
    (anna.folder / "lace.toml").write_text(
        'store = "club.lace"\nlisten = ["tcp:127.0.0.1:4790"]\nselect = ["//club"]\n'
    )
    assert "by the policy" in anna.run("serve", "--config", "lace.toml", "--check")


@pytest.mark.long
def test_a_typo_is_never_signed_unless_its_author_insists(anna: Person) -> None:
    before = anna.run("policy", "log", "club.lace", "--json")
    typo = "SelectHave(P) :- Have(P), Field(P,'Gruop',_,'club').\nSelectAdvertised(P,S) :- Advertised(P,S).\n@people\n"
    (anna.folder / "select.lace").write_text(typo)
    said = anna.run("policy", "set", "club.lace", "select.lace", exits=1)
    assert "Gruop" in said
    assert "likely mistake" in said
    (anna.folder / "bad.lace").write_text("SelectHave(P) :- Have(P), not Other(P\n")
    anna.run("policy", "set", "club.lace", "bad.lace", exits=1)
    (anna.folder / "tip.toml").write_text('writers = "membres"\n')
    assert "did you mean members?" in anna.run("policy", "set", "club.lace", "tip.toml", exits=1)
    (anna.folder / "quota.toml").write_text('signer = "64 megabytes"\n')
    anna.run("policy", "set", "club.lace", "quota.toml", exits=1)
    assert anna.run("policy", "log", "club.lace", "--json") == before
    anna.run("policy", "set", "club.lace", "select.lace", "--anyway")
    assert "Gruop" in anna.run("policy", "check", "club.lace", exits=1)


@pytest.mark.long
def test_rules_that_nobody_else_would_get_are_refused(anna: Person) -> None:
    (anna.folder / "select.lace").write_text("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n")
    assert "nobody would get it" in anna.run("policy", "set", "club.lace", "select.lace", exits=1)


@pytest.mark.long
def test_who_is_no_admin_can_sign_no_policy(anna: Person, bob: Person) -> None:
    with api.open(anna.path) as lace, api.open(bob.path) as other:
        for _, body in lace.store.bodies_since():
            other.put_stored(body)
    assert "no key of your ring is an admin" in bob.run("policy", "set", "club.lace", "members", "--app", "x", exits=7)
    told = bob.run("policy", "set", "club.lace", "members", "--app", "x", "--admin", "bob", exits=1)
    assert "only an admin of //club may set its policy" in told
    assert "membres" not in bob.run("policy", "show", "club.lace")


@pytest.mark.long
def test_edit_opens_the_text_checks_it_and_signs_it(anna: Person) -> None:
    editor = anna.folder / "editor.sh"
    editor.write_text('#!/bin/sh\nsed -i s/members/admins/ "$1"\n')
    editor.chmod(0o755)
    anna.environment["EDITOR"] = str(editor)
    assert "signed" in anna.run("policy", "edit", "club.lace", "tip")
    assert 'writers = "admins"' in anna.run("policy", "show", "club.lace", "tip")
    assert "nothing changed" in anna.run("policy", "edit", "club.lace", "tip")
    editor.write_text('#!/bin/sh\nsed -i s/admins/adminz/ "$1"\n')
    anna.run("policy", "edit", "club.lace", "tip", exits=1)
    assert "adminz" in (anna.folder / "club.lace.tip.toml").read_text()
    changes = anna.run("policy", "log", "club.lace", "tip", "--changes")
    assert '+ writers = "admins"' in changes
    assert '- writers = "members"' in changes


@pytest.mark.clause("083-QUOTA-01")
@pytest.mark.long
def test_quotas_of_the_policy_hold_where_no_option_says_any(anna: Person, bob: Person) -> None:
    (anna.folder / "quota.toml").write_text('signer = "2 records"\n')
    anna.run("policy", "set", "club.lace", "quota.toml")
    for number in range(4):
        bob.put("notes", f"n{number}", "x")
    with anna.serving("--key", "anna") as served:
        bob.run("interlace", "club.lace", served.address, "--key", "bob", exits=9)
    assert len(anna.names() - {"plan"}) == 2


@pytest.mark.long
def test_two_laces_of_one_member_exchange_under_their_policy(anna: Person) -> None:
    with api.open(anna.folder / "stick.lace", create=True) as stick:
        pin_root(stick.store, Root("club", anna.key.verifier))
    said = anna.run("interlace", "club.lace", "stick.lace")
    assert re.search(r"anna's policy of \d+ [A-Z][a-z]{2} is newer: select, expose, tip", said)
    with api.open(anna.folder / "stick.lace") as stick:
        assert stick.get("//club//notes//plan") == b"a plan"
        assert {entry.app for entry in stick.store.entries("club")} == {"notes", "policy"}
