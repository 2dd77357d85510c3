"""`lace compact PATH`: a lace without what was removed from it."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.arguments import lace_argument, opened
from lace.cli.output import json_option, metered, print_json, say


@click.command("compact")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> None:
    """Write a lace anew without what was removed from it.

    The bytes of removed records, and the names and values that only they had, leave the file. It needs free room for
    two more copies of the lace. Others may read and write meanwhile. `lace serve`, `follow` and `inspect` open the
    lace again by themselves; other programs that have it open have to.
    """
    with opened(path) as lace:
        total = lace.stat().records
    before, after = compacted(path, total)
    if as_json:
        print_json({"path": str(path), "bytes_before": before, "bytes": after})
    else:
        say(f"{path}: {before:,} bytes before, {after:,} now")


def compacted(path: Path, records: int) -> tuple[int, int]:
    """Compact with a meter; bytes before and after."""
    from lace.porcelain.upkeep import compact

    with metered(f"compacting {path}", records) as meter:
        return compact(path, progress=meter.advance)
