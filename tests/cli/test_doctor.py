"""`lace doctor` and `lace upgrade`: what has to be mended, said before it fails."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import lace as api
from lace.cli.app import app
from lace.cli.output.failure import ExitCode
from lace.limits import RecordLimits
from lace.porcelain.doctor import Urgency, examine_certificate
from lace.records.manifest import manifest_pieces
from lace.runtime.clock import SystemClock
from lace.store.columns.tables import schema
from lace.transports.certificate import certificate_end, write_self_signed

SMALL = RecordLimits(max_data_bytes=100, max_extra_headers=6)


@pytest.fixture(autouse=True)
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LACE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    lace("init", "a.lace")
    Path("a.lace").chmod(0o600)
    return tmp_path


def lace(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def found(*options: str, exits: int = 0) -> dict[str, dict[str, Any]]:
    done = lace("doctor", "a.lace", "--json", *options)
    assert done.exit_code == exits, done.output
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {row["check"]: row for row in rows}


def test_a_new_lace_needs_nothing_and_looking_changes_nothing() -> None:
    before = Path("a.lace").read_bytes()
    levels = {check: row["level"] for check, row in found().items() if check not in ("interpreter", "platform", "disk")}
    assert set(levels.values()) == {"ok"}
    assert Path("a.lace").read_bytes() == before


def test_who_else_may_write_the_file_is_told() -> None:
    Path("a.lace").chmod(0o644)
    assert found()["permissions"]["level"] == "note"
    Path("a.lace").chmod(0o666)
    assert found(exits=ExitCode.BAD)["permissions"]["try"] == "chmod 600 a.lace"


def test_a_key_without_a_backup_is_told_until_there_is_one() -> None:
    lace("key", "new", "me")
    assert "me" in found()["keys"]["said"]
    lace("key", "backup", "me")
    assert found()["keys"]["level"] == "ok"


def test_a_remote_that_cannot_work_is_told(stage: Path) -> None:
    lace("key", "new", "me")
    lace("remote", "add", "a.lace", "server", "wss:nowhere.example", "--key", "me")
    assert found()["remotes"]["level"] == "note"  # no exchange yet
    lace("key", "rm", "me", "--yes")
    assert "not in your key ring" in found(exits=ExitCode.BAD)["remotes"]["said"]
    lace("remote", "add", "a.lace", "server", "unix:/nowhere", "--replace")
    lace("interlace", "a.lace", "server")
    assert "no fixed point" in found(exits=ExitCode.BAD)["remotes"]["said"]


def test_a_remote_that_goes_by_other_rules_than_the_policy_is_told() -> None:
    lace("key", "new", "me")
    lace("policy", "set", "a.lace", "members", "--group", "club", "--app", "notes")
    lace("backup", "a.lace", "b.lace")
    lace("remote", "add", "a.lace", "far", "b.lace")
    assert "rules" not in found()
    for there, level in (("//u", "note"), (None, "ok")):
        other = () if there is None else ("--their-select", there)
        done = lace("interlace", "a.lace", "far", *other)
        assert done.exit_code in (ExitCode.OK, ExitCode.NOTHING), done.output
        assert found()["rules"]["level"] == level


def test_content_without_parts_and_a_clock_that_is_behind_are_told() -> None:
    ahead = SystemClock().tai().plus_ns(3_600 * 10**9)
    with api.open("a.lace", limits=SMALL) as opened:
        whole = opened.put(b"x" * 300, group="u", app="ding", name="large")
        opened.delete(next(iter(manifest_pieces(opened.load(whole)))).target)
        opened.put(b"x", group="u", app="ding", name="later", tai=ahead)
    told = found()
    assert "//u//ding//large" in told["content"]["said"]
    assert "ahead of this clock" in told["clock"]["said"]


def test_a_certificate_is_told_before_it_ends(stage: Path) -> None:
    now = datetime.now(UTC)
    for name, days in (("long", 400), ("short", 20)):
        write_self_signed(Path(f"{name}.pem"), Path(f"{name}.key"), ["localhost"], not_before=now, valid_days=days)
    assert found("--cert", "long.pem")["certificate"]["level"] == "ok"
    assert "`lace cert --renew`" in found("--cert", "short.pem", exits=ExitCode.BAD)["certificate"]["try"]
    later = (now + timedelta(days=40)).timestamp()
    assert examine_certificate(Path("short.pem"), certificate_end(Path("short.pem")), later).level is Urgency.MEND


@pytest.mark.parametrize("version", range(1, len(schema.MIGRATIONS)))
def test_an_old_file_is_brought_up_to_date_only_on_request(version: int) -> None:
    connection = sqlite3.connect("old.lace")
    connection.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")
    for statements, step in schema.MIGRATIONS[:version]:
        connection.executescript(statements)
        step(connection)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    for _ in range(2):
        checked = lace("upgrade", "old.lace", "--check", "--json")
        assert checked.exit_code == ExitCode.BAD
        assert json.loads(checked.stdout)["schema"] == version
    assert lace("upgrade", "old.lace").exit_code == 0
    again = lace("upgrade", "old.lace", "--check", "--json")
    assert again.exit_code == 0
    assert json.loads(again.stdout)["schema"] == len(schema.MIGRATIONS)


def test_what_is_not_a_lace_is_not_upgraded(stage: Path) -> None:
    Path("text").write_text("not a lace")
    assert lace("upgrade", "text").exit_code == ExitCode.STORE
    assert lace("upgrade", "missing.lace", "--check").exit_code == ExitCode.STORE
    assert Path("text").read_text() == "not a lace"
    assert not Path("missing.lace").exists()
