"""`lace stat PATH`: how much a lace holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.output import json_option, print_fields, print_json, say
from lace.cli.output.words import human_size

_MOST_SHOWN = 10  # incomplete contents


@click.command("stat")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> None:
    """Show how much a lace holds."""
    with opened(path) as lace:
        stat = lace.stat()
        incomplete = list(lace.incomplete())
    if as_json:
        print_json({**asdict(stat), "incomplete": [one.to_json() for one in incomplete]})
        return
    print_fields(
        [
            ("records", f"{stat.records:,}"),
            ("their bytes", human_size(stat.stored_bytes)),
            ("file", human_size(stat.file_bytes)),
            ("fact values", f"{stat.values:,}"),
            ("last record", f"number {stat.high_water:,}"),
            *(("incomplete", f"{one.coordinate}: {one.lacks}") for one in incomplete[:_MOST_SHOWN]),
        ]
    )
    if len(incomplete) > _MOST_SHOWN:
        say(f"and {len(incomplete) - _MOST_SHOWN:,} more incomplete; `lace verify {path}` names them all")
