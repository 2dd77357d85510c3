"""The vocabulary of the command: how amounts, times, hashes, coordinates and people look, everywhere.

Rule: whatever is printed for people is spelled by this module. On a terminal a hash is short and dim, a coordinate has
a colour, and a key is its name, if it has one; with --full, in a pipe and in JSON a hash is whole. What stands between
backticks is there to be copied and stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import click

from lace.cli.output.text import Shown, for_people, shown, styled, visible

ELLIPSIS = "…"
SHORT_HASH = 14
HASH, PLACE = {"dim": True}, {"fg": "cyan"}  # styles
_FULL, _NAMES = "lace.full", "lace.names"  # in what all contexts of one command line share
_TAIL = r"\.[A-Za-z0-9_~]{43}(?:\.H3)?"
_IDENTIFIER = re.compile(rf"`[^`\n]*`|\b[BPSVRUE]{_TAIL}")
_WHOLE = re.compile(rf"[BPSVRUE]{_TAIL}")
# Another such character would make it a word of some other kind: an address, or half of a path.
_PLACE = r"(?<![\w:/.~])//(?:[^\s`'\",;()]*[^\s`'\",;()?.:!/])?(?://?)?"
_COLOURED = re.compile(
    rf"(?P<copied>`[^`\n]*`)|(?P<hash>\b[BPSVRUE](?:{_TAIL}|\.[A-Za-z0-9_~]{{{SHORT_HASH - 2}}}{ELLIPSIS}))"
    rf"|(?P<place>{_PLACE})"
)


# amounts


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


def span(seconds: float) -> str:
    """How long something took or lasts.

    >>> span(0.0042), span(2.345), span(75), span(7300), span(200_000)
    ('4 ms', '2.3 s', '1 min 15 s', '2 h 1 min', '2 d 7 h')
    """
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, small, small_unit in ((86_400, "d", 3600, "h"), (3600, "h", 60, "min")):
        if whole >= size:
            return f"{whole // size:,} {unit} {whole % size // small} {small_unit}"
    return f"{whole // 60} min {whole % 60} s"


def rate(size: float, seconds: float) -> str:
    """How much in a second; empty if there was no time.

    >>> rate(3 << 20, 2.0), rate(0, 1.0)
    ('1.5 MiB/s', '0 B/s')
    """
    return f"{human_size(int(size / seconds))}/s" if seconds > 0 else ""


# times


def shown_time(tai: str) -> str:
    """A TAI as a date and time, in UTC; unchanged if the calendar cannot express it."""
    from lace.notation.tai import TAI

    try:
        return datetime.fromtimestamp(TAI(tai).to_unix_ns() // 10**9, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError):
        return tai


def clock() -> str:
    """The time of day now, as the lines of a command that keeps running begin."""
    return datetime.now().astimezone().strftime("%H:%M:%S")


# hashes, coordinates and people


def short_hash(text: str) -> str:
    """A hash cut to a length that is enough to recognise it and to type it back."""
    return text[:SHORT_HASH] + ELLIPSIS if len(text) > SHORT_HASH else text


def is_cut(*, err: bool = False) -> bool:
    """Whether hashes are short here: on a terminal, without --full."""
    return for_people(err=err) and not wants_full()


def shown_hash(text: str) -> str:
    """A hash or a key: short on a terminal, whole where a program may read it."""
    return short_hash(text) if is_cut() else text


def note_full(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Remember that --full was given."""
    if value:
        ctx.meta[_FULL] = True


def wants_full() -> bool:
    """Whether whole hashes and keys are wanted."""
    context = click.get_current_context(silent=True)
    return bool(context is not None and context.meta.get(_FULL))


def note_names(ctx: click.Context, name_of: Callable[[str], str | None]) -> None:
    """Say how a key is called; asked only when one is about to be shown."""
    ctx.meta[_NAMES] = name_of


def _person(verifier: str) -> str:
    context = click.get_current_context(silent=True)
    name_of = None if context is None else context.meta.get(_NAMES)
    return (name_of(verifier) if name_of is not None else None) or short_hash(verifier)


def _cut(word: str) -> str:
    return _person(word) if word.startswith("V.") else short_hash(word)


def shortened(text: str) -> str:
    """Text for a terminal: hashes cut short, keys replaced by their names."""
    if wants_full():
        return text
    return _IDENTIFIER.sub(lambda found: found[0] if found[0][0] == "`" else _cut(found[0]), text)


def shortened_cell(text: str) -> str:
    """A cell of a table, which is shortened if it holds nothing but an identifier, unless it is `Shown` already."""
    return _cut(text) if not isinstance(text, Shown) and not wants_full() and _WHOLE.fullmatch(text) else text


def coloured(line: str) -> Shown:
    """Visible text with its hashes and coordinates in their styles."""
    parts: list[str] = []
    end = 0
    for found in _COLOURED.finditer(line):
        parts.append(visible(line[end : found.start()], goes_on=True))
        style = HASH if found["hash"] else PLACE if found["place"] else {}
        parts.append(styled(found[0], **style) if style else visible(found[0]))
        end = found.end()
    return shown(*parts, visible(line[end:], goes_on=end > 0))
