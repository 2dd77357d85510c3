"""What cannot work on a system is refused with a sentence, before anything is loaded or created."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lace.cli.app import app
from lace.cli.catalogue import BY_NAME
from lace.cli.output.failure import ExitCode
from lace.cli.platforms import NEEDS_UNIX


def test_every_refused_command_exists() -> None:
    assert set(BY_NAME) >= NEEDS_UNIX


def test_on_windows_a_command_that_cannot_work_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "platform", "win32")
    done = CliRunner().invoke(app, ["serve", "a.lace", "tcp:127.0.0.1:1"])
    assert done.exit_code == ExitCode.USAGE
    assert "under WSL" in " ".join(done.output.split())
    assert list(tmp_path.iterdir()) == []


def test_where_it_works_nothing_is_refused() -> None:
    assert CliRunner().invoke(app, ["serve", "--help"]).exit_code == 0
