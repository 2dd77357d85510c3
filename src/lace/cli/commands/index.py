"""`lace index PATH`: let a lace be searched by words."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import lace_argument, opened
from lace.cli.output.output import count_of, json_option, metered, print_json, say


@click.command("index")
@lace_argument
@click.option("--drop", is_flag=True, help="Keep words no longer.")
@json_option
def command(path: Path, drop: bool, as_json: bool) -> None:
    """Let a lace be searched by words.

    Keeps the words of coordinates, headers and text content in the lace's own file; from then on every put and every
    rm keeps them right in the same transaction. A second time makes them anew.
    """
    from lace.porcelain.search import forget, index

    with opened(path, write=True) as lace:
        if drop:
            had = forget(lace)
            said: dict[str, object] = {"indexed": 0, "dropped": had}
            text = "words are kept no longer" if had else "no words were kept"
        else:
            with metered(f"indexing {path}", lace.stat().records, in_bytes=False) as meter:
                count = index(lace, meter.advance)
            said = {"indexed": count, "dropped": False}
            text = f"{count_of(count, 'record')} can be found by `lace find`"
    if as_json:
        print_json(said)
    else:
        say(text)
