"""`lace backup PATH TARGET`: copy a whole lace, which may be in use."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.commands.key import ring_names, user_ring
from lace.cli.options.arguments import LacePath, lace_argument
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import human_size

_MOST_NAMED = 5  # keys


@click.command("backup")
@lace_argument
@click.argument("target", type=LacePath(dir_okay=False))
@click.option("--replace", is_flag=True, help="Overwrite TARGET if it exists.")
@json_option
def command(path: Path, target: Path, replace: bool, as_json: bool) -> None:
    """Copy a whole lace, even while it is in use.

    TARGET is a lace itself: a snapshot of one moment, even if others write to PATH meanwhile. Copying the file alone is
    not enough, because the latest writes are in a log beside it (PATH-wal). Your keys are not in it: `lace key backup`
    shows each as words to write down.
    """
    from lace.porcelain.upkeep import backup

    with metered(f"copying {path}", None) as meter:
        size = backup(path, target, replace=replace, progress=lambda done, _: meter.advance(done - meter.done))
    if as_json:
        print_json({"path": str(target), "bytes": size})
    else:
        say(f"copied {human_size(size)} to {target}")
        if names := sorted(name for name in ring_names().values() if not user_ring().has_backup(name)):
            kept = ", ".join(names[:_MOST_NAMED]) + (" and more" if len(names) > _MOST_NAMED else "")
            say(f"your keys are not in it: `lace key backup` shows each as words to write down ({kept})", err=True)
