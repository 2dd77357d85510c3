"""How `lace` prints: tables for people, one JSON object per line for programs, progress on stderr for slow work.

Rule: standard output carries only the answer; the hash of a record is cut short only on a terminal. Everything goes
through `say`: text from peers and records never reaches a terminal or a log as it is, because characters that steer a
terminal or reverse the direction of text would let strangers forge what is shown.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from unicodedata import category, east_asian_width

import click

from lace.notation.visible import spell_out
from lace.values import dataclass

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

F = TypeVar("F", bound=Callable[..., Any])
PROGRESS_AFTER_SECONDS = 2.0
ELLIPSIS = "…"
SHORT_HASH = 14
PAGE_ROWS = 1000
_NARROWEST = 8  # columns for text beside the guides of a tree; below that it is left to the terminal
_WHOLE_CELL = 16  # columns of a cell that is not broken: hashes and sizes, which people copy
_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode


class Shown(str):
    """Text that may be shown as it is: made visible, perhaps styled by us."""

    __slots__ = ()


def visible(text: str, *, goes_on: bool = False) -> Shown:
    """Text with everything that steers a terminal or hides spelled out; line ends and tabs stay.

    >>> visible("a\\x1b[31mb\\u202ec")
    'a\\\\x1b[31mb\\\\u202ec'
    """
    return Shown(spell_out(text, goes_on=goes_on))


def visible_line(text: str) -> Shown:
    """Visible text in one line: a cell of a table, an entry of a log."""
    return Shown(spell_out(text, one_line=True))


def styled(text: str, **style: Any) -> Shown:
    """Visible text in colour, unless the environment asks for none (no-color.org)."""
    return visible(text) if os.environ.get("NO_COLOR") else Shown(click.style(visible(text), **style))


def shown(*parts: str) -> Shown:
    """Parts joined into one visible text."""
    return Shown("".join(part if isinstance(part, Shown) else visible(part) for part in parts))


def say(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print one or more lines. Only a program that reads our standard output gets the exact characters."""
    line = text if isinstance(text, Shown) else str(text)
    if not isinstance(line, Shown) and (err or sys.stdout.isatty()):
        line = visible(line)
    click.echo(line, err=err, nl=nl)


def say_hanging(text: str, mark: str = "", **style: Any) -> None:
    """Print lines that may be wider than the terminal; they continue below their own text, not at its left edge.

    A tree keeps its guides. The first `mark` is styled.
    """
    lines = visible(text).split("\n")
    if sys.stdout.isatty():
        columns = shutil.get_terminal_size().columns
        lines = [piece for line in lines for piece in hanging(line, columns)]
    if mark:
        before, _, after = lines[0].partition(mark)
        lines[0] = shown(Shown(before), styled(mark, **style), Shown(after))
    say(Shown("\n".join(lines)))


def hanging(line: str, columns: int) -> list[str]:
    """Wrap a line at this width; each piece is indented like the text of the first, with the guides of its tree.

    >>> hanging("  ├─ one two three four five six seven", 30)
    ['  ├─ one two three four five', '  │    six seven']
    """
    guides = line[: len(line) - len(line.lstrip(" │├└─"))]
    below = guides.replace("├", "│").replace("└", " ").replace("─", " ") + "  "
    if columns - len(below) < _NARROWEST:
        return [line]
    pieces, piece, width, space = [], "", 0, -1
    for character in line:
        taken = _cells(character)
        if width + taken > columns:
            cut = space if space >= 0 else len(piece)
            rest = piece[cut:].lstrip(" ")
            pieces.append(piece[:cut].rstrip(" "))
            piece, space = below + rest, -1
            width = sum(map(_cells, piece))
            if character == " " and not rest:
                continue
        piece += character
        width += taken
        if character == " " and len(piece) > len(below):
            space = len(piece)
    return [*pieces, piece]


def _cells(character: str) -> int:
    """How many columns a character occupies."""
    if character < "\u0300":
        return 1
    if category(character)[0] == "M":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def json_line(value: Mapping[str, object]) -> Shown:
    """A JSON object in one line; what steers a terminal is spelled as JSON spells it, which changes no value."""
    return _visible_json(_ENCODE(value))


def _visible_json(text: str) -> Shown:
    return Shown(spell_out(text, _spelled_in_json, one_line=True, goes_on=True))


