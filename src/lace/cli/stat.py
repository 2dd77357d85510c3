"""`lace stat PATH`: how much a lace holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from lace.cli.arguments import lace_argument, opened
from lace.cli.output import human_size, json_option, print_fields, print_json


@click.command("stat")
@lace_argument
@json_option
def command(path: Path, as_json: bool) -> None:
    """Show how much a lace holds."""
    with opened(path) as lace:
        stat = lace.stat()
    if as_json:
        print_json(asdict(stat))
        return
    print_fields(
        [
            ("records", f"{stat.records:,}"),
            ("their bytes", human_size(stat.stored_bytes)),
            ("file", human_size(stat.file_bytes)),
            ("fact values", f"{stat.values:,}"),
            ("last record", f"number {stat.high_water:,}"),
        ]
    )
