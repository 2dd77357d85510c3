"""`lace key`: making, listing, showing and importing keys, and where secrets do not go."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from lace.cli.app import app
from lace.cli.output.failure import ExitCode

SECRET = "&.00420lG51WS82GdB30pE3m0H4XCK5HON61_Q6mlT7Xx.H3"
VERIFIER = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def lace(*arguments: str, given: str = "") -> Result:
    return CliRunner().invoke(app, ["key", *arguments], input=given)


def test_a_new_key_shows_its_verifier_and_not_its_secret() -> None:
    result = lace("new", "me")
    assert result.exit_code == 0
    assert "verifier  V." in result.stdout
    assert "&." not in result.output


def test_an_imported_secret_gives_its_verifier(tmp_path: Path) -> None:
    assert json.loads(lace("import", "--json", "a", given=SECRET + "\n").stdout) == {"name": "a", "verifier": VERIFIER}
    file = tmp_path / "secret.txt"
    file.write_text(SECRET)
    assert VERIFIER in lace("import", "b", str(file)).stdout


def test_listing_shows_names_and_verifiers_only() -> None:
    lace("import", "me", given=SECRET)
    lace("new", "you")
    plain = lace("list")
    assert [line.split()[0] for line in plain.stdout.splitlines()] == ["name", "me", "you"]
    rows = [json.loads(line) for line in lace("list", "--json").stdout.splitlines()]
    assert [sorted(row) for row in rows] == [["name", "verifier"]] * 2
    assert "&." not in plain.output


def test_an_empty_ring_says_so_on_stderr() -> None:
    result = lace("list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "lace key new" in result.stderr


def test_the_secret_shows_only_when_asked_for() -> None:
    lace("import", "me", given=SECRET)
    assert SECRET not in lace("show", "me").output
    assert SECRET not in lace("show", "--json", "me").output
    assert SECRET in lace("show", "--secret", "me").stdout
    assert json.loads(lace("show", "--secret", "--json", "me").stdout)["secret"] == SECRET


@pytest.mark.parametrize("given", ["", "hello", SECRET[:-1], SECRET[:20] + "!" + SECRET[21:]])
def test_what_is_no_secret_is_refused_and_not_repeated(given: str) -> None:
    result = lace("import", "me", given=given)
    assert result.exit_code == ExitCode.KEY
    assert "not a signing secret" in result.stderr
    assert not given or given not in result.output


def test_failures_have_their_exit_codes() -> None:
    lace("new", "me")
    assert lace("new", "me").exit_code == ExitCode.KEY
    assert lace("show", "nobody").exit_code == ExitCode.KEY
    assert lace("new", "../x").exit_code == ExitCode.BAD
    assert lace("new").exit_code == ExitCode.USAGE
    assert lace("import", "x", "/nowhere/at/all").exit_code == ExitCode.STORE


def test_a_readable_key_file_is_refused_with_what_to_do(home: Path) -> None:
    lace("new", "me")
    (home / "keys" / "me.key").chmod(0o644)
    result = lace("show", "me")
    assert result.exit_code == ExitCode.KEY
    assert "chmod 600" in result.stderr


@pytest.mark.long
def test_a_locked_key_is_used_with_its_passphrase_only(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = tmp_path / "passphrase"
    held.write_text("correct horse\n")
    monkeypatch.setenv("LACE_PASSPHRASE_FILE", str(held))
    assert json.loads(lace("import", "--passphrase", "--json", "me", given=SECRET).stdout)["locked"] is True
    kept = (home / "keys" / "me.key").read_text()
    assert SECRET not in kept
    assert SECRET[2:-3] not in kept
    assert SECRET in lace("show", "--secret", "me").stdout
    held.write_text("wrong horse\n")
    refused = lace("show", "--secret", "me")
    assert refused.exit_code == ExitCode.KEY
    assert "horse" not in refused.output
    monkeypatch.delenv("LACE_PASSPHRASE_FILE")
    assert VERIFIER in lace("show", "me").stdout  # who it is needs no passphrase
    assert "locked" in lace("list").stdout
    nobody = lace("show", "--secret", "me")
    assert nobody.exit_code == ExitCode.KEY
    assert "LACE_PASSPHRASE_FILE" in nobody.stderr


@pytest.mark.long
def test_a_key_can_be_locked_and_unlocked_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    lace("import", "me", given=SECRET)
    held = tmp_path / "passphrase"
    held.write_text("a\n")
    monkeypatch.setenv("LACE_PASSPHRASE_FILE", str(held))
    assert lace("lock", "me").exit_code == 0
    assert SECRET not in (home / "keys" / "me.key").read_text()
    assert (home / "keys" / "me.key").stat().st_mode & 0o777 == 0o600
    assert lace("unlock", "me").exit_code == 0
    assert SECRET in (home / "keys" / "me.key").read_text()
    held.write_text("\n")
    assert lace("lock", "me").exit_code == ExitCode.KEY
    assert SECRET in lace("show", "--secret", "me").stdout


def test_a_key_comes_back_from_its_words_and_from_its_qr_text(home: Path, tmp_path: Path) -> None:
    lace("import", "me", given=SECRET)
    shown = lace("backup", "me")
    assert shown.exit_code == 0
    assert "&." not in shown.output
    paper = tmp_path / "paper"
    paper.write_text(shown.stdout)  # the numbers of the words do not matter
    assert VERIFIER in lace("restore", "again", str(paper)).stdout
    assert VERIFIER in lace("restore", "scanned", given=SECRET).stdout
    assert lace("restore", "again", str(paper)).exit_code == ExitCode.KEY
    assert "█" in lace("backup", "me", "--qr").stdout or "▀" in lace("backup", "me", "--qr").stdout


def test_a_slip_in_the_words_makes_no_key_and_repeats_no_word(home: Path) -> None:
    lace("import", "me", given=SECRET)
    words = str(json.loads(lace("backup", "me", "--json").stdout)["words"]).split()
    wrong = lace("restore", "again", given=" ".join([*words[1:], words[0]]))
    assert wrong.exit_code == ExitCode.KEY
    assert not any(word in wrong.output for word in words)
    assert not (home / "keys" / "again.key").exists()


def test_a_renamed_key_has_the_same_verifier_and_replaces_no_other(home: Path) -> None:
    lace("import", "me", given=SECRET)
    lace("new", "you")
    assert lace("rename", "me", "you").exit_code == ExitCode.KEY
    assert VERIFIER in lace("rename", "me", "ich").stdout
    assert VERIFIER in lace("show", "ich").stdout
    assert lace("show", "me").exit_code == ExitCode.KEY
    assert lace("rename", "me", "x").exit_code == ExitCode.KEY
    assert (home / "keys" / "ich.key").stat().st_mode & 0o077 == 0


def test_a_key_is_removed_only_on_purpose(home: Path) -> None:
    lace("import", "me", given=SECRET)
    refused = lace("rm", "me")
    assert refused.exit_code == ExitCode.USAGE
    assert "`lace key backup` was never run" in refused.output
    assert lace("show", "me").exit_code == 0
    assert VERIFIER in lace("rm", "me", "--yes").stdout
    assert list((home / "keys").iterdir()) == []
    assert lace("rm", "me", "--yes").exit_code == ExitCode.KEY


def test_a_backup_of_a_lace_says_that_keys_are_not_in_it_until_they_are_backed_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runner = CliRunner()
    runner.invoke(app, ["init", "a.lace"])
    lace("import", "me", given=SECRET)
    assert "(me)" in runner.invoke(app, ["backup", "a.lace", "b.lace"]).stderr
    lace("backup", "me")
    assert runner.invoke(app, ["backup", "a.lace", "c.lace"]).stderr == ""