def _spelled_in_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def json_option(function: F) -> F:
    """`--json`: one JSON object per line instead of text for people."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")(function)


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
    _echo_lines(map(json_line, values))


def print_json_pages(pages: Callable[[Callable[[str], str]], Iterable[str]]) -> None:
    """Print pages of JSON lines from a writer, which is given the way to spell a value."""
    for page in pages(_visible_json):
        say(Shown(page), nl=False)


def _echo_lines(lines: Iterable[str]) -> None:
    """Print many lines, a thousand per call: a call costs more than a line."""
    coming = iter(lines)
    while page := list(islice(coming, PAGE_ROWS)):
        text = "\n".join(page)
        say(Shown(text) if isinstance(page[0], Shown) else text)


def print_warning(text: str) -> None:
    """Print a line on stderr for something that did not stop the command."""
    say(shown(styled("warning", fg="yellow"), f": {text}"), err=True)


def print_fields(rows: Iterable[tuple[str, object]]) -> None:
    """Print labels and values, one pair per line, with the values aligned."""
    pairs = [(label, str(value)) for label, value in rows]
    width = max((len(label) for label, _ in pairs), default=0)
    for label, value in pairs:
        say(f"{label.ljust(width)}  {value}")


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    right: frozenset[str] = frozenset(),
    page_rows: int = PAGE_ROWS,
) -> None:
    """Print a table: drawn by rich on a terminal, elsewhere aligned plain text with nothing cut.

    Rows beyond the first page stream in plain text with the widths of those, so their number is not limited.
    """
    coming = iter(rows)
    page = list(islice(coming, page_rows))
    if sys.stdout.isatty() and len(page) < page_rows:
        _print_rich_table(columns, page, right)
    else:
        _print_plain_table(columns, page, coming, right)


def _print_plain_table(
    columns: Sequence[str], page: list[Sequence[str]], coming: Iterator[Sequence[str]], right: frozenset[str]
) -> None:
    widths = [max([len(column), *(len(row[i]) for row in page)]) for i, column in enumerate(columns)]

    def line(row: Sequence[str]) -> str:
        cells = [
            cell.rjust(width) if column in right else cell.ljust(width)
            for cell, width, column in zip(row, widths, columns, strict=True)
        ]
        return "  ".join(cells).rstrip()

    _echo_lines(map(line, chain([columns], page, coming)))


def _print_rich_table(columns: Sequence[str], rows: Iterable[Sequence[str]], right: frozenset[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    shown_rows = [[visible_line(cell) for cell in row] for row in rows]
    for number, column in enumerate(columns):
        cells = [column, *(row[number] for row in shown_rows)]
        is_whole = max(map(len, cells)) <= _WHOLE_CELL and not any(
            " " in cell for cell in cells[1:] if "iB" not in cell
        )
        side: Literal["left", "right"] = "right" if column in right else "left"
        table.add_column(column, justify=side, overflow="fold", no_wrap=is_whole)
    for row in shown_rows:
        table.add_row(*map(Text, row))  # Text: what a record holds is never read as markup
    Console().print(table)


def short_hash(text: str) -> str:
    """A hash cut to a length that is enough to recognise it and to type it back."""
    return text[:SHORT_HASH] + ELLIPSIS if len(text) > SHORT_HASH else text


def shown_hash(text: str) -> str:
    """A record's hash: short on a terminal, whole where a program may read it."""
    return short_hash(text) if sys.stdout.isatty() else text


def human_size(size: int) -> str:
    """A size in the units that people use.

    >>> human_size(83), human_size(32 << 20)
    ('83 B', '32.0 MiB')
    """
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def count_of(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun.

    >>> count_of(1, "record"), count_of(1200, "record"), count_of(2, "batch", "batches")
    ('1 record', '1,200 records', '2 batches')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


@dataclass(slots=True)
class ProgressMeter:
    """Counts work and, once it has taken two seconds on a terminal, shows a bar on stderr."""

    label: str
    total: int | None
    in_bytes: bool
    after_s: float = PROGRESS_AFTER_SECONDS
    started: float = field(default_factory=time.monotonic)
    done: int = 0
    bar: Progress | None = None
    task: TaskID | None = None

    def advance(self, amount: int) -> None:
        """Count this much more as done."""
        self.done += amount
        if self.bar is None and sys.stderr.isatty() and time.monotonic() - self.started > self.after_s:
            self._show()
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=self.done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        amount = DownloadColumn() if self.in_bytes else MofNCompleteColumn()
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            amount,
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task(self.label, total=self.total)
        self.bar.start()


@contextmanager
def metered(
    label: str, total: int | None = None, *, in_bytes: bool = False, after_s: float = PROGRESS_AFTER_SECONDS
) -> Iterator[ProgressMeter]:
    """A meter around slow work; its bar disappears at the end."""
    meter = ProgressMeter(label, total, in_bytes, after_s)
    try:
        yield meter
    finally:
        if meter.bar is not None:
            meter.bar.stop()
