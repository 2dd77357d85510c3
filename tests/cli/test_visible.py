"""Nothing that a peer or a record holds steers a terminal, turns text around or breaks a line of the log."""

from __future__ import annotations

import ast
import io
import json
import sys
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from lace.cli import output
from lace.cli.app import app
from lace.cli.files import TerminalWriter
from lace.cli.logbook import Logbook
from lace.cli.output import Shown, json_line, say, shown, styled, visible, visible_line

CLI = Path(output.__file__).parent
STEERING = [chr(code) for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))]
TURNING = ["\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u2028"]
NASTY = st.text(st.one_of(st.characters(), st.sampled_from(STEERING + TURNING)))


def is_harmless(text: str, *, kept: str = "") -> bool:
    """Written out here anew: no control characters, nothing bidirectional, no separators of lines."""
    turning = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    return all(
        (unicodedata.category(letter) not in ("Cc", "Zl", "Zp") or letter in kept)
        and unicodedata.bidirectional(letter) not in turning
        and letter not in "\u200e\u200f\u061c"
        for letter in text
    )


@given(NASTY)
def test_visible_text_is_harmless_and_loses_nothing(text: str) -> None:
    assert is_harmless(visible(text), kept="\n\t")
    assert is_harmless(visible_line(text))
    if is_harmless(text, kept="\n\t") and not set(text) & set("\ufeff\u180e\u2060") and text.isprintable():
        assert visible(text) == text


@given(NASTY)
def test_json_for_programs_is_harmless_and_reads_back_the_same(text: str) -> None:
    line = json_line({"text": text, text: 1})
    assert is_harmless(line)
    assert json.loads(line) == {"text": text, text: 1}


@given(NASTY)
def test_a_line_of_the_log_is_one_harmless_line_whatever_peers_say(text: str) -> None:
    for as_json in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "stderr", io.StringIO())
            Logbook(as_json=as_json).trouble(text)
            said = sys.stderr.getvalue()  # type: ignore[attr-defined]  # a StringIO
        assert said.endswith("\n")
        assert is_harmless(said[:-1])


@given(NASTY, st.integers(1, 5))
def test_bytes_on_a_terminal_are_harmless_however_they_are_cut(text: str, size: int) -> None:
    data = text.encode("utf-8", "surrogatepass") + b"\x9b\xff"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.StringIO())
        with TerminalWriter() as writer:
            for start in range(0, len(data), size):
                writer.write(data[start : start + size])
        said = sys.stdout.getvalue()  # type: ignore[attr-defined]  # a StringIO
    assert is_harmless(said, kept="\n\t")


def test_our_own_styles_stay_and_those_of_others_do_not() -> None:
    line = shown(styled("error", fg="red"), ": \x1b[31mred\x1b[0m")
    assert line == "\x1b[31merror\x1b[0m: \\x1b[31mred\\x1b[0m"
    assert isinstance(line, Shown)


def test_a_program_gets_exact_characters_and_a_terminal_does_not(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    say("a\x1bb")
    say("a\x1bb", err=True)
    assert capsys.readouterr() == ("a\x1bb\n", "a\\x1bb\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    say("a\x1bb")
    assert capsys.readouterr().out == "a\\x1bb\n"


def test_a_record_with_escapes_is_listed_harmlessly(tmp_path: Path) -> None:
    with api.open(tmp_path / "x.lace", create=True) as opened:
        opened.put(b"x", group="u", app="ding", name="a\u202eb", headers={"Title": "\u009b31m"})
    for command in (["ls", "--json"], ["facts"]):
        said = CliRunner().invoke(app, [command[0], str(tmp_path / "x.lace"), *command[1:]])
        assert said.exit_code == 0, said.output
        if "--json" in command:
            assert is_harmless(said.output, kept="\n")


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.name)
def test_every_line_goes_through_one_function(path: Path) -> None:
    """`say` is the only door: nothing else in the command echoes, prints or writes text to a stream."""
    if path.name == "output.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not {"click.echo", "click.secho", "print", "sys.stdout.write", "sys.stderr.write"} & set(called)
