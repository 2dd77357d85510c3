"""`lace find PATH WORD…`: records by the words that they hold."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.arguments import lace_argument, opened
from lace.cli.failure import ExitCode
from lace.cli.output import json_option, print_json_lines, print_table, say, shown_hash

if TYPE_CHECKING:
    from lace.records.model import ValidRecord


@click.command("find")
@lace_argument
@click.argument("words", nargs=-1, required=True, metavar="WORD…")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most so many.")
@json_option
def command(path: Path, words: Sequence[str], limit: int, as_json: bool) -> ExitCode:
    """Find records by the words of their names, headers and text.

    Every WORD has to be there; brok* stands for a beginning, 'a phrase' in quotes for words in a row, and name:,
    headers: or content: before a word says where it has to stand. The last that came is first. `lace index` makes a
    lace searchable. Exit code 1 if nothing is found.
    """
    from lace.porcelain.search import find

    question = " ".join(f'"{word}"' if " " in word else word for word in words)
    with opened(path) as lace:
        rows = [_row(lace.load(record)) for _, record in find(lace, question, limit=limit)]
    if as_json:
        print_json_lines(rows)
    elif rows:
        columns = ("hash", "coordinate", "tai", "signer")
        print_table(columns, ([shown_hash(row["hash"]), *(row[key] or "" for key in columns[1:])] for row in rows))
    else:
        say("nothing holds all of these words", err=True)
    return ExitCode.OK if rows else ExitCode.BAD


def _row(record: ValidRecord) -> dict[str, str]:
    parts = record.parts
    coordinate = f"//{parts.group}//{parts.app}//{parts.name}" if parts.group else ""
    return {"hash": record.hash, "coordinate": coordinate, "tai": parts.tai, "signer": parts.signed_by}
