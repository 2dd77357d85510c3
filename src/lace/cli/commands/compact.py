"""`lace compact PATH`: rewrite a lace without what was removed from it."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of, human_size


@click.command("compact")
@lace_argument
@click.option("--unlinked", is_flag=True, help="First remove every Blob that no record links to.")
@json_option
def command(path: Path, unlinked: bool, as_json: bool) -> None:
    """Rewrite a lace without what was removed from it.

    The bytes of removed records, and the names and values that only they had, leave the file. Compacting needs free
    disk space for two more copies of the lace. Others may read and write meanwhile. `lace serve`, `follow` and
    `inspect` reopen the lace by themselves; any other program that has it open must reopen it.

    A Blob that no record links to may be part of content that never arrived whole, or may have been stored for its own
    sake: only you know. Their number is shown, and --unlinked removes them.
    """
    with opened(path, write=unlinked) as lace:
        total = lace.stat().records
        loose = lace.unlinked_blobs()
        if unlinked:
            loose = loose[: lace.delete(*loose)] if loose else []
            total -= len(loose)
    before, after = compacted(path, total)
    if as_json:
        key = "removed_blobs" if unlinked else "unlinked_blobs"
        print_json({"path": str(path), "bytes_before": before, "bytes": after, key: len(loose)})
        return
    say(f"{path}: {human_size(before)} before, {human_size(after)} now")
    if unlinked:
        say(f"removed {count_of(len(loose), 'Blob')} that no record linked to")
    elif loose:
        say(f"no record links to {count_of(len(loose), 'Blob')}: remove with `lace compact {path} --unlinked`")


def compacted(path: Path, records: int) -> tuple[int, int]:
    """Compact a lace with a progress meter; return its bytes before and after."""
    from lace.porcelain.upkeep import compact

    with metered(f"compacting {path}", records) as meter:
        return compact(path, progress=meter.advance)
