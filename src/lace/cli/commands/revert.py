"""`lace revert PATH COORDINATE --to HASH`: make an earlier version the tip again."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import Target, as_of_option, lace_argument, opened
from lace.cli.options.completing import keys
from lace.cli.output.output import json_option, print_json, say


@click.command("revert")
@lace_argument
@click.argument("coordinate", type=Target(hashes=False))
@click.option("--to", type=Target(coordinates=False), metavar="HASH", help="The version to go back to.")
@as_of_option
@click.option(
    "-s", "--sign", metavar="KEY", shell_complete=keys, help="Sign with this key of the ring, by name or verifier."
)
@json_option
def command(path: Path, coordinate: str, to: str | None, as_of: str | None, sign: str | None, as_json: bool) -> None:
    """Make an earlier version the tip again.

    Its content and headers are put once more, as the newest version, so others get it like any change, and what was the
    tip stays in the history. --to names the version by its hash; --as-of takes what was the tip at a time.
    """
    if (to is None) == (as_of is None):
        raise click.UsageError("give --to HASH or --as-of TIME")
    with opened(path, write=True) as lace:
        record = lace.revert(coordinate, to or as_of or "", sign=sign)
    if as_json:
        print_json({"hash": record, "coordinate": coordinate})
    else:
        say(f"{record}  is the tip of {coordinate} again")
