"""`lace interlace`, `store`, `get --from`, `ls --from`, `tap`, `cert`: what they do, say and return."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import lace as api
from cli.serving import serving
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.limits import RecordLimits

BIG = RecordLimits(max_data_bytes=100, max_extra_headers=6)


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lace with three records, an empty one, and nothing of the user's own."""
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with api.open("far.lace", create=True) as opened:
        for group, name in (("u", "links/1"), ("u", "links/2"), ("v", "3")):
            opened.put(f"content of {name}".encode(), group=group, app="ding", name=name)
    api.open("near.lace", create=True).close()
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def count(path: str) -> int:
    with api.open(path) as opened:
        return opened.stat().records


def test_a_summary_says_what_moved(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        done = lace("interlace", "near.lace", address)
    assert done.exit_code == ExitCode.OK, done.output
    assert done.stdout.startswith("✓ converged after 2 loops: received ")
    assert "received     3 records" in done.stdout
    assert "sent         0 records" in done.stdout
    assert count("near.lace") == 3


def test_a_selector_narrows_the_exchange(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("interlace", "near.lace", address, "--select-coordinate", "//u//ding//links/")
        assert count("near.lace") == 2
        Path("rules").write_text("SelectHave(P) :- Have(P).\nSelectAdvertised(P,S) :- Advertised(P,S).\n")
        assert lace("interlace", "near.lace", address, "--select", "rules").exit_code == ExitCode.OK
    assert count("near.lace") == 3


def test_nothing_is_sent_unless_it_is_exposed(stage: Path) -> None:
    with api.open("near.lace") as opened:
        opened.put(b"mine", group="u", app="a", name="mine")
    with serving("far.lace", stage) as address:
        lace("interlace", "near.lace", address)
        assert count("far.lace") == 3
        assert json.loads(lace("interlace", "near.lace", address, "--expose", "selected", "--json").stdout)["sent"] == 1
    assert count("far.lace") == 4


def test_two_empty_laces_are_equal_over_a_link_where_the_peer_says_that_it_is_empty(stage: Path) -> None:
    for name in ("nothing.lace", "none.lace"):
        api.open(name, create=True).close()
    with serving("nothing.lace", stage) as address:
        for options in ([], ["--expose", "all"]):
            done = lace("interlace", "none.lace", address, *options)
            assert done.exit_code == ExitCode.OK, done.output
            assert "both laces are empty" in done.stderr


def test_the_exit_code_says_how_an_exchange_ended(stage: Path) -> None:
    nobody = lace("interlace", "near.lace", f"unix:{stage}/nobody.sock")
    assert nobody.exit_code == ExitCode.CONNECTION
    assert "cannot reach" in nobody.stderr
    assert lace("interlace", "near.lace", "ws://x").exit_code == ExitCode.USAGE
    assert lace("interlace", "near.lace", "stdio").exit_code == ExitCode.CONNECTION
    assert lace("interlace", "absent.lace", f"unix:{stage}/x").exit_code == ExitCode.STORE
    assert lace("interlace", "near.lace", f"unix:{stage}/x", "--key", "nobody").exit_code == ExitCode.KEY
    assert lace("interlace", "near.lace", f"unix:{stage}/x", "--pin", "x").exit_code == ExitCode.USAGE
    with serving("far.lace", stage) as address:
        untrusted = lace(
            "interlace", "near.lace", address, "--trust", "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"
        )
    assert untrusted.exit_code == ExitCode.CONNECTION
    assert "not trusted" in untrusted.stderr


def test_a_limit_and_an_abort_have_numbers_of_their_own() -> None:
    from lace.cli.output.outcome import exit_code_of
    from lace.interlace.reasons import AbortReason
    from lace.interlace.result import InterlaceResult
    from lace.runtime.link.session import Outcome

    reached = InterlaceResult(fixed_point=True, advertised_by_peer=1)
    assert exit_code_of(Outcome(reached)) is ExitCode.OK
    assert exit_code_of(Outcome(InterlaceResult(fixed_point=True))) is ExitCode.NOTHING
    assert exit_code_of(Outcome(InterlaceResult(limit_reached="max_loop_iterations"))) is ExitCode.LIMIT
    for abort in ("local failure", "evaluation error"):
        ours = Outcome(InterlaceResult(limit_reached="max_derived_facts_per_predicate"), abort=abort)
        assert exit_code_of(ours) is ExitCode.LIMIT
    assert exit_code_of(Outcome(InterlaceResult())) is ExitCode.CONNECTION
    expected = {
        AbortReason.TRANSFER_LIMIT_EXCEEDED: ExitCode.LIMIT,
        AbortReason.STREAM_BROKEN: ExitCode.CONNECTION,
        AbortReason.PHASE_TIMEOUT: ExitCode.CONNECTION,
        AbortReason.LOCAL_FAILURE: ExitCode.STORE,
        AbortReason.REFUSED_BY_PEER: ExitCode.CONNECTION,
    }
    for reason in AbortReason:
        found = exit_code_of(Outcome(InterlaceResult(), abort=reason.value, detail="x"))
        assert found is expected.get(reason, ExitCode.PROTOCOL)


def test_an_aborted_exchange_is_told_as_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    from lace.cli.output.outcome import print_outcome
    from lace.interlace.result import InterlaceResult
    from lace.runtime.link.session import Outcome

    rejected = {f"B.{n}": "bad" for n in range(12)}
    outcome = Outcome(InterlaceResult(rejected_hashes=rejected), abort="phase timeout", detail="while x")
    print_outcome(outcome, 1.0, 10, 20, as_json=False)
    said = capsys.readouterr()
    assert "phase timeout" in said.err
    assert "rejected 12 records" in said.err
    assert "and 2 more" in said.err
    assert "aborted after 0 loops" in said.out


@pytest.mark.long
def test_get_and_ls_fetch_from_a_peer_first(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        got = lace("get", "near.lace", "//u//ding//links/2", "--from", address)
        assert got.stdout == "content of links/2"
        assert count("near.lace") == 1
        listed = lace("ls", "near.lace", "//v", "--from", address)
        assert "//v//ding//3" in listed.stdout
        assert count("near.lace") == 2
        with api.open("far.lace") as opened:
            found = opened.resolve("//u//ding//links/1")
        assert lace("get", "near.lace", found, "--from", address).stdout == "content of links/1"
        assert lace("get", "near.lace", "//u//ding//absent", "--from", address).exit_code == ExitCode.BAD


def test_large_content_is_fetched_with_its_chunks(stage: Path) -> None:
    content = bytes(range(256)) * 12
    with api.open("far.lace", limits=BIG) as opened:
        opened.put(content, group="big", app="a", name="big")
    with serving("far.lace", stage) as address:
        assert lace("get", "near.lace", "//big//a//big", "--from", address, "-o", "out").exit_code == ExitCode.OK
    assert Path("out").read_bytes() == content


def test_records_are_stored_at_a_peer_and_nothing_else(stage: Path) -> None:
    content = bytes(range(256)) * 6
    with api.open("near.lace", limits=BIG) as opened:
        opened.put(content, group="big", app="a", name="big")
        opened.put(b"private", group="p", app="a", name="p")
        records = opened.stat().records
    with serving("far.lace", stage) as address:
        done = lace("store", "near.lace", "//big//a//big", "--to", address, "--json")
        assert done.exit_code == ExitCode.OK, done.output
        said = {"named": records - 1, "sent": records - 1, "sent_not_confirmed": 0, "refused_by_peer": {}}
        assert json.loads(done.stdout) == {**said, "first_not_sent": None}
        assert "sent 0 of" in lace("store", "near.lace", "//big//a//", "--to", address).stdout
    with api.open("far.lace") as opened:
        assert opened.get("//big//a//big") == content
        assert not list(opened.list("//p"))
    assert count("near.lace") == records


def test_a_capture_is_shown_decoded(stage: Path) -> None:
    with serving("far.lace", stage) as address:
        lace("interlace", "near.lace", address, "--trace", "capture")
    shown = lace("tap", "capture", "--facts")
    assert shown.exit_code == ExitCode.OK
    for text in ("preface iltp/1", "3 Advertised", "MayRequest('P.", "SelectHave(P) :- Have(P).", "close"):
        assert text in shown.stdout
    rows = [json.loads(line) for line in lace("tap", "capture", "--json").stdout.splitlines()]
    assert {row["kind"] for row in rows} == {"preface", "resource", "facts", "end", "record", "close"}
    assert sum(row["kind"] == "record" for row in rows) == 3
    Path("broken").write_bytes(b"\xf0\x9f\xaa\xa2: iltp/1\nnonsense\n")
    broken = lace("tap", "broken")
    assert broken.exit_code == ExitCode.BAD
    assert "fault" in broken.stdout


def test_a_certificate_is_made_once_and_never_overwritten(stage: Path) -> None:
    made = json.loads(lace("cert", "localhost", "127.0.0.1", "--json").stdout)
    assert len(made["pin"]) == 43
    assert Path("key.pem").stat().st_mode & 0o777 == 0o600
    again = lace("cert", "localhost")
    assert again.exit_code == ExitCode.CONNECTION
    assert "key.pem" in again.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["serve"],
        ["serve", "far.lace"],
        ["serve", "far.lace", "tcp:127.0.0.1:1", "--trust", "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"],
        ["serve", "far.lace", "wss:127.0.0.1:1"],
        ["serve", "far.lace", "tcp:127.0.0.1:1", "--uid", "root=V"],
    ],
)
def test_what_cannot_be_served_is_a_usage_error(arguments: list[str]) -> None:
    assert lace(*arguments).exit_code == ExitCode.USAGE


def test_the_help_pages_of_addresses_are_there() -> None:
    assert "tcp:HOST" in lace("help", "addresses").stdout
