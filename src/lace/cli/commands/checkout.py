"""`lace checkout PATH [COORDINATE] DIR`: records back as files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.failure import ExitCode
from lace.cli.output.output import json_option, print_json, print_warning, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of


@click.command("checkout")
@lace_argument
@click.argument("words", nargs=-1, required=True, metavar="[COORDINATE] DIR")
@click.option("--as-of", metavar="TIME", help="What was there at a time: 2026-11-18, 2026-11-18T12:00+01:00 or TAI.")
@click.option("--replace", is_flag=True, help="Replace files whose content this lace does not hold; it is lost.")
@click.option("-q", "--quiet", is_flag=True, help="Print only what was refused.")
@json_option
def command(
    path: Path, words: tuple[str, ...], as_of: str | None, replace: bool, quiet: bool, as_json: bool
) -> ExitCode:
    """Write records as files into a folder.

    COORDINATE is //group//app or what is below a name, //group//app//photos; leave it out if the lace holds one group
    and app. Each file gets the content of its coordinate's tip. A file that already has it is left alone; one that has
    content of no stored version is never overwritten without --replace. Nothing outside DIR is touched.
    """
    if len(words) > 2:
        raise click.UsageError("give a coordinate and a folder, or a folder alone")
    place, folder = (words[0], words[1]) if len(words) == 2 else (None, words[0])
    if place is None and folder.startswith("//"):
        raise click.UsageError(f"{folder} is a coordinate: give the folder to write to as well")
    states: Counter[str] = Counter()
    with opened(path) as lace, metered(f"writing {folder}", in_bytes=True) as meter:
        for file in lace.checkout(folder, place, as_of=as_of, replace=replace, progress=meter.advance):
            states[file.state] += 1
            if as_json:
                said = {"file": str(file.path), "name": file.name, "hash": file.hash, "state": file.state}
                print_json(said | ({"refused": file.refused} if file.refused else {}))
            elif file.refused:
                print_warning(f"{file.path} is not written: {file.refused}")
            elif not quiet and file.state != "unchanged":
                say(f"{file.state:<8} {file.path}")
    if not as_json:
        say(told_states(states), err=True)
    return ExitCode.BAD if states["refused"] else ExitCode.OK


def told_states(states: Counter[str]) -> str:
    """How many files were new, changed, unchanged and refused; what there is none of is left out."""
    parts = [f"{states[state]:,} {state}" for state in ("new", "changed", "unchanged", "refused") if states[state]]
    return f"{count_of(states.total(), 'file')}: {', '.join(parts)}" if parts else "no files"
