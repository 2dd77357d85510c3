"""`lace backup PATH TARGET`: a whole copy of a lace that may be in use."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import LacePath, lace_argument
from lace.cli.output.output import count_of, json_option, metered, print_json, say


@click.command("backup")
@lace_argument
@click.argument("target", type=LacePath(dir_okay=False))
@click.option("--replace", is_flag=True, help="Take the place of a file that is there.")
@json_option
def command(path: Path, target: Path, replace: bool, as_json: bool) -> None:
    """Copy a lace whole, also while it is in use.

    TARGET shows one moment of the lace, even if others write meanwhile, and is a lace itself. A plain copy of the file
    is not enough: the latest writes are in a log beside it (PATH-wal).
    """
    from lace.porcelain.upkeep import backup

    with metered(f"copying {path}", None) as meter:
        size = backup(path, target, replace=replace, progress=lambda done, _: meter.advance(done - meter.done))
    if as_json:
        print_json({"path": str(target), "bytes": size})
    else:
        say(f"copied {count_of(size, 'byte')} to {target}")
