"""`lace restore BACKUP PATH`: create a lace from a backup."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import LacePath
from lace.cli.output.output import count_of, json_option, metered, print_json, say


@click.command("restore")
@click.argument("backup_path", metavar="BACKUP", type=LacePath(exists=True, dir_okay=False))
@click.argument("path", metavar="PATH", type=LacePath(dir_okay=False))
@json_option
def command(backup_path: Path, path: Path, as_json: bool) -> None:
    """Create a lace from a backup.

    PATH must not exist: move an existing lace out of the way first. Peers and followers that knew a later state of it
    start over and compare everything.
    """
    from lace.porcelain.upkeep import restore

    with metered(f"restoring {path}", None) as meter:
        count = restore(backup_path, path, progress=lambda done, _: meter.advance(done - meter.done))
    if as_json:
        print_json({"path": str(path), "records": count})
    else:
        say(f"restored {count_of(count, 'record')} to {path}")
