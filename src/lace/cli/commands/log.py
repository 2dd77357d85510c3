"""`lace log PATH COORDINATE`: the versions of a coordinate."""

from __future__ import annotations

from pathlib import Path

import click

from lace.cli.commands.ls import writer_words
from lace.cli.options.arguments import Target, as_of_option, lace_argument, opened
from lace.cli.output.output import json_option, print_json
from lace.cli.output.tables import print_table
from lace.cli.output.words import human_size, shown_time
from lace.errors import NotFound


@click.command("log")
@lace_argument
@click.argument("coordinate", type=Target(hashes=False))
@click.option("-n", "count", type=click.IntRange(min=1), help="Show at most so many versions.")
@as_of_option
@json_option
def command(path: Path, coordinate: str, count: int | None, as_of: str | None, as_json: bool) -> None:
    """Show the versions of a coordinate, and what each counts for.

    The newest comes first: when, by whom, how much, and whether it is the tip, stands behind a newer one, was withdrawn
    (and by whom), withdraws others, or is dated too far ahead.
    """
    with opened(path) as lace:
        past = lace.at(as_of) if as_of is not None else lace
        told = writer_words(lace)
        rows, tip = [], None
        for version, state, by in past.history(coordinate):
            if as_of is not None and state == "ahead":
                continue
            is_tip = tip is None and state == "stands"
            tip = version.hash if is_tip else tip
            said = "tip" if is_tip else f"withdrawn by {told(by)}" if by is not None else str(state)
            rows.append((version, said, is_tip, by))
            if len(rows) == count:
                break
        if not rows:
            raise NotFound(f"there is no record at {coordinate}", place=coordinate)
        for version, said, is_tip, by in rows if as_json else ():
            entry = {"hash": version.hash, "tai": version.tai, "signer": version.signer, "bytes": version.data_length}
            print_json({**entry, "state": said if is_tip else said.partition(" ")[0], "withdrawn_by": by and by.hash})
        if not as_json:
            shown = (
                [one.hash, shown_time(one.tai), told(one).partition(" (")[0],
                 human_size(one.data_length or lace.content_length(one.hash)), said]
                for one, said, _, _ in rows
            )  # fmt: skip
            columns = ["version", "time (UTC)", "by", "size", "state"]
            print_table(columns, shown, right=frozenset({"size"}), drop=("size", "version"))
