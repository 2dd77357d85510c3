"""`lace conflicts DIR`: the files of a folder that two people changed at once."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say


@click.command("conflicts")
@click.argument("directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path))
@json_option
def command(directory: Path, as_json: bool) -> ExitCode:
    """List the files of a folder that are in conflict.

    A file is in conflict if two people changed it without having each other's version. The newest is in its place, and
    each other one beside it; all are stored. To settle it, make the file what it should be and remove those beside it;
    the next `lace sync` stores that. Exits with 1 if there is a conflict.
    """
    from lace.cli.options.arguments import opened
    from lace.folder.contested import contested
    from lace.folder.lacetree import LaceTree
    from lace.folder.setup import read_settings

    settings = read_settings(directory)
    if settings is None:
        raise click.UsageError(f"{directory} does not follow a lace: `lace sync` sets it up")
    with opened(settings.lace_path(directory)) as lace:
        tree = LaceTree(lace, settings.place, {})
        tree.refresh()
        found = contested(tree.shown.items())
        for name, beside in sorted(found.items()):
            versions = [(name, tree.shown[name]), *sorted(beside)]
            if as_json:
                print_json({"name": name, "versions": [{"file": at, "hash": one.versions[0]} for at, one in versions]})
                continue
            say(name)
            for at, one in versions:
                said = lace.load(lace.resolve(one.versions[0])).parts
                who = said.signed_by or "unsigned"
                say(f"  {said.tai}  {who}  {at}")
    if not found and not as_json:
        say("no conflicts", err=True)
    return ExitCode.BAD if found else ExitCode.OK
