"""`lace restore BACKUP PATH`: create a lace from a backup."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.commands.forget import user_journal
from lace.cli.options.arguments import LacePath
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of


@click.command("restore")
@click.argument("backup_path", metavar="BACKUP", type=LacePath(exists=True, dir_okay=False))
@click.argument("path", metavar="PATH", type=LacePath(dir_okay=False))
@click.option("--with-forgotten", is_flag=True, help="Restore what you forgot since, too.")
@json_option
def command(backup_path: Path, path: Path, with_forgotten: bool, as_json: bool) -> None:
    """Create a lace from a backup.

    PATH must not exist: move an existing lace out of the way first. Peers and followers that knew a later state of it
    start over and compare everything. Records that you forgot on this machine (`lace forget`) stay out.
    """
    from lace.porcelain.upkeep import restore

    forgotten = () if with_forgotten else user_journal().read()
    with metered(f"restoring {path}", None) as meter:
        found = restore(
            backup_path, path, forgotten=forgotten, progress=lambda done, _: meter.advance(done - meter.done)
        )
    if as_json:
        print_json({"path": str(path), "records": found.records, "forgotten": found.forgotten})
        return
    say(f"restored {count_of(found.records, 'record')} to {path}")
    if found.forgotten:
        say(
            f"left out {count_of(found.forgotten, 'record')} that you forgot; --with-forgotten brings them back",
            err=True,
        )
