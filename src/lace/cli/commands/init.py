"""`lace init PATH`: create an empty lace."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument
from lace.cli.output.output import json_option, print_json, say


@click.command("init")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> None:
    """Create an empty lace.

    PATH is the file to create; it must not exist yet. By convention it ends in .lace.
    """
    from lace.errors import StoreError
    from lace.porcelain.lace import open_lace

    if path.exists():
        raise StoreError(f"{path} already exists; nothing was changed")
    open_lace(path, create=True).close()
    if as_json:
        print_json({"path": str(path)})
    else:
        say(f"created {path}")
