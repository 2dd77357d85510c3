"""`lace upgrade PATH`: bring the file of a lace up to date, or say what that would do."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, say


@click.command("upgrade")
@lace_argument
@click.option("--check", "only_checks", is_flag=True, help="Change nothing; exit with 1 if there is something to do.")
@json_option
def command(path: Path, only_checks: bool, as_json: bool) -> ExitCode:
    """Bring the file of a lace up to date.

    Every version opens the laces of all earlier ones, and does this by itself when it first writes to one. Earlier
    versions cannot open the file afterwards: `lace backup` first. A step is done whole or not at all.
    """
    from lace.errors import NotFound, StoreError
    from lace.store.version import schema_of

    try:
        before = schema_of(path)
    except NotFound as missing:
        error = StoreError(str(missing))
        error.add_note(f"create it with `lace init {path}`")
        raise error from None
    if before.is_old and not only_checks:
        opened_once(path)
    after = schema_of(path)
    if as_json:
        print_json({"path": str(path), "schema": after.found, "was": before.found, "current": after.current})
    elif after.is_old:
        say(f"{path} has schema {after.found}; `lace upgrade {path}` makes it {after.current}")
    elif before.is_old:
        say(f"{path} has schema {after.found} now; it had {before.found}")
    else:
        say(f"{path} has schema {after.found}, the newest; there is nothing to do")
    return ExitCode.BAD if after.is_old else ExitCode.OK


def opened_once(path: Path) -> None:
    """Open a lace for writing, which migrates it."""
    with opened(path, write=True):
        pass
