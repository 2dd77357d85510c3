"""`lace export PATH [PREFIX]`: records as a bundle."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import PrefixType, lace_argument, opened
from lace.cli.output.files import output_to
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of


@click.command("export")
@lace_argument
@click.argument("prefix", type=PrefixType(), default="//")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@json_option
def command(path: Path, prefix: str, output: Path | None, as_json: bool) -> None:
    """Write records to a bundle.

    A bundle is stored records back to back, the form that streams carry; `lace import` takes it. Without -o it goes to
    standard output; a file gets an index beside it. PREFIX, the beginning of a coordinate, chooses records; the chunks
    of large content go along.
    """
    with opened(path) as lace:
        total = lace.stat().stored_bytes if prefix == "//" else None
        with metered(f"exporting {path}", total, in_bytes=True) as meter:
            if output is not None:
                count = lace.export(output, prefix, progress=meter.advance)
            else:
                with output_to(None) as sink:
                    count = lace.export(sink, prefix, progress=meter.advance)
    if as_json and output is not None:
        print_json({"records": count, "bytes": meter.done, "file": str(output)})
    else:
        say(f"exported {count_of(count, 'record')}", err=output is None)
