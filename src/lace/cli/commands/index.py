"""`lace index PATH`: make a lace searchable by words."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.output import json_option, print_json, say
from lace.cli.output.progress import metered
from lace.cli.output.words import count_of


@click.command("index")
@lace_argument
@click.option("--drop", is_flag=True, help="Remove the index.")
@json_option
def command(path: Path, drop: bool, as_json: bool) -> None:
    """Make a lace searchable by words.

    Keeps the words of coordinates, headers and text content in the lace's own file. From then on every put and rm
    updates them in the same transaction. Running it again rebuilds the index.
    """
    from lace.porcelain.search import forget, index

    with opened(path, write=True) as lace:
        if drop:
            had = forget(lace)
            said: dict[str, object] = {"indexed": 0, "dropped": had}
            text = "removed the index" if had else "there was no index"
        else:
            with metered(f"indexing {path}", lace.stat().records, in_bytes=False) as meter:
                count = index(lace, meter.advance)
            said = {"indexed": count, "dropped": False}
            text = f"indexed {count_of(count, 'record')}; search them with `lace find`"
    if as_json:
        print_json(said)
    else:
        say(text)
