"""`lace rm PATH HASH…`: remove records."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.commands.compact import compacted
from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.words import count_of


@click.command("rm")
@lace_argument
@click.argument("hashes", type=Target(coordinates=False), metavar="HASH...", nargs=-1, required=True)
@click.option("--secure", is_flag=True, help="Compact the lace, so that nothing of them stays in the file.")
@json_option
def command(path: Path, hashes: tuple[str, ...], secure: bool, as_json: bool) -> None:
    """Remove records and their facts.

    Removes all of them or, if one is missing, none. The parts of large content go with it, except those that another
    record links to. Removed bytes stay in free pages of the file until they are overwritten, and names and values stay
    until the lace is compacted; --secure compacts it right away. The next exchange or import may bring the records
    back: `lace forget` keeps them out, and `lace retract` withdraws them for everyone.
    """
    with opened(path, write=True) as lace:
        named = len({lace.resolve(one) for one in hashes})
        removed = lace.delete(*hashes)
        left = lace.stat().records
    if secure:
        compacted(path, left)
    if as_json:
        print_json({"removed": removed, "parts": removed - named, "forgotten": False, "retracted": False})
    else:
        parts = f" and {count_of(removed - named, 'part')} that nothing else needs" if removed > named else ""
        say(f"removed {count_of(named, 'record')}{parts}")
        say(
            "not forgotten: an exchange may bring them back (`lace forget` prevents that); not withdrawn: others still"
            " read them (`lace retract`)",
            err=True,
        )
