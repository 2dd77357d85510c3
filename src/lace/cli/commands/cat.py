"""`lace cat PATH HASH|COORDINATE…`: the stored bytes of records."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.output.files import output_to


@click.command("cat")
@lace_argument
@click.argument("targets", type=Target(), metavar="HASH|COORDINATE...", nargs=-1, required=True)
def command(path: Path, targets: tuple[str, ...]) -> None:
    """Write the stored bytes of records, headers and all.

    This is the form that is hashed and sent over the wire. Several records are written back to back, as in a bundle.
    """
    with opened(path) as lace, output_to(None) as sink:
        for target in targets:
            sink.write(lace.stored(target))
