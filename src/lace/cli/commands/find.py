"""`lace find PATH WORD…`: find records by the words they contain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lace.cli.commands.ls import print_json_rows, print_overview
from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, say

_MOST_NEAR = 3


@click.command("find")
@lace_argument
@click.argument("words", nargs=-1, required=True, metavar="WORD…")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="Show at most this many.")
@json_option
def command(path: Path, words: Sequence[str], limit: int, as_json: bool) -> ExitCode:
    """Find records by the words of their names, headers and text.

    A record matches if it contains every WORD. brok* matches words that begin so, 'a phrase' in quotes matches words in
    a row, and name:, headers: or content: before a word says where it must occur. The most recently stored records come
    first. Make a lace searchable with `lace index`. The exit code is 1 if nothing is found.
    """
    from lace.porcelain.listing import COLUMNS, Row, record_fields
    from lace.porcelain.search import find

    question = " ".join(f'"{word}"' if " " in word else word for word in words)
    with opened(path) as lace:
        found = [record for _, record in find(lace, question, limit=limit)]
        rows = [Row(record, record_fields(lace.load(record), COLUMNS)) for record in found]
        if as_json:
            print_json_rows(rows, COLUMNS)
        elif rows:
            print_overview(lace, rows)
    if not rows:
        near = "" if as_json else " or ".join(_near(path, words))
        say("no record contains all of these words" + (f"; did you mean {near}?" if near else ""), err=True)
    return ExitCode.OK if rows else ExitCode.BAD


def _near(path: Path, words: Sequence[str]) -> list[str]:
    """Coordinates that are named nearly like one of the words."""
    from lace.porcelain.nearness import nearest_names

    found = (near for word in words for near in nearest_names(path, word.rpartition(":")[2].rstrip("*")))
    return list(dict.fromkeys(found))[:_MOST_NEAR]
