"""How the command prints: sentences, verdicts and trees, tables on terminals and in pipes, progress."""

from __future__ import annotations

import re
import sys
import threading

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lace.cli.output import output, progress, tables, text, words
from tries import tries

HASH = "P.FCj42pghb4H3WYIb~bi89N8AUEgr6iyilDwo8Llxi4O.H3"
KEY = "V.OEL2sxn4GhPnCm_bU7hnAPU0Q0gVS8KxFlNg3zfHT2O.H3"
STYLE = re.compile(r"\x1b\[[0-9;]*m")


def pretend_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 100, *, colour: bool = False) -> None:
    """Both streams look like a terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not colour:
        monkeypatch.setenv("NO_COLOR", "1")


def test_a_plain_table_is_aligned_and_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tables.print_table(["name", "n"], [["a", "1"], [HASH * 4, "1000"]], right=frozenset({"n"}), drop=("n",))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "name".ljust(len(HASH) * 4) + "     n"
    assert lines[2] == f"{HASH * 4}  1000"


def test_any_number_of_rows_streams_through(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    tables.print_table(["n"], ([str(number)] for number in range(10)), page_rows=3)
    assert capsys.readouterr().out.split() == ["n", *map(str, range(10))]


def test_a_terminal_table_shows_markup_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    tables.print_table(["name"], [["[bold]x[/bold]\x1b[31m"]])
    assert "[bold]x[/bold]\\x1b[31m" in capsys.readouterr().out


def test_a_narrow_terminal_loses_columns_and_says_which_while_the_rest_stays_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ("record", "coordinate", "time (UTC)", "size", "signed by")
    rows = [(HASH, "//club//notes//a/long/name/of/a/boat/that/goes/on", "2026-11-19 01:43:56", "8.5 KiB", "anna")]
    order = ("signed by", "record", "size", "time (UTC)")
    seen = {}
    for width in (120, 80, 60, 40):
        pretend_terminal(monkeypatch, width)
        tables.print_table(columns, rows, right=frozenset({"size"}), drop=order)
        out, err = capsys.readouterr()
        assert all(text.cells(line) <= width for line in out.splitlines())
        below = out.partition("\n")[2]
        for other in (words.short_hash(HASH), *rows[0][2:]):
            below = below.replace(other, "")
        assert "".join(below.split()) == rows[0][1]
        seen[width] = [column for column in columns if column in out.splitlines()[0]]
        assert all((column in err) is (column not in seen[width]) for column in columns)
    assert seen[120] == list(columns)
    assert seen[60] == ["coordinate", "time (UTC)", "size"]
    assert seen[40] == ["coordinate"]


@tries(120)
@given(
    st.lists(st.lists(st.text(max_size=40), min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(48, 120),
)
def test_no_line_of_a_table_is_wider_than_its_terminal_and_no_text_is_lost(rows: list[list[str]], width: int) -> None:
    layout = tables.Layout.of(("a", "b", "c", "d"), rows, frozenset({"b"}), ("d", "c"), width)
    for row in rows:
        lines = [STYLE.sub("", line) for line in layout.lines(row)]
        assert all(text.cells(line) <= width for line in lines)
        if layout.kept == (0,):
            assert "".join("".join(lines).split()) == "".join(text.visible_line(row[0]).split())


@tries(200)
@given(st.text(alphabet="ab /,日é\u0301`", max_size=60), st.integers(2, 30))
def test_wrapping_keeps_every_word_and_stays_within_its_width(line: str, width: int) -> None:
    pieces = text.folded(line, width, width)
    assert "".join("".join(pieces).split()) == "".join(line.split())
    assert all(text.cells(piece) <= width for piece in pieces)
    assert " ".join(" ".join(text.wrapped(line, width)).split()) == " ".join(line.split())


def test_a_command_in_a_sentence_stays_in_one_piece() -> None:
    assert text.wrapped("make it with `lace init notes.lace` and go on", 28) == [
        "make it with", "  `lace init notes.lace` and", "  go on",
    ]  # fmt: skip


def test_sentences_for_people_have_short_hashes_names_and_colours_and_programs_get_the_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said = f"{KEY} wrote {HASH} at //u//notes//boat: `lace get {HASH}`"
    with click.Context(click.Command("x")) as context:
        words.note_names(context, {KEY: "anna"}.get)
        output.say(said)
        assert capsys.readouterr().out == f"{said}\n"
        pretend_terminal(monkeypatch, 200, colour=True)
        output.say(said)
        shown = capsys.readouterr().out
        assert STYLE.sub("", shown) == f"anna wrote {HASH[:14]}… at //u//notes//boat: `lace get {HASH}`\n"
        assert "\x1b[36m//u//notes//boat\x1b[0m:" in shown
        assert f"\x1b[2m{HASH[:14]}…\x1b[0m" in shown
        words.note_full(context, click.Option(["--full"]), True)
        output.say(said)
        assert STYLE.sub("", capsys.readouterr().out) == f"{said}\n"


def test_nothing_of_others_becomes_a_style_or_a_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch, 200, colour=True)
    output.say("evil\x1b[31m\u202eboat at //u//a//\x1b[2J")
    assert STYLE.sub("", capsys.readouterr().out) == "evil\\x1b[31m\\u202eboat at //u//a//\\x1b[2J\n"
    tables.print_table(["title"], [[f"{KEY} and more"]])
    assert f"{KEY} and more" in STYLE.sub("", capsys.readouterr().out)


def test_data_is_neither_cut_nor_wrapped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_terminal(monkeypatch, 40, colour=True)
    output.say_data(f"Have('{HASH}') and a long line")
    assert capsys.readouterr().out == f"Have('{HASH}') and a long line\n"


def test_a_verdict_is_one_bold_sentence_with_its_mark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    output.say_verdict(output.GOOD, "everything holds")
    assert capsys.readouterr().out == "✓ everything holds\n"
    pretend_terminal(monkeypatch, colour=True)
    output.say_verdict(output.BAD, "2 findings")
    assert capsys.readouterr().out == "\x1b[31m\x1b[1m✗\x1b[0m \x1b[1m2 findings\x1b[0m\n"


def test_hashes_are_short_only_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_terminal(monkeypatch)
    assert words.shown_hash(HASH) == "P.FCj42pghb4H3…"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert words.shown_hash(HASH) == HASH


def test_progress_shows_on_a_terminal_once_it_takes_long_even_if_nothing_was_counted_yet(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_terminal(monkeypatch)
    with progress.metered("quick", 10, after_s=60.0) as meter:
        meter.advance(5)
        assert meter.bar is None
    shown = threading.Event()
    with progress.metered("working [bold]", 10, after_s=0.0) as meter:
        while meter.bar is None:
            shown.wait(0.01)
        meter.advance(5)
        meter.expect(2000)
        meter.bar.refresh()
    out, err = capsys.readouterr()
    assert out == ""
    assert "working [bold]" in err
    assert "5 of 2,000" in STYLE.sub("", err)
    assert "quick" not in err


def test_progress_stays_away_from_pipes(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.metered("working", after_s=0.0) as meter:
        meter.advance(5)
    assert (meter.done, meter.bar, capsys.readouterr().err) == (5, None, "")
