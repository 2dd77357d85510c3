"""`lace undo PATH TARGET…`: take back a retraction."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.commands.retract import told
from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.options.completing import keys
from lace.cli.output.output import json_option


@click.command("undo")
@lace_argument
@click.argument("targets", type=Target(), metavar="COORDINATE|HASH...", nargs=-1, required=True)
@click.option(
    "-s", "--sign", metavar="KEY", shell_complete=keys, help="Sign with this key of the ring, by name or verifier."
)
@json_option
def command(path: Path, targets: tuple[str, ...], sign: str | None, as_json: bool) -> None:
    """Take back a retraction.

    A coordinate means the newest retraction that counts there; a hash names a retraction. What it withdrew is read
    again. This stores a record that withdraws the retraction, so it travels as the retraction did.
    """
    with opened(path, write=True) as lace:
        for record in lace.undo(*targets, sign=sign):
            told(lace, record, as_json, "took back a retraction of")
