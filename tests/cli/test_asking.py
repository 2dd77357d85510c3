"""`interlace --dry-run`, `browse`, `why --address`, and what is said when nothing moves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import lace as api
from cli.serving import serving
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.policy.exposure import Exposure
from lace.policy.operand import Module
from lace.porcelain.exchange import exposures, interlace, selector
from tries import tries

EVERYTHING = "SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S)."
OF_MEMBERS = (
    "SelectHave(P) :- Have(P), Field(P,'Group',_,G), Member(G).\n"
    "SelectAdvertised(P,S) :- AdvertisedField(P,S,'Group',_,G), Member(G).\n"
    "Member(G) :- Have(P), Field(P,'App',_,'member'), Field(P,'Name',_,G)."
)
ONLY_U = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'u')."


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lace with three records, one with another, and nothing of the user's own."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with api.open("far.lace", create=True) as opened:
        for group, name in (("u", "links/1"), ("u", "links/2"), ("v", "3")):
            opened.put(f"content of {name}".encode(), group=group, app="ding", name=name)
    with api.open("near.lace", create=True) as opened:
        opened.put(b"mine", group="w", app="notes", name="own")
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def hashes(path: str) -> set[str]:
    with api.open(path) as opened:
        return {str(record) for _, record in opened.store.records_since()}


def found(path: str, coordinate: str) -> str:
    with api.open(path) as opened:
        return opened.resolve(coordinate)


def gate(done: Result) -> tuple[str, str] | None:
    stops = json.loads(done.stdout)["stops"]
    return stops and (stops["side"], stops["gate"])


def browsed(*arguments: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in lace("browse", *arguments, "--json").stdout.splitlines()]


# --- dry run


def test_a_dry_run_tells_what_would_move_and_moves_nothing(stage: Path) -> None:
    before = hashes("near.lace"), hashes("far.lace")
    with serving("far.lace", stage) as address:
        for _ in range(2):  # the second is no different: nothing was remembered
            done = lace("interlace", "near.lace", address, "--expose", "all", "--dry-run", "--json")
            assert done.exit_code == ExitCode.OK, done.output
            told = json.loads(done.stdout)
            assert told["come"]["records"] == 3
            assert told["come"]["shares"] == [
                {"group": "u", "app": "ding", "records": 2, "content_bytes": 36},
                {"group": "v", "app": "ding", "records": 1, "content_bytes": 12},
            ]
            assert told["go"]["shares"] == [{"group": "w", "app": "notes", "records": 1, "content_bytes": 4}]
            assert (hashes("near.lace"), hashes("far.lace")) == before
        text = lace("interlace", "near.lace", address, "--expose", "all", "--dry-run")
        assert "3 records would come, 48 B of content" in text.stdout
        assert "1 record would go, 4 B of content" in text.stdout
        assert "no records moved" in text.stderr
        assert lace("interlace", "near.lace", address, "--expose", "all").exit_code == ExitCode.OK
        again = json.loads(lace("interlace", "near.lace", address, "--expose", "all", "--dry-run", "--json").stdout)
        assert (again["come"]["records"], again["go"]["records"]) == (0, 0)


def test_a_dry_run_can_be_captured(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        assert lace("interlace", "near.lace", address, "--dry-run", "--trace", "capture").exit_code == ExitCode.OK
    assert "SelectHave(P) :- Have(P)." in lace("tap", "capture", "--facts").stdout


def test_a_length_that_a_peer_makes_up_is_no_length() -> None:
    from lace.interlace.claims.advertisement import Advertisement, FieldClaim
    from lace.porcelain.preview import shares

    claims = [
        Advertisement(f"P.{number}", (FieldClaim("Data-Length", "0", text),))
        for number, text in enumerate(["5", "9" * 4000, "-1", "05", "\u0663", ""])
    ]
    assert [(share.records, share.content_bytes) for share in shares(claims)] == [(6, 5)]


def test_a_dry_run_of_nothing_at_all(stage: Path) -> None:
    api.open("empty.lace", create=True).close()
    with serving("empty.lace", stage) as address:
        done = lace("interlace", "near.lace", address, "--dry-run")
    assert done.exit_code == ExitCode.OK
    assert "0 records would come\n0 records would go" in done.stdout


@pytest.mark.long
@tries(12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    here=st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 4)), max_size=6),
    there=st.lists(st.tuples(st.sampled_from("uvw"), st.integers(0, 4)), max_size=6),
    select=st.sampled_from([EVERYTHING, OF_MEMBERS]),
    expose=st.sampled_from(["all", "none", ONLY_U]),
    their_expose=st.sampled_from(["all", "none", ONLY_U]),
)
def test_what_a_dry_run_of_two_laces_tells_is_what_the_first_loop_moves(
    here: list[tuple[str, int]],
    there: list[tuple[str, int]],
    select: str,
    expose: str,
    their_expose: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    from lace.porcelain.exchange import interlace, local_parties
    from lace.porcelain.preview import preview_locally

    folder = tmp_path_factory.mktemp("dry")
    with api.open(folder / "a.lace", create=True) as first, api.open(folder / "b.lace", create=True) as second:
        for one, records in ((first, here), (second, there)):
            for group, number in records:
                app_name = "member" if number == 0 else "ding"
                one.put(b"x" * number, group=group, app=app_name, name=group if number == 0 else str(number))
        module = selector(select)
        ours, theirs = (module, exposures(expose, module)), (module, exposures(their_expose, module))
        told = preview_locally(*local_parties(first, second, ours, theirs))
        moved = interlace(first, second, select=select, expose=expose, their_expose=their_expose)
    came, went = set(map(str, moved.first.received_hashes)), set(map(str, moved.second.received_hashes))
    assert {claim.hash for claim in told.wanted} <= came
    assert set(told.asked_for) <= went
    if select == EVERYTHING:  # what comes makes nothing else selected
        assert {claim.hash for claim in told.wanted} == came
        assert set(told.asked_for) == went
    # More comes only if what came made the rules select it.
    assert bool(told.wanted) == bool(came) or bool(went)
    assert bool(told.asked_for) == bool(went) or bool(came)


def test_a_dry_run_of_two_laces_writes_to_neither(stage: Path) -> None:
    before = Path("near.lace").read_bytes(), Path("far.lace").read_bytes()
    done = lace("interlace", "near.lace", "far.lace", "--expose", "all", "--dry-run", "--json")
    assert json.loads(done.stdout)["come"]["records"] == 3
    assert json.loads(done.stdout)["go"]["records"] == 1
    assert (Path("near.lace").read_bytes(), Path("far.lace").read_bytes()) == before


# --- browse


def test_what_a_peer_offers_is_a_table(stage: Path) -> None:
    with serving("far.lace", stage, exposures=(Exposure.author(ONLY_U),)) as address:
        done = lace("browse", address)
        assert done.exit_code == ExitCode.OK, done.output
        assert "//u//ding//links/1" in done.stdout
        assert "//v//ding//3" not in done.stdout
        rows = [
            json.loads(line) for line in lace("browse", address, "//u//ding//links/2", "--json").stdout.splitlines()
        ]
        assert [(row["Name"], row["Data-Length"]) for row in rows] == [("links/2", "18")]
        assert rows[0]["hash"] == found("far.lace", "//u//ding//links/2")


def test_a_table_of_offers_tells_what_is_here_and_what_was_left_out(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("get", "near.lace", "//v//ding//3", "--from", address)
        rows = [
            json.loads(line) for line in lace("browse", address, "--lace", "near.lace", "--json").stdout.splitlines()
        ]
        assert [(row["Name"], row["here"]) for row in rows] == [("links/1", False), ("links/2", False), ("3", True)]
        short = lace("browse", address, "--limit", "2")
        assert "only the first 2 records are shown" in short.stderr
        assert len(browsed(address, "--limit", "2")) == 2
        nothing = lace("browse", address, "//nobody")
        assert nothing.exit_code == ExitCode.OK
        assert "offers you nothing under //nobody" in nothing.stderr


# --- why, of a real peer


def test_a_peer_is_asked_about_a_record_of_ours(stage: Path) -> None:
    own = found("near.lace", "//w//notes//own")
    with serving("far.lace", stage) as address:
        asked = ("why", "near.lace", own, "--address", address, "--json")
        assert gate(lace(*asked)) == ("here", "exposed to the other side")
        assert gate(lace(*asked, "--expose", "all")) is None
        lace("interlace", "near.lace", address, "--expose", "all")
        assert gate(lace(*asked, "--expose", "all")) == ("there", "missing")
    assert own in hashes("far.lace")


def test_a_peer_that_takes_nothing_and_one_whose_rules_want_more(stage: Path) -> None:
    own = found("near.lace", "//w//notes//own")
    asked = ("why", "near.lace", own, "--expose", "all", "--json", "--address")
    with serving("far.lace", stage, max_requests=0) as address:
        assert gate(lace(*asked, address)) == ("there", "asked for")
    with serving("far.lace", stage, module=Module.author(OF_MEMBERS)) as address:
        shut = "selected by the other side's rules, over what they may see"
        assert gate(lace(*asked, address)) == ("here", shut)  # its rules came with the plan


@pytest.mark.long
def test_a_peer_is_asked_about_a_record_that_is_not_here(stage: Path) -> None:
    hidden, shown = found("far.lace", "//v//ding//3"), found("far.lace", "//u//ding//links/1")
    with serving("far.lace", stage, exposures=(Exposure.author(ONLY_U),)) as address:
        for name in (shown, "//u//ding//links/1"):
            asked = ("why", "near.lace", name, "--address", address, "--json")
            assert gate(lace(*asked)) is None
            assert gate(lace(*asked, "--select-coordinate", "//other")) == ("here", "wanted by its own rules")
        assert gate(lace("why", "near.lace", hidden, "--address", address, "--json")) == ("there", "listed")
        nowhere = lace("why", "near.lace", "//v//ding//3", "--address", address)
        assert nowhere.exit_code == ExitCode.BAD
        assert "lists none there to you" in nowhere.stderr
    assert shown not in hashes("near.lace")


def test_what_goes_with_no_peer_is_a_usage_error(stage: Path) -> None:
    own = found("near.lace", "//w//notes//own")
    for options in (("--address", "unix:/x", "--with", "far.lace"), ("--pin", "00" * 32)):
        assert lace("why", "near.lace", own, *options).exit_code == ExitCode.USAGE


# --- nothing moved


def test_that_nothing_was_allowed_has_a_number_of_its_own(stage: Path) -> None:
    with serving("far.lace", stage, exposures=()) as address:
        done = lace("interlace", "near.lace", address)
        assert done.exit_code == ExitCode.NOTHING
        assert "nothing was allowed" in done.stderr
        told = json.loads(lace("interlace", "near.lace", address, "--json").stdout)
        assert (told["shown_to_peer"], told["shown_by_peer"]) == (0, 0)
        assert told["nothing_moved"].startswith("nothing was allowed")
        assert told["held_back_here"] == 1
    with serving("far.lace", stage) as address:
        assert lace("interlace", "near.lace", address).exit_code == ExitCode.OK
        again = lace("interlace", "near.lace", address)
        assert again.exit_code == ExitCode.OK
        assert "nothing moved: this side's rules select 4 records, and this side shows the peer's rules" in again.stderr
        assert "; the peer showed 3 records" in again.stderr


NEVER = "AllowQueryRecord(Viewer,P) :- Have(P), Field(P,'Group',_,'nobody')."
HELD = "this side's rules select {}, and this side shows the peer's rules none of them, so none can be sent"


@pytest.mark.parametrize("expose", [(), ("--expose", "none"), ("--expose", "never.rules")])
@pytest.mark.parametrize("select, count", [((), 3), (("--select-coordinate", "//u//"), 2)])
def test_what_our_own_exposure_holds_back_is_said_and_counted(
    stage: Path, expose: tuple[str, ...], select: tuple[str, ...], count: int
) -> None:
    Path("never.rules").write_text(NEVER)
    api.open("empty.lace", create=True).close()
    said = HELD.format(f"{count} records")
    with serving("empty.lace", stage) as address:
        for peer in (address, "empty.lace"):
            words = ["interlace", "far.lace", peer, *select, *expose]
            done = lace(*words)
            assert said in done.stderr, done.output
            assert f"held back {count} records of yours" in " ".join(done.stdout.split())
            assert json.loads(lace(*words, "--json").stdout)["held_back_here"] == count
            dry = lace(*words, "--dry-run")
            assert said in dry.stderr
            assert json.loads(lace(*words, "--dry-run", "--json").stdout)["held_back_here"] == count
        shown = ["interlace", "far.lace", address, *select, "--expose", "selected"]
        assert json.loads(lace(*shown, "--dry-run", "--json").stdout)["held_back_here"] is None
        done = lace(*shown)
        assert "held back" not in done.output + done.stderr
        assert json.loads(lace(*shown, "--json").stdout)["held_back_here"] is None


def test_an_empty_lace_holds_nothing_back(stage: Path) -> None:
    api.open("empty.lace", create=True).close()
    done = lace("interlace", "empty.lace", "near.lace", "--json")
    assert json.loads(done.stdout)["held_back_here"] is None


def test_python_says_what_each_side_holds_back(stage: Path) -> None:
    with api.open("far.lace") as far, api.open("near.lace") as near:
        found = interlace(far, near)
        assert [held and held.records for held in found.held_back] == [3, 1]
        assert str(found.held_back[1]) + ", so none can be sent" == HELD.format("1 record")
        found = interlace(far, near, expose="none", their_expose="all", their_select="//nobody//")
        assert [held and held.records for held in found.held_back] == [3, None]
        assert interlace(far, near, expose="all").held_back == (None, None)


def test_a_get_under_membership_rules_says_what_is_missing(stage: Path) -> None:
    with api.open("far.lace") as opened:
        opened.put(b"", group="admin", app="member", name="u")
    with serving("far.lace", stage, module=Module.author(OF_MEMBERS)) as address:
        done = lace("get", "near.lace", "//u//ding//links/1", "--from", address)
        assert done.exit_code == ExitCode.BAD
        assert "it stops here: the other side's rules do not let this side ask for it" in done.stderr
        absent = lace("get", "near.lace", "//u//ding//absent", "--from", address)
        assert "lists none there to you" in absent.stderr


def test_a_store_that_is_not_taken_says_at_which_gate(stage: Path) -> None:
    own = found("near.lace", "//w//notes//own")
    with serving("far.lace", stage, module=Module.author(OF_MEMBERS)) as address:
        done = lace("store", "near.lace", own, "--to", address)
        assert done.exit_code == ExitCode.NOTHING
        assert "sent 0 of 1 record" in done.stdout
        assert "stops here: the other side's rules do not select it" in done.stderr
        assert f"lace why near.lace {own} --address" in done.stderr
        with api.open("near.lace") as opened:  # what their rules read is here now, and `store` shows only what it sends
            opened.put(b"", group="admin", app="member", name="w")
        done = lace("store", "near.lace", own, "--to", address)
        assert "stops here: this side does not show the other side's rules what they need" in done.stderr
        told = json.loads(lace("store", "near.lace", own, "--to", address, "--json").stdout)["first_not_sent"]
        assert told["said"].startswith("this side does not show the other side's rules what they need")
    with serving("far.lace", stage) as address:
        assert lace("store", "near.lace", own, "--to", address).exit_code == ExitCode.OK
        again = lace("store", "near.lace", own, "--to", address)
        assert again.exit_code == ExitCode.OK  # where it should be, it is
        assert "already stored there" in again.stderr
