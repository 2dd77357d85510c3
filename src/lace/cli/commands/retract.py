"""`lace retract PATH TARGET…`: withdraw coordinates or versions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.options.completing import keys
from lace.cli.output.output import json_option, print_json, say

if TYPE_CHECKING:
    from lace.notation.identifiers import RecordHash
    from lace.porcelain.lace import Lace


@click.command("retract")
@lace_argument
@click.argument("targets", type=Target(), metavar="COORDINATE|HASH...", nargs=-1, required=True)
@click.option(
    "-s", "--sign", metavar="KEY", shell_complete=keys, help="Sign with this key of the ring, by name or verifier."
)
@json_option
def command(path: Path, targets: tuple[str, ...], sign: str | None, as_json: bool) -> None:
    """Withdraw coordinates or versions, for everyone who has them.

    A coordinate is withdrawn with all its versions; a hash withdraws that version, and the one before it is read again.
    This stores a record at the coordinate, which travels by the rules that carried what it withdraws. Nothing is
    removed: `lace ls --all` and `lace log` show it, and `lace undo` or putting again brings it back.
    """
    with opened(path, write=True) as lace:
        for record in lace.retract(*targets, sign=sign):
            told(lace, record, as_json, "withdrew")


def told(lace: Lace, record: RecordHash, as_json: bool, what: str) -> None:
    """One line for a record that withdraws something."""
    parts = lace.load(record).parts
    coordinate = f"//{parts.group}//{parts.app}//{parts.name}"
    if as_json:
        print_json({"hash": record, "coordinate": coordinate})
    else:
        say(f"{record}  {what} {coordinate}")
