"""`lace diff PATH TARGET [OTHER]`: what changed between two versions."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import Target, as_of_option, lace_argument, opened
from lace.cli.output.output import json_option, print_json, say_data
from lace.errors import NotFound


@click.command("diff")
@lace_argument
@click.argument("target", type=Target(), metavar="COORDINATE|HASH")
@click.argument("other", type=Target(), metavar="[COORDINATE|HASH]", required=False)
@as_of_option
@json_option
def command(path: Path, target: str, other: str | None, as_of: str | None, as_json: bool) -> None:
    """Show what changed between two versions.

    A coordinate alone compares its tip with the version before it; with --as-of, with what was its tip then. Two
    coordinates or hashes compare the first with the second. Headers come first, then content that is text.
    """
    from lace.porcelain.difference import difference
    from lace.records.coordinate import is_place

    if other is not None and as_of is not None:
        raise click.UsageError("give two records, or one and --as-of")
    if other is None and not is_place(target):
        raise click.UsageError("a hash names one record: give another one to compare it with")
    with opened(path) as lace:
        if other is not None:
            older, newer = lace.record(target), lace.record(other)
        elif as_of is not None:
            older, newer = lace.at(as_of).record(target), lace.record(target)
        else:
            standing = [one.version.hash for one in lace.history(target) if one.state == "stands"][:2]
            newer = lace.record(target)
            if len(standing) < 2:
                raise NotFound(f"{target} has no version before its tip to compare it with")
            older = lace.load(standing[1])
        lines = list(difference(lace, older, newer))
    if as_json:
        print_json({"older": older.hash, "newer": newer.hash, "difference": lines})
        return
    for line in (f"--- {older.hash}", f"+++ {newer.hash}", *lines) if lines else ():
        say_data(line)
