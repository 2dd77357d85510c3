"""How `lace` prints: sentences, verdicts and trees for people, one JSON object per line for programs.

Rule: standard output carries only the answer, and the verdict comes first. Everything goes through `say`, or through
`say_data` where every character counts: text from peers and records never reaches a terminal or a log as it is, because
characters that steer a terminal or reverse the direction of text would let strangers forge what is shown. Sentences
for a terminal get the vocabulary of `words` and are wrapped; a program that reads our output gets the exact text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, TypeVar

import click

from lace.cli.output.text import Shown, for_people, hanging, shown, styled, terminal_width, visible, wrapped
from lace.cli.output.words import coloured, note_full, shortened
from lace.notation.visible import spell_out

F = TypeVar("F", bound=Callable[..., Any])
_LINES_A_CALL = 1000
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode

GOOD, BAD, OPEN, NOTE = "✓", "✗", "?", "·"
"""The marks: it holds, it does not, only somebody else can tell, worth knowing."""
COLOURS = {GOOD: "green", BAD: "red", OPEN: "yellow", NOTE: "yellow"}


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print sentences. Only a program that reads our standard output gets the exact characters."""
    if isinstance(text, Shown):
        click.echo(text, err=err, nl=nl)
    elif for_people(err=err):
        click.echo("\n".join(_sentences(str(text))), err=err, nl=nl)
    else:
        click.echo(visible(str(text)) if err else str(text), err=err, nl=nl)


def _sentences(text: str) -> list[Shown]:
    columns = terminal_width()
    return [coloured(piece) for line in visible(shortened(text)).split("\n") for piece in wrapped(line, columns)]


def say_data(text: str, *, nl: bool = True) -> None:
    """Print what people copy or programs read, such as a key, a fact, a rule or a path, with nothing cut or wrapped."""
    click.echo(visible(text) if for_people() else text, nl=nl)


def say_verdict(mark: str, text: str, *, err: bool = False) -> None:
    """Print the answer in one bold line, before everything that supports it."""
    lines = [text]
    if for_people(err=err):
        lines = wrapped(f"{mark} {visible(shortened(text))}", terminal_width())
        lines[0] = lines[0][len(mark) + 1 :]
    first, *others = lines
    say(shown(styled(mark, fg=COLOURS[mark], bold=True), " ", styled(first, bold=True)), err=err)
    for line in others:
        say(styled(line, bold=True), err=err)


def say_tree(text: str, mark: str = "", **style: Any) -> None:
    """Print lines of a tree: where the terminal is narrower they continue below their own text and keep its guides.

    The first `mark` is styled; by default in the colour of its kind.
    """
    style = style or ({"fg": COLOURS[mark]} if mark else {})
    if for_people():
        columns = terminal_width()
        lines = [piece for line in visible(shortened(text)).split("\n") for piece in hanging(line, columns)]
    else:
        lines = text.split("\n")
    if mark:
        before, _, after = lines[0].partition(mark)
        first = shown(_painted(before), styled(mark, **style), _painted(after))
        say(Shown("\n".join([first, *map(_painted, lines[1:])])))
    else:
        say(Shown("\n".join(map(_painted, lines))))


def _painted(line: str) -> Shown:
    return coloured(line) if for_people() else visible(line)


def json_line(value: Mapping[str, object]) -> Shown:
    """A JSON object in one line; what steers a terminal is spelled as JSON spells it, which changes no value."""
    return _visible_json(_ENCODE(value))


def _visible_json(text: str) -> Shown:
    return Shown(spell_out(text, _spelled_in_json, one_line=True, goes_on=True))


def _spelled_in_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def json_option(function: F) -> F:
    """`--json`: one JSON object per line instead of text for people; `--full`: that text with whole hashes."""
    full = click.option(
        "--full", is_flag=True, expose_value=False, callback=note_full, help="Show whole hashes and keys."
    )
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")(full(function))


_WANTS_JSON = "lace.json"  # in what all contexts of one command line share


def note_json(ctx: click.Context, words: Sequence[str]) -> None:
    """Look for --json before anything is parsed, so that a wrong command line is told as JSON too."""
    ctx.meta[_WANTS_JSON] = "--json" in takewhile("--".__ne__, words)


def wants_json() -> bool:
    """Whether this command prints for a program."""
    context = click.get_current_context(silent=True)
    return bool(context is not None and context.meta.get(_WANTS_JSON))


def print_json(value: Mapping[str, object]) -> None:
    """One JSON object on its own line."""
    say(json_line(value))


def print_json_lines(values: Iterable[Mapping[str, object]]) -> None:
    """Any number of JSON objects, each on its own line."""
    echo_lines(map(json_line, values))


def print_json_pages(pages: Callable[[Callable[[str], str]], Iterable[str]]) -> None:
    """Print pages of JSON lines from a writer, which is given the way to spell a value."""
    for page in pages(_visible_json):
        say(Shown(page), nl=False)


def echo_lines(lines: Iterable[str]) -> None:
    """Print many lines, a thousand per call: a call costs more than a line."""
    coming = iter(lines)
    while page := list(islice(coming, _LINES_A_CALL)):
        text = "\n".join(page)
        click.echo(text if isinstance(page[0], Shown) or not for_people() else visible(text))


def print_warning(text: str) -> None:
    """Print a line on stderr for something that did not stop the command."""
    say_begun(text, "warning", fg="yellow")


def say_begun(text: str, word: str, **style: Any) -> None:
    """Print a sentence on stderr after a styled word that says what kind it is of."""
    if for_people(err=True):
        first, *others = _sentences(f"{word}: {text}")
        say(Shown("\n".join([shown(styled(word, **style), Shown(first[len(word) :])), *others])), err=True)
    else:
        say(f"{word}: {text}", err=True)


def print_fields(rows: Iterable[tuple[str, object]]) -> None:
    """Print labels and values, one pair per line, with the values aligned; what is `Shown` already is not shortened."""
    pairs = [(label, value if isinstance(value, Shown) else str(value)) for label, value in rows]
    width = max((len(label) for label, _ in pairs), default=0)
    for label, value in pairs:
        say_labelled(label.ljust(width), value)


def say_labelled(label: str, text: str, *, err: bool = False) -> None:
    """Print a text beside a label; on a terminal what does not fit continues below the text."""
    beside = " " * (len(label) + 2)
    if not for_people(err=err):
        for number, line in enumerate(text.split("\n")):
            say(f"{beside if number else label + '  '}{line}", err=err)
        return
    plain = text if isinstance(text, Shown) else visible(shortened(text))
    columns = terminal_width()
    if len(beside) > columns // 2:  # too little room beside the label: the text goes on below it
        first, *others = wrapped(f"{visible(label)}  {plain}", columns)
        say(shown(styled(first[: len(label)], dim=True), coloured(first[len(label) :])), err=err)
        for piece in others:
            say(coloured(piece), err=err)
        return
    pieces = [piece for line in plain.split("\n") for piece in wrapped(line, columns - len(beside))]
    for number, piece in enumerate(pieces):
        before = beside if number else shown(styled(label, dim=True), "  ")
        say(shown(before, coloured(piece)), err=err)
