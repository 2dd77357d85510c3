"""Nothing that a peer or a record holds steers a terminal, turns text around or breaks a line of the log."""

from __future__ import annotations

import ast
import io
import json
import os
import re
import subprocess
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import lace as api
from lace.cli.app import app
from lace.cli.output import output
from lace.cli.output.files import TerminalWriter
from lace.cli.output.logbook import Logbook
from lace.cli.output.output import json_line, say
from lace.cli.output.text import Shown, shown, styled, visible, visible_line
from lace.inspector.html import visible as on_a_page
from lace.notation.visible import escaped
from lace.porcelain.search import index

CLI = Path(output.__file__).parent
STEERING = [chr(code) for code in (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0))]
TURNING = ["\u061c", "\u200e", "\u200f", *map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u2028"]
HIDING = ("Cc", "Cf", "Zl", "Zp", "Cs")
SHAPELESS = "\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0"
INVISIBLE = ["\u200b", "\xad", "\u200d", "\ufeff", "\U000e0041", *SHAPELESS]
NASTY = st.text(st.one_of(st.characters(), st.sampled_from(STEERING + TURNING + INVISIBLE + ["\u0301", "\u20dd"])))


def is_harmless(text: str, *, kept: str = "") -> bool:
    """Written out here anew: no controls or formats, no separators of lines, nothing without a shape."""
    return all(
        (unicodedata.category(letter) not in HIDING or letter in kept) and letter not in SHAPELESS for letter in text
    )


@given(NASTY)
def test_visible_text_is_harmless_and_loses_nothing(text: str) -> None:
    assert is_harmless(visible(text), kept="\n\t")
    assert is_harmless(visible_line(text))
    if is_harmless(text, kept="\n\t") and text.isprintable() and unicodedata.category(text[:1] or "a")[0] != "M":
        assert visible(text) == text


def test_every_hidden_character_is_spelled_out_on_terminals_and_pages() -> None:
    hidden = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) in HIDING]
    for letter in [*hidden, *SHAPELESS]:
        assert letter in "\t\n" or visible(letter) == escaped(letter)
        assert visible_line(letter) == escaped(letter)
        assert letter in "\t\n" or on_a_page(letter) == f"⟨U+{ord(letter):04X}⟩"
    ordinary = "".join(
        chr(code) for code in range(0x20, 0x110000) if unicodedata.category(chr(code)) in ("Lu", "Ll", "Nd", "Sm", "So")
    ).replace("\u2800", "")
    assert visible(ordinary) == on_a_page(ordinary) == ordinary


@given(NASTY)
def test_no_line_begins_with_a_mark_that_sits_on_what_stands_before_it(text: str) -> None:
    for line in visible(text).split("\n"):
        assert not unicodedata.category(line[:1] or "a").startswith("M")
    assert not unicodedata.category(visible_line(text)[:1] or "a").startswith("M")
    assert visible("a\u0301") == "a\u0301"
    assert visible("\u0301\u20dda") == "\\u0301\\u20dda"


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
    cut = _on_a_terminal(data, size)
    assert is_harmless(cut, kept="\n\t")
    assert cut == _on_a_terminal(data, len(data))


def _on_a_terminal(data: bytes, size: int) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", io.StringIO())
        with TerminalWriter() as writer:
            for start in range(0, len(data), size):
                writer.write(data[start : start + size])
        return sys.stdout.getvalue()  # type: ignore[attr-defined]  # a StringIO


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


def on_a_terminal(folder: Path, *words: str) -> str:
    """What a command writes to a real terminal, without the styles that are ours."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "400", "LACE_HOME": str(folder / "home")}
    command = [sys.executable, "-m", "lace.cli", *words]
    child = subprocess.Popen(command, cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    said = b""
    with suppress(OSError):  # a terminal whose last user is gone gives an error
        while piece := os.read(ours, 1 << 16):
            said += piece
    os.close(ours)
    assert child.wait(60) in (0, 1), said
    return re.sub(r"\x1b\[[0-9;]*m", "", said.decode().replace("\r\n", "\n"))


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="no terminals of this kind")
def test_no_command_that_prints_records_steers_a_real_terminal(tmp_path: Path) -> None:
    content = "\x1b]0;title\x07\x1b[2Jevil \u202e boat".encode() + b"\x9b31m\r"
    with api.open(tmp_path / "x.lace", create=True) as opened:
        record = opened.put(
            content, group="u", app="ding", name="a\u202eevil\u2066\u200b", headers={"Title": "evil\x9b \xadboat"}
        )
        index(opened)
    question = "Titled(P,T,N) :- Field(P,'Title',_,T), Field(P,'Name',_,N)."
    for words in (
        ["ls", "x.lace"], ["ls", "x.lace", "--json"], ["ls", "x.lace", "--columns", "Title"], ["get", "x.lace", record],
        ["cat", "x.lace", record], ["facts", "x.lace"], ["find", "x.lace", "boat"], ["query", "x.lace", question],
        ["query", "x.lace", question, "--json"], ["explain", "x.lace", question, "Titled(P,T,N)"],
        ["why", "x.lace", record], ["export", "x.lace"], ["get", "x.lace", "//u//ding//b\u202eevil"],
    ):  # fmt: skip
        said = on_a_terminal(tmp_path, *words)
        assert "evil" in said, words
        assert is_harmless(said, kept="\n\t"), (words, said)


@pytest.mark.parametrize("path", sorted(CLI.glob("*.py")), ids=lambda path: path.name)
def test_every_line_goes_through_one_function(path: Path) -> None:
    """`say` is the only door: nothing else in the command echoes, prints or writes text to a stream."""
    if path.name == "output.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    called = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert not {"click.echo", "click.secho", "print", "sys.stdout.write", "sys.stderr.write"} & set(called)
