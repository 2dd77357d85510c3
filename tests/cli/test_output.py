"""How the command prints: plain tables, tables on a terminal, progress."""

from __future__ import annotations

import sys

import pytest

from lace.cli.output import output

HASH = "P.FCj42pghb4H3WYIb~bi89N8AUEgr6iyilDwo8Llxi4O.H3"


def pretend_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both streams look like a terminal 100 columns wide."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_plain_table_is_aligned_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    output.print_table(["name", "n"], [["a", "1"], [HASH * 4, "1000"]], right=frozenset({"n"}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name".ljust(len(HASH) * 4) + "     n"
    assert lines[2] == f"{HASH * 4}  1000"


def test_any_number_of_rows_streams_through(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    output.print_table(["n"], ([str(number)] for number in range(10)), page_rows=3)
    assert capsys.readouterr().out.split() == ["n", *map(str, range(10))]


def test_a_terminal_table_shows_markup_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    output.print_table(["name"], [["[bold]x[/bold]"]])
    assert sys.stdout.isatty()
    assert "[bold]x[/bold]" in capsys.readouterr().out


def test_hashes_are_short_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_terminal(monkeypatch)
    assert output.shown_hash(HASH) == "P.FCj42pghb4H3…"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert output.shown_hash(HASH) == HASH


def test_progress_shows_on_a_terminal_once_it_takes_long(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    with output.metered("quick", 10) as meter:
        meter.advance(5)
        assert meter.bar is None
    with output.metered("working", 10, after_s=-1.0) as meter:
        meter.advance(5)
        assert meter.bar is not None
    out, err = capsys.readouterr()
    assert out == ""
    assert "working" in err
    assert "quick" not in err


def test_progress_stays_away_from_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    with output.metered("working", after_s=-1.0) as meter:
        meter.advance(5)
    assert (meter.done, meter.bar, capsys.readouterr().err) == (5, None, "")
