"""Text for terminals: made visible, styled, measured in columns, and wrapped.

Rule: what comes from records and peers becomes `Shown` only through `visible`, so that it cannot steer a terminal; a
style is only ever put around text that is visible already. A line is wrapped between words; the line of a tree keeps
its guides and is cut anywhere.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import Any
from unicodedata import category, east_asian_width

import click

from lace.notation.visible import spell_out

NARROWEST = 8  # columns for text beside the guides of a tree; below that it is left to the terminal
_GUIDES = " │├└─"
_WORDS = re.compile(r"(?:`[^`]*`|[^ `]|`)+|(?<= )(?= )")  # between two spaces stands an empty word


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


def for_people(*, err: bool = False) -> bool:
    """Whether a stream ends at a terminal."""
    return (sys.stderr if err else sys.stdout).isatty()


def terminal_width() -> int:
    """Columns of the terminal."""
    return shutil.get_terminal_size().columns


def cells(text: str) -> int:
    """How many columns a text occupies.

    >>> cells("boat"), cells("日本"), cells("e\\u0301")
    (4, 4, 1)
    """
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if character < "\u0300":
        return 1
    if category(character)[0] == "M":
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def hanging(line: str, columns: int) -> list[str]:
    """Wrap a line at this width; each piece is indented like the text of the first, with the guides of its tree.

    >>> hanging("  ├─ one two three four five six seven", 30)
    ['  ├─ one two three four five', '  │    six seven']
    """
    guides = line[: len(line) - len(line.lstrip(_GUIDES))]
    below = guides.replace("├", "│").replace("└", " ").replace("─", " ") + "  "
    if columns - len(below) < NARROWEST:
        return [line]
    first, *rest = folded(line[len(guides) :], columns - len(guides), columns - len(below))
    return [guides + first, *(below + piece for piece in rest)]


def folded(text: str, first: int, others: int) -> list[str]:
    """Cut a text into lines of these widths, between words where there are any, else after a comma or slash.

    >>> folded("//club//notes/2026/boat", 16, 16)
    ['//club//notes/', '2026/boat']
    """
    pieces: list[str] = []
    start, end, width, space, mark = 0, 0, 0, -1, -1
    room = first
    while end < len(text):
        taken = _cells(text[end])
        if width + taken > room and end > start:
            cut = space if space > start else mark if mark > start else end
            pieces.append(text[start:cut].rstrip(" "))
            while cut < len(text) and text[cut] == " ":
                cut += 1
            start = end = cut
            width, space, mark, room = 0, -1, -1, others
            continue
        if text[end] == " ":
            space = end
        elif text[end] == "," or (
            text[end] == "/" and "/" not in (text[end + 1 : end + 2], text[max(0, end - 1) : end])
        ):
            mark = end + 1
        width += taken
        end += 1
    return [*pieces, text[start:]] if start < len(text) or not pieces else pieces


def wrapped(line: str, columns: int) -> list[str]:
    """Wrap a sentence between words.

    A command in backticks stays whole, so that it can be copied, and so does a word that is wider than the terminal.

    >>> wrapped("  create it with `lace init notes.lace`, then go on", 30)
    ['  create it with', '    `lace init notes.lace`,', '    then go on']
    """
    indent = line[: len(line) - len(line.lstrip(" "))]
    words = [word for found in _WORDS.findall(line[len(indent) :]) for word in _fitting(found, columns - len(indent))]
    lines, now = [], indent
    for word in words:
        if now.strip() and cells(now) + 1 + cells(word) > columns:
            lines.append(now)
            now = f"{indent}  {word}"
        else:
            now = f"{now} {word}" if now.strip() else f"{now}{word}"
    return [*lines, now]


def _fitting(word: str, columns: int) -> list[str]:
    """A command of several words that no line could hold is wrapped between these."""
    return word.split(" ") if cells(word) > columns else [word]
