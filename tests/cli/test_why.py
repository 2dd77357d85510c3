"""`lace why`: the gate at which a record stops is the gate at which an exchange stops it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace
from lace.cli.app import app
from lace.notation.tai import TAI
from lace.porcelain.exchange import exposures, interlace, selector
from lace.porcelain.lace import Lace
from lace.porcelain.why import WhySide, walk

OURS = "SelectHave(P) :- Have(P), Field(P,'App',_,'notes').\nSelectAdvertised(P,S) :- Advertised(P,S)."
WANTS_MEMBERS = (
    "SelectHave(P) :- Have(P).\n"
    "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Signed-By',_,V), Member(V).\n"
    "Member(V) :- Have(P), Field(P,'App',_,'member'), Field(P,'Name',_,V)."
)
EXPOSE_U = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'u')."


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["why", *map(str, arguments)])


def stops(*arguments: object) -> tuple[str, str] | None:
    found = json.loads(run(*arguments, "--json").stdout)["stops"]
    return found and (found["side"], found["gate"])


@pytest.fixture
def world(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        with lace.open(tmp_path / f"{name}.lace", create=True):
            pass
    for name, text in (("ours.lace", OURS), ("members.lace", WANTS_MEMBERS), ("u.lace", EXPOSE_U)):
        (tmp_path / name).write_text(text)
    return tmp_path


def put(path: Path, app_name: str, name: str, group: str = "u", key: lace.SigningKey | None = None) -> str:
    with lace.open(path) as opened:
        return opened.put(name.encode(), group=group, app=app_name, name=name, sign=key)


def test_each_gate_is_named_where_it_is_shut(world: Path) -> None:
    a, b = world / "a.lace", world / "b.lace"
    key = lace.generate_key()
    note, other = put(a, "notes", "1", key=key), put(a, "other", "1")
    hidden = put(a, "notes", "2", group="v")
    select, expose = ("--select", world / "ours.lace"), ("--expose", world / "u.lace")
    assert stops(a, other, *select) == ("here", "selected by its own rules")
    assert stops(a, note, *select) == ("here", "exposed to the other side")
    assert stops(a, hidden, *select, *expose) == ("here", "exposed to the other side")
    shut = "selected by the other side's rules, over what they may see"
    assert stops(a, note, *select, *expose, "--peer", "//u//other//") == ("here", shut)
    assert stops(a, note, *select, *expose, "--peer", world / "members.lace", "--with", b) == (
        "there",
        "wanted by its own rules",
    )
    put(b, "member", str(key.verifier))
    assert stops(a, note, *select, *expose, "--peer", world / "members.lace", "--with", b) is None
    with lace.open(a) as ours, lace.open(b) as theirs:
        theirs.put_stored(ours.stored(note))
    assert stops(a, note, *select, *expose, "--peer", "all", "--with", b) == ("there", "missing")


def test_what_only_the_peer_knows_is_not_guessed(world: Path) -> None:
    a = world / "a.lace"
    note = put(a, "notes", "1")
    blind = json.loads(run(a, note, "--expose", "all", "--json").stdout)
    assert blind["stops"] is None
    assert next(gate["gate"] for gate in blind["gates"] if gate["passed"] is None).startswith("selected by the other")
    with_rules = run(a, note, "--expose", "all", "--peer", world / "members.lace")
    assert with_rules.exit_code == 0
    assert "? there: wanted by its own rules" in with_rules.stdout


def test_a_record_that_is_not_here_is_walked_from_the_other_lace(world: Path) -> None:
    a, b = world / "a.lace", world / "b.lace"
    note = put(b, "notes", "1")
    assert stops(a, note) == ("here", "stored")
    assert stops(a, note, "--with", b, "--peer", "all") == ("there", "exposed to the other side")
    assert stops(a, note, "--with", b, "--peer", "all", "--their-expose", "all") is None
    assert stops(a, note, "--with", b, "--peer", "all", "--their-expose", "all", "--select-coordinate", "//v") == (
        "there",
        "selected by the other side's rules, over what they may see",
    )
    assert run(a, "//u//notes//1").exit_code == 1


def test_an_older_version_travels_and_says_what_hides_it(world: Path) -> None:
    a = world / "a.lace"
    with lace.open(a) as notes:
        old = notes.put(b"1", group="u", app="notes", name="n", tai="1640995200:000000000")
        new = notes.put(b"2", group="u", app="notes", name="n", tai="1640995300:000000000")
    shown = run(a, old, "--expose", "all")
    assert shown.exit_code == 0
    assert new in shown.stdout
    assert "hides it" in shown.stdout


@pytest.mark.parametrize("expose", ["none", "all", "selected", EXPOSE_U])
@pytest.mark.parametrize("ours", ["all", "//u//notes//", OURS])
@pytest.mark.parametrize("theirs", ["all", "//u//", WANTS_MEMBERS])
def test_the_walk_says_what_an_exchange_then_does(world: Path, expose: str, ours: str, theirs: str) -> None:
    """Whatever the rules: a record arrives exactly if every gate is open."""
    key = lace.generate_key()
    with lace.open(world / "a.lace") as a, lace.open(world / "b.lace") as b:
        records = [
            a.put(b"1", group="u", app="notes", name="1", sign=key),
            a.put(b"2", group="u", app="other", name="2"),
            a.put(b"3", group="v", app="notes", name="3", sign=key),
        ]
        b.put(b"", group="x", app="member", name=str(key.verifier))
        expected = {record for record in records if _all_open(a, b, record, ours, expose, theirs)}
        interlace(a, b, select=ours, expose=expose, their_select=theirs, their_expose="all")
        arrived = {record for record in records if b.store.have(record)}
        assert arrived == expected


def _all_open(a: Lace, b: Lace, record: lace.RecordHash, ours: str, expose: str, theirs: str) -> bool:
    mine, other = selector(ours), selector(theirs)
    walked = walk(
        record,
        WhySide(called="here", lace=a, module=mine, exposures=exposures(expose, mine)),
        WhySide(called="there", lace=b, module=other, exposures=exposures("all", other)),
        now=TAI("1900000000:000000000"),
    )
    assert not walked.unknown
    return walked.stopped is None


def test_a_peer_is_named_by_a_key_of_the_ring_as_by_its_verifier(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LACE_HOME", str(world / "home"))
    made = CliRunner().invoke(app, ["key", "new", "bob", "--json"])
    verifier = json.loads(made.stdout)["verifier"]
    note = put(world / "a.lace", "notes", "1")
    only_bob = world / "bob-sees.lace"
    only_bob.write_text(f"AllowQueryRecord('{verifier}',P) :- Have(P).")
    asked = (world / "a.lace", note, "--expose", only_bob, "--peer", "all")
    assert stops(*asked) == ("here", "exposed to the other side")
    assert stops(*asked, "--peer", verifier) is None
    assert stops(*asked, "--peer", "bob") is None
    (world / "bob").write_text(OURS)
    monkeypatch.chdir(world)
    both = run(*asked, "--peer", "bob")  # a file is rules, whatever it is called, and there are rules already
    assert both.exit_code == 2
    assert "one set of rules" in both.stderr


def test_a_peer_that_is_neither_a_file_nor_a_key_is_told_with_what_is_near(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LACE_HOME", str(world / "home"))
    CliRunner().invoke(app, ["key", "new", "barbara"])
    note = put(world / "a.lace", "notes", "1")
    found = run(world / "a.lace", note, "--peer", "babara")
    assert found.exit_code == 2  # and not 1, which says that a gate is shut
    assert "neither a file nor a key" in found.stderr
    assert "did you mean barbara?" in found.stderr
    assert "lace key list" in run(world / "a.lace", note, "--peer", "zzz").stderr


def test_every_shut_gate_says_no_in_a_sentence(world: Path) -> None:
    a, b = world / "a.lace", world / "b.lace"
    key = lace.generate_key()
    note, other = put(a, "notes", "1", key=key), put(a, "other", "1")
    hidden = put(a, "notes", "2", group="v")
    there = put(b, "notes", "3")
    select, expose = ("--select", world / "ours.lace"), ("--expose", world / "u.lace")
    members = world / "members.lace"
    walks = [
        ((a, other, *select), "here: this side's own rules do not select it"),
        ((a, note, *select), "here: nothing is exposed, so the other side's rules see an empty lace"),
        ((a, hidden, *select, *expose), "here: it is not exposed to the other side"),
        (
            (a, note, *select, *expose, "--peer", "//nobody//"),
            "here: the other side's rules do not select it, over what they may see",
        ),
        (
            (a, note, *select, *expose, "--peer", members, "--with", b),
            "there: this side's own rules do not ask for it",
        ),
        ((a, there), "here: no record with that hash is stored"),
    ]
    for arguments, sentence in walks:
        done = run(*arguments)
        assert done.exit_code == 1, done.output
        first, *_ = done.stdout.splitlines()
        assert first == f"✗ {arguments[1]} stops {sentence}"
        assert f"└─ ✗ {sentence}" in done.stdout
        side, _, said = sentence.partition(": ")
        told = json.loads(run(*arguments, "--json").stdout)
        assert (told["stops"]["side"], told["stops"]["said"]) == (side, said)
        assert told["gates"][-1]["said"] == said
        assert all(gate["said"] != "no" for gate in told["gates"])


def test_rules_that_are_not_shown_what_they_need_are_told_apart_from_rules_that_do_not_select(world: Path) -> None:
    a, b = world / "a.lace", world / "b.lace"
    key = lace.generate_key()
    note = put(a, "notes", "1", key=key)
    rules = world / "of-members.lace"
    by_members = "SelectHave(P) :- Field(P,'Signed-By',_,V), Member(V)."
    rules.write_text(WANTS_MEMBERS.replace("SelectHave(P) :- Have(P).", by_members))
    asked = (a, note, "--select", world / "ours.lace", "--expose", "selected", "--peer", rules, "--with", b)
    refused = f"✗ {note} stops here: the other side's rules do not select it, over what they may see"
    assert run(*asked).stdout.splitlines()[0] == refused
    put(a, "member", str(key.verifier))
    done = run(*asked)
    assert "shown every record here, they would select it" in done.stdout.splitlines()[0]
    assert "--expose all" in done.stdout


@pytest.mark.parametrize("word, near", [("barbra", "did you mean barbara?"), ("hello", "lace key list")])
def test_a_verifier_can_be_a_name_of_the_ring_and_nothing_else(
    world: Path, monkeypatch: pytest.MonkeyPatch, word: str, near: str
) -> None:
    monkeypatch.setenv("LACE_HOME", str(world / "home"))
    invoke = CliRunner().invoke
    verifier = json.loads(invoke(app, ["key", "new", "barbara", "--json"]).stdout)["verifier"]
    a = str(world / "a.lace")
    note = put(world / "a.lace", "notes", "1")
    address = f"unix:{world / 'nobody.sock'}"
    mine = world / "mine.lace"
    mine.write_text(f"AllowQueryRecord(Viewer,P) :- Have(P), Peer('{verifier}').")
    commands = [
        ["view", a, "--expose", str(mine), "--hashes", "--viewer"],
        ["plan", "all", "all", "--expose", str(mine), "--json", "--viewer"],
        ["key", "know", a],
        ["why", a, note, "--peer"],
        ["interlace", a, address, "--trust"],
        ["interlace", a, "stdio", "--peer"],
        ["get", a, "//u//notes//1", "--from", address, "--trust"],
        ["why", a, note, "--address", address, "--trust"],
        ["serve", a, address, "--uid"],
    ]
    for command in commands:
        given = f"1={word}" if command[-1] == "--uid" else word
        done = invoke(app, [*command, given])
        assert done.exit_code == 2, (command, done.output)
        assert near in " ".join(done.stderr.split()), (command, done.output)
    assert invoke(app, [*commands[0], "barbara"]).stdout == invoke(app, [*commands[0], verifier]).stdout == f"{note}\n"
    assert invoke(app, [*commands[1], "barbara"]).stdout == invoke(app, [*commands[1], verifier]).stdout
    assert invoke(app, [*commands[2], "barbara"]).stdout.split() == [verifier]
    for command in commands[4:5] + commands[6:8]:  # nobody listens there, which is found out after the name is known
        assert invoke(app, [*command, "barbara"]).exit_code != 2
    with lace.open(world / "b.lace") as opened:
        opened.know_key("barbara")
        assert opened.known_keys() == [verifier]
        with pytest.raises(lace.LaceError, match="nor the name of a key"):
            opened.know_key(word)


def test_the_proof_is_shown_only_if_it_is_asked_for(world: Path) -> None:
    note = put(world / "a.lace", "notes", "1")
    asked = (world / "a.lace", "//u//notes//1", "--select", world / "ours.lace", "--expose", "all")
    short = run(*asked)
    assert short.stdout.startswith("? nothing here stops //u//notes//1; ")
    assert "by SelectHave(P)" not in short.stdout
    assert "--proof" not in short.stderr  # a hint for people, who read it on a terminal
    whole = run(*asked, "--proof")
    assert f"│    └─ Field('{note}','App','0','notes')" in whole.stdout
    assert "--proof" not in whole.stderr
    assert run(world / "a.lace", "//u//notes//1", "--peer", "//v", "--proof").stdout.count("└─ ✗") == 1
