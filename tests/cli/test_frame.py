"""The frame of the `lace` command: help pages, exit codes, completion, how failures look."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from lace import errors
from lace.cli.app import app
from lace.cli.catalogue import CATALOGUE, SECTIONS
from lace.cli.output.failure import MEANING, ExitCode, exit_code, explain_failure

SOURCE = Path(__file__).parents[2] / "src"


def run_python(code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)


def run_lace(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-m", "lace.cli", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("entry", CATALOGUE, ids=lambda entry: entry.name)
def test_the_table_says_what_the_command_says(entry) -> None:
    command = import_module(entry.module).command
    assert command.name == entry.name
    assert (command.help or "").split("\n\n")[0].replace("\n", " ").strip() == entry.summary
    assert entry.section in SECTIONS


def test_help_lists_every_command_under_its_section() -> None:
    page = CliRunner().invoke(app, ["--help"]).output
    for entry in CATALOGUE:
        assert f"{entry.section}:" in page
        assert f"  {entry.name} " in page


def test_help_loads_no_command_and_no_heavy_library() -> None:
    code = (
        "import sys\nfrom lace.cli import main\nsys.argv = ['lace', '--help']\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "heavy = {'rich', 'numpy', 'sqlite3', 'coincurve', 'blake3', 'pyspark', 'websockets', 'starlette', 'asyncio'}\n"
        "sys.exit(str(sorted(heavy & set(sys.modules)) or ''))"
    )
    done = run_python(code)
    assert done.stderr.strip() == ""
    assert "Start here:" in done.stdout


def test_the_real_command_starts_as_a_process() -> None:
    done = run_lace("--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: lace")


def test_an_unknown_command_is_a_usage_error_with_a_hint() -> None:
    result = CliRunner().invoke(app, ["expot"])
    assert result.exit_code == ExitCode.USAGE
    assert "Did you mean export?" in result.stderr
    assert result.stdout == ""


def test_help_explains_commands_and_topics() -> None:
    runner = CliRunner()
    assert "Usage: lace completion" in runner.invoke(app, ["help", "completion"]).output
    codes = runner.invoke(app, ["help", "exit-codes"]).output
    assert all(f"{int(code)}  {meaning}" in codes for code, meaning in MEANING.items())
    assert runner.invoke(app, ["help", "nothing"]).exit_code == ExitCode.USAGE
    assert runner.invoke(app, ["help"]).output == runner.invoke(app, ["--help"]).output


def test_every_exit_code_has_a_meaning() -> None:
    assert set(MEANING) == set(ExitCode)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(shell: str) -> None:
    result = CliRunner().invoke(app, ["completion", shell])
    assert result.exit_code == 0
    assert "_LACE_COMPLETE" in result.output


def test_completion_offers_commands_without_loading_them() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "_LACE_COMPLETE": "bash_complete"}
    environment |= {"COMP_WORDS": "lace compl", "COMP_CWORD": "1"}
    command = [sys.executable, "-m", "lace.cli"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "plain,completion\n"


FAILURES = [
    (errors.InvalidRecord("bad", rule="r"), ExitCode.BAD),
    (errors.NotFound("nothing there"), ExitCode.BAD),
    (errors.StoreError("full"), ExitCode.STORE),
    (PermissionError(13, "Permission denied", "x"), ExitCode.STORE),
    (errors.LimitExceeded("max_rules", 3), ExitCode.LIMIT),
    (errors.RemoteProtocolError("peer"), ExitCode.PROTOCOL),
    (errors.LocalProtocolError("we"), ExitCode.PROTOCOL),
    (errors.TransportError("gone"), ExitCode.CONNECTION),
    (errors.KeyUnavailable("no key"), ExitCode.KEY),
    (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    (ZeroDivisionError("oops"), ExitCode.BUG),
]


@pytest.mark.parametrize("error, code", FAILURES, ids=lambda value: type(value).__name__)
def test_each_failure_has_its_exit_code(error: BaseException, code: ExitCode) -> None:
    assert exit_code(error) is code


def test_a_failure_is_one_block_that_says_what_where_and_found(capsys: pytest.CaptureFixture[str]) -> None:
    error = errors.InvalidRecord("a line has at most 1024 bytes", rule="line-length", place="line 3", found="2000")
    error.add_note("shorten it")
    assert explain_failure(error) is ExitCode.BAD
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "error: a line has at most 1024 bytes",
        "  where  line 3",
        "  found  2000",
        "  rule   line-length",
        "  try    shorten it",
    ]


def test_debug_shows_the_traceback_and_its_absence_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("completion")
    def failing() -> None:
        raise errors.StoreError("the disk is full")

    monkeypatch.setattr("lace.cli.commands.completion.command", failing)
    short = CliRunner().invoke(app, ["completion"])
    assert (short.exit_code, short.stderr) == (ExitCode.STORE, "error: the disk is full\n")
    long = CliRunner().invoke(app, ["--debug", "completion"])
    assert isinstance(long.exception, errors.StoreError)


def test_an_interrupt_is_one_word_and_its_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command("completion")
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lace.cli.commands.completion.command", interrupted)
    result = CliRunner().invoke(app, ["completion"])
    assert (result.exit_code, result.stderr) == (ExitCode.INTERRUPTED, "interrupted\n")


def test_a_reader_that_stops_reading_is_no_error() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = f'"{sys.executable}" -m lace.cli completion bash | true; echo "${{PIPESTATUS[0]}}"'
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert int(done.stdout) in (ExitCode.OK, ExitCode.BROKEN_PIPE)
