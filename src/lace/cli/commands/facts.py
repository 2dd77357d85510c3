"""`lace facts PATH [HASH|COORDINATE]`: the facts that rules see."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.options.arguments import Target, lace_argument, opened
from lace.cli.output.output import json_option, print_json, say_data


@click.command("facts")
@lace_argument
@click.argument("target", type=Target(), metavar="[HASH|COORDINATE]", required=False)
@json_option
def command(path: Path, target: str | None, as_json: bool) -> None:
    """Print the facts of one record or of all, one per line.

    Rules are evaluated over these facts: Have, Field, RecordLink, BlobHash, PlexHash.
    """
    from lace.notation.factline import format_fact

    with opened(path) as lace:
        for fact in lace.facts(target):
            if as_json:
                print_json({"predicate": fact.predicate.name, "values": list(fact.values)})
            else:
                say_data(format_fact(fact))
