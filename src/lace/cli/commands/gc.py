"""`lace gc PATH --keep RULES`: remove what no rule keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.output.output import count_of, json_option, say


@click.command("gc")
@lace_argument
@click.option(
    "--keep", required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Rule file that derives Keep(P).",
)  # fmt: skip
@click.option("--apply/--dry-run", default=False, help="Do it, or only show what would go (the default).")
@click.option("--all", "show_all", is_flag=True, help="Show every record that would go, not the oldest alone.")
@click.option(
    "--why", multiple=True, type=Target(coordinates=False), metavar="HASH",
    help="Say what becomes of this record, and by which rules.",
)  # fmt: skip
@json_option
def command(path: Path, keep: Path, apply: bool, show_all: bool, why: Sequence[str], as_json: bool) -> None:
    """Remove what no rule keeps.

    The rules derive Keep(P) for what stays: the newest so many versions, what is young, a group, what kept records link
    to. Parts of kept content stay with it, and so do retractions of kept versions. Shows how many records each rule
    keeps and what would go; --apply removes it, as `lace rm` does: an exchange may bring it back, and the bytes leave
    the file with `lace compact`.
    """
    from lace.cli.output.retention import show_decision
    from lace.porcelain.keeping import collect, decide

    with opened(path, write=apply) as lace:
        asked = [lace.resolve(one) if len(one) < 45 else one for one in why]
        found = decide(lace, keep.read_text(encoding="utf-8"), name=str(keep))
        show_decision(found, keep, apply, show_all, asked, as_json)
        if apply:
            removed = collect(lace, found)
            say(f"removed {count_of(removed, 'record')}", err=True)
